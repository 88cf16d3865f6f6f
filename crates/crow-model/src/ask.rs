//! Asks a model once, with its retries, and reports how the reply ended. The leaf that owns the connection:
//! a cut ends it here, and what arrived until then is the reply.

use std::future::Future;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::pin::Pin;
use std::time::Duration;

use crow_core::leaked::{Sieve, spelled};
use crow_core::{
    Delta, Ended, Failure, FailureKind, ForModel, ModelEvent, Reply, ReplyBuilder, ToolSpec, without_images,
};
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Request, Response};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::decoder::{Decoder, Finish, StreamError};
use crate::failure::{Asked, BadAnswer};
use crate::http::{address, headers, is_near};
use crate::price::priced;
use crate::record::Recording;
use crate::retry::{Cause, Tried, next_try, notice, retry_after};
use crate::{Api, Http, ModelSettings, ToolCalls, chat, leaked, messages, responses};

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
pub trait Listener: Send {
    /// Takes the next words.
    fn heard(&mut self, delta: Delta<'_>);
    /// Takes a notice for the person: the next try has to wait, or the reply was not taken as it came.
    fn noticed(&mut self, notice: String);
    /// Hears that the reply failed because its provider is overloaded, after all tries: another model may answer.
    fn overloaded(&mut self) {}
    /// Waits until more can be taken; a slow listener slows the stream.
    fn room(&mut self) -> impl Future<Output = ()> + Send;
}

/// One question to a model.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Which model, and how.
    pub settings: &'a ModelSettings,
    /// The conversation so far.
    pub transcript: ForModel<'a>,
    /// The tools on offer.
    pub tools: &'a [ToolSpec],
    /// The place the reply takes in its session.
    pub seq: u64,
}

/// Asks a model. Whatever goes wrong, the reply says so in how it ended.
pub async fn ask(http: &Http, ask: Ask<'_>, listener: &mut impl Listener, cut: &CancellationToken) -> Reply {
    let reply = asked(http, ask, listener, cut).await;
    Reply { usage: reply.usage.map(|usage| priced(usage, ask.settings.price)), ..reply }
}

async fn asked(http: &Http, ask: Ask<'_>, listener: &mut impl Listener, cut: &CancellationToken) -> Reply {
    let request = match request_of(ask) {
        Ok(request) => request,
        Err(failure) => return ReplyBuilder::new(ask.seq).end(Ended::Failed(failure)),
    };
    let client = http.client(request.url());
    let mut said_before = None;
    let mut n_failed = 0;
    loop {
        // Bytes in memory can always be sent once more.
        let again = request.try_clone().unwrap_or_else(|| Request::new(Method::POST, request.url().clone()));
        let mut one = Try {
            asked: Asked::model(ask.settings),
            api: ask.settings.provider.api,
            begin_max: if is_near(request.url()) { QUEUE_MAX } else { IDLE_MAX },
            cut: Box::pin(cut.cancelled()),
            reply: ReplyBuilder::new(ask.seq).by(ask.settings.id()),
            sieve: leaked::sieve(ask.settings, ask.tools),
            was_heard: false,
            said_before: &mut said_before,
            recording: http.record(&again, ask.settings),
        };
        let ended = one.run(client, again, listener).await;
        std::mem::take(&mut one.recording).end().await;
        let tried = match ended {
            TryEnd::Over(ended) => return one.end(ask, ended, listener),
            TryEnd::Failed(tried) => tried,
        };
        n_failed += 1;
        let retries_max = ask.settings.retries_max;
        let wait = next_try(n_failed, retries_max, &tried, jitter()).filter(|_| !one.was_heard);
        let Some(wait) = wait else {
            if tried.is_overload() {
                listener.overloaded();
            }
            return one.end(ask, Ended::Failed(tried.failure), listener);
        };
        tracing::debug!(kind = %tried.failure.kind, n_failed, "asking the model again");
        listener.noticed(notice(&tried, wait, n_failed, retries_max));
        tokio::select! {
            biased;
            () = cut.cancelled() => return ReplyBuilder::new(ask.seq).end(Ended::Cancelled),
            () = sleep(wait) => {}
        }
    }
}

fn request_of(ask: Ask<'_>) -> Result<Request, Failure> {
    let text_only = match ask.settings.reads_images {
        true => None,
        false => without_images(ask.transcript).map_err(|error| unwritten(&error))?,
    };
    let Some(text_only) = text_only else { return request_as_spelled(ask) };
    let transcript = text_only.for_model().map_err(|open| unwritten(&open))?;
    request_as_spelled(Ask { transcript, ..ask })
}

