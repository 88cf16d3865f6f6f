//! What providers say of tokens and their price. Each counts in its own fields.

use crow_core::TokenUsage;
use serde_json::Value;

/// Where tokens stand that came out of the cache.
const CACHED: [&str; 5] = [
    "/prompt_tokens_details/cached_tokens",
    "/prompt_cache_hit_tokens",
    "/cached_tokens",
    "/cache_read_input_tokens",
    "/input_tokens_details/cached_tokens",
];

/// Where tokens stand that were written into the cache.
const CACHE_WRITTEN: [&str; 4] = [
    "/prompt_tokens_details/cache_write_tokens",
    "/prompt_tokens_details/cache_creation_tokens",
    "/prompt_tokens_details/cache_creation_input_tokens",
    "/cache_creation_input_tokens",
];

/// A reply that costs more dollars than this was counted in something else.
const DOLLARS_MAX: f64 = 1e6;

/// Reads a `usage` object; nothing where it counts nothing.
pub(super) fn read_usage(text: &str) -> Option<TokenUsage> {
    let wire: Value = serde_json::from_str(text).ok()?;
    let input = first_count(&wire, &["/prompt_tokens", "/input_tokens"]);
    let cached = first_count(&wire, &CACHED);
    let cache_written = first_count(&wire, &CACHE_WRITTEN);
    let of_cache = cached.saturating_add(cache_written);
    let said = first_count(&wire, &["/completion_tokens", "/output_tokens"]);
    let (input, output) = if of_cache > input {
        // Whoever has more in the cache than it read counts the two apart.
        (input.saturating_add(of_cache), said)
    } else {
        // Some leave the reasoning out of the tokens written, but not out of the sum.
        (input, said.max(first_count(&wire, &["/total_tokens"]).saturating_sub(input)))
    };
    let usage = TokenUsage { input, output, cached, cache_written, cost: reported_cost(&wire) };
    // Some servers send zeros until they know.
    (usage.total_tokens() > 0).then_some(usage)
}

fn first_count(wire: &Value, places: &[&str]) -> u64 {
    places.iter().find_map(|place| parse_count(wire.pointer(place)?)).unwrap_or(0)
}

/// A number of tokens, which some spell `5.0`.
fn parse_count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| format!("{:.0}", value.as_f64()?).parse().ok())
}

/// What the provider itself took, in billionths of a dollar.
fn reported_cost(wire: &Value) -> Option<u64> {
    let mut dollars = wire.get("cost")?.as_f64()?;
    // With a person's own key the broker names its fee only; the model is paid elsewhere.
    if wire.get("is_byok") == Some(&Value::Bool(true)) {
        dollars +=
            wire.pointer("/cost_details/upstream_inference_cost").and_then(Value::as_f64).unwrap_or(0.0);
    }
    let is_sane = (0.0..DOLLARS_MAX).contains(&dollars);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is sane")]
    is_sane.then(|| (dollars * 1e9).round() as u64)
}
