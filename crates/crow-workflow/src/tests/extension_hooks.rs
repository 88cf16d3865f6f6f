//! Hooks of extensions around a step: approved, optional, run by Crow and failing.

use expect_test::{Expect, expect};

use super::check;

const HOOKS: &str = r"hooks:\n  before_plan:\n    - extension: git\n      command: speckit.git.commit\n      optional: false\n  after_plan:\n    - extension: agent-context\n      command: speckit.agent-context.update\n      optional: true\n      prompt: Update the context?\n";

const GIT: &str = r"auto_commit:\n  default: true\n";

#[track_caller]
fn check_plan(script: &str, expected: &Expect) {
    let files = r"have $F/spec.md: $spec
        have $F/plan.md: $plan
        have $F/research.md: $research
        have $F/quickstart.md: $quickstart
        have .git/HEAD: ref: refs/heads/main\n
        have .specify/extensions/agent-context/agent-context-config.yml approved: context_file: AGENTS.md\n";
    let script = script.replace("$hooks", HOOKS).replace("$git", GIT);
    check(&format!("{files}\n{script}\n> /speckit.plan"), expected);
}

#[test]
fn hooks_run_before_and_after_a_step() {
    check_plan(
        "
        have .specify/extensions.yml approved: $hooks
        have .specify/extensions/git/git-config.yml approved: $git
        confirm once
        ",
        &expect![[r#"
            > /speckit.plan
            text: No feature is selected, so the only one is used: specs/001-albums.
            part: speckit/hook The project wants speckit.git.commit done before /speckit.plan; Crow does it.
            call: terminal command=git add .
            call: terminal command=git diff --cached --quiet || git commit --quiet --message 'Save the work before /speckit.plan'
            feature: specs/001-albums
            turn: speckit/plan
            confirm: Run speckit.agent-context.update after /speckit.plan -> Allowed { is_lasting: false }
            part: speckit/hook The project wants speckit.agent-context.update done after /speckit.plan; Crow does it.
            call: write file_path=AGENTS.md content=<!-- SPECKIT START -->⏎Before you change code, read the plan of the feature that is being built: it says what it is⏎built with, where things are and which commands check it.⏎The plan: specs/001-albums/plan.md⏎<!-- SPECKIT END -->⏎
            report done:
            **/speckit.plan**
            - Feature: specs/001-albums
            - plan.md, research.md, quickstart.md

            Next: `/speckit.tasks`, `/speckit.checklist`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn hooks_need_approval() {
    check_plan(
        "have .specify/extensions.yml: $hooks",
        &expect![[r#"
        > /speckit.plan
        text: No feature is selected, so the only one is used: specs/001-albums.
        text: No hook was run before /speckit.plan: .specify/extensions.yml is not approved.
        feature: specs/001-albums
        turn: speckit/plan
        text: No hook was run after /speckit.plan: .specify/extensions.yml is not approved.
        report done:
        **/speckit.plan**
        - Feature: specs/001-albums
        - plan.md, research.md, quickstart.md

        Next: `/speckit.tasks`, `/speckit.checklist`
        = Ok(Completed)
    "#]],
    );
    check_plan(
        "
        have .specify/extensions.yml approved: $hooks
        have .specify/extensions/git/git-config.yml: $git
        ",
        &expect![[r#"
            > /speckit.plan
            text: No feature is selected, so the only one is used: specs/001-albums.
            text: No hook was run before /speckit.plan: .specify/extensions/git/git-config.yml is not approved.
            feature: specs/001-albums
            turn: speckit/plan
            text: No hook was run after /speckit.plan: .specify/extensions/git/git-config.yml is not approved.
            report done:
            **/speckit.plan**
            - Feature: specs/001-albums
            - plan.md, research.md, quickstart.md

            Next: `/speckit.tasks`, `/speckit.checklist`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn failed_hook_ends_the_step() {
    check_plan(
        r"
        have .specify/extensions.yml approved: $hooks
        have .specify/extensions/git/git-config.yml approved: auto_commit:\n  default: true\n  before_plan:\n    enabled: true\n    message: fails\n
        ",
        &expect![[r#"
            > /speckit.plan
            text: No feature is selected, so the only one is used: specs/001-albums.
            part: speckit/hook The project wants speckit.git.commit done before /speckit.plan; Crow does it.
            call: terminal command=git add .
            call: terminal command=git diff --cached --quiet || git commit --quiet --message 'fails'
            refused: /speckit.plan stops here: its hook speckit.git.commit cannot run: one of its calls failed.
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn optional_hook_is_confirmed() {
    check_plan(
        "
        have .specify/extensions.yml approved: $hooks
        confirm reject
        ",
        &expect![[r#"
            > /speckit.plan
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/plan
            confirm: Run speckit.agent-context.update after /speckit.plan -> Rejected { is_lasting: false }
            report done:
            **/speckit.plan**
            - Feature: specs/001-albums
            - plan.md, research.md, quickstart.md

            Next: `/speckit.tasks`, `/speckit.checklist`
            = Ok(Completed)
        "#]],
    );
}