/// The request in the way in which the model spells calls.
fn request_as_spelled(ask: Ask<'_>) -> Result<Request, Failure> {
    if ask.settings.tool_calls == ToolCalls::Text {
        let spelled = spelled(ask.transcript, ask.tools).map_err(|error| unwritten(&error))?;
        let transcript = spelled.for_model().map_err(|open| unwritten(&open))?;
        return request_with_tools(Ask { transcript, tools: &[], ..ask });
    }
    request_with_tools(ask)
}

/// The request for a provider that takes tools, if there are any.
fn request_with_tools(ask: Ask<'_>) -> Result<Request, Failure> {
    let provider = &ask.settings.provider;
    let (path, body): (&[&str], _) = match provider.api {
        Api::Chat => (&["chat", "completions"], chat::body(ask.settings, ask.transcript, ask.tools)),
        Api::Messages => (&["messages"], messages::body(ask.settings, ask.transcript, ask.tools)),
        Api::Responses => (&["responses"], responses::body(ask.settings, ask.transcript, ask.tools)),
    };
    let body = body.map_err(|error| unwritten(&error))?;
    let mut request = Request::new(Method::POST, address(provider, path)?);
    *request.headers_mut() = headers(provider)?;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    *request.body_mut() = Some(body.into());
    Ok(request)
}

fn unwritten(error: &dyn std::error::Error) -> Failure {
    Failure::new(FailureKind::Internal, format!("the request could not be written: {error}"))
}

/// A number from 0 to 1 by chance; the hasher's keys are as good as any.
fn jitter() -> f64 {
    let chance = RandomState::new().build_hasher().finish();
    f64::from((chance >> 32) as u32) / f64::from(u32::MAX)
}

/// How one try ended.
enum TryEnd {
    /// For good.
    Over(Ended),
    /// Perhaps another goes better.
    Failed(Tried),
}

impl From<Tried> for TryEnd {
    fn from(tried: Tried) -> Self {
        Self::Failed(tried)
    }
}

struct Try<'a> {
    asked: Asked<'a>,
    api: Api,
    /// How long to wait for the first byte.
    begin_max: Duration,
    cut: Pin<Box<WaitForCancellationFuture<'a>>>,
    reply: ReplyBuilder,
    sieve: Sieve<'a>,
    /// A person has seen something of this try.
    was_heard: bool,
    /// Status and body of the refusal before.
    said_before: &'a mut Option<(u16, String)>,
    recording: Recording,
}

