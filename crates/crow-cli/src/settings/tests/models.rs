use super::*;

#[test]
fn providers_must_exist_and_have_an_address() {
    check(
        "providers: {openai: {base_url: http://h}}\nmodels:\n  m: {provider: opnai}\n",
        &[],
        expect![[r#"
        error: $DIR/config.yaml:3: unknown provider "opnai"; did you mean openai?
    "#]],
    );
    check(
        "models:\n  m: {provider: openai}\n",
        &[],
        expect![[r#"
        error: $DIR/config.yaml:2: unknown provider "openai"; `providers` is empty
    "#]],
    );
    check(
        "models:\n  m: {model: openai}\n",
        &[],
        expect![[r#"
        error: $DIR/config.yaml:2: models.m needs a provider
    "#]],
    );
    check(
        "providers:\n  p: {api_key: x}\n",
        &[],
        expect![[r#"
        error: $DIR/config.yaml:2: providers.p needs a base_url that starts with https:// or http://
    "#]],
    );
}

#[test]
fn wrong_model_name_gets_a_suggestion() {
    let directory = tempfile::tempdir().unwrap();
    let yaml =
        "providers: {p: {base_url: http://h}}\nmodels: {sonnet: {provider: p}, haiku: {provider: p}}\n";
    fs::write(directory.path().join("config.yaml"), yaml).unwrap();
    let (settings, _) = Settings::load(directory.path(), &Environment::new()).unwrap();
    assert_eq!(settings.find_model(None).unwrap().name, "sonnet");
    assert_eq!(settings.find_model(Some("haiku")).unwrap().name, "haiku");
    let error = settings.find_model(Some("sonet")).unwrap_err();
    expect![[r#"
        unknown model "sonet"
        did you mean sonnet? configured models: sonnet, haiku"#]]
    .assert_eq(&format!("{error}\n{}", error.hint().unwrap()));
}

#[test]
fn numbers_and_words_can_be_keys_and_names() {
    check(
        "providers: {p: {base_url: http://h, api_key: 0012}}\nmodels: {no: {provider: p, model: 7}, 8: {provider: p, model: off}}\n",
        &[],
        expect![[r#"
            model no: 7 at p http://h
              key Some(ApiKey(…)) from None headers []
              window 128000 max None temperature None effort None retries 3 body {}
            model 8: off at p http://h
              key Some(ApiKey(…)) from None headers []
              window 128000 max None temperature None effort None retries 3 body {}
            db $DIR/crow.db requests 200 mode ask secrets []
        "#]],
    );
}

/// A configuration with these settings of its provider and its model.
fn yaml(provider: &str, model: &str) -> String {
    format!(
        "providers:\n  a: {{ base_url: 'https://a.test/v1', {provider} }}\nmodels:\n  m: {{ provider: a, {model} }}\n"
    )
}

#[test]
fn tools_of_a_model_are_read() {
    check(
        &yaml("", "tools: core, exclude_tools: glob"),
        &[],
        expect![[r#"
        model m: m at a https://a.test/v1
          key None from None headers []
          window 128000 max None temperature None effort None retries 3 body {}
          tools ToolSelection { profile: Core, excluded: ["glob"], edit_tool: None }
        db $DIR/crow.db requests 200 mode ask secrets []
    "#]],
    );
    check(
        &yaml("", "tools: [read, grep], exclude_tools: [mcp_a, mcp_b]"),
        &[],
        expect![[r#"
        model m: m at a https://a.test/v1
          key None from None headers []
          window 128000 max None temperature None effort None retries 3 body {}
          tools ToolSelection { profile: Named(["read", "grep"]), excluded: ["mcp_a", "mcp_b"], edit_tool: None }
        db $DIR/crow.db requests 200 mode ask secrets []
    "#]],
    );
}

#[test]
fn edit_tool_of_a_model_is_read() {
    check(
        &yaml("", "edit_tool: str_replace_based_edit_tool"),
        &[],
        expect![[r#"
        model m: m at a https://a.test/v1
          key None from None headers []
          window 128000 max None temperature None effort None retries 3 body {}
          tools ToolSelection { profile: Auto, excluded: [], edit_tool: Some(StrReplace) }
        db $DIR/crow.db requests 200 mode ask secrets []
    "#]],
    );
    check(
        &yaml("", "edit_tool: patch"),
        &[],
        expect![[r#"
        error: $DIR/config.yaml:4: models.m.edit_tool: expected edit, apply_patch, str_replace_based_edit_tool
    "#]],
    );
}

#[test]
fn model_api_settings_are_read() {
    check(
        &yaml(
            "api: chat",
            "tool_calls: text, send_reasoning: true, price: { input: 3, output: 15, cached: 0.3 }, \
             thought_levels: { low: { think: false } }",
        ),
        &[],
        expect![[r#"
            model m: m at a https://a.test/v1
              key None from None headers []
              window 128000 max None temperature None effort None retries 3 body {}
              tool calls text
              sends its reasoning: true
              level low: {"think":false}
              ModelPrice { input: 3.0, output: 15.0, cached: Some(0.3), cache_written: None }
            db $DIR/crow.db requests 200 mode ask secrets []
        "#]],
    );
    check(
        &yaml("api: soap", ""),
        &[],
        expect![[r#"
        error: $DIR/config.yaml:2: providers.a.api: expected chat, messages, responses
    "#]],
    );
    check(
        &yaml("", "tool_calls: never"),
        &[],
        expect![[r#"
        error: $DIR/config.yaml:4: models.m.tool_calls: expected native, text, auto
    "#]],
    );
    check(
        &yaml("", "price: { input: 1 }"),
        &[],
        expect![[r#"
        error: $DIR/config.yaml:4: models.m.price needs input and output
    "#]],
    );
    check(
        &yaml("", "price: { input: -1, output: 2 }"),
        &[],
        expect![[r#"
            error: $DIR/config.yaml:4: models.m.price.input: expected US dollars per million tokens, found a negative number
        "#]],
    );
    check(
        &yaml("", "thought_levels: { huge: {} }"),
        &[],
        expect![[r#"
            error: $DIR/config.yaml:4: models.m.thought_levels: unknown level "huge"; known levels: default, minimal, low, medium, high
        "#]],
    );
}

#[test]
fn modalities_are_read() {
    let yaml = |model: &str| {
        format!("providers: {{ a: {{ base_url: 'http://h' }} }}\nmodels:\n  m: {{ provider: a, {model} }}\n")
    };
    for model in [
        "modality: [text]",
        "modality: text",
        "modalities: [text, audio]",
        "modality: [text, image]",
        "modality:",
        "modality: [text, vision]",
        "modality: { input: [text] }",
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("config.yaml"), yaml(model)).unwrap();
        let read = match Settings::load(directory.path(), &Environment::new()) {
            Ok((settings, _)) => settings.models[0].reads_images.to_string(),
            Err(error) => error.to_string().replace(&directory.path().display().to_string(), "$DIR"),
        };
        let expected = match model {
            "modality: [text]" | "modality: text" | "modalities: [text, audio]" => "false",
            "modality: [text, vision]" => {
                "$DIR/config.yaml:3: models.m.modality: unknown modality \"vision\"; known modalities: text, image, audio, video, file"
            }
            "modality: { input: [text] }" => {
                "$DIR/config.yaml:3: models.m.modality: expected a name or a list of names, found a map"
            }
            _ => "true",
        };
        assert_eq!(read, expected, "{model}");
    }
}

#[test]
fn fallbacks_are_configured_models() {
    let yaml = |fallbacks: &str| {
        format!(
            "providers: {{ a: {{ base_url: 'http://h' }} }}\nmodels:\n  big: {{ provider: a, fallbacks: {fallbacks} }}\n  small: {{ provider: a, fallbacks: [big] }}\n"
        )
    };
    for (fallbacks, expected) in [
        ("[small]", "small"),
        ("small", "small"),
        ("[big, small, small]", "small"),
        ("", ""),
        (
            "[small, smal]",
            "$DIR/config.yaml:3: models.big.fallbacks: unknown model \"smal\"; did you mean small?",
        ),
        (
            "[elsewhere]",
            "$DIR/config.yaml:3: models.big.fallbacks: unknown model \"elsewhere\"; configured models: big, small",
        ),
        (
            "{ small: 1 }",
            "$DIR/config.yaml:3: models.big.fallbacks: expected a name or a list of names, found a map",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("config.yaml"), yaml(fallbacks)).unwrap();
        let read = match Settings::load(directory.path(), &Environment::new()) {
            Ok((settings, _)) => settings.models[0].fallbacks.join(" "),
            Err(error) => error.to_string().replace(&directory.path().display().to_string(), "$DIR"),
        };
        assert_eq!(read, expected, "{fallbacks}");
    }
}
