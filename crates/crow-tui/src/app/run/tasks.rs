//! Carries out the requests of an update: each in a task of its own, whose result comes back as an event.

use std::{
    fs::File,
    io::{ErrorKind, Write as _},
    path::PathBuf,
    sync::Arc,
};

use crow_acp::{AgentConnection, OpenedSession, TurnScope};
use crow_core::{ContentPart, Failure, FailureKind, SessionId};
use futures_util::future::BoxFuture;
use tokio::sync::{OnceCell, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    draft_file,
    files::{FileIndex, list_files, match_files},
    history_file,
};
use crate::{
    app::{
        cells::CommandEnd,
        event::{AppEvent, AttachedImage, SessionChoice},
        history::HistoryEntry,
    },
    text::format_count,
};

/// The file of drafts in the directory of the history.
const DRAFTS_FILE: &str = "drafts.json";

/// Pieces of output that wait for the loop.
const OUTPUT_LEN: usize = 16;

/// The machine as the client needs it: programs are started, and images checked, elsewhere.
pub trait ClientHost: Send + Sync + 'static {
    /// Runs a command of the user in a shell; sends its output while it runs.
    fn run_command(
        &self,
        command: String,
        output: mpsc::Sender<String>,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, ShellExit>;

    /// Reads an image for a prompt.
    fn read_image(&self, path: PathBuf) -> BoxFuture<'static, Result<AttachedImage, String>>;

    /// Reads the image in the clipboard.
    fn read_clipboard(&self) -> BoxFuture<'static, Result<AttachedImage, String>>;

    /// Gives a text to a program around this one that keeps it from the terminal's clipboard: tmux.
    fn copy_text(&self, text: String) -> BoxFuture<'static, Result<(), String>>;

    /// Returns the changes of the repository as a patch.
    fn load_diff(&self) -> BoxFuture<'static, Result<String, String>>;

    /// Returns the branch of the repository.
    fn read_branch(&self) -> BoxFuture<'static, Option<String>>;

    /// Opens a text in the user's editor, which has the terminal meanwhile, and returns the changed text.
    /// A cancelled editor is ended.
    fn edit_text(
        &self,
        text: String,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<String, String>>;
}

/// The end of a command that the user ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellExit {
    Exited(i64),
    /// It was ended by a signal or could not be started.
    Stopped(String),
}

/// Starts tasks.
pub(super) struct TaskRunner<H> {
    pub(super) host: Arc<H>,
    pub(super) cwd: PathBuf,
    pub(super) events: mpsc::Sender<AppEvent>,
    pub(super) connection: Option<AgentConnection>,
    pub(super) session: Option<SessionId>,
    pub(super) history_file: Option<PathBuf>,
    /// Options that are set when the first session is open.
    pub(super) initial_options: Vec<(String, String)>,
    files: Arc<OnceCell<FileIndex>>,
    shell_cancel: CancellationToken,
    editor_cancel: CancellationToken,
}

impl<H: ClientHost> TaskRunner<H> {
    pub(super) fn new(host: H, cwd: PathBuf, events: mpsc::Sender<AppEvent>) -> Self {
        Self {
            host: Arc::new(host),
            cwd,
            events,
            connection: None,
            session: None,
            history_file: None,
            initial_options: Vec::new(),
            files: Arc::default(),
            shell_cancel: CancellationToken::new(),
            editor_cancel: CancellationToken::new(),
        }
    }

    /// Runs a future and sends the event it returns.
    fn spawn(&self, task: impl Future<Output = AppEvent> + Send + 'static) {
        let events = self.events.clone();
        tokio::spawn(async move {
            let event = task.await;
            // The loop has ended.
            let _ = events.send(event).await;
        });
    }

    /// Returns the connection and the session, if both are open.
    fn open_session_parts(&self) -> Option<(AgentConnection, SessionId)> {
        Some((self.connection.clone()?, self.session.clone()?))
    }

    pub(super) fn open_session(&mut self, target: SessionChoice) {
        let Some(connection) = self.connection.clone() else { return };
        if !matches!(target, SessionChoice::ForkBefore { .. }) {
            self.session = None;
        }
        let (cwd, options) = (self.cwd.clone(), std::mem::take(&mut self.initial_options));
        let events = self.events.clone();
        self.spawn(async move {
            let mut opened = open_session(&connection, target, cwd).await;
            if let Ok(opened) = &mut opened {
                for refusal in set_options(&connection, opened, &options).await {
                    // The loop has ended.
                    let _ = events.send(AppEvent::Reported(Err(refusal))).await;
                }
            }
            AppEvent::SessionOpened(opened)
        });
    }

