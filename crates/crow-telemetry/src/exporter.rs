//! The thread that sends spans to the collector: in batches, with few retries, and once more at the end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use crow_model::{HttpClients, JsonPost, JsonPostAnswer};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::TelemetryConfig;
use crate::layer::TelemetryLayer;
use crate::otlp::{encode_request, partial_success};
use crate::span::FinishedSpan;

/// Minutes of a busy agent while a collector is away, in about two megabytes.
const QUEUE_LEN: usize = 2048;

/// The largest batch; its request stays far below what collectors accept.
const BATCH_SPANS_MAX: usize = 256;

/// The time in which a batch fills; a person who looks at a dashboard waits no longer.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// A collector that takes longer is down.
const POST_TIMEOUT: Duration = Duration::from_secs(10);

/// Retries of a batch; after them it is dropped, because the queue behind it fills.
const RETRIES_MAX: u32 = 3;

/// The first delay; each one is twice the one before.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The longest delay that a collector may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// The time that the end of the program waits for the last batch; a user at a prompt waits no longer.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Statuses after which the same request may succeed.
const RETRYABLE_STATUSES: [u16; 4] = [429, 502, 503, 504];

/// Sends the remaining spans when it is dropped, within two seconds.
#[derive(Debug)]
pub struct TelemetryGuard {
    stop: CancellationToken,
    ended: Receiver<()>,
}

impl Drop for TelemetryGuard {
    fn drop(&mut self) {
        self.stop.cancel();
        if self.ended.recv_timeout(FLUSH_TIMEOUT).is_err() {
            tracing::warn!("the collector of OTEL_EXPORTER_OTLP_ENDPOINT did not answer before the end");
        }
    }
}

/// Starts the export: the layer collects, and a thread sends.
pub fn start_export(config: TelemetryConfig, version: &str) -> io::Result<(TelemetryLayer, TelemetryGuard)> {
    let (sender, spans) = mpsc::channel(QUEUE_LEN);
    let (ended_sender, ended) = sync_channel(1);
    let n_dropped = Arc::new(AtomicU64::new(0));
    let stop = CancellationToken::new();
    let exporter = SpanExporter {
        config,
        version: version.to_owned(),
        spans,
        stop: stop.clone(),
        n_dropped: n_dropped.clone(),
        last_failure: None,
    };
    // A thread and a runtime of its own: encoding and TLS must not delay the thread of the turns.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = move || {
        runtime.block_on(exporter.run());
        // The guard may have stopped waiting.
        let _ = ended_sender.send(());
    };
    std::thread::Builder::new().name("telemetry".to_owned()).spawn(run)?;
    Ok((TelemetryLayer { finished_spans: sender, n_dropped }, TelemetryGuard { stop, ended }))
}

struct SpanExporter {
    config: TelemetryConfig,
    version: String,
    spans: mpsc::Receiver<FinishedSpan>,
    stop: CancellationToken,
    n_dropped: Arc<AtomicU64>,
    /// The failure that was logged; the same one is not logged again before a success.
    last_failure: Option<String>,
}

impl SpanExporter {
    async fn run(mut self) {
        let http = match HttpClients::new() {
            Ok(http) => http,
            Err(failure) => return self.report_failure(failure.message),
        };
        while !self.stop.is_cancelled() {
            let batch = self.collect_batch().await;
            self.send_batch(&http, &batch).await;
        }
        loop {
            let mut batch = Vec::new();
            while batch.len() < BATCH_SPANS_MAX
                && let Ok(span) = self.spans.try_recv()
            {
                batch.push(span);
            }
            if batch.is_empty() {
                break;
            }
            self.send_batch(&http, &batch).await;
        }
        let n_dropped = self.n_dropped.load(Ordering::Relaxed);
        if n_dropped > 0 {
            tracing::warn!(n_dropped, "spans were not exported: the collector was too slow or away");
        }
    }

    /// Waits for a span, and then a moment for more.
    async fn collect_batch(&mut self) -> Vec<FinishedSpan> {
        let Self { spans, stop, .. } = self;
        let mut batch = Vec::new();
        let Some(Some(first)) = stop.run_until_cancelled(spans.recv()).await else { return batch };
        batch.push(first);
        let filling = async {
            while batch.len() < BATCH_SPANS_MAX
                && let Some(span) = spans.recv().await
            {
                batch.push(span);
            }
        };
        // Whatever ends the wait: what has arrived is the batch.
        let _ = stop.run_until_cancelled(timeout(BATCH_DELAY, filling)).await;
        batch
    }

    /// Sends a batch, with retries until the program ends.
    async fn send_batch(&mut self, http: &HttpClients, batch: &[FinishedSpan]) {
        if batch.is_empty() {
            return;
        }
        let body = encode_request(&self.config.resource, &self.version, batch);
        let mut n_failed = 0;
        let failure = loop {
            let TelemetryConfig { url, headers, .. } = &self.config;
            let post = JsonPost { url, headers, body: body.as_bytes(), timeout: POST_TIMEOUT };
            let (reason, retry_after) = match http.post_json(post).await {
                Ok(JsonPostAnswer { status: 200..=299, body, .. }) => break partial_success(&body),
                Ok(JsonPostAnswer { status, retry_after, .. }) => {
                    let reason = format!("it answered with status {status}");
                    if !RETRYABLE_STATUSES.contains(&status) {
                        break Some(reason);
                    }
                    (reason, retry_after)
                }
                Err(reason) => (reason, None),
            };
            if n_failed == RETRIES_MAX || self.stop.is_cancelled() {
                break Some(reason);
            }
            let backoff = FIRST_RETRY_DELAY * (1 << n_failed);
            let delay = retry_after.map_or(backoff, |asked| asked.min(RETRY_AFTER_MAX));
            n_failed += 1;
            let _ = self.stop.run_until_cancelled(sleep(delay.mul_f64(1.0 + http.retry_jitter()))).await;
        };
        match failure {
            Some(reason) => self.report_failure(reason),
            None => self.last_failure = None,
        }
    }

    fn report_failure(&mut self, reason: String) {
        if self.last_failure.as_ref() != Some(&reason) {
            tracing::warn!(reason, "the collector of OTEL_EXPORTER_OTLP_ENDPOINT did not take all spans");
            self.last_failure = Some(reason);
        }
    }
}