impl Try<'_> {
    async fn run(&mut self, client: &Client, request: Request, listener: &mut impl Listener) -> TryEnd {
        let began_at = Instant::now();
        let mut sent = Box::pin(client.execute(request));
        let answer = loop {
            // A person is told of a long wait, once for each time that would be too long elsewhere.
            let patience = IDLE_MAX.min(self.begin_max.saturating_sub(began_at.elapsed()));
            let answer = tokio::select! {
                biased;
                () = &mut self.cut => return TryEnd::Over(Ended::Cancelled),
                answer = timeout(patience, &mut sent) => answer,
            };
            let waited = began_at.elapsed();
            if answer.is_ok() || waited >= self.begin_max {
                break answer;
            }
            listener.noticed(self.asked.queue(waited));
        };
        match &answer {
            Ok(Ok(response)) => self.recording.answered(response),
            Ok(Err(_)) | Err(_) => self.recording.broke_off(),
        }
        let ended = match answer {
            Err(_) => Err(self.asked.silence(self.begin_max).into()),
            Ok(Err(error)) => Err(self.asked.no_answer(error).into()),
            Ok(Ok(response)) if response.status().is_success() => self.listen(response, listener).await,
            Ok(Ok(response)) => Err(self.refused(response).await),
        };
        ended.unwrap_or_else(|end| end)
    }

    /// Reads the stream to its end. Leaving it early drops the connection at once.
    async fn listen(
        &mut self,
        mut response: Response,
        listener: &mut impl Listener,
    ) -> Result<TryEnd, TryEnd> {
        let mut decoder = Decoder::new(self.api);
        let mut broken = None;
        let mut heard_at = Instant::now();
        let mut idle_max = self.begin_max;
        let mut idle = Box::pin(sleep(idle_max));
        loop {
            let bytes = tokio::select! {
                biased;
                () = &mut self.cut => return Err(TryEnd::Over(Ended::Cancelled)),
                bytes = response.chunk() => bytes,
                () = &mut idle => {
                    // Setting the timer only here keeps it off the path of each chunk.
                    if heard_at.elapsed() >= idle_max {
                        return Err(self.asked.silence(idle_max).into());
                    }
                    idle.as_mut().reset(heard_at + idle_max);
                    continue;
                }
            };
            self.recording.took(&bytes);
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
            let fed = decoder.feed(&bytes, &mut |event| self.hear(listener, event));
            fed.map_err(|error| self.bad_stream(&error))?;
            if self.reply.n_bytes() > REPLY_BYTES_MAX {
                listener.noticed(self.asked.too_large(REPLY_BYTES_MAX));
                return Ok(TryEnd::Over(Ended::SizeLimit));
            }
            tokio::select! {
                biased;
                () = &mut self.cut => return Err(TryEnd::Over(Ended::Cancelled)),
                () = listener.room() => {}
            }
            if decoder.is_done() {
                drain(response, &mut self.recording);
                break;
            }
        }
        let finish = decoder.end(&mut |event| self.hear(listener, event));
        let finish = finish.map_err(|error| match (error, broken) {
            (StreamError::Cut, Some(broken)) => self.asked.no_answer(broken).into(),
            (error, _) => self.bad_stream(&error),
        })?;
        Ok(TryEnd::Over(match finish {
            Finish::Normally => Ended::Normally,
            Finish::OutputLimit => Ended::OutputLimit,
            Finish::Refused => Ended::Refused,
        }))
    }

    async fn refused(&mut self, response: Response) -> TryEnd {
        let code = response.status().as_u16();
        let retry_after = asked_wait(response.headers());
        let mut body = Vec::new();
        tokio::select! {
            biased;
            () = &mut self.cut => return TryEnd::Over(Ended::Cancelled),
            // Late or broken, what came is explained.
            _ = timeout(REFUSAL_TIMEOUT, read_refusal(response, &mut body)) => {}
        }
        self.recording.said(&body);
        self.recording.heard_out();
        let body = String::from_utf8_lossy(&body).into_owned();
        let is_same = self.is_said_again(code, body);
        let body = self.said_before.as_ref().map_or("", |(_, body)| body);
        self.asked.bad_answer(&BadAnswer { code, body, retry_after, is_same }).into()
    }

    /// Keeps what a refusal said; tells whether the one before said the same.
    fn is_said_again(&mut self, code: u16, body: String) -> bool {
        let said = Some((code, body));
        let is_same = *self.said_before == said;
        *self.said_before = said;
        is_same
    }

    fn hear(&mut self, listener: &mut impl Listener, event: ModelEvent<'_>) {
        let Self { sieve, reply, was_heard, .. } = self;
        sieve.on_event(event, &mut |event| {
            if let Some(delta) = reply.on_event(event) {
                *was_heard = true;
                listener.heard(delta);
            }
        });
    }

    /// Ends the reply: what waited is shown, or it was a call.
    fn end(self, ask: Ask<'_>, ended: Ended, listener: &mut impl Listener) -> Reply {
        let Self { sieve, mut reply, .. } = self;
        let leaked = sieve.end(&ended, ask.transcript, &mut |event| {
            if let Some(delta) = reply.on_event(event) {
                listener.heard(delta);
            }
        });
        let reply = reply.end(ended);
        if let Some(notice) = leaked::notice(&leaked, &reply, ask) {
            listener.noticed(notice);
        }
        reply
    }

    fn bad_stream(&mut self, error: &StreamError) -> TryEnd {
        let is_same = match error {
            StreamError::Provider(body) => self.is_said_again(CODE_OF_STREAM, body.clone()),
            StreamError::NotProtocol(_) | StreamError::TooLong | StreamError::Cut => false,
        };
        let tried = self.asked.bad_stream(error, is_same);
        tracing::debug!(kind = %tried.failure.kind, is_cut = tried.cause == Cause::BrokeOff, "the stream failed");
        tried.into()
    }
}

/// Reads the end of the body on the side: the reply does not wait for it.
fn drain(mut response: Response, recording: &mut Recording) {
    recording.heard_out();
    tokio::spawn(async move {
        let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
        // Too slow only means that the next request opens a connection of its own.
        let _ = timeout(DRAIN_TIMEOUT, rest).await;
    });
}

async fn read_refusal(mut response: Response, body: &mut Vec<u8>) {
    while let Ok(Some(bytes)) = response.chunk().await {
        let room = REFUSAL_LEN_MAX - body.len();
        body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() >= room {
            return;
        }
    }
}

fn asked_wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |value: Option<&HeaderValue>| value.and_then(|value| value.to_str().ok().map(str::to_owned));
    let after_ms = text(headers.get("retry-after-ms"));
    let after = text(headers.get(RETRY_AFTER));
    let date = text(headers.get(DATE));
    retry_after(after_ms.as_deref(), after.as_deref(), date.as_deref())
}
