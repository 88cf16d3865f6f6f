//! Sends one request to a model, with retries, and reports how the reply ended. The leaf that owns the connection: a
//! cancellation ends it here, and what arrived until then is the reply.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crow_core::text_tool_calls::{TextToolCallParser, render_tools_as_text};
use crow_core::{
    Failure, FailureKind, ModelEvent, ModelTranscript, Reply, ReplyBuilder, ReplyDelta, ReplyEnd, ToolSpec,
    without_images,
};
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Request, Response};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};
use tracing::Instrument as _;

use crate::api::{FinishReason, ModelApi, StreamError};
use crate::decoder::ReplyDecoder;
use crate::failure::{ErrorResponse, FailureContext};
use crate::http::{endpoint_url, is_on_local_network, request_headers};
use crate::price::apply_price;
use crate::recording::RequestRecording;
use crate::request_span::{record_first_output, record_reply, request_span};
use crate::retry::{
    FailedAttempt, FailureCause, ProviderOutage, next_retry_delay, parse_retry_after, retry_notice,
};
use crate::{EncodedMessages, HttpClients, ModelSettings, ToolCallMode, text_calls};

/// A model may think for minutes before its first token; a stream silent for longer is dead.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// A local server often has one slot: until it starts to answer it may be busy with other requests. A dead one is
/// noticed by the connection.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(1800);

/// After the model's own end only the usage and the end of the stream follow, which are sent at once. Some servers send
/// neither and leave the connection open.
const TRAILING_TIMEOUT: Duration = Duration::from_secs(10);

/// Space for the body of an error; only its first sentences are read.
const ERROR_BODY_LEN_MAX: usize = 64 * 1024;

/// An error body is sent at once; a slow one is judged by what has arrived.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Many times what any model sends at once; an endless reply must not fill the memory.
const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// After `[DONE]` only the end of the body follows; reading it keeps the connection for the next request.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The status of a response that turns out to be an error.
const STREAM_ERROR_STATUS: u16 = 200;

/// The receiver of a reply while it streams.
pub trait ReplyListener: Send {
    /// Receives the next delta.
    fn on_delta(&mut self, delta: ReplyDelta<'_>);
    /// Receives a notice for the user: a retry has to wait, or the reply was changed.
    fn on_notice(&mut self, notice: String);
    /// Called when the reply failed because its provider cannot answer now, after all retries: another model may.
    fn on_outage(&mut self, _reason: ProviderOutage) {}
    /// Waits for capacity; a slow listener slows the stream.
    fn wait_for_capacity(&mut self) -> impl Future<Output = ()> + Send;
}

/// One request to a model.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    pub settings: &'a ModelSettings,
    pub transcript: ModelTranscript<'a>,
    /// The tools offered.
    pub tools: &'a [ToolSpec],
    /// Sequence number of the reply in its session.
    pub seq: u64,
    /// The messages that earlier requests of the session have sent.
    pub encoded_messages: &'a EncodedMessages,
}

/// Sends a request to a model. Any error is in the end of the reply.
pub async fn stream_reply(
    http: &HttpClients,
    model_request: ModelRequest<'_>,
    listener: &mut impl ReplyListener,
    cancel: &CancellationToken,
) -> Reply {
    let span = request_span(model_request.settings);
    let reply = stream_with_retries(http, model_request, listener, cancel).instrument(span.clone()).await;
    record_reply(&span, &reply);
    Reply { usage: reply.usage.map(|usage| apply_price(usage, model_request.settings.price)), ..reply }
}

