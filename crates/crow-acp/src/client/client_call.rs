//! An agent's request in the form for a client that serves it itself, from its own files and terminals.

use std::fmt;
use std::path::PathBuf;

use agent_client_protocol as sdk;
use sdk::v1::schema as wire;

use super::access::{ClientAccessRequest, ClientMethodCall, Responder, log_send_error, wrap_command_line};
use crate::client_terminal::{ClientTerminalOutput, RequestedCommand, TerminalExit};
use crate::v1;

/// A request for a client's files or terminals. Dropping its answer answers with an error.
#[derive(Debug)]
pub enum ClientCall {
    /// Returns the text of a file, from a line (from 1) on and at most so many lines.
    ReadFile { path: PathBuf, line: Option<u32>, limit: Option<u32>, answer: ClientAnswer<String> },
    /// Replaces or creates a file.
    WriteFile { path: PathBuf, text: String, answer: ClientAnswer<()> },
    /// Starts a command and returns the ID of its terminal.
    CreateTerminal { command: RequestedCommand, answer: ClientAnswer<String> },
    /// Returns the output so far.
    ReadTerminal { terminal: String, answer: ClientAnswer<ClientTerminalOutput> },
    /// Answers when the command has ended.
    WaitForExit { terminal: String, answer: ClientAnswer<TerminalExit> },
    /// Ends the command; its output can still be read.
    KillTerminal { terminal: String, answer: ClientAnswer<()> },
    /// Ends the command and forgets the terminal.
    ReleaseTerminal { terminal: String, answer: ClientAnswer<()> },
}

/// The reason why a client does not serve a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientCallError {
    /// The file does not exist.
    NotFound(String),
    Failed(String),
}

/// Answers one request.
pub struct ClientAnswer<T>(Box<dyn FnOnce(Result<T, ClientCallError>) + Send>);

impl<T> fmt::Debug for ClientAnswer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientAnswer")
    }
}

impl<T: 'static> ClientAnswer<T> {
    fn new<R>(responder: Responder<R>, to_response: fn(T) -> R) -> Self
    where
        R: sdk::JsonRpcResponse + Send + 'static,
    {
        Self(Box::new(move |result| {
            log_send_error(match result {
                Ok(value) => responder.respond(to_response(value)),
                Err(ClientCallError::NotFound(reason)) => {
                    responder.respond_with_error(v1::missing_file_error(&reason))
                }
                Err(ClientCallError::Failed(reason)) => {
                    responder.respond_with_error(v1::no_user_error(&reason))
                }
            });
        }))
    }

    /// Sends the answer.
    pub fn send(self, result: Result<T, ClientCallError>) {
        (self.0)(result);
    }
}

impl ClientAccessRequest {
    /// Converts the request for a client that serves it itself.
    pub fn into_call(self) -> ClientCall {
        match self.request {
            ClientMethodCall::Read(request, responder) => ClientCall::ReadFile {
                path: request.path,
                line: request.line,
                limit: request.limit,
                answer: ClientAnswer::new(responder, wire::ReadTextFileResponse::new),
            },
            ClientMethodCall::Write(request, responder) => ClientCall::WriteFile {
                path: request.path,
                text: request.content,
                answer: ClientAnswer::new(responder, |()| wire::WriteTextFileResponse::new()),
            },
            ClientMethodCall::Create(mut request, responder) => {
                wrap_command_line(&mut request);
                ClientCall::CreateTerminal {
                    command: v1::client_command(request),
                    answer: ClientAnswer::new(responder, |id: String| wire::CreateTerminalResponse::new(id)),
                }
            }
            ClientMethodCall::Output(request, responder) => ClientCall::ReadTerminal {
                terminal: request.terminal_id.0.to_string(),
                answer: ClientAnswer::new(responder, v1::terminal_output_response),
            },
            ClientMethodCall::Wait(request, responder) => ClientCall::WaitForExit {
                terminal: request.terminal_id.0.to_string(),
                answer: ClientAnswer::new(responder, v1::wait_response),
            },
            ClientMethodCall::Kill(request, responder) => ClientCall::KillTerminal {
                terminal: request.terminal_id.0.to_string(),
                answer: ClientAnswer::new(responder, |()| wire::KillTerminalResponse::new()),
            },
            ClientMethodCall::Release(request, responder) => ClientCall::ReleaseTerminal {
                terminal: request.terminal_id.0.to_string(),
                answer: ClientAnswer::new(responder, |()| wire::ReleaseTerminalResponse::new()),
            },
        }
    }
}
