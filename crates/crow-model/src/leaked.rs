//! What the settings of a model say about calls that it writes as text, and what the person is told of them.

use crow_core::leaked::{TextToolCallMode, TextToolCallOutcome, TextToolCallParser};
use crow_core::{Reply, ReplyEnd, ToolSpec};

use crate::{ModelRequest, ModelSettings, ToolCallMode};

/// How a reply ends whose last words are a call.
const CALL_ENDS: [&str; 3] = ["</tool_call>", "</function>", "<|tool_calls_section_end|>"];

/// Parts such calls from the words of a reply.
pub(crate) fn text_call_parser<'a>(
    settings: &ModelSettings,
    tools: &'a [ToolSpec],
) -> TextToolCallParser<'a> {
    let takes = match settings.tool_calls {
        ToolCallMode::Native => TextToolCallMode::Nothing,
        ToolCallMode::Auto => TextToolCallMode::WholeReplies,
        ToolCallMode::Text => TextToolCallMode::Endings,
    };
    TextToolCallParser::new(tools, takes)
}

/// What the person is told of calls that were text.
pub(crate) fn text_call_notice(
    leaked: &TextToolCallOutcome,
    reply: &Reply,
    ask: ModelRequest<'_>,
) -> Option<String> {
    let model = &ask.settings.name;
    match leaked {
        // Where it was told to write them there is nothing to say.
        TextToolCallOutcome::Taken(_) if ask.settings.tool_calls == ToolCallMode::Text => None,
        TextToolCallOutcome::Taken(tools) => {
            let (calls, are) = if tools.len() == 1 {
                ("call", "it is run as a call")
            } else {
                ("calls", "they are run as calls")
            };
            let tools = tools.iter().map(|tool| format!("`{tool}`")).collect::<Vec<_>>().join(", ");
            Some(format!(
                "`{model}` wrote its {calls} of {tools} as text; {are} (`tool_calls: native` turns that off)"
            ))
        }
        TextToolCallOutcome::Quoted(tool) => Some(format!(
            "`{model}` wrote a call of `{tool}` as text that stands in what it had read; it was taken for a quote and not run"
        )),
        TextToolCallOutcome::NotFitting { tool, why } => {
            Some(format!("`{model}` wrote a call of `{tool}` as text, which was not run: {why}"))
        }
        TextToolCallOutcome::Nothing if !ends_with_call(reply) || ask.tools.is_empty() => None,
        TextToolCallOutcome::Nothing => match ask.settings.tool_calls {
            ToolCallMode::Native => None,
            ToolCallMode::Auto => Some(format!(
                "`{model}` ended its reply with a call as text; it was not run, because it is not the whole reply or \
                 cannot be read (`tool_calls: text` in the model's settings allows words before it)"
            )),
            ToolCallMode::Text => Some(format!("`{model}` wrote a call that cannot be read; it was not run")),
        },
    }
}

/// Tells whether the last words of a reply are a call.
fn ends_with_call(reply: &Reply) -> bool {
    let text = reply.text.trim_end();
    reply.ended == ReplyEnd::Normally
        && reply.calls.is_empty()
        && CALL_ENDS.iter().any(|end| text.ends_with(end))
}