    pub(super) fn send_prompt(&self, content: Vec<ContentPart>) {
        let Some((connection, session)) = self.open_session_parts() else { return };
        self.spawn(async move {
            AppEvent::TurnEnded(connection.send_prompt(&session, content, TurnScope::WithoutTasks).await)
        });
    }

    pub(super) fn steer(&self, text: String) {
        let Some((connection, session)) = self.open_session_parts() else { return };
        self.spawn(async move {
            let result = connection.send_steering(&session, &text).await;
            AppEvent::Steered { text, result }
        });
    }

    pub(super) fn cancel_turn(&self) {
        if let Some((connection, session)) = self.open_session_parts() {
            connection.cancel_turn(&session);
        }
    }

    pub(super) fn set_option(&self, option: String, value: String) {
        let Some((connection, session)) = self.open_session_parts() else { return };
        self.spawn(
            async move { AppEvent::OptionSet(connection.set_option(&session, &option, &value).await) },
        );
    }

    pub(super) fn list_sessions(&self) {
        let Some(connection) = self.connection.clone() else { return };
        let cwd = self.cwd.clone();
        self.spawn(async move { AppEvent::SessionsListed(connection.list_sessions(&cwd).await) });
    }

    pub(super) fn list_prompts(&self) {
        let Some((connection, session)) = self.open_session_parts() else { return };
        self.spawn(async move { AppEvent::PromptsListed(connection.list_prompts(&session).await) });
    }

    /// Matches a query with the project's files, which are listed again when a word begins: a turn may have changed them.
    pub(super) fn match_files(&mut self, query: String) {
        if query.is_empty() {
            self.files = Arc::default();
        }
        let (files, root) = (self.files.clone(), self.cwd.clone());
        self.spawn(async move {
            let list = || async { run_blocking(move || list_files(&root)).await.unwrap_or_default() };
            let index = files.get_or_init(list).await.clone();
            let searched = query.clone();
            let paths = run_blocking(move || match_files(&index, &searched)).await.unwrap_or_default();
            AppEvent::FilesMatched { query, paths }
        });
    }

    pub(super) fn run_command(&mut self, command: String) {
        self.shell_cancel = CancellationToken::new();
        let (output_sender, mut output) = mpsc::channel(OUTPUT_LEN);
        let run = self.host.run_command(command, output_sender, self.shell_cancel.clone());
        let events = self.events.clone();
        self.spawn(async move {
            let forward = async {
                while let Some(text) = output.recv().await {
                    let _ = events.send(AppEvent::CommandOutput(text)).await;
                }
            };
            let (exit, ()) = tokio::join!(run, forward);
            AppEvent::CommandEnded(match exit {
                ShellExit::Exited(code) => CommandEnd::Exited(code),
                ShellExit::Stopped(reason) => CommandEnd::Signalled(reason),
            })
        });
    }

    pub(super) fn kill_command(&self) {
        self.shell_cancel.cancel();
    }

    pub(super) fn edit_text(&mut self, text: String) {
        self.editor_cancel = CancellationToken::new();
        let edit = self.host.edit_text(text, self.editor_cancel.clone());
        self.spawn(async move { AppEvent::EditorClosed(edit.await) });
    }

    pub(super) fn end_editor(&self) {
        self.editor_cancel.cancel();
    }

    pub(super) fn read_image(&self, path: PathBuf, pasted: String) {
        let read = self.host.read_image(path);
        self.spawn(async move { AppEvent::ImageRead { result: read.await, pasted: Some(pasted) } });
    }

    pub(super) fn read_clipboard(&self) {
        let read = self.host.read_clipboard();
        self.spawn(async move { AppEvent::ImageRead { result: read.await, pasted: None } });
    }

    pub(super) fn copy_text(&self, text: String) {
        let n_letters = text.chars().count();
        let copy = self.host.copy_text(text);
        self.spawn(async move {
            AppEvent::Reported(
                copy.await.map(|()| format!("copied {}", format_count(n_letters, "character"))),
            )
        });
    }

    pub(super) fn load_diff(&self) {
        let load = self.host.load_diff();
        self.spawn(async move { AppEvent::TextLoaded { title: "Changes".to_owned(), text: load.await } });
    }

    pub(super) fn read_branch(&self) {
        let read = self.host.read_branch();
        self.spawn(async move { AppEvent::BranchRead(read.await) });
    }

    /// Writes a new file; one that is there is kept.
    pub(super) fn write_file(&self, path: PathBuf, text: String) {
        self.spawn(async move {
            let shown = path.display().to_string();
            let written = run_blocking(move || File::create_new(path)?.write_all(text.as_bytes())).await;
            AppEvent::Reported(match written {
                Some(Ok(())) => Ok(format!("written: {shown}")),
                Some(Err(error)) if error.kind() == ErrorKind::AlreadyExists => {
                    Err(format!("{shown} already exists; choose another name"))
                }
                Some(Err(error)) => Err(format!("could not write {shown}: {error}")),
                None => Err(format!("could not write {shown}")),
            })
        });
    }

