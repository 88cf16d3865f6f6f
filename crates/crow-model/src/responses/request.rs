//! Spells a conversation as the body of `responses`. The only place that does.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;

use crow_core::{CallId, ContentPart, ModelStep, ModelTranscript, Reply, ToolCall, ToolResult, ToolSpec};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::item::{OutputItemKind, message_text};
use crate::ModelSettings;
use crate::chat::{BodyFields, arguments_json, join_lines};
use crate::parts::{NO_WORDS, part_text, wire_tool_name};

/// The provider refuses longer names of calls.
const CALL_NAME_MAX: usize = 64;

/// Between two messages of one reply.
pub(super) const PARAGRAPH: &str = "\n\n";

/// Writes the body of a request. What changes from one request of a session to the next stands at its end, so that
/// the provider finds the rest in its cache.
pub(crate) fn build_body(
    settings: &ModelSettings,
    transcript: ModelTranscript<'_>,
    tools: &[ToolSpec],
) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&ResponsesRequest { settings, transcript, tools })
}

struct ResponsesRequest<'a> {
    settings: &'a ModelSettings,
    transcript: ModelTranscript<'a>,
    tools: &'a [ToolSpec],
}

impl Serialize for ResponsesRequest<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let settings = self.settings;
        let mut fields = BodyFields { map: serializer.serialize_map(None)?, added: settings.extra_fields() };
        fields.add_field("model", &settings.model)?;
        // Not a message of a developer: those outside OpenAI know this field and not always that role.
        let system = Some(self.transcript.system()).filter(|system| !system.trim().is_empty());
        fields.add_optional_field("instructions", system.as_ref())?;
        if !self.tools.is_empty() {
            let tools: Vec<_> = self.tools.iter().map(ResponsesTool::new).collect();
            fields.add_field("tools", &tools)?;
            fields.add_field("parallel_tool_calls", &true)?;
        }
        fields.add_field("stream", &true)?;
        fields.add_field("store", &false)?;
        if wants_reasoning(settings) {
            fields.add_field("include", &["reasoning.encrypted_content"])?;
        }
        // Models that cannot reason refuse the field, so it stands only where the settings ask for it.
        fields
            .add_optional_field("reasoning", settings.effort_level().map(ReasoningOptions::new).as_ref())?;
        fields.add_optional_field("max_output_tokens", settings.max_tokens.as_ref())?;
        fields.add_optional_field("temperature", settings.temperature.as_ref())?;
        fields.add_field("prompt_cache_key", &cache_key(self.transcript))?;
        fields.add_field("input", &build_input(settings, self.transcript))?;
        for (name, value) in &fields.added {
            fields.map.serialize_entry(name, value)?;
        }
        fields.map.end()
    }
}

fn wants_reasoning(settings: &ModelSettings) -> bool {
    settings.send_reasoning != Some(false)
}

#[derive(Serialize)]
struct ReasoningOptions<'a> {
    effort: &'a str,
    summary: &'static str,
}

impl<'a> ReasoningOptions<'a> {
    fn new(effort: &'a str) -> Self {
        Self { effort, summary: "auto" }
    }
}

#[derive(Serialize)]
struct ResponsesTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// Strict schemas have no optional fields; ours do.
    strict: bool,
}

