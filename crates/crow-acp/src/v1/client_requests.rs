//! Converts the agent's requests for a client's files and terminals, and the responses, for both ends.

use std::path::Path;

use agent_client_protocol as sdk;
use crow_core::SessionId;
use sdk::v1::schema as wire;

use crate::client_terminal::{
    ClientError, ClientTerminalOutput, RequestedCommand, TerminalCommand, TerminalExit,
};
use crate::v1::primitives::session_id;

pub(crate) fn read_file(session: &SessionId, path: &Path) -> wire::ReadTextFileRequest {
    wire::ReadTextFileRequest::new(session_id(session), path)
}

pub(crate) fn write_file(session: &SessionId, path: &Path, text: &str) -> wire::WriteTextFileRequest {
    wire::WriteTextFileRequest::new(session_id(session), path, text)
}

pub(crate) fn create_terminal(session: &SessionId, command: TerminalCommand) -> wire::CreateTerminalRequest {
    let env = command.env.into_iter().map(|(name, value)| wire::EnvVariable::new(name, value));
    wire::CreateTerminalRequest::new(session_id(session), command.program)
        .args(command.args)
        .env(env.collect::<Vec<_>>())
        .cwd(command.cwd)
        .output_byte_limit(command.output_bytes_max)
}

pub(crate) fn terminal_id(response: &wire::CreateTerminalResponse) -> String {
    response.terminal_id.0.to_string()
}

pub(crate) fn wait_for_exit(session: &SessionId, id: &str) -> wire::WaitForTerminalExitRequest {
    wire::WaitForTerminalExitRequest::new(session_id(session), wire::TerminalId::new(id))
}

pub(crate) fn kill_terminal(session: &SessionId, id: &str) -> wire::KillTerminalRequest {
    wire::KillTerminalRequest::new(session_id(session), wire::TerminalId::new(id))
}

pub(crate) fn read_terminal(session: &SessionId, id: &str) -> wire::TerminalOutputRequest {
    wire::TerminalOutputRequest::new(session_id(session), wire::TerminalId::new(id))
}

pub(crate) fn release_terminal(session: &SessionId, id: &str) -> wire::ReleaseTerminalRequest {
    wire::ReleaseTerminalRequest::new(session_id(session), wire::TerminalId::new(id))
}

pub(crate) fn to_terminal_exit(status: &wire::TerminalExitStatus) -> TerminalExit {
    TerminalExit { code: status.exit_code, signal: status.signal.clone() }
}

pub(crate) fn terminal_output(response: wire::TerminalOutputResponse) -> ClientTerminalOutput {
    ClientTerminalOutput {
        text: response.output,
        is_truncated: response.truncated,
        exit: response.exit_status.as_ref().map(to_terminal_exit),
    }
}

pub(crate) fn client_error(error: &sdk::Error) -> ClientError {
    let details = error.data.as_ref().and_then(|data| data.get("details").or(Some(data)));
    let details = details.and_then(serde_json::Value::as_str);
    ClientError::Rejected(match details {
        Some(details) if !details.is_empty() => format!("{}: {details}", error.message),
        Some(_) | None => error.message.clone(),
    })
}

/// Parses the command of an agent.
pub(crate) fn client_command(request: wire::CreateTerminalRequest) -> RequestedCommand {
    let env = request.env.into_iter().map(|variable| (variable.name, variable.value));
    RequestedCommand {
        program: request.command,
        args: request.args,
        env: env.collect(),
        cwd: request.cwd,
        output_bytes_max: request.output_byte_limit,
    }
}

fn from_terminal_exit(exit: TerminalExit) -> wire::TerminalExitStatus {
    wire::TerminalExitStatus::new().exit_code(exit.code).signal(exit.signal)
}

pub(crate) fn wait_response(exit: TerminalExit) -> wire::WaitForTerminalExitResponse {
    wire::WaitForTerminalExitResponse::new(from_terminal_exit(exit))
}

pub(crate) fn terminal_output_response(output: ClientTerminalOutput) -> wire::TerminalOutputResponse {
    wire::TerminalOutputResponse::new(output.text, output.is_truncated)
        .exit_status(output.exit.map(from_terminal_exit))
}
