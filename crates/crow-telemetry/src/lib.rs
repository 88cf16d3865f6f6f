//! Exports the spans of turns over OTLP/HTTP with JSON, if the environment names a collector. The only owner of OTLP.
//!
//! Spans are tracing spans with the target `TELEMETRY_TARGET`. A layer collects them, and a thread of its own encodes and
//! sends them, so that a turn waits for neither. Knows no session and no text of a conversation.

mod config;
mod exporter;
mod layer;
mod otlp;
mod span;
#[cfg(test)]
mod tests;

pub use config::{TelemetryConfig, TelemetryConfigError};
pub use exporter::{TelemetryGuard, start_export};
pub use layer::TelemetryLayer;
