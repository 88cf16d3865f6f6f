//! The tools, and the only way to run one. Must not know any tool's details.

use std::{collections::HashSet, fmt, path::PathBuf, sync::Arc};

use crow_acp::AcpClientCapabilities;
use crow_core::{
    ContentPart, SandboxSupport, ToolAccess, ToolArguments, ToolCall, ToolCallContent, ToolCallInfo,
    ToolKind, ToolResult, ToolSpec, repair,
};
use crow_process::{CommandConfinement, ProcessGroups, SandboxWrapper};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::{
    BuiltinToolConfig, Tool, ToolCx, Workspace,
    apply_patch::{ApplyPatchTool, to_patch_call},
    edit::EditTool,
    glob::GlobTool,
    grep::GrepTool,
    read::ReadTool,
    str_replace::StrReplaceTool,
    terminal::TerminalTool,
    todo::TodoTool,
    token_refreshes::TokenRefreshTasks,
    tool_error::{CANCELLED, ToolError},
    tool_names::{RenamedTool, unique_tool_name},
    web::{self, WebContext},
    write::WriteTool,
};

/// The title of a call without a tool name.
const UNNAMED_TITLE: &str = "Unnamed call";

/// All tools that a model may call.
#[derive(Clone)]
pub struct ToolRegistry {
    tools: Vec<Arc<dyn Tool>>,
    /// Tools that can be called and are offered only in place of others, or by name.
    alternatives: Vec<Arc<dyn Tool>>,
    groups: ProcessGroups,
    token_refreshes: TokenRefreshTasks,
    sandbox: Option<SandboxWrapper>,
    web: Arc<WebContext>,
}

/// A tool of this name exists already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a tool named {0} exists already")]
pub struct ToolNameTaken(String);

