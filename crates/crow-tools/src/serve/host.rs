//! One client's view of the tools: what it lists, what it calls, what it is asked.

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

use super::{McpServeConfig, answer, ask::PermissionElicitation, law};
use crate::{PermissionPolicy, PolicySources, ToolCx, ToolProgress, Workspace, tool::to_title};

/// A client that says it has roots tells them at once.
const ROOTS_WAIT_MAX: Duration = Duration::from_secs(10);

/// Folders a client may add; every path is compared with each.
const ROOTS_MAX: usize = 64;

/// The end of what a call shows so far: a few lines under a spinner.
const PROGRESS_CHARS_MAX: usize = 1000;

/// Whose folders a client works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RootsPolicy {
    /// Ours, and those it names itself: it started us, and could have read them anyway.
    OfTheClient,
    /// Ours only.
    Ours,
}

#[derive(Clone)]
pub(super) struct ToolServerHandler {
    offer: Arc<McpServeConfig>,
    folders: RootsPolicy,
    workspace: Arc<RwLock<Arc<Workspace>>>,
}

impl ToolServerHandler {
    pub(super) fn new(offer: Arc<McpServeConfig>, folders: RootsPolicy) -> Self {
        let workspace = Workspace::new(offer.cwd.clone(), &[], offer.secret_variables.clone());
        Self { offer, folders, workspace: Arc::new(RwLock::new(Arc::new(workspace))) }
    }