async fn stream_with_retries(
    http: &HttpClients,
    model_request: ModelRequest<'_>,
    listener: &mut impl ReplyListener,
    cancel: &CancellationToken,
) -> Reply {
    let failed_reply = |failure| ReplyBuilder::new(model_request.seq).into_reply(ReplyEnd::Failed(failure));
    let request = match build_request(model_request) {
        Ok(request) => request,
        Err(failure) => return failed_reply(failure),
    };
    let client = match http.client_for(request.url()).await {
        Ok(client) => client,
        Err(failure) => return failed_reply(failure),
    };
    let started_at = Instant::now();
    let mut previous_error = None;
    let mut n_failed = 0;
    loop {
        // A body in memory can always be sent again.
        let attempt_request =
            request.try_clone().unwrap_or_else(|| Request::new(Method::POST, request.url().clone()));
        let mut attempt = RequestAttempt {
            context: FailureContext::about_model(model_request.settings),
            api: model_request.settings.provider.api,
            first_byte_timeout: if is_on_local_network(request.url()) { QUEUE_TIMEOUT } else { IDLE_TIMEOUT },
            cancel: Box::pin(cancel.cancelled()),
            reply: ReplyBuilder::new(model_request.seq).with_model(model_request.settings.qualified_id()),
            text_calls: text_calls::text_call_parser(model_request.settings, model_request.tools),
            has_output: false,
            started_at,
            previous_error: &mut previous_error,
            recording: http.start_recording(&attempt_request, model_request.settings),
        };
        let end = attempt.run(http.send_request(client, attempt_request), listener).await;
        if matches!(end, AttemptEnd::Finished(ReplyEnd::Cancelled)) {
            // The task of the connection closes it now, and not after the caller has stored the reply.
            yield_now().await;
        }
        std::mem::take(&mut attempt.recording).finish().await;
        let failed = match end {
            AttemptEnd::Finished(end) => return attempt.finish(model_request, end, listener),
            AttemptEnd::Failed(failed) => failed,
        };
        n_failed += 1;
        let retries_max = model_request.settings.retries_max;
        let delay = next_retry_delay(n_failed, retries_max, &failed, http.retry_jitter())
            .filter(|_| !attempt.has_output);
        let Some(delay) = delay else {
            if let Some(reason) = failed.outage() {
                listener.on_outage(reason);
            }
            return attempt.finish(model_request, ReplyEnd::Failed(failed.failure), listener);
        };
        tracing::debug!(kind = %failed.failure.kind, n_failed, "repeating the request");
        listener.on_notice(retry_notice(&failed, delay, n_failed, retries_max));
        tokio::select! {
            biased;
            () = cancel.cancelled() => return ReplyBuilder::new(model_request.seq).into_reply(ReplyEnd::Cancelled),
            () = sleep(delay) => {}
        }
    }
}

fn build_request(model_request: ModelRequest<'_>) -> Result<Request, Failure> {
    let text_only = match model_request.settings.reads_images {
        true => None,
        false => without_images(model_request.transcript).map_err(|error| serialization_failure(&error))?,
    };
    let Some(text_only) = text_only else { return request_as_spelled(model_request) };
    let transcript = text_only.for_model().map_err(|error| serialization_failure(&error))?;
    request_as_spelled(ModelRequest { transcript, ..model_request })
}

/// Builds the request, with tool calls in the model's form.
fn request_as_spelled(model_request: ModelRequest<'_>) -> Result<Request, Failure> {
    if model_request.settings.tool_calls == ToolCallMode::Text {
        let with_text_tools = render_tools_as_text(model_request.transcript, model_request.tools)
            .map_err(|error| serialization_failure(&error))?;
        let transcript = with_text_tools.for_model().map_err(|error| serialization_failure(&error))?;
        return build_native_request(ModelRequest { transcript, tools: &[], ..model_request });
    }
    build_native_request(model_request)
}

/// Builds the request for a provider that supports tools, with the tools if there are any.
fn build_native_request(model_request: ModelRequest<'_>) -> Result<Request, Failure> {
    let provider = &model_request.settings.provider;
    let api = provider.api.definition();
    let ModelRequest { settings, transcript, tools, encoded_messages, .. } = model_request;
    let body = (api.build_body)(settings, transcript, tools, encoded_messages)
        .map_err(|error| serialization_failure(&error))?;
    let mut request = Request::new(Method::POST, endpoint_url(provider, api.path)?);
    *request.headers_mut() = request_headers(provider)?;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    *request.body_mut() = Some(body.into());
    Ok(request)
}

fn serialization_failure(error: &dyn std::error::Error) -> Failure {
    Failure::new(FailureKind::Internal, format!("the request could not be encoded: {error}"))
}

/// The end of one attempt.
enum AttemptEnd {
    /// Final.
    Finished(ReplyEnd),
    /// Another attempt may succeed.
    Failed(FailedAttempt),
}

impl From<FailedAttempt> for AttemptEnd {
    fn from(failed: FailedAttempt) -> Self {
        Self::Failed(failed)
    }
}

struct RequestAttempt<'a> {
    context: FailureContext<'a>,
    api: ModelApi,
    /// The timeout for the first byte.
    first_byte_timeout: Duration,
    cancel: Pin<Box<WaitForCancellationFuture<'a>>>,
    reply: ReplyBuilder,
    text_calls: TextToolCallParser<'a>,
    /// The user has seen part of this attempt.
    has_output: bool,
    /// The time of the first attempt.
    started_at: Instant,
    /// Status and body of the previous error.
    previous_error: &'a mut Option<(u16, String)>,
    recording: RequestRecording,
}

