//! Converts forms and their outcomes. Of the protocol's forms this supports those of one question: one value out of a
//! list, one line of text, or either.

use std::collections::BTreeMap;

use agent_client_protocol as sdk;
use crow_core::SessionId;
use sdk::v1::schema as wire;
use serde_json::{Value, json};

use crate::form::{ElicitationChoice, ElicitationForm, ElicitationOutcome, FormSubject};
use crate::v1::permission::SUBJECT_KEY;
use crate::v1::primitives::{session_id, to_meta};
use crate::v1::rpc_errors::no_user_error;

/// The property with the chosen label. Clients show properties in this order.
const ANSWER: &str = "answer";
/// The property with the user's free text.
const OTHER: &str = "other";

/// The values in `_meta` that mark a form about trust or of an MCP server, for our own client.
const TRUST: &str = "trust";
const MCP_SERVER: &str = "mcp_server";

/// Users choose from what they can read; longer lists are not read.
const OPTIONS_MAX: usize = 100;

/// Converts a form. If free text is an answer, no choice is required.
pub(crate) fn to_elicitation_request(
    session: &SessionId,
    form: &ElicitationForm,
) -> wire::CreateElicitationRequest {
    let mut schema = wire::ElicitationSchema::new();
    if !form.options.is_empty() {
        let options = form.options.iter().map(|choice| {
            let description = (!choice.description.is_empty()).then(|| choice.description.clone());
            wire::EnumOption::new(choice.label.as_str(), choice.label.as_str()).description(description)
        });
        let one_of = wire::StringPropertySchema::new().one_of(options.collect::<Vec<_>>());
        schema = schema.property(ANSWER, one_of.title("Answer".to_owned()), !form.free_text);
    }
    if form.free_text {
        let title = if form.options.is_empty() { "Answer" } else { "Or another answer" };
        let chars_max = u32::try_from(ElicitationForm::ANSWER_CHARS_MAX).ok();
        let text_property = wire::StringPropertySchema::new().title(title.to_owned()).max_length(chars_max);
        schema = schema.property(OTHER, text_property, form.options.is_empty());
    }
    let scope = wire::ElicitationSessionScope::new(session_id(session));
    let mode = wire::ElicitationFormMode::new(scope, schema);
    let request = wire::CreateElicitationRequest::new(mode, form.message.clone());
    match form.subject {
        FormSubject::Question => request,
        FormSubject::Trust => request.meta(to_meta(json!({ SUBJECT_KEY: TRUST }))),
        FormSubject::McpServer => request.meta(to_meta(json!({ SUBJECT_KEY: MCP_SERVER }))),
    }
}

/// Parses the outcome of a form. A choice that was not offered is no answer.
pub(crate) fn elicitation_outcome(
    answer: Result<wire::CreateElicitationResponse, sdk::Error>,
    form: &ElicitationForm,
) -> ElicitationOutcome {
    let content = match answer.map(|answer| answer.action) {
        Ok(wire::ElicitationAction::Accept(accepted)) => accepted.content.unwrap_or_default(),
        Ok(wire::ElicitationAction::Cancel) => return ElicitationOutcome::Cancelled,
        Ok(_) => return ElicitationOutcome::Declined,
        Err(error) if matches!(i32::from(error.code), -32700 | -32602) => {
            return ElicitationOutcome::Unavailable { reason: "the client's answer cannot be read".into() };
        }
        Err(error) => return ElicitationOutcome::Unavailable { reason: error.message },
    };
    let is_offered = |said: &str| form.options.iter().any(|choice| choice.label == said);
    let not_offered =
        || ElicitationOutcome::Unavailable { reason: "the answer was not offered or is too long".into() };
    let text_value = |name: &str| match content.get(name) {
        // An empty field counts as absent.
        Some(wire::ElicitationContentValue::String(text)) if text.trim().is_empty() => Ok(None),
        Some(wire::ElicitationContentValue::String(text)) => Ok(Some(text)),
        Some(_) => Err(not_offered()),
        None => Ok(None),
    };
    match (text_value(OTHER), text_value(ANSWER)) {
        // Free text counts more than a choice next to it.
        (Ok(Some(text)), _) => form
            .free_text_answer(text)
            .map_or_else(not_offered, |text| ElicitationOutcome::Accepted(text.into())),
        (Ok(None), Ok(Some(label))) if is_offered(label) => ElicitationOutcome::Accepted(label.clone()),
        (Ok(None), Ok(None)) => ElicitationOutcome::Declined,
        (Err(outcome), _) | (_, Err(outcome)) => outcome,
        (Ok(None), Ok(Some(_))) => not_offered(),
    }
}

