//! The condition of a hook: one question about the extension's settings or the environment. What is not understood does not
//! hold.

use serde_json::Value;

use crate::{Project, confined, extension, registry};

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition<'a> {
    of: Of,
    name: &'a str,
    test: Test<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Settings,
    Environment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test<'a> {
    IsSet,
    Is(&'a str),
    IsNot(&'a str),
}

impl<'a> Condition<'a> {
    /// Reads `config.a.b is set`, `env.NAME == 'x'` and their like.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let (word, rest) = text.split_once('.')?;
        let of = match word.to_ascii_lowercase().as_str() {
            "config" => Of::Settings,
            "env" => Of::Environment,
            _ => return None,
        };
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || (c == '.' && of == Of::Settings);
        let (name, rest) = rest.split_at(rest.find(|c| !is_of_name(c))?);
        if name.is_empty() {
            return None;
        }
        let test = Test::parse(rest)?;
        Some(Self { of, name, test })
    }

    /// Tells whether it asks for settings.
    pub(super) fn asks_settings(&self) -> bool {
        self.of == Of::Settings
    }

    /// Tells whether it holds, for a hook of this extension.
    pub(super) fn holds(
        &self,
        project: &Project,
        extension: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> bool {
        match self.of {
            // A repository learns nothing about what it must not see, not even by whether a hook runs.
            Of::Environment if is_secret(self.name) => false,
            Of::Environment => {
                let value = env(&self.name.to_ascii_uppercase());
                match self.test {
                    Test::IsSet => value.is_some(),
                    Test::Is(wanted) => value.unwrap_or_default() == wanted,
                    Test::IsNot(wanted) => value.unwrap_or_default() != wanted,
                }
            }
            Of::Settings if !confined::is_name(extension) => false,
            Of::Settings => {
                let value = setting(project, extension, self.name, env);
                match self.test {
                    Test::IsSet => value.is_some(),
                    Test::Is(wanted) => spelled(value.as_ref()).is_some_and(|value| value == wanted),
                    Test::IsNot(wanted) => spelled(value.as_ref()).is_none_or(|value| value != wanted),
                }
            }
        }
    }
}

impl<'a> Test<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        if let [is, set] = words.as_slice()
            && text.starts_with(char::is_whitespace)
            && is.eq_ignore_ascii_case("is")
            && set.eq_ignore_ascii_case("set")
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

/// Tells whether a variable is called as those are that hold secrets.
fn is_secret(name: &str) -> bool {
    const MARKS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "AUTH"];
    let name = name.to_ascii_uppercase();
    MARKS.iter().any(|mark| name.contains(mark))
}

/// A setting of an extension: the environment's word, then the files'.
fn setting(
    project: &Project,
    extension: &str,
    name: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Option<Value> {
    let keys: Vec<&str> = name.split('.').collect();
    // In the environment `_` parts keys, so a key that has one cannot be said there; nor can one with capitals.
    let is_sayable = |key: &&str| !key.is_empty() && !key.contains(|c: char| c == '_' || c.is_uppercase());
    let n_sayable = keys.iter().take_while(|key| is_sayable(key)).count();
    for n in (1..=n_sayable).rev() {
        let Some(value) = variable(project, extension, &keys[..n]).and_then(|name| env(&name)) else {
            continue;
        };
        // A word that stands above the key takes the place of everything below it.
        return (n == keys.len()).then_some(Value::String(value));
    }
    let settings = extension::settings(project, extension);
    let (first, rest) = keys.split_first()?;
    rest.iter().try_fold(settings.get(*first)?, |value, key| value.as_object()?.get(*key)).cloned()
}

/// The variable of a setting; `None` where it belongs to another extension whose id begins like this one's.
fn variable(project: &Project, extension: &str, keys: &[&str]) -> Option<String> {
    let upper = |id: &str| id.replace('-', "_").to_ascii_uppercase();
    let id = upper(extension);
    let rest = keys.join("_").to_ascii_uppercase();
    let siblings = registry::extension_entries(project).unwrap_or_default();
    let is_theirs = siblings.keys().map(|other| upper(other)).any(|other| {
        let more = other.strip_prefix(&id).and_then(|more| more.strip_prefix('_'));
        more.is_some_and(|more| rest.starts_with(&format!("{more}_")))
    });
    (!is_theirs).then(|| format!("SPECKIT_{id}_{rest}"))
}

/// A value as conditions compare it; lists and maps are like nothing.
fn spelled(value: Option<&Value>) -> Option<String> {
    match value {
        None | Some(Value::Null) => Some("None".to_owned()),
        Some(Value::Bool(is_so)) => Some(is_so.to_string()),
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(_) | Value::Object(_)) => None,
    }
}
