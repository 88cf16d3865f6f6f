//! Maps the names in a call's arguments to those of the tool: other spellings and aliases are accepted, other names
//! are rejected with a suggestion. Never drops an argument that could have an effect.

use serde_json::{Map, Value};

use super::aliases::{ALIASES, ParameterAliases, ignored_parameters, is_comment};
use crate::spelling::nearest_name;

/// Limit of unknown names listed in a message.
const UNKNOWN_SHOWN_MAX: usize = 8;

/// Returns the arguments by the names of the tool's schema, or a message about unknown names.
pub fn resolve_names(
    tool: &str,
    schema: &Value,
    arguments: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut problems = Vec::new();
    let resolved = NameResolver { tool, problems: &mut problems }.resolve_object(schema, arguments, "");
    if problems.is_empty() {
        return Ok(resolved);
    }
    let n_more = problems.len().saturating_sub(UNKNOWN_SHOWN_MAX);
    problems.truncate(UNKNOWN_SHOWN_MAX);
    let more = if n_more == 0 { String::new() } else { format!("; and {n_more} more") };
    Err(problems.join("; ") + &more)
}

/// The meaning of an argument name.
enum NameMeaning<'a> {
    Parameter(&'a str),
    /// It has no effect and is dropped.
    Ignored,
    Unknown,
}

struct NameResolver<'a> {
    tool: &'a str,
    problems: &'a mut Vec<String>,
}

impl NameResolver<'_> {
    fn resolve_object(&mut self, schema: &Value, map: &Map<String, Value>, path: &str) -> Map<String, Value> {
        let Some(properties) = schema["properties"].as_object() else { return map.clone() };
        let mut resolved: Map<String, Value> = Map::new();
        let mut names_used: Map<String, Value> = Map::new();
        for (name, value) in map {
            let parameter = match self.find_meaning(properties, name, value) {
                NameMeaning::Parameter(parameter) => parameter,
                NameMeaning::Ignored => continue,
                NameMeaning::Unknown => {
                    self.problems.push(self.describe_unknown(properties, name, path));
                    continue;
                }
            };
            let value = self.resolve_value(&properties[parameter], value, &join_place(path, parameter));
            match resolved.get(parameter) {
                // Some models write null for an omitted parameter.
                Some(before) if !before.is_null() && !value.is_null() && *before != value => {
                    let other = names_used.get(parameter).and_then(Value::as_str).unwrap_or(parameter);
                    self.problems.push(format!(
                        "`{}` and `{}` both mean `{parameter}` and have different values; give only one",
                        join_place(path, other),
                        join_place(path, name)
                    ));
                }
                Some(before) if !before.is_null() => {}
                Some(_) | None => {
                    resolved.insert(parameter.to_owned(), value);
                    names_used.insert(parameter.to_owned(), name.as_str().into());
                }
            }
        }
        resolved
    }

    /// Resolves the names of objects in a value.
    fn resolve_value(&mut self, schema: &Value, value: &Value, path: &str) -> Value {
        let inner = if schema["items"]["properties"].is_object() { &schema["items"] } else { schema };
        if !inner["properties"].is_object() {
            return value.clone();
        }
        match value {
            Value::Object(map) => Value::Object(self.resolve_object(inner, map, path)),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items.map(|(at, item)| self.resolve_value(inner, item, &format!("{path}[{at}]"))).collect()
            }
            // Some models encode nested values once more.
            Value::String(text) => match serde_json::from_str(text) {
                Ok(decoded @ (Value::Object(_) | Value::Array(_))) => {
                    self.resolve_value(schema, &decoded, path)
                }
                Ok(_) | Err(_) => value.clone(),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn find_meaning<'a>(
        &self,
        properties: &'a Map<String, Value>,
        name: &str,
        value: &Value,
    ) -> NameMeaning<'a> {
        if let Some((parameter, _)) = properties.get_key_value(name) {
            return NameMeaning::Parameter(parameter);
        }
        let normalized = squeeze_name(name);
        let is_same_name = |other: &&str| squeeze_name(other) == normalized;
        if let Some(parameter) = properties.keys().map(String::as_str).find(is_same_name) {
            return NameMeaning::Parameter(parameter);
        }
        let mut rows = tool_aliases(self.tool, properties);
        if let Some((_, parameter)) = rows.find(|(row, _)| row.names.iter().any(&is_same_name)) {
            return NameMeaning::Parameter(parameter);
        }
        let is_scalar = !value.is_object() && !value.is_array();
        let is_ignored = ignored_parameters(self.tool).iter().any(is_same_name)
            && is_scalar
            && *value != Value::Bool(false);
        let is_reason = is_comment(&normalized) && value.is_string();
        if value.is_null() || is_ignored || is_reason { NameMeaning::Ignored } else { NameMeaning::Unknown }
    }

    fn describe_unknown(&self, properties: &Map<String, Value>, name: &str, path: &str) -> String {
        let shown: String = name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
        let own_names = properties.keys().map(|parameter| (parameter.as_str(), parameter.as_str()));
        let alias_names = tool_aliases(self.tool, properties)
            .flat_map(|(row, parameter)| row.names.iter().map(move |alias| (*alias, parameter)));
        let known: Vec<(&str, &str)> = own_names.chain(alias_names).collect();
        let nearest = nearest_name(&to_snake_case(&shown), known.iter().map(|(spelling, _)| *spelling));
        let nearest_parameter =
            nearest.and_then(|nearest| known.iter().find(|(spelling, _)| *spelling == nearest));
        let hint = nearest_parameter
            .map_or_else(String::new, |(_, parameter)| format!(", did you mean `{parameter}`?"));
        let names: Vec<String> = properties.keys().map(|parameter| format!("`{parameter}`")).collect();
        let known_parameters = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("there is no parameter `{}`{hint} (it takes {known_parameters})", join_place(path, &shown))
    }
}

/// Characters of an unknown name in a message.
const NAME_CHARS_MAX: usize = 60;

/// Returns the aliases for a tool with these parameters, each with its parameter.
fn tool_aliases<'a>(
    tool: &str,
    properties: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'static ParameterAliases, &'a str)> {
    let rows = ALIASES.iter().filter(move |row| row.tools.is_empty() || row.tools.contains(&tool));
    rows.filter_map(|row| Some((row, properties.get_key_value(row.parameter)?.0.as_str())))
}

fn join_place(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Removes the differences between `file_path`, `filePath`, `File-Path` and `--file_path`.
fn squeeze_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Converts a name to snake case, for comparison by letters.
fn to_snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.trim_start_matches('-').chars() {
        if c.is_uppercase() && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.extend(if c == '-' || c == ' ' { '_' } else { c }.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests;
