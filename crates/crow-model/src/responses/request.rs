//! Encodes a conversation as the body of `responses`. The only module that does.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crow_core::{
    ContentPart, ModelTranscript, Reply, ToolCall, ToolResult, ToolSpec, first_working_directory,
};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::item::{MESSAGE_SEPARATOR, OutputItemKind, message_text};
use crate::ModelSettings;
use crate::conversation::{ConversationEncoder, ReplyStep, encode_conversation};
use crate::wire::{
    BodyFields, NO_OUTPUT, UsedCallIds, WireCallIds, arguments_json, image_data_url, join_lines, part_text,
    wire_tool_name,
};

/// The provider rejects longer call IDs.
const CALL_ID_LEN_MAX: usize = 64;

/// Builds the body of a request. Parts that change between requests of a session are at the end, so that the provider
/// finds the rest in its cache.
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
        let extra_fields = settings.extra_fields();
        let mut fields = BodyFields::new(serializer.serialize_map(None)?, &extra_fields);
        fields.add_field("model", &settings.model)?;
        // Not a developer message: other servers support this field and not always that role.
        let system = Some(self.transcript.system()).filter(|system| !system.trim().is_empty());
        fields.add_optional_field("instructions", system.as_ref())?;
        if !self.tools.is_empty() {
            let tools: Vec<_> = self.tools.iter().map(ResponsesTool::new).collect();
            fields.add_field("tools", &tools)?;
            fields.add_field("parallel_tool_calls", &settings.wants_parallel_calls())?;
        }
        fields.add_field("stream", &true)?;
        fields.add_field("store", &false)?;
        if wants_reasoning(settings) {
            fields.add_field("include", &["reasoning.encrypted_content"])?;
        }
        // Models without reasoning reject the field, so it is sent only if the settings ask for it.
        fields
            .add_optional_field("reasoning", settings.effort_level().map(ReasoningOptions::new).as_ref())?;
        fields.add_optional_field("max_output_tokens", settings.max_tokens.as_ref())?;
        fields.add_optional_field("temperature", settings.temperature.as_ref())?;
        fields.add_field("prompt_cache_key", &cache_key(self.transcript, self.tools))?;
        fields.add_field("input", &build_input(settings, self.transcript))?;
        fields.finish()
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
    /// As the provider sent it.
    Sealed(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum NewInputItem<'a> {
    Message {
        // Some servers reject a message of the model without an ID and a status.
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
    let model_id = Some(settings.qualified_id()).filter(|_| wants_reasoning(settings));
    let mut encoder = ResponsesEncoder { items: Vec::new(), used_ids: UsedCallIds::default(), model_id };
    encode_conversation(transcript, 0, &mut encoder);
    encoder.items
}

/// The input while it is put in order.
struct ResponsesEncoder<'a> {
    items: Vec<InputItem<'a>>,
    used_ids: UsedCallIds<'a>,
    /// The model whose provider state is sent back, as the state names it.
    model_id: Option<String>,
}

impl<'a> ConversationEncoder<'a> for ResponsesEncoder<'a> {
    type EncodedReply = Vec<InputItem<'a>>;

    fn choose_call_ids(&mut self, reply: &'a Reply) -> WireCallIds<'a> {
        self.used_ids.choose_ids(reply, |id| (1..=CALL_ID_LEN_MAX).contains(&id.len()))
    }

    fn encode_reply(
        &self,
        ReplyStep { reply, call_ids, .. }: ReplyStep<'a, '_>,
    ) -> Option<Vec<InputItem<'a>>> {
        let model_id = self.model_id.as_deref();
        let provider_state = model_id.map_or(&[][..], |model_id| reply.provider_state_for(model_id));
        let items = ReplyItems::new(reply, call_ids).into_items(provider_state);
        Some(items).filter(|items| !items.is_empty())
    }

    fn add_prompt_parts(&mut self, parts: &[&'a ContentPart]) {
        self.items.extend(user_message(parts));
    }

    fn add_reply(&mut self, items: Vec<InputItem<'a>>) {
        self.items.extend(items);
    }

    fn add_result(&mut self, call_id: Cow<'a, str>, result: &'a ToolResult) {
        let output = call_output(result);
        self.items.push(InputItem::Ours(NewInputItem::FunctionCallOutput { call_id, output }));
    }
}

/// A reply while its items are put in order.
struct ReplyItems<'a, 'n> {
    reply: &'a Reply,
    call_ids: &'n WireCallIds<'a>,
    items: Vec<InputItem<'a>>,
    /// Thinking without a following item: the provider rejects it at the end of a reply.
    pending_reasoning: Vec<&'a Value>,
    /// Calls that are among the items, by index.
    is_call_added: Vec<bool>,
    is_text_done: bool,
}

impl<'a, 'n> ReplyItems<'a, 'n> {
    fn new(reply: &'a Reply, call_ids: &'n WireCallIds<'a>) -> Self {
        let is_call_added = vec![false; reply.calls.len()];
        // White space does not count as text.
        let is_text_done = reply.text.trim().is_empty();
        Self {
            reply,
            call_ids,
            items: Vec::new(),
            pending_reasoning: Vec::new(),
            is_call_added,
            is_text_done,
        }
    }

