//! Renders the two configuration files. Pure. Keys go into `.env` only.

use std::fmt::Write;

use super::{environment_scan::ProviderChoice, model_choice::ModelChoice};

/// Renders the configuration; keys are referenced by variable.
pub(super) fn render_config(providers: &[ProviderChoice]) -> String {
    let mut text = String::from(
        "# Model providers. Keys are read from the environment and from .env next to this file.\nproviders:\n",
    );
    for provider in providers {
        let _ = writeln!(
            text,
            "  {}:\n    base_url: {}",
            quote_yaml(&provider.name),
            quote_yaml(&provider.base_url)
        );
        if let Some((variable, _)) = &provider.key {
            let _ = writeln!(text, "    api_key: ${{{variable}}}");
        }
    }
    text.push_str("\n# The first model is the default.\nmodels:\n");
    let mut used_names: Vec<&str> = Vec::new();
    for (provider, model) in
        providers.iter().flat_map(|provider| provider.models.iter().map(move |model| (provider, model)))
    {
        // Two providers may have the same model.
        let short_name = short_model_name(&model.name);
        let name = if used_names.contains(&short_name) {
            format!("{}/{short_name}", provider.name)
        } else {
            short_name.to_owned()
        };
        used_names.push(short_name);
        let (name, provider) = (quote_yaml(&name), quote_yaml(&provider.name));
        let _ = writeln!(text, "  {name}:\n    provider: {provider}\n    model: {}", quote_yaml(&model.name));
        push_model_facts(&mut text, model);
    }
    text
}

/// Shortens a name that is the path of a model file.
fn short_model_name(model: &str) -> &str {
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