    fn load_history(&self) {
        let Some(path) = self.history_file.clone() else { return };
        self.spawn(async move {
            let entries = run_blocking(move || history_file::read_history(&path)).await;
            match entries {
                Some(Ok(entries)) => AppEvent::HistoryLoaded(entries),
                Some(Err(error)) => AppEvent::Reported(Err(format!("could not read the history: {error}"))),
                None => AppEvent::HistoryLoaded(Vec::new()),
            }
        });
    }

    /// The file of drafts is beside the history.
    fn drafts_file(&self) -> Option<PathBuf> {
        self.history_file.as_ref().map(|path| path.with_file_name(DRAFTS_FILE))
    }

    /// Loads earlier prompts, and the draft of this project.
    pub(super) fn load_stored_input(&self) {
        self.load_history();
        self.load_draft();
    }

    fn load_draft(&self) {
        let Some(path) = self.drafts_file() else { return };
        let project = self.cwd.display().to_string();
        self.spawn(async move {
            let draft = run_blocking(move || draft_file::read_draft(&path, &project)).await;
            AppEvent::DraftLoaded(draft.flatten().unwrap_or_default())
        });
    }

    /// Stores the draft at once: the process may end now.
    pub(super) fn store_draft(&self, text: &str) {
        if let Some(path) = self.drafts_file()
            && let Err(error) = draft_file::store_draft(&path, &self.cwd.display().to_string(), text)
        {
            tracing::warn!(%error, "the draft could not be stored");
        }
    }

    /// Stores a prompt before anything else happens to it.
    pub(super) fn store_history(&self, entry: &HistoryEntry) {
        if let Some(path) = &self.history_file
            && let Err(error) = history_file::append_history(path, entry)
        {
            tracing::warn!(%error, "a prompt could not be added to the history");
        }
    }
}

async fn run_blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    tokio::task::spawn_blocking(work).await.ok()
}

async fn open_session(
    connection: &AgentConnection,
    target: SessionChoice,
    cwd: PathBuf,
) -> Result<OpenedSession, Failure> {
    match target {
        SessionChoice::New | SessionChoice::Ask => connection.new_session(&cwd).await,
        SessionChoice::Newest => {
            let newest = connection.list_sessions(&cwd).await?.into_iter().next();
            match newest {
                Some(info) => connection.load_session(&info.session, &cwd).await,
                None => connection.new_session(&cwd).await,
            }
        }
        SessionChoice::Stored(prefix) => {
            let session = find_session(connection, prefix, &cwd).await?;
            connection.load_session(&session, &cwd).await
        }
        SessionChoice::Fork(prefix) => {
            let session = find_session(connection, prefix, &cwd).await?;
            let forked = connection.fork_session(&session, &cwd).await?;
            connection.load_session(&forked.session, &cwd).await
        }
        SessionChoice::ForkBefore { session, message } => {
            connection.fork_before(&SessionId::new(session), &message, &cwd).await
        }
    }
}

/// Returns the session with an ID, or the only one of the directory whose ID begins with it.
async fn find_session(
    connection: &AgentConnection,
    prefix: String,
    cwd: &std::path::Path,
) -> Result<SessionId, Failure> {
    if !connection.capabilities().list_sessions {
        return Ok(SessionId::new(prefix));
    }
    let sessions = connection.list_sessions(cwd).await?;
    let mut matches = sessions.iter().filter(|info| info.session.as_str().starts_with(&prefix));
    match (matches.next(), matches.next()) {
        (Some(only), None) => Ok(only.session.clone()),
        // The ID of a session of another directory is complete.
        (None, _) => Ok(SessionId::new(prefix)),
        (Some(first), Some(second)) => {
            if let Some(exact) = sessions.iter().find(|info| info.session.as_str() == prefix) {
                return Ok(exact.session.clone());
            }
            let message =
                format!("several sessions begin with {prefix}: {}, {} …", first.session, second.session);
            Err(Failure::new(FailureKind::InvalidValue, message))
        }
    }
}

/// Sets options by their ID or category; returns why some of them were refused.
async fn set_options(
    connection: &AgentConnection,
    opened: &mut OpenedSession,
    options: &[(String, String)],
) -> Vec<String> {
    let mut refusals = Vec::new();
    for (name, value) in options {
        let id = opened.find_option(name).map_or_else(|| name.clone(), |option| option.id.clone());
        match connection.set_option(&opened.session, &id, value).await {
            Ok(set) if set.is_empty() => {}
            Ok(set) => opened.options = set,
            Err(failure) => refusals.push(format!("the {name} `{value}` was not set: {}", failure.message)),
        }
    }
    refusals
}
