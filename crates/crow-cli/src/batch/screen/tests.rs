use expect_test::{Expect, expect};

use super::*;
use crate::batch::task_file::TaskSurvey;

fn result(id: &str, state: BatchTaskState, error: Option<&str>) -> TaskResult {
    TaskResult {
        id: id.into(),
        state,
        text: String::new(),
        session: None,
        branch: (state == BatchTaskState::Done).then(|| format!("crow/{id}-1")),
        worktree: None,
        tokens: (state != BatchTaskState::Cancelled).then_some(4_500),
        seconds: 72.4,
        error: error.map(Into::into),
    }
}

#[track_caller]
fn check(live_columns: fn() -> Option<usize>, is_stopping: bool, expected: &Expect) {
    let mut out = Vec::new();
    let mut screen = BatchScreen { err: &mut out, paint: PaintMode::Plain, live_columns };
    let mut tally = BatchTally::new(TaskSurvey { n_tasks: 214, n_done: 10, n_failed: 4 });
    let mut status =
        BatchStatus { n_running: 4, tokens: 0, elapsed: Duration::from_secs(3), is_stopping: false };
    screen.draw_status(status, &tally).unwrap();
    let reason = "the provider is overloaded; it said: try again in a minute or two";
    for (id, state, error) in [
        ("fix-readme", BatchTaskState::Done, None),
        ("a-long-name\u{1b}[31m", BatchTaskState::Failed, Some(reason)),
        ("third", BatchTaskState::Cancelled, Some("the batch was interrupted")),
    ] {
        let result = result(id, state, error);
        tally.add(&result);
        screen.show_result(&result, &tally).unwrap();
    }
    status = BatchStatus { tokens: 1_234_567, elapsed: Duration::from_secs(130), is_stopping, ..status };
    screen.draw_status(status, &tally).unwrap();
    screen.show_notice("stopping 4 tasks").unwrap();
    screen.erase_status().unwrap();
    expected.assert_eq(
        &String::from_utf8(out).unwrap().replace("\r\x1b[2K", "<erase>").replace("<erase><erase>", "<erase>"),
    );
}

#[test]
fn results_are_lines_without_a_terminal() {
    check(
        || None,
        false,
        &expect![[r#"
            [  1/200] ✓ fix-readme · 1 min 12 s · 4.5k tokens · crow/fix-readme-1
            [  2/200] ✗ a-long-name · 1 min 12 s · 4.5k tokens · the provider is overloaded; it said: try again in a minute or two
            [  3/200] – third · 1 min 12 s · the batch was interrupted
            stopping 4 tasks
        "#]],
    );
}

#[test]
fn status_is_the_last_line_of_a_terminal() {
    check(
        || Some(100),
        false,
        &expect![[r#"
            <erase>···················· 0/200 · 4 running · 3 s · 0 tokens<erase>✓ fix-readme · 1 min 12 s · 4.5k tokens · crow/fix-readme-1
            <erase>✗ a-long-name · 1 min 12 s · 4.5k tokens · the provider is overloaded; it said: try again in a minu…
            <erase>– third · 1 min 12 s · the batch was interrupted
            <erase>▎··················· 3/200 · 1 failed · 4 running · 2 min 10 s · 2 h 22 min left · 1.2M tokens<erase>stopping 4 tasks
            <erase>"#]],
    );
    check(
        || Some(60),
        true,
        &expect![[r#"
            <erase>···················· 0/200 · 4 running · 3 s · 0 tokens<erase>✓ fix-readme · 1 min 12 s · 4.5k tokens · crow/fix-readme-1
            <erase>✗ a-long-name · 1 min 12 s · 4.5k tokens · the provider is …
            <erase>– third · 1 min 12 s · the batch was interrupted
            <erase>▎··················· 3/200 · stopping 4 · 1 failed<erase>stopping 4 tasks
            <erase>"#]],
    );
    check(
        || Some(30),
        false,
        &expect![[r#"
        <erase>0/200 · 4 running · 3 s<erase>✓ fix-readme · 1 min 12 s · 4…
        <erase>✗ a-long-name · 1 min 12 s · …
        <erase>– third · 1 min 12 s · the ba…
        <erase>3/200 · 1 failed · 4 running<erase>stopping 4 tasks
        <erase>"#]],
    );
}
