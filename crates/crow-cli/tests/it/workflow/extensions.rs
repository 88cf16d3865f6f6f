//! Hooks, commands and prompts of a project: none has an effect before the user approves it.

use expect_test::{Expect, expect};

use super::{check, fixture};

/// An extension with one command.
const EXTENSION: &str = r###"
    file .git/HEAD ""
    file .specify/extensions/x/extension.yml "provides: {commands: [{name: speckit.x.look, file: commands/look.md, description: Looks around}]}"
    file .specify/extensions/x/commands/look.md "---\ndescription: Looks\n---\nLook at $ARGUMENTS{{7*7}}.\n"
    tasks - [x] T001 Make a.txt
    "###;

/// The step around which the hooks run.
const CONVERGED: &str = r#"model: call speckit_converge {"tasks":[]}"#;

/// Runs a script with these hooks; returns the questions to the user, the model requests and the messages.
#[track_caller]
fn check_hooks(hooks: &str, script: &str, transcript: &Expect) {
    let hooks = serde_json::json!(hooks);
    let played = fixture::played(&format!(
        "{EXTENSION}\nfile .specify/extensions.yml {hooks}\n{script}\n> prompt /speckit.converge\n> end"
    ));
    let is_shown = |line: &&str| !line.starts_with("< call") && !line.starts_with("< plan");
    transcript
        .assert_eq(&played.lines().filter(is_shown).map(|line| format!("{line}\n")).collect::<String>());
}

const MANDATORY: &str = "hooks: {before_converge: [{extension: x, command: speckit.x.look, optional: false}], after_converge: [{extension: x, command: speckit.x.look, optional: false}]}";

