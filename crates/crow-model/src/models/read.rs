//! Reads what servers say of their models. Pure. What they say is hostile until it is read here.

use serde_json::Value;

use crate::ModelPrice;

/// No provider names a model at greater length; what is longer is no name.
const NAME_LEN_MAX: usize = 256;

/// No gateway has more, and nobody could choose among them.
const MODELS_MAX: usize = 10_000;

/// More than any model will read for years; a greater number is a mistake.
const TOKENS_MAX: u64 = 1_000_000_000;

/// What is dearer for a million tokens is no price.
const DOLLARS_MAX: f64 = 1e6;

/// Servers that say who they are, and have more to say than their list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelServerKind {
    /// `llama-server`.
    LlamaCpp,
    /// LM Studio.
    LmStudio,
    /// Ollama.
    Ollama,
    /// The gateway, whose list is open to everybody.
    OpenRouter,
    /// vLLM.
    Vllm,
}

impl ModelServerKind {
    /// Spells its name as its makers do.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LlamaCpp => "llama.cpp",
            Self::LmStudio => "LM Studio",
            Self::Ollama => "Ollama",
            Self::OpenRouter => "OpenRouter",
            Self::Vllm => "vLLM",
        }
    }
}

/// What a provider says of its models.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelListing {
    /// What kind of server it is, where it can be told.
    pub server: Option<ModelServerKind>,
    /// Its models, in its order.
    pub models: Vec<ListedModel>,
}

/// What a provider says of one model; what it does not say is not known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListedModel {
    /// Its name in requests. Nothing in it moves a cursor.
    pub id: String,
    /// Its name for people, where it has another.
    pub title: Option<String>,
    /// How many tokens the server lets it read at once.
    pub window: Option<u64>,
    /// How many it was made to read at once; the server may let it read fewer.
    pub window_max: Option<u64>,
    /// What it costs.
    pub price: Option<ModelPrice>,
    /// Whether it chats.
    pub chats: Option<bool>,
    /// Whether it may be offered tools.
    pub takes_tools: Option<bool>,
    /// Whether it reads images.
    pub reads_images: Option<bool>,
}

impl ModelListing {
    /// Finds a model by a name that a request may give it.
    pub fn find_model(&self, name: &str) -> Option<&ListedModel> {
        match self.models.as_slice() {
            // With one model, whatever is asked for is that.
            [only] if self.server == Some(ModelServerKind::LlamaCpp) => Some(only),
            models => {
                let exactly = models.iter().find(|model| model.id == name);
                exactly.or_else(|| models.iter().find(|model| self.matches_name(&model.id, name)))
            }
        }
    }

    fn matches_name(&self, id: &str, name: &str) -> bool {
        match self.server {
            Some(ModelServerKind::Ollama) => id.strip_suffix(":latest") == Some(name),
            // What follows the colon says which of its providers is taken.
            Some(ModelServerKind::OpenRouter) => name.rsplit_once(':').is_some_and(|(model, _)| id == model),
            Some(ModelServerKind::LlamaCpp | ModelServerKind::LmStudio | ModelServerKind::Vllm) => false,
            None => id.strip_prefix("models/") == Some(name),
        }
    }
}

impl ListedModel {
    /// Takes over what is known of the model elsewhere, and not here.
    pub(super) fn fill_missing(&mut self, known: &[Self]) {
        let Some(known) = known.iter().find(|known| known.id == self.id) else { return };
        self.title = self.title.take().or_else(|| known.title.clone());
        self.window = self.window.or(known.window);
        self.window_max = self.window_max.or(known.window_max);
        self.chats = self.chats.or(known.chats);
        self.takes_tools = self.takes_tools.or(known.takes_tools);
        self.reads_images = self.reads_images.or(known.reads_images);
    }
}

/// Reads a page of `/models`; `None` where it is none.
pub(super) fn parse_listing(page: &Value) -> Option<ModelListing> {
    // Ollama without a model says that its list is null.
    let is_empty = page.get("object") == Some(&Value::from("list")) && page.get("data") == Some(&Value::Null);
    let list = match model_array(page) {
        Some(list) => list,
        None if is_empty => &[],
        None => return None,
    };
    let models = list.iter().filter_map(parse_model).take(MODELS_MAX).collect();
    Some(ModelListing { server: list.iter().find_map(detect_server), models })
}

