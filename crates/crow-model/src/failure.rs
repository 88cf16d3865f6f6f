//! Turns what goes wrong with a provider into a failure with a sentence: who, what, and what to do.
//! No sentence shows a key, whatever the provider's text says.

mod said;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::time::Duration;

use crow_core::{Failure, FailureKind};
use said::ErrorBody;

use crate::decoder::StreamError;
use crate::retry::{FailedAttempt, FailureCause};
use crate::{ModelApi, ModelSettings, ProviderSettings};

/// Characters of a provider's own words that a person reads.
const WORDS_MAX: usize = 500;

/// Header values shorter than this are no secrets, and hiding them would blot out ordinary words.
const SECRET_LEN_MIN: usize = 8;

/// Who was asked, for the sentences.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailureContext<'a> {
    /// Which provider.
    pub(crate) provider: &'a ProviderSettings,
    /// Which model, unless it was about no single one.
    pub(crate) model: Option<&'a ModelSettings>,
}

/// An answer that is not success.
#[derive(Debug)]
pub(crate) struct ErrorResponse<'a> {
    /// The status.
    pub(crate) code: u16,
    /// What stands in the body.
    pub(crate) body: &'a str,
    /// How long the provider wants to be left alone.
    pub(crate) retry_after: Option<Duration>,
    /// It said the very same thing the time before.
    pub(crate) is_same: bool,
}

impl<'a> FailureContext<'a> {
    /// About a model.
    pub(crate) fn about_model(settings: &'a ModelSettings) -> Self {
        Self { provider: &settings.provider, model: Some(settings) }
    }

    /// About a provider.
    pub(crate) fn about_provider(provider: &'a ProviderSettings) -> Self {
        Self { provider, model: None }
    }

    /// Explains an answer that is not success.
    pub(crate) fn explain_response(self, answer: &ErrorResponse<'_>) -> FailedAttempt {
        let ErrorResponse { code, body, is_same, .. } = *answer;
        let said = ErrorBody::new(body);
        let says = self.provider_phrase(body);
        let retry_after = answer.retry_after.or_else(|| said.retry_delay());
        let again = FailureCause::Status { code, retry_after };
        let (kind, cause, what) = match code {
            400..=403 | 429 if said.is_out_of_credit() => {
                (FailureKind::ProviderRate, FailureCause::Final, self.no_credit_message(code, &says))
            }
            402 => (FailureKind::ProviderRate, FailureCause::Final, self.no_credit_message(code, &says)),
            400 | 403 if said.is_content_refusal() => (
                FailureKind::ProviderRejected,
                FailureCause::Final,
                self.content_refused_message(code, &says),
            ),
            401 | 403 => (FailureKind::ProviderAuth, FailureCause::Final, self.auth_message(code, &says)),
            400 if said.is_invalid_key() => {
                (FailureKind::ProviderAuth, FailureCause::Final, self.auth_message(code, &says))
            }
            413 => (FailureKind::ContextOverflow, FailureCause::Final, self.overflow_message(&said, &says)),
            400 | 422 | 429 | 500 if said.is_overflow() => {
                (FailureKind::ContextOverflow, FailureCause::Final, self.overflow_message(&said, &says))
            }
            400 if said.is_malformed_call() => {
                (FailureKind::Protocol, FailureCause::BrokeOff, self.malformed_call_message(code, &says))
            }
            429 => (FailureKind::ProviderRate, again, self.rate_limit_message(code, &says)),
            400 | 404 | 422 if said.is_without_tool_support() => (
                FailureKind::ProviderRejected,
                FailureCause::Final,
                self.bad_request_message(code, &said, &says),
            ),
            400 | 404 | 422 if self.model.is_some() && said.is_unknown_model(code) => {
                (FailureKind::ModelNotFound, FailureCause::Final, self.unknown_model_message(code, &says))
            }
            300..=399 | 404 | 405 => {
                (FailureKind::ProviderRejected, FailureCause::Final, self.not_found_message(code, &says))
            }
            408 => (FailureKind::Connection, again, self.request_timeout_message(code, &says)),
            500 if said.is_without_tool_support() => (
                FailureKind::ProviderRejected,
                FailureCause::Final,
                self.permanent_error_message(code, &said, &says),
            ),
            // Behind a load balancer the next try may go well; when none does, this is what to say.
            500 if is_same => {
                (FailureKind::ProviderRejected, again, self.permanent_error_message(code, &said, &says))
            }
            409 | 425 | 500.. => {
                (FailureKind::ProviderOverloaded, again, self.overloaded_message(code, &says))
            }
            _ => (
                FailureKind::ProviderRejected,
                FailureCause::Final,
                self.bad_request_message(code, &said, &says),
            ),
        };
        FailedAttempt { failure: Failure::new(kind, what), cause }
    }

