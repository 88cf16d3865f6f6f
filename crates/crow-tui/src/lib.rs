//! The interactive terminal: an ACP client like any other. Knows a session's updates and a client's requests, nothing
//! of the agent behind them.
//!
//! [`run_terminal`] is the client; [`text`] turns content into styled rows, [`screen`] owns the terminal: it writes
//! rows and yields input.

mod app;
pub mod screen;
pub mod text;

pub use app::{
    AgentLoss, AttachedImage, ClientFacts, ClientHost, RequestPart, SessionChoice, SessionStart, ShellExit,
    TerminalClient, TerminalEnd, run_terminal, split_request,
};
pub use screen::{TerminalHints, TerminalTraits, TtyIo};
pub use text::ColorTheme;
