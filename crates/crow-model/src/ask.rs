//! Asks a model once, with its retries, and reports how the reply ended. The leaf that owns the connection:
//! a cut ends it here, and what arrived until then is the reply.

use std::future::Future;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::pin::Pin;
use std::time::Duration;

use crow_core::leaked::{TextToolCallParser, render_tools_as_text};
use crow_core::{
    Failure, FailureKind, ModelEvent, ModelTranscript, Reply, ReplyBuilder, ReplyDelta, ReplyEnd, ToolSpec,
    without_images,
};
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Request, Response};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::decoder::{FinishReason, ReplyDecoder, StreamError};
use crate::failure::{ErrorResponse, FailureContext};
use crate::http::{endpoint_url, is_on_local_network, request_headers};
use crate::price::apply_price;
use crate::record::RequestRecording;
use crate::retry::{FailedAttempt, FailureCause, next_retry_delay, parse_retry_after, retry_notice};
use crate::{HttpClients, ModelApi, ModelSettings, ToolCallMode, chat, leaked, messages, responses};

/// A model may think for minutes before its first word; a stream silent for longer is dead.
const IDLE_MAX: Duration = Duration::from_secs(300);

/// A server near by often has one slot: until it begins to answer it may be busy with others. A dead one is
/// noticed by the connection.
const QUEUE_MAX: Duration = Duration::from_secs(1800);

/// Room for the body of a refusal; only its first sentences are read.
const REFUSAL_LEN_MAX: usize = 64 * 1024;

/// A refusal is sent in one go; one that dawdles is judged by what came.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Many times what any model says at once; one that never ends must not fill the memory.
const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// After `[DONE]` only the end of the body is to come; reading it keeps the connection for the next request.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// What an answer begins with that turns out to be an error.
const CODE_OF_STREAM: u16 = 200;

/// Who hears a reply while it arrives.
pub trait ReplyListener: Send {
    /// Takes the next words.
    fn on_delta(&mut self, delta: ReplyDelta<'_>);
    /// Takes a notice for the person: the next try has to wait, or the reply was not taken as it came.
    fn on_notice(&mut self, notice: String);
    /// Hears that the reply failed because its provider is overloaded, after all tries: another model may answer.
    fn overloaded(&mut self) {}
    /// Waits until more can be taken; a slow listener slows the stream.
    fn wait_for_capacity(&mut self) -> impl Future<Output = ()> + Send;
}

/// One question to a model.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// Which model, and how.
    pub settings: &'a ModelSettings,
    /// The conversation so far.
    pub transcript: ModelTranscript<'a>,
    /// The tools on offer.
    pub tools: &'a [ToolSpec],
    /// The place the reply takes in its session.
    pub seq: u64,
}

/// Asks a model. Whatever goes wrong, the reply says so in how it ended.
pub async fn stream_reply(
    http: &HttpClients,
    ask: ModelRequest<'_>,
    listener: &mut impl ReplyListener,
    cut: &CancellationToken,
) -> Reply {
    let reply = stream_with_retries(http, ask, listener, cut).await;
    Reply { usage: reply.usage.map(|usage| apply_price(usage, ask.settings.price)), ..reply }
}

