//! Fallback models, which answer when the provider of the session's own model is overloaded or has no credit left. A
//! fallback that answered stays until the end of the turn; the next prompt starts with the session's own model again.

use crow_core::{Reply, ReplyDelta, ReplyEnd, SessionUpdate};
use crow_model::{HttpClients, ModelRequest, ModelSettings, ProviderOutage, ReplyListener};

use crate::turn_context::TurnCx;
use crate::turn_context::limit_of;

/// The size of a request, and the limits of its reply, whichever model answers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestBounds {
    /// Tokens in the context.
    pub(crate) n_tokens: u64,
    /// Maximum tokens of the reply.
    pub(crate) reply_tokens_max: Option<u64>,
    pub(crate) temperature: Option<f64>,
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

/// Sends a request to a model, and to its fallbacks in order if its provider cannot answer now and none of the reply was
/// shown.
pub(crate) async fn ask(
    cx: &TurnCx<'_>,
    http: &HttpClients,
    bounds: RequestBounds,
    request: ModelRequest<'_>,
    listener: &mut impl ReplyListener,
) -> Reply {
    let session_model = match cx.own_model() {
        Ok(session_model) => session_model,
        // The configuration has changed since; the request's own settings are all there is.
        Err(_) => request.settings.clone(),
    };
    let requested_name = request.settings.name.as_str();
    let answered_by = |name: &str| Some(name.to_owned()).filter(|name| *name != session_model.name);
    let mut watcher = Watched { listener, outage: None };
    let settings = bounds.apply_to(request.settings.clone());
    let first_request = ModelRequest { settings: &settings, ..request };
    let first_reply = crow_model::stream_reply(http, first_request, &mut watcher, cx.cancel).await;
    let reason = watcher.outage.filter(|_| first_reply.is_empty() && !cx.is_over());
    let Some(reason) = reason else {
        return Reply { fallback_model: answered_by(requested_name), ..first_reply };
    };
    let state = match reason {
        ProviderOutage::Overloaded => "is overloaded",
        ProviderOutage::OutOfCredit => "has no credit left",
    };
    for name in session_model.fallbacks.iter().filter(|name| *name != requested_name) {
        let model = match candidate(cx, name, bounds.n_tokens) {
            Ok(model) => bounds.apply_to(model),
            Err(reason) => {
                tell(cx, format!("The fallback {name} was skipped: {reason}."));
                continue;
            }
        };
        tell(cx, format!("The provider of {requested_name} {state}; {name} answers instead."));
        let reply = crow_model::stream_reply(
            http,
            ModelRequest { settings: &model, ..request },
            &mut watcher,
            cx.cancel,
        )
        .await;
        match &reply.end {
            ReplyEnd::Failed(failure) if reply.is_empty() => {
                let reason = failure.message.trim_end_matches('.');
                tell(cx, format!("The fallback {name} did not answer: {reason}."));
            }
            ReplyEnd::Complete
            | ReplyEnd::OutputLimit
            | ReplyEnd::SizeLimit
            | ReplyEnd::Refused
            | ReplyEnd::Cancelled
            | ReplyEnd::Failed(_) => {
                cx.fallback.set(&session_model.name, name);
                return Reply { fallback_model: answered_by(name), ..reply };
            }
        }
    }
    first_reply
}

/// Returns the settings of a fallback, or the reason why it cannot answer.
fn candidate(cx: &TurnCx<'_>, name: &str, n_tokens: u64) -> Result<ModelSettings, String> {
    let model = cx.model_named(Some(name)).map_err(|failure| failure.message)?;
    if let Some(variable) = model.missing_key() {
        return Err(format!("its key {variable} is not set"));
    }
    let limit = limit_of(cx.runtime.config().limits, &model);
    match n_tokens <= limit {
        true => Ok(model),
        false => Err(format!("the context has {n_tokens} tokens, and its limit is {limit}")),
    }
}

fn tell(cx: &TurnCx<'_>, notice: String) {
    cx.client.send_update(cx.session, SessionUpdate::Notice(notice));
}

/// Forwards to another listener and remembers that the provider cannot answer now.
struct Watched<'a, L> {
    listener: &'a mut L,
    outage: Option<ProviderOutage>,
}

impl<L: ReplyListener> ReplyListener for Watched<'_, L> {
    fn on_delta(&mut self, delta: ReplyDelta<'_>) {
        self.listener.on_delta(delta);
    }

    fn on_notice(&mut self, notice: String) {
        self.listener.on_notice(notice);
    }

    fn on_outage(&mut self, reason: ProviderOutage) {
        self.outage = Some(reason);
    }

    fn wait_for_capacity(&mut self) -> impl Future<Output = ()> + Send {
        self.listener.wait_for_capacity()
    }
}

#[cfg(test)]
mod tests {
    use crow_model::{ModelApi, ProviderSettings};

    use super::*;

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
