//! The exported spans of turns and tool calls. They contain names, numbers and kinds, never a text of the conversation.

use crow_core::{Failure, SessionId, TELEMETRY_TARGET, ToolCall, ToolCallStatus, ToolResult, TurnEnd};
use crow_model::{ModelSettings, telemetry_provider_name};
use crow_tools::ToolRegistry;
use tracing::Span;
use tracing::field::Empty;

/// The agent's name in telemetry.
const AGENT_NAME: &str = "crow-cli";

/// The name of a tool that does not exist: the model's word could be anything.
const UNKNOWN_TOOL: &str = "unknown";

/// Starts the span of a turn. Without an exporter it costs one comparison.
pub(crate) fn turn_span(session: &SessionId, find_model: impl FnOnce() -> Option<ModelSettings>) -> Span {
    let span = tracing::info_span!(
        target: TELEMETRY_TARGET,
        "invoke_agent",
        otel.name = format!("invoke_agent {AGENT_NAME}"),
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = AGENT_NAME,
        gen_ai.conversation.id = session.as_str(),
        gen_ai.provider.name = Empty,
        gen_ai.request.model = Empty,
        crow.turn.end = Empty,
        "error.type" = Empty,
    );
    if !span.is_disabled()
        && let Some(model) = find_model()
    {
        span.record("gen_ai.provider.name", telemetry_provider_name(&model.provider));
        span.record("gen_ai.request.model", model.model);
    }
    span
}

/// Records the end of a turn.
pub(crate) fn record_turn_end(span: &Span, end: &Result<TurnEnd, Failure>) {
    let name = match end {
        Ok(TurnEnd::Completed) => "completed",
        Ok(TurnEnd::OutputLimit) => "output_limit",
        Ok(TurnEnd::RequestLimit) => "request_limit",
        Ok(TurnEnd::Repetition) => "repetition",
        Ok(TurnEnd::Refused) => "refused",
        Ok(TurnEnd::Cancelled) => "cancelled",
        Ok(TurnEnd::Failed(failure)) | Err(failure) => {
            span.record("error.type", failure.kind.as_str());
            "failed"
        }
    };
    span.record("crow.turn.end", name);
}

/// Starts the span of a tool call, which includes the wait for its approval.
pub(crate) fn call_span(tools: &ToolRegistry, call: &ToolCall) -> Span {
    let span = tracing::info_span!(
        target: TELEMETRY_TARGET,
        "execute_tool",
        otel.name = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = Empty,
        gen_ai.tool.call.id = %call.id,
        "gen_ai.tool.type" = "function",
        "error.type" = Empty,
    );
    if !span.is_disabled() {
        let name = if tools.has_tool(&call.name) { &call.name } else { UNKNOWN_TOOL };
        span.record("gen_ai.tool.name", name).record("otel.name", format!("execute_tool {name}"));
    }
    span
}

/// Records the result of a tool call.
pub(crate) fn record_call_result(span: &Span, result: &ToolResult) {
    if result.status == ToolCallStatus::Failed {
        span.record("error.type", "tool_failed");
    }
}
