//! `crow-cli doctor`: looks at everything that a session needs and says of each what is wrong and what to do.

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use crow_core::FailureKind;
use crow_core::SandboxSupport;
use crow_model::{Http, Listing, ModelSettings, Server, check_key, list_models};
use crow_process::{StandingRules, Warden};
use crow_store::{Address, Salvaged, Store, salvage};
use crow_tools::{McpHome, McpServers, Shell, Tools};
use futures_util::future::join_all;
use serde_json::json;
use tokio::sync::watch;

use crate::{
    agent::{about, equipment},
    agents::{self, Place},
    cli::DoctorArgs,
    failure::{Code, Exit},
    init,
    privacy::{self, Exposed},
    providers::{self, LIST_WAIT},
    settings::{Environment, MCP_AUTH_DIR, Settings, Warning, WarningKind, usual_shell},
    table,
};

/// A server that starts over a slow network is there within that.
const SERVERS_WAIT_MAX: Duration = Duration::from_secs(30);

/// How something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ok,
    /// Nobody looked whether it works.
    Untried,
    /// Works, with less than it could.
    Warning,
    /// Does not work.
    Problem,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Untried => "untried",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// What was found of one thing.
#[derive(Debug)]
struct Finding {
    name: String,
    state: State,
    text: String,
}

impl Finding {
    fn new(name: impl Into<String>, state: State, text: impl Into<String>) -> Self {
        Self { name: name.into(), state, text: text.into() }
    }
}

/// What was found so far; each finding is shown when it is there.
struct Report<'a, W> {
    out: &'a mut W,
    is_json: bool,
    findings: Vec<Finding>,
}

impl<W: Write> Report<'_, W> {
    fn add(&mut self, finding: Finding) -> Result<(), Exit> {
        if !self.is_json {
            let (state, name) = (finding.state.as_str(), table::plain(&finding.name));
            writeln!(self.out, "{state:<8} {name:<16} {}", table::plain(&finding.text))?;
            self.out.flush()?;
        }
        self.findings.push(finding);
        Ok(())
    }
}

/// Looks at everything, or saves what can be read of a damaged database.
pub(crate) async fn run(
    args: &DoctorArgs,
    (dir, env): (&Path, &Environment),
    cwd: PathBuf,
    out: &mut impl Write,
) -> Result<(), Exit> {
    let mut report = Report { out, is_json: args.json, findings: Vec::new() };
    let loaded = Settings::load(dir, env);
    let shell = loaded.as_ref().map_or_else(|_| usual_shell(env), |(settings, _)| settings.shell.clone());
    if args.salvage {
        let (settings, _) = loaded?;
        return saved(&settings.database, report.out);
    }
    match loaded {
        Ok((settings, warnings)) => {
            let file = dir.join(crate::settings::CONFIG_FILE).display().to_string();
            let (odd, retired): (Vec<Warning>, Vec<Warning>) =
                warnings.into_iter().partition(|warning| warning.kind == WarningKind::Odd);
            for warning in &odd {
                report.add(Finding::new("config", State::Warning, warning.to_string()))?;
            }
            match dir.join(crate::settings::CONFIG_FILE).exists() {
                true if odd.is_empty() => report.add(Finding::new("config", State::Ok, file))?,
                true => {}
                false => {
                    report.add(Finding::new("config", State::Warning, format!("{file} is not there yet")))?;
                }
            }
            retired_keys(&retired, &mut report)?;
            private_files(&settings, &mut report)?;
            old_folder(dir, env, &mut report)?;
            models(&settings, &mut report).await?;
            database(&settings.database, &mut report).await?;
            servers(&settings, cwd.clone(), &mut report).await?;
            agents(&settings, &Place { env, cwd: &cwd }, &mut report)?;
        }
        Err(error) => {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            report.add(Finding::new("config", State::Problem, format!("{error}{hint}")))?;
            old_folder(dir, env, &mut report)?;
        }
    }
    machine(&shell, &mut report).await?;
    finish(report)
}

/// Says which keys of earlier versions have no meaning in this one.
fn retired_keys<W: Write>(retired: &[Warning], report: &mut Report<'_, W>) -> Result<(), Exit> {
    if retired.is_empty() {
        return Ok(());
    }
    let keys: Vec<String> =
        retired.iter().map(|warning| format!("{} (line {})", warning.text, warning.line)).collect();
    let text = format!("of earlier versions, without effect in this one: {}", keys.join(", "));
    report.add(Finding::new("keys", State::Ok, text))
}

