//! Thinking: the request fields for a thought level, and what else of a request depends on them. The supported fields
//! are derived from a model's name; `thought_levels` in the configuration overrides them.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use crate::ModelSettings;
use crate::settings::merge_fields;

/// The share of the window for a reply if nothing is configured: what a compaction keeps free.
const REPLY_FRACTION: u64 = 8;

/// The output limit that every current model supports.
const REPLY_TOKENS_MAX: u64 = 32_000;

/// A shorter limit leaves no room for a reply.
const REPLY_TOKENS_MIN: u64 = 1024;

/// The provider's minimum for thinking.
const BUDGET_MIN: u64 = 1024;

/// The first version that decides by itself how much to think.
const ADAPTIVE_THINKING_SINCE: (u32, u32) = (4, 6);

/// The first version that may think without being asked.
const DEFAULT_THINKING_SINCE: (u32, u32) = (5, 0);

/// The fields of a request that depend on thinking.
pub(super) struct ThinkingConfig {
    /// The fields from the settings: those of the thought level, and over them `extra_body`.
    pub(super) fields: Map<String, Value>,
    /// Tokens of one reply, including thinking.
    pub(super) max_tokens: u64,
    thinks_by_default: bool,
}

impl ThinkingConfig {
    /// Derives the fields from the settings.
    pub(super) fn from_settings(settings: &ModelSettings) -> Self {
        let version = claude_version(&settings.model);
        let mut fields = match settings.effort_level() {
            Some(level) if version.is_some_and(|version| version >= ADAPTIVE_THINKING_SINCE) => {
                adaptive_fields(level)
            }
            Some(level) => budget_fields(level),
            None => Map::new(),
        };
        merge_fields(&mut fields, &settings.extra_fields());
        let max_tokens = resolve_max_tokens(settings, &fields);
        let thinks_by_default = version.is_none_or(|version| version >= DEFAULT_THINKING_SINCE);
        let mut thinking = Self { fields, max_tokens, thinks_by_default };
        thinking.clamp_budget();
        thinking
    }

    /// Whether the turn has to begin with thinking.
    pub(super) fn is_budgeted(&self) -> bool {
        self.thinking_type() == Some("enabled")
    }

    /// Whether the request enables thinking, which forbids a temperature.
    pub(super) fn is_enabled(&self) -> bool {
        matches!(self.thinking_type(), Some("enabled" | "adaptive"))
    }

    /// Whether the provider accepts the thinking of earlier replies in this request.
    pub(super) fn accepts_past_thinking(&self) -> bool {
        self.is_enabled() || (self.thinking_type().is_none() && self.thinks_by_default)
    }

    /// Disables thinking.
    pub(super) fn disable_thinking(&mut self) {
        self.fields.shift_remove("thinking");
    }

    fn thinking_type(&self) -> Option<&str> {
        self.fields.get("thinking")?.get("type")?.as_str()
    }

    /// The provider rejects a budget that leaves nothing for the reply.
    fn clamp_budget(&mut self) {
        let Some(budget) = thinking_budget(&self.fields) else { return };
        let budget_max = self.max_tokens - self.max_tokens / 4;
        if budget_max < BUDGET_MIN {
            self.disable_thinking();
        } else if budget > budget_max {
            self.fields["thinking"]["budget_tokens"] = budget_max.into();
        }
    }
}

/// A model of version 4.6 or later thinks as much as it needs; the level is its overall effort. Without `display` the
/// later ones do not return their thinking.
fn adaptive_fields(level: &str) -> Map<String, Value> {
    match level {
        "none" | "off" => field_map([("thinking", json!({"type": "disabled"}))]),
        "minimal" => field_map([("output_config", json!({"effort": "low"}))]),
        effort => field_map([
            ("thinking", json!({"type": "adaptive", "display": "summarized"})),
            ("output_config", json!({"effort": effort})),
        ]),
    }
}

/// Earlier models, and those of other makers, get a number of tokens for thinking.
fn budget_fields(level: &str) -> Map<String, Value> {
    let budget_tokens = match level {
        "none" | "off" => return field_map([("thinking", json!({"type": "disabled"}))]),
        "minimal" => return Map::new(),
        "low" => 4_000,
        "high" => 16_000,
        "xhigh" | "max" => 24_000,
        _ => 8_000,
    };
    field_map([("thinking", json!({"type": "enabled", "budget_tokens": budget_tokens}))])
}

fn field_map<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn resolve_max_tokens(settings: &ModelSettings, fields: &Map<String, Value>) -> u64 {
    let configured = fields.get("max_tokens").and_then(Value::as_u64).or(settings.max_tokens);
    configured.unwrap_or_else(|| {
        let default_max =
            (settings.context_window / REPLY_FRACTION).clamp(REPLY_TOKENS_MIN, REPLY_TOKENS_MAX);
        // Room for the budget, and a third of it for the reply.
        let budget = thinking_budget(fields).unwrap_or(0);
        default_max.max((budget.saturating_add(budget / 3)).min(settings.context_window / 2))
    })
}

fn thinking_budget(fields: &Map<String, Value>) -> Option<u64> {
    fields.get("thinking")?.get("budget_tokens")?.as_u64()
}

/// Parses the version of a Claude model's name, such as `claude-opus-4-5-20251101`; other models have none. A name
/// without a number counts as the newest.
fn claude_version(model: &str) -> Option<(u32, u32)> {
    let model = model.to_ascii_lowercase();
    let name = &model[model.find("claude")?..];
    // A date is longer.
    let numbers = name.split(|c: char| !c.is_ascii_digit()).filter(|digits| (1..=2).contains(&digits.len()));
    let mut numbers = numbers.filter_map(|digits| digits.parse().ok());
    let major = numbers.next().unwrap_or(u32::MAX);
    Some((major, numbers.next().unwrap_or(0)))
}
