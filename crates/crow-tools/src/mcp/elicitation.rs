//! Converts a server's requests to the user, and the answers. A server's texts are untrusted: their control characters
//! are replaced, and all numbers and lengths are limited.

use crow_acp::ElicitationForm;
use crow_core::{
    ServerAddress, ServerElicitation, ServerElicitationOutcome, ServerFieldChoice, ServerFieldKind,
    ServerForm, ServerFormField, TextFormat, replace_control_chars,
};
use reqwest::Url;
use rmcp::{
    ErrorData,
    model::{
        ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, ErrorCode,
        PrimitiveSchemaDefinition,
    },
};
use serde_json::Value;

use crate::title::to_title;

/// Each is a question; longer forms belong on a web page.
const FIELDS_MAX: usize = 16;

/// Users choose from what they can read.
const CHOICES_MAX: usize = 64;

/// A paragraph or two.
const MESSAGE_CHARS_MAX: usize = 2_000;
const MESSAGE_LINES_MAX: usize = 30;

/// Longer addresses cannot be checked by looking at them.
const URL_BYTES_MAX: usize = 2_048;

/// The code of an error in place of an answer, as the protocol has it for a request that was rejected.
pub(super) const REJECTED: ErrorCode = ErrorCode(-1);

/// Parses a request. The error is a clause that says why it cannot be shown.
pub(super) fn parse_request(server: &str, params: ElicitRequestParams) -> Result<ServerElicitation, String> {
    let server = server.to_owned();
    match params {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let (message, fields) = (clean_message(&message), parse_fields(&requested_schema)?);
            Ok(ServerElicitation::Form(ServerForm { server, message, fields }))
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            let url = parse_address(&url)?;
            let host = url.host_str().unwrap_or_default().to_owned();
            let (message, url) = (clean_message(&message), url.to_string());
            Ok(ServerElicitation::Address(ServerAddress { server, message, url, host }))
        }
        _ => Err("its mode is not known".to_owned()),
    }
}

/// Converts the outcome; an error if no user could answer, which is no decision of the user.
pub(super) fn to_result(
    outcome: ServerElicitationOutcome,
    has_content: bool,
) -> Result<ElicitResult, ErrorData> {
    match outcome {
        ServerElicitationOutcome::Accepted(values) => {
            let result = ElicitResult::new(ElicitationAction::Accept);
            Ok(if has_content { result.with_content(Value::Object(values)) } else { result })
        }
        ServerElicitationOutcome::Declined => Ok(ElicitResult::new(ElicitationAction::Decline)),
        ServerElicitationOutcome::Cancelled => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        ServerElicitationOutcome::Unavailable { reason } => {
            Err(ErrorData::new(REJECTED, format!("declined: {reason}"), None))
        }
    }
}

