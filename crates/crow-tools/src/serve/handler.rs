//! One client's session: its tool list, calls and roots.

use std::{
    convert::Infallible,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use crow_core::{
    ApprovalSource, CallId, Confinement, GrantSet, PermissionDecision, SandboxSupport, ToolAccess,
    ToolArguments, ToolCall, ToolCallContent, ToolCallInfo, link,
};
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, Implementation,
        ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken,
        ServerCapabilities, ServerConfig,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::{
    McpServeConfig, call_mode, call_schedule::ServedCallSchedule, convert, elicitation::PermissionElicitation,
};
use crate::{
    PermissionPolicy, PolicySources, ToolCx, ToolProgress, Workspace, title::to_title, tool_error::CANCELLED,
};

/// A client that has roots lists them immediately.
const ROOTS_WAIT_MAX: Duration = Duration::from_secs(10);

/// Directories a client may add; every path is compared with each.
const ROOTS_MAX: usize = 64;

/// The end of a call's output so far: a few lines.
const PROGRESS_CHARS_MAX: usize = 1000;

/// The roots that a client works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RootsPolicy {
    /// Ours, and those of the client: it started us, and could access them anyway.
    Client,
    Configured,
}

/// Handles the requests of one session. Clones share the workspace and the order of the calls.
#[derive(Clone)]
pub(super) struct ToolServerHandler {
    config: Arc<McpServeConfig>,
    roots_policy: RootsPolicy,
    workspace: Arc<RwLock<Arc<Workspace>>>,
    schedule: ServedCallSchedule,
}

impl ToolServerHandler {
    pub(super) fn new(config: Arc<McpServeConfig>, roots_policy: RootsPolicy) -> Self {
        let workspace = Workspace::new(config.cwd.clone(), &[], config.secret_variables.clone());
        let workspace = Arc::new(RwLock::new(Arc::new(workspace)));
        Self { config, roots_policy, workspace, schedule: ServedCallSchedule::new() }
    }

