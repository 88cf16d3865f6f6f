//! Builds the agent runtime from the configuration and serves it.

mod stdio;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crow_acp::{AgentInfo, AgentLauncher, CloseReason};
use crow_agent::{AgentConfig, AgentRuntime};
use crow_children::OWN_AGENT;
use crow_core::{AgentServer, AgentTransport, Failure, FailureKind, TurnLimits};
use crow_process::{SandboxDefaults, SandboxWrapper};
use crow_tools::{BuiltinToolConfig, ToolRegistry};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::RunOverrides,
    database::store_options,
    failure::{CliError, CliExitCode},
    privacy,
    settings::{ConfigWarningKind, Environment, Settings},
    socket::{self, ListenAddress, ListenOptions},
    token::ServerToken,
};

/// The version the agent reports over ACP.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the agent's name, version and capabilities for `initialize`.
pub(crate) fn agent_info() -> AgentInfo {
    AgentInfo { version: VERSION, program: std::env::current_exe().ok(), reads_images: true }
}

/// The source of the configuration, which is read when the first session needs it.
#[derive(Debug, Clone)]
pub(crate) struct ConfigSource {
    pub(crate) dir: PathBuf,
    pub(crate) env: Arc<Environment>,
    /// Options of this run that override the configuration.
    pub(crate) overrides: RunOverrides,
}

impl ConfigSource {
    /// Returns a source without overrides.
    pub(crate) fn new(dir: PathBuf, env: Environment) -> Self {
        Self { dir, env: Arc::new(env), overrides: RunOverrides::default() }
    }

    /// Returns the agent info with the image support that this configuration implies.
    fn info(&self) -> AgentInfo {
        AgentInfo { reads_images: Settings::reads_images(&self.dir, &self.env), ..agent_info() }
    }

    /// Reads the configuration and opens the database.
    pub(crate) async fn load_runtime(self) -> Result<AgentRuntime, Failure> {
        let loading = tokio::task::spawn_blocking(move || {
            let (mut settings, warnings) = Settings::load(&self.dir, &self.env)?;
            let overrides = self.overrides;
            settings.rules.allow.extend(overrides.allow);
            settings.requests_max = overrides.max_turns.unwrap_or(settings.requests_max);
            settings.system_prompt_addition = overrides.append_system_prompt;
            for warning in warnings.iter().filter(|warning| warning.kind == ConfigWarningKind::Suspicious) {
                tracing::warn!("{warning}");
            }
            Ok(settings)
        });
        let settings = match loading.await {
            Ok(Ok(settings)) => settings,
            Ok(Err(error)) => return Err(config_failure(&error)),
            Err(error) => return Err(Failure::new(FailureKind::Internal, error.to_string())),
        };
        let warning = privacy::make_all_private(&settings);
        build_runtime(settings, warning.iter().map(|warning| crow_core::to_sentence(warning)).collect())
    }
}

/// Builds the runtime that all sessions share; the first session shows the notices.
pub(crate) fn build_runtime(settings: Settings, notices: Vec<String>) -> Result<AgentRuntime, Failure> {
    crate::log::enable_session_logs(settings.session_logs);
    let store = store_options().open_in_background(&settings.database);
    let store = store.map_err(|error| Failure::new(FailureKind::Store, error.to_string()))?;
    let config_file = settings.dir.join(crate::settings::CONFIG_FILE);
    let setup_hint = format!(
        "No model is configured. Run `crow-cli init`, or add a provider and a model to {}.",
        config_file.display()
    );
    // Links are resolved, as they are in the paths that permissions are evaluated for.
    let config_dir = crow_files::resolve_links(&settings.dir);
    let spill_dir = spill_dir(&settings);
    let tool_config = builtin_tool_config(&settings);
    let launcher = AgentLauncher::new(tool_config.sandbox.clone());
    let tools = ToolRegistry::with_builtin_tools(tool_config);
    let own_agent = own_agent(&settings);
    let agent_config = AgentConfig {
        models: settings.models,
        mode: settings.mode,
        rules: settings.rules,
        sandbox: settings.sandbox,
        network: settings.network,
        shell_name: settings.shell.name().to_owned(),
        search_path: settings.search_path,
        limits: TurnLimits {
            requests_max: settings.requests_max,
            compact_tokens_max: settings.compact_tokens_max,
        },
        tools_max: settings.tools_max,
        secret_variables: settings.secret_variables,
        prompts_dir: settings.prompts_dir,
        skills_dir: settings.skills_dir,
        system_prompt_path: settings.system_prompt_path,
        system_prompt_addition: settings.system_prompt_addition,
        workflow: settings.workflow,
        mcp_servers: settings.mcp_servers,
        mcp_auth_dir: settings.dir.join(crate::settings::MCP_AUTH_DIR),
        hooks: settings.hooks,
        repositories: Arc::new(settings.repositories),
        spill_dir,
        agent_servers: settings.agent_servers,
        own_agent,
        tree_limits: settings.tree_limits,
        depth: settings.depth,
        worktrees_dir: settings.worktrees_dir,
        legacy_worktrees_dir: settings.legacy_worktrees_dir,
        recordings_dir: settings.recordings_dir,
        config_dir,
        db_uri: settings.database.to_uri(),
        setup_hint,
        notices,
    };
    Ok(AgentRuntime::new(agent_config, store, tools, launcher))
}

