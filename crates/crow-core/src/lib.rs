//! The thinking of Crow: what a turn does next, what a transcript may hold, where an edit lands,
//! what a broken argument means, what a mode allows.
//!
//! Invariant: nothing here reads a clock, a file, a socket, a database or the environment, and nothing
//! here knows a wire format. Everything is a value in and a value out.

mod agents;
mod arguments;
mod compaction;
mod confinement;
mod crow_part;
mod front_matter;
mod git_config;
mod hook;
mod ids;
mod image;
mod line_page;
mod mcp;
mod message;
mod pattern;
mod permission;
mod reply;
mod schedule;
mod secrets;
mod socket_table;
mod spelling;
mod text_only;
mod transcript;
mod tree;
mod trust;
mod turn;
mod update;
mod visible;

pub mod edit;
pub mod leaked;
pub mod link;
pub mod repair;
pub mod shell;
pub mod slash;
pub mod undo;

pub use agents::{AgentReach, AgentServer, TreeLimits};
pub use arguments::{Arguments, Doubt, DoubtKind, Place};
pub use compaction::{Attempt, Compaction, Fill, Occasion, Rejected, Step, limit, of_tools};
pub use confinement::{
    Approval, Confinement, Network, PartialSandbox, Sandbox, SandboxRules, SandboxSupport,
};
pub use crow_part::{CrowPart, SpeckitPart};
pub use front_matter::FrontMatter;
pub use git_config::{BadGitConfig, GitMention, git_mentions, is_inert_git_config, script_mentions};
pub use hook::{BadMatcher, Hook, HookEnd, HookEvent, Matcher, Moment, Said, Situation, read as read_hook};
pub use ids::{CallId, MessageId, SessionId};
pub use image::{
    BadImage, IMAGE_TYPES, check_image, decode_base64, image_type, read_data_url, read_image_part,
};
pub use line_page::{LinePage, LinePager, PageRange, line_too_long};
pub use mcp::{McpServer, McpTransport};
pub use message::{
    Call, Content, Ended, Facets, Failure, FailureKind, Location, Outcome, Part, PlanEntry, PlanPriority,
    PlanStatus, Prompt, Reach, Reply, Sealed, Status, ToolKind, ToolSpec, Touch, Usage,
};
pub use pattern::{BadGlob, LetterCase, PathGlob};
pub use permission::{
    BadRule, Grant, GrantOffer, Grants, Law, Mode, Roots, Rule, Rules, Verdict, approval, approval_sandboxed,
    autorun_of_home, hook_managers, is_autorun_entry, is_autorun_folder, is_key, judge, judge_sandboxed,
    may_hold_autorun,
};
pub use reply::{Delta, ModelEvent, ReplyBuilder};
pub use schedule::waits_for;
pub use secrets::is_secret_value;
pub use socket_table::{SocketTable, read_socket_table};
pub use spelling::nearest;
pub use text_only::without_images;
pub use transcript::{CallsOpen, Entry, ForModel, NotAccepted, NotFitting, Shown, Transcript};
pub use tree::Tree;
pub use trust::{ContentHash, Ledger, Supply, Trust, Word, trust};
pub use turn::{Compacted, Limits, Next, Repeated, Resume, Turn, TurnEnd};
pub use update::{
    CommandInfo, CompactionStage, Handoff, ModelInfo, Options, Prints, ReportOutcome, ThoughtLevel, Update,
};
pub use visible::{visible, visible_start};
