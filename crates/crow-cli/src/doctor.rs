//! `crow-cli doctor`: checks everything a session needs and reports what is wrong and how to fix it.

mod request_size;

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use crow_core::FailureKind;
use crow_core::SandboxSupport;
use crow_model::{HttpClients, ModelListing, ModelServerKind, ModelSettings, check_key, list_models};
use crow_process::{SandboxDefaults, SandboxWrapper};
use crow_store::{DatabaseAddress, SalvageReport, salvage_database};
use crow_tools::{McpClientFeatures, McpEnvironment, McpServers, Shell, ToolRegistry};
use futures_util::future::join_all;
use serde_json::json;
use tokio::sync::watch;

use crate::{
    agent::{agent_info, builtin_tool_config},
    agents::{self, ProgramLookup},
    cli::DoctorArgs,
    database::store_options,
    failure::{CliError, CliExitCode},
    init,
    platform::current_platform_notice,
    privacy::{self, ExposedPath},
    providers::{self, LIST_WAIT},
    settings::{ConfigWarning, ConfigWarningKind, Environment, MCP_AUTH_DIR, Settings, default_shell},
    table,
};

/// Timeout for a server that starts over a slow network.
const SERVERS_WAIT_MAX: Duration = Duration::from_secs(30);

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckState {
    Ok,
    /// The check cannot tell without connecting.
    Untried,
    /// Works with limitations.
    Warning,
    /// Does not work.
    Problem,
}

impl CheckState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Untried => "untried",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One line of the report, or a few.
#[derive(Debug)]
struct CheckResult {
    name: String,
    state: CheckState,
    text: String,
    /// Further lines.
    details: Vec<String>,
}

impl CheckResult {
    fn new(name: impl Into<String>, state: CheckState, text: impl Into<String>) -> Self {
        Self { name: name.into(), state, text: text.into(), details: Vec::new() }
    }
}

/// The results so far; each is printed as soon as it is known.
struct CheckReport<'a, W> {
    out: &'a mut W,
    is_json: bool,
    checks: Vec<CheckResult>,
}

impl<W: Write> CheckReport<'_, W> {
    fn add(&mut self, check: CheckResult) -> Result<(), CliError> {
        if !self.is_json {
            let (state, name) = (check.state.as_str(), table::sanitize_line(&check.name));
            writeln!(self.out, "{state:<8} {name:<16} {}", table::sanitize_line(&check.text))?;
            for line in &check.details {
                writeln!(self.out, "{:<25} {}", "", table::sanitize_line(line))?;
            }
            self.out.flush()?;
        }
        self.checks.push(check);
        Ok(())
    }
}

/// Runs all checks, or salvages a damaged database.
pub(crate) async fn run(
    args: &DoctorArgs,
    dir: &Path,
    env: &Environment,
    cwd: PathBuf,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let mut report = CheckReport { out, is_json: args.json, checks: Vec::new() };
    let loaded = Settings::load(dir, env);
    let shell = loaded.as_ref().map_or_else(|_| default_shell(env), |(settings, _)| settings.shell.clone());
    if args.salvage {
        let (settings, _) = loaded?;
        return run_salvage(&settings.database, report.out);
    }
    match loaded {
        Ok((settings, warnings)) => {
            let file = dir.join(crate::settings::CONFIG_FILE).display().to_string();
            let (suspicious, retired): (Vec<ConfigWarning>, Vec<ConfigWarning>) =
                warnings.into_iter().partition(|warning| warning.kind == ConfigWarningKind::Suspicious);
            for warning in &suspicious {
                report.add(CheckResult::new("config", CheckState::Warning, warning.to_string()))?;
            }
            match dir.join(crate::settings::CONFIG_FILE).exists() {
                true if suspicious.is_empty() => {
                    report.add(CheckResult::new("config", CheckState::Ok, file))?;
                }
                true => {}
                false => {
                    report.add(CheckResult::new(
                        "config",
                        CheckState::Warning,
                        format!("{file} does not exist yet"),
                    ))?;
                }
            }
            report_retired_keys(&retired, &mut report)?;
            check_private_files(&settings, &mut report)?;
            check_python_dir(dir, env, &mut report)?;
            check_models(&settings, &mut report).await?;
            check_database(&settings.database, &mut report).await?;
            check_mcp_servers(&settings, cwd.clone(), &mut report).await?;
            check_agents(&settings, &ProgramLookup { env, cwd: &cwd }, &mut report)?;
            if !settings.models.is_empty() {
                report.add(request_size::check_request_size(&settings, &cwd).await)?;
            }
        }
        Err(error) => {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            report.add(CheckResult::new("config", CheckState::Problem, format!("{error}{hint}")))?;
            check_python_dir(dir, env, &mut report)?;
        }
    }
    check_machine(&shell, &mut report).await?;
    finish_report(report)
}

