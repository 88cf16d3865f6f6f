//! Stores the chunks of bundles at the server, and reads them.

use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::DirectGetErrorKind;
use crow_core::GIT_BUNDLE_BYTES_MAX;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use tokio::time::{Instant, sleep, timeout};

use super::{BundleRecord, CHUNK_BYTES};
use crate::streams::{CODE, bare_stream, has_code_stream};

/// Chunks on their way at once: enough for a distant server.
const CHUNKS_AT_ONCE: usize = 8;

/// Time for one chunk with all attempts: longer than two elections, which take up to nine seconds. A replica that lags
/// behind does not have it yet.
const CHUNK_TIME_MAX: Duration = Duration::from_secs(30);

/// Time for one attempt.
const ATTEMPT_TIME_MAX: Duration = Duration::from_secs(10);

/// Pause before another attempt.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(500);

/// The subjects of the chunks of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BundleSubjects {
    prefix: String,
    /// A subject without messages that their sender may ask for.
    none: String,
}

impl BundleSubjects {
    /// Those of a bundle from a parent.
    pub(crate) fn from_parent(queue: &str, parent: &str, bundle: &BundleRecord) -> Self {
        Self {
            prefix: format!("crow.code.{queue}.{parent}.{}", bundle.name),
            none: format!("crow.result.{queue}.none.{parent}.none"),
        }
    }

    /// Those of a bundle with this name from a worker, for a parent or for the next worker.
    pub(crate) fn from_worker(queue: &str, [worker, parent]: [&str; 2], name: &str) -> Self {
        Self {
            prefix: format!("crow.result.{queue}.{worker}.{parent}.{name}"),
            none: format!("crow.code.{queue}.none"),
        }
    }

    fn chunk(&self, index: usize) -> String {
        format!("{}.{index}", self.prefix)
    }
}

/// A bundle as it was announced, with the sequences of its chunks.
#[derive(Debug)]
pub(crate) struct DownloadedBundle {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sequences: Vec<u64>,
}

/// Stores a bundle; returns the sequences of its chunks, or the reason why that failed.
pub(crate) async fn upload_bundle(
    jetstream: &Context,
    subjects: &BundleSubjects,
    bytes: Vec<u8>,
) -> Result<Vec<u64>, String> {
    let (jetstream, subjects, n_chunks) =
        (jetstream.clone(), subjects.clone(), bytes.len().div_ceil(CHUNK_BYTES));
    let uploads = (0..n_chunks).map(move |index| {
        let (start, end) = (index * CHUNK_BYTES, bytes.len().min((index + 1) * CHUNK_BYTES));
        store_chunk(jetstream.clone(), subjects.clone(), index, bytes[start..end].to_vec()).boxed()
    });
    stream::iter(uploads).buffered(CHUNKS_AT_ONCE).try_collect().await
}

/// Replaces the first chunks of a bundle by empty messages, for a worker that may not delete any; the error is the reason why that
/// failed.
pub(crate) async fn clear_bundle(
    jetstream: &Context,
    subjects: &BundleSubjects,
    n_chunks: usize,
) -> Result<(), String> {
    for index in 0..n_chunks {
        store_chunk(jetstream.clone(), subjects.clone(), index, Vec::new()).await?;
    }
    Ok(())
}

async fn store_chunk(
    jetstream: Context,
    subjects: BundleSubjects,
    index: usize,
    chunk: Vec<u8>,
) -> Result<u64, String> {
    let subject = subjects.chunk(index);
    let deadline = Instant::now() + CHUNK_TIME_MAX;
    loop {
        let message = PublishMessage::build().payload(chunk.clone().into());
        let stored = async {
            let confirmation = jetstream.send_publish(subject.clone(), message).await?;
            confirmation.await
        };
        let reason = match timeout(ATTEMPT_TIME_MAX, stored).await {
            Ok(Ok(confirmation)) => return Ok(confirmation.sequence),
            // A stream that elects its leader answers like one that does not exist.
            Ok(Err(error)) if error.kind() == PublishErrorKind::StreamNotFound => {
                if !has_code_stream(&jetstream, &subjects.none).await {
                    return Err(format!(
                        "the server has no stream {CODE}; start a worker as a user who may make it, and see its log"
                    ));
                }
                "it elects a leader".to_owned()
            }
            Ok(Err(error)) => match std::error::Error::source(&error) {
                // The server has refused it, such as for want of room.
                Some(cause) if cause.is::<async_nats::jetstream::Error>() => {
                    return Err(format!("the server did not take the code: {cause}"));
                }
                Some(_) | None => error.to_string(),
            },
            Err(_) => "it did not answer".to_owned(),
        };
        if Instant::now() >= deadline {
            return Err(format!(
                "the server did not take the code: {reason}; its user needs the right to publish {subject}"
            ));
        }
        sleep(ATTEMPT_PAUSE).await;
    }
}

/// Reads a bundle; the error is the reason why it is not there, or is another one.
pub(crate) async fn download_bundle(
    jetstream: &Context,
    subjects: &BundleSubjects,
    bundle: &BundleRecord,
) -> Result<DownloadedBundle, String> {
    if !bundle.is_valid() {
        return Err(format!(
            "its announcement is not that of a bundle with at most {} MiB",
            GIT_BUNDLE_BYTES_MAX / 1024 / 1024
        ));
    }
    let (jetstream, subjects) = (jetstream.clone(), subjects.clone());
    let downloads = bundle
        .chunk_lengths()
        .enumerate()
        .map(move |(index, n_bytes)| read_chunk(jetstream.clone(), subjects.chunk(index), n_bytes).boxed());
    let mut downloads = stream::iter(downloads).buffered(CHUNKS_AT_ONCE);
    let (mut bytes, mut sequences) = (Vec::new(), Vec::new());
    while let Some((sequence, chunk)) = downloads.try_next().await? {
        bytes.extend_from_slice(&chunk);
        sequences.push(sequence);
    }
    match bundle.matches(&bytes) {
        true => Ok(DownloadedBundle { bytes, sequences }),
        false => Err("it is damaged: its SHA-256 is another one than announced".to_owned()),
    }
}

async fn read_chunk(jetstream: Context, subject: String, n_bytes: usize) -> Result<(u64, Vec<u8>), String> {
    let stream = bare_stream(&jetstream, CODE).await?;
    let deadline = Instant::now() + CHUNK_TIME_MAX;
    loop {
        let look = stream.direct_get_last_for_subject(subject.as_str());
        let reason = match timeout(ATTEMPT_TIME_MAX, look).await {
            Ok(Ok(message)) if message.payload.len() == n_bytes => {
                return Ok((message.sequence, message.payload.to_vec()));
            }
            Ok(Ok(_)) => return Err("it is damaged: a chunk has another length".to_owned()),
            Ok(Err(error)) if error.kind() == DirectGetErrorKind::NotFound => {
                "it is no longer at the server, which keeps it for a day".to_owned()
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the server did not answer".to_owned(),
        };
        if Instant::now() >= deadline {
            return Err(reason);
        }
        sleep(ATTEMPT_PAUSE).await;
    }
}
