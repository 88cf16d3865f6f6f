//! What a tree of agents may not do, and what a mode forbids.

use expect_test::expect;

use super::check;

#[test]
fn no_deeper_than_allowed() {
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
fn no_more_than_allowed_at_once() {
    check(
        &[],
        r#"
        config: agents: { max_children: 1 }
        model: call task {"prompt":"ALPHA"} | call task {"prompt":"BETA"}
        child ALPHA: hold | text "A."
        model: call task {"prompt":"BETA"}
        child BETA: text "B."
        model: text "One by one."
        > prompt go
        > wait agents.max_children allows 1
        > release
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task: ALPHA" pending {"prompt":"ALPHA"}
            < call call-1-1 task "Task: BETA" pending {"prompt":"BETA"}
            < call call-1-0 in_progress
            < call call-1-1 in_progress
            < call call-1-0 completed "Task $TASK (ALPHA) is done.\n\nA.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < call call-1-1 failed "agents.max_children allows 1 at work at a time; wait for the end of one or cancel it"
            < call call-4-0 task "Task: BETA" pending {"prompt":"BETA"}
            < call call-4-0 in_progress
            < call call-4-0 completed "Task $TASK (BETA) is done.\n\nB.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[msg-6] One by one.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"ALPHA\"}") task("{\"prompt\":\"BETA\"}")
            model saw tool: "Task $TASK (ALPHA) is done.\n\nA.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            model saw tool: "agents.max_children allows 1 at work at a time; wait for the end of one or cancel it"
            model saw assistant: task("{\"prompt\":\"BETA\"}")
            model saw tool: "Task $TASK (BETA) is done.\n\nB.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
        "#]],
    );
}

#[test]
fn places_of_the_deep_ones_count_at_the_root() {
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
fn no_more_tokens_than_allowed() {
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
fn an_agent_of_others_is_no_work_for_a_plan() {
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
fn what_cannot_begin_says_why() {
    check(
        &[],
        r#"
        model: call task {"prompt":" "} | call task {"prompt":"x","agent":"nobody"} | call task {"prompt":"x","cwd":"missing"} | call task_send {"task":"a-b-c-d","prompt":"x"} | call task_read {"task":"a-b-c-d"} | call task_cancel {"task":"../etc"} | call task {"prompt":"x","worktree":true}
        model: text "Nothing."
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task:" pending {"prompt":" "}
            < call call-1-1 task "Task for nobody: x" pending {"prompt":"x","agent":"nobody"}
            < call call-1-2 task "Task: x" pending {"prompt":"x","cwd":"missing"}
            < call call-1-3 task_send "Tell task $TASK" pending {"task":"$TASK","prompt":"x"}
            < call call-1-4 task_read "Look at task $TASK" pending {"task":"$TASK"}
            < call call-1-5 task_cancel "Cancel task ../etc" pending {"task":"../etc"}
            < call call-1-6 task "Task: x" pending {"prompt":"x","worktree":true}
            < call call-1-0 in_progress
            < call call-1-0 failed "the prompt is empty; say what is to be done, with all that the agent has to know"
            < call call-1-2 in_progress
            < call call-1-3 in_progress
            < call call-1-3 failed "this session has given no task $TASK; /tasks lists those it has"
            < call call-1-4 in_progress
            < call call-1-4 failed "this session has given no task $TASK; /tasks lists those it has"
            < call call-1-5 in_progress
            < call call-1-5 failed "this session has given no task ../etc; /tasks lists those it has"
            < call call-1-6 in_progress
            ? Task for nobody: x [allow_once, reject_once, allow_always, reject_always] -> allow_once
            < call call-1-2 failed "there is no folder $HOME/project/missing"
            < call call-1-1 in_progress
            < call call-1-1 failed "there is no agent nobody; the agents are: crow, other"
            < call call-1-6 failed "could not make a worktree: $HOME/project is in no git repository"
            < text[msg-9] Nothing.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\" \"}") task("{\"prompt\":\"x\",\"agent\":\"nobody\"}") task("{\"prompt\":\"x\",\"cwd\":\"missing\"}") task_send("{\"task\":\"a-b-c-d\",\"prompt\":\"x\"}") task_read("{\"task\":\"a-b-c-d\"}") task_cancel("{\"task\":\"../etc\"}") task("{\"prompt\":\"x\",\"worktree\":true}")
            model saw tool: "the prompt is empty; say what is to be done, with all that the agent has to know"
            model saw tool: "there is no agent nobody; the agents are: crow, other"
            model saw tool: "there is no folder $HOME/project/missing"
            model saw tool: "this session has given no task $TASK; /tasks lists those it has"
            model saw tool: "this session has given no task $TASK; /tasks lists those it has"
            model saw tool: "this session has given no task ../etc; /tasks lists those it has"
            model saw tool: "could not make a worktree: $HOME/project is in no git repository"
        "#]],
    );
}
