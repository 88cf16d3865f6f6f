//! Parses the model lists of servers. Pure. The input is untrusted.

use serde_json::Value;

use crate::ModelPrice;

/// Longer names are invalid.
const NAME_LEN_MAX: usize = 256;

/// No gateway has more models, and users could not choose among them.
const MODELS_MAX: usize = 10_000;

/// A greater number of tokens is a mistake.
const TOKENS_MAX: u64 = 1_000_000_000;

/// A higher price per million tokens is invalid.
const DOLLARS_MAX: f64 = 1e6;

/// Servers that identify themselves and report more than their list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelServerKind {
    LlamaCpp,
    LmStudio,
    Ollama,
    /// The gateway, whose list is public.
    OpenRouter,
    Vllm,
}

impl ModelServerKind {
    /// Returns the product's name.
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

/// A provider's list of models.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelListing {
    /// The kind of server, if recognized.
    pub server: Option<ModelServerKind>,
    /// Its models, in its order.
    pub models: Vec<ListedModel>,
}

/// One listed model; unreported properties are unknown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListedModel {
    /// Its ID in requests, without control characters.
    pub id: String,
    /// Its display name, if different.
    pub title: Option<String>,
    /// The context window that the server permits.
    pub window: Option<u64>,
    /// The context window that the model supports; the server may permit less.
    pub window_max: Option<u64>,
    pub price: Option<ModelPrice>,
    /// Whether it is a chat model.
    pub chats: Option<bool>,
    pub takes_tools: Option<bool>,
    pub reads_images: Option<bool>,
    /// When it was published, in seconds since 1970.
    pub created: Option<u64>,
}

impl ModelListing {
    /// Finds a model by a name that a request may use.
    pub fn find_model(&self, name: &str) -> Option<&ListedModel> {
        match self.models.as_slice() {
            // With one model, every name means that one.
            [only] if self.server == Some(ModelServerKind::LlamaCpp) => Some(only),
            models => {
                let exact_match = models.iter().find(|model| model.id == name);
                exact_match.or_else(|| models.iter().find(|model| self.matches_name(&model.id, name)))
            }
        }
    }

    fn matches_name(&self, id: &str, name: &str) -> bool {
        match self.server {
            Some(ModelServerKind::Ollama) => id.strip_suffix(":latest") == Some(name),
            // The suffix after the colon selects one of its providers.
            Some(ModelServerKind::OpenRouter) => name.rsplit_once(':').is_some_and(|(model, _)| id == model),
            Some(ModelServerKind::LlamaCpp | ModelServerKind::LmStudio | ModelServerKind::Vllm) => false,
            None => id.strip_prefix("models/") == Some(name),
        }
    }
}

impl ListedModel {
    /// Adds properties that are known from elsewhere, and missing here.
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

/// Parses a page of `/models`; `None` if it is invalid.
pub(super) fn parse_listing(page: &Value) -> Option<ModelListing> {
    // Ollama without a model sends a null list.
    let is_empty = page.get("object") == Some(&Value::from("list")) && page.get("data") == Some(&Value::Null);
    let list = match model_array(page) {
        Some(list) => list,
        None if is_empty => &[],
        None => return None,
    };
    let models = list.iter().filter_map(parse_model).take(MODELS_MAX).collect();
    Some(ModelListing { server: list.iter().find_map(detect_server), models })
}

/// The model after which the next page begins, if there is one.
pub(super) fn next_page_cursor(page: &Value) -> Option<&str> {
    page.get("has_more").and_then(Value::as_bool).filter(|has_more| *has_more)?;
    string_field(page, "last_id")
}

/// Some wrap the list in `data`, some in `models`, some not at all; llama.cpp sends both, of which `data` has more
/// details.
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
    let window_paths = [
        "/meta/n_ctx",
        "/max_model_len",
        "/context_length",
        "/context_window",
        "/max_context_length",
        "/max_input_tokens",
    ];
    let modalities = model.pointer("/architecture/output_modalities");
    let reported_chat = model.pointer("/capabilities/completion_chat").and_then(Value::as_bool);
    Some(ListedModel {
        id: displayable_name(id)?,
        title: display_title(model, &["display_name", "name"], id),
        window: window_paths.iter().find_map(|path| parse_token_count(model.pointer(path)?)),
        window_max: model.pointer("/meta/n_ctx_train").and_then(parse_token_count),
        price: model.get("pricing").and_then(parse_price),
        chats: reported_chat.or_else(|| array_contains(modalities?, "text")),
        takes_tools: model.get("supported_parameters").and_then(|names| array_contains(names, "tools")),
        reads_images: reads_images(model),
        created: model.get("created").and_then(Value::as_u64),
    })
}

/// Whether a model reads images: from its input types, or from its capabilities.
fn reads_images(model: &Value) -> Option<bool> {
    let type_paths = ["/architecture/input_modalities", "/input_modalities", "/modalities/input"];
    let reads_image_type = type_paths.iter().find_map(|path| array_contains(model.pointer(path)?, "image"));
    reads_image_type.or_else(|| model.pointer("/capabilities/vision")?.as_bool())
}

