//! Converts the beginning of a connection and of a session: `initialize`, capabilities, options, MCP servers.

use agent_client_protocol as sdk;
use crow_core::{Failure, FailureKind, McpServer, McpTransport, Mode, SessionConfigOptions, ThoughtLevel};
use sdk::schema::ProtocolVersion;
use sdk::v1::schema as wire;
use serde_json::{Value, json};

use crate::capabilities::AcpClientCapabilities;
use crate::incoming::{AgentInfo, OpenSessionResult, SessionInfo, SessionLocation, SessionPage};
use crate::v1::primitives::{session_id, to_meta};

/// The authentication method that the agent performs itself.
const AUTH_CONFIGURED: &str = "configured";

/// The authentication method that needs a terminal.
const AUTH_TERMINAL: &str = "set-up";

/// The argument that the terminal method adds to the command of this agent.
const AUTH_TERMINAL_ARGUMENT: &str = "--set-up";

/// Parses a client's capabilities.
pub(crate) fn client_capabilities(request: &wire::InitializeRequest) -> AcpClientCapabilities {
    let client = &request.client_capabilities;
    let meta_flag = |name: &str| {
        client.meta.as_ref().and_then(|meta| meta.get(name)).and_then(Value::as_bool) == Some(true)
    };
    AcpClientCapabilities {
        reads_files: client.fs.read_text_file,
        writes_files: client.fs.write_text_file,
        terminals: client.terminal,
        terminal_output: meta_flag("terminal_output"),
        notices: client.session.as_ref().is_some_and(|session| session.notices.is_some()),
        compactions: client.session.as_ref().is_some_and(|session| session.compaction.is_some()),
        forms: client.elicitation.as_ref().is_some_and(wire::ElicitationCapabilities::supports_form),
        children: client.subagents.is_some(),
        session_tokens: super::agent_tree::wants_session_tokens(client.meta.as_ref()),
        tree_depth: super::agent_tree::tree_depth(client.meta.as_ref()),
        terminal_auth: client.auth.terminal,
        terminal_auth_by_command: meta_flag("terminal-auth"),
    }
}

/// Makes the response to `initialize`. The version is always ours: there is no other.
pub(crate) fn initialize_response(
    agent_info: &AgentInfo,
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
        .prompt_capabilities(
            wire::PromptCapabilities::new().image(agent_info.reads_images).embedded_context(true),
        )
        .mcp_capabilities(wire::McpCapabilities::new().http(true).sse(true))
        .auth(wire::AgentAuthCapabilities::new().logout(wire::LogoutCapabilities::new()))
        .session_capabilities(sessions);
    wire::InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(wire::Implementation::new("crow-cli", agent_info.version).title("Crow".to_owned()))
        .auth_methods(auth_methods(agent_info, client))
        .meta(to_meta(json!({ "steering": { "supported": true }, "crow": { "prompts": true } })))
}

fn auth_methods(agent_info: &AgentInfo, client: AcpClientCapabilities) -> Vec<wire::AuthMethod> {
    let agent_method = wire::AuthMethodAgent::new(AUTH_CONFIGURED, "Use the configured models")
        .description("Reloads the configuration and its keys".to_owned());
    let terminal_label = "Choose a provider and enter its key";
    let agent_method = match &agent_info.program {
        Some(program) if client.terminal_auth_by_command => agent_method.meta(to_meta(json!({
            "terminal-auth": { "label": terminal_label, "command": program, "args": ["auth"], "env": {} }
        }))),
        Some(_) | None => agent_method,
    };
    let terminal_method = wire::AuthMethodTerminal::new(AUTH_TERMINAL, terminal_label)
        .args(vec![AUTH_TERMINAL_ARGUMENT.to_owned()]);
    let mut methods = vec![wire::AuthMethod::Agent(agent_method)];
    if client.terminal_auth {
        methods.push(wire::AuthMethod::Terminal(terminal_method));
    }
    methods
}

/// Validates an authentication method.
pub(crate) fn check_sign_in_method(method: &str) -> Result<(), Failure> {
    let reason = match method {
        AUTH_CONFIGURED => return Ok(()),
        AUTH_TERMINAL => {
            format!(
                "the authentication method {method} needs a terminal: start this agent with {AUTH_TERMINAL_ARGUMENT} there"
            )
        }
        _ => format!("there is no authentication method {method}; use {AUTH_CONFIGURED}"),
    };
    Err(Failure::new(FailureKind::InvalidValue, reason))
}

pub(crate) fn new_session_response(session: &OpenSessionResult) -> wire::NewSessionResponse {
    wire::NewSessionResponse::new(session_id(&session.session))
        .modes(mode_state(session.options.mode))
        .config_options(config_options(&session.options))
}

pub(crate) fn load_session_response(session: &OpenSessionResult) -> wire::LoadSessionResponse {
    wire::LoadSessionResponse::new()
        .modes(mode_state(session.options.mode))
        .config_options(config_options(&session.options))
}

pub(crate) fn resume_session_response(session: &OpenSessionResult) -> wire::ResumeSessionResponse {
    wire::ResumeSessionResponse::new()
        .modes(mode_state(session.options.mode))
        .config_options(config_options(&session.options))
}

pub(crate) fn fork_session_response(session: &OpenSessionResult) -> wire::ForkSessionResponse {
    wire::ForkSessionResponse::new(session_id(&session.session))
        .modes(mode_state(session.options.mode))
        .config_options(config_options(&session.options))
}

pub(crate) fn list_sessions_response(page: SessionPage) -> wire::ListSessionsResponse {
    let sessions = page.sessions.into_iter().map(|info| {
        wire::SessionInfo::new(session_id(&info.session), info.cwd)
            .title(info.title)
            .updated_at(info.updated_at)
    });
    wire::ListSessionsResponse::new(sessions.collect::<Vec<_>>()).next_cursor(page.next_cursor)
}

/// Parses a stored session of a list.
pub(crate) fn session_info(info: wire::SessionInfo) -> SessionInfo {
    SessionInfo {
        session: crow_core::SessionId::new(&*info.session_id.0),
        cwd: info.cwd,
        title: info.title,
        updated_at: info.updated_at.unwrap_or_default(),
    }
}

fn mode_state(current: Mode) -> wire::SessionModeState {
    let all = Mode::ALL.map(|mode| {
        wire::SessionMode::new(mode.as_str(), mode.as_str()).description(mode.description().to_owned())
    });
    wire::SessionModeState::new(current.as_str(), all.to_vec())
}

/// Converts every option; clients show them in this order.
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

/// Models of several providers are grouped by provider.
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

/// Parses the directories of a session.
pub(crate) fn session_location(
    cwd: std::path::PathBuf,
    additional_directories: Vec<std::path::PathBuf>,
    servers: Vec<wire::McpServer>,
) -> Result<SessionLocation, Failure> {
    let servers = servers.into_iter().map(mcp_server).collect::<Result<_, _>>()?;
    Ok(SessionLocation { cwd, additional_directories, servers })
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
            let reason = "one of the MCP servers has an unsupported transport; use stdio, http or sse";
            return Err(Failure::new(FailureKind::InvalidValue, reason));
        }
    })
}

#[cfg(test)]
mod tests;