    fn workspace(&self) -> Arc<Workspace> {
        self.workspace.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Requests the client's roots and uses them from then on.
    #[expect(deprecated, reason = "what today's clients name their roots with")]
    async fn update_roots(&self, peer: &Peer<RoleServer>) {
        let has_roots = peer.peer_info().is_some_and(|client| client.capabilities.roots.is_some());
        if self.roots_policy != RootsPolicy::Client || !has_roots {
            return;
        }
        let roots_request = tokio::time::timeout(ROOTS_WAIT_MAX, peer.list_roots());
        let roots = match roots_request.await {
            Ok(Ok(listed)) => listed.roots,
            Ok(Err(error)) => return tracing::info!(%error, "the client did not list its roots"),
            Err(_) => return tracing::info!("the client did not list its roots in time"),
        };
        let paths = roots
            .iter()
            .take(ROOTS_MAX)
            .filter_map(|root| link::parse_file_link(&root.uri))
            .map(|(path, _)| PathBuf::from(path));
        let paths: Vec<PathBuf> = paths.filter(|path| path.is_absolute()).collect();
        let workspace = Workspace::new(self.config.cwd.clone(), &paths, self.config.secret_variables.clone());
        if workspace.roots() != self.workspace().roots() {
            *self.workspace.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(workspace);
        }
    }

    /// Checks whether a call may run, and returns its confinement.
    async fn check_permission(
        &self,
        workspace: &Workspace,
        call: &ToolCall,
        info: &ToolCallInfo,
        elicitation: &PermissionElicitation<'_>,
    ) -> Result<Confinement, CallToolResponse> {
        let support = match &info.access {
            ToolAccess::Runs(_) => self.config.tools.sandbox_support().await,
            ToolAccess::Nothing | ToolAccess::Reads(_) | ToolAccess::Writes(_) => SandboxSupport::Full,
            ToolAccess::Calls { .. } | ToolAccess::Fetches { .. } | ToolAccess::Searches => {
                SandboxSupport::Full
            }
        };
        let policy = self.policy(workspace, support);
        let (mode, grants) = (call_mode::effective_mode(self.config.mode, &info.access), GrantSet::default());
        let decision = policy.evaluate(mode, &grants, &call.name, info);
        let approval = match decision {
            PermissionDecision::Allow => policy.approval(mode, &grants, &call.name, info),
            PermissionDecision::Ask { .. } | PermissionDecision::Deny(_) => ApprovalSource::User,
        };
        let confinement = policy.confinement(mode, approval);
        let reason = match decision {
            PermissionDecision::Allow => return Ok(confinement),
            PermissionDecision::Deny(reason) => {
                return Err(convert::error_result(&format!("not run: {reason}")).into());
            }
            PermissionDecision::Ask { reason, .. } => {
                reason.unwrap_or_else(|| "it leads out of the allowed directories".into())
            }
        };
        elicitation.request_permission(&info.title, &reason).await.map(|()| confinement)
    }

    fn policy(&self, workspace: &Workspace, support: SandboxSupport) -> PermissionPolicy {
        PermissionPolicy::new(PolicySources {
            workspace,
            cwd: None,
            readable: self.config.readable.clone(),
            config_dir: &self.config.config_dir,
            rules: self.config.rules.clone(),
            sandbox: self.config.sandbox,
            support,
        })
    }

    /// Whether the client may read the files that a call writes without a question.
    fn may_read_written(&self, workspace: &Workspace, access: &ToolAccess) -> bool {
        let ToolAccess::Writes(paths) = access else { return false };
        self.policy(workspace, SandboxSupport::Full).allows_reads(self.config.mode, paths)
    }

    async fn run_call(&self, call: &ToolCall, elicitation: PermissionElicitation<'_>) -> CallToolResponse {
        let context = elicitation.context;
        let workspace = self.workspace();
        let info = self.config.tools.call_info(call, &workspace);
        let confinement = match self.check_permission(&workspace, call, &info, &elicitation).await {
            Ok(confinement) => confinement,
            Err(response) => return response,
        };
        // Only now, so that a pending question delays no other call.
        let admission = async {
            match &info.access {
                // A command may be a client of this server, and wait for itself.
                ToolAccess::Runs(_) => None,
                ToolAccess::Nothing
                | ToolAccess::Reads(_)
                | ToolAccess::Writes(_)
                | ToolAccess::Calls { .. }
                | ToolAccess::Fetches { .. }
                | ToolAccess::Searches => Some(self.schedule.admit_call(&info).await),
            }
        };
        let Some(_permit) = context.ct.run_until_cancelled(admission).await else {
            return convert::error_result(CANCELLED).into();
        };
        // A link may lead elsewhere by now.
        if self.config.tools.call_info(call, &workspace).access != info.access {
            return convert::error_result("not run: its access has changed since it was allowed").into();
        }
        let (progress_sender, progress_receiver) = watch::channel(String::new());
        let progress = |progress: ToolProgress| {
            if let ToolProgress::Content(content) = progress {
                progress_sender.send_replace(render_progress(&content));
            }
        };
        let may_read_written = self.may_read_written(&workspace, &info.access);
        let cx = ToolCx {
            workspace: &workspace,
            editor: None,
            access: &info.access,
            may_read_written,
            call: None,
            confinement,
            cancel: &context.ct,
            progress: &progress,
            undo_recorder: None,
            mcp_session: None,
        };
        let call_future = self.config.tools.run_call(call, cx);
        let result = match context.meta.get_progress_token() {
            None => call_future.await,
            Some(token) => {
                tokio::select! {
                    result = call_future => result,
                    never = forward_progress(&context.peer, token, progress_receiver) => match never {},
                }
            }
        };
        convert::to_call_result(result).into()
    }
}

/// Forwards a call's progress, latest first; ends with the call.
async fn forward_progress(
    peer: &Peer<RoleServer>,
    token: ProgressToken,
    mut progress_receiver: watch::Receiver<String>,
) -> Infallible {
    let mut n_sent = 0.0;
    while progress_receiver.changed().await.is_ok() {
        n_sent += 1.0;
        let text = progress_receiver.borrow_and_update().clone();
        let notification = ProgressNotificationParam::new(token.clone(), n_sent).with_message(text);
        if let Err(error) = peer.notify_progress(notification).await {
            tracing::debug!(%error, "could not send a client the progress of a call");
        }
    }
    std::future::pending().await
}

/// Returns the end of a call's content.
fn render_progress(content: &[ToolCallContent]) -> String {
    let progress_receiver = content.iter().filter_map(|content| match content {
        ToolCallContent::Text(text) => Some(text.as_str()),
        ToolCallContent::Image { .. } | ToolCallContent::Diff { .. } => None,
    });
    let text = progress_receiver.collect::<Vec<_>>().join("\n");
    let n_skipped = text.chars().count().saturating_sub(PROGRESS_CHARS_MAX);
    text.chars().skip(n_skipped).collect()
}

impl ServerHandler for ToolServerHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("crow", env!("CARGO_PKG_VERSION")))
            .with_instructions(format!("Tools for the files and commands of {}.", self.config.cwd.display()))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let workspace = self.workspace();
        let tools = self.config.tools.tool_specs().into_iter().map(|spec| {
            let kind = self.config.tools.call_info(&build_call(&spec.name, Map::new()), &workspace).kind;
            convert::to_mcp_tool(&spec, kind)
        });
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = build_call(&request.name, request.arguments.unwrap_or_default());
        if !self.config.tools.tool_specs().iter().any(|spec| spec.name == call.name) {
            return Err(ErrorData::invalid_params(
                format!("there is no tool {}", to_title(&call.name)),
                None,
            ));
        }
        let elicitation =
            PermissionElicitation { context: &context, answers: request.input_responses.unwrap_or_default() };
        Ok(self.run_call(&call, elicitation).await)
    }

    /// Rejects requests that the SDK has no type for: an unknown method, or invalid parameters of a known one.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let expected = match request.method.as_str() {
            "tools/call" => "the name of a tool and, as `arguments`, an object",
            "tools/list" => "only a cursor",
            "ping" => "nothing",
            "initialize" => "a protocol version, capabilities and the client's name",
            unknown => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, to_title(unknown), None)),
        };
        Err(ErrorData::invalid_params(format!("{} takes {expected}", request.method), None))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.update_roots(&context.peer).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.update_roots(&context.peer).await;
    }
}

/// Builds a call outside any conversation.
fn build_call(name: &str, arguments: Map<String, Value>) -> ToolCall {
    ToolCall {
        id: CallId::from_position(0, 0),
        provider_id: String::new(),
        name: name.to_owned(),
        arguments: ToolArguments::Valid(arguments),
    }
}
