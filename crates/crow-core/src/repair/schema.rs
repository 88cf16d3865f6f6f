//! Validates arguments against a tool's schema: required parameters, types and enums. Corrects unambiguous mistakes.
//! Ignores unknown keywords: the tool itself checks the rest.

use serde_json::{Map, Number, Value};

use super::paths;

/// Characters of a wrong value in a message.
const SHOWN_CHARS_MAX: usize = 60;

/// Limit of problems listed in a message.
const PROBLEMS_SHOWN_MAX: usize = 8;

/// Limit of choices listed in a message.
const CHOICES_SHOWN_MAX: usize = 20;

/// Validates arguments against an object schema; returns the corrected arguments or a message with all problems.
pub fn check_against_schema(schema: &Value, map: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    fit_object(schema, map.clone(), "").map_err(|problems| {
        let n_more = problems.len().saturating_sub(PROBLEMS_SHOWN_MAX);
        let shown = &problems[..problems.len() - n_more];
        let item_problems = if n_more == 0 { String::new() } else { format!("; and {n_more} more") };
        shown.join("; ") + &item_problems
    })
}

/// A corrected value, or its problems, one sentence each.
type FitResult<T = Value> = Result<T, Vec<String>>;

fn fit_value(schema: &Value, value: Value, path: &str) -> FitResult {
    let value = fit_alternative(schema, value, path)?;
    let value = fit_type(schema, value, path)?;
    let value = fit_choice(schema, value, path)?;
    check_sign(schema, &value, path)?;
    match value {
        Value::Object(map) => fit_object(schema, map, path).map(Value::Object),
        Value::Array(items) => fit_array(&schema["items"], items, path).map(Value::Array),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(value),
    }
}

fn fit_object(schema: &Value, map: Map<String, Value>, path: &str) -> FitResult<Map<String, Value>> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let child_path = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let missing: Vec<&str> = required.iter().copied().filter(|name| !map.contains_key(*name)).collect();
    let mut fitting = Map::new();
    let mut problems = Vec::new();
    for (name, value) in map {
        let is_omitted = value.is_null() && !required.contains(&name.as_str());
        match fit_value(&schema["properties"][&name], value, &child_path(&name)) {
            Ok(value) => {
                let damage = paths::describe_damage(&name, &value);
                problems.extend(damage.map(|damage| format!("`{}` {damage}", child_path(&name))));
                fitting.insert(name, value);
            }
            // Some models write null for an omitted parameter.
            Err(_) if is_omitted => {}
            Err(item_problems) => problems.extend(item_problems),
        }
    }
    for name in missing {
        let expected = describe_schema(&schema["properties"][name]);
        problems.push(format!("`{}` is missing; it must be {expected}", child_path(name)));
    }
    if problems.is_empty() { Ok(fitting) } else { Err(problems) }
}

fn fit_array(schema: &Value, items: Vec<Value>, path: &str) -> FitResult<Vec<Value>> {
    let mut fitting = Vec::with_capacity(items.len());
    let mut problems = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        match fit_value(schema, item, &format!("{path}[{index}]")) {
            Ok(item) => fitting.push(item),
            Err(item_problems) => problems.extend(item_problems),
        }
    }
    if problems.is_empty() { Ok(fitting) } else { Err(problems) }
}

/// Corrects a value to the only matching alternative.
fn fit_alternative(schema: &Value, value: Value, path: &str) -> FitResult {
    let Some(alternatives) = schema_alternatives(schema) else { return Ok(value) };
    let fits = alternatives.iter().filter_map(|schema| fit_value(schema, value.clone(), path).ok());
    match unique_reading(fits.collect(), &value) {
        Some(fitting) => Ok(fitting),
        None => Err(vec![type_error(schema, &value, path)]),
    }
}

fn schema_alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array())
}

fn fit_type(schema: &Value, value: Value, path: &str) -> FitResult {
    let names = type_names(schema);
    if names.is_empty() || names.iter().any(|name| has_type(&value, name)) {
        return Ok(value);
    }
    let coerced = names.iter().filter_map(|name| coerce_value(schema, &value, name));
    match unique_reading(coerced.collect(), &value) {
        Some(fitting) => Ok(fitting),
        None => Err(vec![type_error(schema, &value, path)]),
    }
}

/// Returns the value itself if it is among the readings, or else the reading that all agree on.
fn unique_reading(mut readings: Vec<Value>, value: &Value) -> Option<Value> {
    if let Some(path) = readings.iter().position(|reading| reading == value) {
        return Some(readings.swap_remove(path));
    }
    let first = readings.pop()?;
    readings.iter().all(|reading| *reading == first).then_some(first)
}