#[test]
fn mandatory_hooks_run_before_and_after() {
    let script = format!(
        r#"
        model: text "I looked."
        {CONVERGED}
        model: text "I looked again."
        > trust
        "#
    );
    check_hooks(
        MANDATORY,
        &script,
        &expect![[r#"
            > prompt /speckit.converge
            < text[msg-2] I looked.
            < text[msg-7] I looked again.
            < text[msg-8] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            asked user: /speckit.converge⏎<crow:speckit/hook: The project wants speckit.x.look done before /speckit.converge. That is now: do what follows and nothing beyond it, then end your turn.>
            asked user: <crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
            asked tool: 0 tasks are noted + user: <crow:speckit/hook: The project wants speckit.x.look done after /speckit.converge. That is now: do what follows and nothing beyond it, then end your turn.>
        "#]],
    );
}

#[test]
fn unapproved_hooks_do_not_run() {
    check_hooks(
        MANDATORY,
        CONVERGED,
        &expect![[r#"
            > prompt /speckit.converge
            < thought[] This repository has 3 Spec Kit files, not used because you have not trusted it. Type /trust to see what it would run, or use `crow-cli trust` in a terminal.⏎
            < text[note-1] No hook was run before /speckit.converge: .specify/extensions.yml is not approved.⏎
            < text[note-3] No hook was run after /speckit.converge: .specify/extensions.yml is not approved.⏎
            < text[msg-4] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            asked user: /speckit.converge⏎<crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
        "#]],
    );
}

#[test]
fn hooks_do_not_run_without_a_user() {
    check_hooks(
        MANDATORY,
        CONVERGED,
        &expect![[r#"
            > prompt /speckit.converge
            < thought[] This repository has 3 Spec Kit files, not used because you have not trusted it. Type /trust to see what it would run, or use `crow-cli trust` in a terminal.⏎
            < text[note-1] No hook was run before /speckit.converge: .specify/extensions.yml is not approved.⏎
            < text[note-3] No hook was run after /speckit.converge: .specify/extensions.yml is not approved.⏎
            < text[msg-4] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            asked user: /speckit.converge⏎<crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
        "#]],
    );
}

const OPTIONAL: &str = "hooks: {before_converge: [{extension: x, command: speckit.x.look, optional: true, prompt: 'Shall I look?', description: 'Looks around'}]}";

#[test]
fn optional_hooks_are_offered() {
    let yes = format!("model: text \"I looked.\"\n{CONVERGED}\n> trust\n> answer allow_once");
    check_hooks(
        OPTIONAL,
        &yes,
        &expect![[r#"
            > prompt /speckit.converge
            ? Run speckit.x.look before /speckit.converge [allow_once, reject_once] -> allow_once
            < text[msg-2] I looked.
            < text[msg-6] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            asked user: /speckit.converge⏎<crow:speckit/hook: The project wants speckit.x.look done before /speckit.converge. That is now: do what follows and nothing beyond it, then end your turn.>
            asked user: <crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
        "#]],
    );
    let no = format!("{CONVERGED}\n> trust\n> answer reject_once");
    check_hooks(
        OPTIONAL,
        &no,
        &expect![[r#"
            > prompt /speckit.converge
            ? Run speckit.x.look before /speckit.converge [allow_once, reject_once] -> reject_once
            < text[msg-4] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            asked user: /speckit.converge⏎<crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
        "#]],
    );
}

#[test]
fn disabled_hooks_are_left_out() {
    let hooks = "hooks: {before_converge: [{extension: x, command: speckit.x.look, optional: false, enabled: false}, \
                 {extension: x, command: speckit.x.look, optional: false, condition: 'env.NEVER_SET is set'}]}";
    check_hooks(
        hooks,
        &format!("{CONVERGED}\n> trust"),
        &expect![[r#"
            > prompt /speckit.converge
            < text[msg-4] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            asked user: /speckit.converge⏎<crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
        "#]],
    );
}

#[test]
fn hooks_that_cannot_be_read_are_reported_and_stop_nothing() {
    check_hooks(
        "hooks: [",
        &format!("{CONVERGED}\n> trust"),
        &expect![[r#"
            > prompt /speckit.converge
            < text[note-1] No hook was run before /speckit.converge: $HOME/project/.specify/extensions.yml cannot be used: line 1: unclosed bracket '['.⏎
            < text[note-3] No hook was run after /speckit.converge: $HOME/project/.specify/extensions.yml cannot be used: line 1: unclosed bracket '['.⏎
            < text[msg-4] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            asked user: /speckit.converge⏎<crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
        "#]],
    );
}

#[test]
fn mandatory_hook_that_cannot_run_stops_the_step() {
    let hooks = "hooks: {before_converge: [{extension: x, command: speckit.x.gone, optional: false}]}";
    check_hooks(
        hooks,
        "> trust",
        &expect![[r#"
            > prompt /speckit.converge
            < text[note-1] /speckit.converge stops here: its hook speckit.x.gone cannot run: there is no command /speckit.x.gone; the extensions have /speckit.x.look.⏎
            = end_turn
        "#]],
    );
}

#[test]
fn cancelled_hook_ends_the_turn() {
    let played = fixture::played(&format!(
        "{EXTENSION}\nfile .specify/extensions.yml {}\nmodel: text \"I look\" | hold\n> trust\n\
         > prompt /speckit.converge\n> wait I look\n> cancel\n> end",
        serde_json::json!(MANDATORY)
    ));
    assert!(played.contains("= cancelled"), "{played}");
    assert!(!played.contains("asked user: /speckit.converge⏎<crow:speckit/converge"), "{played}");
}

#[test]
fn command_of_an_extension_is_offered_when_approved() {
    check(
        &format!(
            r###"
            {EXTENSION}
            model: text "I looked."
            > commands
            > trust
            > prompt /speckit.x.look the albums, ⏎and at $ARGUMENTS
            > end
            > told Look at the albums, ⏎and at $ARGUMENTS{{{{7*7}}}}.
            > commands
            > prompt /speckit.x.gone
            > end
            "###
        ),
        &expect![[r##"
            # commands: 
            > prompt /speckit.x.look the albums, ⏎and at $ARGUMENTS
            < text[msg-1] I looked.
            = end_turn
            # commands: /speckit.x.look "Looks around"
            > prompt /speckit.x.gone
            < text[note-1] There is no command /speckit.x.gone; the extensions have /speckit.x.look.⏎
            = end_turn
            asked user: /speckit.x.look the albums, ⏎and at $ARGUMENTS⏎<crow:speckit/command: The command /speckit.x.look stands for this:>
        "##]],
    );
}

#[test]
fn command_that_is_unapproved_is_not_offered() {
    check(
        &format!(
            r###"
            {EXTENSION}
            > prompt /speckit.x.look the albums
            > end
            > commands
            "###
        ),
        &expect![[r#"
            > prompt /speckit.x.look the albums
            < thought[] This repository has 2 Spec Kit files, not used because you have not trusted it. Type /trust to see what it would run, or use `crow-cli trust` in a terminal.⏎
            < text[note-1] .specify/extensions/x/commands/look.md is not approved.⏎
            = end_turn
            # commands: 
        "#]],
    );
}

/// Converges with a prompt of the project.
#[track_caller]
fn check_prompt(file: &str, text: &str, is_trusted: bool, transcript: &Expect) {
    let trust = if is_trusted { "> trust\n" } else { "" };
    let played = fixture::played(&format!(
        "file .git/HEAD \"\"\nfile {file} {}\ntasks - [x] T001 Make a.txt\n{CONVERGED}\n{trust}\
         > prompt /speckit.converge the files\n> end",
        serde_json::json!(text)
    ));
    let is_shown = |line: &&str| !line.starts_with("< call") && !line.starts_with("< plan");
    transcript
        .assert_eq(&played.lines().filter(is_shown).map(|line| format!("{line}\n")).collect::<String>());
}

#[test]
fn prompts_of_the_project_are_used_when_approved() {
    let ours = (".crow/prompts/speckit_converge.jinja2", "Mine for {{ args }}, {{ feature.name }}.");
    check_prompt(
        ours.0,
        ours.1,
        true,
        &expect![[r#"
            > prompt /speckit.converge the files
            < text[msg-4] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            asked user: /speckit.converge the files⏎<crow:speckit/converge: Mine for the files, 001-photo-albums.>
        "#]],
    );
    check_prompt(
        ours.0,
        ours.1,
        false,
        &expect![[r#"
            > prompt /speckit.converge the files
            < thought[] This repository has 1 Spec Kit file, not used because you have not trusted it. Type /trust to see what it would run, or use `crow-cli trust` in a terminal.⏎
            < text[note-2] .crow/prompts/speckit_converge.jinja2 is not approved; /speckit.converge uses the built-in prompt.⏎
            < text[msg-4] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            asked user: /speckit.converge the files⏎<crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
        "#]],
    );
    let theirs = (".specify/templates/overrides/speckit.converge.md", "Theirs for $ARGUMENTS {{7*7}}.");
    check_prompt(
        theirs.0,
        theirs.1,
        true,
        &expect![[r#"
            > prompt /speckit.converge the files
            < text[msg-4] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            asked user: /speckit.converge the files⏎<crow:speckit/converge: Theirs for the files {{7*7}}.>
        "#]],
    );
    check_prompt(
        theirs.0,
        theirs.1,
        false,
        &expect![[r#"
            > prompt /speckit.converge the files
            < thought[] This repository has 1 Spec Kit file, not used because you have not trusted it. Type /trust to see what it would run, or use `crow-cli trust` in a terminal.⏎
            < text[note-2] .specify/templates/overrides/speckit.converge.md is not approved; /speckit.converge uses the built-in prompt.⏎
            < text[msg-4] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            asked user: /speckit.converge the files⏎<crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
        "#]],
    );
}

#[test]
fn prompt_changed_after_approval_is_not_used() {
    check(
        &format!(
            r###"
            file .git/HEAD ""
            file .crow/prompts/speckit_converge.jinja2 "Mine."
            tasks - [x] T001 Make a.txt
            {CONVERGED}
            model: call speckit_converge {{"tasks":[]}}
            > trust
            > prompt /speckit.converge
            > end
            > write .crow/prompts/speckit_converge.jinja2 "Theirs."
            > prompt /speckit.converge
            > end
            "###
        ),
        &expect![[r#"
            > prompt /speckit.converge
            < call call-2-0 speckit_converge "0 gaps between code and spec" pending {"tasks":[]}
            < call call-2-0 in_progress
            < call call-2-0 completed "0 tasks are noted"
            < plan completed T001 Make a.txt
            < text[msg-4] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            > prompt /speckit.converge
            < thought[] This repository has 1 Spec Kit file, not used because you have not trusted it. Type /trust to see what it would run, or use `crow-cli trust` in a terminal.⏎
            < text[note-3] .crow/prompts/speckit_converge.jinja2 is not approved; /speckit.converge uses the built-in prompt.⏎
            < call call-7-0 speckit_converge "0 gaps between code and spec" pending {"tasks":[]}
            < call call-7-0 in_progress
            < call call-7-0 completed "0 tasks are noted"
            < plan completed T001 Make a.txt
            < text[msg-9] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            asked user: /speckit.converge⏎<crow:speckit/converge: Mine.>
            asked tool: 0 tasks are noted + user: <crow:speckit/report: **/speckit.converge**>⏎/speckit.converge⏎<crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
        "#]],
    );
}

#[test]
fn prompt_that_cannot_be_rendered_is_reported() {
    check(
        r###"
        file .git/HEAD ""
        file .crow/prompts/speckit_converge.jinja2 "{{ nothing.of.it }}"
        tasks - [x] T001 Make a.txt
        > trust
        > prompt /speckit.converge
        > end
        "###,
        &expect![[r#"
            > prompt /speckit.converge
            ! "invalid_value" "the prompt template does not render: undefined value: `nothing` is undefined (in prompt:1)"
        "#]],
    );
}

#[test]
fn block_for_other_agents_is_maintained_without_a_model() {
    check(
        &format!(
            r###"
            file .git/HEAD ""
            file .specify/extensions.yml "hooks: {{after_converge: [{{extension: agent-context, command: speckit.agent-context.update, optional: false}}]}}"
            file .specify/extensions/agent-context/extension.yml "provides: {{commands: [{{name: speckit.agent-context.update, file: commands/update.md}}]}}"
            file .specify/extensions/agent-context/commands/update.md "Update."
            file .specify/extensions/agent-context/agent-context-config.yml "context_file: AGENTS.md"
            file AGENTS.md "# Rules\n\nUse tabs.\n"
            tasks - [x] T001 Make a.txt
            {CONVERGED}
            > trust
            > prompt /speckit.converge
            > end
            > show AGENTS.md
            "###
        ),
        &expect![[r##"
            > prompt /speckit.converge
            < call call-2-0 speckit_converge "0 gaps between code and spec" pending {"tasks":[]}
            < call call-2-0 in_progress
            < call call-2-0 completed "0 tasks are noted"
            < call call-5-0 write "Write AGENTS.md" pending {"file_path":"$HOME/project/AGENTS.md","content":"# Rules\n\nUse tabs.\n\n<!-- SPECKIT START -->\nBefore you change code, read the plan of the feature that is being built: it says what it is\nbuilt with, where things are and which commands check it.\nThe plan: specs/001-photo-albums/plan.md\n<!-- SPECKIT END -->\n"}
            ? Write AGENTS.md [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-5-0 in_progress
            < call call-5-0 completed diff $HOME/project/AGENTS.md "# Rules\n\nUse tabs.\n" -> "# Rules\n\nUse tabs.\n\n<!-- SPECKIT START -->\nBefore you change code, read the plan of the feature that is being built: it says what it is\nbuilt with, where things are and which commands check it.\nThe plan: specs/001-photo-albums/plan.md\n<!-- SPECKIT END -->\n"
            < plan completed T001 Make a.txt
            < text[msg-7] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            # AGENTS.md
            # | # Rules
            # | Use tabs.
            # | <!-- SPECKIT START -->
            # | Before you change code, read the plan of the feature that is being built: it says what it is
            # | built with, where things are and which commands check it.
            # | The plan: specs/001-photo-albums/plan.md
            # | <!-- SPECKIT END -->
            asked user: <crow:instructions: Instructions of the user and the project. A later one of them takes precedence.>⏎/speckit.converge⏎<crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
        "##]],
    );
}
