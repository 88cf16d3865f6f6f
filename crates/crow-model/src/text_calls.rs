//! Tool calls that a model writes as text: the model's settings, and the notices for the user.

use crow_core::text_tool_calls::{TextToolCallMode, TextToolCallOutcome, TextToolCallParser};
use crow_core::{Reply, ReplyEnd, ToolSpec};

use crate::{ModelRequest, ModelSettings, ToolCallMode};

/// The end of a reply whose last text is a call.
const CALL_ENDINGS: [&str; 3] = ["</tool_call>", "</function>", "<|tool_calls_section_end|>"];

/// Creates the parser for such calls.
pub(crate) fn text_call_parser<'a>(
    settings: &ModelSettings,
    tools: &'a [ToolSpec],
) -> TextToolCallParser<'a> {
    let mode = match settings.tool_calls {
        ToolCallMode::Native => TextToolCallMode::Disabled,
        ToolCallMode::Auto => TextToolCallMode::WholeReplies,
        ToolCallMode::Text => TextToolCallMode::ReplyEndings,
    };
    TextToolCallParser::new(tools, mode)
}

/// The notice about calls that were text.
pub(crate) fn text_call_notice(
    outcome: &TextToolCallOutcome,
    reply: &Reply,
    model_request: ModelRequest<'_>,
) -> Option<String> {
    let model = &model_request.settings.name;
    match outcome {
        // If the model was told to write them this way, there is no notice.
        TextToolCallOutcome::Calls(_) if model_request.settings.tool_calls == ToolCallMode::Text => None,
        TextToolCallOutcome::Calls(tools) => {
            let (calls, outcome_phrase) = if tools.len() == 1 {
                ("call", "it is run as a tool call")
            } else {
                ("calls", "they are run as tool calls")
            };
            let tools = tools.iter().map(|tool| format!("`{tool}`")).collect::<Vec<_>>().join(", ");
            Some(format!(
                "`{model}` wrote its {calls} of {tools} as text; {outcome_phrase} (`tool_calls: native` disables that)"
            ))
        }
        TextToolCallOutcome::Quotation(tool) => Some(format!(
            "`{model}` wrote a call of `{tool}` as text that also occurs in what it had read; it was treated as a quotation and not run"
        )),
        TextToolCallOutcome::InvalidArguments { tool, reason } => {
            Some(format!("`{model}` wrote a call of `{tool}` as text, which was not run: {reason}"))
        }
        TextToolCallOutcome::NoCalls if !ends_with_call(reply) || model_request.tools.is_empty() => None,
        TextToolCallOutcome::NoCalls => match model_request.settings.tool_calls {
            ToolCallMode::Native => None,
            ToolCallMode::Auto => Some(format!(
                "`{model}` ended its reply with a tool call as text; it was not run, because it is not the whole reply or \
                 cannot be parsed (`tool_calls: text` in the model's settings permits text before it)"
            )),
            ToolCallMode::Text => {
                Some(format!("`{model}` wrote a tool call that cannot be parsed; it was not run"))
            }
        },
    }
}

/// Whether a reply ends with a call.
fn ends_with_call(reply: &Reply) -> bool {
    let text = reply.text.trim_end();
    reply.end == ReplyEnd::Complete
        && reply.calls.is_empty()
        && CALL_ENDINGS.iter().any(|end| text.ends_with(end))
}
