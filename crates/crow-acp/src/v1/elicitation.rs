//! Spells forms that a person fills in, and reads them and what came of them. Of the protocol's forms this knows those
//! of one question: one value out of a list, one line of text, or either.

use std::collections::BTreeMap;

use agent_client_protocol as sdk;
use crow_core::SessionId;
use sdk::v1::schema as wire;
use serde_json::{Value, json};

use crate::form::{ElicitationChoice, ElicitationForm, ElicitationOutcome};
use crate::v1::opening::to_meta;
use crate::v1::permission::ASKS;
use crate::v1::session_id;

/// The property that has the chosen label. Clients draw properties in this order.
const ANSWER: &str = "answer";
/// The property that has words of the person's own.
const OTHER: &str = "other";

/// What a form says in its `_meta` that is about trust, for our own client.
const TRUST: &str = "trust";

/// A person reads what they choose from; nobody reads more.
const OPTIONS_MAX: usize = 100;

/// Spells a form. Where words of one's own are an answer, no choice is wanted beside them.
pub(crate) fn to_elicitation_request(
    session: &SessionId,
    form: &ElicitationForm,
) -> wire::CreateElicitationRequest {
    let mut schema = wire::ElicitationSchema::new();
    if !form.options.is_empty() {
        let options = form.options.iter().map(|choice| {
            let meaning = (!choice.meaning.is_empty()).then(|| choice.meaning.clone());
            wire::EnumOption::new(choice.label.as_str(), choice.label.as_str()).description(meaning)
        });
        let one_of = wire::StringPropertySchema::new().one_of(options.collect::<Vec<_>>());
        schema = schema.property(ANSWER, one_of.title("Answer".to_owned()), !form.free_text);
    }
    if form.free_text {
        let title = if form.options.is_empty() { "Answer" } else { "Or in your own words" };
        let chars_max = u32::try_from(ElicitationForm::ANSWER_CHARS_MAX).ok();
        let words = wire::StringPropertySchema::new().title(title.to_owned()).max_length(chars_max);
        schema = schema.property(OTHER, words, form.options.is_empty());
    }
    let scope = wire::ElicitationSessionScope::new(session_id(session));
    let mode = wire::ElicitationFormMode::new(scope, schema);
    let request = wire::CreateElicitationRequest::new(mode, form.message.clone());
    if form.is_about_trust { request.meta(to_meta(json!({ ASKS: TRUST }))) } else { request }
}

/// Reads what came of a form. What was not on offer is no answer.
pub(crate) fn elicitation_outcome(
    answer: Result<wire::CreateElicitationResponse, sdk::Error>,
    form: &ElicitationForm,
) -> ElicitationOutcome {
    let content = match answer.map(|answer| answer.action) {
        Ok(wire::ElicitationAction::Accept(accepted)) => accepted.content.unwrap_or_default(),
        Ok(wire::ElicitationAction::Cancel) => return ElicitationOutcome::Cancelled,
        Ok(_) => return ElicitationOutcome::Declined,
        Err(error) if matches!(i32::from(error.code), -32700 | -32602) => {
            return ElicitationOutcome::Nobody { why: "the client's answer cannot be read".into() };
        }
        Err(error) => return ElicitationOutcome::Nobody { why: error.message },
    };
    let is_offered = |said: &str| form.options.iter().any(|choice| choice.label == said);
    let not_offered =
        || ElicitationOutcome::Nobody { why: "the answer was not on offer or is too long".into() };
    let said = |name: &str| match content.get(name) {
        // A client that fills a field with nothing leaves it out.
        Some(wire::ElicitationContentValue::String(said)) if said.trim().is_empty() => Ok(None),
        Some(wire::ElicitationContentValue::String(said)) => Ok(Some(said)),
        Some(_) => Err(not_offered()),
        None => Ok(None),
    };
    match (said(OTHER), said(ANSWER)) {
        // Who took the trouble to write means that, whatever stands chosen beside it.
        (Ok(Some(words)), _) => form
            .free_text_answer(words)
            .map_or_else(not_offered, |words| ElicitationOutcome::Chosen(words.into())),
        (Ok(None), Ok(Some(label))) if is_offered(label) => ElicitationOutcome::Chosen(label.clone()),
        (Ok(None), Ok(None)) => ElicitationOutcome::Declined,
        (Err(refused), _) | (_, Err(refused)) => refused,
        (Ok(None), Ok(Some(_))) => not_offered(),
    }
}

