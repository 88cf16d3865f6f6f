//! Limits of a tree of agents, and the actions that a mode forbids.

use expect_test::expect;

use serde_json::json;

use super::killed::agents_at;
use super::{AUTO, PATIENCE, Stage, check, other_agent, run};

#[test]
fn depth_is_limited() {
    check(
        &[],
        r#"
        config: agents: { max_depth: 1 }
        model: call task {"prompt":"ALPHA"}
        child ALPHA: call task {"prompt":"BETA"}
        child ALPHA: text "I may not."
        model: text "It may not."
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task: ALPHA" pending {"prompt":"ALPHA"}
            < call call-1-0 in_progress
            < call call-1-0 completed "Task $TASK (ALPHA) is done.\n\nI may not.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[msg-3] It may not.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"ALPHA\"}")
            model saw tool: "Task $TASK (ALPHA) is done.\n\nI may not.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_se"
        "#]],
    );
}

#[test]
fn concurrent_children_are_limited() {
    check(
        &[],
        r#"
        config: agents: { max_children: 1 }
        model: call task {"prompt":"ALPHA","wait":false}
        model: call task {"prompt":"BETA"}
        model: text "Only one."
        child ALPHA: hold | text "A."
        model: call task {"prompt":"BETA"}
        child BETA: text "B."
        model: text "One by one."
        > prompt go
        > end
        > release
        > wait One by one.
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task: ALPHA" pending {"prompt":"ALPHA","wait":false}
            < call call-1-0 in_progress
            < call call-1-0 completed "Task $TASK has begun. Its end comes to you as a message; do something else meanwhile, or end your turn. To look at it: task_read. To stop it: task_cancel.\n"
            < call call-3-0 task "Task: BETA" pending {"prompt":"BETA"}
            < call call-3-0 in_progress
            < call call-3-0 failed "agents.max_children allows 1 child at a time; wait for one to finish or cancel it"
            < text[msg-5] Only one.
            < title go
            = end_turn
            < prompt[msg-6] Task $TASK (ALPHA) is done.⏎⏎A.⏎⏎The whole of it: query_session with session_id $TASK. To go on with it: task_send.⏎
            < call call-7-0 task "Task: BETA" pending {"prompt":"BETA"}
            < call call-7-0 in_progress
            < call call-7-0 completed "Task $TASK (BETA) is done.\n\nB.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[msg-9] One by one.
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"ALPHA\",\"wait\":false}")
            model saw tool: "Task $TASK has begun. Its end comes to you as a message; do something else meanwhile, or end your turn. To look at it: t"
            model saw assistant: task("{\"prompt\":\"BETA\"}")
            model saw tool: "agents.max_children allows 1 child at a time; wait for one to finish or cancel it"
            model saw assistant: "Only one."
            model saw user: "Task $TASK (ALPHA) is done.\n\nA.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            model saw assistant: task("{\"prompt\":\"BETA\"}")
            model saw tool: "Task $TASK (BETA) is done.\n\nB.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
        "#]],
    );
}

#[test]
fn slots_of_descendants_count_at_the_root() {
    check(
        &[],
        r#"
        config: agents: { max_children: 1 }
        model: call task {"prompt":"ALPHA"}
        child ALPHA: call task {"prompt":"BETA"}
        child ALPHA: text "I am alone."
        model: text "It is alone."
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task: ALPHA" pending {"prompt":"ALPHA"}
            < call call-1-0 in_progress
            < call call-1-0 completed "Task $TASK (ALPHA) is done.\n\nI am alone.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[msg-3] It is alone.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"ALPHA\"}")
            model saw tool: "Task $TASK (ALPHA) is done.\n\nI am alone.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_s"
        "#]],
    );
}

