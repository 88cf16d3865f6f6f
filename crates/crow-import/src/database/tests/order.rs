//! Sessions of several agents, and sessions that other sessions started.

use expect_test::expect;
use serde_json::json;

use super::{Old, check};

#[test]
fn compaction_of_the_first_layout_continues_one_session() {
    let mut old = Old::of_0_1_22();
    let first = old.agent("s", 1, "/p");
    old.user(&first, "build it");
    old.assistant(&first, "built");
    old.user(&first, "test it");
    old.calls(&first, &[("c1", "terminal", r#"{"command": "cargo test"}"#)]);
    // The directory was lost there.
    let second = old.agent("s", 2, "/tmp");
    old.user(&second, "summary: it is built");
    old.assistant(&second, "tested");
    let third = old.agent("s", 3, "/tmp");
    old.user(&third, "summary: it is built and tested");
    check(
        &old,
        expect![[r#"
        s in /p with qwen3: build it
          prompt "build it"
          reply "built"
          prompt "test it"
          reply "" call-3-0=c1:terminal {"command":"cargo test"}
          call-3-0 Execute `cargo test`[] Failed: "no result of this call was stored; make it again if it is still needed"
          -- 51 tokens become: summary: it is built
          reply "tested"
          -- 81 tokens become: summary: it is built and tested
    "#]],
    );
}

#[test]
fn agent_after_a_compaction_may_begin_with_anything() {
    let mut old = Old::of_0_1_48();
    let first = old.forked("s", 1, 1, None);
    old.user(&first, "build it");
    old.assistant(&first, "built");
    let second = old.forked("s", 2, 1, None);
    old.assistant(&second, "without a summary");
    let third = old.forked("s", 3, 1, None);
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}});
    old.say(&third, json!({"role": "user", "content": [{"type": "text", "text": "see"}, image]}));
    check(
        &old,
        expect![[r#"
        s in /p with qwen3: build it
          prompt "build it"
          reply "built"
          -- 31 tokens become: none
          reply "without a summary"
          -- 51 tokens become: none
          prompt "see" [image/png aGk=]
    "#]],
    );
}

#[test]
fn session_compacted_at_its_start_begins_with_the_summary() {
    let mut old = Old::of_0_1_48();
    old.forked("s", 1, 1, None);
    let second = old.forked("s", 2, 1, None);
    old.user(&second, "summary of nothing");
    check(
        &old,
        expect![[r#"
        s in /p with qwen3: summary of nothing
          prompt "summary of nothing"
    "#]],
    );
}

#[test]
fn forks_are_sessions_with_the_same_beginning() {
    let mut old = Old::of_0_1_48();
    let trunk = old.forked("s", 1, 1, None);
    old.user(&trunk, "begin");
    let anchor = old.assistant(&trunk, "begun").to_string();
    let fork = old.forked("s", 1, 2, Some(&anchor));
    old.user(&trunk, "on the trunk");
    old.user(&fork, "on the fork");
    let compacted = old.forked("s", 2, 2, None);
    old.user(&compacted, "summary of the fork");
    old.assistant(&compacted, "on");
    let odd = old.forked("s", 1, 3, Some("not a number"));
    old.user(&odd, "sees all of it");
    check(
        &old,
        expect![[r#"
        s in /p with qwen3: begin
          prompt "begin"
          reply "begun"
          prompt "on the trunk"
        s-1-2 in /p with qwen3: begin (fork 2)
          prompt "begin"
          reply "begun"
          prompt "on the fork"
          -- 31 tokens become: summary of the fork
          reply "on"
        s-1-3 in /p with qwen3: begin (fork 3)
          prompt "begin"
          reply "begun"
          prompt "on the trunk"
          prompt "sees all of it"
    "#]],
    );
}

#[test]
fn subagents_follow_their_parent() {
    let mut old = Old::of_0_1_48();
    let child = old.forked("child", 1, 1, None);
    old.user(&child, "the task");
    let owner = old.forked("owner", 1, 1, None);
    let anchor = old.user(&owner, "delegate it").to_string();
    let delegate = old.forked("owner", 1, 2, Some(&anchor));
    old.user(&delegate, "as a delegate");
    let person = old.forked("owner", 1, 3, Some(&anchor));
    old.user(&person, "as a branch");
    let grandchild = old.forked("a-grandchild", 1, 1, None);
    old.user(&grandchild, "below");
    let circle = old.forked("circle", 1, 1, None);
    old.user(&circle, "round");
    let empty = old.forked("empty", 1, 1, None);
    let orphan = old.forked("orphan", 1, 1, None);
    old.user(&orphan, "of an empty one");
    assert_eq!(empty, "empty-1-1");
    old.execute(
        "UPDATE agents SET prompt_args = '{\"rlm_depth\": 1}' WHERE agent_id = 'owner-1-2';
         UPDATE agents SET prompt_args = 'no json' WHERE agent_id = 'owner-1-3';
         INSERT INTO tasks (task_id, kind, owner_session, sub_session, prompt, priority, status, created_at) VALUES
           ('task-1', 'subagent', 'owner', 'child', '', 'low', 'done', '1'),
           ('task-2', 'subagent', 'child-1-1', 'a-grandchild', '', 'low', 'done', '2'),
           ('task-3', 'subagent', 'circle', 'circle', '', 'low', 'done', '3'),
           ('task-4', 'subagent', 'unknown', 'owner', '', 'low', 'done', '4'),
           ('task-5', 'subagent', 'empty', 'orphan', '', 'low', 'done', '5');",
    );
    check(
        &old,
        expect![[r#"
        owner in /p with qwen3: delegate it
          prompt "delegate it"
        child of owner in /p with qwen3: the task
          prompt "the task"
        a-grandchild of child in /p with qwen3: below
          prompt "below"
        circle in /p with qwen3: round
          prompt "round"
        orphan in /p with qwen3: of an empty one
          prompt "of an empty one"
        owner-1-2 of owner in /p with qwen3: delegate it (fork 2)
          prompt "delegate it"
          prompt "as a delegate"
        owner-1-3 in /p with qwen3: delegate it (fork 3)
          prompt "delegate it"
          prompt "as a branch"
    "#]],
    );
}

#[test]
fn sessions_in_a_cycle_are_all_imported() {
    let mut old = Old::of_0_1_48();
    for name in ["a", "b", "c"] {
        let agent = old.forked(name, 1, 1, None);
        old.user(&agent, "round");
    }
    old.execute(
        "INSERT INTO tasks (task_id, kind, owner_session, sub_session, prompt, priority, status, created_at) VALUES
           ('1', '', 'b', 'a', '', '', '', ''), ('2', '', 'c', 'b', '', '', '', ''), ('3', '', 'a', 'c', '', '', '', '')",
    );
    check(
        &old,
        expect![[r#"
        c in /p with qwen3: round
          prompt "round"
        b of c in /p with qwen3: round
          prompt "round"
        a of b in /p with qwen3: round
          prompt "round"
    "#]],
    );
}

#[test]
fn session_with_the_id_of_a_fork_gets_another_id() {
    let mut old = Old::of_0_1_48();
    let trunk = old.forked("s", 1, 1, None);
    let anchor = old.user(&trunk, "trunk").to_string();
    let fork = old.forked("s", 1, 2, Some(&anchor));
    old.user(&fork, "fork");
    let same = old.forked("s-1-2", 1, 1, None);
    old.user(&same, "same name");
    check(
        &old,
        expect![[r#"
        s in /p with qwen3: trunk
          prompt "trunk"
        s-1-2 in /p with qwen3: trunk (fork 2)
          prompt "trunk"
          prompt "fork"
        s-1-2-again in /p with qwen3: same name
          prompt "same name"
    "#]],
    );
}

#[test]
fn columns_may_be_missing_or_unknown() {
    let old = Old::made_by(
        "CREATE TABLE agents (agent_id TEXT, session_id TEXT, mood TEXT);
         CREATE TABLE messages (id INTEGER PRIMARY KEY, agent_id TEXT, data JSON);
         CREATE TABLE sessions (later TEXT);
         INSERT INTO agents VALUES ('s-1', 's', 'good'), ('lone', NULL, 'bad');
         INSERT INTO messages (agent_id, data) VALUES
           ('s-1', '{\"role\": \"system\", \"content\": \"You are Crow\"}'),
           ('s-1', '{\"role\": \"user\", \"content\": \"hello\"}'),
           ('lone', '{\"role\": \"user\", \"content\": \"alone\"}');",
    );
    check(
        &old,
        expect![[r#"
        lone in / with : alone
          prompt "alone"
        s in / with : hello
          prompt "hello"
    "#]],
    );
    assert_eq!(old.read().0.last().unwrap().system_prompt, "You are Crow");
}

#[test]
fn empty_database_and_sessions_give_nothing() {
    let mut old = Old::of_0_1_22();
    check(&old, expect![[""]]);
    old.agent("s", 1, "/p");
    check(&old, expect![[""]]);
}

#[test]
fn two_thousand_messages() {
    let mut old = Old::of_0_1_22();
    old.execute("BEGIN");
    let agent = old.agent("long", 1, "/p");
    for n in 0..500 {
        old.user(&agent, &format!("prompt {n}"));
        old.calls(&agent, &[("same", "read", r#"{"path": "a"}"#)]);
        old.result(&agent, "same", &n.to_string());
        old.assistant(&agent, "read");
    }
    old.execute("COMMIT");
    let (sessions, lost) = old.read();
    let [session] = sessions.as_slice() else { panic!("{} sessions", sessions.len()) };
    super::accepted(session);
    assert_eq!((session.entries.len(), lost), (2_000, crow_store::ImportLosses::default()));
}