async fn stream_with_retries(
    http: &HttpClients,
    ask: ModelRequest<'_>,
    listener: &mut impl ReplyListener,
    cut: &CancellationToken,
) -> Reply {
    let request = match build_request(ask) {
        Ok(request) => request,
        Err(failure) => return ReplyBuilder::new(ask.seq).into_reply(ReplyEnd::Failed(failure)),
    };
    let client = http.client_for(request.url());
    let mut said_before = None;
    let mut n_failed = 0;
    loop {
        // Bytes in memory can always be sent once more.
        let again = request.try_clone().unwrap_or_else(|| Request::new(Method::POST, request.url().clone()));
        let mut one = RequestAttempt {
            asked: FailureContext::about_model(ask.settings),
            api: ask.settings.provider.api,
            begin_max: if is_on_local_network(request.url()) { QUEUE_MAX } else { IDLE_MAX },
            cut: Box::pin(cut.cancelled()),
            reply: ReplyBuilder::new(ask.seq).with_model(ask.settings.qualified_id()),
            sieve: leaked::text_call_parser(ask.settings, ask.tools),
            was_heard: false,
            said_before: &mut said_before,
            recording: http.start_recording(&again, ask.settings),
        };
        let ended = one.run(client, again, listener).await;
        std::mem::take(&mut one.recording).finish().await;
        let tried = match ended {
            AttemptEnd::Over(ended) => return one.finish(ask, ended, listener),
            AttemptEnd::Failed(tried) => tried,
        };
        n_failed += 1;
        let retries_max = ask.settings.retries_max;
        let wait =
            next_retry_delay(n_failed, retries_max, &tried, random_jitter()).filter(|_| !one.was_heard);
        let Some(wait) = wait else {
            if tried.is_overload() {
                listener.overloaded();
            }
            return one.finish(ask, ReplyEnd::Failed(tried.failure), listener);
        };
        tracing::debug!(kind = %tried.failure.kind, n_failed, "asking the model again");
        listener.on_notice(retry_notice(&tried, wait, n_failed, retries_max));
        tokio::select! {
            biased;
            () = cut.cancelled() => return ReplyBuilder::new(ask.seq).into_reply(ReplyEnd::Cancelled),
            () = sleep(wait) => {}
        }
    }
}

fn build_request(ask: ModelRequest<'_>) -> Result<Request, Failure> {
    let text_only = match ask.settings.reads_images {
        true => None,
        false => without_images(ask.transcript).map_err(|error| serialization_failure(&error))?,
    };
    let Some(text_only) = text_only else { return request_as_spelled(ask) };
    let transcript = text_only.for_model().map_err(|open| serialization_failure(&open))?;
    request_as_spelled(ModelRequest { transcript, ..ask })
}

/// The request in the way in which the model spells calls.
fn request_as_spelled(ask: ModelRequest<'_>) -> Result<Request, Failure> {
    if ask.settings.tool_calls == ToolCallMode::Text {
        let spelled =
            render_tools_as_text(ask.transcript, ask.tools).map_err(|error| serialization_failure(&error))?;
        let transcript = spelled.for_model().map_err(|open| serialization_failure(&open))?;
        return build_native_request(ModelRequest { transcript, tools: &[], ..ask });
    }
    build_native_request(ask)
}

/// The request for a provider that takes tools, if there are any.
fn build_native_request(ask: ModelRequest<'_>) -> Result<Request, Failure> {
    let provider = &ask.settings.provider;
    let (path, body): (&[&str], _) = match provider.api {
        ModelApi::Chat => {
            (&["chat", "completions"], chat::build_body(ask.settings, ask.transcript, ask.tools))
        }
        ModelApi::Messages => (&["messages"], messages::build_body(ask.settings, ask.transcript, ask.tools)),
        ModelApi::Responses => {
            (&["responses"], responses::build_body(ask.settings, ask.transcript, ask.tools))
        }
    };
    let body = body.map_err(|error| serialization_failure(&error))?;
    let mut request = Request::new(Method::POST, endpoint_url(provider, path)?);
    *request.headers_mut() = request_headers(provider)?;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    *request.body_mut() = Some(body.into());
    Ok(request)
}

fn serialization_failure(error: &dyn std::error::Error) -> Failure {
    Failure::new(FailureKind::Internal, format!("the request could not be written: {error}"))
}

/// A number from 0 to 1 by chance; the hasher's keys are as good as any.
fn random_jitter() -> f64 {
    let chance = RandomState::new().build_hasher().finish();
    f64::from((chance >> 32) as u32) / f64::from(u32::MAX)
}

/// How one try ended.
enum AttemptEnd {
    /// For good.
    Over(ReplyEnd),
    /// Perhaps another goes better.
    Failed(FailedAttempt),
}