impl ToolRegistry {
    /// Returns a registry of the built-in tools.
    pub fn with_builtin_tools(config: BuiltinToolConfig) -> Self {
        let groups = ProcessGroups::new();
        let web = Arc::new(WebContext::new(config.web.clone()));
        let tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(ReadTool::new()),
            Arc::new(WriteTool::new()),
            Arc::new(EditTool::new()),
            Arc::new(TerminalTool::new(groups.clone(), &config)),
            Arc::new(GrepTool::new()),
            Arc::new(GlobTool::new()),
            Arc::new(web::WebSearchTool::new(web.clone())),
            Arc::new(web::WebFetchTool::new(web.clone())),
            Arc::new(TodoTool::new()),
        ];
        let alternatives: Vec<Arc<dyn Tool>> =
            vec![Arc::new(ApplyPatchTool::new()), Arc::new(StrReplaceTool::new())];
        let token_refreshes = TokenRefreshTasks::default();
        Self { tools, alternatives, groups, token_refreshes, sandbox: config.sandbox, web }
    }

    /// Returns a registry with further tools. A name that providers would reject is sanitized, and one that is taken
    /// gets the server's name as a prefix.
    #[must_use]
    pub fn with_tools(&self, added: Vec<Arc<dyn Tool>>) -> Self {
        let mut registry = self.clone();
        let mut taken: HashSet<String> = self.all_tools().map(|tool| tool.spec().name.clone()).collect();
        for tool in added {
            let name = unique_tool_name(tool.as_ref(), &taken);
            taken.insert(name.clone());
            let tool = if tool.spec().name == name { tool } else { Arc::new(RenamedTool::new(tool, name)) };
            registry.tools.push(tool);
        }
        registry
    }

    /// Returns how well commands can be confined here; the first call tries it.
    pub async fn sandbox_support(&self) -> SandboxSupport {
        match &self.sandbox {
            Some(sandbox) => sandbox.sandbox_support().await.clone(),
            None => SandboxSupport::Unavailable { reason: "the supervisor program was not found".into() },
        }
    }

    /// Ends every program that a tool started, and prevents new ones.
    pub fn stop_programs(&self) {
        self.groups.kill_all();
    }

    /// Waits at the end of the process until refreshed logins of MCP servers are stored, for a few seconds at most.
    pub async fn finish_token_refreshes(&self) {
        self.token_refreshes.wait_until_stored().await;
    }

    /// Returns the command that runs a program unconfined under the supervisor, so that none of its processes is left
    /// over.
    pub(crate) fn supervised_command(&self, program: &str, args: &[String]) -> (String, Vec<String>) {
        match &self.sandbox {
            Some(sandbox) => sandbox.wrap_command(&CommandConfinement::UNCONFINED, program, args),
            None => (program.to_owned(), args.to_owned()),
        }
    }

    pub(crate) fn token_refreshes(&self) -> &TokenRefreshTasks {
        &self.token_refreshes
    }

    pub(crate) fn process_groups(&self) -> &ProcessGroups {
        &self.groups
    }

    #[cfg(test)]
    pub(crate) fn count_programs(&self) -> usize {
        self.groups.n_alive()
    }

    fn all_tools(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter().chain(&self.alternatives)
    }

    /// The specifications of the tools that are offered only in place of others, or by name.
    pub fn alternative_specs(&self) -> Vec<&ToolSpec> {
        self.alternatives.iter().map(|tool| tool.spec()).collect()
    }

    /// The number of all other tools.
    pub fn n_tools(&self) -> usize {
        self.tools.len()
    }

    /// The specifications of all other tools, for the model.
    pub fn tool_specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec().clone()).collect()
    }

    /// The tools of MCP servers: the server, the server's name for the tool, and the specification for the model.
    pub fn mcp_tool_specs(&self) -> Vec<(String, String, ToolSpec)> {
        let specs = self.tools.iter().filter_map(|tool| {
            Some((tool.server_name()?.to_owned(), tool.server_tool_name()?.to_owned(), tool.spec().clone()))
        });
        specs.collect()
    }

    /// Returns a registry without the tools of these names.
    #[must_use]
    pub fn without_tools(&self, names: &[String]) -> Self {
        let mut registry = self.clone();
        registry.tools.retain(|tool| !names.contains(&tool.spec().name));
        registry.alternatives.retain(|tool| !names.contains(&tool.spec().name));
        registry
    }

    /// Adds a tool if its name is not taken.
    pub fn add_tool(&mut self, tool: Arc<dyn Tool>) -> Result<(), ToolNameTaken> {
        let name = &tool.spec().name;
        if self.find_tool(name).is_some() {
            return Err(ToolNameTaken(name.clone()));
        }
        self.tools.push(tool);
        Ok(())
    }

    /// Returns a call with its arguments as its tool reads them. A call that [`Self::run_call`] would reject is
    /// unchanged. A command that only applies a patch becomes a call of `apply_patch`, whose access can be evaluated.
    pub fn resolve_call(&self, call: &ToolCall) -> ToolCall {
        let checked = self.find_tool(&call.name).and_then(|tool| check_arguments(tool, call).ok());
        let arguments = match (&call.arguments, checked) {
            (ToolArguments::Valid(_), Some(value)) => ToolArguments::Valid(value),
            (ToolArguments::Repaired { doubt, .. }, Some(value)) => {
                ToolArguments::Repaired { value, doubt: *doubt }
            }
            (arguments, _) => arguments.clone(),
        };
        let resolved = ToolCall { arguments, ..call.clone() };
        let patch_call = to_patch_call(&resolved).filter(|call| self.find_tool(&call.name).is_some());
        patch_call.unwrap_or(resolved)
    }

    /// Returns the call info. A call that [`Self::run_call`] would reject accesses nothing.
    pub fn call_info(&self, call: &ToolCall, workspace: &Workspace) -> ToolCallInfo {
        let Some(tool) = self.find_tool(&call.name) else {
            let title = crate::title::to_title(&call.name);
            let title = if title.is_empty() { UNNAMED_TITLE.to_owned() } else { title };
            return ToolCallInfo {
                title,
                kind: ToolKind::Other,
                locations: Vec::new(),
                access: ToolAccess::Nothing,
            };
        };
        match check_arguments(tool, call) {
            Ok(arguments) => tool.call_info(&arguments, workspace),
            Err(_) => {
                let info = tool.call_info(&call.arguments.to_object(), workspace);
                ToolCallInfo {
                    title: crate::title::to_title(&call.name),
                    access: ToolAccess::Nothing,
                    ..info
                }
            }
        }
    }

    /// The working directory of a call whose output such a client shows live.
    pub fn live_output_dir(
        &self,
        call: &ToolCall,
        workspace: &Workspace,
        client: AcpClientCapabilities,
    ) -> Option<PathBuf> {
        let tool = self.find_tool(&call.name)?;
        let arguments = check_arguments(tool, call).ok()?;
        tool.live_output_dir(&arguments, workspace, client)
    }

    /// Whether a call runs a command in a terminal of such a client.
    pub fn runs_in_client(
        &self,
        call: &ToolCall,
        workspace: &Workspace,
        client: AcpClientCapabilities,
    ) -> bool {
        let Some(tool) = self.find_tool(&call.name) else { return false };
        check_arguments(tool, call).is_ok_and(|arguments| tool.runs_in_client(&arguments, workspace, client))
    }

    /// Returns what a call would change; `Err` is the result of a call that cannot run.
    pub async fn preview_call(
        &self,
        call: &ToolCall,
        cx: ToolCx<'_>,
    ) -> Result<Vec<ToolCallContent>, ToolResult> {
        let Some(tool) = self.find_tool(&call.name) else { return Ok(Vec::new()) };
        match check_arguments(tool, call) {
            Ok(arguments) => tool.preview(&arguments, cx).await,
            Err(ToolError(message)) => Err(ToolResult::failure(message)),
        }
    }

    /// Runs a call. Every error is a result that says what to do about it.
    pub async fn run_call(&self, call: &ToolCall, cx: ToolCx<'_>) -> ToolResult {
        if cx.cancel.is_cancelled() {
            return ToolResult::failure(CANCELLED);
        }
        let Some(tool) = self.find_tool(&call.name) else {
            let names: Vec<_> = self.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
            let problem = match call.name.trim() {
                "" => "the call has no tool name; send it again with one".to_owned(),
                _ => format!("there is no tool `{}`", call.name),
            };
            return ToolResult::failure(format!("{problem}; the tools are: {}", names.join(", ")));
        };
        let checked = check_arguments(tool, call);
        log_arguments(tool, &call.arguments, checked.is_ok());
        match checked {
            Ok(arguments) => tool.run(&arguments, cx).await,
            Err(ToolError(message)) => ToolResult::failure(message),
        }
    }

    /// Fetches an image from an address that `web_fetch` may fetch. `Err` is the reason for a failure.
    pub async fn fetch_image(&self, url: &str, cancel: &CancellationToken) -> Result<ContentPart, String> {
        self.web.fetch_image(url, cancel).await.map_err(|ToolError(reason)| reason)
    }

    /// Whether there is a tool with this name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.find_tool(name).is_some()
    }

    fn find_tool(&self, name: &str) -> Option<&dyn Tool> {
        self.all_tools().find(|tool| tool.spec().name == name).map(AsRef::as_ref)
    }
}