#[test]
fn tokens_are_limited() {
    check(
        &[],
        r#"
        config: agents: { max_tokens: 100 }
        file a.txt "a\n"
        model: call task {"prompt":"ALPHA"}
        child ALPHA: text "I read." | call read {"file_path":"a.txt"} | usage 90 20
        child ALPHA: hold | text "never said"
        model: call task {"prompt":"BETA"}
        model: text "No more."
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task: ALPHA" pending {"prompt":"ALPHA"}
            < call call-1-0 in_progress
            < call call-1-0 failed "Task $TASK (ALPHA) failed: the agents of this session have used 110 tokens, and agents.max_tokens allows 100\n\nI read.\n\nIt used 110 tokens.\n\nThe whole of it: que"
            < call call-3-0 task "Task: BETA" pending {"prompt":"BETA"}
            < call call-3-0 in_progress
            < call call-3-0 failed "the agents of this session have used 110 tokens, and agents.max_tokens allows 100"
            < text[msg-5] No more.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"ALPHA\"}")
            model saw tool: "Task $TASK (ALPHA) failed: the agents of this session have used 110 tokens, and agents.max_tokens allows 100\n\nI read.\n\nI"
            model saw assistant: task("{\"prompt\":\"BETA\"}")
            model saw tool: "the agents of this session have used 110 tokens, and agents.max_tokens allows 100"
        "#]],
    );
}

#[test]
fn external_agent_is_rejected_in_plan_mode() {
    check(
        &[],
        r#"
        model: call task {"prompt":"hello","agent":"other"} | call task {"prompt":"ALPHA"}
        child ALPHA: call write {"file_path":"a.txt","content":"a"}
        child ALPHA: text "I may not write."
        model: text "Then not."
        > mode plan
        > prompt go
        > end
        "#,
        &expect![[r#"
            > mode plan
            = set
            > prompt go
            < mode plan
            < config_option_update
            < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
            < call call-1-1 task "Task: ALPHA" pending {"prompt":"ALPHA"}
            < call call-1-0 failed "not run: plan mode only reads; switch the mode to change or run something"
            < call call-1-1 in_progress
            < call call-1-1 completed "Task $TASK (ALPHA) is done.\n\nI may not write.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[msg-4] Then not.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}") task("{\"prompt\":\"ALPHA\"}")
            model saw tool: "not run: plan mode only reads; switch the mode to change or run something"
            model saw tool: "Task $TASK (ALPHA) is done.\n\nI may not write.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: t"
        "#]],
    );
}

#[test]
fn task_that_cannot_start_has_a_reason() {
    check(
        &[],
        r#"
        model: call task {"prompt":" "}
        model: call task {"prompt":"x","agent":"unknown"}
        model: call task {"prompt":"x","cwd":"missing"}
        model: call task_send {"task":"unknown","prompt":"x"}
        model: call task_read {"task":"unknown"}
        model: call task_cancel {"task":"../etc"}
        model: call task {"prompt":"x","worktree":true}
        model: text "Nothing."
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task:" pending {"prompt":" "}
            < call call-1-0 in_progress
            < call call-1-0 failed "the prompt is empty; say what is to be done, with all that the agent has to know"
            < call call-3-0 task "task" pending {"prompt":"x","agent":"unknown"}
            < call call-3-0 in_progress
            < call call-3-0 failed "`task` was not run: `agent` must be one of \"crow\", \"other\", not the string \"unknown\""
            < call call-5-0 task "Task: x" pending {"prompt":"x","cwd":"missing"}
            < call call-5-0 in_progress
            < call call-5-0 failed "there is no directory $HOME/project/missing"
            < call call-7-0 task_send "Message task unknown" pending {"task":"unknown","prompt":"x"}
            < call call-7-0 in_progress
            < call call-7-0 failed "this session has no task unknown; /tasks lists its tasks"
            < call call-9-0 task_read "Read task unknown" pending {"task":"unknown"}
            < call call-9-0 in_progress
            < call call-9-0 failed "this session has no task unknown; /tasks lists its tasks"
            < call call-11-0 task_cancel "Cancel task ../etc" pending {"task":"../etc"}
            < call call-11-0 in_progress
            < call call-11-0 failed "this session has no task ../etc; /tasks lists its tasks"
            < call call-13-0 task "Task: x" pending {"prompt":"x","worktree":true}
            < call call-13-0 in_progress
            < call call-13-0 failed "could not create a worktree: $HOME/project is not in a git repository"
            < text[msg-15] Nothing.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\" \"}")
            model saw tool: "the prompt is empty; say what is to be done, with all that the agent has to know"
            model saw assistant: task("{\"prompt\":\"x\",\"agent\":\"unknown\"}")
            model saw tool: "`task` was not run: `agent` must be one of \"crow\", \"other\", not the string \"unknown\""
            model saw assistant: task("{\"prompt\":\"x\",\"cwd\":\"missing\"}")
            model saw tool: "there is no directory $HOME/project/missing"
            model saw assistant: task_send("{\"task\":\"unknown\",\"prompt\":\"x\"}")
            model saw tool: "this session has no task unknown; /tasks lists its tasks"
            model saw assistant: task_read("{\"task\":\"unknown\"}")
            model saw tool: "this session has no task unknown; /tasks lists its tasks"
            model saw assistant: task_cancel("{\"task\":\"../etc\"}")
            model saw tool: "this session has no task ../etc; /tasks lists its tasks"
            model saw assistant: task("{\"prompt\":\"x\",\"worktree\":true}")
            model saw tool: "could not create a worktree: $HOME/project is not in a git repository"
        "#]],
    );
}

