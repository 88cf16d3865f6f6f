//! The machine for the model: files, search and commands behind one door, [`Tools`].
//!
//! Must never know who asked, whether it was allowed, or how a result travels: what a call would touch is
//! said in its facets, somebody else judges them, and a failure is an outcome like any other.

mod registry;
mod tool;
mod workspace;

mod edit;
mod glob;
mod grep;
mod linked;
mod read;
mod terminal;
mod todo;
mod write;

mod web;

mod buffers;
mod changing;
mod http;
mod mcp;
mod naming;
mod serve;

mod files;
mod hits;
mod hook;
mod nofollow;
mod paging;
mod policy;
mod text;
mod tree;
mod undo;
mod walk;
mod worktree;

pub use changing::{Keeper, Keeping};
pub use files::{ReadError, list_names, read as read_file};
pub use linked::read_link;
pub use mcp::{McpHome, McpServers, McpSignIn, SignInError, SignedIn, forget_sign_in, signed_in};
pub use policy::{PermissionPolicy, PolicySources};
pub use read::read_image;
pub use registry::{Equipment, NameTaken, Tools};
pub use serve::{Entrance, McpServeError, Offer, serve_http, serve_pipes};
pub use terminal::{Shell, Terminals};
pub use tool::{Previewing, Progress, Running, Tool, ToolCx};
pub use tree::{draw_tree, find_below};
pub use undo::{Done, How, Kept, Undoing, Undone, undo};
pub use web::WebAccess;
pub use workspace::{Workspace, resolve};
pub use worktree::{ChangedFile, FileChange, Git, Settled, Worktree, WorktreeError};

#[cfg(test)]
mod tests;
