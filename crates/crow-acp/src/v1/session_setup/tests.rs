use crow_core::ModelInfo;
use expect_test::{Expect, expect};

use super::*;

/// Encodes the models of an option, `PROVIDER:MODEL` each.
#[track_caller]
fn check(models: &[&str], expected: &Expect) {
    let models = models.iter().map(|model| {
        let (provider, name) = model.split_once(':').unwrap();
        ModelInfo { name: name.into(), provider: provider.into() }
    });
    let options = SessionConfigOptions {
        mode: Mode::Ask,
        model: Some("a".into()),
        models: models.collect(),
        thought_level: ThoughtLevel::Default,
    };
    let spelled = serde_json::to_value(config_options(&options)).unwrap();
    expected.assert_eq(&spelled[1]["options"].to_string());
}

#[test]
fn models_of_several_providers_are_grouped() {
    check(
        &["one:a", "two:b", "one:c"],
        &expect![[
            r#"[{"group":"one","name":"one","options":[{"value":"a","name":"a"},{"value":"c","name":"c"}]},{"group":"two","name":"two","options":[{"value":"b","name":"b"}]}]"#
        ]],
    );
}

#[test]
fn models_of_one_provider_are_a_flat_list() {
    check(&["one:a", "one:b"], &expect![[r#"[{"value":"a","name":"a"},{"value":"b","name":"b"}]"#]]);
}
