//! Finds providers in the environment. Pure.

use crow_model::{ApiKey, ModelApi, ProviderSettings};

use super::model_choice::ModelChoice;
use crate::settings::Environment;

/// A provider to configure.
#[derive(Clone)]
pub(super) struct ProviderChoice {
    pub(super) name: String,
    pub(super) base_url: String,
    /// The variable of the key and the key; a local server needs none.
    pub(super) key: Option<(String, String)>,
    pub(super) models: Vec<ModelChoice>,
}

/// The providers found in the environment, and notes about variables that were skipped.
pub(super) struct EnvironmentScan {
    pub(super) providers: Vec<ProviderChoice>,
    pub(super) notes: Vec<String>,
}

/// Providers with a known address, by the prefix of the variable their own tools read.
pub(super) const WELL_KNOWN: [(&str, &str); 6] = [
    ("openrouter", "https://openrouter.ai/api/v1"),
    ("openai", "https://api.openai.com/v1"),
    ("deepseek", "https://api.deepseek.com/v1"),
    ("groq", "https://api.groq.com/openai/v1"),
    ("mistral", "https://api.mistral.ai/v1"),
    ("xai", "https://api.x.ai/v1"),
];

/// Name parts of models that do something other than chat.
const NOT_FOR_CHAT: [&str; 13] = [
    "embed",
    "whisper",
    "tts",
    "audio",
    "realtime",
    "transcribe",
    "image",
    "dall-e",
    "moderation",
    "rerank",
    "guard",
    "sora",
    "ocr",
];

impl ProviderChoice {
    /// Returns the settings this provider will be configured with.
    pub(super) fn to_settings(&self) -> ProviderSettings {
        ProviderSettings {
            name: self.name.clone(),
            base_url: self.base_url.trim_end_matches('/').to_owned(),
            api: ModelApi::default(),
            api_key: self.key.as_ref().map(|(_, key)| ApiKey::new(key)),
            key_variable: self.key.as_ref().map(|(variable, _)| variable.clone()),
            headers: Vec::new(),
        }
    }

    /// Returns the name of the variable that selects a model.
    pub(super) fn model_variable(&self) -> String {
        format!("LLM_{}_MODEL", variable_part(&self.name))
    }
}

/// Finds every provider in the environment: `LLM_*` variables first, then the well-known ones.
pub(super) fn scan_environment(env: &Environment) -> EnvironmentScan {
    let get = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let mut scan = EnvironmentScan { providers: Vec::new(), notes: Vec::new() };
    let names = env.keys().filter_map(|name| name.strip_prefix("LLM_"));
    let with_key = names.clone().filter_map(|name| name.strip_suffix("_API_KEY"));
    for name_part in with_key.filter(|part| !part.is_empty()) {
        let (key_variable, url_variable) =
            (format!("LLM_{name_part}_API_KEY"), format!("LLM_{name_part}_BASE_URL"));
        let name = name_part.to_lowercase();
        let known = WELL_KNOWN.iter().find(|(known, _)| *known == name).map(|(_, url)| *url);
        match (get(&key_variable), get(&url_variable).or(known)) {
            (Some(key), Some(url)) => scan.providers.push(ProviderChoice {
                models: get(&format!("LLM_{name_part}_MODEL"))
                    .map(ModelChoice::from_name)
                    .into_iter()
                    .collect(),
                key: Some((key_variable, key.to_owned())),
                base_url: url.to_owned(),
                name,
            }),
            (Some(_), None) => {
                scan.notes.push(format!("{key_variable} is ignored: {url_variable} is not set"));
            }
            (None, _) => scan.notes.push(format!("{key_variable} is ignored: it is empty")),
        }
    }
    // A local server has an address and needs no key.
    for name_part in names.filter_map(|name| name.strip_suffix("_BASE_URL")).filter(|part| !part.is_empty()) {
        let url = get(&format!("LLM_{name_part}_BASE_URL"));
        if let (Some(url), false) = (url, env.contains_key(&format!("LLM_{name_part}_API_KEY"))) {
            let models =
                get(&format!("LLM_{name_part}_MODEL")).map(ModelChoice::from_name).into_iter().collect();
            scan.providers.push(ProviderChoice {
                name: name_part.to_lowercase(),
                base_url: url.to_owned(),
                key: None,
                models,
            });
        }
    }
    for (name, url) in WELL_KNOWN {
        let name_part = variable_part(name);
        let variable = format!("{name_part}_API_KEY");
        let is_new = scan.providers.iter().all(|provider| provider.name != name);
        if let (Some(key), true) = (get(&variable), is_new) {
            scan.providers.push(ProviderChoice {
                name: name.to_owned(),
                base_url: get(&format!("{name_part}_BASE_URL")).unwrap_or(url).to_owned(),
                key: Some((variable, key.to_owned())),
                models: get(&format!("LLM_{name_part}_MODEL"))
                    .map(ModelChoice::from_name)
                    .into_iter()
                    .collect(),
            });
        }
    }
    scan
}

/// Converts a provider's name to its part of a variable name.
pub(super) fn variable_part(name: &str) -> String {
    name.chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' })
        .collect()
}

/// Guesses from the name whether a model can chat.
pub(super) fn is_chat_model(model: &str) -> bool {
    let model = model.to_lowercase();
    NOT_FOR_CHAT.iter().all(|part| !model.contains(part))
}
