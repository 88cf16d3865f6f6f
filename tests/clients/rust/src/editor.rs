//! A client with files and with a person who gives one answer to all questions, or none.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema::{
    ClientCapabilities, ContentBlock, FileSystemCapabilities, ReadTextFileRequest, ReadTextFileResponse,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
    SessionNotification, SessionUpdate, WriteTextFileRequest, WriteTextFileResponse,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, Error};
use agent_client_protocol_http::HttpClient;
use tokio::sync::Notify;

/// The client of one connection.
#[derive(Clone)]
pub struct Editor {
    has_files: bool,
    /// The option that is chosen; questions stay open without one.
    choice: Option<&'static str>,
    state: Arc<Mutex<EditorState>>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct EditorState {
    text: String,
    thought: String,
    files: HashMap<PathBuf, String>,
    n_asked: usize,
    n_missing: usize,
    /// Questions that are not answered.
    open_questions: Vec<Responder<RequestPermissionResponse>>,
}

impl Editor {
    pub fn new(choice: &'static str) -> Self {
        Self { has_files: false, choice: Some(choice), state: Arc::default(), changed: Arc::default() }
    }

    pub fn with_files(choice: &'static str) -> Self {
        Self { has_files: true, ..Self::new(choice) }
    }

    pub fn silent() -> Self {
        Self { choice: None, ..Self::new("") }
    }

    /// Connects to an agent while `main` runs.
    pub async fn connect(
        &self,
        transport: HttpClient,
        main: impl AsyncFnOnce(ConnectionTo<Agent>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (updated, asked, reading, writing) = (self.clone(), self.clone(), self.clone(), self.clone());
        let builder = Client.v1().on_receive_notification(
            async move |notification: SessionNotification, _connection| {
                updated.change(|state| state.apply_update(notification.update));
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        );
        let builder = builder.on_receive_request(
            async move |_: RequestPermissionRequest, responder, _connection| asked.choose(responder),
            agent_client_protocol::on_receive_request!(),
        );
        let builder = builder.on_receive_request(
            async move |request: ReadTextFileRequest, responder, _connection| {
                reading.read(&request.path, responder)
            },
            agent_client_protocol::on_receive_request!(),
        );
        let builder = builder.on_receive_request(
            async move |request: WriteTextFileRequest,
                        responder: Responder<WriteTextFileResponse>,
                        _connection| {
                writing.open_file(request.path, &request.content);
                responder.respond(WriteTextFileResponse::new())
            },
            agent_client_protocol::on_receive_request!(),
        );
        builder.connect_with(transport, main).await
    }

    pub fn capabilities(&self) -> ClientCapabilities {
        let files =
            FileSystemCapabilities::new().read_text_file(self.has_files).write_text_file(self.has_files);
        ClientCapabilities::new().fs(files)
    }

    pub fn open_file(&self, path: PathBuf, text: &str) {
        self.change(|state| state.files.insert(path, text.to_owned()));
    }

    /// The text of the agent's messages.
    pub fn text(&self) -> String {
        self.lock().text.clone()
    }

    pub fn thought(&self) -> String {
        self.lock().thought.clone()
    }

    pub fn file(&self, path: &Path) -> Option<String> {
        self.lock().files.get(path).cloned()
    }

    /// The number of questions.
    pub fn n_asked(&self) -> usize {
        self.lock().n_asked
    }

    /// The number of reads of files that there are not.
    pub fn n_missing(&self) -> usize {
        self.lock().n_missing
    }

    pub async fn wait_until(&self, condition: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.changed.notified();
            if condition(self) {
                return;
            }
            changed.await;
        }
    }

    fn choose(&self, responder: Responder<RequestPermissionResponse>) -> Result<(), Error> {
        self.change(|state| state.n_asked += 1);
        let Some(choice) = self.choice else {
            self.change(|state| state.open_questions.push(responder));
            return Ok(());
        };
        let outcome = RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(choice));
        responder.respond(RequestPermissionResponse::new(outcome))
    }

    fn read(&self, path: &Path, responder: Responder<ReadTextFileResponse>) -> Result<(), Error> {
        let on_disk = || std::fs::read_to_string(path).ok();
        match self.file(path).or_else(on_disk) {
            Some(text) => responder.respond(ReadTextFileResponse::new(text)),
            None => {
                self.change(|state| state.n_missing += 1);
                responder.respond_with_error(Error::new(-32002, "there is no such file"))
            }
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut EditorState) -> T) {
        change(&mut self.lock());
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, EditorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EditorState {
    fn apply_update(&mut self, update: SessionUpdate) {
        let (text, chunk) = match update {
            SessionUpdate::AgentMessageChunk(chunk) => (&mut self.text, chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => (&mut self.thought, chunk),
            _ => return,
        };
        if let ContentBlock::Text(part) = chunk.content {
            text.push_str(&part.text);
        }
    }
}
