use serde_json::{Map, Value, json};

use crate::test_settings::sample_settings;

fn fields(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Shows the level and the additional fields at a thought level.
#[track_caller]
fn check(level: Option<&str>, extra_body: &Value, effort: Option<&str>, added: &Value) {
    let mut settings = sample_settings();
    settings.thought_levels = [
        ("default".to_owned(), fields(&json!({"think": false}))),
        ("low".to_owned(), fields(&json!({"kwargs": {"think": true, "budget": {"tokens": 5}}}))),
        ("minimal".to_owned(), Map::new()),
    ]
    .into();
    settings.reasoning_effort = level.map(str::to_owned);
    settings.extra_body = fields(extra_body);
    assert_eq!((settings.effort_level(), Value::Object(settings.extra_fields())), (effort, added.clone()));
}

#[test]
fn thought_level_is_a_name_or_fields() {
    let nothing = json!({});
    check(None, &nothing, None, &json!({"think": false}));
    check(Some("high"), &nothing, Some("high"), &nothing);
    check(Some("minimal"), &nothing, None, &nothing);
    let low = json!({"kwargs": {"think": true, "budget": {"tokens": 5}}});
    check(Some("low"), &nothing, None, &low);
}

#[test]
fn extra_body_wins_over_a_level() {
    let extra = json!({"kwargs": {"budget": {"tokens": 7}, "seed": 1}, "top_k": 4});
    let joined = json!({"kwargs": {"think": true, "budget": {"tokens": 7}, "seed": 1}, "top_k": 4});
    check(Some("low"), &extra, None, &joined);
    check(Some("low"), &json!({"kwargs": null}), None, &json!({"kwargs": null}));
    check(Some("high"), &extra, Some("high"), &extra);
}