/// Reports keys of earlier versions that have no effect any more.
fn report_retired_keys<W: Write>(
    retired: &[ConfigWarning],
    report: &mut CheckReport<'_, W>,
) -> Result<(), CliError> {
    if retired.is_empty() {
        return Ok(());
    }
    let keys: Vec<String> =
        retired.iter().map(|warning| format!("{} (line {})", warning.text, warning.line)).collect();
    let text = format!("from earlier versions, without effect: {}", keys.join(", "));
    report.add(CheckResult::new("keys", CheckState::Ok, text))
}

/// Reports files in the configuration directory that other users can read.
fn check_private_files<W: Write>(
    settings: &Settings,
    report: &mut CheckReport<'_, W>,
) -> Result<(), CliError> {
    for ExposedPath { path, exposure } in privacy::find_exposed(settings) {
        let mode = if path.is_dir() { "700" } else { "600" };
        let path = path.display();
        let text = format!("{path}: {}; `chmod {mode} {path}`", privacy::describe_exposure(exposure));
        report.add(CheckResult::new("private", CheckState::Warning, text))?;
    }
    Ok(())
}

fn finish_report<W: Write>(report: CheckReport<'_, W>) -> Result<(), CliError> {
    let CheckReport { out, is_json, checks } = report;
    if is_json {
        let documents = checks.iter().map(|check| {
            let state = check.state.as_str();
            json!({ "name": check.name, "state": state, "text": check.text, "details": check.details })
        });
        writeln!(out, "{}", json!({ "checks": documents.collect::<Vec<_>>() }))?;
    }
    let problems: Vec<&CheckResult> =
        checks.iter().filter(|check| check.state == CheckState::Problem).collect();
    match problems.as_slice() {
        [] => Ok(()),
        problems if problems.iter().any(|problem| ["config", "models"].contains(&problem.name.as_str())) => {
            Err(CliError::without_message(CliExitCode::Config))
        }
        _ => Err(CliError::without_message(CliExitCode::Failed)),
    }
}

fn check_python_dir<W: Write>(
    dir: &Path,
    env: &Environment,
    report: &mut CheckReport<'_, W>,
) -> Result<(), CliError> {
    let Some(directory) = init::find_python_config(dir, env) else { return Ok(()) };
    let directory = directory.display();
    let text = format!(
        "{directory} has a configuration of the Python version; import it with `crow-cli init --from {directory}`"
    );
    report.add(CheckResult::new("python version", CheckState::Warning, text))
}

