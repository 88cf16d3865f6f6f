//! Well-known providers, the first request, and an existing configuration.

use std::fs;

use expect_test::expect;

use super::{
    super::{
        config_files::{self, ConfigDraft},
        environment_scan,
        model_choice::ModelChoice,
    },
    check,
};
use crate::settings::Environment;

#[test]
fn well_known_providers_get_their_newest_model() {
    let env = [
        ("ANTHROPIC_API_KEY", "a"),
        ("OPENAI_API_KEY", "o"),
        ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    ];
    check(
        &env,
        &[],
        expect![[r#"
            wrote $DIR/config.yaml
              anthropic: claude-sonnet-5-5
              openai: gpt-6.1-sol
            the first model is the default; edit the file to change it
            claude-sonnet-5-5 answered and called a tool
            --- .env
            ANTHROPIC_API_KEY=a
            OPENAI_API_KEY=o
            --- config.yaml
            # yaml-language-server: $schema=./config.schema.json
            # $schema: ./config.schema.json

            # Model providers. Keys are read from the environment and from .env next to this file.
            providers:
              anthropic:
                base_url: "https://api.anthropic.com/v1"
                api: messages
                api_key: ${ANTHROPIC_API_KEY}
              openai:
                base_url: "https://api.openai.com/v1"
                api: responses
                api_key: ${OPENAI_API_KEY}

            # The first model is the default.
            models:
              claude-sonnet-5-5:
                provider: anthropic
                model: claude-sonnet-5-5
                context_window: 1000000
                price: { input: 2, output: 10, cached: 0.1, cache_written: 2.5 }
              gpt-6.1-sol:
                provider: openai
                model: gpt-6.1-sol
                context_window: 922000
                price: { input: 2, output: 10, cached: 0.1, cache_written: 2.5 }
        "#]],
    );
}

#[test]
fn provider_at_another_address_keeps_to_the_usual_api() {
    let elsewhere = [
        ("OPENAI_API_KEY", "o"),
        ("OPENAI_BASE_URL", "https://proxy/v1"),
        ("LLM_OPENAI_MODEL", "gpt-6.1-sol"),
    ];
    check(
        &elsewhere,
        &[],
        expect![[r#"
            wrote $DIR/config.yaml
              openai: gpt-6.1-sol
            the first model is the default; edit the file to change it
            gpt-6.1-sol answered and called a tool
            --- .env
            OPENAI_API_KEY=o
            --- config.yaml
            # yaml-language-server: $schema=./config.schema.json
            # $schema: ./config.schema.json

            # Model providers. Keys are read from the environment and from .env next to this file.
            providers:
              openai:
                base_url: "https://proxy/v1"
                api_key: ${OPENAI_API_KEY}

            # The first model is the default.
            models:
              gpt-6.1-sol:
                provider: openai
                model: gpt-6.1-sol
        "#]],
    );
}

#[test]
fn first_request_is_reported() {
    for model in ["locked", "talker"] {
        let env = [("LLM_A_BASE_URL", "http://a/v1"), ("LLM_A_MODEL", model)];
        let outcome = match model {
            "locked" => expect![[r#"
                wrote $DIR/config.yaml
                  a: locked
                the first model is the default; edit the file to change it
                note: locked did not answer: the key was rejected; `crow-cli doctor` checks it again
                --- .env
                --- config.yaml
                # yaml-language-server: $schema=./config.schema.json
                # $schema: ./config.schema.json

                # Model providers. Keys are read from the environment and from .env next to this file.
                providers:
                  a:
                    base_url: "http://a/v1"

                # The first model is the default.
                models:
                  locked:
                    provider: a
                    model: locked
            "#]],
            _ => expect![[r#"
                wrote $DIR/config.yaml
                  a: talker
                the first model is the default; edit the file to change it
                note: talker answered, but called no tool; if it writes calls into its text, set `tool_calls: text`
                --- .env
                --- config.yaml
                # yaml-language-server: $schema=./config.schema.json
                # $schema: ./config.schema.json

                # Model providers. Keys are read from the environment and from .env next to this file.
                providers:
                  a:
                    base_url: "http://a/v1"

                # The first model is the default.
                models:
                  talker:
                    provider: a
                    model: talker
            "#]],
        };
        check(&env, &[], outcome);
    }
}

#[test]
fn existing_configuration_is_extended() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    let text = "# mine\nproviders:\n  openai:\n    base_url: https://proxy/v1 # ours\nmodels:\n  gpt-6.1-sol: { provider: openai }\n";
    fs::write(dir.join("config.yaml"), text).unwrap();
    let env = Environment::from([("OPENAI_API_KEY".to_owned(), "sk".to_owned())]);
    let mut providers = environment_scan::scan_environment(&env).providers;
    let model = ModelChoice::from_name("gpt-6.1-sol").with_known_facts(&providers[0].base_url);
    providers[0].models.push(model);
    let draft = ConfigDraft { providers: &providers, search_url: None, database_uri: None };
    let extend =
        || config_files::extend_config_files(dir, &env, &draft, &["OPENAI_API_KEY".to_owned()]).unwrap();
    assert_eq!(extend(), None);
    expect![[r##"
        # mine
        providers:
          openai:
            base_url: https://proxy/v1 # ours
          openai-2:
            base_url: "https://api.openai.com/v1"
            api: responses
            api_key: ${OPENAI_API_KEY}
        models:
          gpt-6.1-sol: { provider: openai }
          openai-2/gpt-6.1-sol:
            provider: openai-2
            model: gpt-6.1-sol
            context_window: 922000
            price: { input: 2, output: 10, cached: 0.1, cache_written: 2.5 }
    "##]]
    .assert_eq(&fs::read_to_string(dir.join("config.yaml")).unwrap());
    assert_eq!(fs::read_to_string(dir.join("config.yaml.bak")).unwrap(), text);
    fs::write(
        dir.join("config.yaml"),
        "models: {\n  a: { provider: p }\n}\nproviders: { p: { base_url: http://p } }\n",
    )
    .unwrap();
    expect![[r#"
        providers:
          openai:
            base_url: "https://api.openai.com/v1"
            api: responses
            api_key: ${OPENAI_API_KEY}
        models:
          gpt-6.1-sol:
            provider: openai
            model: gpt-6.1-sol
            context_window: 922000
            price: { input: 2, output: 10, cached: 0.1, cache_written: 2.5 }
    "#]]
    .assert_eq(&extend().unwrap_or_default());
}
