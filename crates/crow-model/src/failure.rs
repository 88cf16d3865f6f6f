//! Converts errors of a provider to failures with a message: which provider, what happened, and what to do. No
//! message contains a key, whatever the provider's text says.

mod error_body;
#[cfg(test)]
mod tests;
mod tls;

use std::error::Error;
use std::time::Duration;

use crow_core::{Failure, FailureKind};
use error_body::ErrorBody;
use tls::RejectedCertificate;

use crate::api::StreamError;
use crate::retry::{FailedAttempt, FailureCause, RETRY_AFTER_MAX};
use crate::{ModelApi, ModelSettings, ProviderSettings};

/// The length of a quotation from a provider.
const MESSAGE_CHARS_MAX: usize = 500;

/// Shorter header values are not secrets, and masking them would hide ordinary words.
const SECRET_LEN_MIN: usize = 8;

/// The provider and model for the messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailureContext<'a> {
    pub(crate) provider: &'a ProviderSettings,
    /// The model, unless the request concerned none in particular.
    pub(crate) model: Option<&'a ModelSettings>,
}

/// A response with an error status.
#[derive(Debug)]
pub(crate) struct ErrorResponse<'a> {
    pub(crate) code: u16,
    pub(crate) body: &'a str,
    /// The wait that the provider asked for.
    pub(crate) retry_after: Option<Duration>,
    /// The previous response was identical.
    pub(crate) is_repeated: bool,
}

impl<'a> FailureContext<'a> {
    /// Concerns a model.
    pub(crate) fn about_model(settings: &'a ModelSettings) -> Self {
        Self { provider: &settings.provider, model: Some(settings) }
    }

    /// Concerns a provider.
    pub(crate) fn about_provider(provider: &'a ProviderSettings) -> Self {
        Self { provider, model: None }
    }

    /// Explains a response with an error status.
    #[expect(clippy::too_many_lines, reason = "a table of status codes")]
    pub(crate) fn explain_response(self, answer: &ErrorResponse<'_>) -> FailedAttempt {
        let ErrorResponse { code, body, is_repeated, .. } = *answer;
        let error_body = ErrorBody::new(body);
        let detail = self.provider_phrase(body);
        let retry_after = answer.retry_after.or_else(|| error_body.retry_delay());
        let retryable = FailureCause::Status { code, retry_after };
        let (kind, cause, message) = match code {
            400..=403 | 429 if error_body.is_out_of_credit() => {
                (FailureKind::ProviderRate, FailureCause::Permanent, self.no_credit_message(code, &detail))
            }
            402 => {
                (FailureKind::ProviderRate, FailureCause::Permanent, self.no_credit_message(code, &detail))
            }
            400 | 403 if error_body.is_content_refusal() => (
                FailureKind::ProviderRejected,
                FailureCause::Permanent,
                self.content_refused_message(code, &detail),
            ),
            401 | 403 => {
                (FailureKind::ProviderAuth, FailureCause::Permanent, self.auth_message(code, &detail))
            }
            400 if error_body.is_invalid_key() => {
                (FailureKind::ProviderAuth, FailureCause::Permanent, self.auth_message(code, &detail))
            }
            413 => (
                FailureKind::ContextOverflow,
                FailureCause::Permanent,
                self.overflow_message(&error_body, &detail),
            ),
            400 | 422 | 429 | 500 if error_body.is_overflow() => (
                FailureKind::ContextOverflow,
                FailureCause::Permanent,
                self.overflow_message(&error_body, &detail),
            ),
            400 if error_body.is_malformed_call() => (
                FailureKind::Protocol,
                FailureCause::Disconnected,
                self.malformed_call_message(code, &detail),
            ),
            429 => {
                (FailureKind::ProviderRate, retryable, self.rate_limit_message(code, retry_after, &detail))
            }
            400 | 404 | 422 if error_body.is_without_tool_support() => (
                FailureKind::ProviderRejected,
                FailureCause::Permanent,
                self.bad_request_message(code, &error_body, &detail),
            ),
            400 | 404 | 422 if self.model.is_some() && error_body.is_unknown_model(code) => (
                FailureKind::ModelNotFound,
                FailureCause::Permanent,
                self.unknown_model_message(code, &detail),
            ),
            300..=399 | 404 | 405 => (
                FailureKind::ProviderRejected,
                FailureCause::Permanent,
                self.not_found_message(code, &detail),
            ),
            408 => (FailureKind::Connection, retryable, self.request_timeout_message(code, &detail)),
            500 if error_body.is_without_tool_support() => (
                FailureKind::ProviderRejected,
                FailureCause::Permanent,
                self.permanent_error_message(code, &error_body, &detail),
            ),
            // Behind a load balancer the next attempt may succeed; if none does, this is the explanation.
            500 if is_repeated => (
                FailureKind::ProviderRejected,
                retryable,
                self.permanent_error_message(code, &error_body, &detail),
            ),
            409 | 425 | 500.. => {
                (FailureKind::ProviderOverloaded, retryable, self.overloaded_message(code, &detail))
            }
            _ => (
                FailureKind::ProviderRejected,
                FailureCause::Permanent,
                self.bad_request_message(code, &error_body, &detail),
            ),
        };
        FailedAttempt { failure: Failure::new(kind, message), cause }
    }