/// An agent's form, with what is needed to encode the answer.
pub(crate) struct FormRequest {
    pub(crate) session: SessionId,
    pub(crate) form: ElicitationForm,
    pub(crate) field_names: FormFieldNames,
}

/// The agent's names for the parts of its form.
pub(crate) struct FormFieldNames {
    choice: Option<String>,
    /// The value of each option.
    values: Vec<String>,
    text: Option<String>,
}

/// Parses the form of any agent; `None` if it has several questions, or belongs to no session.
pub(crate) fn parse_form_request(request: wire::CreateElicitationRequest) -> Option<FormRequest> {
    let kind_meta = request.meta.as_ref().and_then(|meta| meta.get(SUBJECT_KEY)).and_then(Value::as_str);
    let subject = match kind_meta {
        Some(TRUST) => FormSubject::Trust,
        Some(MCP_SERVER) => FormSubject::McpServer,
        Some(_) | None => FormSubject::Question,
    };
    let wire::ElicitationMode::Form(mode) = request.mode else { return None };
    let wire::ElicitationScope::Session(scope) = mode.scope else { return None };
    let required = mode.requested_schema.required.unwrap_or_default();
    let (mut choice, mut text_property) = (None, None);
    for (name, property) in mode.requested_schema.properties {
        let wire::ElicitationPropertySchema::String(property) = property else { return None };
        let is_duplicate = match form_choices(property) {
            Some(options) => choice.replace((name, options)).is_some(),
            None => text_property.replace(name).is_some(),
        };
        if is_duplicate {
            return None;
        }
    }
    let (choice, (values, options)) = choice.map_or_else(Default::default, |(name, options)| {
        (Some(name), options.into_iter().unzip::<_, _, Vec<_>, Vec<_>>())
    });
    let is_required = |name: &Option<String>| name.as_ref().is_some_and(|name| required.contains(name));
    let requires_both = choice.is_some() && is_required(&text_property);
    if options.len() > OPTIONS_MAX || requires_both || (options.is_empty() && text_property.is_none()) {
        return None;
    }
    let free_text = text_property.is_some() && !is_required(&choice);
    Some(FormRequest {
        session: SessionId::new(&*scope.session_id.0),
        form: ElicitationForm { message: request.message, options, free_text, subject },
        field_names: FormFieldNames { choice, values, text: text_property },
    })
}

/// Parses the choices of a property with their values; `None` if it accepts any text.
fn form_choices(property: wire::StringPropertySchema) -> Option<Vec<(String, ElicitationChoice)>> {
    let plain =
        |value: String| (value.clone(), ElicitationChoice { label: value, description: String::new() });
    let titled = |option: wire::EnumOption| {
        (
            option.value,
            ElicitationChoice { label: option.title, description: option.description.unwrap_or_default() },
        )
    };
    match (property.one_of, property.enum_values) {
        (Some(options), _) => Some(options.into_iter().map(titled).collect()),
        (None, Some(values)) => Some(values.into_iter().map(plain).collect()),
        (None, None) => None,
    }
}

/// Converts the outcome of a form; if no user could be asked, that is an error.
pub(crate) fn to_elicitation_response(
    FormRequest { form, field_names, .. }: FormRequest,
    outcome: ElicitationOutcome,
) -> Result<wire::CreateElicitationResponse, sdk::Error> {
    let answer = match outcome {
        ElicitationOutcome::Accepted(answer) => answer,
        ElicitationOutcome::Declined => {
            return Ok(wire::CreateElicitationResponse::new(wire::ElicitationAction::Decline));
        }
        ElicitationOutcome::Cancelled => {
            return Ok(wire::CreateElicitationResponse::new(wire::ElicitationAction::Cancel));
        }
        ElicitationOutcome::Unavailable { reason } => return Err(no_user_error(&reason)),
    };
    let position = form.options.iter().position(|choice| choice.label == answer);
    let option_value = position.and_then(|position| field_names.values.get(position).cloned());
    let answer_field = match (option_value, field_names.choice, field_names.text) {
        (Some(value), Some(name), _) => Some((name, value)),
        (_, _, Some(name)) => Some((name, answer)),
        (_, _, None) => None,
    };
    let value = |(name, value)| (name, wire::ElicitationContentValue::String(value));
    let content: BTreeMap<_, _> = answer_field.into_iter().map(value).collect();
    Ok(wire::CreateElicitationResponse::new(wire::ElicitationAcceptAction::new().content(content)))
}

#[cfg(test)]
mod tests;