/// Tells after which model the next page begins, where there is one.
pub(super) fn next_page_cursor(page: &Value) -> Option<&str> {
    page.get("has_more").and_then(Value::as_bool).filter(|has_more| *has_more)?;
    string_field(page, "last_id")
}

/// Some wrap the list in `data`, some in `models`, some not at all; llama.cpp sends both, of which `data` says more.
fn model_array(page: &Value) -> Option<&[Value]> {
    let wrapped = ["data", "models"].iter().find_map(|name| page.get(*name)?.as_array());
    wrapped.or_else(|| page.as_array()).map(Vec::as_slice)
}

fn detect_server(model: &Value) -> Option<ModelServerKind> {
    if model.get("top_provider").is_some() && model.pointer("/pricing/prompt").is_some() {
        return Some(ModelServerKind::OpenRouter);
    }
    match model.get("owned_by")?.as_str()? {
        "llamacpp" => Some(ModelServerKind::LlamaCpp),
        "organization_owner" => Some(ModelServerKind::LmStudio),
        "library" => Some(ModelServerKind::Ollama),
        "vllm" => Some(ModelServerKind::Vllm),
        _ => None,
    }
}

fn parse_model(model: &Value) -> Option<ListedModel> {
    let id = match model.as_str() {
        Some(id) => id,
        None => ["id", "name", "model"].iter().find_map(|field| string_field(model, field))?,
    };
    let given = [
        "/meta/n_ctx",
        "/max_model_len",
        "/context_length",
        "/context_window",
        "/max_context_length",
        "/max_input_tokens",
    ];
    let modalities = model.pointer("/architecture/output_modalities");
    let says_chat = model.pointer("/capabilities/completion_chat").and_then(Value::as_bool);
    Some(ListedModel {
        id: displayable_name(id)?,
        title: display_title(model, &["display_name", "name"], id),
        window: given.iter().find_map(|path| parse_token_count(model.pointer(path)?)),
        window_max: model.pointer("/meta/n_ctx_train").and_then(parse_token_count),
        price: model.get("pricing").and_then(parse_price),
        chats: says_chat.or_else(|| array_contains(modalities?, "text")),
        takes_tools: model.get("supported_parameters").and_then(|names| array_contains(names, "tools")),
        reads_images: reads_images(model),
    })
}

/// Reads whether a model reads images: from the types of what it reads, or from what it can.
fn reads_images(model: &Value) -> Option<bool> {
    let read = ["/architecture/input_modalities", "/input_modalities", "/modalities/input"];
    let read = read.iter().find_map(|path| array_contains(model.pointer(path)?, "image"));
    read.or_else(|| model.pointer("/capabilities/vision")?.as_bool())
}

/// Reads what LM Studio says in its own words: its older and its newer list.
pub(super) fn parse_lm_studio(page: &Value) -> Option<Vec<ListedModel>> {
    let read = |model: &Value| {
        let id = string_field(model, "id").or_else(|| string_field(model, "key"))?;
        let loaded = ["/loaded_context_length", "/loaded_instances/0/config/context_length"];
        Some(ListedModel {
            id: displayable_name(id)?,
            title: display_title(model, &["display_name"], id),
            window: loaded.iter().find_map(|path| parse_token_count(model.pointer(path)?)),
            window_max: model.get("max_context_length").and_then(parse_token_count),
            chats: string_field(model, "type").map(|kind| !kind.starts_with("embedding")),
            // Its older list calls them a type of their own, its newer one says what they can.
            reads_images: reads_images(model).or_else(|| match string_field(model, "type")? {
                "vlm" => Some(true),
                "llm" => Some(false),
                _ => None,
            }),
            ..ListedModel::default()
        })
    };
    Some(model_array(page)?.iter().filter_map(read).take(MODELS_MAX).collect())
}

/// Reads what one slot of llama.cpp has.
pub(super) fn parse_slot_window(props: &Value) -> Option<u64> {
    parse_token_count(props.pointer("/default_generation_settings/n_ctx")?)
}

/// Tells Ollama by the version it says, which it alone says there.
pub(super) fn is_ollama(version: &Value) -> bool {
    string_field(version, "version").is_some()
}

