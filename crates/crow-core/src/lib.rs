//! The decisions of Crow as pure functions: turns, transcripts, edits, argument repair, permissions.
//!
//! Invariant: no clock, file, socket, database or environment, and no wire format except the framing of server-sent
//! events, which two crates read. Values in, values out.

mod agents;
mod arguments;
mod batch;
mod child;
mod code_fence;
mod compaction;
mod confinement;
mod content_part;
mod context_shares;
mod crow_part;
mod failure;
mod front_matter;
mod git_bundle;
mod git_config;
mod git_use;
mod hidden_characters;
mod hook;
mod ids;
mod image;
mod line_page;
mod mcp;
mod message;
mod model_family;
mod pattern;
mod permission;
mod plan_entry;
mod replay;
mod reply;
mod sampling;
mod schedule;
mod secrets;
mod sentence;
mod server_form;
mod session_command;
mod session_context;
mod session_title;
mod socket_table;
mod spelling;
mod sse;
mod telemetry;
mod text_bar;
mod text_only;
mod tool_call;
mod tool_selection;
mod transcript;
mod tree_usage;
mod trust;
mod turn;
mod update;

pub mod edit;
pub mod link;
pub mod patch;
pub mod repair;
pub mod shell;
pub mod slash;
pub mod text_diff;
pub mod text_tool_calls;
pub mod undo;

pub use agents::{AgentServer, AgentTransport, FarmAddress, NatsCredentials, NatsServer, TreeLimits};
pub use arguments::{DoubtKind, RepairDoubt, TextPosition, ToolArguments};
pub use batch::{
    BatchAdmission, BatchSchedule, BatchSlot, BatchStopCause, BatchStopOrder, BatchStopStep, BatchTaskLimits,
};
pub use child::{
    ChildAction, ChildEvent, ChildExit, ChildExitStatus, ChildInterests, ChildMachine, ChildOutcome,
    ChildProfile, ChildStopReason, ChildTimer, ChildTimes, ChildTurnEnd, ProgramEnding,
};
pub use code_fence::code_fence;
pub use compaction::{
    Compaction, CompactionAttempt, CompactionRejection, CompactionStep, CompactionTrigger, ContextTokens,
    SUMMARY_CHECK, compaction_id, compaction_sentence, compaction_started, context_limit,
    estimate_tool_tokens, format_tokens,
};
pub use confinement::{
    ApprovalSource, Confinement, NetworkAccess, PartialSandbox, SandboxMode, SandboxPolicy, SandboxSupport,
};
pub use content_part::ContentPart;
pub use context_shares::{ContextShares, render_context_shares};
pub use crow_part::{CrowPart, SpeckitPart};
pub use failure::{Failure, FailureKind};
pub use front_matter::FrontMatter;
pub use git_bundle::{GIT_BUNDLE_BYTES_MAX, GitBundle, GitBundleError, is_object_name};
pub use git_config::{GitConfigError, GitMention, git_mentions, is_inert_git_config, script_mentions};
pub use git_use::may_use_git;
pub use hidden_characters::{escape_hidden, escape_hidden_start, is_hidden, replace_control_chars};
pub use hook::{
    HookConfig, HookDecision, HookEvent, HookExit, HookInput, HookMatcher, HookMatcherError, HookObjection,
    HookResults, HookSession, PromptRejection, append_hook_context, parse_hook_output as read_hook,
};
pub use ids::{CallId, MessageId, SessionId};
pub use image::{
    IMAGE_TYPES, ImageError, check_image, decode_base64, image_type, read_data_url, read_image_part,
};
pub use line_page::{LinePage, LinePager, PageRange, line_too_long};
pub use mcp::{McpServer, McpTransport};
pub use message::{Prompt, ProviderState, Reply, ReplyEnd, TokenUsage};
pub use model_family::{EditToolKind, ModelFamily, model_family};
pub use pattern::{GlobError, LetterCase, PathGlob};
pub use permission::{
    DirectoryLink, EffectivePolicy, EmptyFileSystem, FileLookup, Grant, GrantOffer, GrantRemoval, GrantScope,
    GrantSet, Mode, PermissionDecision, PermissionRule, PermissionRules, RuleError, SessionGrants,
    SessionRoots, approval_source, approval_source_in_sandbox, autorun_path_ends, evaluate_call,
    evaluate_call_in_sandbox, home_autorun_files, hook_manager_files, is_autorun_dir, is_autorun_entry,
    is_key_path, may_hold_autorun, parse_prefix,
};
pub use plan_entry::{PlanEntry, PlanPriority, PlanStatus};
pub use replay::{
    HeldUpdateFilter, RESULT_UNKNOWN, SessionOwner, SideRequestUsage, StreamPosition, TranscriptReplay,
    UsageReplay,
};
pub use reply::{ModelEvent, ReplyBuilder, ReplyDelta};
pub use sampling::{SamplingEnd, SamplingReply, SamplingRequest, SamplingTurn, alternate_messages};
pub use schedule::conflicting_earlier_calls;
pub use secrets::is_secret_value;
pub use sentence::to_sentence;
pub use server_form::{
    DialogueStep, ElicitationDialogue, ServerAddress, ServerElicitation, ServerElicitationOutcome,
    ServerFieldChoice, ServerFieldKind, ServerForm, ServerFormField, ServerQuestion, TextFormat,
};
pub use session_command::{
    ContextChange, ContextCommand, PermissionsAction, SessionCommand, TrustAction, UndoRequest, mode_list,
    parse_context_command, parse_session_command, render_help, session_commands,
};
pub use session_context::{
    EnvironmentFacts, environment_part, expects_context_parts, first_working_directory, instructions_part,
    n_project_parts, needs_environment,
};
pub use session_title::{prompt_title, text_title};
pub use socket_table::{SocketTable, read_socket_table};
pub use spelling::nearest_name;
pub use sse::{EVENT_LEN_MAX, EventTooLong, SseEvent, SseParser};
pub use telemetry::{TELEMETRY_TARGET, telemetry_provider};
pub use text_bar::{render_bar, scale_amount};
pub use text_only::without_images;
pub use tool_call::{
    FileLocation, SiteReach, ToolAccess, ToolCall, ToolCallContent, ToolCallInfo, ToolCallStatus, ToolKind,
    ToolResult, ToolSpec,
};
pub use tool_selection::{SelectableTools, SelectingModel, ToolProfile, ToolSelection};
pub use transcript::{
    CompactionMismatch, InvalidEntry, ModelStep, ModelTranscript, OpenCallsError, Transcript,
    TranscriptEntry, TranscriptIdentity,
};
pub use tree_usage::TreeUsage;
pub use trust::{ContentHash, TrustAnswer, TrustLedger, TrustState, TrustSubject, evaluate_trust};
pub use turn::{
    AnsweredCall, CallsReport, CompactionOutcome, RepeatedRound, ReplyResume, SettleCheck, SettleFinding,
    Turn, TurnAction, TurnEnd, TurnLimits, count_equal_calls, ends_with_announcement, note_equal_calls,
};
pub use update::{
    CommandInfo, CompactionStage, ModelInfo, OutputStreaming, ReportOutcome, SessionConfigOptions,
    SessionUpdate, SuggestedCommand, ThoughtLevel,
};