/// The URL parser encodes control characters, and writes a host with other letters in ASCII.
fn parse_address(url: &str) -> Result<Url, String> {
    if url.len() > URL_BYTES_MAX {
        return Err(format!("its address is longer than {URL_BYTES_MAX} bytes"));
    }
    let url = Url::parse(url).map_err(|error| format!("its address is invalid: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("its address begins with neither http:// nor https://".to_owned());
    }
    // The part before an `@` looks like a host.
    if !url.username().is_empty() || url.password().is_some() {
        return Err("its address contains a user name".to_owned());
    }
    Ok(url)
}

fn parse_fields(schema: &ElicitationSchema) -> Result<Vec<ServerFormField>, String> {
    if schema.properties.len() > FIELDS_MAX {
        return Err(format!("its form has more than {FIELDS_MAX} fields"));
    }
    let required = schema.required.as_deref().unwrap_or_default();
    let ordered = schema.property_order.iter().flatten().filter(|name| schema.properties.contains_key(*name));
    let names: Vec<&String> = match schema.property_order {
        Some(_) => ordered.collect(),
        None => schema.properties.keys().collect(),
    };
    let fields = names.into_iter().filter_map(|name| {
        let definition = schema.properties.get(name)?;
        Some(parse_field(name, definition, required.contains(name)))
    });
    fields.collect()
}

fn parse_field(
    name: &str,
    definition: &PrimitiveSchemaDefinition,
    is_required: bool,
) -> Result<ServerFormField, String> {
    let schema = serde_json::to_value(definition).map_err(|error| error.to_string())?;
    let text = |key: &str| schema[key].as_str().unwrap_or_default();
    let title = to_title(if text("title").is_empty() { name } else { text("title") });
    let kind = parse_kind(&schema).map_err(|reason| format!("the field {title:?} of its form {reason}"))?;
    Ok(ServerFormField {
        name: name.to_owned(),
        description: clean_message(text("description")),
        is_required,
        default: parse_default(&kind, &schema["default"]),
        title,
        kind,
    })
}

/// Parses the values that a field accepts. The error is a clause behind its name.
fn parse_kind(schema: &Value) -> Result<ServerFieldKind, String> {
    let length = |key: &str| schema[key].as_u64().and_then(|number| usize::try_from(number).ok());
    match schema["type"].as_str().unwrap_or_default() {
        "string" => match parse_choices(schema)? {
            Some(choices) => Ok(ServerFieldKind::Choice(choices)),
            None => {
                let chars_min = length("minLength").unwrap_or(0);
                if chars_min > ElicitationForm::ANSWER_CHARS_MAX {
                    return Err("requires an answer that is too long".to_owned());
                }
                let chars_max = length("maxLength").unwrap_or(usize::MAX);
                let format = match schema["format"].as_str() {
                    Some("email") => Some(TextFormat::Email),
                    Some("uri") => Some(TextFormat::Uri),
                    Some("date") => Some(TextFormat::Date),
                    Some("date-time") => Some(TextFormat::DateTime),
                    Some(_) | None => None,
                };
                let chars_max = chars_max.min(ElicitationForm::ANSWER_CHARS_MAX);
                Ok(ServerFieldKind::Text { chars_min, chars_max, format })
            }
        },
        kind @ ("number" | "integer") => Ok(ServerFieldKind::Number {
            is_integer: kind == "integer",
            minimum: schema["minimum"].as_f64(),
            maximum: schema["maximum"].as_f64(),
        }),
        "boolean" => Ok(ServerFieldKind::Boolean),
        "array" => {
            let mut choices = parse_choices(&schema["items"])?.ok_or("has no choices")?;
            for choice in &mut choices {
                // A comma separates the answers.
                choice.label = choice.label.replace(',', ";");
            }
            let n_max = length("maxItems").unwrap_or(choices.len()).min(choices.len());
            Ok(ServerFieldKind::Choices { n_min: length("minItems").unwrap_or(0).min(n_max), n_max, choices })
        }
        _ => Err("is of an unknown type".to_owned()),
    }
}

/// Parses a list of choices, with or without titles; `None` if any text is a value.
fn parse_choices(schema: &Value) -> Result<Option<Vec<ServerFieldChoice>>, String> {
    let titled = ["oneOf", "anyOf"].into_iter().find_map(|key| schema[key].as_array());
    let names = &schema["enumNames"];
    let choices: Vec<ServerFieldChoice> = match (titled, schema["enum"].as_array()) {
        (Some(options), _) => {
            let choice = |option: &Value| to_choice(&option["const"], &option["title"]);
            options.iter().take(CHOICES_MAX + 1).filter_map(choice).collect()
        }
        (None, Some(values)) => {
            let values = values.iter().take(CHOICES_MAX + 1).enumerate();
            values.filter_map(|(index, value)| to_choice(value, &names[index])).collect()
        }
        (None, None) => return Ok(None),
    };
    if choices.is_empty() || choices.len() > CHOICES_MAX {
        return Err(format!("has no choices, or more than {CHOICES_MAX}"));
    }
    let is_repeated = |(index, choice): (usize, &ServerFieldChoice)| {
        choices[..index].iter().any(|earlier| earlier.label.eq_ignore_ascii_case(&choice.label))
    };
    if choices.iter().enumerate().any(is_repeated) {
        return Err("has choices that look the same".to_owned());
    }
    Ok(Some(choices))
}

fn to_choice(value: &Value, title: &Value) -> Option<ServerFieldChoice> {
    let value = value.as_str()?;
    let label = title.as_str().filter(|title| !title.trim().is_empty()).unwrap_or(value);
    Some(ServerFieldChoice { value: value.to_owned(), label: to_title(label) }).filter(|choice| {
        // It could not be chosen.
        !choice.label.is_empty()
    })
}

/// Converts a default to the answer that means it; `None` if it is not shown as it is.
fn parse_default(kind: &ServerFieldKind, default: &Value) -> Option<String> {
    let label_of = |choices: &[ServerFieldChoice], value: &Value| {
        let choice = choices.iter().find(|choice| Some(choice.value.as_str()) == value.as_str());
        choice.map(|choice| choice.label.clone())
    };
    match kind {
        ServerFieldKind::Text { .. } => {
            let text = default.as_str()?;
            Some(text.to_owned()).filter(|text| !text.is_empty() && to_title(text) == *text)
        }
        ServerFieldKind::Number { .. } => default.is_number().then(|| default.to_string()),
        ServerFieldKind::Boolean => default.as_bool().map(|value| {
            let answer = ServerFieldKind::boolean_answer(value);
            answer.to_owned()
        }),
        ServerFieldKind::Choice(choices) => label_of(choices, default),
        ServerFieldKind::Choices { choices, .. } => {
            let labels: Option<Vec<String>> =
                default.as_array()?.iter().map(|value| label_of(choices, value)).collect();
            labels.filter(|labels| !labels.is_empty()).map(|labels| labels.join(", "))
        }
    }
}

/// Limits a message to what can be read, without empty lines and control characters.
fn clean_message(text: &str) -> String {
    let text: String = text.chars().take(MESSAGE_CHARS_MAX).collect();
    let text = replace_control_chars(&text.replace('\t', " ").replace("\r\n", "\n"));
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.take(MESSAGE_LINES_MAX).collect::<Vec<_>>().join("\n")
}
