//! Records requests and responses, one file each, for debugging and replay.
//!
//! Requests only pass data on; a separate thread writes it, without keys. What exceeds memory or disk is omitted and
//! reported; no request ever fails because of it.

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
use redact::SecretSet;

/// Items queued for the disk; a chunk is an item.
const NOTES_MAX: usize = 4096;

/// Bytes queued for the disk; a request can have many images.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// A slower disk is not awaited, now or later.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Request headers to record.
const REQUEST_HEADERS: [&str; 5] =
    ["accept", "content-type", "anthropic-version", "anthropic-beta", "openai-beta"];

/// Response headers that decide how it is handled.
const RESPONSE_HEADERS: [&str; 4] = ["content-type", "retry-after", "retry-after-ms", "date"];

/// Shorter header values are names and versions; longer ones may be keys.
const HEADER_SECRET_LEN_MIN: usize = 16;

/// Records requests and responses in a directory. Clones share it.
#[derive(Debug, Clone)]
pub struct RequestRecorder(Arc<RecorderShared>);

#[derive(Debug)]
struct RecorderShared {
    /// `None` once it has ended.
    notes: Option<SyncSender<RecordingNote>>,
    n_bytes: Arc<AtomicUsize>,
    n_requests: AtomicUsize,
    is_slow: AtomicBool,
    /// Receives only the end of the thread.
    writer_end: std::sync::Mutex<Receiver<()>>,
}

#[derive(Debug)]
enum RecordingNote {
    Request(usize, Box<RecordedRequest>),
    Response(usize, RecordedResponse),
    Chunk { id: usize, ms: u128, bytes: Vec<u8> },
    End { id: usize, ms: u128, end: RecordingEnd, is_complete: bool, writer_end: Option<oneshot::Sender<()>> },
}

/// The end of a response, from our side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordingEnd {
    /// Read to its end.
    Complete,
    /// We stopped reading.
    Abandoned,
    /// It broke off, or never arrived.
    Interrupted,
}

impl RequestRecorder {
    /// Starts to record in a directory, which is created if necessary.
    pub fn start(directory: &Path) -> Result<Self, Failure> {
        let config_failure = |error: std::io::Error| {
            let message = format!(
                "could not record in {}: {error}; set CROW_RECORD to another directory, or unset it",
                directory.display()
            );
            Failure::new(FailureKind::Config, message)
        };
        let directory = RecordingFolder::open(directory).map_err(config_failure)?;
        let (notes, inbox) = sync_channel(NOTES_MAX);
        let (end_sender, writer_end) = sync_channel(1);
        let n_bytes = Arc::new(AtomicUsize::new(0));
        let queued_bytes = n_bytes.clone();
        let write = move || {
            // Dropped with the thread, which signals that everything is written.
            let _over = end_sender;
            file::write_recordings(directory, &inbox, &queued_bytes);
        };
        std::thread::Builder::new().name("crow-record".into()).spawn(write).map_err(config_failure)?;
        Ok(Self(Arc::new(RecorderShared {
            notes: Some(notes),
            n_bytes,
            n_requests: AtomicUsize::new(0),
            is_slow: AtomicBool::new(false),
            writer_end: std::sync::Mutex::new(writer_end),
        })))
    }

    /// Starts to record one request and its response.
    fn begin_request(&self, request: &Request, settings: &ModelSettings) -> LiveRecording {
        let id = self.0.n_requests.fetch_add(1, Ordering::Relaxed);
        let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
        let mut live = LiveRecording {
            recorder: self.clone(),
            id,
            started_at: Instant::now(),
            end: RecordingEnd::Abandoned,
            is_complete: true,
            is_over: false,
        };
        if live.has_room(body.len()) {
            let recorded = RecordedRequest {
                provider: settings.provider.name.clone(),
                model: settings.model.clone(),
                method: request.method().to_string(),
                path: request.url().path().to_owned(),
                headers: pick_headers(request.headers(), &REQUEST_HEADERS),
                body: body.to_vec(),
                secrets: collect_secrets(&settings.provider),
            };
            live.send_note(RecordingNote::Request(id, Box::new(recorded)), body.len());
        }
        live
    }
}

impl Drop for RecorderShared {
    fn drop(&mut self) {
        self.notes = None;
        if let Ok(writer_end) = self.writer_end.get_mut() {
            // Only its end can arrive.
            if writer_end.recv_timeout(WRITE_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
                tracing::warn!("the disk is too slow for the recording; its end may be missing");
            }
        }
    }
}

/// One request and its response on their way to a file, or nothing if nothing is recorded.
#[derive(Debug, Default)]
pub(crate) struct RequestRecording(Option<LiveRecording>);

#[derive(Debug)]
struct LiveRecording {
    recorder: RequestRecorder,
    id: usize,
    started_at: Instant,
    end: RecordingEnd,
    /// Nothing was omitted so far.
    is_complete: bool,
    is_over: bool,
}