/// Corrects a value to an enum member, ignoring case.
fn fit_choice(schema: &Value, value: Value, path: &str) -> FitResult {
    let Some(choices) = schema["enum"].as_array() else { return Ok(value) };
    if choices.contains(&value) {
        return Ok(value);
    }
    let is_same_choice = |choice: &&Value| match (*choice, &value) {
        (Value::String(choice), Value::String(text)) => choice.to_lowercase() == text.to_lowercase(),
        (Value::Number(choice), Value::Number(number)) => choice.as_f64() == number.as_f64(),
        _ => false,
    };
    let mut matching_choices = choices.iter().filter(is_same_choice);
    match (matching_choices.next(), matching_choices.next()) {
        (Some(choice), None) => Ok(choice.clone()),
        (Some(_), Some(_)) | (None, _) => Err(vec![type_error(schema, &value, path)]),
    }
}

/// Rejects a negative number if none is allowed. The tool itself clamps other numbers to its range and reports that.
fn check_sign(schema: &Value, value: &Value, path: &str) -> FitResult<()> {
    let is_too_small = |bound: &f64| value.as_f64().is_some_and(|number| number < 0.0 && 0.0 <= *bound);
    match schema["minimum"].as_f64().filter(is_too_small) {
        Some(minimum) => Err(vec![format!("`{path}` must be at least {minimum}, not {value}")]),
        None => Ok(()),
    }
}

/// Returns the types that a schema allows; empty for any.
fn type_names(schema: &Value) -> Vec<&str> {
    let type_value = &schema["type"];
    let names = type_value.as_array().map_or(std::slice::from_ref(type_value), Vec::as_slice);
    names.iter().filter_map(Value::as_str).collect()
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        // Unknown types are not checked.
        _ => true,
    }
}

/// Converts a value of another type, if its meaning is obvious.
fn coerce_value(schema: &Value, value: &Value, name: &str) -> Option<Value> {
    match (name, value) {
        ("string", Value::Number(number)) if number.is_i64() || number.is_u64() => {
            Some(Value::String(number.to_string()))
        }
        ("integer", Value::Number(number)) => to_integer(number),
        ("integer", Value::String(text)) => to_integer(&serde_json::from_str(text).ok()?),
        ("number", Value::String(text)) => serde_json::from_str(text).ok().map(Value::Number),
        ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        ("null", Value::String(text)) => matches!(text.trim(), "null" | "None").then_some(Value::Null),
        ("object", Value::String(text)) => serde_json::from_str(text).ok().map(Value::Object),
        ("array", Value::String(text)) if text.trim_start().starts_with('[') => {
            serde_json::from_str(text).ok().map(Value::Array)
        }
        // Null is not an item.
        ("array", Value::Null) => None,
        ("array", one) => is_one_of(&schema["items"], one).then(|| Value::Array(vec![one.clone()])),
        _ => None,
    }
}

/// Whether a value may be a single item. For a list of lists it may be the list itself.
fn is_one_of(items: &Value, value: &Value) -> bool {
    let names = type_names(items);
    let is_of = |name: &&str| has_type(value, name) || coerce_value(items, value, name).is_some();
    names.is_empty() || (!names.contains(&"array") && names.iter().any(is_of))
}

/// Converts a whole number to an integer.
fn to_integer(number: &Number) -> Option<Value> {
    if number.is_i64() || number.is_u64() {
        return Some(Value::Number(number.clone()));
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    format!("{float:.0}").parse::<i64>().ok().map(Value::from)
}

fn type_error(schema: &Value, value: &Value, path: &str) -> String {
    format!("`{path}` must be {}, not {}", describe_schema(schema), describe_value(value))
}

/// Describes the values that a schema allows.
fn describe_schema(schema: &Value) -> String {
    if let Some(choices) = schema["enum"].as_array() {
        let n_more = choices.len().saturating_sub(CHOICES_SHOWN_MAX);
        let shown = choices.iter().take(CHOICES_SHOWN_MAX).map(Value::to_string).collect::<Vec<_>>();
        return match (n_more, shown.as_slice()) {
            (0, [only]) => only.clone(),
            (0, all) => format!("one of {}", all.join(", ")),
            (_, some) => format!("one of {} or {n_more} others", some.join(", ")),
        };
    }
    if let Some(alternatives) = schema_alternatives(schema) {
        return alternatives.iter().map(describe_schema).collect::<Vec<_>>().join(" or ");
    }
    let names = type_names(schema).into_iter().map(|name| match name {
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

fn describe_value(value: &Value) -> String {
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
