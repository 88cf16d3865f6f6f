//! What a client is told while a session lives, in our own words.

use serde_json::{Map, Value};

use crate::{
    CallId, ContentPart, MessageId, PlanEntry, SessionId, ToolCallContent, ToolCallInfo, ToolCallStatus,
};

/// One thing to tell the client. Live and replay say the same updates; `acp` spells them.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionUpdate {
    /// What the person said, in replay.
    Prompt {
        /// Whose words.
        message: MessageId,
        /// What was said.
        part: ContentPart,
    },
    /// More of the model's words.
    Text {
        /// Of which reply.
        message: MessageId,
        /// The next words.
        text: String,
    },
    /// What Crow says of work that is over, with what usually comes next.
    Report {
        /// Its name; it is not stored.
        message: MessageId,
        /// What it says.
        text: String,
        /// How the work ended.
        outcome: ReportOutcome,
        /// Commands that usually come next, the likeliest first.
        next: Vec<SuggestedCommand>,
    },
    /// More of the model's reasoning.
    Thought {
        /// Of which reply.
        message: MessageId,
        /// The next words.
        text: String,
    },
    /// A call appears.
    Call {
        /// Which.
        call: CallId,
        /// The tool's name.
        name: String,
        /// Its title, kind and places.
        facets: ToolCallInfo,
        /// What the model passed.
        arguments: Map<String, Value>,
        /// Where it stands.
        status: ToolCallStatus,
        /// What is shown in it.
        content: Vec<ToolCallContent>,
        /// What it prints comes as [`SessionUpdate::Output`].
        prints: OutputStreaming,
    },
    /// A call moved on.
    CallChanged {
        /// Which.
        call: CallId,
        /// Where it stands.
        status: ToolCallStatus,
        /// What is shown in it from here on; `None` leaves it as it is.
        content: Option<Vec<ToolCallContent>>,
    },
    /// A call as it was before a question stood in its place.
    CallAgain {
        /// Which.
        call: CallId,
        /// Its title, kind and places.
        facets: ToolCallInfo,
        /// Where it stands.
        status: ToolCallStatus,
        /// What is shown in it.
        content: Vec<ToolCallContent>,
    },
    /// A session that this one started: that it is there, and whether it is at work.
    Child {
        /// Its name.
        child: SessionId,
        /// What it is about.
        title: String,
        /// Where it works.
        cwd: String,
        /// Whether it is at work.
        is_working: bool,
    },
    /// What an agent of a child said in its own session, in the words of the protocol.
    Passed(Value),
    /// The whole plan.
    Plan(Vec<PlanEntry>),
    /// The session's title.
    Title(String),
    /// When the session last changed, RFC 3339.
    Changed(String),
    /// A call runs in a terminal of the client.
    Terminal {
        /// Which call.
        call: CallId,
        /// The client's name for its terminal.
        id: String,
    },
    /// More of what a call prints.
    Output {
        /// Of which call.
        call: CallId,
        /// What came.
        text: String,
    },
    /// The program of a call that prints has ended.
    Exited {
        /// Of which call.
        call: CallId,
        /// Its exit code, when it had one.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// How full the context is.
    Usage {
        /// Tokens in context.
        used: u64,
        /// The model's window.
        size: u64,
        /// Tokens that the session and its children have cost since it was opened.
        spent: Option<u64>,
        /// What the session has cost, in billionths of a US dollar, where that is known.
        cost: Option<u64>,
        /// Whether the tokens are our own guess.
        is_guess: bool,
    },
    /// The mode in force.
    Mode(crate::Mode),
    /// Every option and what it stands at.
    Options(SessionConfigOptions),
    /// The commands on offer.
    Commands(Vec<CommandInfo>),
    /// Something the person should know that is not the model's words.
    Notice(String),
    /// The conversation is made shorter for the model.
    Compaction {
        /// Its name in the session; the same live and in replay.
        id: String,
        /// How far it is.
        stage: CompactionStage,
        /// The same in a sentence.
        text: String,
    },
}

/// How work ended that Crow reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportOutcome {
    /// It is whole.
    Done,
    /// Something is left to do.
    Left,
    /// It was not begun.
    Refused,
}

impl ReportOutcome {
    const ALL: [Self; 3] = [Self::Done, Self::Left, Self::Refused];

    /// Spells the outcome as clients and scripts read it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Left => "left",
            Self::Refused => "refused",
        }
    }

    /// Reads what [`ReportOutcome::as_str`] spelled.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }
}

/// How far a compaction is. Each that has started ends as one of the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionStage {
    /// It has begun.
    Started,
    /// The conversation is shorter.
    Done {
        /// What the model is told of what it no longer sees.
        summary: Option<String>,
    },
    /// Everything stays as it was.
    Failed,
    /// The person stopped it; everything stays as it was.
    Cancelled,
}

/// How a client sees what a call prints while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputStreaming {
    /// As content of the call, or not at all.
    Nothing,
    /// Piece by piece, as in a terminal that was opened in this folder.
    Live {
        /// The folder.
        cwd: String,
    },
}

/// A slash command on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandInfo {
    /// Name without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What may follow it.
    pub hint: Option<String>,
}

/// A command that usually comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestedCommand {
    /// What it does.
    pub label: String,
    /// Name without the slash.
    pub command: String,
}

/// The options of a session and what they stand at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionConfigOptions {
    /// How much the agent may do on its own.
    pub mode: crate::Mode,
    /// The model in use; `None` when none is configured.
    pub model: Option<String>,
    /// The models on offer.
    pub models: Vec<ModelInfo>,
    /// How hard the model should think.
    pub thought_level: ThoughtLevel,
}

/// A model on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Its name in the configuration.
    pub name: String,
    /// Who answers for it.
    pub provider: String,
}

/// How hard a model should think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThoughtLevel {
    /// As the configuration says, or the provider.
    #[default]
    Default,
    /// As little as the model can.
    Minimal,
    /// A little.
    Low,
    /// A good while.
    Medium,
    /// As long as it takes.
    High,
}

impl ThoughtLevel {
    /// Every level, in the order shown.
    pub const ALL: [Self; 5] = [Self::Default, Self::Minimal, Self::Low, Self::Medium, Self::High];

    /// Spells the level.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Reads a level.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }

    /// What a request says of it; nothing where the configuration decides.
    pub fn reasoning_effort(self) -> Option<&'static str> {
        (self != Self::Default).then(|| self.as_str())
    }
}
