//! The exported span of a model request: which model, how long, how many tokens. Knows no text of the conversation.

use crow_core::{Reply, ReplyEnd, TELEMETRY_TARGET, telemetry_provider};
use tokio::time::Instant;
use tracing::Span;
use tracing::field::Empty;

use crate::{ModelSettings, ProviderSettings};

/// Returns the name of a provider for telemetry: that of the conventions, or its configured name.
pub fn telemetry_provider_name(provider: &ProviderSettings) -> String {
    let url = reqwest::Url::parse(&provider.base_url).ok();
    let known = url.as_ref().and_then(|url| url.host_str()).and_then(telemetry_provider);
    known.map_or_else(|| provider.name.clone(), str::to_owned)
}

/// Starts the span of a request. Without an exporter it costs one comparison.
pub(crate) fn request_span(settings: &ModelSettings) -> Span {
    let span = tracing::info_span!(
        target: TELEMETRY_TARGET,
        "chat",
        otel.name = format!("chat {}", settings.model),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = telemetry_provider_name(&settings.provider),
        gen_ai.request.model = settings.model,
        gen_ai.request.stream = true,
        gen_ai.request.max_tokens = Empty,
        gen_ai.request.temperature = Empty,
        server.address = Empty,
        server.port = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.response.time_to_first_chunk = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        "error.type" = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    if let Some(max_tokens) = settings.max_tokens {
        span.record("gen_ai.request.max_tokens", max_tokens);
    }
    if let Some(temperature) = settings.temperature {
        span.record("gen_ai.request.temperature", temperature);
    }
    if let Ok(url) = reqwest::Url::parse(&settings.provider.base_url)
        && let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default())
    {
        span.record("server.address", host).record("server.port", port);
    }
    span
}

/// Records that the first part of a reply has arrived, in the span around the caller.
pub(crate) fn record_first_output(started_at: Instant) {
    Span::current().record("gen_ai.response.time_to_first_chunk", started_at.elapsed().as_secs_f64());
}

/// Records the end of a reply.
pub(crate) fn record_reply(span: &Span, reply: &Reply) {
    let finish_reason = match &reply.end {
        ReplyEnd::Complete if !reply.calls.is_empty() => Some("tool_call"),
        ReplyEnd::Complete => Some("stop"),
        ReplyEnd::OutputLimit => Some("length"),
        ReplyEnd::Refused => Some("content_filter"),
        ReplyEnd::SizeLimit | ReplyEnd::Cancelled | ReplyEnd::Failed(_) => None,
    };
    if let Some(finish_reason) = finish_reason {
        span.record("gen_ai.response.finish_reasons", finish_reason);
    }
    match &reply.end {
        ReplyEnd::Failed(failure) => {
            span.record("error.type", failure.kind.as_str());
        }
        ReplyEnd::Cancelled => {
            span.record("error.type", "cancelled");
        }
        ReplyEnd::SizeLimit => {
            span.record("error.type", "size_limit");
        }
        ReplyEnd::Complete | ReplyEnd::OutputLimit | ReplyEnd::Refused => {}
    }
    if let Some(usage) = reply.usage {
        span.record("gen_ai.usage.input_tokens", usage.input)
            .record("gen_ai.usage.output_tokens", usage.output)
            .record("gen_ai.usage.cache_read.input_tokens", usage.cached)
            .record("gen_ai.usage.cache_creation.input_tokens", usage.cache_written);
    }
}
