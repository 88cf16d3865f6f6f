//! Turns what goes wrong with a provider into a failure with a sentence: who, what, and what to do.
//! No sentence shows a key, whatever the provider's text says.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::time::Duration;

use crow_core::{Failure, FailureKind};
use serde_json::Value;

use crate::decoder::StreamError;
use crate::retry::{Cause, Tried};
use crate::{ModelSettings, ProviderSettings};

/// Characters of a provider's own words that a person reads.
const WORDS_MAX: usize = 500;

/// Header values shorter than this are no secrets, and hiding them would blot out ordinary words.
const SECRET_LEN_MIN: usize = 8;

/// How providers say that the conversation is too long.
const OVERFLOW_MARKS: [&str; 14] = [
    "context_length_exceeded",
    "exceed_context_size",
    "exceeds the available context size",
    "maximum context length",
    "maximum context size",
    "maximum prompt length",
    "context window",
    "context length",
    "context size",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input length and `max_tokens`",
    "reduce the length of the messages",
];

/// Who was asked, for the sentences.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// Which provider.
    pub(crate) provider: &'a ProviderSettings,
    /// Which model, unless it was about no single one.
    pub(crate) model: Option<&'a ModelSettings>,
}

/// An answer that is not success.
#[derive(Debug)]
pub(crate) struct BadAnswer<'a> {
    /// The status.
    pub(crate) code: u16,
    /// What stands in the body.
    pub(crate) body: &'a str,
    /// How long the provider wants to be left alone.
    pub(crate) retry_after: Option<Duration>,
    /// It said the very same thing the time before.
    pub(crate) is_same: bool,
}

impl<'a> Asked<'a> {
    /// About a model.
    pub(crate) fn model(settings: &'a ModelSettings) -> Self {
        Self { provider: &settings.provider, model: Some(settings) }
    }

    /// About a provider.
    pub(crate) fn provider(provider: &'a ProviderSettings) -> Self {
        Self { provider, model: None }
    }

    /// Explains an answer that is not success.
    pub(crate) fn bad_answer(self, answer: &BadAnswer<'_>) -> Tried {
        let BadAnswer { code, body, retry_after, is_same } = *answer;
        let marks = body.to_lowercase();
        let again = Cause::Status { code, retry_after, is_same };
        let says = self.says(body);
        let who = &self.provider.name;
        let (kind, cause, what) = match code {
            401 | 403 => (FailureKind::ProviderAuth, Cause::Final, self.auth(code, &says)),
            400 | 413 | 422 | 500 if is_overflow(&marks) => {
                (FailureKind::ContextOverflow, Cause::Final, self.overflow(body, &says))
            }
            429 if marks.contains("insufficient_quota") => {
                let what = format!(
                    "`{who}` has no quota left for this key ({code}){says}; look at its plan and billing"
                );
                (FailureKind::ProviderRate, Cause::Final, what)
            }
            429 => {
                let what =
                    format!("`{who}` limits the rate ({code}){says}; wait a while or use another model");
                (FailureKind::ProviderRate, again, what)
            }
            400 | 404 | 422 if self.model.is_some() && names_model(code, &marks) => {
                (FailureKind::ModelNotFound, Cause::Final, self.no_model(code, &says))
            }
            404 | 405 => {
                let what =
                    format!("`{who}` has nothing at {} ({code}){says}; check its `base_url`", self.place());
                (FailureKind::ProviderRejected, Cause::Final, what)
            }
            300..=399 => {
                let what = format!(
                    "`{who}` has moved away from {} ({code}){says}; correct its `base_url`",
                    self.place()
                );
                (FailureKind::ProviderRejected, Cause::Final, what)
            }
            408 => {
                let what = format!("`{who}` waited too long for the request ({code}){says}; try again");
                (FailureKind::Connection, again, what)
            }
            409 | 425 | 500.. => {
                let what = format!("`{who}` is overloaded or broken ({code}){says}; try again later");
                (FailureKind::ProviderOverloaded, again, what)
            }
            _ => {
                let what = format!("`{who}` refused the request{} ({code}){says}", self.for_model());
                (FailureKind::ProviderRejected, Cause::Final, what)
            }
        };
        Tried { failure: Failure::new(kind, what), cause }
    }