/// Parses LM Studio's native lists, the older and the newer one.
pub(super) fn parse_lm_studio(page: &Value) -> Option<Vec<ListedModel>> {
    let parse = |model: &Value| {
        let id = string_field(model, "id").or_else(|| string_field(model, "key"))?;
        let loaded_paths = ["/loaded_context_length", "/loaded_instances/0/config/context_length"];
        Some(ListedModel {
            id: displayable_name(id)?,
            title: display_title(model, &["display_name"], id),
            window: loaded_paths.iter().find_map(|path| parse_token_count(model.pointer(path)?)),
            window_max: model.get("max_context_length").and_then(parse_token_count),
            chats: string_field(model, "type").map(|kind| !kind.starts_with("embedding")),
            // The older list has a type of its own for these, the newer one capabilities.
            reads_images: reads_images(model).or_else(|| match string_field(model, "type")? {
                "vlm" => Some(true),
                "llm" => Some(false),
                _ => None,
            }),
            ..ListedModel::default()
        })
    };
    Some(model_array(page)?.iter().filter_map(parse).take(MODELS_MAX).collect())
}

/// Parses the context window of one llama.cpp slot.
pub(super) fn parse_slot_window(props: &Value) -> Option<u64> {
    parse_token_count(props.pointer("/default_generation_settings/n_ctx")?)
}

/// Recognizes Ollama by the format of its version.
pub(super) fn is_ollama(version: &Value) -> bool {
    string_field(version, "version").is_some()
}

/// Parses the loaded models of Ollama with their windows.
pub(super) fn parse_loaded_models(page: &Value) -> Vec<ListedModel> {
    let parse = |model: &Value| {
        let id = ["model", "name"].iter().find_map(|field| string_field(model, field))?;
        let window = model.get("context_length").and_then(parse_token_count);
        Some(ListedModel { id: displayable_name(id)?, window, ..ListedModel::default() })
    };
    model_array(page).unwrap_or_default().iter().filter_map(parse).take(MODELS_MAX).collect()
}

/// Parses Ollama's default window.
pub(super) fn parse_default_window(status: &Value) -> Option<u64> {
    parse_token_count(status.get("context_length")?)
}

/// Parses Ollama's details of a model. The model's own limit is not what it gets: that is in its file, or else
/// `usual`.
pub(super) fn parse_model_details(id: &str, page: &Value, default_window: Option<u64>) -> ListedModel {
    let window_max = trained_window(page);
    let is_remote = string_field(page, "remote_host").is_some_and(|host| !host.is_empty());
    let configured = string_field(page, "parameters").and_then(parse_num_ctx).or(default_window);
    let configured = configured.map(|set| window_max.map_or(set, |max| set.min(max)));
    let capabilities = page.get("capabilities");
    ListedModel {
        id: id.to_owned(),
        window: if is_remote { window_max } else { configured },
        window_max,
        chats: capabilities.and_then(|capabilities| array_contains(capabilities, "completion")),
        takes_tools: capabilities.and_then(|capabilities| array_contains(capabilities, "tools")),
        reads_images: capabilities.and_then(|capabilities| array_contains(capabilities, "vision")),
        ..ListedModel::default()
    }
}

fn trained_window(page: &Value) -> Option<u64> {
    let info = page.get("model_info")?.as_object()?;
    let architecture = info.get("general.architecture").and_then(Value::as_str).unwrap_or_default();
    let named_length = info.get(&format!("{architecture}.context_length"));
    let any_length = || info.iter().find(|(key, _)| key.ends_with(".context_length")).map(|(_, value)| value);
    parse_token_count(named_length.or_else(any_length)?)
}

/// The parameters of a model's file are lines of a name and a value.
fn parse_num_ctx(parameters: &str) -> Option<u64> {
    let values = parameters.lines().filter_map(|line| line.trim().strip_prefix("num_ctx"));
    let mut counts = values.filter_map(|value| value.trim().parse().ok());
    counts.find(|count| is_sane(*count))
}

/// Parses US dollars per token, as strings; a gateway that routes to models of different prices sends -1.
fn parse_price(pricing: &Value) -> Option<ModelPrice> {
    Some(ModelPrice {
        input: dollars_per_million(pricing.get("prompt")?)?,
        output: dollars_per_million(pricing.get("completion")?)?,
        cached: pricing.get("input_cache_read").and_then(dollars_per_million),
        cache_written: pricing.get("input_cache_write").and_then(dollars_per_million),
    })
}

fn dollars_per_million(value: &Value) -> Option<f64> {
    let per_token: f64 = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    // Millionths of a dollar per million tokens: smaller digits come from parsing decimal numbers.
    let per_million = (per_token * 1e12).round() / 1e6;
    (0.0..=DOLLARS_MAX).contains(&per_million).then_some(per_million)
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

/// Accepts a name that can be displayed. Control characters could disguise it.
fn displayable_name(text: &str) -> Option<String> {
    let is_displayable = |letter: char| !letter.is_control() && !is_invisible(letter);
    let is_name = !text.trim().is_empty() && text.len() <= NAME_LEN_MAX && text.chars().all(is_displayable);
    is_name.then(|| text.to_owned())
}

/// Whether a character is invisible, and reorders or separates visible ones.
fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    )
}
