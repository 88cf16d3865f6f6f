use crow_core::Arguments;
use expect_test::expect;
use serde_json::{Value, json};

use super::{Machine, check};
use crate::Tools;

#[tokio::test]
async fn the_plan() {
    let entries =
        json!([{"content": "look", "status": "completed"}, {"content": "do", "status": "in_progress"}]);
    check(
        |_| (),
        &[("todo", json!({"entries": entries}))],
        expect![[r#"
        > Plan Think Nothing
        Done: the plan has 2 steps, 1 completed
        plan: [PlanEntry { text: "look", status: Completed, priority: Medium, meta: None }, PlanEntry { text: "do", status: InProgress, priority: Medium, meta: None }]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn wrong_calls() {
    let calls = [
        ("fly", json!({"to": "the moon"})),
        ("read", json!({})),
        ("read", json!({"file_path": ["a"]})),
        ("todo", json!({"entries": [{"content": "a", "status": "maybe"}]})),
    ];
    check(|_| (), &calls, expect![[r#"
        > fly Other Nothing
        Failed: there is no tool `fly`; the tools are: read, write, edit, terminal, grep, glob, web_search, web_fetch, todo
        > read Read Nothing
        Failed: `read` was not run: `file_path` is missing; it must be a string
        > read Read Nothing
        Failed: `read` was not run: `file_path` must be a string, not the array ["a"]
        > Plan Think Nothing
        Failed: the arguments do not fit: unknown variant `maybe`, expected one of `pending`, `in_progress`, `completed`
    "#]]).await;
}

#[tokio::test]
async fn cut_and_unreadable_calls() {
    let machine = Machine::new(|cwd| std::fs::write(cwd.join("a"), "text").unwrap());
    let cut =
        |value: Value| Arguments::Repaired { value: value.as_object().unwrap().clone(), string_closed: true };
    let mut said = String::new();
    said += &machine.run("write", cut(json!({"file_path": "a", "content": "ha"}))).await;
    said += &machine.run("write", cut(json!({"file_pa": ""}))).await;
    said += &machine.run("terminal", cut(json!({"command": "rm -r /tmp/a"}))).await;
    said += &machine.run("read", cut(json!({"file_path": "a"}))).await;
    said +=
        &machine.run("read", Arguments::Unreadable { why: "expected value at line 1 column 1".into() }).await;
    expect![[r#"
        > write Edit Nothing
        Failed: `write` was not run: the call was cut off in the middle of a text, so its arguments are not whole; send it again, shorter or in several steps
        > write Edit Nothing
        Failed: `write` was not run: the call was cut off in the middle of a text, so its arguments are not whole; send it again, shorter or in several steps
        > terminal Execute Nothing
        Failed: `terminal` was not run: the call was cut off in the middle of a text, so its arguments are not whole; send it again, shorter or in several steps
        > Read a Read Reads(["$DIR/project/a"])
        Done:      1	text
        > read Read Nothing
        Failed: `read` was not run: expected value at line 1 column 1
    "#]].assert_eq(&said);
}

#[tokio::test]
async fn nothing_runs_in_a_cancelled_turn() {
    let machine = Machine::new(|_| ());
    machine.cut.cancel();
    let said = machine.call("write", json!({"file_path": "a", "content": ""})).await;
    expect![[r#"
        > Write a Edit Writes(["$DIR/project/a"])
        Failed: stopped: the turn was cancelled
    "#]]
    .assert_eq(&said);
    assert!(!machine.path("a").exists());
}

#[test]
fn names_are_unique() {
    let mut tools = Tools::builtin(crate::Equipment::default());
    let names: Vec<String> = tools.specs().into_iter().map(|spec| spec.name).collect();
    expect!["read write edit terminal grep glob web_search web_fetch todo"].assert_eq(&names.join(" "));
    let taken = tools.add(std::sync::Arc::new(crate::todo::Todo::new()));
    assert!(taken.is_err());
}
