//! Converts the source of a complete call to its name and arguments.

use serde_json::{Map, Value};

use super::json_object::{ARGUMENT_KEYS, FUNCTION_KEY, NAME_KEYS};
use crate::{ToolArguments, ToolSpec, repair};

/// The source of a call.
#[derive(Debug)]
pub(super) struct CallSource<'t> {
    /// All of it.
    pub(super) text: &'t str,
    /// Its parts, if it is no object with name and arguments.
    pub(super) split_call: Option<SplitCall<'t>>,
}

/// A call whose tool name is outside its arguments.
#[derive(Debug)]
pub(super) struct SplitCall<'t> {
    pub(super) form: SplitCallForm,
    pub(super) name: &'t str,
    pub(super) arguments: Option<&'t str>,
    /// Names and values, if the arguments are no object.
    pub(super) parameters: Vec<(&'t str, &'t str)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SplitCallForm {
    /// `<function=name>…</function>`
    Function,
    /// `[TOOL_CALLS]name[ARGS]{…}`
    Marked,
    /// `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`
    Numbered,
}

/// A parsed call.
#[derive(Debug, PartialEq)]
pub(super) struct WrittenCall<'t> {
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
    /// The source text of the call.
    pub(super) text: &'t str,
}

impl<'t> CallSource<'t> {
    /// Parses the call; `None` if its arguments are in doubt.
    pub(super) fn parse(&self, tools: &[ToolSpec]) -> Option<WrittenCall<'t>> {
        let (name, arguments) = match &self.split_call {
            None => read_call(read_arguments(self.text)?)?,
            Some(SplitCall { name, arguments: Some(arguments), .. }) => {
                ((*name).to_owned(), read_arguments(arguments)?)
            }
            Some(SplitCall { name, parameters, .. }) => {
                let tool = tools.iter().find(|tool| tool.name == *name)?;
                (tool.name.clone(), typed_parameters(tool, parameters)?)
            }
        };
        Some(WrittenCall { name, arguments, text: self.text })
    }
}

/// Parses arguments; `None` if they are in doubt.
fn read_arguments(text: &str) -> Option<Map<String, Value>> {
    match repair::read_arguments(text) {
        ToolArguments::Valid(map) | ToolArguments::Repaired { value: map, doubt: None } => Some(map),
        ToolArguments::Repaired { doubt: Some(_), .. } | ToolArguments::Unreadable { .. } => None,
    }
}

/// Splits the object of a call, which has one name and one arguments member.
fn read_call(mut map: Map<String, Value>) -> Option<(String, Map<String, Value>)> {
    if let Some(Value::Object(inner)) = map.get_mut(FUNCTION_KEY) {
        map = std::mem::take(inner);
    }
    let mut names = NAME_KEYS.iter().filter_map(|key| map.get(*key)?.as_str());
    let name = names.next().filter(|_| names.next().is_none())?.to_owned();
    let mut given = ARGUMENT_KEYS.iter().filter_map(|key| map.get(*key));
    let arguments = match given.next().filter(|_| given.next().is_none())? {
        Value::Object(map) => map.clone(),
        Value::String(text) => read_arguments(text)?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    Some((name, arguments))
}

/// Converts untyped parameters by the tool's schema. A duplicate parameter is invalid.
fn typed_parameters(tool: &ToolSpec, parameters: &[(&str, &str)]) -> Option<Map<String, Value>> {
    let mut map = Map::new();
    for (key, value) in parameters {
        // The line breaks next to the tags belong to them.
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        let typed = parse_typed_value(&tool.parameters["properties"][key]["type"], value);
        if map.insert((*key).to_owned(), typed).is_some() {
            return None;
        }
    }
    Some(map)
}

/// Parses a value by the types that a schema allows.
fn parse_typed_value(types: &Value, text: &str) -> Value {
    let is = |name: &str| types == name || types.as_array().is_some_and(|names| names.contains(&name.into()));
    let as_text = || Value::String(text.to_owned());
    if types.is_null() || is("string") {
        return as_text();
    }
    // A number or a list, in the syntax of JSON or Python.
    serde_json::from_str(text.trim())
        .or_else(|_| serde_json::from_str(&text.trim().to_ascii_lowercase()))
        .unwrap_or_else(|_| as_text())
}