/// Logs the syntax errors of a model's arguments, without their content.
fn log_arguments(tool: &dyn Tool, arguments: &ToolArguments, is_accepted: bool) {
    let name = tool.spec().name.as_str();
    match (arguments, is_accepted) {
        (ToolArguments::Valid(_), true) => {}
        (ToolArguments::Valid(_), false) => {
            tracing::warn!(tool = name, "rejected arguments that do not match the tool's schema");
        }
        (ToolArguments::Repaired { doubt: None, .. }, true) => {
            tracing::warn!(tool = name, "malformed arguments were repaired");
        }
        (ToolArguments::Repaired { doubt: Some(doubt), .. }, true) => {
            tracing::warn!(tool = name, doubt = ?doubt.kind, "malformed arguments were repaired, perhaps not as meant");
        }
        (ToolArguments::Repaired { doubt: None, .. }, false) => {
            tracing::warn!(tool = name, "rejected repaired arguments that do not match the tool's schema");
        }
        (ToolArguments::Repaired { doubt: Some(doubt), .. }, false) => {
            tracing::warn!(tool = name, doubt = ?doubt.kind, "rejected malformed arguments");
        }
        (ToolArguments::Unreadable { .. }, _) => {
            tracing::warn!(tool = name, "rejected unreadable arguments");
        }
    }
}

/// Returns the arguments as the tool expects them, or why the call may not run.
fn check_arguments(tool: &dyn Tool, call: &ToolCall) -> Result<Map<String, Value>, ToolError> {
    let refuse = |reason: &dyn fmt::Display| ToolError(format!("`{}` was not run: {reason}", call.name));
    let arguments = match &call.arguments {
        // A truncated path or pattern reads the wrong thing at worst; a truncated file or command does harm.
        ToolArguments::Repaired { doubt: Some(doubt), .. } if !tool.is_read_only() => {
            let advice = doubt.advice();
            return Err(refuse(&format_args!("its arguments may be incomplete: {doubt}; {advice}")));
        }
        ToolArguments::Valid(value) | ToolArguments::Repaired { value, .. } => value,
        ToolArguments::Unreadable { reason } => return Err(refuse(reason)),
    };
    let ToolSpec { name, parameters, .. } = tool.spec();
    let checked = match tool.server_name() {
        None => repair::resolve_names(name, parameters, arguments)
            .and_then(|arguments| repair::check_against_schema(parameters, &arguments)),
        // A server handles unknown argument names itself.
        Some(_) => repair::check_against_schema(parameters, arguments),
    };
    checked.map_err(|message| refuse(&message))
}
