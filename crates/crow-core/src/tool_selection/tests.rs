use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

fn tool(name: &str) -> ToolSpec {
    let text = json!({"type": "string", "description": "long"});
    let parameters = json!({
        "type": "object",
        "properties": {"command": text, "job": text, "pattern": text},
        "required": ["command"]
    });
    ToolSpec { name: name.to_owned(), description: "Does much.".to_owned(), parameters }
}

/// Shows what a model gets of these tools, of which `mcp` is a server's.
#[track_caller]
fn check(profile: ToolProfile, excluded: &[&str], context_window: u64, expected: &Expect) {
    let own = ["terminal", "grep", "todo"].map(tool);
    let all: Vec<ToolSpec> = own.iter().cloned().chain([tool("mcp")]).collect();
    let excluded = excluded.iter().map(|name| (*name).to_owned()).collect();
    let selection = ToolSelection { profile, excluded };
    let shown = match selection.select_tools(&all, &own, context_window) {
        None => "all".to_owned(),
        Some(tools) => {
            let shown =
                tools.iter().map(|tool| format!("{}: {} {}", tool.name, tool.description, tool.parameters));
            shown.collect::<Vec<_>>().join("\n")
        }
    };
    expected.assert_eq(&shown);
}

#[test]
fn tools_are_selected_by_profile_and_window() {
    check(ToolProfile::Auto, &[], 40_000, &expect!["all"]);
    check(ToolProfile::Full, &[], 8_000, &expect!["all"]);
    check(
        ToolProfile::Auto,
        &[],
        39_999,
        &expect![[r#"
        terminal: Runs a shell command: builds, tests, git. `cd` ends with it. {"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}
        grep: Finds lines in files by a regular expression. {"type":"object","properties":{"pattern":{"type":"string"}},"required":["command"]}
        mcp: Does much. {"type":"object","properties":{"command":{"type":"string","description":"long"},"job":{"type":"string","description":"long"},"pattern":{"type":"string","description":"long"}},"required":["command"]}"#]],
    );
    check(
        ToolProfile::Core,
        &["grep", "mcp"],
        200_000,
        &expect![[
            r#"terminal: Runs a shell command: builds, tests, git. `cd` ends with it. {"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}"#
        ]],
    );
    check(
        ToolProfile::Named(vec!["todo".to_owned()]),
        &[],
        8_000,
        &expect![[r#"
        todo: Does much. {"type":"object","properties":{"command":{"type":"string","description":"long"},"job":{"type":"string","description":"long"},"pattern":{"type":"string","description":"long"}},"required":["command"]}
        mcp: Does much. {"type":"object","properties":{"command":{"type":"string","description":"long"},"job":{"type":"string","description":"long"},"pattern":{"type":"string","description":"long"}},"required":["command"]}"#]],
    );
    check(
        ToolProfile::Full,
        &["todo"],
        8_000,
        &expect![[r#"
        terminal: Does much. {"type":"object","properties":{"command":{"type":"string","description":"long"},"job":{"type":"string","description":"long"},"pattern":{"type":"string","description":"long"}},"required":["command"]}
        grep: Does much. {"type":"object","properties":{"command":{"type":"string","description":"long"},"job":{"type":"string","description":"long"},"pattern":{"type":"string","description":"long"}},"required":["command"]}
        mcp: Does much. {"type":"object","properties":{"command":{"type":"string","description":"long"},"job":{"type":"string","description":"long"},"pattern":{"type":"string","description":"long"}},"required":["command"]}"#]],
    );
}

#[test]
fn names_of_no_tool_are_found() {
    let selection = ToolSelection {
        profile: ToolProfile::Named(["grep", "raed", "mcp"].map(str::to_owned).to_vec()),
        excluded: vec!["any".to_owned()],
    };
    assert_eq!(selection.unknown_names(&["grep", "read"].map(tool)), ["raed", "mcp"]);
    assert_eq!(ToolSelection::default().unknown_names(&[]), [""; 0]);
}
