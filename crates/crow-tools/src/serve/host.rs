//! One client's view of the tools: what it lists, what it calls, what it is asked.

use std::{
    convert::Infallible,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use crow_core::{
    Approval, Arguments, Call, CallId, Confinement, Content, Facets, Grants, SandboxSupport, Touch, Verdict,
    link,
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

use super::{Offer, answer, ask::Asking, law};
use crate::{PermissionPolicy, PolicySources, Progress, ToolCx, Workspace, tool::title};

/// A client that says it has roots tells them at once.
const ROOTS_WAIT_MAX: Duration = Duration::from_secs(10);

/// Folders a client may add; every path is compared with each.
const ROOTS_MAX: usize = 64;

/// The end of what a call shows so far: a few lines under a spinner.
const PROGRESS_CHARS_MAX: usize = 1000;

/// Whose folders a client works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Folders {
    /// Ours, and those it names itself: it started us, and could have read them anyway.
    OfTheClient,
    /// Ours only.
    Ours,
}

#[derive(Clone)]
pub(super) struct Host {
    offer: Arc<Offer>,
    folders: Folders,
    workspace: Arc<RwLock<Arc<Workspace>>>,
}

impl Host {
    pub(super) fn new(offer: Arc<Offer>, folders: Folders) -> Self {
        let workspace = Workspace::new(offer.cwd.clone(), &[], offer.secret_variables.clone());
        Self { offer, folders, workspace: Arc::new(RwLock::new(Arc::new(workspace))) }
    }

    fn workspace(&self) -> Arc<Workspace> {
        self.workspace.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the client for its folders and works in them from then on.
    #[expect(deprecated, reason = "what today's clients name their folders with")]
    async fn follow_roots(&self, peer: &Peer<RoleServer>) {
        let has_roots = peer.peer_info().is_some_and(|client| client.capabilities.roots.is_some());
        if self.folders != Folders::OfTheClient || !has_roots {
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
            .filter_map(|root| link::file(&root.uri))
            .map(|(path, _)| PathBuf::from(path));
        let paths: Vec<PathBuf> = paths.filter(|path| path.is_absolute()).collect();
        let workspace = Workspace::new(self.offer.cwd.clone(), &paths, self.offer.secret_variables.clone());
        if workspace.roots() != self.workspace().roots() {
            *self.workspace.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(workspace);
        }
    }

    /// Finds out whether a call may run, and how it is held.
    async fn permit(
        &self,
        workspace: &Workspace,
        (call, facets): (&Call, &Facets),
        asking: &Asking<'_>,
    ) -> Result<Confinement, CallToolResponse> {
        let support = match &facets.touch {
            Touch::Runs(_) => self.offer.tools.sandbox_support().await,
            Touch::Nothing | Touch::Reads(_) | Touch::Writes(_) => SandboxSupport::Full,
            Touch::Calls { .. } | Touch::Fetches { .. } | Touch::Searches => SandboxSupport::Full,
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
        let (mode, grants) = (law::mode(self.offer.mode, &facets.touch), Grants::default());
        let verdict = policy.evaluate(mode, &grants, &call.name, facets);
        let approval = match verdict {
            Verdict::Allow => policy.approval(mode, &grants, &call.name, facets),
            Verdict::Ask { .. } | Verdict::Deny(_) => Approval::Person,
        };
        let confinement = policy.confinement(mode, approval);
        let why = match verdict {
            Verdict::Allow => return Ok(confinement),
            Verdict::Deny(why) => return Err(answer::refusal(&format!("not run: {why}")).into()),
            Verdict::Ask { why, .. } => {
                why.unwrap_or_else(|| "it leads out of the folders it may work in".into())
            }
        };
        asking.ask(&facets.title, &why).await.map(|()| confinement)
    }

    async fn run(&self, call: &Call, asking: Asking<'_>) -> CallToolResponse {
        let context = asking.context;
        let workspace = self.workspace();
        let facets = self.offer.tools.facets(call, &workspace);
        let confinement = match self.permit(&workspace, (call, &facets), &asking).await {
            // A link may lead elsewhere by now.
            Ok(_) if self.offer.tools.facets(call, &workspace).touch != facets.touch => {
                return answer::refusal("not run: what it would touch is not what was allowed any longer")
                    .into();
            }
            Ok(confinement) => confinement,
            Err(instead) => return instead,
        };
        let (told, texts) = watch::channel(String::new());
        let progress = |progress: Progress| {
            if let Progress::Shows(content) = progress {
                told.send_replace(shown(&content));
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
        let running = self.offer.tools.run(call, cx);
        let outcome = match context.meta.get_progress_token() {
            None => running.await,
            Some(token) => {
                tokio::select! {
                    outcome = running => outcome,
                    never = tell(&context.peer, token, texts) => match never {},
                }
            }
        };
        answer::result(outcome).into()
    }
}

/// Passes on how far a call is, newest first; ends with the call.
async fn tell(
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
fn shown(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|content| match content {
        Content::Text(text) => Some(text.as_str()),
        Content::Image { .. } | Content::Diff { .. } => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let n_over = text.chars().count().saturating_sub(PROGRESS_CHARS_MAX);
    text.chars().skip(n_over).collect()
}

impl ServerHandler for Host {
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
        let tools = self.offer.tools.specs().into_iter().map(|spec| {
            let kind = self.offer.tools.facets(&call_of(&spec.name, Map::new()), &workspace).kind;
            answer::tool(&spec, kind)
        });
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = call_of(&request.name, request.arguments.unwrap_or_default());
        if !self.offer.tools.specs().iter().any(|spec| spec.name == call.name) {
            return Err(ErrorData::invalid_params(format!("there is no tool {}", title(&call.name)), None));
        }
        let asking = Asking { context: &context, answers: request.input_responses.unwrap_or_default() };
        Ok(self.run(&call, asking).await)
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
            unknown => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, title(unknown), None)),
        };
        Err(ErrorData::invalid_params(format!("{} takes {takes}", request.method), None))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.follow_roots(&context.peer).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.follow_roots(&context.peer).await;
    }
}

/// A call as our own tools know one; it belongs to no conversation.
fn call_of(name: &str, arguments: Map<String, Value>) -> Call {
    Call {
        id: CallId::at(0, 0),
        provider_id: String::new(),
        name: name.to_owned(),
        arguments: Arguments::Valid(arguments),
    }
}
