//! Spells a conversation as the body of `responses`. The only place that does.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;

use crow_core::{Call, CallId, ForModel, Outcome, Part, Reply, Shown, ToolSpec};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::item::{Kind, words_of_message};
use crate::ModelSettings;
use crate::chat::{Fields, arguments, join};
use crate::parts::{NO_WORDS, text, tool_name};

/// The provider refuses longer names of calls.
const CALL_NAME_MAX: usize = 64;

/// Between two messages of one reply.
pub(super) const PARAGRAPH: &str = "\n\n";

/// Writes the body of a request. What changes from one request of a session to the next stands at its end, so that
/// the provider finds the rest in its cache.
pub(crate) fn body(
    settings: &ModelSettings,
    transcript: ForModel<'_>,
    tools: &[ToolSpec],
) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Body { settings, transcript, tools })
}

struct Body<'a> {
    settings: &'a ModelSettings,
    transcript: ForModel<'a>,
    tools: &'a [ToolSpec],
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let settings = self.settings;
        let mut fields = Fields { map: serializer.serialize_map(None)?, added: settings.added_fields() };
        fields.add("model", &settings.model)?;
        // Not a message of a developer: those outside OpenAI know this field and not always that role.
        let system = Some(self.transcript.system()).filter(|system| !system.trim().is_empty());
        fields.add_some("instructions", system.as_ref())?;
        if !self.tools.is_empty() {
            let tools: Vec<_> = self.tools.iter().map(WireTool::new).collect();
            fields.add("tools", &tools)?;
            fields.add("parallel_tool_calls", &true)?;
        }
        fields.add("stream", &true)?;
        fields.add("store", &false)?;
        if wants_reasoning(settings) {
            fields.add("include", &["reasoning.encrypted_content"])?;
        }
        // Models that cannot reason refuse the field, so it stands only where the settings ask for it.
        fields.add_some("reasoning", settings.effort().map(Reasoning::new).as_ref())?;
        fields.add_some("max_output_tokens", settings.max_tokens.as_ref())?;
        fields.add_some("temperature", settings.temperature.as_ref())?;
        fields.add("prompt_cache_key", &cache_key(self.transcript))?;
        fields.add("input", &items(settings, self.transcript))?;
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
struct Reasoning<'a> {
    effort: &'a str,
    summary: &'static str,
}

impl<'a> Reasoning<'a> {
    fn new(effort: &'a str) -> Self {
        Self { effort, summary: "auto" }
    }
}

#[derive(Serialize)]
struct WireTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// Strict schemas have no optional fields; ours do.
    strict: bool,
}

impl<'a> WireTool<'a> {
    fn new(tool: &'a ToolSpec) -> Self {
        let ToolSpec { name, description, parameters } = tool;
        Self { kind: "function", name, description, parameters, strict: false }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Ours(Ours<'a>),
    /// As the provider gave it.
    Sealed(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Ours<'a> {
    Message {
        // Some servers refuse a message of the model that has no id and status.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'static str>,
        content: Vec<WirePart<'a>>,
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
        output: Output<'a>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<WirePart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: String, detail: &'static str },
    OutputText { text: &'a str, annotations: [(); 0] },
}

fn items<'a>(settings: &ModelSettings, transcript: ForModel<'a>) -> Vec<Item<'a>> {
    let by = settings.id();
    let mut items = Vec::new();
    let mut taken = BTreeSet::new();
    let mut names: Vec<(CallId, Cow<'a, str>)> = Vec::new();
    // Servers that make a chat of it take no two messages of a person in a row, so they wait for somebody else.
    let mut said: Vec<&Part> = Vec::new();
    for step in transcript.steps() {
        match step {
            Shown::Prompt(prompt) => said.extend(&prompt.parts),
            Shown::Reply(reply) => {
                names = call_names(reply, &mut taken);
                let sealed = if wants_reasoning(settings) { reply.sealed_by(&by) } else { &[] };
                let of_reply = OfReply::new(reply, &names).items(sealed);
                if !of_reply.is_empty() {
                    items.extend(user(&said));
                    said.clear();
                    items.extend(of_reply);
                }
            }
            Shown::Result { call, outcome } => {
                let name = names.iter().find(|(id, _)| *id == call);
                // The transcript has a reply before each result; without one there is nothing to say.
                let Some((_, name)) = name else { continue };
                let output = output(outcome);
                items.push(Item::Ours(Ours::FunctionCallOutput { call_id: name.clone(), output }));
            }
        }
    }
    items.extend(user(&said));
    items
}

/// The calls' names on the wire: the provider's own, unless an earlier call has the name or it is too long.
fn call_names<'a>(reply: &'a Reply, taken: &mut BTreeSet<&'a str>) -> Vec<(CallId, Cow<'a, str>)> {
    let names = reply.calls.iter().map(|call| {
        let name = call.provider_id.as_str();
        let is_usable = !name.is_empty() && name.len() <= CALL_NAME_MAX && taken.insert(name);
        (call.id, if is_usable { Cow::Borrowed(name) } else { Cow::Owned(call.id.to_string()) })
    });
    names.collect()
}

/// A reply while its items are put in their order.
struct OfReply<'a, 'n> {
    reply: &'a Reply,
    names: &'n [(CallId, Cow<'a, str>)],
    items: Vec<Item<'a>>,
    /// Reasoning that nothing follows yet: at the end of a reply the provider refuses it.
    waiting: Vec<&'a Value>,
    /// Calls that stand among the items, by their place.
    spelled: Vec<bool>,
    has_words: bool,
}

