use expect_test::{Expect, expect};

use super::*;

fn result(id: &str, state: BatchTaskState, error: Option<&str>) -> TaskResult {
    TaskResult {
        id: id.into(),
        state,
        text: String::new(),
        session: None,
        branch: None,
        worktree: None,
        tokens: Some(12_300),
        seconds: 65.4,
        error: error.map(Into::into),
    }
}

#[track_caller]
fn check(survey: TaskSurvey, results: &[TaskResult], columns: usize, expected: &Expect) {
    let mut tally = BatchTally::new(survey);
    results.iter().for_each(|result| tally.add(result));
    let mut out = Vec::new();
    tally.write_tables(&mut out, columns).unwrap();
    expected.assert_eq(&format!("{}{}\n", String::from_utf8(out).unwrap(), tally.to_json()));
}

#[test]
fn tables_have_states_and_failures() {
    let done = result("a", BatchTaskState::Done, None);
    check(
        TaskSurvey { n_tasks: 2, n_done: 0, n_failed: 0 },
        &[done.clone(), done.clone()],
        60,
        &expect![[r#"
        STATE  TASKS  TOKENS  TIME
        done   2      24k     2 min 10 s
        {"type":"summary","done":2,"failed":0,"cancelled":0,"done_before":0,"failed_before":0,"not_started":0,"tokens":24600}
    "#]],
    );
    let long = "the agent other exited during the session with code 1; its stderr: a\nlong line";
    let failed = result("a-long-name-that-does-not-fit-into-the-column", BatchTaskState::Failed, Some(long));
    let cancelled = result("c", BatchTaskState::Cancelled, Some("the batch was interrupted"));
    check(
        TaskSurvey { n_tasks: 9, n_done: 2, n_failed: 1 },
        &[done, failed.clone(), cancelled],
        60,
        &expect![[r#"
        STATE          TASKS  TOKENS  TIME
        done           1      12k     1 min 5 s
        failed         1      12k     1 min 5 s
        cancelled      1      12k     1 min 5 s
        done before    2
        failed before  1
        not started    3

        FAILED           REASON
        a-long-…-column  the agent other exited during the session …
        {"type":"summary","done":1,"failed":1,"cancelled":1,"done_before":2,"failed_before":1,"not_started":3,"tokens":36900}
    "#]],
    );
    let failures: Vec<_> = (0..12).map(|_| failed.clone()).collect();
    let survey = TaskSurvey { n_tasks: 12, n_done: 0, n_failed: 0 };
    let mut tally = BatchTally::new(survey);
    failures.iter().for_each(|result| tally.add(result));
    let mut out = Vec::new();
    tally.write_tables(&mut out, 60).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count(), 2 + 2 + FAILURES_MAX + 1);
    assert!(text.ends_with("… and 2 more\n"), "{text}");
}
