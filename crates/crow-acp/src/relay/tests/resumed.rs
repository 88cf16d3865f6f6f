//! Sessions that go on.

use expect_test::expect;

use super::{log_worker, run_worker};

#[test]
fn session_goes_on_once_the_process_that_had_it_is_gone() {
    run_worker(
        Some("old"),
        "capable / listed 2 other old / refused 3 -32603 / again / result 4 / result 5 / result 6 / resumable / call / \
         ended in_progress / ended completed / ended failed / resumable / again",
        &expect![[r#"
              agent < #1 initialize
            capable
              agent < #2 session/list cwd="/first"
            listed 2 other old
              agent < #3 session/resume sessionId="old" cwd="/work"
            refused 3 -32603
              not resumed: no, missing=false
            again
              agent < #4 session/resume sessionId="old" cwd="/work"
            result 4
              agent < #5 session/set_config_option sessionId="old" configId="model" value="small"
            result 5
              agent < #6 session/set_config_option sessionId="old" configId="mode" value="ask"
            result 6
              agent < #7 session/prompt sessionId="old" prompt=[{"type":"text","text":"count"}]
            resumable
              None, 0 calls have ended
            call
            ended in_progress
            ended completed
            ended failed
            resumable
              Some("old"), 2 calls have ended
            again
        "#]],
    );
}

#[test]
fn session_that_is_missing_or_an_agent_that_cannot_resume_is_told() {
    run_worker(
        Some("old"),
        "capable / listed 2 old / refused 3 -32002",
        &expect![[r#"
              agent < #1 initialize
            capable
              agent < #2 session/list cwd="/first"
            listed 2 old
              agent < #3 session/resume sessionId="old" cwd="/work"
            refused 3 -32002
              not resumed: no, missing=true
        "#]],
    );
    run_worker(
        Some("old"),
        "capable / listed 2 other",
        &expect![[r#"
          agent < #1 initialize
        capable
          agent < #2 session/list cwd="/first"
        listed 2 other
          not resumed: session not found, missing=true
    "#]],
    );
    run_worker(
        Some("old"),
        "capable / refused 2 -32601",
        &expect![[r#"
          agent < #1 initialize
        capable
          agent < #2 session/list cwd="/first"
        refused 2 -32601
          not resumed: no, missing=true
    "#]],
    );
    run_worker(
        Some("old"),
        "incapable",
        &expect![[r#"
          agent < #1 initialize
        incapable
          not resumed: the agent cannot resume sessions, missing=true
    "#]],
    );
}

#[test]
fn session_is_searched_for_in_all_pages() {
    run_worker(
        Some("old"),
        "capable / listed 2 other … one / listed 3 … two / listed 4 old … three",
        &expect![[r#"
              agent < #1 initialize
            capable
              agent < #2 session/list cwd="/first"
            listed 2 other … one
              agent < #3 session/list cwd="/first" cursor="one"
            listed 3 … two
              agent < #4 session/list cwd="/first" cursor="two"
            listed 4 old … three
              agent < #5 session/resume sessionId="old" cwd="/work"
        "#]],
    );
    run_worker(
        Some("old"),
        "capable / listed 2 other … one / listed 3 other",
        &expect![[r#"
          agent < #1 initialize
        capable
          agent < #2 session/list cwd="/first"
        listed 2 other … one
          agent < #3 session/list cwd="/first" cursor="one"
        listed 3 other
          not resumed: session not found, missing=true
    "#]],
    );
    run_worker(
        Some("old"),
        "capable / listed 2 other … one / refused 3 -32602",
        &expect![[r#"
          agent < #1 initialize
        capable
          agent < #2 session/list cwd="/first"
        listed 2 other … one
          agent < #3 session/list cwd="/first" cursor="one"
        refused 3 -32602
          not resumed: no, missing=true
    "#]],
    );
}

#[test]
fn search_in_pages_without_end_ends() {
    let pages: String = (2..150).map(|id| format!(" / listed {id} other … again")).collect();
    let log = log_worker(Some("old"), &format!("capable{pages}"));
    assert_eq!(log.matches("session/list").count(), 100);
    assert!(log.contains("not resumed: session not found, missing=true"), "{log}");
}