/// Reads with what windows Ollama has loaded which models.
pub(super) fn parse_loaded_models(page: &Value) -> Vec<ListedModel> {
    let read = |model: &Value| {
        let id = ["model", "name"].iter().find_map(|field| string_field(model, field))?;
        let window = model.get("context_length").and_then(parse_token_count);
        Some(ListedModel { id: displayable_name(id)?, window, ..ListedModel::default() })
    };
    model_array(page).unwrap_or_default().iter().filter_map(read).take(MODELS_MAX).collect()
}

/// Reads how many tokens Ollama gives a model that says nothing else.
pub(super) fn parse_default_window(status: &Value) -> Option<u64> {
    parse_token_count(status.get("context_length")?)
}

/// Reads what Ollama shows of a model. What the model was made for is not what it gets: that stands in its file, or
/// else is `usual`.
pub(super) fn parse_model_details(id: &str, page: &Value, usual: Option<u64>) -> ListedModel {
    let window_max = trained_window(page);
    let is_elsewhere = string_field(page, "remote_host").is_some_and(|host| !host.is_empty());
    let set = string_field(page, "parameters").and_then(parse_num_ctx).or(usual);
    let set = set.map(|set| window_max.map_or(set, |max| set.min(max)));
    let can = page.get("capabilities");
    ListedModel {
        id: id.to_owned(),
        window: if is_elsewhere { window_max } else { set },
        window_max,
        chats: can.and_then(|can| array_contains(can, "completion")),
        takes_tools: can.and_then(|can| array_contains(can, "tools")),
        reads_images: can.and_then(|can| array_contains(can, "vision")),
        ..ListedModel::default()
    }
}

fn trained_window(page: &Value) -> Option<u64> {
    let info = page.get("model_info")?.as_object()?;
    let family = info.get("general.architecture").and_then(Value::as_str).unwrap_or_default();
    let own = info.get(&format!("{family}.context_length"));
    let any = || info.iter().find(|(key, _)| key.ends_with(".context_length")).map(|(_, value)| value);
    parse_token_count(own.or_else(any)?)
}

/// The parameters of a model's file are lines of a name and a value.
fn parse_num_ctx(parameters: &str) -> Option<u64> {
    let values = parameters.lines().filter_map(|line| line.trim().strip_prefix("num_ctx"));
    let mut counts = values.filter_map(|value| value.trim().parse().ok());
    counts.find(|count| is_sane(*count))
}

/// Reads US dollars for one token, as texts; a gateway that routes to dear and cheap models alike says -1.
fn parse_price(pricing: &Value) -> Option<ModelPrice> {
    Some(ModelPrice {
        input: dollars_per_million(pricing.get("prompt")?)?,
        output: dollars_per_million(pricing.get("completion")?)?,
        cached: pricing.get("input_cache_read").and_then(dollars_per_million),
        cache_written: pricing.get("input_cache_write").and_then(dollars_per_million),
    })
}

fn dollars_per_million(value: &Value) -> Option<f64> {
    let for_one: f64 = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    // Millionths of a dollar for a million tokens: what lies below comes from reading decimal numbers.
    let for_million = (for_one * 1e12).round() / 1e6;
    (0.0..=DOLLARS_MAX).contains(&for_million).then_some(for_million)
}

fn parse_token_count(value: &Value) -> Option<u64> {
    value.as_u64().filter(|count| is_sane(*count))
}

fn is_sane(count: u64) -> bool {
    (1..=TOKENS_MAX).contains(&count)
}

fn string_field<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str()
}

fn array_contains(list: &Value, word: &str) -> Option<bool> {
    Some(list.as_array()?.iter().any(|value| value == word))
}

fn display_title(model: &Value, fields: &[&str], id: &str) -> Option<String> {
    fields
        .iter()
        .find_map(|field| string_field(model, field))
        .and_then(displayable_name)
        .filter(|title| title != id)
}

/// Takes a name that can be shown. One that moves the cursor or turns letters around would be read as another.
fn displayable_name(text: &str) -> Option<String> {
    let is_shown = |letter: char| !letter.is_control() && !is_invisible(letter);
    let is_name = !text.trim().is_empty() && text.len() <= NAME_LEN_MAX && text.chars().all(is_shown);
    is_name.then(|| text.to_owned())
}

/// Letters that are not seen, and turn around or part those that are.
fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    )
}