/// A form that an agent wants filled in, and how the answer to it is spelled.
pub(crate) struct FormRequest {
    pub(crate) session: SessionId,
    pub(crate) form: ElicitationForm,
    pub(crate) spelling: FormFieldNames,
}

/// What an agent calls the parts of its form.
pub(crate) struct FormFieldNames {
    choice: Option<String>,
    /// The value of each option.
    values: Vec<String>,
    words: Option<String>,
}

/// Reads a form of any agent; nothing when it is more than one question, or none of a session.
pub(crate) fn parse_form_request(request: wire::CreateElicitationRequest) -> Option<FormRequest> {
    let asks = request.meta.as_ref().and_then(|meta| meta.get(ASKS)).and_then(Value::as_str);
    let is_about_trust = asks == Some(TRUST);
    let wire::ElicitationMode::Form(mode) = request.mode else { return None };
    let wire::ElicitationScope::Session(scope) = mode.scope else { return None };
    let required = mode.requested_schema.required.unwrap_or_default();
    let (mut choice, mut words) = (None, None);
    for (name, property) in mode.requested_schema.properties {
        let wire::ElicitationPropertySchema::String(property) = property else { return None };
        let taken = match form_choices(property) {
            Some(options) => choice.replace((name, options)).is_some(),
            None => words.replace(name).is_some(),
        };
        if taken {
            return None;
        }
    }
    let (choice, (values, options)) = choice.map_or_else(Default::default, |(name, options)| {
        (Some(name), options.into_iter().unzip::<_, _, Vec<_>, Vec<_>>())
    });
    let is_required = |name: &Option<String>| name.as_ref().is_some_and(|name| required.contains(name));
    let takes_both = choice.is_some() && is_required(&words);
    if options.len() > OPTIONS_MAX || takes_both || (options.is_empty() && words.is_none()) {
        return None;
    }
    let free_text = words.is_some() && !is_required(&choice);
    Some(FormRequest {
        session: SessionId::new(&*scope.session_id.0),
        form: ElicitationForm { message: request.message, options, free_text, is_about_trust },
        spelling: FormFieldNames { choice, values, words },
    })
}

/// Reads what a property lets one choose from, each with its value; nothing when it takes any text.
fn form_choices(property: wire::StringPropertySchema) -> Option<Vec<(String, ElicitationChoice)>> {
    let plain = |value: String| (value.clone(), ElicitationChoice { label: value, meaning: String::new() });
    let titled = |option: wire::EnumOption| {
        (
            option.value,
            ElicitationChoice { label: option.title, meaning: option.description.unwrap_or_default() },
        )
    };
    match (property.one_of, property.enum_values) {
        (Some(options), _) => Some(options.into_iter().map(titled).collect()),
        (None, Some(values)) => Some(values.into_iter().map(plain).collect()),
        (None, None) => None,
    }
}

/// Spells what came of a form; why nobody could be asked is an error.
pub(crate) fn to_elicitation_response(
    FormRequest { form, spelling, .. }: FormRequest,
    formed: ElicitationOutcome,
) -> Result<wire::CreateElicitationResponse, sdk::Error> {
    let said = match formed {
        ElicitationOutcome::Chosen(said) => said,
        ElicitationOutcome::Declined => {
            return Ok(wire::CreateElicitationResponse::new(wire::ElicitationAction::Decline));
        }
        ElicitationOutcome::Cancelled => {
            return Ok(wire::CreateElicitationResponse::new(wire::ElicitationAction::Cancel));
        }
        ElicitationOutcome::Nobody { why } => return Err(super::no_user_error(&why)),
    };
    let at = form.options.iter().position(|choice| choice.label == said);
    let chosen = at.and_then(|at| spelling.values.get(at).cloned());
    let filled = match (chosen, spelling.choice, spelling.words) {
        (Some(value), Some(name), _) => Some((name, value)),
        (_, _, Some(name)) => Some((name, said)),
        (_, _, None) => None,
    };
    let value = |(name, value)| (name, wire::ElicitationContentValue::String(value));
    let content: BTreeMap<_, _> = filled.into_iter().map(value).collect();
    Ok(wire::CreateElicitationResponse::new(wire::ElicitationAcceptAction::new().content(content)))
}

#[cfg(test)]
mod tests;
