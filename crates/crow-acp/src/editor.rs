//! The client's files, including unsaved buffers, and terminals, for tools. Uses only declared capabilities, never
//! waits forever, and releases every terminal.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol as sdk;
use crow_core::SessionId;
use tokio_util::sync::CancellationToken;

use crate::capabilities::AcpClientCapabilities;
use crate::client_terminal::{ClientError, ClientTerminalOutput, TerminalCommand, TerminalExit};
use crate::connected_client::Client;
use crate::v1;

/// A client answers such a request from memory or disk; a slower one has stopped answering.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest delay of a terminal that is still released.
const LATE_TERMINAL_TIMEOUT: Duration = Duration::from_mins(10);

/// The wait of a cancelled turn for the client to open a pending terminal, to kill a command, to return its output.
const CANCELLED_TURN_TIMEOUT: Duration = Duration::from_secs(1);

/// A client's files and terminals, for one session.
#[derive(Debug, Clone)]
pub struct ClientEditor {
    client: Client,
    session: SessionId,
}

impl Client {
    /// Returns the client's files and terminals, for a session.
    pub fn editor(&self, session: &SessionId) -> ClientEditor {
        ClientEditor { client: self.clone(), session: session.clone() }
    }
}

impl ClientEditor {
    /// Returns the client's capabilities.
    pub fn capabilities(&self) -> AcpClientCapabilities {
        self.client.capabilities()
    }

    /// Reads a text file as the client sees it.
    pub async fn read_file(&self, path: &Path, cancel: &CancellationToken) -> Result<String, ClientError> {
        let request = v1::read_file(&self.session, path);
        Ok(self.request_with_timeout(request, REQUEST_TIMEOUT, cancel).await?.content)
    }

    /// Writes a text file through the client.
    pub async fn write_file(
        &self,
        path: &Path,
        text: &str,
        cancel: &CancellationToken,
    ) -> Result<(), ClientError> {
        self.request_with_timeout(v1::write_file(&self.session, path, text), REQUEST_TIMEOUT, cancel)
            .await
            .map(drop)
    }

    /// Runs a command in a terminal of the client.
    pub async fn open_terminal(
        &self,
        command: TerminalCommand,
        cancel: &CancellationToken,
    ) -> Result<Arc<ClientTerminal>, ClientError> {
        if cancel.is_cancelled() {
            return Err(ClientError::Cancelled);
        }
        // A terminal that the client opens later must be released even if the caller stops waiting.
        let editor = self.clone();
        let mut open_task = tokio::spawn(async move {
            let request = v1::create_terminal(&editor.session, command);
            let response = editor
                .request_with_timeout(request, LATE_TERMINAL_TIMEOUT, &CancellationToken::new())
                .await?;
            Ok(Arc::new(ClientTerminal { editor, id: v1::terminal_id(&response) }))
        });
        let opened_terminal = tokio::time::timeout(REQUEST_TIMEOUT, &mut open_task);
        match cancel.run_until_cancelled(opened_terminal).await {
            Some(Ok(Ok(opened_terminal))) => opened_terminal,
            Some(Ok(Err(error))) => Err(ClientError::Rejected(error.to_string())),
            Some(Err(_)) => Err(ClientError::TimedOut(REQUEST_TIMEOUT)),
            None => {
                // Released before the turn ends, unless the client is very slow.
                drop(tokio::time::timeout(CANCELLED_TURN_TIMEOUT, open_task).await);
                Err(ClientError::Cancelled)
            }
        }
    }

    /// Sends a request; dropping it cancels it at the client.
    async fn request_with_timeout<R: sdk::JsonRpcRequest>(
        &self,
        request: R,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<R::Response, ClientError>
    where
        R::Response: Send,
    {
        let response = limit_response(self.send_request(request), timeout);
        cancel.run_until_cancelled(response).await.unwrap_or(Err(ClientError::Cancelled))
    }

    /// Sends a request that a cancelled turn still needs, with a short timeout.
    async fn request_during_cancel<R: sdk::JsonRpcRequest>(
        &self,
        request: R,
        cancel: &CancellationToken,
    ) -> Result<R::Response, ClientError>
    where
        R::Response: Send,
    {
        let response = self.send_request(request);
        tokio::pin!(response);
        let limited = limit_response(&mut response, REQUEST_TIMEOUT);
        match cancel.run_until_cancelled(limited).await {
            Some(answered) => answered,
            None => limit_response(response, CANCELLED_TURN_TIMEOUT).await,
        }
    }

    async fn send_request<R: sdk::JsonRpcRequest>(&self, request: R) -> Result<R::Response, sdk::Error>
    where
        R::Response: Send,
    {
        // Updates of a call precede the requests for it.
        self.client.flush_updates(&self.session).await;
        self.client.send_request(request).await
    }
}

/// Waits for a response for a limited time.
async fn limit_response<T>(
    response: impl Future<Output = Result<T, sdk::Error>>,
    timeout: Duration,
) -> Result<T, ClientError> {
    match tokio::time::timeout(timeout, response).await {
        Ok(response) => response.map_err(|error| v1::client_error(&error)),
        Err(_) => Err(ClientError::TimedOut(timeout)),
    }
}

/// A terminal of the client. Dropping the last handle releases it.
#[derive(Debug)]
pub struct ClientTerminal {
    editor: ClientEditor,
    id: String,
}

impl ClientTerminal {
    /// The client's ID of the terminal.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits for its command to end.
    pub async fn wait_for_exit(
        &self,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<TerminalExit, ClientError> {
        let request = v1::wait_for_exit(&self.editor.session, &self.id);
        let response = self.editor.request_with_timeout(request, timeout, cancel).await?;
        Ok(v1::to_terminal_exit(&response.exit_status))
    }

    /// Kills its command; the terminal stays.
    pub async fn kill(&self, cancel: &CancellationToken) -> Result<(), ClientError> {
        let request = v1::kill_terminal(&self.editor.session, &self.id);
        self.editor.request_during_cancel(request, cancel).await.map(drop)
    }

    /// Gives a killed command a moment to end, so that its output is complete.
    pub async fn wait_after_kill(&self) {
        let request = v1::wait_for_exit(&self.editor.session, &self.id);
        if let Err(error) =
            self.editor.request_with_timeout(request, CANCELLED_TURN_TIMEOUT, &CancellationToken::new()).await
        {
            tracing::debug!(%error, "a killed command may still write output");
        }
    }

    /// Reads the output of its command so far.
    pub async fn read_output(&self, cancel: &CancellationToken) -> Result<ClientTerminalOutput, ClientError> {
        let request = v1::read_terminal(&self.editor.session, &self.id);
        self.editor.request_during_cancel(request, cancel).await.map(v1::terminal_output)
    }
}

impl Drop for ClientTerminal {
    fn drop(&mut self) {
        self.editor.client.send_detached_request(v1::release_terminal(&self.editor.session, &self.id));
    }
}
