//! Encodes a request as the body of `messages`. The only module that does, with the conversation next to it.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crow_core::{ModelTranscript, ToolSpec, n_project_parts};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::conversation::{self, AnthropicBlock, AnthropicMessage, CacheControl};
use super::thinking::ThinkingConfig;
use crate::ModelSettings;
use crate::wire::BodyFields;

/// Keywords that the provider rejects at the top of a tool's schema.
const ALTERNATIVES: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// Builds the body of a request.
pub(crate) fn build_body(
    settings: &ModelSettings,
    transcript: ModelTranscript<'_>,
    tools: &[ToolSpec],
) -> Result<Vec<u8>, serde_json::Error> {
    let mut thinking = ThinkingConfig::from_settings(settings);
    let mut messages = conversation::build_messages(settings, transcript);
    // A turn that began without thinking has to continue without it.
    if thinking.is_budgeted() && conversation::turn_began_without_thinking(&messages) {
        thinking.disable_thinking();
    }
    if !thinking.accepts_past_thinking() {
        conversation::remove_thinking(&mut messages);
    }
    conversation::mark_cache(&mut messages, n_project_parts(transcript));
    let system = system_blocks(transcript.system());
    serde_json::to_vec(&AnthropicRequest { settings, thinking, system, tools, messages })
}

struct AnthropicRequest<'a> {
    settings: &'a ModelSettings,
    thinking: ThinkingConfig,
    system: Option<[AnthropicBlock<'a>; 1]>,
    tools: &'a [ToolSpec],
    messages: Vec<AnthropicMessage<'a>>,
}

impl Serialize for AnthropicRequest<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { settings, thinking, system, tools, messages } = self;
        let mut fields = BodyFields::new(serializer.serialize_map(None)?, &thinking.fields);
        fields.add_field("model", &settings.model)?;
        fields.add_field("max_tokens", &thinking.max_tokens)?;
        fields.add_field("stream", &true)?;
        if !tools.is_empty() {
            // The mark of the system prompt includes the tools.
            let is_marked = system.is_none();
            fields.add_field("tools", &AnthropicTools { tools, is_marked })?;
        }
        fields.add_optional_field("system", system.as_ref())?;
        fields.add_field("messages", messages)?;
        let temperature = settings.temperature.filter(|_| !thinking.is_enabled());
        fields.add_optional_field("temperature", temperature.as_ref())?;
        fields.finish()
    }
}

fn system_blocks(text: &str) -> Option<[AnthropicBlock<'_>; 1]> {
    if text.trim().is_empty() {
        return None;
    }
    let mut block = AnthropicBlock::from_text(text);
    block.add_cache_control();
    Some([block])
}

struct AnthropicTools<'a> {
    tools: &'a [ToolSpec],
    is_marked: bool,
}

impl Serialize for AnthropicTools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let last = self.tools.len() - 1;
        serializer.collect_seq(self.tools.iter().enumerate().map(|(index, tool)| AnthropicTool {
            name: &tool.name,
            description: Some(tool.description.as_str()).filter(|description| !description.trim().is_empty()),
            input_schema: input_schema(&tool.parameters),
            cache_control: (self.is_marked && index == last).then_some(CacheControl {}),
        }))
    }
}

#[derive(Serialize)]
struct AnthropicTool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// The provider requires an object at the top of a schema, without alternatives; those are checked when the tool is
/// called.
fn input_schema(parameters: &Value) -> Cow<'_, Value> {
    let Value::Object(fields) = parameters else { return Cow::Owned(json!({"type": "object"})) };
    let has_alternatives = ALTERNATIVES.iter().any(|name| fields.contains_key(*name));
    if fields.get("type").is_some_and(|kind| kind == "object") && !has_alternatives {
        return Cow::Borrowed(parameters);
    }
    let mut fields = fields.clone();
    ALTERNATIVES.iter().for_each(|name| drop(fields.shift_remove(*name)));
    fields.insert("type".to_owned(), "object".into());
    Cow::Owned(Value::Object(fields))
}