impl From<FailedAttempt> for AttemptEnd {
    fn from(tried: FailedAttempt) -> Self {
        Self::Failed(tried)
    }
}

struct RequestAttempt<'a> {
    asked: FailureContext<'a>,
    api: ModelApi,
    /// How long to wait for the first byte.
    begin_max: Duration,
    cut: Pin<Box<WaitForCancellationFuture<'a>>>,
    reply: ReplyBuilder,
    sieve: TextToolCallParser<'a>,
    /// A person has seen something of this try.
    was_heard: bool,
    /// Status and body of the refusal before.
    said_before: &'a mut Option<(u16, String)>,
    recording: RequestRecording,
}

impl RequestAttempt<'_> {
    async fn run(
        &mut self,
        client: &Client,
        request: Request,
        listener: &mut impl ReplyListener,
    ) -> AttemptEnd {
        let began_at = Instant::now();
        let mut sent = Box::pin(client.execute(request));
        let answer = loop {
            // A person is told of a long wait, once for each time that would be too long elsewhere.
            let patience = IDLE_MAX.min(self.begin_max.saturating_sub(began_at.elapsed()));
            let answer = tokio::select! {
                biased;
                () = &mut self.cut => return AttemptEnd::Over(ReplyEnd::Cancelled),
                answer = timeout(patience, &mut sent) => answer,
            };
            let waited = began_at.elapsed();
            if answer.is_ok() || waited >= self.begin_max {
                break answer;
            }
            listener.on_notice(self.asked.queue_notice(waited));
        };
        match &answer {
            Ok(Ok(response)) => self.recording.on_response(response),
            Ok(Err(_)) | Err(_) => self.recording.on_interrupted(),
        }
        let ended = match answer {
            Err(_) => Err(self.asked.explain_silence(self.begin_max).into()),
            Ok(Err(error)) => Err(self.asked.explain_transport_error(error).into()),
            Ok(Ok(response)) if response.status().is_success() => self.read_stream(response, listener).await,
            Ok(Ok(response)) => Err(self.read_refusal_response(response).await),
        };
        ended.unwrap_or_else(|end| end)
    }

    /// Reads the stream to its end. Leaving it early drops the connection at once.
    async fn read_stream(
        &mut self,
        mut response: Response,
        listener: &mut impl ReplyListener,
    ) -> Result<AttemptEnd, AttemptEnd> {
        let mut decoder = ReplyDecoder::new(self.api);
        let mut broken = None;
        let mut heard_at = Instant::now();
        let mut idle_max = self.begin_max;
        let mut idle = Box::pin(sleep(idle_max));
        loop {
            let bytes = tokio::select! {
                biased;
                () = &mut self.cut => return Err(AttemptEnd::Over(ReplyEnd::Cancelled)),
                bytes = response.chunk() => bytes,
                () = &mut idle => {
                    // Setting the timer only here keeps it off the path of each chunk.
                    if heard_at.elapsed() >= idle_max {
                        return Err(self.asked.explain_silence(idle_max).into());
                    }
                    idle.as_mut().reset(heard_at + idle_max);
                    continue;
                }
            };
            self.recording.on_chunk(&bytes);
            let bytes = match bytes {
                Ok(Some(bytes)) => bytes,
                Ok(None) => break,
                Err(error) => {
                    broken = Some(error);
                    break;
                }
            };
            heard_at = Instant::now();
            if idle_max != IDLE_MAX {
                // It has begun: from here on silence is no queue.
                idle_max = IDLE_MAX;
                idle.as_mut().reset(heard_at + idle_max);
            }
            let fed = decoder.feed(&bytes, &mut |event| self.forward_event(listener, event));
            fed.map_err(|error| self.stream_failure(&error))?;
            if self.reply.n_bytes() > REPLY_BYTES_MAX {
                listener.on_notice(self.asked.size_limit_notice(REPLY_BYTES_MAX));
                return Ok(AttemptEnd::Over(ReplyEnd::SizeLimit));
            }
            tokio::select! {
                biased;
                () = &mut self.cut => return Err(AttemptEnd::Over(ReplyEnd::Cancelled)),
                () = listener.wait_for_capacity() => {}
            }
            if decoder.is_done() {
                drain_body(response, &mut self.recording);
                break;
            }
        }
        let finish = decoder.finish(&mut |event| self.forward_event(listener, event));
        let finish = finish.map_err(|error| match (error, broken) {
            (StreamError::Cut, Some(broken)) => self.asked.explain_transport_error(broken).into(),
            (error, _) => self.stream_failure(&error),
        })?;
        Ok(AttemptEnd::Over(match finish {
            FinishReason::Normally => ReplyEnd::Normally,
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
            () = &mut self.cut => return AttemptEnd::Over(ReplyEnd::Cancelled),
            // Late or broken, what came is explained.
            _ = timeout(REFUSAL_TIMEOUT, read_error_body(response, &mut body)) => {}
        }
        self.recording.on_bytes(&body);
        self.recording.on_complete();
        let body = String::from_utf8_lossy(&body).into_owned();
        let is_same = self.repeats_last_error(code, body);
        let body = self.said_before.as_ref().map_or("", |(_, body)| body);
        self.asked.explain_response(&ErrorResponse { code, body, retry_after, is_same }).into()
    }

    /// Keeps what a refusal said; tells whether the one before said the same.
    fn repeats_last_error(&mut self, code: u16, body: String) -> bool {
        let said = Some((code, body));
        let is_same = *self.said_before == said;
        *self.said_before = said;
        is_same
    }

    fn forward_event(&mut self, listener: &mut impl ReplyListener, event: ModelEvent<'_>) {
        let Self { sieve, reply, was_heard, .. } = self;
        sieve.on_event(event, &mut |event| {
            if let Some(delta) = reply.on_event(event) {
                *was_heard = true;
                listener.on_delta(delta);
            }
        });
    }

    /// Ends the reply: what waited is shown, or it was a call.
    fn finish(self, ask: ModelRequest<'_>, ended: ReplyEnd, listener: &mut impl ReplyListener) -> Reply {
        let Self { sieve, mut reply, .. } = self;
        let leaked = sieve.finish(&ended, ask.transcript, &mut |event| {
            if let Some(delta) = reply.on_event(event) {
                listener.on_delta(delta);
            }
        });
        let reply = reply.into_reply(ended);
        if let Some(notice) = leaked::text_call_notice(&leaked, &reply, ask) {
            listener.on_notice(notice);
        }
        reply
    }

    fn stream_failure(&mut self, error: &StreamError) -> AttemptEnd {
        let is_same = match error {
            StreamError::Provider(body) => self.repeats_last_error(CODE_OF_STREAM, body.clone()),
            StreamError::NotProtocol(_) | StreamError::TooLong | StreamError::Cut => false,
        };
        let tried = self.asked.explain_stream_error(error, is_same);
        tracing::debug!(kind = %tried.failure.kind, is_cut = tried.cause == FailureCause::BrokeOff, "the stream failed");
        tried.into()
    }
}

/// Reads the end of the body on the side: the reply does not wait for it.
fn drain_body(mut response: Response, recording: &mut RequestRecording) {
    recording.on_complete();
    tokio::spawn(async move {
        let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
        // Too slow only means that the next request opens a connection of its own.
        let _ = timeout(DRAIN_TIMEOUT, rest).await;
    });
}

async fn read_error_body(mut response: Response, body: &mut Vec<u8>) {
    while let Ok(Some(bytes)) = response.chunk().await {
        let room = REFUSAL_LEN_MAX - body.len();
        body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() >= room {
            return;
        }
    }
}

fn read_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |value: Option<&HeaderValue>| value.and_then(|value| value.to_str().ok().map(str::to_owned));
    let after_ms = text(headers.get("retry-after-ms"));
    let after = text(headers.get(RETRY_AFTER));
    let date = text(headers.get(DATE));
    parse_retry_after(after_ms.as_deref(), after.as_deref(), date.as_deref())
}