    /// Explains a request that got no answer.
    pub(crate) fn explain_transport_error(self, error: reqwest::Error) -> FailedAttempt {
        // An address may hold secrets.
        let error = error.without_url();
        let why = self.redact_text(&root_cause(&error));
        let who = &self.provider.name;
        let place = self.display_address();
        let (kind, cause, what) = if error.is_builder() {
            let what = format!("the request to `{who}` could not be made: {why}");
            (FailureKind::Internal, FailureCause::Final, what)
        } else if error.is_connect() {
            let what = format!(
                "`{who}` cannot be reached at {place}: {why}; is it running, and is `base_url` right?"
            );
            (FailureKind::Connection, FailureCause::Unreachable, what)
        } else if error.is_timeout() {
            (
                FailureKind::Connection,
                FailureCause::Silent,
                format!("`{who}` at {place} did not answer in time"),
            )
        } else {
            (
                FailureKind::Connection,
                FailureCause::BrokeOff,
                format!("the connection to `{who}` at {place} broke off: {why}"),
            )
        };
        FailedAttempt { failure: Failure::new(kind, what), cause }
    }

    /// Says that a server near by has not begun to answer.
    pub(crate) fn queue_notice(self, waited: Duration) -> String {
        let (who, waited) = (&self.provider.name, waited.as_secs());
        format!("`{who}` has not begun to answer for {waited} s; it may be busy with another request")
    }

    /// Explains a provider that stopped talking.
    pub(crate) fn explain_silence(self, waited: Duration) -> FailedAttempt {
        let who = &self.provider.name;
        let what = format!("`{who}` sent nothing for {} s; try again", waited.as_secs());
        FailedAttempt { failure: Failure::new(FailureKind::Connection, what), cause: FailureCause::Silent }
    }

    /// Explains a stream that is no reply. `is_same`: the try before ended in the same words.
    pub(crate) fn explain_stream_error(self, error: &StreamError, is_same: bool) -> FailedAttempt {
        let who = &self.provider.name;
        let (kind, cause, what) = match error {
            StreamError::Cut => (
                FailureKind::Connection,
                FailureCause::BrokeOff,
                format!("the answer of `{who}` broke off; try again"),
            ),
            StreamError::TooLong => (
                FailureKind::Protocol,
                FailureCause::Final,
                format!(
                    "`{who}` sent an event that is too long to be a reply{}; use another model",
                    self.model_phrase()
                ),
            ),
            StreamError::NotProtocol(quote) => {
                let says = self.provider_phrase(quote);
                let what = format!(
                    "`{who}` answered with something that is no completion{says}; check its `base_url`"
                );
                (FailureKind::Protocol, FailureCause::Final, what)
            }
            StreamError::Provider(error) => {
                let code = ErrorBody::new(error).status_code();
                return self.explain_response(&ErrorResponse {
                    code,
                    body: error,
                    retry_after: None,
                    is_same,
                });
            }
        };
        FailedAttempt { failure: Failure::new(kind, what), cause }
    }

    /// Says that Crow cut a reply.
    pub(crate) fn size_limit_notice(self, n_bytes_max: usize) -> String {
        let (who, mib) = (&self.provider.name, n_bytes_max / (1024 * 1024));
        format!("the reply of `{who}`{} was cut at {mib} MiB; no reply may be larger", self.model_phrase())
    }

    fn auth_message(self, code: u16, says: &str) -> String {
        let who = &self.provider.name;
        match (&self.provider.api_key, &self.provider.key_variable) {
            (Some(_), Some(variable)) => {
                format!(
                    "`{who}` refused the key in {variable} ({code}){says}; check that it is valid{}",
                    self.access_phrase()
                )
            }
            (Some(_), None) => {
                format!(
                    "`{who}` refused the configured key ({code}){says}; check that it is valid{}",
                    self.access_phrase()
                )
            }
            (None, Some(variable)) => format!("`{who}` wants a key ({code}){says}; put it into {variable}"),
            (None, None) => format!("`{who}` wants a key ({code}){says}; configure `api_key` for it"),
        }
    }

    fn access_phrase(self) -> String {
        self.model.map(|model| format!(" and may use `{}`", model.model)).unwrap_or_default()
    }

    fn model_phrase(self) -> String {
        self.model.map(|model| format!(" for `{}`", model.model)).unwrap_or_default()
    }

    /// The key by the variable it comes from.
    fn key_phrase(self) -> String {
        match &self.provider.key_variable {
            Some(variable) => format!("the key in {variable}"),
            None => "this key".to_owned(),
        }
    }