impl RequestRecording {
    /// Starts to record a request, if there is a recorder.
    pub(crate) fn start(
        recorder: Option<&RequestRecorder>,
        request: &Request,
        settings: &ModelSettings,
    ) -> Self {
        Self(recorder.map(|recorder| recorder.begin_request(request, settings)))
    }

    /// Records the beginning of the response.
    pub(crate) fn on_response(&mut self, response: &Response) {
        if let Some(live) = &mut self.0 {
            let headers = pick_headers(response.headers(), &RESPONSE_HEADERS);
            let recorded =
                RecordedResponse { status: response.status().as_u16(), headers, ms: live.elapsed_ms() };
            live.send_note(RecordingNote::Response(live.id, recorded), 0);
        }
    }

    /// Records the result of a read: more of the response, its end, or an error.
    pub(crate) fn on_chunk<E>(&mut self, result: &Result<Option<impl AsRef<[u8]>>, E>) {
        match result {
            Ok(Some(bytes)) => self.on_bytes(bytes.as_ref()),
            Ok(None) => self.on_complete(),
            Err(_) => self.on_interrupted(),
        }
    }

    /// Records more of the response.
    pub(crate) fn on_bytes(&mut self, bytes: &[u8]) {
        if let Some(live) = &mut self.0
            && live.has_room(bytes.len())
        {
            live.send_note(
                RecordingNote::Chunk { id: live.id, ms: live.elapsed_ms(), bytes: bytes.to_vec() },
                bytes.len(),
            );
        }
    }

    /// Records that the response was read to its end.
    pub(crate) fn on_complete(&mut self) {
        self.set_end(RecordingEnd::Complete);
    }

    /// Records that the response broke off or never arrived.
    pub(crate) fn on_interrupted(&mut self) {
        self.set_end(RecordingEnd::Interrupted);
    }

    fn set_end(&mut self, end: RecordingEnd) {
        if let Some(live) = &mut self.0 {
            live.end = end;
        }
    }

    /// Ends it, and waits for the disk where no caller waits; dropping it without this counts as left.
    pub(crate) async fn finish(mut self) {
        let Some(live) = &mut self.0 else { return };
        if live.end == RecordingEnd::Abandoned || live.recorder.0.is_slow.load(Ordering::Relaxed) {
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
        self.started_at.elapsed().as_millis()
    }

    /// Whether this many more bytes may be queued. After an omission nothing fits any more.
    fn has_room(&mut self, n_bytes: usize) -> bool {
        let n_queued = self.recorder.0.n_bytes.load(Ordering::Relaxed);
        self.is_complete &= n_queued == 0 || n_queued.saturating_add(n_bytes) <= BYTES_MAX;
        self.is_complete
    }

    fn send_note(&mut self, note: RecordingNote, n_bytes: usize) {
        let shared = &self.recorder.0;
        shared.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
        let is_sent = shared.notes.as_ref().is_some_and(|notes| notes.try_send(note).is_ok());
        if !is_sent {
            shared.n_bytes.fetch_sub(n_bytes, Ordering::Relaxed);
            self.is_complete = false;
        }
    }

    fn send_end(&mut self, written: Option<oneshot::Sender<()>>) {
        self.is_over = true;
        let Self { id, end, is_complete, .. } = *self;
        self.send_note(
            RecordingNote::End { id, ms: self.elapsed_ms(), end, is_complete, writer_end: written },
            0,
        );
    }
}

impl Drop for LiveRecording {
    fn drop(&mut self) {
        if !self.is_over {
            self.send_end(None);
        }
    }
}

/// Returns the headers to record, except those marked as secret.
fn pick_headers(headers: &HeaderMap, names: &[&'static str]) -> Vec<(&'static str, String)> {
    let picked = names.iter().filter_map(|&name| {
        let value = headers.get(name).filter(|value| !value.is_sensitive())?;
        Some((name, value.to_str().ok()?.to_owned()))
    });
    picked.collect()
}

/// The values of a provider's settings that must not appear anywhere.
/// Replaces the keys of providers in a text, in every encoding that a request or an error may have.
pub fn redact_provider_secrets<'a>(
    text: &str,
    providers: impl IntoIterator<Item = &'a ProviderSettings>,
) -> String {
    let secrets: Vec<String> = providers.into_iter().flat_map(collect_secrets).collect();
    SecretSet::new(&secrets).redact_text(text)
}

fn collect_secrets(provider: &ProviderSettings) -> Vec<String> {
    let key = provider.api_key.iter().map(|key| key.expose_secret());
    // `Bearer` and similar prefixes are not secret; what follows is.
    let last_part = |value: &'_ String| value.split_whitespace().next_back().unwrap_or_default().to_owned();
    let values = provider.headers.iter().flat_map(|(_, value)| [value.clone(), last_part(value)]);
    let values = values.filter(|value| value.len() >= HEADER_SECRET_LEN_MIN);
    key.map(str::to_owned).chain(values).collect()
}
