//! The model's tools: files, search, commands and the web, through [`ToolRegistry`].
//!
//! Must not know who made a call, whether it was allowed, or how its result is transported: the call info says what a
//! call would access, its caller decides about permission, and a failure is a result.

mod builtin_config;
mod common_programs;
mod registry;
mod title;
mod tool;
mod tool_error;
mod undo_recorder;
mod workspace;

mod apply_patch;
mod edit;
mod glob;
mod grep;
mod linked_file;
mod read;
mod str_replace;
mod terminal;
mod todo;
mod token_refreshes;
mod write;

mod web;

mod editor_buffers;
mod file_lookup;
mod file_write;
mod http;
mod mcp;
mod serve;
mod tool_names;
mod tool_offer;
mod tool_set;
mod toolbox;

mod hook;
mod paging;
mod policy;
mod prompt_parts;
mod search_hits;
mod text_encoding;
mod text_file;
mod tree;
mod undo;
mod walk;
mod worktree;

pub use self::tool_offer::ToolOffer;
pub use builtin_config::BuiltinToolConfig;
pub use common_programs::find_common_programs;
pub use linked_file::read_resource_link;
pub use mcp::{
    McpClientFeatures, McpEnvironment, McpServers, McpSessionPort, McpSignIn, ServerRequestFuture,
    SignInError, SignInStatus, SlowServers, forget_sign_in, sign_in_status,
};
pub use policy::{PermissionPolicy, PolicySources};
pub use prompt_parts::load_prompt_parts;
pub use read::{IMAGE_BYTES_MAX, image_part, read_image};
pub use registry::{ToolNameTaken, ToolRegistry};
pub use serve::{McpHttpEndpoint, McpServeConfig, McpServeError, serve_http, serve_stdio};
pub use terminal::{Shell, TerminalPreference, command_retry, starts_command};
pub use tool::{PreviewFuture, Tool, ToolCx, ToolFuture, ToolProgress};
pub use tool_set::ToolSet;
pub use toolbox::{Toolbox, ToolboxInit};
pub use tree::{draw_tree, find_files_below, list_top_level};
pub use undo::{RecordedChange, UndoContext, UndoStatus, UndoneFile, undo_changes};
pub use undo_recorder::{UndoFuture, UndoRecorder};
pub use web::WebConfig;
pub use workspace::{Workspace, check_directories};
pub use worktree::{
    BranchImport, BundledCommit, BundledSnapshot, FileChangeKind, GitCli, RepositoryHead, RepositoryImport,
    SettledWorktree, SnapshotContent, SnapshotFiles, SnapshotRequest, Worktree, WorktreeError,
    WorktreeFileChange,
};

#[cfg(test)]
mod tests;
