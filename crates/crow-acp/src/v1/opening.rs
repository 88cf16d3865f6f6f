//! Spells and reads what begins a connection and a session: hello, abilities, options, MCP servers.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the protocol's enums are open: what is new is passed over"
)]

use agent_client_protocol as sdk;
use crow_core::{Failure, FailureKind, McpServer, McpTransport, Mode, SessionConfigOptions, ThoughtLevel};
use sdk::schema::ProtocolVersion;
use sdk::v1::schema as wire;
use serde_json::{Value, json};

use crate::abilities::AcpClientCapabilities;
use crate::incoming::{AgentInfo, OpenSessionResult, SessionLocation, SessionPage};
use crate::v1::session_id;

/// The one method of signing in that the agent does by itself.
const SIGN_IN: &str = "configured";

/// The method of signing in that needs a terminal.
const SIGN_IN_IN_TERMINAL: &str = "set-up";

/// What the method in a terminal adds to the command that starts this agent.
const SET_UP_ARGUMENT: &str = "--set-up";

/// A client's terminals and files, and what else it says it can do.
pub(crate) fn client_capabilities(hello: &wire::InitializeRequest) -> AcpClientCapabilities {
    let can = &hello.client_capabilities;
    let said =
        |name: &str| can.meta.as_ref().and_then(|meta| meta.get(name)).and_then(Value::as_bool) == Some(true);
    AcpClientCapabilities {
        reads_files: can.fs.read_text_file,
        writes_files: can.fs.write_text_file,
        terminals: can.terminal,
        shows_output: said("terminal_output"),
        notices: can.session.as_ref().is_some_and(|session| session.notices.is_some()),
        compactions: can.session.as_ref().is_some_and(|session| session.compaction.is_some()),
        forms: can.elicitation.as_ref().is_some_and(wire::ElicitationCapabilities::supports_form),
        children: can.subagents.is_some(),
        depth: super::tree::tree_depth(can.meta.as_ref()),
        terminal_auth: can.auth.terminal,
        terminal_auth_by_command: said("terminal-auth"),
    }
}

/// Answers a hello. The version is ours whatever was asked: it is the only one there is.
pub(crate) fn initialize_response(
    about: &AgentInfo,
    client: AcpClientCapabilities,
) -> wire::InitializeResponse {
    let sessions = wire::SessionCapabilities::new()
        .list(wire::SessionListCapabilities::new())
        .resume(wire::SessionResumeCapabilities::new())
        .fork(wire::SessionForkCapabilities::new())
        .close(wire::SessionCloseCapabilities::new())
        .delete(wire::SessionDeleteCapabilities::new())
        .additional_directories(wire::SessionAdditionalDirectoriesCapabilities::new());
    let capabilities = wire::AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(wire::PromptCapabilities::new().image(about.reads_images).embedded_context(true))
        .mcp_capabilities(wire::McpCapabilities::new().http(true).sse(true))
        .auth(wire::AgentAuthCapabilities::new().logout(wire::LogoutCapabilities::new()))
        .session_capabilities(sessions);
    wire::InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(wire::Implementation::new("crow-cli", about.version).title("Crow".to_owned()))
        .auth_methods(auth_methods(about, client))
        .meta(to_meta(json!({ "steering": { "supported": true } })))
}

fn auth_methods(about: &AgentInfo, client: AcpClientCapabilities) -> Vec<wire::AuthMethod> {
    let by_itself = wire::AuthMethodAgent::new(SIGN_IN, "Use the configured models")
        .description("Reads the configuration and the keys in it again".to_owned());
    let in_terminal = "Choose a provider and enter its key";
    let by_itself = match &about.program {
        Some(program) if client.terminal_auth_by_command => by_itself.meta(to_meta(json!({
            "terminal-auth": { "label": in_terminal, "command": program, "args": ["auth"], "env": {} }
        }))),
        Some(_) | None => by_itself,
    };
    let in_terminal = wire::AuthMethodTerminal::new(SIGN_IN_IN_TERMINAL, in_terminal)
        .args(vec![SET_UP_ARGUMENT.to_owned()]);
    let mut methods = vec![wire::AuthMethod::Agent(by_itself)];
    if client.terminal_auth {
        methods.push(wire::AuthMethod::Terminal(in_terminal));
    }
    methods
}

/// Checks which method of signing in was chosen.
pub(crate) fn check_sign_in_method(method: &str) -> Result<(), Failure> {
    let why = match method {
        SIGN_IN => return Ok(()),
        SIGN_IN_IN_TERMINAL => {
            format!("The method {method} runs in a terminal: start this agent with {SET_UP_ARGUMENT} there.")
        }
        _ => format!("There is no method {method} to sign in. Use {SIGN_IN}."),
    };
    Err(Failure::new(FailureKind::InvalidValue, why))
}

