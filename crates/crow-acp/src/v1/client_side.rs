//! Spells what the agent asks of a client's files and terminals, and reads what comes back.

use std::path::Path;

use agent_client_protocol as sdk;
use crow_core::SessionId;
use sdk::v1::schema as wire;

use crate::editor::{ClientError, ClientTerminalOutput, TerminalCommand, TerminalExit};
use crate::v1::session_id;

pub(crate) fn read_file(session: &SessionId, path: &Path) -> wire::ReadTextFileRequest {
    wire::ReadTextFileRequest::new(session_id(session), path)
}

pub(crate) fn write_file(session: &SessionId, path: &Path, text: &str) -> wire::WriteTextFileRequest {
    wire::WriteTextFileRequest::new(session_id(session), path, text)
}

pub(crate) fn create_terminal(session: &SessionId, launch: TerminalCommand) -> wire::CreateTerminalRequest {
    let env = launch.env.into_iter().map(|(name, value)| wire::EnvVariable::new(name, value));
    wire::CreateTerminalRequest::new(session_id(session), launch.program)
        .args(launch.args)
        .env(env.collect::<Vec<_>>())
        .cwd(launch.cwd)
        .output_byte_limit(launch.output_bytes_max)
}

pub(crate) fn terminal_id(created: &wire::CreateTerminalResponse) -> String {
    created.terminal_id.0.to_string()
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
        is_cut: response.truncated,
        exit: response.exit_status.as_ref().map(to_terminal_exit),
    }
}

pub(crate) fn client_error(error: &sdk::Error) -> ClientError {
    let details = error.data.as_ref().and_then(|data| data.get("details").or(Some(data)));
    let details = details.and_then(serde_json::Value::as_str);
    ClientError::Refused(match details {
        Some(details) if !details.is_empty() => format!("{}: {details}", error.message),
        Some(_) | None => error.message.clone(),
    })
}