    fn workspace(&self) -> Arc<Workspace> {
        self.workspace.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the client for its folders and works in them from then on.
    #[expect(deprecated, reason = "what today's clients name their folders with")]
    async fn update_roots(&self, peer: &Peer<RoleServer>) {
        let has_roots = peer.peer_info().is_some_and(|client| client.capabilities.roots.is_some());
        if self.folders != RootsPolicy::OfTheClient || !has_roots {
            return;
        }
        let asked = tokio::time::timeout(ROOTS_WAIT_MAX, peer.list_roots());
        let roots = match asked.await {
            Ok(Ok(listed)) => listed.roots,
            Ok(Err(error)) => return tracing::info!(%error, "the client does not tell its roots"),
            Err(_) => return tracing::info!("the client does not tell its roots in time"),
        };
        let paths = roots
            .iter()
            .take(ROOTS_MAX)
            .filter_map(|root| link::parse_file_link(&root.uri))
            .map(|(path, _)| PathBuf::from(path));
        let paths: Vec<PathBuf> = paths.filter(|path| path.is_absolute()).collect();
        let workspace = Workspace::new(self.offer.cwd.clone(), &paths, self.offer.secret_variables.clone());
        if workspace.roots() != self.workspace().roots() {
            *self.workspace.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(workspace);
        }
    }

    /// Finds out whether a call may run, and how it is held.
    async fn check_permission(
        &self,
        workspace: &Workspace,
        (call, facets): (&ToolCall, &ToolCallInfo),
        asking: &PermissionElicitation<'_>,
    ) -> Result<Confinement, CallToolResponse> {
        let support = match &facets.touch {
            ToolAccess::Runs(_) => self.offer.tools.sandbox_support().await,
            ToolAccess::Nothing | ToolAccess::Reads(_) | ToolAccess::Writes(_) => SandboxSupport::Full,
            ToolAccess::Calls { .. } | ToolAccess::Fetches { .. } | ToolAccess::Searches => {
                SandboxSupport::Full
            }
        };
        let policy = PermissionPolicy::new(PolicySources {
            workspace,
            cwd: None,
            readable: self.offer.readable.clone(),
            config_dir: &self.offer.config_dir,
            rules: self.offer.rules.clone(),
            sandbox: self.offer.sandbox,
            support,
        });
        let (mode, grants) = (law::effective_mode(self.offer.mode, &facets.touch), GrantSet::default());
        let verdict = policy.evaluate(mode, &grants, &call.name, facets);
        let approval = match verdict {
            PermissionDecision::Allow => policy.approval(mode, &grants, &call.name, facets),
            PermissionDecision::Ask { .. } | PermissionDecision::Deny(_) => ApprovalSource::Person,
        };
        let confinement = policy.confinement(mode, approval);
        let why = match verdict {
            PermissionDecision::Allow => return Ok(confinement),
            PermissionDecision::Deny(why) => {
                return Err(answer::error_result(&format!("not run: {why}")).into());
            }
            PermissionDecision::Ask { why, .. } => {
                why.unwrap_or_else(|| "it leads out of the folders it may work in".into())
            }
        };
        asking.request_permission(&facets.title, &why).await.map(|()| confinement)
    }

    async fn run_call(&self, call: &ToolCall, asking: PermissionElicitation<'_>) -> CallToolResponse {
        let context = asking.context;
        let workspace = self.workspace();
        let facets = self.offer.tools.call_info(call, &workspace);
        let confinement = match self.check_permission(&workspace, (call, &facets), &asking).await {
            // A link may lead elsewhere by now.
            Ok(_) if self.offer.tools.call_info(call, &workspace).touch != facets.touch => {
                return answer::error_result(
                    "not run: what it would touch is not what was allowed any longer",
                )
                .into();
            }
            Ok(confinement) => confinement,
            Err(instead) => return instead,
        };
        let (told, texts) = watch::channel(String::new());
        let progress = |progress: ToolProgress| {
            if let ToolProgress::Shows(content) = progress {
                told.send_replace(render_progress(&content));
            }
        };
        let cx = ToolCx {
            workspace: &workspace,
            editor: None,
            touch: &facets.touch,
            call: None,
            confinement,
            cut: &context.ct,
            progress: &progress,
            keeper: None,
        };
        let running = self.offer.tools.run_call(call, cx);
        let outcome = match context.meta.get_progress_token() {
            None => running.await,
            Some(token) => {
                tokio::select! {
                    outcome = running => outcome,
                    never = forward_progress(&context.peer, token, texts) => match never {},
                }
            }
        };
        answer::to_call_result(outcome).into()
    }
}

/// Passes on how far a call is, newest first; ends with the call.
async fn forward_progress(
    peer: &Peer<RoleServer>,
    token: ProgressToken,
    mut texts: watch::Receiver<String>,
) -> Infallible {
    let mut n_told = 0.0;
    while texts.changed().await.is_ok() {
        n_told += 1.0;
        let text = texts.borrow_and_update().clone();
        let news = ProgressNotificationParam::new(token.clone(), n_told).with_message(text);
        if let Err(error) = peer.notify_progress(news).await {
            tracing::debug!(%error, "could not tell a client how far a call is");
        }
    }
    std::future::pending().await
}

/// The end of what a call shows.
fn render_progress(content: &[ToolCallContent]) -> String {
    let texts = content.iter().filter_map(|content| match content {
        ToolCallContent::Text(text) => Some(text.as_str()),
        ToolCallContent::Image { .. } | ToolCallContent::Diff { .. } => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let n_over = text.chars().count().saturating_sub(PROGRESS_CHARS_MAX);
    text.chars().skip(n_over).collect()
}

impl ServerHandler for ToolServerHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("crow", env!("CARGO_PKG_VERSION")))
            .with_instructions(format!("Tools for the files and commands of {}.", self.offer.cwd.display()))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let workspace = self.workspace();
        let tools = self.offer.tools.tool_specs().into_iter().map(|spec| {
            let kind = self.offer.tools.call_info(&build_call(&spec.name, Map::new()), &workspace).kind;
            answer::to_mcp_tool(&spec, kind)
        });
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = build_call(&request.name, request.arguments.unwrap_or_default());
        if !self.offer.tools.tool_specs().iter().any(|spec| spec.name == call.name) {
            return Err(ErrorData::invalid_params(
                format!("there is no tool {}", to_title(&call.name)),
                None,
            ));
        }
        let asking =
            PermissionElicitation { context: &context, answers: request.input_responses.unwrap_or_default() };
        Ok(self.run_call(&call, asking).await)
    }

    /// Refuses what the SDK knows no type for: an unknown method, or a known one with parameters it does not take.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let takes = match request.method.as_str() {
            "tools/call" => "the name of a tool and, as `arguments`, an object",
            "tools/list" => "nothing but a cursor",
            "ping" => "nothing",
            "initialize" => "a protocol version, capabilities and the client's name",
            unknown => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, to_title(unknown), None)),
        };
        Err(ErrorData::invalid_params(format!("{} takes {takes}", request.method), None))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.update_roots(&context.peer).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.update_roots(&context.peer).await;
    }
}

/// A call as our own tools know one; it belongs to no conversation.
fn build_call(name: &str, arguments: Map<String, Value>) -> ToolCall {
    ToolCall {
        id: CallId::from_position(0, 0),
        provider_id: String::new(),
        name: name.to_owned(),
        arguments: ToolArguments::Valid(arguments),
    }
}
