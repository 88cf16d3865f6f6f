//! Tool names that every provider accepts, without duplicates.

use std::{collections::HashSet, path::PathBuf, sync::Arc};

use crow_acp::AcpClientCapabilities;
use crow_core::{ToolCallInfo, ToolSpec};
use serde_json::{Map, Value};

use crate::{PreviewFuture, Tool, ToolCx, ToolFuture, Workspace};

/// Providers' limit.
const NAME_CHARS_MAX: usize = 64;

/// Returns an unused name for a tool: its own, with the server's name as a prefix, or with a number.
pub(crate) fn unique_tool_name(tool: &dyn Tool, taken: &HashSet<String>) -> String {
    let own_name = sanitize_name(&tool.spec().name);
    let prefixed = || tool.server_name().map(|server| sanitize_name(&format!("{server}_{own_name}")));
    let numbered = |base: String| (2..).map(move |number| with_number(&base, number));
    let is_free = |name: &String| !taken.contains(name);
    let unprefixed = Some(own_name.clone()).filter(is_free).or_else(|| prefixed().filter(is_free));
    unprefixed
        .or_else(|| numbered(prefixed().unwrap_or_else(|| own_name.clone())).find(is_free))
        .unwrap_or_default()
}

/// Replaces characters that providers reject.
fn sanitize_name(name: &str) -> String {
    let truncated = name.chars().take(NAME_CHARS_MAX);
    let sanitized: String =
        truncated.map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    if sanitized.is_empty() { "tool".to_owned() } else { sanitized }
}

fn with_number(base: &str, number: u32) -> String {
    let suffix = format!("_{number}");
    let truncated: String = base.chars().take(NAME_CHARS_MAX - suffix.len()).collect();
    truncated + &suffix
}

/// A tool under another name.
pub(crate) struct RenamedTool {
    tool: Arc<dyn Tool>,
    spec: ToolSpec,
}

impl RenamedTool {
    pub(crate) fn new(tool: Arc<dyn Tool>, name: String) -> Self {
        let spec = ToolSpec { name, ..tool.spec().clone() };
        Self { tool, spec }
    }
}

impl Tool for RenamedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn server_name(&self) -> Option<&str> {
        self.tool.server_name()
    }

    fn server_tool_name(&self) -> Option<&str> {
        self.tool.server_tool_name()
    }

    fn is_read_only(&self) -> bool {
        self.tool.is_read_only()
    }

    fn call_info(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> ToolCallInfo {
        self.tool.call_info(arguments, workspace)
    }

    fn live_output_dir(
        &self,
        arguments: &Map<String, Value>,
        workspace: &Workspace,
        client: AcpClientCapabilities,
    ) -> Option<PathBuf> {
        self.tool.live_output_dir(arguments, workspace, client)
    }

    fn runs_in_client(
        &self,
        arguments: &Map<String, Value>,
        workspace: &Workspace,
        client: AcpClientCapabilities,
    ) -> bool {
        self.tool.runs_in_client(arguments, workspace, client)
    }

    fn preview<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> PreviewFuture<'a> {
        self.tool.preview(arguments, cx)
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        self.tool.run(arguments, cx)
    }
}

#[cfg(test)]
mod tests {
    use crow_core::{ToolAccess, ToolKind, ToolResult};
    use expect_test::expect;

    use super::*;
    use crate::{BuiltinToolConfig, ToolRegistry};

    /// A tool of the server `my box`.
    struct NamedTool(ToolSpec);

    impl Tool for NamedTool {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn server_name(&self) -> Option<&str> {
            Some("my box")
        }

        fn call_info(&self, _: &Map<String, Value>, _: &Workspace) -> ToolCallInfo {
            let title = self.0.name.clone();
            ToolCallInfo { title, kind: ToolKind::Other, locations: Vec::new(), access: ToolAccess::Nothing }
        }

        fn run<'a>(&'a self, _: &'a Map<String, Value>, _: ToolCx<'a>) -> ToolFuture<'a> {
            Box::pin(async { ToolResult::success("") })
        }
    }

    #[test]
    fn names_are_sanitized_and_unique() {
        let long = "n".repeat(80);
        let names =
            ["git status", "git.status", "git/status", "read", "read", "", "été", &long, &long, &long, &long];
        let named = |name: &&str| {
            let (name, description) = (name.to_string(), String::new());
            Arc::new(NamedTool(ToolSpec { name, description, parameters: Value::Null })) as Arc<dyn Tool>
        };
        let builtin = ToolRegistry::with_builtin_tools(BuiltinToolConfig::default());
        let n_builtin = builtin.tool_specs().len();
        let tools = builtin.with_tools(names.iter().map(named).collect());
        let lines = tools
            .tool_specs()
            .into_iter()
            .skip(n_builtin)
            .map(|spec| format!("{} {}\n", spec.name.len(), spec.name));
        expect![[r#"
            10 git_status
            17 my_box_git_status
            19 my_box_git_status_2
            11 my_box_read
            13 my_box_read_2
            4 tool
            3 _t_
            64 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
            64 my_box_nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
            64 my_box_nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn_2
            64 my_box_nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn_3
        "#]]
        .assert_eq(&lines.collect::<String>());
    }
}
