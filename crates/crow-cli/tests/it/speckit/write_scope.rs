//! The files that a step may write, the questions that remain, and the reverted changes of commands.

use expect_test::expect;

use super::{check, transcript_of};

#[test]
fn writes_outside_of_a_step_are_rejected() {
    check(
        r#"
        have spec plan
        file src.py "x = 1\n"
        model: call write {"file_path":"src.py","content":"x = 2\n"} | call write {"file_path":"$F/../002-other/spec.md","content":"x"} | call write {"file_path":".specify/memory/constitution.md","content":"x"}
        model: text "Then not."
        model: text "No."
        model: text "No."
        > prompt /speckit.tasks
        > end
        > tree
        "#,
        &expect![[r##"
            > prompt /speckit.tasks
            < call call-2-0 write "Write src.py" pending {"file_path":"src.py","content":"x = 2\n"}
            < call call-2-1 write "Write .specify/specs/002-other/spec.md" pending {"file_path":".specify/specs/001-photo-albums/../002-other/spec.md","content":"x"}
            < call call-2-2 write "Write .specify/memory/constitution.md" pending {"file_path":".specify/memory/constitution.md","content":"x"}
            < call call-2-0 failed "not run: /speckit.tasks writes the feature's directory only; src.py stays as it is"
            < call call-2-1 failed "not run: /speckit.tasks writes the feature's directory only; .specify/specs/002-other/spec.md stays as it is"
            < call call-2-2 failed "not run: /speckit.tasks writes the feature's directory only; .specify/memory/constitution.md stays as it is"
            < text[msg-6] Then not.
            < text[msg-8] No.
            < text[msg-10] No.
            < text[msg-11] ⏎**/speckit.tasks**⏎- Feature: .specify/specs/001-photo-albums⏎- tasks.md: 0 tasks in 0 phases, 0 done, 0 marked [P]⏎⏎Remaining problems:⏎- tasks.md: there is no task; write lines such as `- [ ] T001 [P] [US1] What to do in src/a.rs`⏎- tasks.md: story 1 of the spec has no task; add a phase with [US1] tasks⏎
            < title /speckit.tasks
            = end_turn
            > tree
              .specify/feature.json {"feature_directory":".specify/specs/001-photo-albums"}
              .specify/specs/001-photo-albums/plan.md $plan
              .specify/specs/001-photo-albums/spec.md $spec
              src.py x = 1
            asked 0
              user: "/speckit.tasks" + crow:speckit/tasks "# Write the task list of 001-photo-albums"
            asked 1
              tool: "not run: /speckit.tasks writes the feature's directory only; src.py stays as it is"
              tool: "not run: /speckit.tasks writes the feature's directory only; .specify/specs/002-other/spec.md stays as it is"
              tool: "not run: /speckit.tasks writes the feature's directory only; .specify/memory/constitution.md stays as it is"
            asked 2
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.tasks`. This does not hold yet:"
                - tasks.md: there is no task; write lines such as `- [ ] T001 [P] [US1] What to do in src/a.rs`
                - tasks.md: story 1 of the spec has no task; add a phase with [US1] tasks
            asked 3
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.tasks`. This does not hold yet:"
                - tasks.md: there is no task; write lines such as `- [ ] T001 [P] [US1] What to do in src/a.rs`
                - tasks.md: story 1 of the spec has no task; add a phase with [US1] tasks
        "##]],
    );
}

#[test]
fn step_has_its_own_files() {
    let mut refused = String::new();
    for (step, path) in [
        ("constitution x", ".specify/templates/spec-template.md"),
        ("specify --short-name a-b x", "README.md"),
        ("clarify", "README.md"),
        ("plan", "src/main.py"),
        ("checklist", "$F/spec.md"),
        ("checklist", "$F/checklists/requirements.md"),
        ("analyze", "$F/tasks.md"),
    ] {
        let transcript = transcript_of(&format!(
            r#"
            have spec plan tasks
            model: call write {{"file_path":"{path}","content":"x\n"}}
            model: text "Then not." | hold
            > prompt /speckit.{step}
            > wait Then not.
            > cancel
            > end
            "#
        ));
        assert!(!transcript.contains("\n? "), "no question is asked: {transcript}");
        let told = transcript.lines().filter_map(|line| line.split_once("tool: "));
        refused.extend(told.map(|(_, why)| format!("{why}\n")));
    }
    expect![[r#"
        "not run: /speckit.constitution writes the constitution only; .specify/templates/spec-template.md stays as it is"
        "not run: /speckit.specify writes the feature's directory only; README.md stays as it is"
        "not run: /speckit.clarify writes the feature's directory only; README.md stays as it is"
        "not run: /speckit.plan writes the feature's directory only; src/main.py stays as it is"
        "not run: /speckit.checklist writes the feature's checklists only, and not requirements.md; .specify/specs/001-photo-albums/spec.md stays as it is"
        "not run: /speckit.checklist writes the feature's checklists only, and not requirements.md; .specify/specs/001-photo-albums/checklists/requirements.md stays as it is"
        "not run: /speckit.analyze writes no file; .specify/specs/001-photo-albums/tasks.md stays as it is"
    "#]].assert_eq(&refused);
}

/// Starting a step approves its files; anything else asks as usual.
#[test]
fn files_of_the_step_need_no_permission() {
    check(
        r#"
        have spec research quickstart
        model: call write {"file_path":"$F/plan.md","content":$plan}
        model: call terminal {"command":"touch ."}
        model: text "Planned."
        model: call write {"file_path":"$F/plan.md","content":"x\n"}
        model: text "No longer."
        > answer reject_once
        > prompt /speckit.plan
        > end
        > answer reject_once
        > prompt change the plan
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.plan
            < call call-2-0 write "Write .specify/specs/001-photo-albums/plan.md" pending {"file_path":".specify/specs/001-photo-albums/plan.md","content":"$plan"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/plan.md "# Implementation Plan: Photo albums\n\n**Branch**: `001-photo-albums` | **Date**: $DATE | **Spec**: [spec.md](spec.md"… -> "$plan"
            < call call-4-0 terminal "`touch .`" pending {"command":"touch ."}
            ? `touch .` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> reject_once
            < call call-4-0 failed "not run: the user rejected it"
            < text[msg-6] Planned.
            < text[msg-7] ⏎**/speckit.plan**⏎- Feature: .specify/specs/001-photo-albums⏎- plan.md, research.md, quickstart.md⏎⏎Next: `/speckit.tasks`, `/speckit.checklist`⏎
            < title /speckit.plan
            = end_turn
            > prompt change the plan
            < call call-9-0 write "Write .specify/specs/001-photo-albums/plan.md" pending {"file_path":".specify/specs/001-photo-albums/plan.md","content":"x\n"}
            ? Write .specify/specs/001-photo-albums/plan.md [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> reject_once
            < call call-9-0 failed "not run: the user rejected it"
            < text[msg-11] No longer.
            = end_turn
            asked 0
              user: "/speckit.plan" + crow:speckit/plan "# Plan how 001-photo-albums is built"
            asked 1
              tool: "replaced .specify/specs/001-photo-albums/plan.md: 65 lines before, 59 lines now"
            asked 2
              tool: "not run: the user rejected it"
            asked 3
              user: + crow:speckit/report "" "change the plan"
            asked 4
              tool: "not run: the user rejected it"
        "##]],
    );
}

#[test]
fn denied_paths_stay_denied() {
    check(
        r#"
        config: permissions: { deny: ["path(**/research.md)"] }
        have spec quickstart
        model: call write {"file_path":"$F/plan.md","content":$plan}
        model: call write {"file_path":"$F/research.md","content":$research}
        model: text "Then not."
        model: text "No."
        model: text "No."
        > prompt /speckit.plan
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.plan
            < call call-2-0 write "Write .specify/specs/001-photo-albums/plan.md" pending {"file_path":".specify/specs/001-photo-albums/plan.md","content":"$plan"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/plan.md "# Implementation Plan: Photo albums\n\n**Branch**: `001-photo-albums` | **Date**: $DATE | **Spec**: [spec.md](spec.md"… -> "$plan"
            < call call-4-0 write "Write .specify/specs/001-photo-albums/research.md" pending {"file_path":".specify/specs/001-photo-albums/research.md","content":"$research"}
            < call call-4-0 failed "not run: the configuration forbids it with the deny rule `path(**/research.md)`"
            < text[msg-6] Then not.
            < text[msg-8] No.
            < text[msg-10] No.
            < text[msg-11] ⏎**/speckit.plan**⏎- Feature: .specify/specs/001-photo-albums⏎- plan.md, quickstart.md⏎⏎Remaining problems:⏎- research.md: research.md is missing; write Decision, Rationale and Alternatives of each topic⏎
            < title /speckit.plan
            = end_turn
            asked 0
              user: "/speckit.plan" + crow:speckit/plan "# Plan how 001-photo-albums is built"
            asked 1
              tool: "replaced .specify/specs/001-photo-albums/plan.md: 65 lines before, 59 lines now"
            asked 2
              tool: "not run: the configuration forbids it with the deny rule `path(**/research.md)`"
            asked 3
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.plan`. This does not hold yet:"
                - research.md: research.md is missing; write Decision, Rationale and Alternatives of each topic
            asked 4
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.plan`. This does not hold yet:"
                - research.md: research.md is missing; write Decision, Rationale and Alternatives of each topic
        "##]],
    );
}

#[test]
fn shell_changes_are_reverted() {
    check(
        r#"
        config: permissions: { mode: auto, sandbox: off }
        have spec plan security
        file $F/checklists/requirements.md "- [ ] Good\n"
        model: call terminal {"command":"cd $F && echo mine > spec.md && rm plan.md && echo mine > checklists/requirements.md"}
        model: call write {"file_path":"$F/checklists/ux.md","content":$security}
        model: text "Done."
        > prompt /speckit.checklist
        > end
        > tree
        "#,
        &expect![[r##"
            > prompt /speckit.checklist
            < call call-2-0 terminal "`cd .specify/specs/001-photo-albums && echo mine > spec.md && rm plan.md && echo mine > checklists/r…`" pending {"command":"cd .specify/specs/001-photo-albums && echo mine > spec.md && rm plan.md && echo mine > checklists/requirements.md"}
            < call call-2-0 in_progress
            < call call-2-0 completed "(no output)\n(the command ended in $HOME/project/.specify/specs/001-photo-albums; the next one starts in $HOME/project unless `cwd` says otherwise)"
            < call call-4-0 write "Write .specify/specs/001-photo-albums/checklists/ux.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/ux.md","content":"$security"}
            < call call-4-0 in_progress
            < call call-4-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/ux.md null -> "$security"
            < text[msg-6] Done.
            < text[note-2] ⏎/speckit.checklist may not change .specify/specs/001-photo-albums/checklists/requirements.md; it was restored, and the changed version is in .specify/crow/set-aside.⏎
            < text[note-3] ⏎/speckit.checklist may not change .specify/specs/001-photo-albums/plan.md; it was restored.⏎
            < text[note-4] ⏎/speckit.checklist may not change .specify/specs/001-photo-albums/spec.md; it was restored, and the changed version is in .specify/crow/set-aside.⏎
            < text[msg-7] ⏎**/speckit.checklist**⏎- Feature: .specify/specs/001-photo-albums⏎- checklists/requirements.md: 0 of 1 checked⏎- checklists/security.md: 0 of 2 checked⏎- checklists/ux.md: 0 of 2 checked⏎⏎Next: `/speckit.tasks`⏎
            < title /speckit.checklist
            = end_turn
            > tree
              .specify/crow/.gitignore *
              .specify/crow/set-aside/checklists-requirements.md mine
              .specify/crow/set-aside/spec.md mine
              .specify/feature.json {"feature_directory":".specify/specs/001-photo-albums"}
              .specify/specs/001-photo-albums/checklists/requirements.md - [ ] Good
              .specify/specs/001-photo-albums/checklists/security.md $security
              .specify/specs/001-photo-albums/checklists/ux.md $security
              .specify/specs/001-photo-albums/plan.md $plan
              .specify/specs/001-photo-albums/spec.md $spec
            asked 0 with speckit_ask
              user: "/speckit.checklist" + crow:speckit/checklist "# Make a review list for 001-photo-albums"
            asked 1 with speckit_ask
              tool: "(no output)\n(the command ended in $HOME/project/.specify/specs/001-photo-albums; the next one starts in $HOME/project unless `cwd` says otherwise)\n(/speckit.checklist may not change $HOME/project/.specify/specs"
            asked 2 with speckit_ask
              tool: "created .specify/specs/001-photo-albums/checklists/ux.md: 14 lines"
        "##]],
    );
}

#[test]
fn analyze_runs_nothing_that_writes() {
    check(
        r#"
        config: permissions: { mode: auto, sandbox: off }
        have spec plan tasks
        model: call terminal {"command":"echo x > $F/tasks.md"} | call terminal {"command":"ls .specify"} | call write {"file_path":"report.md","content":"x"}
        model: text "Nothing found."
        > prompt /speckit.analyze
        > end
        > tree
        "#,
        &expect![[r##"
            > prompt /speckit.analyze
            < call call-2-0 terminal "`echo x > .specify/specs/001-photo-albums/tasks.md`" pending {"command":"echo x > .specify/specs/001-photo-albums/tasks.md"}
            < call call-2-1 terminal "`ls .specify`" pending {"command":"ls .specify"}
            < call call-2-2 write "Write report.md" pending {"file_path":"report.md","content":"x"}
            < call call-2-0 failed "not run: /speckit.analyze may only read"
            < call call-2-1 in_progress
            < call call-2-1 completed "feature.json\nspecs\n"
            < call call-2-2 failed "not run: /speckit.analyze writes no file; report.md stays as it is"
            < text[msg-6] Nothing found.
            < text[msg-7] ⏎**/speckit.analyze**⏎- Feature: .specify/specs/001-photo-albums⏎- tasks.md: 4 tasks in 4 phases, 0 done, 0 marked [P]⏎⏎Next: `/speckit.implement`⏎
            < title /speckit.analyze
            = end_turn
            > tree
              .specify/feature.json {"feature_directory":".specify/specs/001-photo-albums"}
              .specify/specs/001-photo-albums/plan.md $plan
              .specify/specs/001-photo-albums/spec.md $spec
              .specify/specs/001-photo-albums/tasks.md $tasks
            asked 0
              user: "/speckit.analyze" + crow:speckit/analyze "# Cross-check spec, plan and tasks of 001-photo-albums"
            asked 1
              tool: "not run: /speckit.analyze may only read"
              tool: "feature.json\nspecs"
              tool: "not run: /speckit.analyze writes no file; report.md stays as it is"
        "##]],
    );
}

/// An approved command may change another feature no more than the constitution.
#[test]
fn changes_to_another_feature_are_reverted() {
    check(
        r##"
        config: permissions: { mode: auto, sandbox: off }
        have spec
        file .specify/memory/constitution.md "# Rules\n"
        file .specify/specs/002-music/spec.md "songs\n"
        model: call terminal {"command":"echo mine | tee .specify/specs/002-music/spec.md .specify/specs/002-music/new.md .specify/memory/constitution.md"}
        model: call write {"file_path":"$F/plan.md","content":$plan} | call write {"file_path":"$F/research.md","content":$research} | call write {"file_path":"$F/quickstart.md","content":$quickstart}
        model: text "Planned."
        > prompt /speckit.plan
        > end
        > tree
        "##,
        &expect![[r##"
            > prompt /speckit.plan
            < call call-2-0 terminal "`echo mine | tee .specify/specs/002-music/spec.md .specify/specs/002-music/new.md .specify/memory/co…`" pending {"command":"echo mine | tee .specify/specs/002-music/spec.md .specify/specs/002-music/new.md .specify/memory/constitution.md"}
            < call call-2-0 in_progress
            < call call-2-0 completed "mine\n"
            < call call-4-0 write "Write .specify/specs/001-photo-albums/plan.md" pending {"file_path":".specify/specs/001-photo-albums/plan.md","content":"$plan"}
            < call call-4-1 write "Write .specify/specs/001-photo-albums/research.md" pending {"file_path":".specify/specs/001-photo-albums/research.md","content":"$research"}
            < call call-4-2 write "Write .specify/specs/001-photo-albums/quickstart.md" pending {"file_path":".specify/specs/001-photo-albums/quickstart.md","content":"$quickstart"}
            < call call-4-0 in_progress
            < call call-4-1 in_progress
            < call call-4-2 in_progress
            < call call-4-0 completed diff $HOME/project/.specify/specs/001-photo-albums/plan.md "# Implementation Plan: Photo albums\n\n**Branch**: `001-photo-albums` | **Date**: $DATE | **Spec**: [spec.md](spec.md"… -> "$plan"
            < call call-4-1 completed diff $HOME/project/.specify/specs/001-photo-albums/research.md null -> "$research"
            < call call-4-2 completed diff $HOME/project/.specify/specs/001-photo-albums/quickstart.md null -> "$quickstart"
            < text[msg-8] Planned.
            < text[note-2] ⏎/speckit.plan may not change .specify/memory/constitution.md; it was restored, and the changed version is in .specify/crow/set-aside.⏎
            < text[note-3] ⏎/speckit.plan may not change .specify/specs/002-music/new.md; the change was kept.⏎
            < text[note-4] ⏎/speckit.plan may not change .specify/specs/002-music/spec.md; it was restored, and the changed version is in .specify/crow/set-aside.⏎
            < text[msg-9] ⏎**/speckit.plan**⏎- Feature: .specify/specs/001-photo-albums⏎- plan.md, research.md, quickstart.md⏎⏎Next: `/speckit.tasks`, `/speckit.checklist`⏎
            < title /speckit.plan
            = end_turn
            > tree
              .specify/crow/.gitignore *
              .specify/crow/set-aside/.specify-memory-constitution.md mine
              .specify/crow/set-aside/.specify-specs-002-music-spec.md mine
              .specify/feature.json {"feature_directory":".specify/specs/001-photo-albums"}
              .specify/memory/constitution.md # Rules
              .specify/specs/001-photo-albums/plan.md $plan
              .specify/specs/001-photo-albums/quickstart.md $quickstart
              .specify/specs/001-photo-albums/research.md $research
              .specify/specs/001-photo-albums/spec.md $spec
              .specify/specs/002-music/new.md mine
              .specify/specs/002-music/spec.md songs
            asked 0
              user: "/speckit.plan" + crow:speckit/plan "# Plan how 001-photo-albums is built"
            asked 1
              tool: "mine\n\n(/speckit.plan may not change $HOME/project/.specify/memory/constitution.md: it was restored)\n(/speckit.plan may not change $HOME/project/.specify/specs/002-music/new.md: it is new and was kept)\n(/speckit.plan may "
            asked 2
              tool: "replaced .specify/specs/001-photo-albums/plan.md: 65 lines before, 59 lines now"
              tool: "created .specify/specs/001-photo-albums/research.md: 7 lines"
              tool: "created .specify/specs/001-photo-albums/quickstart.md: 3 lines"
        "##]],
    );
}

/// A tick of the user during a model request is kept, even in a list that the model may not change.
#[test]
fn checkbox_ticked_by_the_user_stays() {
    check(
        r##"
        config: permissions: { mode: auto, sandbox: off }
        have spec plan tasks
        file $F/checklists/security.md "- [ ] CHK001 One? [Gap]\n- [ ] CHK002 Two? [Gap]\n"
        model: call terminal {"command":"touch ."}
        model: text "thinking" | hold
        > prompt /speckit.analyze
        > wait thinking
        > put $F/checklists/security.md "- [x] CHK001 One? [Gap]\n- [ ] CHK002 Two? [Gap]\n"
        > release
        > end
        > cat $F/checklists/security.md
        "##,
        &expect![[r##"
            > prompt /speckit.analyze
            < call call-2-0 terminal "`touch .`" pending {"command":"touch ."}
            < call call-2-0 failed "not run: /speckit.analyze may only read"
            < text[msg-4] thinking
            < text[msg-5] ⏎**/speckit.analyze**⏎- Feature: .specify/specs/001-photo-albums⏎- tasks.md: 4 tasks in 4 phases, 0 done, 0 marked [P]⏎⏎Next: `/speckit.implement`⏎
            < title /speckit.analyze
            = end_turn
            $F/checklists/security.md:
              - [x] CHK001 One? [Gap]
              - [ ] CHK002 Two? [Gap]
            asked 0
              user: "/speckit.analyze" + crow:speckit/analyze "# Cross-check spec, plan and tasks of 001-photo-albums"
            asked 1
              tool: "not run: /speckit.analyze may only read"
        "##]],
    );
}

/// Ticks and notes of reviewers survive a model that rewrites the list, also ticks made meanwhile.
#[test]
fn rerun_preserves_a_reviewed_list() {
    check(
        r##"
        have spec plan
        file $F/checklists/security.md "# Security\n\n- [x] CHK001 Is the owner named? [Spec §FR-001]\n- [ ] CHK002 Is the loss named? [Gap]\n"
        model: call read {"file_path":"$F/checklists/security.md"}
        model: text "thinking" | hold
        model: call read {"file_path":"$F/checklists/security.md"}
        model: call write {"file_path":"$F/checklists/security.md","content":"# Security\n\n- [ ] CHK001 Something else? [Gap]\n"}
        model: call write {"file_path":"$F/checklists/security.md","content":"# Security\n\n- [ ] CHK001 Is the owner named? [Spec §FR-001]\n- [ ] CHK002 Is the loss named? [Gap]\n- [x] CHK003 Is the copy named? [Gap]\n"}
        model: text "Added."
        > prompt /speckit.checklist security
        > wait thinking
        > put $F/checklists/security.md "# Security\n\n- [x] CHK001 Is the owner named? [Spec §FR-001]\n- [x] CHK002 Is the loss named? [Gap]\n"
        > release
        > end
        > cat $F/checklists/security.md
        "##,
        &expect![[r##"
            > prompt /speckit.checklist security
            < call call-2-0 read "Read .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md"}
            < call call-2-0 in_progress
            < call call-2-0 completed "     1\t# Security\n     2\t\n     3\t- [x] CHK001 Is the owner named? [Spec §FR-001]\n     4\t- [ ] CHK002 Is the loss named? [Gap]\n"
            < text[msg-4] thinking
            < call call-6-0 read "Read .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md"}
            < call call-6-0 in_progress
            < call call-6-0 completed "     1\t# Security\n     2\t\n     3\t- [x] CHK001 Is the owner named? [Spec §FR-001]\n     4\t- [x] CHK002 Is the loss named? [Gap]\n"
            < call call-8-0 write "Write .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md","content":"# Security\n\n- [ ] CHK001 Something else? [Gap]\n"}
            < call call-8-0 in_progress
            < call call-8-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/security.md "- [x] CHK001 Is the owner named? [Spec §FR-001]\n- [x] CHK002 Is the loss named? [Gap]" -> "- [ ] CHK001 Something else? [Gap]"
            < call call-10-0 write "Write .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md","content":"# Security\n\n- [ ] CHK001 Is the owner named? [Spec §FR-001]\n- [ ] CHK002 Is the loss named? [Gap]\n- [x] CHK003 Is the copy named? [Gap]\n"}
            < call call-10-0 in_progress
            < call call-10-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/security.md "- [x] CHK001 Is the owner named? [Spec §FR-001]\n- [x] CHK002 Is the loss named? [Gap]" -> "- [ ] CHK001 Is the owner named? [Spec §FR-001]\n- [ ] CHK002 Is the loss named? [Gap]\n- [x] CHK003 Is the copy named? [G"…
            < text[msg-12] Added.
            < text[note-2] ⏎/speckit.checklist may not change .specify/specs/001-photo-albums/checklists/security.md; it was restored, and the changed version is in .specify/crow/set-aside.⏎
            < text[msg-13] ⏎**/speckit.checklist**⏎- Feature: .specify/specs/001-photo-albums⏎- checklists/security.md: 2 of 3 checked⏎⏎Next: `/speckit.tasks`⏎
            < title /speckit.checklist security
            = end_turn
            $F/checklists/security.md:
              # Security

              - [x] CHK001 Is the owner named? [Spec §FR-001]
              - [x] CHK002 Is the loss named? [Gap]
              - [ ] CHK003 Is the copy named? [Gap]
            asked 0 with speckit_ask
              user: "/speckit.checklist security" + crow:speckit/checklist "# Make a review list for 001-photo-albums"
            asked 1 with speckit_ask
              tool: "     1\t# Security\n     2\t\n     3\t- [x] CHK001 Is the owner named? [Spec §FR-001]\n     4\t- [ ] CHK002 Is the loss named? [Gap]"
            asked 2 with speckit_ask
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.checklist`. This does not hold yet:"
                - security.md: no item was added; add lines such as `- [ ] CHK001 …`
            asked 3 with speckit_ask
              tool: "     1\t# Security\n     2\t\n     3\t- [x] CHK001 Is the owner named? [Spec §FR-001]\n     4\t- [x] CHK002 Is the loss named? [Gap]"
            asked 4 with speckit_ask
              tool: "replaced .specify/specs/001-photo-albums/checklists/security.md: 4 lines before, 3 lines now\n(/speckit.checklist may not change $HOME/project/.specify/specs/001-photo-albums/checklists/security.md: it was restored)"
            asked 5 with speckit_ask
              tool: "replaced .specify/specs/001-photo-albums/checklists/security.md: 4 lines before, 5 lines now\n(/speckit.checklist may not change $HOME/project/.specify/specs/001-photo-albums/checklists/security.md: it was restored)"
        "##]],
    );
}