    fn no_credit_message(self, code: u16, says: &str) -> String {
        let (who, key) = (&self.provider.name, self.key_phrase());
        format!("`{who}` has no credit left for {key} ({code}){says}; look at its plan and billing")
    }

    fn content_refused_message(self, code: u16, says: &str) -> String {
        let (who, model) = (&self.provider.name, self.model_phrase());
        format!(
            "`{who}` refused what the conversation says{model} ({code}){says}; say it otherwise or use another model"
        )
    }

    fn rate_limit_message(self, code: u16, says: &str) -> String {
        let (who, model) = (&self.provider.name, self.model_phrase());
        format!("`{who}` limits the rate{model} ({code}){says}; wait a while or use another model")
    }

    fn request_timeout_message(self, code: u16, says: &str) -> String {
        format!("`{}` waited too long for the request ({code}){says}; try again", self.provider.name)
    }

    fn overloaded_message(self, code: u16, says: &str) -> String {
        let (who, model) = (&self.provider.name, self.model_phrase());
        format!("`{who}` is overloaded or broken{model} ({code}){says}; try again later")
    }

    fn malformed_call_message(self, code: u16, says: &str) -> String {
        let (who, model) = (&self.provider.name, self.model_phrase());
        format!("`{who}` could not read a call that was written{model} ({code}){says}; try again")
    }

    fn permanent_error_message(self, code: u16, said: &ErrorBody<'_>, says: &str) -> String {
        let (who, model) = (&self.provider.name, self.model_phrase());
        let advice = self.advice_phrase(said, "use another model");
        format!("`{who}` fails at this request{model} every time ({code}){says}; {advice}")
    }

    fn bad_request_message(self, code: u16, said: &ErrorBody<'_>, says: &str) -> String {
        let (who, model) = (&self.provider.name, self.model_phrase());
        let advice = self.advice_phrase(said, "check its settings in the configuration");
        format!("`{who}` refused the request{model} ({code}){says}; {advice}")
    }

    /// What to set, or what else to do.
    fn advice_phrase(self, said: &ErrorBody<'_>, otherwise: &str) -> String {
        match (said.suggested_setting(), self.model) {
            (Some(setting), Some(model)) => {
                format!("try {setting} for `{}` in the configuration", model.name)
            }
            _ => otherwise.to_owned(),
        }
    }

    fn not_found_message(self, code: u16, says: &str) -> String {
        let (who, place) = (&self.provider.name, self.display_address());
        if code < 400 {
            return format!("`{who}` has moved away from {place} ({code}){says}; correct its `base_url`");
        }
        format!("`{who}` has nothing at {place} ({code}){says}; check its `base_url`{}", self.api_phrase())
    }

    /// Where the dialect is not the usual one, it may be the wrong one.
    fn api_phrase(self) -> String {
        match self.provider.api {
            ModelApi::Chat => String::new(),
            api @ (ModelApi::Messages | ModelApi::Responses) => {
                format!(", and whether it speaks `api: {}`", api.as_str())
            }
        }
    }

    fn unknown_model_message(self, code: u16, says: &str) -> String {
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

    fn overflow_message(self, said: &ErrorBody<'_>, says: &str) -> String {
        let of_model = self.model.map(|model| format!(" of `{}`", model.model)).unwrap_or_default();
        let who = &self.provider.name;
        match said.token_counts() {
            Some((prompt, window)) => format!(
                "the conversation ({prompt} tokens) is longer than the window{of_model} at `{who}` ({window} tokens); \
                 make it shorter with /compact"
            ),
            None if said.exceeds_other_limit() => format!(
                "the conversation is longer than what `{who}` takes at once{}{says}; make it shorter with /compact",
                self.model_phrase()
            ),
            None => format!(
                "the conversation is longer than the window{of_model} at `{who}`{says}; make it shorter with /compact"
            ),
        }
    }

    /// The address without a name, a password or a query: those may be secrets.
    fn display_address(self) -> String {
        let Ok(url) = reqwest::Url::parse(&self.provider.base_url) else { return "its address".to_owned() };
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
    }

    /// The provider's own words, ready to follow ours.
    fn provider_phrase(self, body: &str) -> String {
        let words = self.redact_text(&ErrorBody::new(body).message_text());
        if words.is_empty() { String::new() } else { format!(": {words}") }
    }

    /// Takes out secrets and what a terminal would obey, and bounds the rest.
    fn redact_text(self, text: &str) -> String {
        let mut text = text.to_owned();
        let key = self.provider.api_key.iter().map(|key| key.expose_secret());
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
