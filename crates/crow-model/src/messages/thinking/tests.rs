use expect_test::{Expect, expect};
use serde_json::{Map, Value, json};

use super::{ThinkingConfig, claude_version};
use crate::test_settings::sample_settings;

fn fields(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Shows the fields of each level for a model.
#[track_caller]
fn check(model: &str, window: u64, max_tokens: Option<u64>, expected: &Expect) {
    let mut settings = sample_settings();
    settings.model = model.to_owned();
    settings.context_window = window;
    settings.max_tokens = max_tokens;
    settings.thought_levels =
        [("custom".to_owned(), fields(&json!({"thinking": {"type": "enabled", "budget_tokens": 20_000}})))]
            .into();
    let levels = [
        None,
        Some("none"),
        Some("minimal"),
        Some("low"),
        Some("medium"),
        Some("high"),
        Some("xhigh"),
        Some("custom"),
    ];
    let line = |level: Option<&str>| {
        settings.reasoning_effort = level.map(str::to_owned);
        let thinking = ThinkingConfig::from_settings(&settings);
        let takes = if thinking.accepts_past_thinking() { ", takes reasoning back" } else { "" };
        let fields = Value::Object(thinking.fields.clone());
        format!("{}: {} of {}{takes}\n", level.unwrap_or("unsaid"), fields, thinking.max_tokens)
    };
    expected.assert_eq(&levels.map(line).concat());
}

#[test]
fn levels_of_an_adaptive_model() {
    check(
        "claude-opus-4-6",
        200_000,
        None,
        &expect![[r#"
        unsaid: {} of 25000
        none: {"thinking":{"type":"disabled"}} of 25000
        minimal: {"output_config":{"effort":"low"}} of 25000
        low: {"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}} of 25000, takes reasoning back
        medium: {"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"medium"}} of 25000, takes reasoning back
        high: {"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}} of 25000, takes reasoning back
        xhigh: {"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"xhigh"}} of 25000, takes reasoning back
        custom: {"thinking":{"type":"enabled","budget_tokens":20000}} of 26666, takes reasoning back
    "#]],
    );
    check(
        "claude-opus-5",
        1_000_000,
        None,
        &expect![[r#"
        unsaid: {} of 32000, takes reasoning back
        none: {"thinking":{"type":"disabled"}} of 32000
        minimal: {"output_config":{"effort":"low"}} of 32000, takes reasoning back
        low: {"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}} of 32000, takes reasoning back
        medium: {"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"medium"}} of 32000, takes reasoning back
        high: {"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}} of 32000, takes reasoning back
        xhigh: {"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"xhigh"}} of 32000, takes reasoning back
        custom: {"thinking":{"type":"enabled","budget_tokens":20000}} of 32000, takes reasoning back
    "#]],
    );
}

#[test]
fn levels_of_a_model_with_a_budget() {
    check(
        "claude-sonnet-4-5-20250929",
        200_000,
        None,
        &expect![[r#"
        unsaid: {} of 25000
        none: {"thinking":{"type":"disabled"}} of 25000
        minimal: {} of 25000
        low: {"thinking":{"type":"enabled","budget_tokens":4000}} of 25000, takes reasoning back
        medium: {"thinking":{"type":"enabled","budget_tokens":8000}} of 25000, takes reasoning back
        high: {"thinking":{"type":"enabled","budget_tokens":16000}} of 25000, takes reasoning back
        xhigh: {"thinking":{"type":"enabled","budget_tokens":24000}} of 32000, takes reasoning back
        custom: {"thinking":{"type":"enabled","budget_tokens":20000}} of 26666, takes reasoning back
    "#]],
    );
    check(
        "other-1",
        32_000,
        None,
        &expect![[r#"
        unsaid: {} of 4000, takes reasoning back
        none: {"thinking":{"type":"disabled"}} of 4000
        minimal: {} of 4000, takes reasoning back
        low: {"thinking":{"type":"enabled","budget_tokens":4000}} of 5333, takes reasoning back
        medium: {"thinking":{"type":"enabled","budget_tokens":8000}} of 10666, takes reasoning back
        high: {"thinking":{"type":"enabled","budget_tokens":12000}} of 16000, takes reasoning back
        xhigh: {"thinking":{"type":"enabled","budget_tokens":12000}} of 16000, takes reasoning back
        custom: {"thinking":{"type":"enabled","budget_tokens":12000}} of 16000, takes reasoning back
    "#]],
    );
}

#[test]
fn budget_stays_below_the_reply_limit() {
    check(
        "claude-sonnet-4-5",
        200_000,
        Some(8_000),
        &expect![[r#"
        unsaid: {} of 8000
        none: {"thinking":{"type":"disabled"}} of 8000
        minimal: {} of 8000
        low: {"thinking":{"type":"enabled","budget_tokens":4000}} of 8000, takes reasoning back
        medium: {"thinking":{"type":"enabled","budget_tokens":6000}} of 8000, takes reasoning back
        high: {"thinking":{"type":"enabled","budget_tokens":6000}} of 8000, takes reasoning back
        xhigh: {"thinking":{"type":"enabled","budget_tokens":6000}} of 8000, takes reasoning back
        custom: {"thinking":{"type":"enabled","budget_tokens":6000}} of 8000, takes reasoning back
    "#]],
    );
    check(
        "claude-sonnet-4-5",
        200_000,
        Some(1_000),
        &expect![[r#"
        unsaid: {} of 1000
        none: {"thinking":{"type":"disabled"}} of 1000
        minimal: {} of 1000
        low: {} of 1000
        medium: {} of 1000
        high: {} of 1000
        xhigh: {} of 1000
        custom: {} of 1000
    "#]],
    );
}

#[test]
fn extra_body_wins_over_a_level() {
    let mut settings = sample_settings();
    settings.model = "claude-opus-4-7".to_owned();
    settings.reasoning_effort = Some("low".to_owned());
    settings.extra_body = fields(&json!({"thinking": {"display": "omitted"}, "top_k": 4}));
    let expected = json!({"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "low"}, "top_k": 4});
    assert_eq!(Value::Object(ThinkingConfig::from_settings(&settings).fields), expected);
}

#[test]
fn model_names_give_their_version() {
    let named = [
        ("claude-3-7-sonnet-20250219", Some((3, 7))),
        ("claude-sonnet-4-20250514", Some((4, 0))),
        ("claude-opus-4-1@20250805", Some((4, 1))),
        ("anthropic.claude-haiku-4-5-20251001-v1:0", Some((4, 5))),
        ("anthropic/Claude-Opus-4.6", Some((4, 6))),
        ("claude-mythos-preview", Some((u32::MAX, 0))),
        ("some-model-4-6", None),
    ];
    for (name, expected) in named {
        assert_eq!(claude_version(name), expected, "{name}");
    }
}