pub(crate) fn to_meta(value: Value) -> Option<wire::Meta> {
    match value {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

pub(crate) fn new_session_response(opened: &OpenSessionResult) -> wire::NewSessionResponse {
    wire::NewSessionResponse::new(session_id(&opened.session))
        .modes(mode_state(opened.options.mode))
        .config_options(config_options(&opened.options))
}

pub(crate) fn load_session_response(opened: &OpenSessionResult) -> wire::LoadSessionResponse {
    wire::LoadSessionResponse::new()
        .modes(mode_state(opened.options.mode))
        .config_options(config_options(&opened.options))
}

pub(crate) fn resume_session_response(opened: &OpenSessionResult) -> wire::ResumeSessionResponse {
    wire::ResumeSessionResponse::new()
        .modes(mode_state(opened.options.mode))
        .config_options(config_options(&opened.options))
}

pub(crate) fn fork_session_response(opened: &OpenSessionResult) -> wire::ForkSessionResponse {
    wire::ForkSessionResponse::new(session_id(&opened.session))
        .modes(mode_state(opened.options.mode))
        .config_options(config_options(&opened.options))
}

pub(crate) fn list_sessions_response(page: SessionPage) -> wire::ListSessionsResponse {
    let sessions = page.sessions.into_iter().map(|info| {
        wire::SessionInfo::new(session_id(&info.session), info.cwd).title(info.title).updated_at(info.updated)
    });
    wire::ListSessionsResponse::new(sessions.collect::<Vec<_>>()).next_cursor(page.next)
}

fn mode_state(current: Mode) -> wire::SessionModeState {
    let all = Mode::ALL.map(|mode| {
        wire::SessionMode::new(mode.as_str(), mode.as_str()).description(mode.description().to_owned())
    });
    wire::SessionModeState::new(current.as_str(), all.to_vec())
}

/// Spells every option; clients show them in this order.
pub(crate) fn config_options(options: &SessionConfigOptions) -> Vec<wire::SessionConfigOption> {
    let modes = Mode::ALL.map(|mode| {
        wire::SessionConfigSelectOption::new(mode.as_str(), mode.as_str())
            .description(mode.description().to_owned())
    });
    let levels = ThoughtLevel::ALL
        .map(|level| wire::SessionConfigSelectOption::new(level.as_str(), level.as_str()))
        .to_vec();
    let mode = wire::SessionConfigOption::select("mode", "Mode", options.mode.as_str(), modes.to_vec())
        .category(wire::SessionConfigOptionCategory::Mode);
    let model = options.model.as_deref().map(|current| {
        let current = wire::SessionConfigValueId::new(current);
        wire::SessionConfigOption::select("model", "Model", current, model_options(options))
            .category(wire::SessionConfigOptionCategory::Model)
    });
    let level = wire::SessionConfigOption::select(
        "thought_level",
        "Thought level",
        options.thought_level.as_str(),
        levels,
    )
    .category(wire::SessionConfigOptionCategory::ThoughtLevel);
    std::iter::once(mode).chain(model).chain([level]).collect()
}

/// Models of several providers stand under their providers.
fn model_options(options: &SessionConfigOptions) -> wire::SessionConfigSelectOptions {
    let choice = |name: &str| {
        wire::SessionConfigSelectOption::new(wire::SessionConfigValueId::new(name), name.to_owned())
    };
    let mut groups: Vec<(&str, Vec<wire::SessionConfigSelectOption>)> = Vec::new();
    for model in &options.models {
        match groups.iter_mut().find(|(provider, _)| *provider == model.provider) {
            Some((_, choices)) => choices.push(choice(&model.name)),
            None => groups.push((&model.provider, vec![choice(&model.name)])),
        }
    }
    if groups.len() < 2 {
        return groups.into_iter().flat_map(|(_, choices)| choices).collect::<Vec<_>>().into();
    }
    let groups = groups.into_iter().map(|(provider, choices)| {
        wire::SessionConfigSelectGroup::new(provider.to_owned(), provider, choices)
    });
    groups.collect::<Vec<_>>().into()
}

/// Reads where a session works.
pub(crate) fn session_location(
    cwd: std::path::PathBuf,
    more_roots: Vec<std::path::PathBuf>,
    servers: Vec<wire::McpServer>,
) -> Result<SessionLocation, Failure> {
    let servers = servers.into_iter().map(mcp_server).collect::<Result<_, _>>()?;
    Ok(SessionLocation { cwd, more_roots, servers })
}

fn mcp_server(server: wire::McpServer) -> Result<McpServer, Failure> {
    let headers = |headers: Vec<wire::HttpHeader>| -> Vec<(String, String)> {
        headers.into_iter().map(|header| (header.name, header.value)).collect()
    };
    Ok(match server {
        wire::McpServer::Stdio(server) => {
            let command = server.command.display().to_string();
            let env = server.env.into_iter().map(|variable| (variable.name, variable.value)).collect();
            McpServer::new(server.name, McpTransport::Stdio { command, args: server.args, env })
        }
        wire::McpServer::Http(server) => {
            let transport = McpTransport::Http { url: server.url, headers: headers(server.headers) };
            McpServer::new(server.name, transport)
        }
        wire::McpServer::Sse(server) => {
            let transport = McpTransport::Sse { url: server.url, headers: headers(server.headers) };
            McpServer::new(server.name, transport)
        }
        _ => {
            let why =
                "One of the MCP servers has a transport that Crow does not know. Use stdio, http or sse.";
            return Err(Failure::new(FailureKind::InvalidValue, why));
        }
    })
}

#[cfg(test)]
mod tests;
