//! Brings the names in a call's arguments to those of the tool: other spellings and plain aliases are taken, everything
//! else is refused with the name that may have been meant. Must never leave out what could have had an effect.

use serde_json::{Map, Value};

use super::aliases::{ALIASES, ParameterAliases, ignored_parameters, is_comment};
use crate::spelling::nearest_name;

/// More unknown names than this are not listed one by one.
const UNKNOWN_SHOWN_MAX: usize = 8;

/// Gives a call's arguments under the names of the tool's schema, or says which names it does not know.
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

/// What a name in the arguments stands for.
enum NameMeaning<'a> {
    Parameter(&'a str),
    /// It may be left out.
    Nothing,
    Unknown,
}

struct NameResolver<'a> {
    tool: &'a str,
    problems: &'a mut Vec<String>,
}

impl NameResolver<'_> {
    fn resolve_object(
        &mut self,
        schema: &Value,
        map: &Map<String, Value>,
        place: &str,
    ) -> Map<String, Value> {
        let Some(properties) = schema["properties"].as_object() else { return map.clone() };
        let mut resolved: Map<String, Value> = Map::new();
        let mut spelled: Map<String, Value> = Map::new();
        for (name, value) in map {
            let parameter = match self.find_meaning(properties, name, value) {
                NameMeaning::Parameter(parameter) => parameter,
                NameMeaning::Nothing => continue,
                NameMeaning::Unknown => {
                    self.problems.push(self.describe_unknown(properties, name, place));
                    continue;
                }
            };
            let value = self.resolve_value(&properties[parameter], value, &join_place(place, parameter));
            match resolved.get(parameter) {
                // Nothing is how some spell that a parameter is left out.
                Some(before) if !before.is_null() && !value.is_null() && *before != value => {
                    let other = spelled.get(parameter).and_then(Value::as_str).unwrap_or(parameter);
                    self.problems.push(format!(
                        "`{}` and `{}` mean the same, `{parameter}`, and say different things; give one of them",
                        join_place(place, other),
                        join_place(place, name)
                    ));
                }
                Some(before) if !before.is_null() => {}
                Some(_) | None => {
                    resolved.insert(parameter.to_owned(), value);
                    spelled.insert(parameter.to_owned(), name.as_str().into());
                }
            }
        }
        resolved
    }

    /// Goes on with the objects in a value.
    fn resolve_value(&mut self, schema: &Value, value: &Value, place: &str) -> Value {
        let inner = if schema["items"]["properties"].is_object() { &schema["items"] } else { schema };
        if !inner["properties"].is_object() {
            return value.clone();
        }
        match value {
            Value::Object(map) => Value::Object(self.resolve_object(inner, map, place)),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items.map(|(at, item)| self.resolve_value(inner, item, &format!("{place}[{at}]"))).collect()
            }
            // Some models encode what is not flat once more.
            Value::String(text) => match serde_json::from_str(text) {
                Ok(decoded @ (Value::Object(_) | Value::Array(_))) => {
                    self.resolve_value(schema, &decoded, place)
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
        let squeezed = squeeze_name(name);
        let is_meant = |other: &&str| squeeze_name(other) == squeezed;
        if let Some(parameter) = properties.keys().map(String::as_str).find(is_meant) {
            return NameMeaning::Parameter(parameter);
        }
        let mut rows = tool_aliases(self.tool, properties);
        if let Some((_, parameter)) = rows.find(|(row, _)| row.names.iter().any(&is_meant)) {
            return NameMeaning::Parameter(parameter);
        }
        let is_scalar = !value.is_object() && !value.is_array();
        let is_idle =
            ignored_parameters(self.tool).iter().any(is_meant) && is_scalar && *value != Value::Bool(false);
        let is_remark = is_comment(&squeezed) && value.is_string();
        if value.is_null() || is_idle || is_remark { NameMeaning::Nothing } else { NameMeaning::Unknown }
    }

    fn describe_unknown(&self, properties: &Map<String, Value>, name: &str, place: &str) -> String {
        let shown: String = name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
        let own = properties.keys().map(|parameter| (parameter.as_str(), parameter.as_str()));
        let others = tool_aliases(self.tool, properties)
            .flat_map(|(row, parameter)| row.names.iter().map(move |alias| (*alias, parameter)));
        let known: Vec<(&str, &str)> = own.chain(others).collect();
        let near = nearest_name(&to_snake_case(&shown), known.iter().map(|(spelling, _)| *spelling));
        let meant = near.and_then(|near| known.iter().find(|(spelling, _)| *spelling == near));
        let hint = meant.map_or_else(String::new, |(_, parameter)| format!(", did you mean `{parameter}`?"));
        let names: Vec<String> = properties.keys().map(|parameter| format!("`{parameter}`")).collect();
        let takes = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("there is no parameter `{}`{hint} (it takes {takes})", join_place(place, &shown))
    }
}

/// As much of an unknown name as is needed to know it again.
const NAME_CHARS_MAX: usize = 60;

/// The aliases that hold for a tool with these parameters, each with its parameter.
fn tool_aliases<'a>(
    tool: &str,
    properties: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'static ParameterAliases, &'a str)> {
    let rows = ALIASES.iter().filter(move |row| row.tools.is_empty() || row.tools.contains(&tool));
    rows.filter_map(|row| Some((row, properties.get_key_value(row.parameter)?.0.as_str())))
}

fn join_place(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

/// Takes away what differs between `file_path`, `filePath`, `File-Path` and `--file_path`.
fn squeeze_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// A name as it would be in snake case, to compare by letters.
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
