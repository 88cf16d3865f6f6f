//! One turn of a child, and the commands and the status with which its session follows it.

use crow_core::{SessionId, TELEMETRY_TARGET};
use crow_store::TaskState;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Span;
use tracing::field::Empty;

use crate::budget::BudgetSlot;
use crate::questions::ParentCall;

/// A command to a child.
#[derive(Debug)]
pub(crate) enum ChildCommand {
    /// Starts another turn.
    Turn(Box<ChildTurnRequest>),
    /// Sends a message into the running turn.
    Steer { text: String, answer: oneshot::Sender<Result<(), String>> },
}

/// A turn to run, with its slot.
#[derive(Debug)]
pub(crate) struct ChildTurnRequest {
    pub(crate) text: String,
    /// Held until the turn has ended.
    pub(crate) _slot: BudgetSlot,
    pub(crate) cancel: CancellationToken,
    /// Whether the end of the turn is announced; otherwise a call of the parent waits for it.
    pub(crate) notify_parent: bool,
    pub(crate) parent_call: ParentCall,
    /// The exported span of the turn, which ends with it.
    pub(crate) span: Span,
}

/// A running turn. Dropping it releases its slot.
#[derive(Debug)]
pub(crate) struct ChildTurn {
    pub(crate) request: ChildTurnRequest,
    /// Cancelled when its open questions become invalid.
    pub(crate) questions: CancellationToken,
    /// Whether the store has its beginning.
    pub(crate) is_stored: bool,
}

/// Starts the exported span of a child's turn, in that of the call which requests it.
pub(crate) fn child_turn_span() -> Span {
    tracing::info_span!(
        target: TELEMETRY_TARGET,
        "invoke_agent",
        otel.name = Empty,
        otel.kind = "client",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = Empty,
        gen_ai.conversation.id = Empty,
        "error.type" = Empty,
    )
}

impl ChildTurn {
    pub(crate) fn new(request: ChildTurnRequest, is_stored: bool) -> Self {
        Self { request, questions: CancellationToken::new(), is_stored }
    }

    /// Records in the span who has run the turn, and how it ended.
    pub(crate) fn record_end(&self, agent: &str, task: &SessionId, state: TaskState) {
        let span = &self.request.span;
        if span.is_disabled() {
            return;
        }
        span.record("otel.name", format!("invoke_agent {agent}"))
            .record("gen_ai.agent.name", agent)
            .record("gen_ai.conversation.id", task.as_str());
        if state != TaskState::Completed {
            span.record("error.type", state.as_str());
        }
    }
}
