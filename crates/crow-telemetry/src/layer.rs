//! The layer that collects spans. Nothing here waits: a span for which the queue has no room is counted and dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crow_core::TELEMETRY_TARGET;
use tokio::sync::mpsc;
use tracing::span::{Attributes, Record};
use tracing::{Id, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::span::{FinishedSpan, OpenSpan};

/// Collects the spans of turns.
#[derive(Debug)]
pub struct TelemetryLayer {
    pub(crate) finished_spans: mpsc::Sender<FinishedSpan>,
    pub(crate) n_dropped: Arc<AtomicU64>,
}

impl TelemetryLayer {
    /// Adds the filter: other spans are not even created for this layer.
    pub fn into_filtered<S: Subscriber + for<'a> LookupSpan<'a>>(self) -> impl Layer<S> {
        self.with_filter(Targets::new().with_target(TELEMETRY_TARGET, Level::INFO))
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TelemetryLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let parent = span.parent().and_then(|parent| Some(parent.extensions().get::<OpenSpan>()?.ids));
        let Some(mut open) = OpenSpan::start(span.name(), parent) else { return };
        attributes.record(&mut open);
        span.extensions_mut().insert(open);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<OpenSpan>() {
            values.record(open);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let open = context.span(&id).and_then(|span| span.extensions_mut().remove::<OpenSpan>());
        if let Some(open) = open
            && self.finished_spans.try_send(open.finish()).is_err()
        {
            self.n_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}
