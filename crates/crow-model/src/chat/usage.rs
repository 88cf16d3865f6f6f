//! Tokens and prices as providers report them. Each counts in its own fields.

use crow_core::TokenUsage;
use serde_json::Value;

/// Fields for tokens from the cache.
const CACHED_PATHS: [&str; 5] = [
    "/prompt_tokens_details/cached_tokens",
    "/prompt_cache_hit_tokens",
    "/cached_tokens",
    "/cache_read_input_tokens",
    "/input_tokens_details/cached_tokens",
];

/// Fields for tokens written to the cache.
const CACHE_WRITTEN_PATHS: [&str; 4] = [
    "/prompt_tokens_details/cache_write_tokens",
    "/prompt_tokens_details/cache_creation_tokens",
    "/prompt_tokens_details/cache_creation_input_tokens",
    "/cache_creation_input_tokens",
];

/// A higher price in dollars was in another unit.
const DOLLARS_MAX: f64 = 1e6;

/// Parses a `usage` object; `None` if it has no counts.
pub(super) fn read_usage(text: &str) -> Option<TokenUsage> {
    let wire: Value = serde_json::from_str(text).ok()?;
    let input = first_count(&wire, &["/prompt_tokens", "/input_tokens"]);
    let cached = first_count(&wire, &CACHED_PATHS);
    let cache_written = first_count(&wire, &CACHE_WRITTEN_PATHS);
    let cache_total = cached.saturating_add(cache_written);
    let reported_output = first_count(&wire, &["/completion_tokens", "/output_tokens"]);
    let (input, output) = if cache_total > input {
        // If there are more cached tokens than input tokens, they are counted separately.
        (input.saturating_add(cache_total), reported_output)
    } else {
        // Some omit reasoning from the output tokens, but not from the total.
        (input, reported_output.max(first_count(&wire, &["/total_tokens"]).saturating_sub(input)))
    };
    let usage = TokenUsage { input, output, cached, cache_written, cost: reported_cost(&wire) };
    // Some servers send zeros until they know.
    (usage.total_tokens() > 0).then_some(usage)
}

fn first_count(wire: &Value, paths: &[&str]) -> u64 {
    paths.iter().find_map(|path| parse_count(wire.pointer(path)?)).unwrap_or(0)
}

/// Parses a number of tokens, which some send as `5.0`.
fn parse_count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| format!("{:.0}", value.as_f64()?).parse().ok())
}

/// The cost reported by the provider, in billionths of a dollar.
fn reported_cost(wire: &Value) -> Option<u64> {
    let mut dollars = wire.get("cost")?.as_f64()?;
    // With the user's own key the gateway reports only its fee; the model is paid elsewhere.
    if wire.get("is_byok") == Some(&Value::Bool(true)) {
        dollars +=
            wire.pointer("/cost_details/upstream_inference_cost").and_then(Value::as_f64).unwrap_or(0.0);
    }
    let is_plausible = (0.0..DOLLARS_MAX).contains(&dollars);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is sane")]
    is_plausible.then(|| (dollars * 1e9).round() as u64)
}
