//! A whole feature in one session: constitution, spec, plan, tasks, implementation, and convergence.

use expect_test::expect;

use super::check;

#[test]
#[expect(clippy::too_many_lines, reason = "a transcript")]
fn from_the_rules_to_the_code() {
    check(
        r#"
        config: speckit: { parallel: never }
        model: call write {"file_path":".specify/memory/constitution.md","content":$constitution}
        model: text "Rules."
        > prompt /speckit.constitution Photos stay as they are.
        > end
        model: text "photo-albums"
        model: call write {"file_path":"$F/spec.md","content":$spec}
        model: text "Spec."
        > prompt /speckit.specify Photos in albums, by day.
        > end
        model: text "Nothing to ask."
        > prompt /speckit.clarify
        > end
        model: call write {"file_path":"$F/plan.md","content":$plan}
        model: call write {"file_path":"$F/research.md","content":$research}
        model: call write {"file_path":"$F/quickstart.md","content":$quickstart}
        model: text "Plan."
        > prompt /speckit.plan Python
        > end
        model: call write {"file_path":"$F/checklists/security.md","content":$security}
        model: text "List."
        > prompt /speckit.checklist security
        > end
        model: call write {"file_path":"$F/tasks.md","content":$tasks}
        model: text "Tasks."
        > prompt /speckit.tasks
        > end
        model: text "They agree."
        > prompt /speckit.analyze
        > end
        model: call speckit_task {"id":"T001","state":"done","note":"made"}
        model: call speckit_task {"id":"T002","state":"done","note":"made"}
        model: call speckit_task {"id":"T003","state":"done","note":"made"}
        model: call speckit_task {"id":"T004","state":"done","note":"made"}
        > answer allow_once
        > prompt /speckit.implement
        > end
        model: call speckit_converge {"tasks":[]}
        > prompt /speckit.converge
        > end
        > prompt /speckit
        > end
        > cat $F/tasks.md [X]
        "#,
        &expect![[r##"
            > prompt /speckit.constitution Photos stay as they are.
            < call call-2-0 write "Write .specify/memory/constitution.md" pending {"file_path":".specify/memory/constitution.md","content":"$constitution"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/memory/constitution.md "# [PROJECT_NAME] Constitution\n\n<!-- Rules that hold for every feature of this project. Delete each comment when its part"… -> "$constitution"
            < text[msg-4] Rules.
            < text[msg-5] ⏎**/speckit.constitution**⏎- .specify/memory/constitution.md: **Version**: 1.0.0 | **Ratified**: $DATE | **Last Amended**: $DATE⏎⏎Next: `/speckit.specify`⏎
            < title /speckit.constitution Photos stay as they are.
            = end_turn
            > prompt /speckit.specify Photos in albums, by day.
            < call call-8-0 write "Write .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","content":"$spec"}
            < call call-8-0 in_progress
            < call call-8-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "# Feature Specification: Photo albums\n\n**Feature Branch**: `001-photo-albums`\n\n**Created**: $DATE\n\n**Status**: Draf"… -> "$spec"
            < text[msg-10] Spec.
            < text[msg-11] ⏎**/speckit.specify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- checklists/requirements.md: 0 of 16 checked⏎⏎Next: `/speckit.clarify`, `/speckit.plan`⏎
            = end_turn
            > prompt /speckit.clarify
            < text[msg-14] Nothing to ask.
            < text[msg-15] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers recorded today: 0⏎- checklists/requirements.md: 0 of 16 checked⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            > prompt /speckit.plan Python
            < call call-18-0 write "Write .specify/specs/001-photo-albums/plan.md" pending {"file_path":".specify/specs/001-photo-albums/plan.md","content":"$plan"}
            < call call-18-0 in_progress
            < call call-18-0 completed diff $HOME/project/.specify/specs/001-photo-albums/plan.md "# Implementation Plan: Photo albums\n\n**Branch**: `001-photo-albums` | **Date**: $DATE | **Spec**: [spec.md](spec.md"… -> "$plan"
            < call call-20-0 write "Write .specify/specs/001-photo-albums/research.md" pending {"file_path":".specify/specs/001-photo-albums/research.md","content":"$research"}
            < call call-20-0 in_progress
            < call call-20-0 completed diff $HOME/project/.specify/specs/001-photo-albums/research.md null -> "$research"
            < call call-22-0 write "Write .specify/specs/001-photo-albums/quickstart.md" pending {"file_path":".specify/specs/001-photo-albums/quickstart.md","content":"$quickstart"}
            < call call-22-0 in_progress
            < call call-22-0 completed diff $HOME/project/.specify/specs/001-photo-albums/quickstart.md null -> "$quickstart"
            < text[msg-24] Plan.
            < text[msg-25] ⏎**/speckit.plan**⏎- Feature: .specify/specs/001-photo-albums⏎- plan.md, research.md, quickstart.md⏎⏎Next: `/speckit.tasks`, `/speckit.checklist`⏎
            = end_turn
            > prompt /speckit.checklist security
            < call call-28-0 write "Write .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md","content":"$security"}
            < call call-28-0 in_progress
            < call call-28-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/security.md null -> "$security"
            < text[msg-30] List.
            < text[msg-31] ⏎**/speckit.checklist**⏎- Feature: .specify/specs/001-photo-albums⏎- checklists/requirements.md: 0 of 16 checked⏎- checklists/security.md: 0 of 2 checked⏎⏎Next: `/speckit.tasks`⏎
            = end_turn
            > prompt /speckit.tasks
            < call call-34-0 write "Write .specify/specs/001-photo-albums/tasks.md" pending {"file_path":".specify/specs/001-photo-albums/tasks.md","content":"$tasks"}
            < call call-34-0 in_progress
            < call call-34-0 completed diff $HOME/project/.specify/specs/001-photo-albums/tasks.md null -> "$tasks"
            < text[msg-36] Tasks.
            < plan pending T001 Create pyproject.toml for Python 3.11, pending T002 Define Photo and Album in albums/model.py, pending T003 [US1] Show the albums of a folder in albums/cli.py, pending T004 Go through quickstart.md by hand
            < text[msg-37] ⏎**/speckit.tasks**⏎- Feature: .specify/specs/001-photo-albums⏎- tasks.md: 4 tasks in 4 phases, 0 done, 0 marked [P]⏎⏎Next: `/speckit.analyze`, `/speckit.implement`⏎
            = end_turn
            > prompt /speckit.analyze
            < text[msg-40] They agree.
            < text[msg-41] ⏎**/speckit.analyze**⏎- Feature: .specify/specs/001-photo-albums⏎- tasks.md: 4 tasks in 4 phases, 0 done, 0 marked [P]⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            > prompt /speckit.implement
            < call call-42-100008 speckit "Implement although 18 checklist items are open" pending {} "| Checklist | Total | Checked | Unchecked | Status |\n|---|--:|--:|--:|---|\n| requirements.md | 16 | 0 | 16 | open |\n| security.md | 2 | 0 | 2 | open |\n"
            ? Implement although 18 checklist items are open [allow_once, reject_once] -> allow_once
            < call call-42-100008 completed
            < plan in_progress T001 Create pyproject.toml for Python 3.11, pending T002 Define Photo and Album in albums/model.py, pending T003 [US1] Show the albums of a folder in albums/cli.py, pending T004 Go through quickstart.md by hand
            < call call-44-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-44-0 in_progress
            < call call-44-0 completed "T001 is done"
            < text[note-11] ⏎✓ T001: made⏎
            < plan completed T001 Create pyproject.toml for Python 3.11, in_progress T002 Define Photo and Album in albums/model.py, pending T003 [US1] Show the albums of a folder in albums/cli.py, pending T004 Go through quickstart.md by hand
            < call call-47-0 speckit_task "T002 done" pending {"id":"T002","state":"done","note":"made"}
            < call call-47-0 in_progress
            < call call-47-0 completed "T002 is done"
            < text[note-13] ⏎✓ T002: made⏎
            < plan completed T001 Create pyproject.toml for Python 3.11, completed T002 Define Photo and Album in albums/model.py, in_progress T003 [US1] Show the albums of a folder in albums/cli.py, pending T004 Go through quickstart.md by hand
            < call call-50-0 speckit_task "T003 done" pending {"id":"T003","state":"done","note":"made"}
            < call call-50-0 in_progress
            < call call-50-0 completed "T003 is done"
            < text[note-15] ⏎✓ T003: made⏎
            < plan completed T001 Create pyproject.toml for Python 3.11, completed T002 Define Photo and Album in albums/model.py, completed T003 [US1] Show the albums of a folder in albums/cli.py, in_progress T004 Go through quickstart.md by hand
            < call call-53-0 speckit_task "T004 done" pending {"id":"T004","state":"done","note":"made"}
            < call call-53-0 in_progress
            < call call-53-0 completed "T004 is done"
            < text[note-17] ⏎✓ T004: made⏎
            < plan completed T001 Create pyproject.toml for Python 3.11, completed T002 Define Photo and Album in albums/model.py, completed T003 [US1] Show the albums of a folder in albums/cli.py, completed T004 Go through quickstart.md by hand
            < text[msg-55] ⏎**/speckit.implement**⏎- Done in this run: 4⏎- tasks.md: 4 of 4 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            > prompt /speckit.converge
            < call call-58-0 speckit_converge "0 gaps between code and spec" pending {"tasks":[]}
            < call call-58-0 in_progress
            < call call-58-0 completed "0 tasks are noted"
            < plan completed T001 Create pyproject.toml for Python 3.11, completed T002 Define Photo and Album in albums/model.py, completed T003 [US1] Show the albums of a folder in albums/cli.py, completed T004 Go through quickstart.md by hand
            < text[msg-60] ⏎**/speckit.converge**⏎- Feature: .specify/specs/001-photo-albums⏎- tasks.md: 4 tasks in 4 phases, 4 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            > prompt /speckit
            < text[note-19] - ▸ `001-photo-albums`: spec, plan, 4 of 4 tasks done, 18 open checklist items⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            $F/tasks.md:
              - [X] T001 Create pyproject.toml for Python 3.11
              - [X] T002 Define Photo and Album in albums/model.py
              - [X] T003 [US1] Show the albums of a folder in albums/cli.py
              - [X] T004 Go through quickstart.md by hand
            asked 0 with speckit_ask
              user: "/speckit.constitution Photos stay as they are." + crow:speckit/constitution "# Write the project's constitution"
            asked 1 with speckit_ask
              tool: "replaced .specify/memory/constitution.md: 49 lines before, 13 lines now"
            asked 2 without tools
              user: "Name a directory for this feature:\n\n<request>\nPhotos in albums, by day.\n</request>\n\nThe name has 2 to 4 words in small letters with hyphens between, at most 40 characters: what is done or made, in the words of the request, such as `photo-al"
            asked 3 with speckit_ask
              user: + crow:speckit/report "" "/speckit.specify Photos in albums, by day." + crow:speckit/specify "# Write the spec of 001-photo-albums"
            asked 4 with speckit_ask
              tool: "replaced .specify/specs/001-photo-albums/spec.md: 83 lines before, 47 lines now"
            asked 5 with speckit_ask
              user: + crow:speckit/report "" "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 6
              user: + crow:speckit/report "" "/speckit.plan Python" + crow:speckit/plan "# Plan how 001-photo-albums is built"
            asked 7
              tool: "replaced .specify/specs/001-photo-albums/plan.md: 65 lines before, 59 lines now"
            asked 8
              tool: "created .specify/specs/001-photo-albums/research.md: 7 lines"
            asked 9
              tool: "created .specify/specs/001-photo-albums/quickstart.md: 3 lines"
            asked 10 with speckit_ask
              user: + crow:speckit/report "" "/speckit.checklist security" + crow:speckit/checklist "# Make a review list for 001-photo-albums"
            asked 11 with speckit_ask
              tool: "created .specify/specs/001-photo-albums/checklists/security.md: 14 lines"
            asked 12
              user: + crow:speckit/report "" "/speckit.tasks" + crow:speckit/tasks "# Write the task list of 001-photo-albums"
            asked 13
              tool: "created .specify/specs/001-photo-albums/tasks.md: 31 lines"
            asked 14
              user: + crow:speckit/report "" "/speckit.analyze" + crow:speckit/analyze "# Cross-check spec, plan and tasks of 001-photo-albums"
            asked 15 with speckit_task
              user: + crow:speckit/report "" "/speckit.implement" + crow:speckit/implement "# Build 001-photo-albums, task by task"
            asked 16 with speckit_task
              tool: "T001 is done"
              user: + crow:speckit/task "1 of 4 tasks of 001-photo-albums are done. The next one:"
            asked 17 with speckit_task
              tool: "T002 is done"
              user: + crow:speckit/task "2 of 4 tasks of 001-photo-albums are done. The next one:"
            asked 18 with speckit_task
              tool: "T003 is done"
              user: + crow:speckit/task "3 of 4 tasks of 001-photo-albums are done. The next one:"
            asked 19 with speckit_converge
              tool: "T004 is done"
              user: + crow:speckit/report "" "/speckit.converge" + crow:speckit/converge "# Compare the code with the documents of 001-photo-albums"
        "##]],
    );
}
