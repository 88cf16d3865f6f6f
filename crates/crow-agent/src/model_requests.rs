//! The requests of a turn to a model: to the session's own, or to its fallbacks.

use crow_core::{Failure, FailureKind, Reply, ReplyBuilder, ReplyDelta, ReplyEnd, SessionUpdate, Transcript};
use crow_model::{
    EncodedMessages, FallbackChain, ModelRequest, ModelSettings, ReplyListener, RequestBounds,
    stream_with_fallbacks,
};

use crate::turn_context::{TurnCx, limit_of};

impl TurnCx<'_> {
    /// Sends a request to a model, or to a fallback of the session's own model.
    pub(crate) async fn send_model_request(
        &self,
        request: ModelRequest<'_>,
        bounds: RequestBounds,
        listener: &mut impl ReplyListener,
    ) -> Result<Reply, Failure> {
        let http = self.runtime.http_client().await?;
        // If the configuration has changed since, the request's own settings are all there is.
        let session_model = self.own_model().unwrap_or_else(|_| request.settings.clone());
        let chain = FallbackChain {
            session_model: &session_model,
            current: self.fallback,
            find_fallback: |name: &str, n_tokens| self.find_fallback(name, n_tokens),
            cancel: self.cancel,
        };
        Ok(stream_with_fallbacks(http, request, bounds, chain, listener).await)
    }

    /// Returns the settings of a fallback, or the reason why it cannot answer.
    fn find_fallback(&self, name: &str, n_tokens: u64) -> Result<ModelSettings, String> {
        if self.is_over() {
            return Err("the turn has ended".to_owned());
        }
        let model = self.model_named(Some(name)).map_err(|failure| failure.message)?;
        if let Some(variable) = model.missing_key() {
            return Err(format!("its key {variable} is not set"));
        }
        let limit = limit_of(self.runtime.config().limits, &model);
        match n_tokens <= limit {
            true => Ok(model),
            false => Err(format!("the context has {n_tokens} tokens, and its limit is {limit}")),
        }
    }

    /// Sends a request outside the session; its reply is not shown. The size in `bounds` is that of the transcript.
    pub(crate) async fn send_side_request(
        &self,
        model: &ModelSettings,
        transcript: &Transcript,
        bounds: RequestBounds,
    ) -> Reply {
        let seq = transcript.next_seq();
        let bounds = RequestBounds { n_tokens: transcript.context_tokens().tokens, ..bounds };
        let request = async {
            let transcript = transcript.for_model();
            let transcript =
                transcript.map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
            let encoded_messages = &EncodedMessages::default();
            let request = ModelRequest { settings: model, transcript, tools: &[], seq, encoded_messages };
            self.send_model_request(request, bounds, &mut SilentListener { cx: self }).await
        };
        let reply = request
            .await
            .unwrap_or_else(|failure| ReplyBuilder::new(seq).into_reply(ReplyEnd::Failed(failure)));
        if let Some(usage) = reply.usage {
            self.add_side_usage(usage).await;
        }
        reply
    }
}

/// Shows nothing of the reply, only notices.
struct SilentListener<'a> {
    cx: &'a TurnCx<'a>,
}

impl ReplyListener for SilentListener<'_> {
    fn on_delta(&mut self, _: ReplyDelta<'_>) {}

    fn on_notice(&mut self, notice: String) {
        self.cx.client.send_update(self.cx.session, SessionUpdate::Notice(notice));
    }

    async fn wait_for_capacity(&mut self) {}
}
