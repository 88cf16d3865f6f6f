//! The interactive terminal: an ACP client like any other. Knows a session's updates and a client's requests, nothing
//! of the agent behind them.
//!
//! [`text`] turns content into styled rows, [`screen`] owns the terminal: it writes rows and yields input.

pub mod screen;
pub mod text;
