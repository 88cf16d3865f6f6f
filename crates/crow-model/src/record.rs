//! Keeps what was asked and what was answered, one file each, for whoever looks into a fault or plays it again.
//!
//! Whoever asks only hands things over; a thread of its own writes them, without keys. What it has no room or no
//! disk for is left out and said to be; no question ever fails because of it.

mod file;
mod redact;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crow_core::{Failure, FailureKind};
use reqwest::header::HeaderMap;
use reqwest::{Request, Response};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::{ModelSettings, ProviderSettings};
use file::{RecordedRequest, RecordedResponse, RecordingFolder};

/// Notes on their way to the disk; a chunk is a note.
const NOTES_MAX: usize = 4096;

/// Bytes on their way to the disk; a request can have many images.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// A disk that takes longer is not waited for, then or later.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Headers of a request that say how it was meant.
const ASKED_HEADERS: [&str; 5] =
    ["accept", "content-type", "anthropic-version", "anthropic-beta", "openai-beta"];

/// Headers of an answer that decide what becomes of it.
const ANSWERED_HEADERS: [&str; 4] = ["content-type", "retry-after", "retry-after-ms", "date"];

/// Shorter values of headers are names and versions; longer ones may be keys.
const HEADER_SECRET_LEN_MIN: usize = 16;

/// Keeps what is asked and answered in a folder. Cloning shares it.
#[derive(Debug, Clone)]
pub struct RequestRecorder(Arc<RecorderShared>);

#[derive(Debug)]
struct RecorderShared {
    /// Nothing once it is over.
    notes: Option<SyncSender<RecordingNote>>,
    n_bytes: Arc<AtomicUsize>,
    n_asked: AtomicUsize,
    is_slow: AtomicBool,
    /// Hears of nothing but the end of the thread.
    written: std::sync::Mutex<Receiver<()>>,
}

#[derive(Debug)]
enum RecordingNote {
    Asked(usize, Box<RecordedRequest>),
    Answered(usize, RecordedResponse),
    Said { n: usize, ms: u128, bytes: Vec<u8> },
    Ended { n: usize, ms: u128, how: RecordingEnd, is_whole: bool, written: Option<oneshot::Sender<()>> },
}

/// How an answer ended for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordingEnd {
    /// It was heard to its end.
    Whole,
    /// We stopped listening.
    Left,
    /// It broke off, or never came.
    Broken,
}

impl RequestRecorder {
    /// Begins to keep things in a folder, which is made when it is not there.
    pub fn start(folder: &Path) -> Result<Self, Failure> {
        let unusable = |error: std::io::Error| {
            let sentence = format!(
                "Nothing can be recorded in {}: {error}. Name another folder in CROW_RECORD, or none.",
                folder.display()
            );
            Failure::new(FailureKind::Config, sentence)
        };
        let folder = RecordingFolder::open(folder).map_err(unusable)?;
        let (notes, inbox) = sync_channel(NOTES_MAX);
        let (over, written) = sync_channel(1);
        let n_bytes = Arc::new(AtomicUsize::new(0));
        let taken = n_bytes.clone();
        let write = move || {
            // Dropped with the thread, which tells that everything is written.
            let _over = over;
            file::write_recordings(folder, &inbox, &taken);
        };
        std::thread::Builder::new().name("crow-record".into()).spawn(write).map_err(unusable)?;
        Ok(Self(Arc::new(RecorderShared {
            notes: Some(notes),
            n_bytes,
            n_asked: AtomicUsize::new(0),
            is_slow: AtomicBool::new(false),
            written: std::sync::Mutex::new(written),
        })))
    }

    /// Begins to keep one question and its answer.
    fn begin_request(&self, request: &Request, settings: &ModelSettings) -> LiveRecording {
        let n = self.0.n_asked.fetch_add(1, Ordering::Relaxed);
        let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
        let mut live = LiveRecording {
            recorder: self.clone(),
            n,
            started: Instant::now(),
            how: RecordingEnd::Left,
            is_whole: true,
            is_over: false,
        };
        if live.has_room(body.len()) {
            let asked = RecordedRequest {
                provider: settings.provider.name.clone(),
                model: settings.model.clone(),
                method: request.method().to_string(),
                path: request.url().path().to_owned(),
                headers: pick_headers(request.headers(), &ASKED_HEADERS),
                body: body.to_vec(),
                secrets: collect_secrets(&settings.provider),
            };
            live.send_note(RecordingNote::Asked(n, Box::new(asked)), body.len());
        }
        live
    }
}

impl Drop for RecorderShared {
    fn drop(&mut self) {
        self.notes = None;
        if let Ok(written) = self.written.get_mut() {
            // Its end is all that can come.
            if written.recv_timeout(WRITE_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
                tracing::warn!("the disk is too slow for what is recorded; the end of it may be missing");
            }
        }
    }
}

/// One question and its answer on their way to a file, or nothing where nothing is recorded.
#[derive(Debug, Default)]
pub(crate) struct RequestRecording(Option<LiveRecording>);