    /// Explains a request that got no answer.
    pub(crate) fn no_answer(self, error: reqwest::Error) -> Tried {
        // An address may hold secrets.
        let error = error.without_url();
        let why = self.scrub(&root_cause(&error));
        let who = &self.provider.name;
        let place = self.place();
        let (kind, cause, what) = if error.is_builder() {
            let what = format!("the request to `{who}` could not be made: {why}");
            (FailureKind::Internal, Cause::Final, what)
        } else if error.is_connect() {
            let what = format!(
                "`{who}` cannot be reached at {place}: {why}; is it running, and is `base_url` right?"
            );
            (FailureKind::Connection, Cause::Unreachable, what)
        } else if error.is_timeout() {
            (FailureKind::Connection, Cause::Silent, format!("`{who}` at {place} did not answer in time"))
        } else {
            (
                FailureKind::Connection,
                Cause::BrokeOff,
                format!("the connection to `{who}` at {place} broke off: {why}"),
            )
        };
        Tried { failure: Failure::new(kind, what), cause }
    }

    /// Says that a server near by has not begun to answer.
    pub(crate) fn queue(self, waited: Duration) -> String {
        let (who, waited) = (&self.provider.name, waited.as_secs());
        format!("`{who}` has not begun to answer for {waited} s; it may be busy with another request")
    }

    /// Explains a provider that stopped talking.
    pub(crate) fn silence(self, waited: Duration) -> Tried {
        let who = &self.provider.name;
        let what = format!("`{who}` sent nothing for {} s; try again", waited.as_secs());
        Tried { failure: Failure::new(FailureKind::Connection, what), cause: Cause::Silent }
    }

    /// Explains a stream that is no reply.
    pub(crate) fn bad_stream(self, error: &StreamError) -> Tried {
        let who = &self.provider.name;
        let (kind, cause, what) = match error {
            StreamError::Cut => (
                FailureKind::Connection,
                Cause::BrokeOff,
                format!("the answer of `{who}` broke off; try again"),
            ),
            StreamError::TooLong => (
                FailureKind::Protocol,
                Cause::Final,
                format!("`{who}` sent an event that is too long to be a reply"),
            ),
            StreamError::NotProtocol(quote) => {
                let says = self.says(quote);
                let what = format!(
                    "`{who}` answered with something that is no completion{says}; check its `base_url`"
                );
                (FailureKind::Protocol, Cause::Final, what)
            }
            StreamError::Provider(error) => {
                let code = code_in(error);
                return self.bad_answer(&BadAnswer { code, body: error, retry_after: None, is_same: false });
            }
        };
        Tried { failure: Failure::new(kind, what), cause }
    }

    fn auth(self, code: u16, says: &str) -> String {
        let who = &self.provider.name;
        match (&self.provider.api_key, &self.provider.key_variable) {
            (Some(_), Some(variable)) => {
                format!(
                    "`{who}` refused the key in {variable} ({code}){says}; check that it is valid{}",
                    self.may_use()
                )
            }
            (Some(_), None) => {
                format!(
                    "`{who}` refused the configured key ({code}){says}; check that it is valid{}",
                    self.may_use()
                )
            }
            (None, Some(variable)) => format!("`{who}` wants a key ({code}){says}; put it into {variable}"),
            (None, None) => format!("`{who}` wants a key ({code}){says}; configure `api_key` for it"),
        }
    }

    fn may_use(self) -> String {
        self.model.map(|model| format!(" and may use `{}`", model.model)).unwrap_or_default()
    }

    fn for_model(self) -> String {
        self.model.map(|model| format!(" for `{}`", model.model)).unwrap_or_default()
    }

    fn no_model(self, code: u16, says: &str) -> String {
        let who = &self.provider.name;
        match self.model {
            Some(model) => {
                let (wire, name) = (&model.model, &model.name);
                format!(
                    "`{who}` has no model `{wire}` ({code}){says}; correct the model of `{name}` in the configuration"
                )
            }
            None => format!("`{who}` has no such model ({code}){says}"),
        }
    }