/// Returns the command that starts this program as an agent with the same configuration.
fn own_agent(settings: &Settings) -> Option<AgentServer> {
    let command = agent_info().program?.to_str()?.to_owned();
    let dir = settings.dir.to_str()?.to_owned();
    let args = vec!["-d".to_owned(), dir, "acp".to_owned()];
    let reach = AgentTransport::Program { command, args, env: Vec::new() };
    Some(AgentServer { name: OWN_AGENT.to_owned(), transport: reach, cwd: None })
}

/// Returns the configuration of the built-in tools.
pub(crate) fn builtin_tool_config(settings: &Settings) -> BuiltinToolConfig {
    BuiltinToolConfig {
        spill_dir: spill_dir(settings),
        terminals: settings.terminals,
        shell: settings.shell.clone(),
        sandbox: sandbox_wrapper(settings),
        soft_limit: None,
        web: settings.web.clone(),
    }
}

/// Returns the wrapper that supervises and confines child processes.
pub(crate) fn sandbox_wrapper(settings: &Settings) -> Option<SandboxWrapper> {
    let exe = agent_info().program?;
    let protected =
        [crow_files::resolve_links(&settings.dir)].into_iter().chain(settings.git_stores.clone()).collect();
    let defaults = SandboxDefaults {
        network: settings.network,
        writable: settings.writable.clone(),
        caches: settings.caches.clone(),
        protected,
        home: settings.home.clone(),
        runtime_dir: settings.runtime_dir.clone(),
    };
    Some(SandboxWrapper::new(exe, defaults))
}

/// Directory for tool output that is too long for the model.
pub(crate) fn spill_dir(settings: &Settings) -> PathBuf {
    crow_files::resolve_links(&settings.dir).join("spill")
}

fn config_failure(error: &crate::settings::ConfigError) -> Failure {
    let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
    Failure::new(FailureKind::Config, format!("{error}{hint}"))
}

/// Builds a single-threaded runtime, so that no chunk has to wake another thread.
pub(crate) fn tokio_runtime() -> Result<Runtime, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime
        .map_err(|error| CliError::new(CliExitCode::Failed, format!("could not start the runtime: {error}")))
}

/// Serves an editor over stdin and stdout, or clients over WebSocket and HTTP at an address.
pub(crate) fn serve_agent(
    source: ConfigSource,
    listen_address: Option<&ListenAddress>,
    token_file: Option<&Path>,
) -> Result<(), CliError> {
    match listen_address {
        Some(listen_address) => serve_listener(source, listen_address, token_file),
        None => serve_stdio(source),
    }
}

/// Serves an editor over stdin and stdout until it closes stdin and has read what was sent to it.
fn serve_stdio(source: ConfigSource) -> Result<(), CliError> {
    let failed = |error: io::Error| {
        CliError::new(CliExitCode::Failed, format!("could not use stdin and stdout: {error}"))
    };
    let (transport, writer) = stdio::open_stdio().map_err(failed)?;
    let watch = writer.watch();
    let runtime = tokio_runtime()?;
    let info = source.info();
    let result = runtime.block_on(crow_agent::serve_sessions(
        transport,
        info,
        watch.wait_for_stop(crow_process::wait_for_stop_signal()),
        move || source.clone().load_runtime(),
    ));
    runtime.shutdown_background();
    if !writer.finish() {
        return Err(CliError::new(CliExitCode::Failed, "could not write the last messages"));
    }
    result.map_err(|error| CliError::new(CliExitCode::Failed, error.to_string()))
}

/// Serves clients at an address, each with its own agent, until the process is told to stop.
fn serve_listener(
    source: ConfigSource,
    listen_address: &ListenAddress,
    token_file: Option<&Path>,
) -> Result<(), CliError> {
    let listen_options =
        ListenOptions::with_token(ServerToken::load_or_create(&source.dir, "acp", token_file)?);
    let runtime = tokio_runtime()?;
    let result =
        runtime.block_on(socket::serve_clients(listen_address, &listen_options, move |transport, cancel| {
            let source = source.clone();
            async move {
                let info_source = source.clone();
                let info = tokio::task::spawn_blocking(move || info_source.info())
                    .await
                    .unwrap_or_else(|_| agent_info());
                let load = move || source.clone().load_runtime();
                let served =
                    crow_agent::serve_sessions(transport, info, cancel.clone().cancelled_owned(), load).await;
                if let Err(error) = served {
                    tracing::info!(%error, "the connection to a client was lost");
                }
                if cancel.is_cancelled() { CloseReason::GoingAway } else { CloseReason::Normal }
            }
        }));
    runtime.shutdown_background();
    result
}

/// Waits for a server to end, and cancels `stop` on a stop signal or Ctrl-C.
pub(crate) async fn serve_until_stopped(
    mut serving: impl Future<Output = Result<(), CliError>> + Unpin,
    stop: &CancellationToken,
) -> Result<(), CliError> {
    let is_interrupted = tokio::select! {
        // Signal handlers are installed before the address is announced.
        biased;
        () = crow_process::wait_for_stop_signal() => false,
        ctrl_c = tokio::signal::ctrl_c() => ctrl_c.is_ok(),
        served = &mut serving => return served,
    };
    stop.cancel();
    serving.await?;
    if is_interrupted { Err(CliError::without_message(CliExitCode::Interrupted)) } else { Ok(()) }
}