/// Requests the model list of each provider in use, which also verifies the key.
async fn check_models<W: Write>(
    settings: &Settings,
    report: &mut CheckReport<'_, W>,
) -> Result<(), CliError> {
    if settings.models.is_empty() {
        return report.add(CheckResult::new(
            "models",
            CheckState::Problem,
            "no model is configured; run `crow-cli init`",
        ));
    }
    let http = match HttpClients::new() {
        Ok(http) => http,
        Err(failure) => {
            return report.add(CheckResult::new("network", CheckState::Problem, failure.message));
        }
    };
    let list = async |provider| {
        let listing = list_models(&http, provider, LIST_WAIT).await?;
        if listing.server == Some(ModelServerKind::OpenRouter) {
            // The list is public, so it does not verify the key.
            match check_key(&http, provider, LIST_WAIT).await {
                Err(failure) if failure.kind == FailureKind::ProviderAuth => return Err(failure),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(listing)
    };
    let providers = providers::configured_providers(settings);
    let results = join_all(providers.iter().map(|provider| list(provider))).await;
    for (provider, result) in providers.into_iter().zip(results) {
        let models = settings.models.iter().filter(|model| model.provider.name == provider.name);
        let (state, text) = match result {
            Ok(listing) => {
                let missing_key = models.clone().find_map(ModelSettings::missing_key);
                let (state, text) = compare_models(&listing, models);
                match missing_key {
                    Some(variable) => {
                        let note = format!("{text}; its key is missing: {variable} is not set");
                        (CheckState::Warning, note)
                    }
                    None => (state, text),
                }
            }
            Err(failure) => (CheckState::Problem, failure.message),
        };
        report.add(CheckResult::new(provider.name.clone(), state, text))?;
    }
    Ok(())
}

/// Compares the configured models with the provider's.
fn compare_models<'a>(
    listing: &ModelListing,
    models: impl Iterator<Item = &'a ModelSettings>,
) -> (CheckState, String) {
    let (mut missing, mut window_problems, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for model in models {
        let Some(listed) = listing.find_model(&model.model) else {
            missing.push(model.model.as_str());
            continue;
        };
        match providers::window_problem(listing.server, model, listed) {
            Some(problem) => window_problems.push(problem),
            None if providers::has_window_only_when_loaded(listing.server, listed) => {
                unknown.push(listed.id.as_str());
            }
            None => {}
        }
    }
    let n = listing.models.len();
    let mut parts = vec![format!("reachable, lists {n} model{}", if n == 1 { "" } else { "s" })];
    if !missing.is_empty() {
        let missing = missing.join(", ");
        parts.push(format!("does not list {missing}; see `crow-cli models --available`"));
    }
    let state =
        if missing.is_empty() && window_problems.is_empty() { CheckState::Ok } else { CheckState::Warning };
    parts.extend(window_problems);
    if !unknown.is_empty() {
        parts.push(format!("reports the context window of {} once it is loaded", unknown.join(", ")));
    }
    (state, parts.join("; "))
}

async fn check_database<W: Write>(
    address: &DatabaseAddress,
    report: &mut CheckReport<'_, W>,
) -> Result<(), CliError> {
    let integrity = async {
        match store_options().open_existing(address).await? {
            Some(store) => store.check_integrity().await.map(Some),
            None => Ok(None),
        }
    };
    let (state, text) = match integrity.await {
        Ok(None) => (CheckState::Ok, format!("{address} will be created with the first session")),
        Ok(Some(problems)) if problems.is_empty() => (CheckState::Ok, format!("{address} is intact")),
        Ok(Some(problems)) => {
            let damage = problems.join("; ");
            (
                CheckState::Problem,
                format!(
                    "{address} is damaged ({damage}); `crow-cli doctor --salvage` saves the readable part"
                ),
            )
        }
        Err(error) => (CheckState::Problem, error.to_string()),
    };
    report.add(CheckResult::new("database", state, text))
}

async fn check_mcp_servers<W: Write>(
    settings: &Settings,
    cwd: PathBuf,
    report: &mut CheckReport<'_, W>,
) -> Result<(), CliError> {
    if settings.mcp_servers.is_empty() {
        return Ok(());
    }
    let environment = McpEnvironment {
        features: McpClientFeatures::default(),
        slow_servers: std::sync::Arc::default(),
        roots: vec![cwd.clone()],
        cwd,
        secret_variables: settings.secret_variables.clone(),
        variables: watch::Sender::default().subscribe(),
        auth_dir: settings.dir.join(MCP_AUTH_DIR),
    };
    let builtin_tools = ToolRegistry::with_builtin_tools(builtin_tool_config(settings));
    for server in &settings.mcp_servers {
        let connection = McpServers::start(vec![server.clone()], environment.clone(), &builtin_tools);
        connection.wait_until_settled(SERVERS_WAIT_MAX).await;
        let (tools, notices) = (connection.tools(), connection.take_notices());
        let (state, text) = match (tools.len(), notices.as_slice()) {
            (0, []) => (CheckState::Warning, "offers no tools".to_owned()),
            (0, notices) => (CheckState::Problem, notices.join(" ")),
            (n, []) => (CheckState::Ok, format!("offers {n} tools")),
            (n, notices) => (CheckState::Warning, format!("offers {n} tools; {}", notices.join(" "))),
        };
        report.add(CheckResult::new(format!("mcp {}", server.name), state, text))?;
    }
    builtin_tools.stop_programs();
    builtin_tools.finish_token_refreshes().await;
    Ok(())
}

/// Looks up the programs of agents without starting or connecting to any.
fn check_agents<W: Write>(
    settings: &Settings,
    lookup: &ProgramLookup<'_>,
    report: &mut CheckReport<'_, W>,
) -> Result<(), CliError> {
    for server in &settings.agent_servers {
        let description = &settings.agent_descriptions[&server.name];
        let (state, text) = match agents::locate_program(server, lookup) {
            Some(Some(program)) => (CheckState::Ok, format!("found {} (not started)", program.display())),
            Some(None) => {
                let program = description.split(' ').next().unwrap_or_default();
                let name = &server.name;
                let text = format!(
                    "the program {program} was not found; install it, or give its path in agent_servers.{name}.command"
                );
                (CheckState::Problem, text)
            }
            None => match settings.unreachable_agents.get(&server.name) {
                Some(reason) => (CheckState::Problem, format!("{description} cannot be used: {reason}")),
                None => (CheckState::Untried, format!("{description} (not contacted)")),
            },
        };
        report.add(CheckResult::new(format!("agent {}", server.name), state, text))?;
    }
    Ok(())
}

async fn check_machine<W: Write>(shell: &Shell, report: &mut CheckReport<'_, W>) -> Result<(), CliError> {
    let (name, program) = (shell.name(), shell.program());
    let (state, text) = match Path::new(program).exists() {
        true => (CheckState::Ok, format!("commands run in {name}")),
        false => (
            CheckState::Problem,
            format!("{program} was not found; install a shell, which runs every command"),
        ),
    };
    report.add(CheckResult::new("shell", state, text))?;
    if let Some(notice) = current_platform_notice() {
        report.add(CheckResult::new("system", CheckState::Warning, notice.to_owned()))?;
    }
    let support = match agent_info().program {
        Some(exe) => SandboxWrapper::new(exe, SandboxDefaults::default()).sandbox_support().await.clone(),
        None => SandboxSupport::Unavailable { reason: "Crow's own program was not found".into() },
    };
    let (state, text) = match support.description() {
        None => (CheckState::Ok, "works: unapproved commands are confined".to_owned()),
        Some(description) => (CheckState::Warning, description),
    };
    report.add(CheckResult::new("sandbox", state, text))
}

fn run_salvage(address: &DatabaseAddress, out: &mut impl Write) -> Result<(), CliError> {
    let DatabaseAddress::File(path) = address else {
        let reason = "only a SQLite database can be salvaged; restore a backup on the server";
        return Err(CliError::new(CliExitCode::Failed, reason));
    };
    let SalvageReport { n_sessions, n_messages, damaged } = salvage_database(path)?;
    let (path, damaged) = (path.display(), damaged.display());
    Ok(writeln!(
        out,
        "saved {n_sessions} sessions with {n_messages} messages to {path}; the damaged database is {damaged}"
    )?)
}
