//! The interactive client: what a user sees and what a key does.
//!
//! `update` and `view` are pure; one leaf waits for the terminal, the agent and the clock.

mod cells;
mod children;
mod completion;
mod composer;
mod event;
mod history;
mod keys;
mod pager;
mod picker;
mod question;
mod request_parts;
mod rewind;
mod run;
mod saved_draft;
mod slash;
mod state;
mod status_report;
mod update;
mod view;

pub use self::{
    event::{AttachedImage, SessionChoice},
    request_parts::{RequestPart, split_request},
    run::{AgentLoss, ClientHost, SessionStart, ShellExit, TerminalClient, TerminalEnd, run_terminal},
    state::ClientFacts,
};
