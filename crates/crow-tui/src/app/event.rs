//! Everything that can happen to the terminal client, and everything it can ask for.

use std::path::PathBuf;

use crow_acp::{
    AcpAgentCapabilities, AgentPermissionRequest, AgentUpdate, ConfigOption, EarlierPrompt, ElicitationForm,
    ElicitationOutcome, OpenedSession, PromptOutcome, SessionInfo,
};
use crow_core::{ContentPart, Failure, MessageId, SessionId};

use super::{cells::CommandEnd, history::HistoryEntry};
use crate::screen::TimedInput;

/// The number of a question, for its answer.
pub(crate) type QuestionId = u64;

/// An event.
#[derive(Debug)]
pub(crate) enum AppEvent {
    Input(TimedInput),
    /// A frame with these questions was written to the terminal.
    FrameDrawn(DrawnFrame),
    /// The time of a redraw has come; nothing else happened.
    Tick,
    /// The process was asked to end.
    Terminate,
    Connected(AcpAgentCapabilities),
    SessionOpened(Result<OpenedSession, Failure>),
    Update {
        message: Option<String>,
        update: AgentUpdate,
    },
    /// An update of a session that ours started.
    ChildUpdate {
        session: SessionId,
        message: Option<String>,
        update: AgentUpdate,
    },
    Permission {
        id: QuestionId,
        request: Box<AgentPermissionRequest>,
    },
    Form {
        id: QuestionId,
        form: Box<ElicitationForm>,
    },
    /// The agent no longer waits for the answer.
    QuestionWithdrawn(QuestionId),
    TurnEnded(Result<PromptOutcome, Failure>),
    /// The result of steering; the text returns if the agent rejected it.
    Steered {
        text: String,
        result: Result<(), Failure>,
    },
    OptionSet(Result<Vec<ConfigOption>, Failure>),
    SessionsListed(Result<Vec<SessionInfo>, Failure>),
    /// The prompts that the session can go back to, newest first.
    PromptsListed(Result<Vec<EarlierPrompt>, Failure>),
    /// The best matches of a query among the project's files.
    FilesMatched {
        query: String,
        paths: Vec<String>,
    },
    CommandOutput(String),
    CommandEnded(CommandEnd),
    EditorClosed(Result<String, String>),
    ImageRead {
        result: Result<AttachedImage, String>,
        /// The text that was taken for the path of the image.
        pasted: Option<String>,
    },
    HistoryLoaded(Vec<HistoryEntry>),
    /// The draft of this project from an earlier start.
    DraftLoaded(String),
    /// A side task reports its result in one line.
    Reported(Result<String, String>),
    /// A text for the pager.
    TextLoaded {
        title: String,
        text: Result<String, String>,
    },
    BranchRead(Option<String>),
}

/// The parts of a frame that the user has now seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DrawnFrame {
    /// Cells that became history.
    pub(crate) n_committed: usize,
    /// The question on the screen.
    pub(crate) question: Option<DrawnQuestion>,
}

/// The part of a question that is on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DrawnQuestion {
    pub(crate) id: QuestionId,
    /// The rows of its subject, at this width.
    pub(crate) n_rows: usize,
    pub(crate) columns: usize,
    /// The first visible row, and the one after the last.
    pub(crate) first: usize,
    pub(crate) end: usize,
}

/// An image for a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedImage {
    /// The file name.
    pub name: String,
    pub mime: String,
    /// The bytes in base64.
    pub data: String,
}

/// The session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    New,
    /// The newest session of the directory, or a new one if there is none.
    Newest,
    /// The session with this ID, or the only one that begins with it.
    Stored(String),
    /// A copy of this session.
    Fork(String),
    /// A copy of this session that ends before a prompt; its messages are not sent again.
    ForkBefore {
        session: String,
        message: MessageId,
    },
    /// A list to choose from comes first.
    Ask,
}

/// A request for something outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AppCommand {
    OpenSession(SessionChoice),
    SendPrompt(Vec<ContentPart>),
    Steer(String),
    CancelTurn,
    SetOption {
        option: String,
        value: String,
    },
    ListSessions,
    ListPrompts,
    MatchFiles(String),
    RunCommand(String),
    /// Ends the user's command.
    KillCommand,
    EditText(String),
    ReadImage {
        path: PathBuf,
        /// The text that has the path.
        pasted: String,
    },
    /// Reads the image in the clipboard.
    ReadClipboard,
    StoreHistory(HistoryEntry),
    /// Stores the draft; an empty one is removed.
    StoreDraft(String),
    AnswerCall {
        id: QuestionId,
        option: String,
    },
    /// Answers a call with a prefix that the user has written.
    AnswerPrefix {
        id: QuestionId,
        option: String,
        prefix: String,
    },
    AnswerForm {
        id: QuestionId,
        outcome: ElicitationOutcome,
    },
    /// Drops a question unanswered.
    DropQuestion(QuestionId),
    WriteFile {
        path: PathBuf,
        text: String,
    },
    CopyText(String),
    LoadDiff,
    ReadBranch,
    /// Asks for the user's attention.
    Alert(String),
    Redraw,
    /// Stops the process, as the shell does with Ctrl-Z.
    Suspend,
    Quit,
}
