//! Fallback models, which answer when the provider of a session's own model is overloaded or has no credit left. A
//! fallback that answered stays until the end of the turn.

use std::sync::{Mutex, PoisonError};

use crow_core::{Reply, ReplyDelta, ReplyEnd};
use tokio_util::sync::CancellationToken;

use crate::http::HttpClients;
use crate::reply_stream::{ModelRequest, ReplyListener, stream_reply};
use crate::retry::ProviderOutage;
use crate::settings::ModelSettings;

/// The size of a request, and the limits of its reply, whichever model answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestBounds {
    /// Tokens in the context.
    pub n_tokens: u64,
    /// Maximum tokens of the reply.
    pub reply_tokens_max: Option<u64>,
    pub temperature: Option<f64>,
}

impl RequestBounds {
    /// Applies the limits of the reply to the settings of a model.
    fn apply_to(self, mut model: ModelSettings) -> ModelSettings {
        if let Some(tokens_max) = self.reply_tokens_max {
            model.max_tokens = Some(model.max_tokens.unwrap_or(u64::MAX).min(tokens_max));
        }
        model.temperature = self.temperature.or(model.temperature);
        model
    }
}

/// The fallback that answers in a turn, if there is one.
#[derive(Debug, Default)]
pub struct CurrentFallback(Mutex<Option<Substitute>>);

#[derive(Debug)]
struct Substitute {
    model: String,
    name: String,
}

impl CurrentFallback {
    /// Returns the name of the fallback that now answers for a model.
    pub fn substitute_of(&self, model: &str) -> Option<String> {
        let substitute = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        substitute
            .as_ref()
            .filter(|substitute| substitute.model == model)
            .map(|substitute| substitute.name.clone())
    }

    fn set_substitute(&self, model: &str, name: &str) {
        let substitute = Substitute { model: model.to_owned(), name: name.to_owned() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(substitute);
    }
}

/// The models that may answer in place of a session's own model.
pub struct FallbackChain<'a, F> {
    /// The session's own model, which names its fallbacks.
    pub session_model: &'a ModelSettings,
    pub current: &'a CurrentFallback,
    /// Returns the settings of the fallback of this name for a context of so many tokens, or the reason why it cannot
    /// answer.
    pub find_fallback: F,
    /// Cancels the request, and with it the use of fallbacks.
    pub cancel: &'a CancellationToken,
}

/// Sends a request to a model, and to its fallbacks in order if its provider cannot answer now and none of the reply was
/// shown. Any error is in the end of the reply.
pub async fn stream_with_fallbacks(
    http: &HttpClients,
    request: ModelRequest<'_>,
    bounds: RequestBounds,
    chain: FallbackChain<'_, impl Fn(&str, u64) -> Result<ModelSettings, String>>,
    listener: &mut impl ReplyListener,
) -> Reply {
    let FallbackChain { session_model, current, find_fallback, cancel } = chain;
    let requested_name = request.settings.name.as_str();
    let answered_by = |name: &str| Some(name.to_owned()).filter(|name| *name != session_model.name);
    let mut listener = OutageListener { listener, outage: None };
    let settings = bounds.apply_to(request.settings.clone());
    let first_request = ModelRequest { settings: &settings, ..request };
    let first_reply = stream_reply(http, first_request, &mut listener, cancel).await;
    let outage = listener.outage.filter(|_| first_reply.is_empty() && !cancel.is_cancelled());
    let Some(outage) = outage else {
        return Reply { fallback_model: answered_by(requested_name), ..first_reply };
    };
    let state = match outage {
        ProviderOutage::Overloaded => "is overloaded",
        ProviderOutage::OutOfCredit => "has no credit left",
    };
    for name in session_model.fallbacks.iter().filter(|name| *name != requested_name) {
        let model = match find_fallback(name, bounds.n_tokens) {
            Ok(model) => bounds.apply_to(model),
            Err(reason) => {
                listener.on_notice(format!("The fallback {name} was skipped: {reason}."));
                continue;
            }
        };
        listener.on_notice(format!("The provider of {requested_name} {state}; {name} answers instead."));
        let model_request = ModelRequest { settings: &model, ..request };
        let reply = stream_reply(http, model_request, &mut listener, cancel).await;
        match &reply.end {
            ReplyEnd::Failed(failure) if reply.is_empty() => {
                let reason = failure.message.trim_end_matches('.');
                listener.on_notice(format!("The fallback {name} did not answer: {reason}."));
            }
            ReplyEnd::Complete
            | ReplyEnd::OutputLimit
            | ReplyEnd::SizeLimit
            | ReplyEnd::Refused
            | ReplyEnd::Cancelled
            | ReplyEnd::Failed(_) => {
                current.set_substitute(&session_model.name, name);
                return Reply { fallback_model: answered_by(name), ..reply };
            }
        }
    }
    first_reply
}

/// Forwards to another listener and remembers that the provider cannot answer now.
struct OutageListener<'a, L> {
    listener: &'a mut L,
    outage: Option<ProviderOutage>,
}

impl<L: ReplyListener> ReplyListener for OutageListener<'_, L> {
    fn on_delta(&mut self, delta: ReplyDelta<'_>) {
        self.listener.on_delta(delta);
    }

    fn on_notice(&mut self, notice: String) {
        self.listener.on_notice(notice);
    }

    fn on_outage(&mut self, outage: ProviderOutage) {
        self.outage = Some(outage);
    }

    fn wait_for_capacity(&mut self) -> impl Future<Output = ()> + Send {
        self.listener.wait_for_capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ModelApi;
    use crate::settings::ProviderSettings;

    #[test]
    fn limits_of_a_reply_hold_for_each_model() {
        let model = |max_tokens, temperature| {
            let provider = ProviderSettings {
                name: "p".to_owned(),
                base_url: "http://127.0.0.1:9/v1".to_owned(),
                api: ModelApi::default(),
                api_key: None,
                key_variable: None,
                headers: Vec::new(),
            };
            ModelSettings { max_tokens, temperature, ..ModelSettings::new(provider, "m") }
        };
        let bounds =
            RequestBounds { reply_tokens_max: Some(200), temperature: Some(0.5), ..RequestBounds::default() };
        assert_eq!(bounds.apply_to(model(None, None)), model(Some(200), Some(0.5)));
        assert_eq!(bounds.apply_to(model(Some(100), Some(1.0))), model(Some(100), Some(0.5)));
        let own = model(Some(8000), Some(1.0));
        assert_eq!(RequestBounds::default().apply_to(own.clone()), own);
    }
}
