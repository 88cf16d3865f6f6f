//! What a client does for tools: its files, unsaved buffers included, and its terminals. Asked only for what it
//! said it can do, never waited for without end, and every terminal is given back.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol as sdk;
use crow_core::SessionId;
use tokio_util::sync::CancellationToken;

use crate::abilities::AcpClientCapabilities;
use crate::outbox::Client;
use crate::v1;

/// A client answers such a request from memory or disk; one that takes longer has stopped answering.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(30);

/// How long a terminal may be late and still be given back.
const LATE_WAIT_MAX: Duration = Duration::from_mins(10);

/// How long a turn that was cut waits for the client to open a terminal that is on its way, to kill, to show.
const LAST_WAIT_MAX: Duration = Duration::from_secs(1);

/// Why a client did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// It said no.
    #[error("the client refused: {0}")]
    Refused(String),
    /// It says nothing.
    #[error("the client did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// Nobody waits for it any longer.
    #[error("stopped: the turn was cancelled")]
    Cut,
}

/// A client's files and terminals, for one session.
#[derive(Debug, Clone)]
pub struct ClientEditor {
    client: Client,
    session: SessionId,
}

/// A command for a client's terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalCommand {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables it gets beside the client's own.
    pub env: Vec<(String, String)>,
    /// Where it runs; absolute.
    pub cwd: PathBuf,
    /// How much of the end of its output the client keeps.
    pub output_bytes_max: u64,
}

/// How a command in a client's terminal ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalExit {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<u32>,
    /// The signal's name.
    pub signal: Option<String>,
}

/// What a command printed in a client's terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTerminalOutput {
    /// The text, or its end.
    pub text: String,
    /// The beginning is missing.
    pub is_cut: bool,
    /// How it ended, when it has.
    pub exit: Option<TerminalExit>,
}

impl ClientEditor {
    pub(crate) fn new(client: Client, session: SessionId) -> Self {
        Self { client, session }
    }

    /// What the client can do.
    pub fn capabilities(&self) -> AcpClientCapabilities {
        self.client.capabilities()
    }

    /// Reads a text file as the client sees it.
    pub async fn read_file(&self, path: &Path, cut: &CancellationToken) -> Result<String, ClientError> {
        let request = v1::read_file(&self.session, path);
        Ok(self.request_with_timeout(request, ANSWER_WAIT_MAX, cut).await?.content)
    }

    /// Writes a text file through the client.
    pub async fn write_file(
        &self,
        path: &Path,
        text: &str,
        cut: &CancellationToken,
    ) -> Result<(), ClientError> {
        self.request_with_timeout(v1::write_file(&self.session, path, text), ANSWER_WAIT_MAX, cut)
            .await
            .map(drop)
    }

    /// Runs a command in a terminal of the client.
    pub async fn open_terminal(
        &self,
        launch: TerminalCommand,
        cut: &CancellationToken,
    ) -> Result<Arc<ClientTerminal>, ClientError> {
        if cut.is_cancelled() {
            return Err(ClientError::Cut);
        }
        // Whoever stops waiting must still give back what the client opens later.
        let editor = self.clone();
        let mut opening = tokio::spawn(async move {
            let request = v1::create_terminal(&editor.session, launch);
            let created =
                editor.request_with_timeout(request, LATE_WAIT_MAX, &CancellationToken::new()).await?;
            Ok(Arc::new(ClientTerminal { editor, id: v1::terminal_id(&created) }))
        });
        let opened = tokio::time::timeout(ANSWER_WAIT_MAX, &mut opening);
        match cut.run_until_cancelled(opened).await {
            Some(Ok(Ok(opened))) => opened,
            Some(Ok(Err(error))) => Err(ClientError::Refused(error.to_string())),
            Some(Err(_)) => Err(ClientError::Silent(ANSWER_WAIT_MAX)),
            None => {
                // Given back before the turn ends, if the client is not very slow.
                drop(tokio::time::timeout(LAST_WAIT_MAX, opening).await);
                Err(ClientError::Cut)
            }
        }
    }

