use expect_test::{Expect, expect};

use super::*;
use crate::view::tests::view;

#[track_caller]
fn check(state: TaskState, reason: Option<&str>, heard: &str, expected: &Expect) {
    let task = SessionId::new("brave-otter");
    let ended = ChildTurnSummary {
        task: &task,
        label: "kimi, tests",
        state,
        reason,
        n_tokens: Some(1234),
        worktree: None,
        continuation: TaskContinuation::Possible,
    };
    expected.assert_eq(&render_report(&ended, &view(heard)));
}

#[test]
fn report_on_success_has_the_answer_and_changes() {
    check(
        TaskState::Completed,
        None,
        "
        call a done Edit
        diff a /p/a.rs one => one,two
        say All green.
        ",
        &expect![[r#"
            Task brave-otter (kimi, tests) is done.

            All green.

            It changed 1 file with its tools (+1 -0):
              /p/a.rs (+1 -0)

            It used 1234 tokens.

            The whole of it: query_session with session_id brave-otter. To go on with it: task_send.
        "#]],
    );
}

#[test]
fn report_on_failure_without_an_answer() {
    check(
        TaskState::Failed,
        Some("it could not be started: there is no program kimi"),
        "",
        &expect![[r#"
            Task brave-otter (kimi, tests) failed: it could not be started: there is no program kimi

            It said nothing.

            It used 1234 tokens.

            The whole of it: query_session with session_id brave-otter. To go on with it: task_send.
        "#]],
    );
}

#[test]
fn answer_that_is_long_keeps_its_beginning_and_end() {
    let answer = format!("begins{}ends", "ä".repeat(30_000));
    let text = shorten_answer(&answer, false);
    assert!(text.starts_with("begins") && text.ends_with("ends"), "{text}");
    assert!(text.contains("[… 6010 characters are left out here …]"), "{}", &text[..200]);
}

#[test]
fn report_on_a_worktree_names_ignored_files() {
    let ignored = Some("Git ignores these, so they are not on a branch but only in /w: .env".to_owned());
    let settled = SettledWorktree { ignored, ..SettledWorktree::default() };
    expect![[r#"
        It worked in a git worktree of its own and changed nothing but ignored files.

        Git ignores these, so they are not on a branch but only in /w: .env
    "#]]
    .assert_eq(&describe_worktree(0, &settled));
}
