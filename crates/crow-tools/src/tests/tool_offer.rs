//! The tools that requests offer, by number.

use std::sync::Arc;

use crow_core::{ToolAccess, ToolCallInfo, ToolKind, ToolResult, ToolSpec};
use expect_test::expect;
use serde_json::{Map, Value, json};

use super::Machine;
use crate::{BuiltinToolConfig, Tool, ToolCx, ToolFuture, ToolOffer, ToolRegistry, ToolSet, Workspace};

struct ServedTool(ToolSpec);

impl Tool for ServedTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call_info(&self, _arguments: &Map<String, Value>, _workspace: &Workspace) -> ToolCallInfo {
        ToolCallInfo {
            title: String::new(),
            kind: ToolKind::Other,
            locations: Vec::new(),
            access: ToolAccess::Nothing,
        }
    }

    fn run<'a>(&'a self, _arguments: &'a Map<String, Value>, _cx: ToolCx<'a>) -> ToolFuture<'a> {
        Box::pin(std::future::ready(ToolResult::success("ran")))
    }
}

fn served(prefix: &str, n_tools: usize) -> Vec<Arc<dyn Tool>> {
    let tools = (0..n_tools).map(|number| {
        let spec = ToolSpec {
            name: format!("{prefix}_{number}"),
            description: format!("Does {prefix} {}.", if number == 170 { "invoices" } else { "things" }),
            parameters: json!({"type": "object", "properties": {}}),
        };
        Arc::new(ServedTool(spec)) as Arc<dyn Tool>
    });
    tools.collect()
}

fn show(offered: &ToolSet) -> String {
    let names: Vec<&str> = offered.specs.iter().map(|spec| spec.name.as_str()).collect();
    let n_hidden = names.len().saturating_sub(14);
    let ends = [&names[..names.len().min(11)], &names[names.len() - 3.min(names.len())..]].concat();
    format!("{} offered, {n_hidden} not shown: {}\n", names.len(), ends.join(" "))
}

#[tokio::test]
async fn hundreds_of_tools_are_offered_on_demand() {
    let mut machine = Machine::new(|_| ());
    let own = machine.tools.clone();
    let offer = ToolOffer::new(ToolOffer::TOOLS_MAX);
    let few = offer.choose(&own, served("few", 2));
    let mut told = show(&few) + &format!("{:?}\n", offer.take_notice());
    let all = || [served("few", 2), served("many", 200)].concat();
    let many = offer.choose(&own, all());
    told += &show(&many);
    told += &format!("{:?} {:?}\n", offer.take_notice(), offer.take_notice());
    machine.tools = many.tools.clone();
    told += &machine.call("tool_search", json!({"query": "invoices"})).await;
    told += &machine.call("tool_search", json!({"query": "weather"})).await;
    let more = offer.choose(&own, all());
    told += &show(&more);
    // What was offered before is the beginning of what is offered now.
    let names =
        |offered: &ToolSet| -> Vec<String> { offered.specs.iter().map(|spec| spec.name.clone()).collect() };
    assert_eq!(names(&many), names(&more)[..many.specs.len()]);
    // A hidden tool can be called all the same.
    machine.tools = more.tools.clone();
    told += &machine.call("many_199", json!({})).await;
    for number in 100..200 {
        machine.call("tool_search", json!({"query": format!("many_{number}")})).await;
        offer.note_use("few_0");
    }
    let full = offer.choose(&own, all());
    assert!(names(&full).contains(&"few_0".to_owned()));
    told += &show(&full);
    expect![[r#"
        11 offered, 0 not shown: read write edit terminal grep glob web_search web_fetch todo few_0 few_1 todo few_0 few_1
        None
        93 offered, 79 not shown: read write edit terminal grep glob web_search web_fetch todo few_0 few_1 many_78 many_79 many_80
        Some("There are 211 tools, and a request has at most 128 of them: the model finds the others of the MCP servers with tool_search.") None
        > Find tools Search Nothing
        Completed: These tools can be called from the next reply on:
        - many_170: Does many invoices.
        > Find tools Search Nothing
        Failed: no tool matches "weather"; 202 tools can be searched by the words of their names and descriptions
        94 offered, 80 not shown: read write edit terminal grep glob web_search web_fetch todo few_0 few_1 many_79 many_80 many_170
        >  Other Nothing
        Completed: ran
        120 offered, 106 not shown: read write edit terminal grep glob web_search web_fetch todo few_0 tool_search many_197 many_198 many_199
    "#]].assert_eq(&told);
}

#[test]
fn small_limit_keeps_the_own_tools() {
    let own = ToolRegistry::with_builtin_tools(BuiltinToolConfig::default());
    let offered = ToolOffer::new(4).choose(&own, served("many", 3));
    expect![[r#"
        10 offered, 0 not shown: read write edit terminal grep glob web_search web_fetch todo tool_search web_fetch todo tool_search
    "#]].assert_eq(&show(&offered));
}
