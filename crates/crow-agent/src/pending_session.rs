//! A new session while it is being stored, so that another process can open it.

use std::sync::Arc;

use crow_acp::SessionLocation;
use crow_core::{Failure, FailureKind, SessionId};
use crow_project::RenderedPrompt;
use crow_store::NewSession;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::failures::store_failure;
use crate::runtime::AgentRuntime;
use crate::session_settings::SessionSettings;
use crate::{location, session_prompt};

/// The context of a new session, for its first request.
#[derive(Debug)]
pub(crate) struct NewSessionContext {
    pub(crate) system_prompt: String,
    pub(crate) directory_at_start: String,
}

/// A new session that is being stored.
#[derive(Debug)]
pub(crate) struct PendingSession {
    /// Returns the description of the session when it is stored.
    task: JoinHandle<Result<NewSessionContext, Failure>>,
    /// Cancelled when the session is stored, or storing it failed.
    settled: CancellationToken,
    /// The settings it is stored with; they may have changed since.
    initial_settings: SessionSettings,
}

impl PendingSession {
    pub(crate) fn start(
        runtime: &Arc<AgentRuntime>,
        id: &SessionId,
        location: &SessionLocation,
        initial_settings: SessionSettings,
    ) -> Self {
        let (runtime, id, location, settings_at_start) =
            (runtime.clone(), id.clone(), location.clone(), initial_settings.clone());
        let settled = CancellationToken::new();
        let settled_guard = settled.clone().drop_guard();
        let task = tokio::spawn(async move {
            let _over = settled_guard;
            let has_core_tools = has_core_tools(&runtime, settings_at_start.model.as_deref());
            let RenderedPrompt { text: system_prompt, template } =
                render_prompt_blocking(&runtime, &id, location.clone(), has_core_tools).await?;
            let new = NewSession {
                cwd: location.cwd.display().to_string(),
                model: settings_at_start.model.unwrap_or_default(),
                mode: settings_at_start.mode,
                thought_level: settings_at_start.thought_level,
                system_prompt: system_prompt.clone(),
                parent: None,
                agent_type: None,
                now: clock::now(),
            };
            runtime.store.create_session(&id, new).await.map_err(store_failure)?;
            runtime.store.set_prompt_template(&id, template).await.map_err(store_failure)?;
            let workspace = location::session_workspace(&runtime, &location);
            let directory_at_start = location::describe_directory(&runtime, &workspace).await;
            Ok(NewSessionContext { system_prompt, directory_at_start })
        });
        Self { task, settled, initial_settings }
    }

    /// Waits until the session is stored or storing it failed. Rendering its prompt reads directories, and the disk may
    /// not respond.
    pub(crate) async fn wait_until_settled(&self) {
        self.settled.cancelled().await;
    }

    /// Waits until the session is stored, then stores changed settings; returns its context.
    pub(crate) async fn wait_until_stored(
        self,
        runtime: &AgentRuntime,
        id: &SessionId,
        current_settings: &watch::Receiver<SessionSettings>,
    ) -> Result<NewSessionContext, Failure> {
        let join_failure = |error: JoinError| Failure::new(FailureKind::Internal, error.to_string());
        let context = self.task.await.map_err(join_failure)??;
        let current_settings = current_settings.borrow().clone();
        if current_settings.mode != self.initial_settings.mode {
            runtime.store.set_mode(id, current_settings.mode).await.map_err(store_failure)?;
        }
        if current_settings.thought_level != self.initial_settings.thought_level {
            runtime
                .store
                .set_thought_level(id, current_settings.thought_level)
                .await
                .map_err(store_failure)?;
        }
        if let Some(model) =
            current_settings.model.filter(|model| self.initial_settings.model.as_ref() != Some(model))
        {
            runtime.store.set_model(id, &model).await.map_err(store_failure)?;
        }
        Ok(context)
    }
}

/// Whether a model gets the core tools; `None` is the default model.
pub(crate) fn has_core_tools(runtime: &AgentRuntime, model: Option<&str>) -> bool {
    runtime.find_model(model).is_ok_and(|model| model.gets_core_tools())
}

/// Renders a session's system prompt on a blocking thread.
pub(crate) async fn render_prompt_blocking(
    runtime: &AgentRuntime,
    id: &SessionId,
    location: SessionLocation,
    has_core_tools: bool,
) -> Result<RenderedPrompt, Failure> {
    let (config, id) = (runtime.config(), id.clone());
    let render = move || {
        // The first look at the time zone reads every directory of the zone database.
        let today = clock::today();
        session_prompt::render_system_prompt(&location, &id, &config, has_core_tools, &today)
    };
    let rendered = runtime.spawn_blocking(render).await;
    rendered.map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?
}