impl<'a> ResponsesTool<'a> {
    fn new(tool: &'a ToolSpec) -> Self {
        let ToolSpec { name, description, parameters } = tool;
        Self { kind: "function", name, description, parameters, strict: false }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum InputItem<'a> {
    Ours(NewInputItem<'a>),
    /// As the provider gave it.
    Sealed(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum NewInputItem<'a> {
    Message {
        // Some servers refuse a message of the model that has no id and status.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'static str>,
        content: Vec<ResponsesContentPart<'a>>,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: CallOutput<'a>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum CallOutput<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ResponsesContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsesContentPart<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: String, detail: &'static str },
    OutputText { text: &'a str, annotations: [(); 0] },
}

fn build_input<'a>(settings: &ModelSettings, transcript: ModelTranscript<'a>) -> Vec<InputItem<'a>> {
    let by = settings.qualified_id();
    let mut items = Vec::new();
    let mut taken = BTreeSet::new();
    let mut names: Vec<(CallId, Cow<'a, str>)> = Vec::new();
    // Servers that make a chat of it take no two messages of a person in a row, so they wait for somebody else.
    let mut said: Vec<&ContentPart> = Vec::new();
    for step in transcript.steps() {
        match step {
            ModelStep::Prompt(prompt) => said.extend(&prompt.parts),
            ModelStep::Reply(reply) => {
                names = wire_call_ids(reply, &mut taken);
                let sealed = if wants_reasoning(settings) { reply.provider_state_for(&by) } else { &[] };
                let of_reply = ReplyItems::new(reply, &names).into_items(sealed);
                if !of_reply.is_empty() {
                    items.extend(user_message(&said));
                    said.clear();
                    items.extend(of_reply);
                }
            }
            ModelStep::Result { call, outcome } => {
                let name = names.iter().find(|(id, _)| *id == call);
                // The transcript has a reply before each result; without one there is nothing to say.
                let Some((_, name)) = name else { continue };
                let output = call_output(outcome);
                items.push(InputItem::Ours(NewInputItem::FunctionCallOutput {
                    call_id: name.clone(),
                    output,
                }));
            }
        }
    }
    items.extend(user_message(&said));
    items
}

/// The calls' names on the wire: the provider's own, unless an earlier call has the name or it is too long.
fn wire_call_ids<'a>(reply: &'a Reply, taken: &mut BTreeSet<&'a str>) -> Vec<(CallId, Cow<'a, str>)> {
    let names = reply.calls.iter().map(|call| {
        let name = call.provider_id.as_str();
        let is_usable = !name.is_empty() && name.len() <= CALL_NAME_MAX && taken.insert(name);
        (call.id, if is_usable { Cow::Borrowed(name) } else { Cow::Owned(call.id.to_string()) })
    });
    names.collect()
}

/// A reply while its items are put in their order.
struct ReplyItems<'a, 'n> {
    reply: &'a Reply,
    names: &'n [(CallId, Cow<'a, str>)],
    items: Vec<InputItem<'a>>,
    /// Reasoning that nothing follows yet: at the end of a reply the provider refuses it.
    waiting: Vec<&'a Value>,
    /// Calls that stand among the items, by their place.
    spelled: Vec<bool>,
    has_words: bool,
}

impl<'a, 'n> ReplyItems<'a, 'n> {
    fn new(reply: &'a Reply, names: &'n [(CallId, Cow<'a, str>)]) -> Self {
        let spelled = vec![false; reply.calls.len()];
        // Words that are only blanks are none.
        let has_words = reply.text.trim().is_empty();
        Self { reply, names, items: Vec::new(), waiting: Vec::new(), spelled, has_words }
    }

    /// Puts the sealed pieces and what Crow knows of the reply into the order in which the provider gave them.
    fn into_items(mut self, sealed: &'a [Value]) -> Vec<InputItem<'a>> {
        let words: Vec<_> = sealed
            .iter()
            .filter(|piece| OutputItemKind::from_item(piece) == Some(OutputItemKind::Message))
            .collect();
        let words: Vec<_> = words.into_iter().map(message_text).filter(|text| !text.is_empty()).collect();
        // What was changed since goes as Crow has it.
        let is_as_given = words.join(PARAGRAPH) == self.reply.text;
        for piece in sealed {
            match OutputItemKind::from_item(piece) {
                Some(OutputItemKind::Thought) => self.waiting.push(piece),
                Some(OutputItemKind::Message) if is_as_given && !message_text(piece).trim().is_empty() => {
                    self.has_words = true;
                    self.push_item(InputItem::Sealed(piece));
                }
                Some(OutputItemKind::Message) => self.push_message(),
                Some(OutputItemKind::Call) => self.push_provider_call(piece),
                None => {}
            }
        }
        self.push_message();
        for place in 0..self.reply.calls.len() {
            self.push_call(place, None);
        }
        self.items
    }

    fn push_item(&mut self, item: InputItem<'a>) {
        self.items.extend(self.waiting.drain(..).map(InputItem::Sealed));
        self.items.push(item);
    }

    fn push_message(&mut self) {
        if !std::mem::replace(&mut self.has_words, true) {
            self.push_item(InputItem::Ours(NewInputItem::Message {
                id: Some(self.reply.id.to_string().replace("msg-", "msg_crow_")),
                role: "assistant",
                status: Some("completed"),
                content: vec![ResponsesContentPart::OutputText { text: &self.reply.text, annotations: [] }],
            }));
        }
    }

    fn push_provider_call(&mut self, piece: &'a Value) {
        let field = |name: &str| piece[name].as_str().filter(|text| !text.is_empty());
        let is_it = |place: usize, call: &ToolCall| {
            !self.spelled[place] && Some(call.provider_id.as_str()) == field("call_id")
        };
        let place = self.reply.calls.iter().enumerate().position(|(place, call)| is_it(place, call));
        if let Some(place) = place {
            self.push_call(place, field("id"));
        }
    }

    fn push_call(&mut self, place: usize, id: Option<&'a str>) {
        let (Some(call), Some((_, name))) = (self.reply.calls.get(place), self.names.get(place)) else {
            return;
        };
        if !std::mem::replace(&mut self.spelled[place], true) {
            let (call_id, name, arguments) = (name.clone(), wire_tool_name(&call.name), arguments_json(call));
            self.push_item(InputItem::Ours(NewInputItem::FunctionCall { id, call_id, name, arguments }));
        }
    }
}

fn user_message<'a>(said: &[&'a ContentPart]) -> Option<InputItem<'a>> {
    let content = content_parts(said.iter().copied())?;
    Some(InputItem::Ours(NewInputItem::Message { id: None, role: "user", status: None, content }))
}

fn call_output(outcome: &ToolResult) -> CallOutput<'_> {
    let parts = content_parts(outcome.for_model.iter());
    let has_images = outcome.for_model.iter().any(|part| matches!(part, ContentPart::Image { .. }));
    match parts {
        Some(parts) if has_images => CallOutput::Parts(parts),
        Some(_) | None => {
            let joined = join_lines(outcome.for_model.iter().filter_map(part_text));
            CallOutput::Text(joined.unwrap_or(Cow::Borrowed(NO_WORDS)))
        }
    }
}

