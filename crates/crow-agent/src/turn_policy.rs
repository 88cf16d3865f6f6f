//! The restrictions of a workflow step for the turns that it runs.

use std::sync::Arc;

use crow_core::{Mode, PermissionDecision, ToolAccess, ToolCall, ToolCallInfo, ToolResult};
use crow_speckit::BackgroundWork;
use crow_tools::{Tool, Workspace};
use futures_util::future::BoxFuture;

/// The permissions and the watched files of a running step, in addition to the policy of the session.
pub(crate) trait TurnPolicy: Send + Sync {
    /// Returns the additional tools.
    fn extra_tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Returns the mode in which a call is evaluated.
    fn effective_mode(&self, mode: Mode, access: &ToolAccess) -> Mode;

    /// Restricts a permission decision to what the step is for.
    fn narrow_decision(
        &self,
        decision: PermissionDecision,
        call: &ToolCall,
        access: &ToolAccess,
    ) -> PermissionDecision;

    /// Whether the step has ended, and with it the turn.
    fn is_over(&self) -> bool;

    /// Starts to watch the files of the step while a call runs that may change them. Earlier changes are the user's.
    fn begin_call<'a>(
        &'a self,
        call: &'a ToolCall,
        info: &'a ToolCallInfo,
        background: BackgroundWork,
    ) -> BoxFuture<'a, ()>;

    /// Ends a call: restores files that it may not change, and tells the model.
    fn end_call<'a>(&'a self, ended: EndedCall<'a>, result: ToolResult) -> BoxFuture<'a, ToolResult>;
}

/// A call that has run.
#[derive(Clone, Copy)]
pub(crate) struct EndedCall<'a> {
    pub(crate) call: &'a ToolCall,
    pub(crate) info: &'a ToolCallInfo,
    pub(crate) workspace: &'a Workspace,
    pub(crate) background: BackgroundWork,
}
