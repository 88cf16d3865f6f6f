//! Renders the two configuration files. Pure. Keys go into `.env` only.

use std::fmt::Write;

use crow_model::ModelApi;

use super::{
    config_files::{ConfigDraft, DATABASE_URI_VARIABLE},
    environment_scan::ProviderChoice,
    model_choice::ModelChoice,
};

/// Renders the configuration; keys are referenced by variable.
pub(super) fn render_config(draft: &ConfigDraft<'_>) -> String {
    let mut text = String::from(
        "# yaml-language-server: $schema=./config.schema.json\n# $schema: ./config.schema.json\n\n# Model providers. Keys are read from the environment and from .env next to this file.\nproviders:\n",
    );
    for provider in draft.providers {
        text.push_str(&render_provider(provider));
    }
    text.push_str("\n# The first model is the default.\nmodels:\n");
    let mut used_names: Vec<String> = Vec::new();
    for provider in draft.providers {
        for model in &provider.models {
            let name = unused_model_name(provider, model, &used_names);
            text.push_str(&render_model(&name, provider, model));
            used_names.push(name);
        }
    }
    if draft.database_uri.is_some() {
        let _ = write!(text, "\ndb_uri: ${{{DATABASE_URI_VARIABLE}}}\n");
    }
    text
}

/// Renders an entry of `providers`.
pub(super) fn render_provider(provider: &ProviderChoice) -> String {
    let (name, url) = (quote_yaml(&provider.name), quote_yaml(&provider.base_url));
    let mut text = format!("  {name}:\n    base_url: {url}\n");
    if provider.api != ModelApi::default() {
        let _ = writeln!(text, "    api: {}", provider.api.as_str());
    }
    if let Some((variable, _)) = &provider.key {
        let _ = writeln!(text, "    api_key: ${{{variable}}}");
    }
    text
}

/// Renders an entry of `models`.
pub(super) fn render_model(name: &str, provider: &ProviderChoice, model: &ModelChoice) -> String {
    let (name, provider) = (quote_yaml(name), quote_yaml(&provider.name));
    let mut text = format!("  {name}:\n    provider: {provider}\n    model: {}\n", quote_yaml(&model.name));
    push_model_facts(&mut text, model);
    text
}

/// Returns the name of a model in the configuration. Two providers may have the same model.
pub(super) fn unused_model_name(
    provider: &ProviderChoice,
    model: &ModelChoice,
    used_names: &[impl AsRef<str>],
) -> String {
    let short_name = short_model_name(&model.name);
    let is_used = used_names.iter().any(|used| used.as_ref() == short_name);
    if is_used { format!("{}/{short_name}", provider.name) } else { short_name.to_owned() }
}

/// Shortens a name that is the path of a model file.
fn short_model_name(model: &str) -> &str {
    // Gemini lists its models with this prefix.
    let model = model.strip_prefix("models/").unwrap_or(model);
    let Some(path) = model.strip_suffix(".gguf") else { return model };
    path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).unwrap_or(model)
}

fn push_model_facts(text: &mut String, model: &ModelChoice) {
    if let Some(window) = model.window {
        let _ = writeln!(text, "    context_window: {window}");
    }
    if model.is_text_only {
        let _ = writeln!(text, "    modality: [text]");
    }
    if model.needs_text_calls {
        let _ = writeln!(text, "    tool_calls: text");
    }
    if let Some(price) = &model.price {
        let parts = [("cached", price.cached), ("cache_written", price.cache_written)];
        let parts = parts.iter().filter_map(|(name, dollars)| Some(format!(", {name}: {}", (*dollars)?)));
        let (input, output, other_prices) = (price.input, price.output, parts.collect::<String>());
        let _ = writeln!(text, "    price: {{ input: {input}, output: {output}{other_prices} }}");
    }
}

/// Appends the variables that `.env` does not have yet.
pub(super) fn append_env_variables<'a>(
    text_before: &str,
    variables: impl Iterator<Item = (&'a str, &'a str)>,
    existing: &[String],
) -> String {
    let mut text = text_before.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for (variable, value) in variables {
        if !existing.iter().any(|existing| existing == variable) {
            let _ = writeln!(text, "{variable}={}", quote_shell(value));
        }
    }
    text
}

/// Quotes every scalar that YAML might not read as text.
fn quote_yaml(text: &str) -> String {
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./".contains(letter))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&text.to_lowercase().as_str());
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

fn quote_shell(text: &str) -> String {
    if text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.:/+=".contains(letter)) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        if matches!(letter, '"' | '\\' | '$') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted.push('"');
    quoted
}