impl RequestAttempt<'_> {
    async fn run(
        &mut self,
        response: impl Future<Output = reqwest::Result<Response>>,
        listener: &mut impl ReplyListener,
    ) -> AttemptEnd {
        let started_at = Instant::now();
        let mut pending_response = Box::pin(response);
        let result = loop {
            // The user is told of a long wait, once for each interval that would be a timeout elsewhere.
            let timeout_left = IDLE_TIMEOUT.min(self.first_byte_timeout.saturating_sub(started_at.elapsed()));
            let result = tokio::select! {
                biased;
                () = &mut self.cancel => return AttemptEnd::Finished(ReplyEnd::Cancelled),
                answer = timeout(timeout_left, &mut pending_response) => answer,
            };
            let elapsed = started_at.elapsed();
            if result.is_ok() || elapsed >= self.first_byte_timeout {
                break result;
            }
            listener.on_notice(self.context.queue_notice(elapsed));
        };
        match &result {
            Ok(Ok(response)) => self.recording.on_response(response),
            Ok(Err(_)) | Err(_) => self.recording.on_interrupted(),
        }
        let end = match result {
            Err(_) => Err(self.context.explain_silence(self.first_byte_timeout).into()),
            Ok(Err(error)) => Err(self.context.explain_transport_error(error).into()),
            Ok(Ok(response)) if response.status().is_success() => self.read_stream(response, listener).await,
            Ok(Ok(response)) => Err(self.read_refusal_response(response).await),
        };
        end.unwrap_or_else(|end| end)
    }

    /// Reads the stream to its end. Leaving early drops the connection at once.
    #[expect(clippy::too_many_lines, reason = "one loop over what a stream may do")]
    async fn read_stream(
        &mut self,
        mut response: Response,
        listener: &mut impl ReplyListener,
    ) -> Result<AttemptEnd, AttemptEnd> {
        let mut decoder = ReplyDecoder::new(self.api);
        let mut transport_error = None;
        let mut last_event_at = Instant::now();
        let mut idle_timeout = self.first_byte_timeout;
        let mut idle_timer = Box::pin(sleep(idle_timeout));
        loop {
            let bytes = tokio::select! {
                biased;
                () = &mut self.cancel => return Err(AttemptEnd::Finished(ReplyEnd::Cancelled)),
                bytes = response.chunk() => bytes,
                () = &mut idle_timer => {
                    // Setting the timer only here keeps it off the path of each chunk.
                    if last_event_at.elapsed() >= idle_timeout {
                        if decoder.has_finish_reason() {
                            self.recording.on_complete();
                            break;
                        }
                        return Err(self.context.explain_silence(idle_timeout).into());
                    }
                    idle_timer.as_mut().reset(last_event_at + idle_timeout);
                    continue;
                }
            };
            self.recording.on_chunk(&bytes);
            let bytes = match bytes {
                Ok(Some(bytes)) => bytes,
                Ok(None) => break,
                Err(error) => {
                    transport_error = Some(error);
                    break;
                }
            };
            // Until the model's own end, comments are a sign of life too.
            let mut has_event = !decoder.has_finish_reason();
            let result = decoder.feed(&bytes, &mut |event| {
                has_event = true;
                self.forward_event(listener, event);
            });
            result.map_err(|error| self.stream_failure(&error))?;
            if has_event {
                last_event_at = Instant::now();
            }
            // It has started: from here on silence is not a queue.
            let timeout_now = if decoder.has_finish_reason() { TRAILING_TIMEOUT } else { IDLE_TIMEOUT };
            if idle_timeout != timeout_now {
                idle_timeout = timeout_now;
                idle_timer.as_mut().reset(last_event_at + idle_timeout);
            }
            if self.reply.n_bytes() > REPLY_BYTES_MAX {
                listener.on_notice(self.context.size_limit_notice(REPLY_BYTES_MAX));
                return Ok(AttemptEnd::Finished(ReplyEnd::SizeLimit));
            }
            tokio::select! {
                biased;
                () = &mut self.cancel => return Err(AttemptEnd::Finished(ReplyEnd::Cancelled)),
                () = listener.wait_for_capacity() => {}
            }
            if decoder.is_done() {
                drain_body(response, &mut self.recording);
                break;
            }
        }
        let finish_reason = decoder.finish(&mut |event| self.forward_event(listener, event));
        let finish_reason = finish_reason.map_err(|error| match (error, transport_error) {
            (StreamError::Incomplete, Some(transport_error)) => {
                self.context.explain_transport_error(transport_error).into()
            }
            (error, _) => self.stream_failure(&error),
        })?;
        Ok(AttemptEnd::Finished(match finish_reason {
            FinishReason::Complete => ReplyEnd::Complete,
            FinishReason::OutputLimit => ReplyEnd::OutputLimit,
            FinishReason::Refused => ReplyEnd::Refused,
        }))
    }

    async fn read_refusal_response(&mut self, response: Response) -> AttemptEnd {
        let code = response.status().as_u16();
        let retry_after = read_retry_after(response.headers());
        let mut body = Vec::new();
        tokio::select! {
            biased;
            () = &mut self.cancel => return AttemptEnd::Finished(ReplyEnd::Cancelled),
            // Late or broken, what arrived is explained.
            _ = timeout(ERROR_BODY_TIMEOUT, read_error_body(response, &mut body)) => {}
        }
        self.recording.on_bytes(&body);
        self.recording.on_complete();
        let body = String::from_utf8_lossy(&body).into_owned();
        let is_same = self.repeats_last_error(code, body);
        let body = self.previous_error.as_ref().map_or("", |(_, body)| body);
        self.context.explain_response(&ErrorResponse { code, body, retry_after, is_repeated: is_same }).into()
    }

    /// Stores an error; returns whether the previous one was the same.
    fn repeats_last_error(&mut self, code: u16, body: String) -> bool {
        let error = Some((code, body));
        let is_same = *self.previous_error == error;
        *self.previous_error = error;
        is_same
    }

    fn forward_event(&mut self, listener: &mut impl ReplyListener, event: ModelEvent<'_>) {
        let Self { text_calls, reply, has_output, started_at, .. } = self;
        text_calls.on_event(event, &mut |event| {
            if let Some(delta) = reply.on_event(event) {
                if !std::mem::replace(has_output, true) {
                    record_first_output(*started_at);
                }
                listener.on_delta(delta);
            }
        });
    }

    /// Ends the reply: withheld text is shown, or was a tool call.
    fn finish(
        self,
        model_request: ModelRequest<'_>,
        end: ReplyEnd,
        listener: &mut impl ReplyListener,
    ) -> Reply {
        let Self { text_calls, mut reply, .. } = self;
        let outcome = text_calls.finish(&end, model_request.transcript, &mut |event| {
            if let Some(delta) = reply.on_event(event) {
                listener.on_delta(delta);
            }
        });
        let reply = reply.into_reply(end);
        if let Some(notice) = text_calls::text_call_notice(&outcome, &reply, model_request) {
            listener.on_notice(notice);
        }
        reply
    }

    fn stream_failure(&mut self, error: &StreamError) -> AttemptEnd {
        let is_same = match error {
            StreamError::Provider(body) => self.repeats_last_error(STREAM_ERROR_STATUS, body.clone()),
            StreamError::UnexpectedFormat(_) | StreamError::TooLong | StreamError::Incomplete => false,
        };
        let failed = self.context.explain_stream_error(error, is_same);
        tracing::debug!(kind = %failed.failure.kind, is_cut = failed.cause == FailureCause::Disconnected, "the stream failed");
        failed.into()
    }
}

/// Reads the end of the body in the background: the reply does not wait for it.
fn drain_body(mut response: Response, recording: &mut RequestRecording) {
    recording.on_complete();
    tokio::spawn(async move {
        let remaining_body = async { while let Ok(Some(_)) = response.chunk().await {} };
        // A timeout only means that the next request opens a new connection.
        let _ = timeout(DRAIN_TIMEOUT, remaining_body).await;
    });
}

async fn read_error_body(mut response: Response, body: &mut Vec<u8>) {
    while let Ok(Some(bytes)) = response.chunk().await {
        let n_bytes_left = ERROR_BODY_LEN_MAX - body.len();
        body.extend_from_slice(&bytes[..bytes.len().min(n_bytes_left)]);
        if bytes.len() >= n_bytes_left {
            return;
        }
    }
}

pub(crate) fn read_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |value: Option<&HeaderValue>| value.and_then(|value| value.to_str().ok().map(str::to_owned));
    let after_ms = text(headers.get("retry-after-ms"));
    let after = text(headers.get(RETRY_AFTER));
    let date = text(headers.get(DATE));
    parse_retry_after(after_ms.as_deref(), after.as_deref(), date.as_deref())
}