    /// Explains a request without a response.
    pub(crate) fn explain_transport_error(self, error: reqwest::Error) -> FailedAttempt {
        // A URL may contain secrets.
        let error = error.without_url();
        let reason = self.redact_text(&root_cause(&error));
        let provider_name = &self.provider.name;
        let address = self.provider.display_address();
        let (kind, cause, message) = if error.is_builder() {
            let message = format!("the request to `{provider_name}` could not be made: {reason}");
            (FailureKind::Internal, FailureCause::Permanent, message)
        } else if let Some(rejected) = RejectedCertificate::find(&error) {
            let advice = rejected.advice();
            let message = format!("the certificate of `{provider_name}` at {address} {advice}");
            (FailureKind::Connection, FailureCause::Permanent, message)
        } else if error.is_connect() {
            let message = format!(
                "`{provider_name}` cannot be reached at {address}: {reason}; is it running, and is `base_url` right?"
            );
            (FailureKind::Connection, FailureCause::Unreachable, message)
        } else if error.is_timeout() {
            (
                FailureKind::Connection,
                FailureCause::TimedOut,
                format!("`{provider_name}` at {address} did not answer in time"),
            )
        } else {
            (
                FailureKind::Connection,
                FailureCause::Disconnected,
                format!("the connection to `{provider_name}` at {address} broke off: {reason}"),
            )
        };
        FailedAttempt { failure: Failure::new(kind, message), cause }
    }

    /// The notice that a local server has not started to answer.
    pub(crate) fn queue_notice(self, waited: Duration) -> String {
        let (provider_name, waited) = (&self.provider.name, waited.as_secs());
        format!(
            "`{provider_name}` has not started to answer after {waited} s; it may be busy with another request"
        )
    }

    /// Explains a provider that stopped sending.
    pub(crate) fn explain_silence(self, waited: Duration) -> FailedAttempt {
        let provider_name = &self.provider.name;
        let message = format!("`{provider_name}` sent nothing for {} s; try again", waited.as_secs());
        FailedAttempt {
            failure: Failure::new(FailureKind::Connection, message),
            cause: FailureCause::TimedOut,
        }
    }

    /// Explains a stream that is not a reply. `is_same`: the previous attempt ended with the same error.
    pub(crate) fn explain_stream_error(self, error: &StreamError, is_repeated: bool) -> FailedAttempt {
        let provider_name = &self.provider.name;
        let (kind, cause, message) = match error {
            StreamError::Incomplete => (
                FailureKind::Connection,
                FailureCause::Disconnected,
                format!("the response of `{provider_name}` broke off; try again"),
            ),
            StreamError::TooLong => (
                FailureKind::Protocol,
                FailureCause::Permanent,
                format!(
                    "`{provider_name}` sent an event that is too long to be a reply{}; use another model",
                    self.model_phrase()
                ),
            ),
            StreamError::UnexpectedFormat(quote) => {
                let detail = self.provider_phrase(quote);
                let message = format!(
                    "`{provider_name}` answered with something that is not a completion{detail}; check its `base_url`"
                );
                (FailureKind::Protocol, FailureCause::Permanent, message)
            }
            StreamError::Provider(error) => {
                let code = ErrorBody::new(error).status_code();
                return self.explain_response(&ErrorResponse {
                    code,
                    body: error,
                    retry_after: None,
                    is_repeated,
                });
            }
        };
        FailedAttempt { failure: Failure::new(kind, message), cause }
    }

