//! How a model is asked to think: the fields for a thought level, and what else of a request depends on them.
//! Which fields a model takes is read from its name; `thought_levels` of the configuration says otherwise.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use crate::ModelSettings;
use crate::settings::merge_fields;

/// The part of the window that a reply may take where nothing is configured: as much as a compaction keeps free.
const REPLY_PART: u64 = 8;

/// What every model that is still offered may write in one reply.
const REPLY_MAX: u64 = 32_000;

/// Fewer tokens than this are no reply.
const REPLY_MIN: u64 = 1024;

/// The least that the provider takes for thinking.
const BUDGET_MIN: u64 = 1024;

/// The first version that decides by itself how much to think.
const ADAPTIVE_SINCE: (u32, u32) = (4, 6);

/// The first version that may think without being asked to.
const UNASKED_SINCE: (u32, u32) = (5, 0);

/// The fields of a request that depend on how the model is to think.
pub(super) struct ThinkingConfig {
    /// What the settings put into the request: fields of the thought level, and over them `extra_body`.
    pub(super) fields: Map<String, Value>,
    /// Tokens of one reply, those of the thinking among them.
    pub(super) max_tokens: u64,
    thinks_unasked: bool,
}

impl ThinkingConfig {
    /// Asks as the settings say.
    pub(super) fn from_settings(settings: &ModelSettings) -> Self {
        let version = claude_version(&settings.model);
        let mut fields = match settings.effort_level() {
            Some(level) if version.is_some_and(|version| version >= ADAPTIVE_SINCE) => adaptive_fields(level),
            Some(level) => budget_fields(level),
            None => Map::new(),
        };
        merge_fields(&mut fields, &settings.extra_fields());
        let max_tokens = resolve_max_tokens(settings, &fields);
        let thinks_unasked = version.is_none_or(|version| version >= UNASKED_SINCE);
        let mut thinking = Self { fields, max_tokens, thinks_unasked };
        thinking.clamp_budget();
        thinking
    }

    /// Tells whether the turn has to begin with reasoning.
    pub(super) fn is_budgeted(&self) -> bool {
        self.thinking_type() == Some("enabled")
    }

    /// Tells whether the request asks for reasoning; nothing may be said of the temperature then.
    pub(super) fn is_enabled(&self) -> bool {
        matches!(self.thinking_type(), Some("enabled" | "adaptive"))
    }

    /// Tells whether the provider takes the reasoning of earlier replies back with this request.
    pub(super) fn accepts_past_thinking(&self) -> bool {
        self.is_enabled() || (self.thinking_type().is_none() && self.thinks_unasked)
    }

    /// Asks for no reasoning.
    pub(super) fn disable_thinking(&mut self) {
        self.fields.shift_remove("thinking");
    }

    fn thinking_type(&self) -> Option<&str> {
        self.fields.get("thinking")?.get("type")?.as_str()
    }

    /// The provider refuses a budget that leaves nothing for the reply.
    fn clamp_budget(&mut self) {
        let Some(budget) = thinking_budget(&self.fields) else { return };
        let most = self.max_tokens - self.max_tokens / 4;
        if most < BUDGET_MIN {
            self.disable_thinking();
        } else if budget > most {
            self.fields["thinking"]["budget_tokens"] = most.into();
        }
    }
}

/// A model of version 4.6 or later thinks as much as it finds right; the level is how hard it works at all. Without
/// `display` the later ones keep their reasoning to themselves.
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

/// Earlier models, and those of other makers, are given a number of tokens to think with.
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
    let chosen = fields.get("max_tokens").and_then(Value::as_u64).or(settings.max_tokens);
    chosen.unwrap_or_else(|| {
        let usual = (settings.context_window / REPLY_PART).clamp(REPLY_MIN, REPLY_MAX);
        // Room for the budget, and a third of it for the reply.
        let budget = thinking_budget(fields).unwrap_or(0);
        usual.max((budget.saturating_add(budget / 3)).min(settings.context_window / 2))
    })
}

fn thinking_budget(fields: &Map<String, Value>) -> Option<u64> {
    fields.get("thinking")?.get("budget_tokens")?.as_u64()
}

/// Reads the version out of the name of a Claude, such as `claude-opus-4-5-20251101`; the others have none. One that is
/// named without a number is newer than all numbers.
fn claude_version(model: &str) -> Option<(u32, u32)> {
    let model = model.to_ascii_lowercase();
    let name = &model[model.find("claude")?..];
    // A date is longer.
    let numbers = name.split(|c: char| !c.is_ascii_digit()).filter(|digits| (1..=2).contains(&digits.len()));
    let mut numbers = numbers.filter_map(|digits| digits.parse().ok());
    let major = numbers.next().unwrap_or(u32::MAX);
    Some((major, numbers.next().unwrap_or(0)))
}
