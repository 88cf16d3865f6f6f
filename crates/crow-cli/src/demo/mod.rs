//! `demo`: runs the real agent, tools, store and client on a small broken project, with a scripted model. Needs no key,
//! no network and no program but `sh`.

mod model;

use std::{
    collections::BTreeMap,
    fs,
    io::{self, IsTerminal, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

use crow_core::{Mode, NetworkAccess, PermissionRules, SandboxMode, ToolProfile, ToolSelection, TreeLimits};
use crow_model::{ModelApi, ModelSettings, ProviderSettings};
use crow_process::{CommandSpec, ExitReason, ProcessGroups, RunLimits};
use crow_store::DatabaseAddress;
use crow_tools::{Shell, WebConfig};
use crow_workflow::WorkflowConfig;
use tokio_util::sync::CancellationToken;

use self::model::{DemoPace, ScriptedModel};
use crate::{
    agent,
    cli::{ConversationOptions, RunArgs},
    failure::{CliError, CliExitCode},
    run::{self, RunControl, RunOutput, RunPlan, SessionRetention},
    settings::{RepositoryReader, Settings},
};

const PRICE: &str = include_str!("../../demo/price.sh");
const TEST: &str = include_str!("../../demo/test.sh");
const TASK: &str = "The tests of this project fail. Find out why, fix it, and show that they pass.";

/// Far more tokens than the script needs.
const WINDOW: u64 = 32_000;
/// The script has five replies; a sixth request is an error.
const REQUESTS_MAX: u32 = 6;

/// Timeout of the last test run, which adds two numbers.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes of the last test run's output that are shown.
const TEST_BYTES: usize = 4096;

/// Chooses the model's speed: slow enough to follow on a terminal.
pub(crate) fn choose_pace() -> DemoPace {
    if io::stdout().is_terminal() { DemoPace::Reading } else { DemoPace::Full }
}

/// Runs the demo in a temporary directory.
pub(crate) fn run(output: Box<dyn RunOutput>, pace: DemoPace, out: &mut impl Write) -> Result<(), CliError> {
    let home = tempfile::tempdir()
        .map_err(|error| demo_error(format!("could not create a temporary directory: {error}")))?;
    // Links are resolved, so that displayed and evaluated paths are the same.
    let home_path =
        crow_files::resolve_existing(home.path()).map_err(|error| demo_error(error.to_string()))?;
    let project = home_path.join("shop");
    let written = fs::create_dir(&project)
        .and_then(|()| fs::write(project.join("price.sh"), PRICE))
        .and_then(|()| fs::write(project.join("test.sh"), TEST));
    written.map_err(|error| demo_error(format!("could not write the project: {error}")))?;
    let runtime = agent::tokio_runtime()?;
    let result = runtime.block_on(run_scripted_session(&home_path, &project, output, pace, out));
    runtime.shutdown_background();
    result
}

async fn run_scripted_session(
    home: &Path,
    project: &Path,
    output: Box<dyn RunOutput>,
    pace: DemoPace,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let model = ScriptedModel::start(pace).await;
    let model = model.map_err(|error| demo_error(format!("could not listen on loopback: {error}")))?;
    writeln!(out, "demo: a scripted model at {} replaces the real one;", model.base_url())?;
    writeln!(out, "      the agent, its tools, its store and this client are real")?;
    writeln!(out, "task: {TASK}\n")?;
    out.flush()?;
    let settings = Arc::new(demo_settings(home, model.base_url()));
    let options = ConversationOptions { yes: true, ..ConversationOptions::default() };
    let args = RunArgs { options, ..RunArgs::default() };
    let first_prompt = Some(TASK.into());
    let (cwd, images) = (project.to_owned(), Vec::new());
    let plan = RunPlan {
        args,
        cwd,
        first_prompt,
        images,
        output,
        retention: SessionRetention::Gone,
        control: RunControl::User,
        counts_tokens: false,
        terminal: None,
    };
    run::drive_own_agent(plan, move || {
        let settings = settings.clone();
        std::future::ready(agent::build_runtime((*settings).clone(), Vec::new()))
    })
    .await?;
    check_tests_pass(project, out).await
}

/// Runs the project's tests again without the agent, to verify the files on disk.
async fn check_tests_pass(project: &Path, out: &mut impl Write) -> Result<(), CliError> {
    let command = CommandSpec {
        program: crow_process::posix_shell(),
        args: vec!["test.sh".into()],
        cwd: project.to_owned(),
        env: Vec::new(),
        env_removed: Vec::new(),
    };
    let limits =
        RunLimits { timeout: TEST_TIMEOUT, head_bytes: TEST_BYTES, tail_bytes: TEST_BYTES, spill_dir: None };
    let run_result = crow_process::run_program(
        &ProcessGroups::default(),
        command,
        limits,
        &CancellationToken::new(),
        |_: &str| {},
    )
    .await;
    let run_result = run_result.map_err(|error| demo_error(format!("could not run the tests: {error}")))?;
    writeln!(out, "\n$ sh test.sh\n{}", run_result.output.text.trim_end())?;
    match run_result.exit {
        ExitReason::Exited(0) => {
            writeln!(out, "\ndone: the tests pass; the directory and its database have been deleted")?;
            writeln!(out, "      `crow-cli init` sets up a real model, `crow-cli run \"…\"` starts a task")?;
            Ok(())
        }
        ExitReason::Exited(_) | ExitReason::Signalled(_) | ExitReason::TimedOut | ExitReason::Cancelled => {
            Err(demo_error("the tests do not pass after the demo".into()))
        }
    }
}

fn model(base_url: &str) -> ModelSettings {
    let provider = ProviderSettings {
        name: "demo".into(),
        base_url: base_url.into(),
        api: ModelApi::default(),
        api_key: None,
        key_variable: None,
        headers: Vec::new(),
    };
    // The window is small, and the script has more than the core tools.
    let tools = ToolSelection { profile: ToolProfile::Full, ..ToolSelection::default() };
    ModelSettings {
        context_window: WINDOW,
        tools,
        retries_max: 0,
        ..ModelSettings::new(provider, "scripted")
    }
}

fn demo_settings(home: &Path, base_url: &str) -> Settings {
    Settings {
        dir: home.join("crow"),
        models: vec![model(base_url)],
        database: DatabaseAddress::File(home.join("crow").join("crow.db")),
        compact_tokens_max: WINDOW,
        requests_max: REQUESTS_MAX,
        tools_max: crow_tools::ToolOffer::TOOLS_MAX,
        mode: Mode::Ask,
        sandbox: SandboxMode::default(),
        network: NetworkAccess::Denied,
        writable: Vec::new(),
        caches: Vec::new(),
        git_stores: Vec::new(),
        rules: PermissionRules::default(),
        secret_variables: Vec::new(),
        prompts_dir: home.join("crow").join("prompts"),
        skills_dir: None,
        system_prompt_path: None,
        system_prompt_addition: None,
        workflow: WorkflowConfig::default(),
        shell: Shell::default(),
        search_path: String::new(),
        session_logs: false,
        fullscreen: false,
        has_vi_keys: false,
        terminals: crow_tools::TerminalPreference::Local,
        mcp_servers: Vec::new(),
        agent_servers: Vec::new(),
        agent_descriptions: BTreeMap::new(),
        unreachable_agents: BTreeMap::new(),
        tree_limits: TreeLimits::default(),
        depth: 0,
        worktrees_dir: home.join("worktrees"),
        legacy_worktrees_dir: home.join("cache"),
        home: None,
        runtime_dir: None,
        recordings_dir: None,
        web: WebConfig::default(),
        hooks: Vec::new(),
        repositories: RepositoryReader::default(),
    }
}

fn demo_error(message: String) -> CliError {
    CliError::new(CliExitCode::Failed, message)
}