    /// The notice that Crow cut off a reply.
    pub(crate) fn size_limit_notice(self, n_bytes_max: usize) -> String {
        let (provider_name, n_mib) = (&self.provider.name, n_bytes_max / (1024 * 1024));
        format!(
            "the reply of `{provider_name}`{} was cut at {n_mib} MiB; no reply may be larger",
            self.model_phrase()
        )
    }

    fn auth_message(self, code: u16, detail: &str) -> String {
        let provider_name = &self.provider.name;
        match (&self.provider.api_key, &self.provider.key_variable) {
            (Some(_), Some(variable)) => {
                format!(
                    "`{provider_name}` rejected the key in {variable} ({code}){detail}; check that it is valid{}",
                    self.access_phrase()
                )
            }
            (Some(_), None) => {
                format!(
                    "`{provider_name}` rejected the configured key ({code}){detail}; check that it is valid{}",
                    self.access_phrase()
                )
            }
            (None, Some(variable)) => {
                format!("`{provider_name}` needs a key ({code}){detail}; set {variable}")
            }
            (None, None) => {
                format!("`{provider_name}` needs a key ({code}){detail}; configure its `api_key`")
            }
        }
    }

    fn access_phrase(self) -> String {
        self.model.map(|model| format!(" and may use `{}`", model.model)).unwrap_or_default()
    }

    fn model_phrase(self) -> String {
        self.model.map(|model| format!(" for `{}`", model.model)).unwrap_or_default()
    }

    /// The key, by the variable it comes from.
    fn key_phrase(self) -> String {
        match &self.provider.key_variable {
            Some(variable) => format!("the key in {variable}"),
            None => "this key".to_owned(),
        }
    }

    fn no_credit_message(self, code: u16, detail: &str) -> String {
        let (provider_name, key) = (&self.provider.name, self.key_phrase());
        format!("`{provider_name}` has no credit left for {key} ({code}){detail}; check its plan and billing")
    }

    fn content_refused_message(self, code: u16, detail: &str) -> String {
        let (provider_name, model) = (&self.provider.name, self.model_phrase());
        format!(
            "`{provider_name}` rejected the content of the conversation{model} ({code}){detail}; rephrase it or use another model"
        )
    }

    fn rate_limit_message(self, code: u16, retry_after: Option<Duration>, detail: &str) -> String {
        let (provider_name, model) = (&self.provider.name, self.model_phrase());
        let advice = match retry_after.filter(|delay| *delay > RETRY_AFTER_MAX) {
            Some(delay) => {
                format!("try again in {} minutes, or use another model", delay.as_secs().div_ceil(60))
            }
            None => "wait or use another model".to_owned(),
        };
        format!("`{provider_name}` limits the request rate{model} ({code}){detail}; {advice}")
    }

    fn request_timeout_message(self, code: u16, detail: &str) -> String {
        format!("`{}` timed out waiting for the request ({code}){detail}; try again", self.provider.name)
    }

    fn overloaded_message(self, code: u16, detail: &str) -> String {
        let (provider_name, model) = (&self.provider.name, self.model_phrase());
        format!("`{provider_name}` is overloaded or failing{model} ({code}){detail}; try again later")
    }

    fn malformed_call_message(self, code: u16, detail: &str) -> String {
        let (provider_name, model) = (&self.provider.name, self.model_phrase());
        format!(
            "`{provider_name}` could not parse a tool call that the model wrote{model} ({code}){detail}; try again"
        )
    }

    fn permanent_error_message(self, code: u16, error_body: &ErrorBody<'_>, detail: &str) -> String {
        let (provider_name, model) = (&self.provider.name, self.model_phrase());
        let advice = self.advice_phrase(error_body, "use another model");
        format!("`{provider_name}` fails for this request{model} every time ({code}){detail}; {advice}")
    }

