use std::sync::Arc;

use crow_core::{ToolAccess, ToolCallInfo, ToolKind, ToolResult, ToolSpec, repair::read_arguments};
use expect_test::expect;
use serde_json::{Map, Value, json};

use super::{Machine, check};
use crate::{Tool, ToolCx, ToolFuture, ToolRegistry, Workspace};

#[tokio::test]
async fn plan_is_set() {
    let entries =
        json!([{"content": "look", "status": "completed"}, {"content": "do", "status": "in_progress"}]);
    check(
        |_| (),
        &[("todo", json!({"entries": entries}))],
        expect![[r#"
            > Plan Think Nothing
            Completed: the plan has 2 steps, 1 completed
            plan: [PlanEntry { text: "look", status: Completed, priority: Medium, meta: None }, PlanEntry { text: "do", status: InProgress, priority: Medium, meta: None }]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn invalid_calls_are_rejected() {
    let calls = [
        ("fly", json!({"to": "the moon"})),
        ("", json!({"to": "the moon"})),
        (" ", json!({})),
        ("read", json!({})),
        ("read", json!({"file_path": ["a"]})),
        ("todo", json!({"entries": [{"content": "a", "status": "maybe"}]})),
    ];
    check(|_| (), &calls, expect![[r#"
        > fly Other Nothing
        Failed: there is no tool `fly`; the tools are: read, write, edit, terminal, grep, glob, web_search, web_fetch, todo
        > Unnamed call Other Nothing
        Failed: the call has no tool name; send it again with one; the tools are: read, write, edit, terminal, grep, glob, web_search, web_fetch, todo
        > Unnamed call Other Nothing
        Failed: the call has no tool name; send it again with one; the tools are: read, write, edit, terminal, grep, glob, web_search, web_fetch, todo
        > read Read Nothing
        Failed: `read` was not run: `file_path` is missing; it must be a string
        > read Read Nothing
        Failed: `read` was not run: `file_path` must be a string, not the array ["a"]
        > todo Think Nothing
        Failed: `todo` was not run: `entries[0].status` must be one of "pending", "in_progress", "completed", not the string "maybe"
    "#]]).await;
}

#[tokio::test]
async fn argument_names_of_other_agents_are_accepted() {
    let setup = |project: &std::path::Path| std::fs::write(project.join("a.txt"), "one\ntwo\n").unwrap();
    let edit = |call: Value| ("edit", call);
    let calls = [
        ("read", json!({"filePath": "a.txt", "start_line": "2"})),
        edit(json!({"path": "a.txt", "old_str": "two", "new_str": "2", "explanation": "shorter"})),
        edit(json!({"path": "a.txt", "old_str": "one", "new_str": "1", "replace_al": true})),
        edit(json!({"path": "b.txt", "file_path": "a.txt", "old_string": "one", "new_string": "1"})),
        ("write", json!({"filename": "b.txt", "contents": "b"})),
        ("grep", json!({"regex": "^2", "directory": ".", "-n": true})),
        ("glob", json!({"pattern": "*.txt", "dir": ".", "max_results": 3})),
        ("todo", json!({"todos": [{"content": "a", "status": "pending", "activeForm": "doing a"}]})),
        ("terminal", json!({"cmd": "echo hi", "shell": "zsh"})),
    ];
    check(setup, &calls, expect![[r#"
        > Read a.txt Read Reads(["$DIR/project/a.txt"])
        Completed:      2	two
        > Edit a.txt Edit Writes(["$DIR/project/a.txt"])
        Completed: edited a.txt in 1 place; match: exact
             1	one
             2	2
        client: Diff { path: "$DIR/project/a.txt", old: Some("one\ntwo\n"), new: "one\n2\n" }
        > edit Edit Nothing
        Failed: `edit` was not run: there is no parameter `replace_al`, did you mean `replace_all`? (it takes `file_path`, `old_string`, `new_string`, `replace_all`, `edits`)
        > edit Edit Nothing
        Failed: `edit` was not run: `path` and `file_path` both mean `file_path` and have different values; give only one
        > Write b.txt Edit Writes(["$DIR/project/b.txt"])
        Completed: created b.txt: 1 line
        client: Diff { path: "$DIR/project/b.txt", old: None, new: "b" }
        > Search `^2` Search Reads(["$DIR/project"])
        Completed: a.txt:2: 2
        > glob Search Nothing
        Failed: `glob` was not run: there is no parameter `max_results` (it takes `pattern`, `path`)
        > Plan Think Nothing
        Completed: the plan has 1 steps, 0 completed
        plan: [PlanEntry { text: "a", status: Pending, priority: Medium, meta: None }]
        > terminal Execute Nothing
        Failed: `terminal` was not run: there is no parameter `shell` (it takes `command`, `cwd`, `timeout`, `is_input`, `reset`, `background`, `job`)
    "#]]).await;
}

/// A call of a third-party tool counts as harmful.
struct Foreign(ToolSpec);

impl Tool for Foreign {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call_info(&self, _: &Map<String, Value>, _: &Workspace) -> ToolCallInfo {
        let access = ToolAccess::Calls { server: "s".into(), tool: "give".into() };
        ToolCallInfo { title: "s: give".into(), kind: ToolKind::Other, locations: Vec::new(), access }
    }

    fn run<'a>(&'a self, _: &'a Map<String, Value>, _: ToolCx<'a>) -> ToolFuture<'a> {
        Box::pin(async { ToolResult::success("given") })
    }
}

#[tokio::test]
async fn doubtful_and_unreadable_calls_are_rejected() {
    let mut machine = Machine::new(|cwd| std::fs::write(cwd.join("a"), "text").unwrap());
    let spec = ToolSpec { name: "give".into(), description: String::new(), parameters: json!({}) };
    machine.tools.add_tool(Arc::new(Foreign(spec))).unwrap();
    let mut said = String::new();
    for (name, text) in [
        ("write", r#"{"file_path": "a", "content": "ha"#),
        ("write", r#"{"file_path": "a", "content": "ha""#),
        ("write", "```json\n{\"file_path\": \"a\", \"content\": \"text\",}\n```"),
        ("edit", r#"{"file_path": "a", "old_string": "t", "new_string": "", "#),
        ("terminal", r#"{"command": "rm -r build""#),
        ("terminal", r#"{"command": "rm a"}{"command": "rm b"}"#),
        ("terminal", r#"{'command': 'rm 'a''}"#),
        ("todo", r#"{"entries": [{"content": "a", "status": "pending"}"#),
        ("give", r#"{"what": "all""#),
        ("give", r#"{"what": "all"}}"#),
        ("web_search", r#"{"queries": ["a""#),
        ("read", r#"{"file_path": "a""#),
        ("glob", r#"{"pattern": "*"#),
        ("read", "a"),
    ] {
        said += &machine.run(name, read_arguments(text)).await;
    }
    expect![[r#"
        > write Edit Nothing
        Failed: `write` was not run: its arguments may be incomplete: they stop at line 1 column 33 in the middle of a string; send the whole call again, in smaller steps if it is long
        > write Edit Nothing
        Failed: `write` was not run: its arguments may be incomplete: a closing bracket is missing at line 1 column 34; send the whole call again, in smaller steps if it is long
        > Write a Edit Writes(["$DIR/project/a"])
        Completed: a already has this content; nothing was changed
        > edit Edit Nothing
        Failed: `edit` was not run: its arguments may be incomplete: a closing bracket is missing at line 1 column 56; send the whole call again, in smaller steps if it is long
        > terminal Execute Nothing
        Failed: `terminal` was not run: its arguments may be incomplete: a closing bracket is missing at line 1 column 25; send the whole call again, in smaller steps if it is long
        > terminal Execute Nothing
        Failed: `terminal` was not run: its arguments may be incomplete: another object follows at line 1 column 19; send one call for each
        > terminal Execute Nothing
        Failed: `terminal` was not run: the arguments are not a JSON object: key must be a string at line 1 column 2; send the call again with one
        > todo Think Nothing
        Failed: `todo` was not run: its arguments may be incomplete: a closing bracket is missing at line 1 column 50; send the whole call again, in smaller steps if it is long
        > give Other Nothing
        Failed: `give` was not run: its arguments may be incomplete: a closing bracket is missing at line 1 column 14; send the whole call again, in smaller steps if it is long
        > s: give Other Calls { server: "s", tool: "give" }
        Completed: given
        > web_search Search Nothing
        Failed: `web_search` was not run: its arguments may be incomplete: a closing bracket is missing at line 1 column 16; send the whole call again, in smaller steps if it is long
        > Read a Read Reads(["$DIR/project/a"])
        Completed:      1	text
        > Find `*` Search Reads(["$DIR/project"])
        Completed: a
        > read Read Nothing
        Failed: `read` was not run: the arguments are not a JSON object: expected value at line 1 column 1; send the call again with one
    "#]].assert_eq(&said);
}

/// Every prefix of a call that writes or runs something is rejected, including the empty one.
#[tokio::test]
async fn truncated_calls_are_not_run() {
    let machine = Machine::new(|cwd| std::fs::write(cwd.join("a"), "text").unwrap());
    for (name, whole) in [
        ("write", json!({"file_path": "b", "content": "say \"hi\"\n\ttwice {[\u{1f426}]}"})),
        ("edit", json!({"file_path": "a", "old_string": "te", "new_string": "be", "replace_all": true})),
        ("terminal", json!({"timeout": 120, "background": false, "command": "touch c; touch d"})),
        ("terminal", json!({"command": "touch c", "timeout": 60})),
    ] {
        for whole in [whole.to_string(), format!("{whole:#}").replace('\n', "\r\n")] {
            let ends = (0..whole.len()).filter(|end| whole.is_char_boundary(*end));
            for end in ends {
                let said = machine.run(name, read_arguments(&whole[..end])).await;
                assert!(said.contains("Nothing\nFailed: "), "{}: {said}", &whole[..end]);
            }
        }
    }
    let files = std::fs::read_dir(machine.workspace.cwd()).unwrap();
    assert_eq!(files.count(), 1);
    assert_eq!(std::fs::read_to_string(machine.path("a")).unwrap(), "text");
}

#[tokio::test]
async fn cancelled_turn_runs_nothing() {
    let machine = Machine::new(|_| ());
    machine.cancel.cancel();
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
    let mut tools = ToolRegistry::with_builtin_tools(crate::BuiltinToolConfig::default());
    let names: Vec<String> = tools.tool_specs().into_iter().map(|spec| spec.name).collect();
    expect!["read write edit terminal grep glob web_search web_fetch todo"].assert_eq(&names.join(" "));
    let taken = tools.add_tool(std::sync::Arc::new(crate::todo::TodoTool::new()));
    assert!(taken.is_err());
}
