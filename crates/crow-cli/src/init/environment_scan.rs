//! Finds providers in the environment. Pure.

use crow_model::{ApiKey, ModelApi, ProviderSettings};

use super::{
    known_providers::{KNOWN_PROVIDERS, KnownProvider},
    model_choice::ModelChoice,
};
use crate::settings::Environment;

/// A provider to configure.
#[derive(Clone)]
pub(super) struct ProviderChoice {
    pub(super) name: String,
    pub(super) base_url: String,
    pub(super) api: ModelApi,
    /// The variable of the key and the key; a local server needs none.
    pub(super) key: Option<(String, String)>,
    pub(super) models: Vec<ModelChoice>,
}

/// The providers found in the environment, and notes about variables that were skipped.
pub(super) struct EnvironmentScan {
    pub(super) providers: Vec<ProviderChoice>,
    pub(super) notes: Vec<String>,
}

impl ProviderChoice {
    /// A provider without models. One with a well-known name has the API of that provider; at another address only
    /// Anthropic's, since most servers have no other than `chat`.
    pub(super) fn new(name: String, base_url: &str, key: Option<(String, String)>) -> Self {
        let known = KnownProvider::find(&name);
        let api = known.map(|known| known.api).unwrap_or_default();
        let mut base_url = base_url.trim_end_matches('/').to_owned();
        // Anthropic's own programs expect the address without the version.
        if api == ModelApi::MESSAGES && !base_url.ends_with("/v1") {
            base_url.push_str("/v1");
        }
        let has_api = KnownProvider::at(&base_url).is_some() || api == ModelApi::MESSAGES;
        Self { name, base_url, api: if has_api { api } else { ModelApi::default() }, key, models: Vec::new() }
    }

    /// Adds the model that the environment names.
    fn with_model(mut self, model: Option<&str>) -> Self {
        let model = model.map(|model| ModelChoice::from_name(model).with_known_facts(&self.base_url));
        self.models.extend(model);
        self
    }

    /// Returns the settings this provider will be configured with.
    pub(super) fn to_settings(&self) -> ProviderSettings {
        ProviderSettings {
            name: self.name.clone(),
            base_url: self.base_url.trim_end_matches('/').to_owned(),
            api: self.api,
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
        let known = KnownProvider::find(&name);
        match (get(&key_variable), get(&url_variable).or(known.map(|known| known.base_url))) {
            (Some(key), Some(url)) => {
                let model = get(&format!("LLM_{name_part}_MODEL"));
                let key = Some((key_variable, key.to_owned()));
                scan.providers.push(ProviderChoice::new(name, url, key).with_model(model));
            }
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
            let provider = ProviderChoice::new(name_part.to_lowercase(), url, None);
            scan.providers.push(provider.with_model(get(&format!("LLM_{name_part}_MODEL"))));
        }
    }
    for known in &KNOWN_PROVIDERS {
        let name_part = variable_part(known.name);
        let is_new = scan.providers.iter().all(|provider| provider.name != known.name);
        let key = known.key_variables.iter().find_map(|variable| Some((*variable, get(variable)?)));
        if let (Some((variable, key)), true) = (key, is_new) {
            let url = get(&format!("{name_part}_BASE_URL")).unwrap_or(known.base_url);
            let key = Some((variable.to_owned(), key.to_owned()));
            let provider = ProviderChoice::new(known.name.to_owned(), url, key);
            scan.providers.push(provider.with_model(get(&format!("LLM_{name_part}_MODEL"))));
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