    fn bad_request_message(self, code: u16, error_body: &ErrorBody<'_>, detail: &str) -> String {
        let (provider_name, model) = (&self.provider.name, self.model_phrase());
        let advice = self.advice_phrase(error_body, "check its settings in the configuration");
        format!("`{provider_name}` rejected the request{model} ({code}){detail}; {advice}")
    }

    /// The setting to change, or other advice.
    fn advice_phrase(self, error_body: &ErrorBody<'_>, default_advice: &str) -> String {
        match (error_body.suggested_setting(), self.model) {
            (Some(setting), Some(model)) => {
                format!("try {setting} for `{}` in the configuration", model.name)
            }
            _ => default_advice.to_owned(),
        }
    }

    fn not_found_message(self, code: u16, detail: &str) -> String {
        let (provider_name, address) = (&self.provider.name, self.provider.display_address());
        if code < 400 {
            return format!(
                "`{provider_name}` is no longer at {address} ({code}){detail}; correct its `base_url`"
            );
        }
        format!(
            "`{provider_name}` has nothing at {address} ({code}){detail}; check its `base_url`{}",
            self.api_phrase()
        )
    }

    /// A non-default API may be the wrong one.
    fn api_phrase(self) -> String {
        let api = self.provider.api;
        if api == ModelApi::default() {
            return String::new();
        }
        format!(", and whether it speaks `api: {}`", api.as_str())
    }

    fn unknown_model_message(self, code: u16, detail: &str) -> String {
        let provider_name = &self.provider.name;
        match self.model {
            Some(model) => {
                let (model_id, name) = (&model.model, &model.name);
                format!(
                    "`{provider_name}` has no model `{model_id}` ({code}){detail}; correct the model of `{name}` in the configuration"
                )
            }
            None => format!("`{provider_name}` has no such model ({code}){detail}"),
        }
    }

    fn overflow_message(self, error_body: &ErrorBody<'_>, detail: &str) -> String {
        let model_suffix = self.model.map(|model| format!(" of `{}`", model.model)).unwrap_or_default();
        let provider_name = &self.provider.name;
        match error_body.token_counts() {
            Some((prompt, window)) => format!(
                "the conversation ({prompt} tokens) is longer than the window{model_suffix} at `{provider_name}` ({window} tokens); \
                 make it shorter with /compact or send a shorter prompt"
            ),
            None if error_body.exceeds_other_limit() => format!(
                "the conversation is longer than `{provider_name}` accepts at once{}{detail}; make it shorter with /compact or send a shorter prompt",
                self.model_phrase()
            ),
            None => format!(
                "the conversation is longer than the window{model_suffix} at `{provider_name}`{detail}; make it shorter with /compact or send a shorter prompt"
            ),
        }
    }

    /// The provider's own message, ready to follow ours.
    fn provider_phrase(self, body: &str) -> String {
        let message = self.redact_text(&ErrorBody::new(body).message_text());
        if message.is_empty() { String::new() } else { format!(": {message}") }
    }

    /// Removes secrets and control characters, and truncates.
    fn redact_text(self, text: &str) -> String {
        let mut text = text.to_owned();
        let key = self.provider.api_key.iter().map(|key| key.expose_secret());
        // A provider quotes only the key of `Bearer KEY`.
        let with_words = |value: &'a str| std::iter::once(value).chain(value.split_whitespace());
        let headers = self.provider.headers.iter().flat_map(|(_, value)| with_words(value));
        for secret in key.chain(headers.filter(|value| value.len() >= SECRET_LEN_MIN)) {
            if !secret.is_empty() {
                text = text.replace(secret, "…");
            }
        }
        let plain = text.replace(|c: char| c.is_control(), " ");
        let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
        match plain.char_indices().nth(MESSAGE_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &plain[..end]),
            None => plain.trim_end_matches('.').to_owned(),
        }
    }
}

/// The innermost error: the outer ones only say that something failed.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let text = cause.to_string();
    // `Connection refused (os error 111)`: the number does not help.
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}