impl<'a, 'n> OfReply<'a, 'n> {
    fn new(reply: &'a Reply, names: &'n [(CallId, Cow<'a, str>)]) -> Self {
        let spelled = vec![false; reply.calls.len()];
        // Words that are only blanks are none.
        let has_words = reply.text.trim().is_empty();
        Self { reply, names, items: Vec::new(), waiting: Vec::new(), spelled, has_words }
    }

    /// Puts the sealed pieces and what Crow knows of the reply into the order in which the provider gave them.
    fn items(mut self, sealed: &'a [Value]) -> Vec<Item<'a>> {
        let words: Vec<_> = sealed.iter().filter(|piece| Kind::of(piece) == Some(Kind::Message)).collect();
        let words: Vec<_> = words.into_iter().map(words_of_message).filter(|text| !text.is_empty()).collect();
        // What was changed since goes as Crow has it.
        let is_as_given = words.join(PARAGRAPH) == self.reply.text;
        for piece in sealed {
            match Kind::of(piece) {
                Some(Kind::Thought) => self.waiting.push(piece),
                Some(Kind::Message) if is_as_given && !words_of_message(piece).trim().is_empty() => {
                    self.has_words = true;
                    self.push(Item::Sealed(piece));
                }
                Some(Kind::Message) => self.message(),
                Some(Kind::Call) => self.sealed_call(piece),
                None => {}
            }
        }
        self.message();
        for place in 0..self.reply.calls.len() {
            self.call(place, None);
        }
        self.items
    }

    fn push(&mut self, item: Item<'a>) {
        self.items.extend(self.waiting.drain(..).map(Item::Sealed));
        self.items.push(item);
    }

    fn message(&mut self) {
        if !std::mem::replace(&mut self.has_words, true) {
            self.push(Item::Ours(Ours::Message {
                id: Some(self.reply.id.to_string().replace("msg-", "msg_crow_")),
                role: "assistant",
                status: Some("completed"),
                content: vec![WirePart::OutputText { text: &self.reply.text, annotations: [] }],
            }));
        }
    }

    fn sealed_call(&mut self, piece: &'a Value) {
        let field = |name: &str| piece[name].as_str().filter(|text| !text.is_empty());
        let is_it = |place: usize, call: &Call| {
            !self.spelled[place] && Some(call.provider_id.as_str()) == field("call_id")
        };
        let place = self.reply.calls.iter().enumerate().position(|(place, call)| is_it(place, call));
        if let Some(place) = place {
            self.call(place, field("id"));
        }
    }

    fn call(&mut self, place: usize, id: Option<&'a str>) {
        let (Some(call), Some((_, name))) = (self.reply.calls.get(place), self.names.get(place)) else {
            return;
        };
        if !std::mem::replace(&mut self.spelled[place], true) {
            let (call_id, name, arguments) = (name.clone(), tool_name(&call.name), arguments(call));
            self.push(Item::Ours(Ours::FunctionCall { id, call_id, name, arguments }));
        }
    }
}

fn user<'a>(said: &[&'a Part]) -> Option<Item<'a>> {
    let content = parts(said.iter().copied())?;
    Some(Item::Ours(Ours::Message { id: None, role: "user", status: None, content }))
}

fn output(outcome: &Outcome) -> Output<'_> {
    let parts = parts(outcome.for_model.iter());
    let has_images = outcome.for_model.iter().any(|part| matches!(part, Part::Image { .. }));
    match parts {
        Some(parts) if has_images => Output::Parts(parts),
        Some(_) | None => {
            let joined = join(outcome.for_model.iter().filter_map(text));
            Output::Text(joined.unwrap_or(Cow::Borrowed(NO_WORDS)))
        }
    }
}

/// The images each by itself, the words between them in one piece.
fn parts<'a>(said: impl Iterator<Item = &'a Part>) -> Option<Vec<WirePart<'a>>> {
    let mut parts: Vec<WirePart<'a>> = Vec::new();
    for part in said {
        if let Part::Image { mime, data } = part {
            let image_url = format!("data:{mime};base64,{data}");
            parts.push(WirePart::InputImage { image_url, detail: "auto" });
        } else if let Some(words) = text(part) {
            match parts.last_mut() {
                Some(WirePart::InputText { text }) => {
                    let text = text.to_mut();
                    text.push('\n');
                    text.push_str(&words);
                }
                _ => parts.push(WirePart::InputText { text: words }),
            }
        }
    }
    (!parts.is_empty()).then_some(parts)
}

/// Names the session to the provider's cache: requests of one name go to the machine that has their beginning. The
/// session's own name is not known here, so it is made of that beginning: the system prompt and the first message.
fn cache_key(transcript: ForModel<'_>) -> String {
    let mut hash = Fnv::default();
    hash.add(transcript.system());
    let first = transcript.steps().find_map(|step| match step {
        Shown::Prompt(prompt) => Some(prompt),
        Shown::Reply(_) | Shown::Result { .. } => None,
    });
    for part in first.iter().flat_map(|prompt| &prompt.parts) {
        match part {
            Part::Image { data, .. } => hash.add(data),
            Part::Text(_) | Part::Link { .. } | Part::Resource { .. } | Part::FromCrow { .. } => {
                hash.add(&text(part).unwrap_or_default());
            }
        }
    }
    format!("crow-{:016x}", hash.0)
}

/// FNV-1a. The standard library's hash may change with the next compiler, and a session outlives that.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