#[derive(Debug)]
struct LiveRecording {
    recorder: RequestRecorder,
    n: usize,
    started: Instant,
    how: RecordingEnd,
    /// Nothing was left out so far.
    is_whole: bool,
    is_over: bool,
}

impl RequestRecording {
    /// Begins to keep a question, where something keeps it.
    pub(crate) fn start(
        recorder: Option<&RequestRecorder>,
        request: &Request,
        settings: &ModelSettings,
    ) -> Self {
        Self(recorder.map(|recorder| recorder.begin_request(request, settings)))
    }

    /// Takes the beginning of the answer.
    pub(crate) fn on_response(&mut self, response: &Response) {
        if let Some(live) = &mut self.0 {
            let headers = pick_headers(response.headers(), &ANSWERED_HEADERS);
            let answered =
                RecordedResponse { status: response.status().as_u16(), headers, ms: live.elapsed_ms() };
            live.send_note(RecordingNote::Answered(live.n, answered), 0);
        }
    }

    /// Takes what came of listening: more of the answer, its end, or that it broke off.
    pub(crate) fn on_chunk<E>(&mut self, came: &Result<Option<impl AsRef<[u8]>>, E>) {
        match came {
            Ok(Some(bytes)) => self.on_bytes(bytes.as_ref()),
            Ok(None) => self.on_complete(),
            Err(_) => self.on_interrupted(),
        }
    }

    /// Takes more of the answer.
    pub(crate) fn on_bytes(&mut self, bytes: &[u8]) {
        if let Some(live) = &mut self.0
            && live.has_room(bytes.len())
        {
            live.send_note(
                RecordingNote::Said { n: live.n, ms: live.elapsed_ms(), bytes: bytes.to_vec() },
                bytes.len(),
            );
        }
    }

    /// Notes that the answer was heard to its end.
    pub(crate) fn on_complete(&mut self) {
        self.set_end(RecordingEnd::Whole);
    }

    /// Notes that the answer broke off or never came.
    pub(crate) fn on_interrupted(&mut self) {
        self.set_end(RecordingEnd::Broken);
    }

    fn set_end(&mut self, how: RecordingEnd) {
        if let Some(live) = &mut self.0 {
            live.how = how;
        }
    }

    /// Ends it, and waits for the disk where nobody waits for us; what is dropped without was left.
    pub(crate) async fn finish(mut self) {
        let Some(live) = &mut self.0 else { return };
        if live.how == RecordingEnd::Left || live.recorder.0.is_slow.load(Ordering::Relaxed) {
            return;
        }
        let (written, done) = oneshot::channel();
        live.send_end(Some(written));
        if timeout(WRITE_TIMEOUT, done).await.is_err() {
            live.recorder.0.is_slow.store(true, Ordering::Relaxed);
        }
    }
}

impl LiveRecording {
    fn elapsed_ms(&self) -> u128 {
        self.started.elapsed().as_millis()
    }

    /// Tells whether so many bytes more may go to the disk. After what was left out nothing fits any more.
    fn has_room(&mut self, n_bytes: usize) -> bool {
        let waiting = self.recorder.0.n_bytes.load(Ordering::Relaxed);
        self.is_whole &= waiting == 0 || waiting.saturating_add(n_bytes) <= BYTES_MAX;
        self.is_whole
    }

    fn send_note(&mut self, note: RecordingNote, n_bytes: usize) {
        let shared = &self.recorder.0;
        shared.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
        let is_sent = shared.notes.as_ref().is_some_and(|notes| notes.try_send(note).is_ok());
        if !is_sent {
            shared.n_bytes.fetch_sub(n_bytes, Ordering::Relaxed);
            self.is_whole = false;
        }
    }

    fn send_end(&mut self, written: Option<oneshot::Sender<()>>) {
        self.is_over = true;
        let Self { n, how, is_whole, .. } = *self;
        self.send_note(RecordingNote::Ended { n, ms: self.elapsed_ms(), how, is_whole, written }, 0);
    }
}

impl Drop for LiveRecording {
    fn drop(&mut self) {
        if !self.is_over {
            self.send_end(None);
        }
    }
}

/// Picks headers to keep; what is marked as a secret is none of them.
fn pick_headers(headers: &HeaderMap, names: &[&'static str]) -> Vec<(&'static str, String)> {
    let kept = names.iter().filter_map(|&name| {
        let value = headers.get(name).filter(|value| !value.is_sensitive())?;
        Some((name, value.to_str().ok()?.to_owned()))
    });
    kept.collect()
}

/// The texts of a provider's settings that are to stand nowhere.
fn collect_secrets(provider: &ProviderSettings) -> Vec<String> {
    let key = provider.api_key.iter().map(|key| key.expose_secret());
    // `Bearer` and its like are no secret; what follows is one wherever it stands.
    let last_word = |value: &'_ String| value.split_whitespace().next_back().unwrap_or_default().to_owned();
    let values = provider.headers.iter().flat_map(|(_, value)| [value.clone(), last_word(value)]);
    let values = values.filter(|value| value.len() >= HEADER_SECRET_LEN_MIN);
    key.map(str::to_owned).chain(values).collect()
}