    /// Asks the client; a request that nobody waits for any longer is taken back by itself.
    async fn request_with_timeout<R: sdk::JsonRpcRequest>(
        &self,
        request: R,
        within: Duration,
        cut: &CancellationToken,
    ) -> Result<R::Response, ClientError>
    where
        R::Response: Send,
    {
        let answer = tokio::time::timeout(within, self.send_request(request));
        match cut.run_until_cancelled(answer).await {
            Some(answered) => into_client_result(answered, within),
            None => Err(ClientError::Cut),
        }
    }

    /// Asks for what a turn still has to do when it is cut, though not for long.
    async fn request_during_cancel<R: sdk::JsonRpcRequest>(
        &self,
        request: R,
        cut: &CancellationToken,
    ) -> Result<R::Response, ClientError>
    where
        R::Response: Send,
    {
        let answer = tokio::time::timeout(ANSWER_WAIT_MAX, self.send_request(request));
        tokio::pin!(answer);
        match cut.run_until_cancelled(&mut answer).await {
            Some(answered) => into_client_result(answered, ANSWER_WAIT_MAX),
            None => match tokio::time::timeout(LAST_WAIT_MAX, answer).await {
                Ok(answered) => into_client_result(answered, LAST_WAIT_MAX),
                Err(_) => Err(ClientError::Silent(LAST_WAIT_MAX)),
            },
        }
    }

    async fn send_request<R: sdk::JsonRpcRequest>(&self, request: R) -> Result<R::Response, sdk::Error>
    where
        R::Response: Send,
    {
        // What was told of a call comes before what is asked for it.
        self.client.flush_updates(&self.session).await;
        self.client.send_request(request).await
    }
}

type TimedResponse<T> = Result<Result<T, sdk::Error>, tokio::time::error::Elapsed>;

fn into_client_result<T>(answered: TimedResponse<T>, within: Duration) -> Result<T, ClientError> {
    match answered {
        Ok(answer) => answer.map_err(|error| v1::client_error(&error)),
        Err(_) => Err(ClientError::Silent(within)),
    }
}

/// A terminal of the client. Whoever drops the last of it has given it back.
#[derive(Debug)]
pub struct ClientTerminal {
    editor: ClientEditor,
    id: String,
}

impl ClientTerminal {
    /// The client's name for it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits for its command to end.
    pub async fn wait_for_exit(
        &self,
        within: Duration,
        cut: &CancellationToken,
    ) -> Result<TerminalExit, ClientError> {
        let request = v1::wait_for_exit(&self.editor.session, &self.id);
        let ended = self.editor.request_with_timeout(request, within, cut).await?;
        Ok(v1::to_terminal_exit(&ended.exit_status))
    }

    /// Ends its command; the terminal stays.
    pub async fn kill(&self, cut: &CancellationToken) -> Result<(), ClientError> {
        let request = v1::kill_terminal(&self.editor.session, &self.id);
        self.editor.request_during_cancel(request, cut).await.map(drop)
    }

    /// Gives a command that was killed a moment to be gone, so that its output is whole.
    pub async fn wait_after_kill(&self) {
        let request = v1::wait_for_exit(&self.editor.session, &self.id);
        if let Err(error) =
            self.editor.request_with_timeout(request, LAST_WAIT_MAX, &CancellationToken::new()).await
        {
            tracing::debug!(%error, "a killed command may still print");
        }
    }

    /// Reads what its command printed so far.
    pub async fn read_output(&self, cut: &CancellationToken) -> Result<ClientTerminalOutput, ClientError> {
        let request = v1::read_terminal(&self.editor.session, &self.id);
        self.editor.request_during_cancel(request, cut).await.map(v1::terminal_output)
    }
}

impl Drop for ClientTerminal {
    fn drop(&mut self) {
        self.editor.client.send_detached_request(v1::release_terminal(&self.editor.session, &self.id));
    }
}
