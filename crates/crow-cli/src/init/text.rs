//! The two files as text. Pure. Keys go into one of them only.

use std::fmt::Write;

use super::found::Found;

/// Writes the configuration; keys are named, not written.
pub(super) fn config(providers: &[Found]) -> String {
    let mut text = String::from(
        "# Where models are asked. Keys are read from the environment and from .env beside this file.\nproviders:\n",
    );
    for provider in providers {
        let _ = writeln!(text, "  {}:\n    base_url: {}", quoted(&provider.name), quoted(&provider.base_url));
        if let Some((variable, _)) = &provider.key {
            let _ = writeln!(text, "    api_key: ${{{variable}}}");
        }
    }
    text.push_str("\n# The first model is the default.\nmodels:\n");
    let mut taken: Vec<&str> = Vec::new();
    for (provider, model) in
        providers.iter().flat_map(|provider| provider.models.iter().map(move |model| (provider, model)))
    {
        // Two providers may have the same model.
        let name = if taken.contains(&model.as_str()) {
            format!("{}/{model}", provider.name)
        } else {
            model.clone()
        };
        taken.push(model);
        let _ = writeln!(
            text,
            "  {}:\n    provider: {}\n    model: {}",
            quoted(&name),
            quoted(&provider.name),
            quoted(model)
        );
    }
    text
}

/// Adds the variables that are not there yet to the text of the file with the keys.
pub(super) fn env_file<'a>(
    before: &str,
    variables: impl Iterator<Item = (&'a str, &'a str)>,
    kept: &[String],
) -> String {
    let mut text = before.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for (variable, value) in variables {
        if !kept.iter().any(|kept| kept == variable) {
            let _ = writeln!(text, "{variable}={}", shell_quoted(value));
        }
    }
    text
}

/// Quotes every scalar that YAML might take for something other than text.
fn quoted(text: &str) -> String {
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./".contains(letter))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&text.to_lowercase().as_str());
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

fn shell_quoted(text: &str) -> String {
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
