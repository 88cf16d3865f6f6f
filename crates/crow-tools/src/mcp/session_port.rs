//! The requests of an MCP server to the session while it runs a call. Must not know how the session answers them.

use std::pin::Pin;

use crow_core::{SamplingReply, SamplingRequest, ServerElicitation, ServerElicitationOutcome};

/// A pending answer; dropping it withdraws the request.
pub type ServerRequestFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The user and the model of a session, for the server of a running call.
pub trait McpSessionPort: Send + Sync {
    /// Asks the user.
    fn elicit(&self, request: ServerElicitation) -> ServerRequestFuture<'_, ServerElicitationOutcome>;

    /// Asks the model, if the user or the policy allows it. The error is a clause that says why there is no reply.
    fn sample(&self, request: SamplingRequest) -> ServerRequestFuture<'_, Result<SamplingReply, String>>;
}
