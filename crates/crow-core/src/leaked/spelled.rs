//! A conversation for a model that is told in words which tools there are, and writes its calls as text.

use serde_json::json;

use crate::compaction::quote;
use crate::{
    Call, CallId, Entry, ForModel, NotAccepted, Outcome, Part, Prompt, Reply, Shown, ToolSpec, Transcript,
};

const HOW: &str = "\
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

/// Says in words what the provider is told of tools and calls otherwise.
pub fn spelled(transcript: ForModel<'_>, tools: &[ToolSpec]) -> Result<Transcript, NotAccepted> {
    let mut spelled = Transcript::new(system(transcript.system(), tools));
    let mut calls: &[Call] = &[];
    for step in transcript.steps() {
        spelled.push(match step {
            Shown::Prompt(prompt) => Entry::Prompt(prompt.clone()),
            Shown::Reply(reply) => {
                calls = &reply.calls;
                Entry::Reply(said(reply))
            }
            Shown::Result { call, outcome } => Entry::Prompt(told(calls, call, outcome, spelled.next_seq())),
        })?;
    }
    Ok(spelled)
}

fn system(system: &str, tools: &[ToolSpec]) -> String {
    if tools.is_empty() {
        return system.to_owned();
    }
    let tools = tools.iter().map(|tool| {
        let ToolSpec { name, description, parameters } = tool;
        format!("\n\n## {name}\n\n{description}\n\nIts arguments: {parameters}")
    });
    let tools: String = tools.collect();
    [system, HOW].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n") + &tools
}

fn said(reply: &Reply) -> Reply {
    let calls = reply.calls.iter().map(|call| {
        let call = json!({"name": call.name, "arguments": call.arguments.object()});
        format!("<tool_call>\n{call}\n</tool_call>")
    });
    let words = Some(reply.text.trim_end()).filter(|text| !text.is_empty()).map(str::to_owned);
    let text = match reply.calls.is_empty() {
        true => reply.text.clone(),
        false => words.into_iter().chain(calls).collect::<Vec<_>>().join("\n"),
    };
    // What a provider sealed belongs to calls that it was told of in its own way.
    Reply { text, calls: Vec::new(), sealed: None, ..reply.clone() }
}

fn told(calls: &[Call], id: CallId, outcome: &Outcome, seq: u64) -> Prompt {
    let name = calls.iter().find(|call| call.id == id).map_or("", |call| &call.name);
    let texts = outcome.for_model.iter().filter_map(|part| match part {
        Part::Text(text) | Part::Resource { text, .. } | Part::FromCrow { text, .. } => Some(text.as_str()),
        Part::Image { .. } | Part::Link { .. } => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let text = quote("tool_result", text.trim_end_matches('\n'));
    let text = Part::Text(format!("<tool_result name=\"{name}\">\n{text}\n</tool_result>"));
    let images = outcome.for_model.iter().filter(|part| matches!(part, Part::Image { .. })).cloned();
    Prompt { id: crate::MessageId::at(seq), parts: std::iter::once(text).chain(images).collect() }
}