/// The images each by itself, the words between them in one piece.
fn content_parts<'a>(said: impl Iterator<Item = &'a ContentPart>) -> Option<Vec<ResponsesContentPart<'a>>> {
    let mut parts: Vec<ResponsesContentPart<'a>> = Vec::new();
    for part in said {
        if let ContentPart::Image { mime, data } = part {
            let image_url = format!("data:{mime};base64,{data}");
            parts.push(ResponsesContentPart::InputImage { image_url, detail: "auto" });
        } else if let Some(words) = part_text(part) {
            match parts.last_mut() {
                Some(ResponsesContentPart::InputText { text }) => {
                    let text = text.to_mut();
                    text.push('\n');
                    text.push_str(&words);
                }
                _ => parts.push(ResponsesContentPart::InputText { text: words }),
            }
        }
    }
    (!parts.is_empty()).then_some(parts)
}

/// Names the session to the provider's cache: requests of one name go to the machine that has their beginning. The
/// session's own name is not known here, so it is made of that beginning: the system prompt and the first message.
fn cache_key(transcript: ModelTranscript<'_>) -> String {
    let mut hash = FnvHash::default();
    hash.add_text(transcript.system());
    let first = transcript.steps().find_map(|step| match step {
        ModelStep::Prompt(prompt) => Some(prompt),
        ModelStep::Reply(_) | ModelStep::Result { .. } => None,
    });
    for part in first.iter().flat_map(|prompt| &prompt.parts) {
        match part {
            ContentPart::Image { data, .. } => hash.add_text(data),
            ContentPart::Text(_)
            | ContentPart::Link { .. }
            | ContentPart::Resource { .. }
            | ContentPart::FromCrow { .. } => {
                hash.add_text(&part_text(part).unwrap_or_default());
            }
        }
    }
    format!("crow-{:016x}", hash.0)
}

/// FNV-1a. The standard library's hash may change with the next compiler, and a session outlives that.
struct FnvHash(u64);

impl Default for FnvHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl FnvHash {
    fn add_text(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