#[test]
fn task_continued_after_a_restart_has_the_mode_of_its_parent() {
    run(async {
        let script = "call task {\"prompt\":\"ALPHA\"}\ntext \"It is done.\"";
        let mut stage = Stage::start(&[AUTO], script).await;
        stage.server.add_answers_for("ALPHA", "text \"A.\"");
        assert_eq!(stage.say("go").await, "end_turn");
        let task = stage.task();
        let mode = json!({"sessionId": stage.session, "modeId": "plan"});
        stage.client.request("session/set_mode", mode).await.expect("there is such a mode");
        // Its idle child has the session of the task.
        assert!(stage.client.close_stdin().await.success());
        stage.client = stage.elsewhere().await;
        let more = json!({"task": task, "prompt": "more"});
        stage.server.replace_answers(format!("call task_send {more}\ntext \"Told.\"").as_str());
        stage
            .server
            .add_answers_for("ALPHA", "call terminal {\"command\":\"touch made\"}\ntext \"Not made.\"");
        assert_eq!(stage.say("go on").await, "end_turn");
        expect!["not run: plan mode only reads; switch the mode to change or run something"]
            .assert_eq(&stage.told("ALPHA"));
        assert!(!stage.world.project().join("made").exists());
        stage.clean("a plan").await;
    });
}

/// Idle agents that a session keeps alive.
const KEPT: usize = 4;

#[test]
fn idle_children_are_limited() {
    run(async {
        let tasks = [r#"call task {"prompt":"ALPHA"}"#; 6].join(" | ");
        let mut stage = Stage::start(&[AUTO], &format!("{tasks}\ntext \"All of them.\"")).await;
        stage.server.add_answers_for("ALPHA", ["text \"A.\""; 6].join("\n").as_str());
        assert_eq!(stage.say("go").await, "end_turn");
        // The others end shortly.
        let few = async {
            while agents_at(stage.client.pid(), 1).len() > KEPT {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, few).await.expect("most of them end");
        assert_eq!(agents_at(stage.client.pid(), 1).len(), KEPT);
        stage.clean("many tasks").await;
    });
}

#[test]
fn cancelled_child_releases_the_slots_of_its_children() {
    run(async {
        let config = ["agents: { max_children: 2 }", AUTO, &other_agent(&["deaf", "slow=/nowhere"])];
        let mut stage = Stage::start(&config, "").await;
        let begins = r#"call task {"prompt":"hello","agent":"other","wait":false}"#;
        // An unresponsive child keeps its slot until it is killed; a slot that is never released would block every
        // other child.
        let both = async {
            let mut n_begun = 0;
            while n_begun < 2 {
                stage.server.replace_answers("call task {\"prompt\":\"ALPHA\"}");
                stage.server.add_answers_for("ALPHA", format!("{begins}\nhold").as_str());
                let n_before = stage.server.n_requests();
                let id = stage.client.prompt(&stage.session, "go").await;
                stage.server.wait_for_requests(n_before + 3).await;
                stage.cancel().await;
                assert_eq!(stage.end_of(id).await, "cancelled");
                n_begun += usize::from(stage.told("ALPHA").contains("has begun"));
            }
        };
        tokio::time::timeout(PATIENCE, both).await.expect("a place is free again");
        stage.clean("cancelled in the middle").await;
    });
}
