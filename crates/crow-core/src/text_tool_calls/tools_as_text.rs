//! Renders a transcript for a model that gets the tools as text and writes its calls as text.

use serde_json::json;

use crate::compaction::escape_closing_tag;
use crate::{
    CallId, ContentPart, InvalidEntry, ModelStep, ModelTranscript, Prompt, Reply, ToolCall, ToolResult,
    ToolSpec, Transcript, TranscriptEntry,
};

const INSTRUCTIONS: &str = "\
# Tools

You call a tool in writing. Put this at the end of your reply, on lines of its own:

<tool_call>
{\"name\": \"the tool's name\", \"arguments\": {\"the argument's name\": \"its value\"}}
</tool_call>

- The arguments are one JSON object that fits the tool's schema. A line break in a string is \\n, a quote \\\".
- Write nothing behind it: the reply ends there, and the next message brings the result in <tool_result> tags. Never \
write a result yourself.
- Calls that do not need each other's results may follow one another, each in tags of its own.
- A reply without a call ends the work.

These are the tools:";

/// Renders tools and calls as text instead of provider fields.
pub fn render_tools_as_text(
    transcript: ModelTranscript<'_>,
    tools: &[ToolSpec],
) -> Result<Transcript, InvalidEntry> {
    let mut rendered = Transcript::new(render_system_prompt(transcript.system(), tools));
    let mut calls: &[ToolCall] = &[];
    for step in transcript.steps() {
        rendered.push(match step {
            ModelStep::Prompt(prompt) => TranscriptEntry::Prompt(prompt.clone()),
            ModelStep::Reply(reply) => {
                calls = &reply.calls;
                TranscriptEntry::Reply(render_reply(reply))
            }
            ModelStep::Result { call, result } => {
                TranscriptEntry::Prompt(render_result(calls, call, result, rendered.next_seq()))
            }
        })?;
    }
    Ok(rendered)
}

fn render_system_prompt(system: &str, tools: &[ToolSpec]) -> String {
    if tools.is_empty() {
        return system.to_owned();
    }
    let tools = tools.iter().map(|tool| {
        let ToolSpec { name, description, parameters } = tool;
        format!("\n\n## {name}\n\n{description}\n\nIts arguments: {parameters}")
    });
    let tools: String = tools.collect();
    [system, INSTRUCTIONS].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
        + &tools
}

fn render_reply(reply: &Reply) -> Reply {
    let calls = reply.calls.iter().map(|call| {
        let call = json!({"name": call.name, "arguments": call.arguments.to_object()});
        format!("<tool_call>\n{call}\n</tool_call>")
    });
    let text_before = Some(reply.text.trim_end()).filter(|text| !text.is_empty()).map(str::to_owned);
    let text = match reply.calls.is_empty() {
        true => reply.text.clone(),
        false => text_before.into_iter().chain(calls).collect::<Vec<_>>().join("\n"),
    };
    // The provider state belongs to native calls.
    Reply { text, calls: Vec::new(), provider_state: None, ..reply.clone() }
}

fn render_result(calls: &[ToolCall], id: CallId, result: &ToolResult, seq: u64) -> Prompt {
    let name = calls.iter().find(|call| call.id == id).map_or("", |call| &call.name);
    let texts = result.for_model.iter().filter_map(|part| match part {
        ContentPart::Text(text) | ContentPart::Resource { text, .. } | ContentPart::FromCrow { text, .. } => {
            Some(text.as_str())
        }
        ContentPart::Image { .. } | ContentPart::Link { .. } => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let text = escape_closing_tag("tool_result", text.trim_end_matches('\n'));
    let text = ContentPart::Text(format!("<tool_result name=\"{name}\">\n{text}\n</tool_result>"));
    let images = result.for_model.iter().filter(|part| matches!(part, ContentPart::Image { .. })).cloned();
    Prompt { id: crate::MessageId::from_seq(seq), parts: std::iter::once(text).chain(images).collect() }
}
