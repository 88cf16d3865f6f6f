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
    let selection = ToolSelection { profile, excluded, edit_tool: None };
    let tools = SelectableTools { all: &all, own: &own, alternatives: &[] };
    let model = SelectingModel { context_window, family_tool: EditToolKind::Edit };
    let shown = match selection.select_tools(tools, model) {
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
            terminal: Runs a shell command: builds, tests, git, or a calculation such as `echo $((7 * 6))`. `cd` ends with it. {"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}
            grep: Searches the text inside all files for a regular expression. To see a file whose name you know, use `read`. {"type":"object","properties":{"pattern":{"type":"string"}},"required":["pattern"]}
            mcp: Does much. {"type":"object","properties":{"command":{"type":"string","description":"long"},"job":{"type":"string","description":"long"},"pattern":{"type":"string","description":"long"}},"required":["command"]}"#]],
    );
    check(
        ToolProfile::Core,
        &["grep", "mcp"],
        200_000,
        &expect![[
            r#"terminal: Runs a shell command: builds, tests, git, or a calculation such as `echo $((7 * 6))`. `cd` ends with it. {"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}"#
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
        edit_tool: None,
    };
    assert_eq!(selection.unknown_names(&["grep"].map(tool), &["read"].map(tool).each_ref()), ["raed", "mcp"]);
    assert_eq!(ToolSelection::default().unknown_names(&[], &[]), [""; 0]);
}

/// Shows the names of the tools that a model gets, and those that it cannot call.
#[track_caller]
fn check_names(selection: &ToolSelection, family_tool: EditToolKind, expected: &Expect) {
    let own = ["read", "write", "edit", "grep", "todo"].map(tool);
    let alternatives = ["apply_patch", "str_replace_based_edit_tool"].map(tool);
    let all: Vec<ToolSpec> = own.iter().cloned().chain([tool("mcp")]).collect();
    let tools = SelectableTools { all: &all, own: &own, alternatives: &alternatives.each_ref() };
    let model = SelectingModel { context_window: 200_000, family_tool };
    let shown = match selection.select_tools(tools, model) {
        None => "all".to_owned(),
        Some(selected) => {
            let names: Vec<&str> = selected.iter().map(|tool| tool.name.as_str()).collect();
            let removed = selection.removed_names(tools, &selected, family_tool);
            format!("{}; without {}", names.join(" "), removed.join(" "))
        }
    };
    expected.assert_eq(&shown);
}

#[test]
fn edit_tool_of_the_family_replaces_others() {
    use EditToolKind::{ApplyPatch, Edit, StrReplace};
    let of = |profile: ToolProfile| ToolSelection { profile, ..ToolSelection::default() };
    let named =
        |names: &[&str]| of(ToolProfile::Named(names.iter().map(|name| (*name).to_owned()).collect()));
    check_names(&of(ToolProfile::Full), Edit, &expect!["all"]);
    check_names(&of(ToolProfile::Auto), ApplyPatch, &expect!["read apply_patch grep todo mcp; without "]);
    check_names(&of(ToolProfile::Core), ApplyPatch, &expect!["read apply_patch grep mcp; without todo"]);
    check_names(
        &of(ToolProfile::Full),
        StrReplace,
        &expect!["str_replace_based_edit_tool grep todo mcp; without "],
    );
    check_names(
        &named(&["read", "str_replace_based_edit_tool"]),
        ApplyPatch,
        &expect!["read mcp str_replace_based_edit_tool; without write edit grep todo apply_patch"],
    );
    let own_choice = ToolSelection { edit_tool: Some(Edit), ..ToolSelection::default() };
    check_names(&own_choice, ApplyPatch, &expect!["all"]);
    let excluding =
        |name: &str| ToolSelection { excluded: vec![name.to_owned()], ..ToolSelection::default() };
    check_names(&excluding("apply_patch"), ApplyPatch, &expect!["read grep todo mcp; without apply_patch"]);
    check_names(&excluding("edit"), ApplyPatch, &expect!["read apply_patch grep todo mcp; without edit"]);
    let core_names = |kind| ToolSelection::default().core_tool_names(kind).join(" ");
    expect![[r#"
        read write edit terminal grep glob
        read apply_patch terminal grep glob
        str_replace_based_edit_tool terminal grep glob"#]]
    .assert_eq(&[Edit, ApplyPatch, StrReplace].map(core_names).join("\n"));
}