/// Says what other users can read of the configuration folder.
fn private_files<W: Write>(settings: &Settings, report: &mut Report<'_, W>) -> Result<(), Exit> {
    for Exposed { path, exposure } in privacy::exposed(settings) {
        let what = if path.is_dir() { "700" } else { "600" };
        let path = path.display();
        let text = format!("{path}: {}; `chmod {what} {path}`", privacy::why(exposure));
        report.add(Finding::new("private", State::Warning, text))?;
    }
    Ok(())
}

fn finish<W: Write>(report: Report<'_, W>) -> Result<(), Exit> {
    let Report { out, is_json, findings } = report;
    if is_json {
        let checks = findings.iter().map(
            |finding| json!({ "name": finding.name, "state": finding.state.as_str(), "text": finding.text }),
        );
        writeln!(out, "{}", json!({ "checks": checks.collect::<Vec<_>>() }))?;
    }
    let problems: Vec<&Finding> = findings.iter().filter(|finding| finding.state == State::Problem).collect();
    match problems.as_slice() {
        [] => Ok(()),
        problems if problems.iter().any(|problem| ["config", "models"].contains(&problem.name.as_str())) => {
            Err(Exit::quiet(Code::Config))
        }
        _ => Err(Exit::quiet(Code::Failed)),
    }
}

fn old_folder<W: Write>(dir: &Path, env: &Environment, report: &mut Report<'_, W>) -> Result<(), Exit> {
    let Some(folder) = init::to_bring_over(dir, env) else { return Ok(()) };
    let folder = folder.display();
    let text = format!(
        "{folder} has a configuration of the Python version; `crow-cli init --from {folder}` brings it over"
    );
    report.add(Finding::new("python version", State::Warning, text))
}

