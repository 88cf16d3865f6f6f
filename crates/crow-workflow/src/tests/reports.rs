//! Steps whose result is a report of the model, and steps that end early.

use expect_test::expect;

use super::check;

#[test]
fn converge_adds_a_task_for_each_gap_after_a_report() {
    check(
        r#"
        have $F/spec.md: $spec
        have $F/plan.md: $plan
        have $F/tasks.md: - [x] T001 Make the crate in Cargo.toml\n
        turn
        turn
        call speckit_converge {"tasks":[{"text":"Show albums in src/b.rs","source":"FR-001","gap":"missing","is_critical":true}]}
        > /speckit.converge
        "#,
        &expect![[r#"
            > /speckit.converge
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/converge
            turn: speckit/repair
            - nothing was reported: call `speckit_converge`, with an empty list if nothing is missing
            - Repair the cause: supply what is missing, say what is vague, number what is out of order. Do not delete a requirement, a story or a task to be rid of a message.
            speckit_converge: completed 1 tasks are noted
            recorded: specs/001-albums/tasks.md
            plan: 1 of 2 done, 0 running
            report done:
            **/speckit.converge**
            - Feature: specs/001-albums
            - tasks.md: 2 tasks in 1 phase, 1 done, 0 marked [P]
            - New tasks: 1, of these critical: 1

            Next: `/speckit.implement`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn converge_without_gaps_adds_nothing() {
    check(
        r#"
        have $F/spec.md: $spec
        have $F/plan.md: $plan
        have $F/tasks.md: - [x] T001 Make the crate in Cargo.toml\n
        turn
        call speckit_converge {"tasks":[]}
        > /speckit.converge
        "#,
        &expect![[r#"
            > /speckit.converge
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/converge
            speckit_converge: completed 0 tasks are noted
            plan: 1 of 1 done, 0 running
            report done:
            **/speckit.converge**
            - Feature: specs/001-albums
            - tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]
            - The code has no gaps; tasks.md is unchanged
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn issues_are_created_for_open_tasks_only() {
    check(
        r#"
        have $F/plan.md: $plan
        have $F/tasks.md: $tasks
        have .git/HEAD: ref: refs/heads/main\n
        have .git/config: [remote "origin"]\nurl = https://github.com/acme/albums.git\n
        config issue-server
        turn
        call issue_write {"owner":"acme","repo":"other","title":"T001: Make the crate"}
        call issue_write {"owner":"acme","repo":"albums","title":"T009: Other"}
        call issue_write {"owner":"acme","repo":"albums","title":"T001: Make the crate"}
        call issue_write {"owner":"acme","repo":"albums","title":"T001: Make the crate"}
        > /speckit.taskstoissues
        "#,
        &expect![[r#"
            > /speckit.taskstoissues
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/taskstoissues
            issue_write: failed Deny("/speckit.taskstoissues only works with acme/albums, the repository of the remote")
            issue_write: failed Deny("the title of an issue must be the id and the text of an open task: `T001: …`")
            issue_write: completed created
            issue_write: failed Deny("T001 already has an issue")
            report done:
            **/speckit.taskstoissues**
            - Feature: specs/001-albums
            - tasks.md: 3 tasks in 2 phases, 0 done, 2 marked [P]
            - New issues in acme/albums: T001; open tasks: 3

            Next: `/speckit.implement`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn interrupted_step_can_be_repeated() {
    check(
        "
        have $F/spec.md: $spec
        turn
        cancelled
        > /speckit.plan
        turn
        request-limit
        > /speckit.specify photos in albums
        ",
        &expect![[r#"
            > /speckit.plan
            text: No feature is selected, so the only one is used: specs/001-albums.
            recorded: specs/001-albums/plan.md
            feature: specs/001-albums
            turn: speckit/plan
            report left:
            /speckit.plan was not finished. Repeat it to continue with what is there.
            = Ok(Cancelled)
            > /speckit.specify photos in albums
            side request: You name things in a few words.
            recorded: .specify/memory/constitution.md
            recorded: specs/002-photo-albums/spec.md
            recorded: specs/002-photo-albums/checklists/requirements.md
            recorded: .specify/feature.json
            feature: specs/002-photo-albums
            turn: speckit/specify
            report left:
            /speckit.specify was not finished. specs/002-photo-albums/spec.md exists; repeat the same command to continue it.
            = Ok(RequestLimit)
        "#]],
    );
}

#[test]
fn step_that_a_hook_ended_keeps_what_is_written() {
    check(
        "
        have $F/spec.md: $spec
        have $F/plan.md: $plan
        turn
        ended-by-hook
        > /speckit.tasks
        ",
        &expect![[r#"
            > /speckit.tasks
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/tasks
            text: /speckit.tasks was stopped. The files written so far were kept.
            = Ok(Completed)
        "#]],
    );
}
