//! The condition of a hook: one test of an extension's setting or an environment variable. An unsupported condition is
//! false.

use serde_json::Value;

use crate::{SpeckitProject, confined_files, extension, registry};

/// One test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HookCondition<'a> {
    source: ConditionSource,
    name: &'a str,
    test: ConditionTest<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConditionSource {
    Settings,
    Environment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConditionTest<'a> {
    IsSet,
    Is(&'a str),
    IsNot(&'a str),
}

impl<'a> HookCondition<'a> {
    /// Parses `config.a.b is set`, `env.NAME == 'x'` and similar conditions.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let (source_name, rest) = text.split_once('.')?;
        let source = match source_name.to_ascii_lowercase().as_str() {
            "config" => ConditionSource::Settings,
            "env" => ConditionSource::Environment,
            _ => return None,
        };
        let is_name_char = |c: char| {
            c.is_ascii_alphanumeric() || c == '_' || (c == '.' && source == ConditionSource::Settings)
        };
        let (name, rest) = rest.split_at(rest.find(|c| !is_name_char(c))?);
        if name.is_empty() {
            return None;
        }
        let test = ConditionTest::parse(rest)?;
        Some(Self { source, name, test })
    }

    /// Whether it tests a setting.
    pub(super) fn reads_settings(&self) -> bool {
        self.source == ConditionSource::Settings
    }

    /// Whether it holds for a hook of this extension.
    pub(super) fn is_met(
        &self,
        project: &SpeckitProject,
        extension: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> bool {
        match self.source {
            // A repository must not learn anything about secrets, not even by whether a hook runs.
            ConditionSource::Environment if is_secret_name(self.name) => false,
            ConditionSource::Environment => {
                let value = env(&self.name.to_ascii_uppercase());
                match self.test {
                    ConditionTest::IsSet => value.is_some(),
                    ConditionTest::Is(expected) => value.unwrap_or_default() == expected,
                    ConditionTest::IsNot(expected) => value.unwrap_or_default() != expected,
                }
            }
            ConditionSource::Settings if !confined_files::is_name(extension) => false,
            ConditionSource::Settings => {
                let value = resolve_setting(project, extension, self.name, env);
                match self.test {
                    ConditionTest::IsSet => value.is_some(),
                    ConditionTest::Is(expected) => {
                        value_text(value.as_ref()).is_some_and(|value| value == expected)
                    }
                    ConditionTest::IsNot(expected) => {
                        value_text(value.as_ref()).is_none_or(|value| value != expected)
                    }
                }
            }
        }
    }
}

impl<'a> ConditionTest<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        if let [keyword_is, keyword_set] = words.as_slice()
            && text.starts_with(char::is_whitespace)
            && keyword_is.eq_ignore_ascii_case("is")
            && keyword_set.eq_ignore_ascii_case("set")
        {
            return Some(Self::IsSet);
        }
        let text = text.trim_start();
        let quoted = text.get(2..)?.trim_start();
        let is_quote = |c: char| c == '"' || c == '\'';
        let value = quoted.strip_prefix(is_quote)?.strip_suffix(is_quote)?;
        if value.is_empty() || value.contains(is_quote) {
            return None;
        }
        match &text[..2] {
            "==" => Some(Self::Is(value)),
            "!=" => Some(Self::IsNot(value)),
            _ => None,
        }
    }
}

/// Whether the name of a variable suggests a secret.
fn is_secret_name(name: &str) -> bool {
    const SECRET_MARKERS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "AUTH"];
    let name = name.to_ascii_uppercase();
    SECRET_MARKERS.iter().any(|marker| name.contains(marker))
}

/// Returns a setting of an extension: from the environment, then from the files.
fn resolve_setting(
    project: &SpeckitProject,
    extension: &str,
    name: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Option<Value> {
    let keys: Vec<&str> = name.split('.').collect();
    // In variables `_` separates keys, so keys with `_` or capitals cannot be set there.
    let is_settable = |key: &&str| !key.is_empty() && !key.contains(|c: char| c == '_' || c.is_uppercase());
    let n_settable = keys.iter().take_while(|key| is_settable(key)).count();
    for n in (1..=n_settable).rev() {
        let Some(value) = read_setting_variable(project, extension, &keys[..n]).and_then(|name| env(&name))
        else {
            continue;
        };
        // A value set for a parent key replaces everything below it.
        return (n == keys.len()).then_some(Value::String(value));
    }
    let settings = extension::extension_settings(project, extension);
    let (first, rest) = keys.split_first()?;
    rest.iter().try_fold(settings.get(*first)?, |value, key| value.as_object()?.get(*key)).cloned()
}

/// Returns the variable of a setting; `None` if it belongs to another extension whose id has this one's as a prefix.
fn read_setting_variable(project: &SpeckitProject, extension: &str, keys: &[&str]) -> Option<String> {
    let variable_part = |id: &str| id.replace('-', "_").to_ascii_uppercase();
    let id = variable_part(extension);
    let key_part = keys.join("_").to_ascii_uppercase();
    let siblings = registry::extension_entries(project).unwrap_or_default();
    let belongs_to_sibling = siblings.keys().map(|other| variable_part(other)).any(|other| {
        let sibling_suffix = other.strip_prefix(&id).and_then(|more| more.strip_prefix('_'));
        sibling_suffix.is_some_and(|sibling_suffix| key_part.starts_with(&format!("{sibling_suffix}_")))
    });
    (!belongs_to_sibling).then(|| format!("SPECKIT_{id}_{key_part}"))
}

/// Returns a value as text for comparison; lists and maps equal nothing.
fn value_text(value: Option<&Value>) -> Option<String> {
    match value {
        None | Some(Value::Null) => Some("None".to_owned()),
        Some(Value::Bool(value)) => Some(value.to_string()),
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(_) | Value::Object(_)) => None,
    }
}