    /// Puts the provider state and Crow's own data of the reply into the order in which the provider sent them.
    fn into_items(mut self, provider_state: &'a [Value]) -> Vec<InputItem<'a>> {
        let texts: Vec<_> = provider_state
            .iter()
            .filter(|item| OutputItemKind::from_item(item) == Some(OutputItemKind::Message))
            .collect();
        let texts: Vec<_> = texts.into_iter().map(message_text).filter(|text| !text.is_empty()).collect();
        // Changed parts are sent as Crow has them.
        let is_unchanged = texts.join(MESSAGE_SEPARATOR) == self.reply.text;
        for item in provider_state {
            match OutputItemKind::from_item(item) {
                Some(OutputItemKind::Thought) => self.pending_reasoning.push(item),
                Some(OutputItemKind::Message) if is_unchanged && !message_text(item).trim().is_empty() => {
                    self.is_text_done = true;
                    self.push_item(InputItem::Sealed(item));
                }
                Some(OutputItemKind::Message) => self.push_message(),
                Some(OutputItemKind::Call) => self.push_provider_call(item),
                None => {}
            }
        }
        self.push_message();
        for index in 0..self.reply.calls.len() {
            self.push_call(index, None);
        }
        self.items
    }

    fn push_item(&mut self, item: InputItem<'a>) {
        self.items.extend(self.pending_reasoning.drain(..).map(InputItem::Sealed));
        self.items.push(item);
    }

    fn push_message(&mut self) {
        if !std::mem::replace(&mut self.is_text_done, true) {
            self.push_item(InputItem::Ours(NewInputItem::Message {
                id: Some(self.reply.id.to_string().replace("msg-", "msg_crow_")),
                role: "assistant",
                status: Some("completed"),
                content: vec![ResponsesContentPart::OutputText { text: &self.reply.text, annotations: [] }],
            }));
        }
    }

    fn push_provider_call(&mut self, item: &'a Value) {
        let field = |name: &str| item[name].as_str().filter(|text| !text.is_empty());
        let is_call = |index: usize, call: &ToolCall| {
            !self.is_call_added[index] && Some(call.provider_id.as_str()) == field("call_id")
        };
        let index = self.reply.calls.iter().enumerate().position(|(place, call)| is_call(place, call));
        if let Some(index) = index {
            self.push_call(index, field("id"));
        }
    }

    fn push_call(&mut self, index: usize, id: Option<&'a str>) {
        let Some(call) = self.reply.calls.get(index) else { return };
        let Some(call_id) = self.call_ids.id_of(call.id) else { return };
        if !std::mem::replace(&mut self.is_call_added[index], true) {
            let (call_id, name, arguments) =
                (call_id.clone(), wire_tool_name(&call.name), arguments_json(call));
            self.push_item(InputItem::Ours(NewInputItem::FunctionCall { id, call_id, name, arguments }));
        }
    }
}

fn user_message<'a>(prompt_parts: &[&'a ContentPart]) -> Option<InputItem<'a>> {
    let content = content_parts(prompt_parts.iter().copied())?;
    Some(InputItem::Ours(NewInputItem::Message { id: None, role: "user", status: None, content }))
}

fn call_output(result: &ToolResult) -> CallOutput<'_> {
    let parts = content_parts(result.for_model.iter());
    let has_images = result.for_model.iter().any(|part| matches!(part, ContentPart::Image { .. }));
    match parts {
        Some(parts) if has_images => CallOutput::Parts(parts),
        Some(_) | None => {
            let joined = join_lines(result.for_model.iter().filter_map(part_text));
            CallOutput::Text(joined.unwrap_or(Cow::Borrowed(NO_OUTPUT)))
        }
    }
}

/// Images one by one, the text between them in one part.
fn content_parts<'a>(
    source_parts: impl Iterator<Item = &'a ContentPart>,
) -> Option<Vec<ResponsesContentPart<'a>>> {
    let mut parts: Vec<ResponsesContentPart<'a>> = Vec::new();
    for part in source_parts {
        if let ContentPart::Image { mime, data } = part {
            let image_url = image_data_url(mime, data);
            parts.push(ResponsesContentPart::InputImage { image_url, detail: "auto" });
        } else if let Some(new_text) = part_text(part) {
            match parts.last_mut() {
                Some(ResponsesContentPart::InputText { text }) => {
                    let text = text.to_mut();
                    text.push('\n');
                    text.push_str(&new_text);
                }
                _ => parts.push(ResponsesContentPart::InputText { text: new_text }),
            }
        }
    }
    (!parts.is_empty()).then_some(parts)
}

/// The cache key: requests with the same key go to the machine that has their prefix. It is the same for all sessions in
/// a directory, which share the system prompt, the tools and mostly the instructions.
fn cache_key(transcript: ModelTranscript<'_>, tools: &[ToolSpec]) -> String {
    let mut hash = FnvHash::default();
    hash.add_text(transcript.system());
    for ToolSpec { name, description, .. } in tools {
        hash.add_text(name);
        hash.add_text(description);
    }
    hash.add_text(first_working_directory(transcript).unwrap_or_default());
    format!("crow-{:016x}", hash.0)
}

/// FNV-1a. The standard library's hash may change with the compiler, and a session outlives that.
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
