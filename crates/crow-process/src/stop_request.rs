//! Requests to end, from signals or from events of a console.

/// A request to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    /// The user pressed Ctrl-C.
    Interrupt,
    /// SIGTERM or SIGHUP.
    Terminate,
}
