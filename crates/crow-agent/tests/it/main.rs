//! The agent in the process of the test: host, session, turn and calls with a scripted model, a client over pipes and a
//! store in a temporary directory.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod calls;
mod end_of_turn;
mod model_apis;
mod prefixes;
mod recordings;
mod sessions;
mod turns;

use std::io::{PipeReader, PipeWriter};
use std::path::Path;
use std::sync::Arc;

use crow_acp::{AgentInfo, AgentLauncher, stdio_transport};
use crow_agent::{AgentConfig, AgentRuntime, serve_sessions};
use crow_core::{
    Failure, Mode, NetworkAccess, PermissionRules, SandboxMode, ToolProfile, ToolSelection, TreeLimits,
    TurnLimits,
};
use crow_model::{ModelApi, ModelSettings, ProviderSettings, ToolCallMode};
use crow_project::{RepositoryConfig, RepositoryConfigReader, VariableExpansion};
use crow_store::{DatabaseAddress, Store};
use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::golden::{StartAgent, play};
use crow_tools::{BuiltinToolConfig, ToolRegistry};
use crow_workflow::WorkflowConfig;
use expect_test::Expect;
use tokio::task::AbortHandle;

/// Plays a script (see `crow_testkit::golden`).
#[track_caller]
fn check(script: &str, transcript: &Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    transcript.assert_eq(&runtime.expect("a runtime can be made").block_on(play(&InProcessAgent, script)));
}

/// Serves sessions on a task.
struct InProcessAgent;

impl StartAgent for InProcessAgent {
    fn start_agent(&self, home: &TestHome) -> FakeClient {
        let config = agent_config(home);
        FakeClient::start_in_process(&home.home(), |stdin, stdout| spawn_agent(config, stdin, stdout))
    }
}

fn spawn_agent(config: AgentConfig, stdin: PipeReader, stdout: PipeWriter) -> AbortHandle {
    let (lines, _writer) = stdio_transport(stdin, stdout).expect("threads start");
    let about = AgentInfo { version: "0", program: None, reads_images: true };
    let load = move || {
        let config = config.clone();
        async move { open_runtime(config) }
    };
    tokio::spawn(async move {
        let served = serve_sessions(lines, about, std::future::pending(), load).await;
        served.expect("the client closes the connection");
    })
    .abort_handle()
}

fn open_runtime(config: AgentConfig) -> Result<AgentRuntime, Failure> {
    let address = DatabaseAddress::File(config.config_dir.join("crow.db"));
    let store = Store::open_in_background(&address).expect("the directory is writable");
    let tools = ToolRegistry::with_builtin_tools(BuiltinToolConfig {
        spill_dir: config.spill_dir.clone(),
        ..BuiltinToolConfig::default()
    });
    Ok(AgentRuntime::new(config, store, tools, AgentLauncher::new(None)))
}

/// The configuration of a home: its model server, and the few settings that scripts change.
fn agent_config(home: &TestHome) -> AgentConfig {
    let config_dir = home.home().join(".crow");
    let settings = home.config_text();
    let mut limits = TurnLimits { requests_max: 200, compact_tokens_max: 120_000 };
    for line in settings.lines().skip_while(|line| *line != "max_retries_per_step: 0").skip(1) {
        match line.split_once(": ") {
            Some(("max_turn_requests", number)) => {
                limits.requests_max = number.parse().expect("max_turn_requests: N");
            }
            _ => panic!("not a setting of these tests: {line}"),
        }
    }
    AgentConfig {
        tools_max: 128,
        models: vec![scripted_model(&settings)],
        mode: Mode::Ask,
        rules: PermissionRules::default(),
        shell_name: "bash".to_owned(),
        search_path: String::new(),
        limits,
        secret_variables: Vec::new(),
        prompts_dir: config_dir.join("prompts"),
        skills_dir: None,
        system_prompt_path: None,
        system_prompt_addition: None,
        workflow: WorkflowConfig::default(),
        sandbox: SandboxMode::default(),
        network: NetworkAccess::default(),
        mcp_servers: Vec::new(),
        mcp_auth_dir: config_dir.join("mcp-auth"),
        hooks: Vec::new(),
        repositories: Arc::new(NoRepositoryConfig),
        agent_servers: Vec::new(),
        own_agent: None,
        tree_limits: TreeLimits::default(),
        depth: 0,
        worktrees_dir: config_dir.join("worktrees"),
        legacy_worktrees_dir: config_dir.join("legacy-worktrees"),
        recordings_dir: None,
        spill_dir: config_dir.join("spill"),
        db_uri: String::new(),
        setup_hint: String::new(),
        notices: Vec::new(),
        config_dir,
    }
}

/// The model of a configuration text, whose values stand between these words.
fn scripted_model(settings: &str) -> ModelSettings {
    let value = |name: &str| {
        let (_, rest) = settings.split_once(&format!(" {name}: "))?;
        rest.split([',', ' ', '}']).next().map(str::to_owned)
    };
    let api = value("api").map_or(ModelApi::CHAT, |name| ModelApi::parse(&name).expect("an API"));
    let tool_calls = match value("tool_calls").as_deref() {
        None => ToolCallMode::default(),
        Some("text") => ToolCallMode::Text,
        Some(other) => panic!("not a mode of tool calls: {other}"),
    };
    ModelSettings {
        name: "scripted".to_owned(),
        provider: ProviderSettings {
            name: "fake".to_owned(),
            base_url: value("base_url").expect("the home has a model server"),
            api,
            api_key: None,
            key_variable: None,
            headers: Vec::new(),
        },
        model: "scripted".to_owned(),
        context_window: 32_000,
        reads_images: true,
        compact_tokens_max: None,
        max_tokens: None,
        temperature: None,
        reasoning_effort: None,
        thought_levels: std::collections::BTreeMap::new(),
        send_reasoning: None,
        tool_calls,
        // The model of the scripts has a small window.
        tools: ToolSelection { profile: ToolProfile::Full, ..ToolSelection::default() },
        price: None,
        extra_body: serde_json::Map::new(),
        retries_max: 0,
        fallbacks: Vec::new(),
    }
}

/// Repositories of these tests configure nothing.
#[derive(Debug)]
struct NoRepositoryConfig;

impl RepositoryConfigReader for NoRepositoryConfig {
    fn read_config(&self, _: &Path, _: &str, _: VariableExpansion<'_>) -> RepositoryConfig {
        RepositoryConfig::default()
    }
}