    fn overflow(self, body: &str, says: &str) -> String {
        let of_model = self.model.map(|model| format!(" of `{}`", model.model)).unwrap_or_default();
        let error = error_object(body);
        let number = |field: &str| error.get(field).and_then(Value::as_u64);
        match (number("n_prompt_tokens"), number("n_ctx")) {
            (Some(prompt), Some(window)) => {
                format!(
                    "the conversation ({prompt} tokens) is longer than the window{of_model} ({window} tokens)"
                )
            }
            _ => format!("the conversation is longer than the window{of_model}{says}"),
        }
    }

    /// The address without a name, a password or a query: those may be secrets.
    fn place(self) -> String {
        let Ok(url) = reqwest::Url::parse(&self.provider.base_url) else { return "its address".to_owned() };
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
    }

    /// The provider's own words, ready to follow ours.
    fn says(self, body: &str) -> String {
        let words = self.scrub(&words_of(body));
        if words.is_empty() { String::new() } else { format!(": {words}") }
    }

    /// Takes out secrets and what a terminal would obey, and bounds the rest.
    fn scrub(self, text: &str) -> String {
        let mut text = text.to_owned();
        let key = self.provider.api_key.iter().map(|key| key.reveal());
        // Of `Bearer KEY` a provider quotes only the key.
        let words = |value: &'a str| std::iter::once(value).chain(value.split_whitespace());
        let headers = self.provider.headers.iter().flat_map(|(_, value)| words(value));
        for secret in key.chain(headers.filter(|value| value.len() >= SECRET_LEN_MIN)) {
            if !secret.is_empty() {
                text = text.replace(secret, "…");
            }
        }
        let plain = text.replace(|c: char| c.is_control(), " ");
        let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
        match plain.char_indices().nth(WORDS_MAX) {
            Some((end, _)) => format!("{}…", &plain[..end]),
            None => plain.trim_end_matches('.').to_owned(),
        }
    }
}

/// Tells whether it is the model that is missing, and not the address.
fn names_model(code: u16, marks: &str) -> bool {
    marks.contains("model_not_found") || (code == 404 && marks.contains("model"))
}

fn is_overflow(marks: &str) -> bool {
    OVERFLOW_MARKS.iter().any(|mark| marks.contains(mark))
}

/// The message in an error body, or the body itself.
fn words_of(body: &str) -> String {
    if body.trim_start().starts_with('<') {
        return "a web page".to_owned();
    }
    match error_object(body) {
        Value::String(words) => words,
        Value::Object(error) => {
            let named =
                ["message", "detail", "error", "code"].iter().find_map(|name| error.get(*name)?.as_str());
            named.map_or_else(|| body.to_owned(), str::to_owned)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => body.to_owned(),
    }
}

/// The innermost thing that describes the error: some wrap it in `error`, some in a list, some not at all.
fn error_object(body: &str) -> Value {
    let mut value = serde_json::from_str::<Value>(body).unwrap_or(Value::Null);
    if let Value::Array(list) = &mut value {
        value = list.first_mut().map(Value::take).unwrap_or_default();
    }
    match value.get_mut("error").map(Value::take) {
        Some(error) if !error.is_null() => error,
        _ => value,
    }
}

/// The status that an error inside a stream stands for.
fn code_in(error: &str) -> u16 {
    let value = error_object(error);
    let number = |name: &str| {
        let field = value.get(name)?;
        field.as_u64().or_else(|| field.as_str()?.parse().ok()).and_then(|code| u16::try_from(code).ok())
    };
    let named = ["code", "status", "status_code"].iter().find_map(|name| number(name));
    if let Some(code) = named.filter(|code| (400..600).contains(code)) {
        return code;
    }
    let marks = error.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| marks.contains(word));
    if is_overflow(&marks) || has(&["invalid_request"]) {
        400
    } else if has(&["rate_limit", "rate limit", "too many requests"]) {
        429
    } else if has(&["overloaded", "unavailable", "capacity"]) {
        503
    } else if has(&["authentication", "invalid api key", "invalid_api_key"]) {
        401
    } else {
        500
    }
}

/// What lies at the bottom: the layers above only say that something failed.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let text = cause.to_string();
    // `Connection refused (os error 111)`: the number helps nobody.
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}
