//! Sessions that go on.

use expect_test::expect;

use super::run_worker;

#[test]
fn session_goes_on_once_the_process_that_had_it_is_gone() {
    run_worker(
        Some("old"),
        "capable / listed other old / refused 3 -32603 / again / result 4 / result 5 / result 6 / resumable / call / \
         ended in_progress / ended completed / ended failed / resumable / again",
        &expect![[r#"
              agent < #1 initialize
            capable
              agent < #2 session/list cwd="/first"
            listed other old
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
        "capable / listed old / refused 3 -32002",
        &expect![[r#"
              agent < #1 initialize
            capable
              agent < #2 session/list cwd="/first"
            listed old
              agent < #3 session/resume sessionId="old" cwd="/work"
            refused 3 -32002
              not resumed: no, missing=true
        "#]],
    );
    run_worker(
        Some("old"),
        "capable / listed other",
        &expect![[r#"
          agent < #1 initialize
        capable
          agent < #2 session/list cwd="/first"
        listed other
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
