//! Compares arguments with a tool's schema: what is required, and the plain types of the top level.
//! The tool itself says no to the rest.

use serde_json::{Map, Value};

/// As much of a wrong value as a model needs to recognise it.
const SHOWN_CHARS_MAX: usize = 60;

/// Checks arguments against an object schema; mends the obvious, and says of the rest what is wrong with it.
pub fn check_against(schema: &Value, map: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut checked = Map::new();
    let mut problems = Vec::new();
    for (name, value) in map {
        let types = Types::of(&schema["properties"][name]);
        match types.fit(value) {
            Some(fitting) => {
                checked.insert(name.clone(), fitting);
            }
            None if value.is_null() && !required.contains(&name.as_str()) => {}
            None => problems.push(format!("`{name}` must be {}, not {}", types.described(), shown(value))),
        }
    }
    for name in required.iter().filter(|name| !map.contains_key(**name)) {
        let described = Types::of(&schema["properties"][*name]).described();
        problems.push(format!("`{name}` is missing; it must be {described}"));
    }
    if problems.is_empty() { Ok(checked) } else { Err(problems.join("; ")) }
}

/// The types that a property allows; none named means any.
struct Types<'a>(Vec<&'a str>);

impl<'a> Types<'a> {
    fn of(property: &'a Value) -> Self {
        let named = &property["type"];
        let names = named.as_array().map_or(std::slice::from_ref(named), Vec::as_slice);
        Self(names.iter().filter_map(Value::as_str).collect())
    }

    /// The value itself, or what it obviously stands for.
    fn fit(&self, value: &Value) -> Option<Value> {
        if self.0.is_empty() || self.0.iter().any(|name| is_of(value, name)) {
            return Some(value.clone());
        }
        self.0.iter().find_map(|name| coerced(value, name))
    }

    fn described(&self) -> String {
        let names = self.0.iter().map(|name| match *name {
            "integer" => "an integer",
            "array" => "an array",
            "object" => "an object",
            "string" => "a string",
            "number" => "a number",
            "boolean" => "true or false",
            other => other,
        });
        match names.collect::<Vec<_>>() {
            names if names.is_empty() => "given".to_owned(),
            names => names.join(" or "),
        }
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        // A type nobody knows cannot be judged.
        _ => true,
    }
}

fn coerced(value: &Value, name: &str) -> Option<Value> {
    let read = match value {
        Value::String(text) if name == "boolean" => {
            serde_json::from_str(&text.trim().to_ascii_lowercase()).ok()?
        }
        Value::String(text) if matches!(name, "integer" | "number" | "array" | "object") => {
            serde_json::from_str(text).ok()?
        }
        Value::Number(_) => value.clone(),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    if is_of(&read, name) {
        return Some(read);
    }
    if name == "integer" { whole(&read) } else { None }
}

/// A float that is a whole number, as the integer it is.
fn whole(value: &Value) -> Option<Value> {
    let float = value.as_f64().filter(|float| float.fract() == 0.0)?;
    format!("{float:.0}").parse::<i64>().ok().map(Value::from)
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    let kind = match value {
        Value::Null => return text,
        Value::Bool(_) => return text,
        Value::Number(_) => "the number",
        Value::String(_) => "the string",
        Value::Array(_) => "the array",
        Value::Object(_) => "the object",
    };
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        None => format!("{kind} {text}"),
        Some((end, _)) => format!("{kind} {}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests;