/// Asks each provider that has a model in use for its list of models, which needs the key.
async fn models<W: Write>(settings: &Settings, report: &mut Report<'_, W>) -> Result<(), Exit> {
    if settings.models.is_empty() {
        return report.add(Finding::new("models", State::Problem, "none is configured; run `crow-cli init`"));
    }
    let http = match Http::new() {
        Ok(http) => http,
        Err(failure) => return report.add(Finding::new("network", State::Problem, failure.sentence)),
    };
    let ask = async |provider| {
        let listing = list_models(&http, provider, LIST_WAIT).await?;
        if listing.server == Some(Server::OpenRouter) {
            // Its list is open to everybody, so it says nothing of the key.
            match check_key(&http, provider, LIST_WAIT).await {
                Err(failure) if failure.kind == FailureKind::ProviderAuth => return Err(failure),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(listing)
    };
    let providers = providers::configured(settings);
    let answers = join_all(providers.iter().map(|provider| ask(provider))).await;
    for (provider, answer) in providers.into_iter().zip(answers) {
        let used = settings.models.iter().filter(|model| model.provider.name == provider.name);
        let (state, text) = match answer {
            Ok(listing) => standing(&listing, used),
            Err(failure) => (State::Problem, failure.sentence),
        };
        report.add(Finding::new(provider.name.clone(), state, text))?;
    }
    Ok(())
}

/// Compares what is configured with what the provider has.
fn standing<'a>(listing: &Listing, used: impl Iterator<Item = &'a ModelSettings>) -> (State, String) {
    let (mut missing, mut odd, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for model in used {
        let Some(listed) = listing.find(&model.model) else {
            missing.push(model.model.as_str());
            continue;
        };
        match providers::window_problem(listing.server, model, listed) {
            Some(problem) => odd.push(problem),
            None if providers::is_told_when_loaded(listing.server, listed) => {
                unknown.push(listed.id.as_str());
            }
            None => {}
        }
    }
    let n = listing.models.len();
    let mut said = vec![format!("answers, and knows {n} model{}", if n == 1 { "" } else { "s" })];
    if !missing.is_empty() {
        let missing = missing.join(", ");
        said.push(format!("does not list {missing}; `crow-cli models --available` shows what it has"));
    }
    let state = if missing.is_empty() && odd.is_empty() { State::Ok } else { State::Warning };
    said.extend(odd);
    if !unknown.is_empty() {
        said.push(format!("tells the window of {} when it is loaded", unknown.join(", ")));
    }
    (state, said.join("; "))
}

async fn database<W: Write>(address: &Address, report: &mut Report<'_, W>) -> Result<(), Exit> {
    let found = async {
        match Store::open_existing(address).await? {
            Some(store) => store.check().await.map(Some),
            None => Ok(None),
        }
    };
    let finding = match found.await {
        Ok(None) => (State::Ok, format!("{address} is made with the first session")),
        Ok(Some(findings)) if findings.is_empty() => (State::Ok, format!("{address} is sound")),
        Ok(Some(findings)) => {
            let what = findings.join("; ");
            (
                State::Problem,
                format!("{address} is damaged ({what}); `crow-cli doctor --salvage` saves what can be read"),
            )
        }
        Err(error) => (State::Problem, error.to_string()),
    };
    report.add(Finding::new("database", finding.0, finding.1))
}

async fn servers<W: Write>(
    settings: &Settings,
    cwd: PathBuf,
    report: &mut Report<'_, W>,
) -> Result<(), Exit> {
    if settings.mcp_servers.is_empty() {
        return Ok(());
    }
    let home = McpHome {
        roots: vec![cwd.clone()],
        cwd,
        secret_variables: settings.secret_variables.clone(),
        variables: watch::Sender::default().subscribe(),
        auth_dir: settings.dir.join(MCP_AUTH_DIR),
    };
    let own = Tools::builtin(equipment(settings));
    for server in &settings.mcp_servers {
        let one = McpServers::start(vec![server.clone()], home.clone(), &own);
        one.settled(SERVERS_WAIT_MAX).await;
        let (tools, news) = (one.tools(), one.take_news());
        let finding = match (tools.len(), news.as_slice()) {
            (0, []) => (State::Warning, "brings no tools".to_owned()),
            (0, news) => (State::Problem, news.join(" ")),
            (n, []) => (State::Ok, format!("brings {n} tools")),
            (n, news) => (State::Warning, format!("brings {n} tools; {}", news.join(" "))),
        };
        report.add(Finding::new(format!("mcp {}", server.name), finding.0, finding.1))?;
    }
    own.stop();
    Ok(())
}

/// Looks for the programs of agents; starts none and connects to none.
fn agents<W: Write>(settings: &Settings, place: &Place<'_>, report: &mut Report<'_, W>) -> Result<(), Exit> {
    for server in &settings.agent_servers {
        let written = &settings.agents_written[&server.name];
        let finding = match agents::program(server, place) {
            Some(Some(program)) => (State::Ok, format!("{} is there, it was not started", program.display())),
            Some(None) => {
                let program = written.split(' ').next().unwrap_or_default();
                let name = &server.name;
                let text = format!(
                    "there is no program {program}; install it, or name its path in agent_servers.{name}.command"
                );
                (State::Problem, text)
            }
            None => match settings.agents_broken.get(&server.name) {
                Some(why) => (State::Problem, format!("{written} cannot be used: {why}")),
                None => (State::Untried, format!("{written} is an address, nobody was asked there")),
            },
        };
        report.add(Finding::new(format!("agent {}", server.name), finding.0, finding.1))?;
    }
    Ok(())
}

async fn machine<W: Write>(shell: &Shell, report: &mut Report<'_, W>) -> Result<(), Exit> {
    let (name, program) = (shell.name(), shell.program());
    let finding = match Path::new(program).exists() {
        true => (State::Ok, format!("{name} runs commands")),
        false => {
            (State::Problem, format!("there is no {program}, which runs every command; install a shell"))
        }
    };
    report.add(Finding::new("shell", finding.0, finding.1))?;
    let support = match about().program {
        Some(exe) => Warden::new(exe, StandingRules::default()).sandbox_support().await.clone(),
        None => SandboxSupport::None { reason: "the program that holds commands was not found".into() },
    };
    let (state, text) = match support.description() {
        None => (State::Ok, "works: unapproved commands are confined".to_owned()),
        Some(description) => (State::Warning, description),
    };
    report.add(Finding::new("sandbox", state, text))
}

fn saved(address: &Address, out: &mut impl Write) -> Result<(), Exit> {
    let Address::File(path) = address else {
        let why = "a database on a server is mended there; restore a backup of it";
        return Err(Exit::new(Code::Failed, why));
    };
    let Salvaged { n_sessions, n_messages, damaged } = salvage(path)?;
    let (path, damaged) = (path.display(), damaged.display());
    Ok(writeln!(
        out,
        "saved {n_sessions} sessions with {n_messages} messages into {path}; what was there is {damaged}"
    )?)
}
