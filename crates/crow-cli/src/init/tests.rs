#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use std::fs;

use crow_model::ProviderSettings;
use expect_test::{Expect, expect};

use crate::{
    cli::InitArgs,
    settings::{Environment, Settings},
};

/// Runs `init -y` in a new folder with a server whose `/models` lists some, and shows what it said and wrote.
#[track_caller]
fn check(env: &[(&str, &str)], before: &[(&str, &str)], expect: Expect) {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join(".crow");
    if !before.is_empty() {
        fs::create_dir(&dir).unwrap();
    }
    for (name, text) in before {
        fs::write(dir.join(name), text).unwrap();
    }
    let env: Environment = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let list = async |provider: ProviderSettings| match provider.base_url.contains("down") {
        true => Err("the connection was refused".to_owned()),
        false => Ok(["embed-1", "big:70b", "no", "small/1", "whisper"].map(str::to_owned).to_vec()),
    };
    let mut log = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let end = runtime.block_on(super::run(&InitArgs { yes: true, from: None }, &dir, &env, &list, &mut log));
    if let Err(exit) = end {
        let code = exit.report(&mut log);
        log.extend(format!("{code:?}\n").bytes());
    }
    let mut text = String::from_utf8(log).unwrap();
    for name in [".env", "config.yaml"] {
        let file = fs::read_to_string(dir.join(name)).unwrap_or_else(|_| "none\n".to_owned());
        text.push_str(&format!("--- {name}\n{file}"));
    }
    expect.assert_eq(&text.replace(&dir.display().to_string(), "$DIR"));
}

#[test]
fn nothing_in_the_environment_says_what_to_set() {
    check(
        &[],
        &[],
        expect![[r#"
        error: the environment names no provider
        hint: set OPENAI_API_KEY or OPENROUTER_API_KEY, or LLM_<NAME>_API_KEY and LLM_<NAME>_BASE_URL
        ExitCode(unix_exit_status(3))
        --- .env
        none
        --- config.yaml
        none
    "#]],
    );
}

#[test]
fn well_known_keys_and_pairs_become_providers() {
    let env = [
        ("OPENROUTER_API_KEY", "sk-or-1"),
        ("LLM_WORK_API_KEY", "it's $5 \"odd\""),
        ("LLM_WORK_BASE_URL", "https://llm.work/v1/"),
        ("LLM_WORK_MODEL", "gpt-oss:120b"),
        ("LLM_LOCAL_BASE_URL", "http://localhost:11434/v1"),
        ("LLM_HALF_API_KEY", "x"),
    ];
    check(
        &env,
        &[],
        expect![[r#"
            note: LLM_HALF_API_KEY is left out: LLM_HALF_BASE_URL is not set
            wrote $DIR/config.yaml
              work: gpt-oss:120b
              local: big:70b, no, small/1
              openrouter: big:70b, no, small/1
            the first model is the default; edit the file to change it
            to search the web, start the SearXNG it set up: docker compose -f $DIR/searxng/compose.yaml up -d
            --- .env
            LLM_WORK_API_KEY="it's \$5 \"odd\""
            OPENROUTER_API_KEY=sk-or-1
            --- config.yaml
            # Where models are asked. Keys are read from the environment and from .env beside this file.
            providers:
              work:
                base_url: "https://llm.work/v1/"
                api_key: ${LLM_WORK_API_KEY}
              local:
                base_url: "http://localhost:11434/v1"
              openrouter:
                base_url: "https://openrouter.ai/api/v1"
                api_key: ${OPENROUTER_API_KEY}

            # The first model is the default.
            models:
              "gpt-oss:120b":
                provider: work
                model: "gpt-oss:120b"
              "big:70b":
                provider: local
                model: "big:70b"
              "no":
                provider: local
                model: "no"
              small/1:
                provider: local
                model: small/1
              "openrouter/big:70b":
                provider: openrouter
                model: "big:70b"
              openrouter/no:
                provider: openrouter
                model: "no"
              openrouter/small/1:
                provider: openrouter
                model: small/1
        "#]],
    );
}

#[test]
fn a_server_that_is_down_is_named_with_what_to_do() {
    let down = [("LLM_FAR_API_KEY", "k"), ("LLM_FAR_BASE_URL", "https://down/v1")];
    check(
        &down,
        &[],
        expect![[r#"
        note: could not list the models of far: the connection was refused; LLM_FAR_MODEL names one
        error: no provider named a model, so nothing was written
        hint: name a model in LLM_FAR_MODEL and run it again
        ExitCode(unix_exit_status(1))
        --- .env
        none
        --- config.yaml
        none
    "#]],
    );
    check(
        &[down[0], down[1], ("OPENAI_API_KEY", "sk")],
        &[],
        expect![[r#"
            note: could not list the models of far: the connection was refused; LLM_FAR_MODEL names one
            wrote $DIR/config.yaml
              openai: big:70b, no, small/1
            the first model is the default; edit the file to change it
            to search the web, start the SearXNG it set up: docker compose -f $DIR/searxng/compose.yaml up -d
            --- .env
            LLM_FAR_API_KEY=k
            OPENAI_API_KEY=sk
            --- config.yaml
            # Where models are asked. Keys are read from the environment and from .env beside this file.
            providers:
              far:
                base_url: "https://down/v1"
                api_key: ${LLM_FAR_API_KEY}
              openai:
                base_url: "https://api.openai.com/v1"
                api_key: ${OPENAI_API_KEY}

            # The first model is the default.
            models:
              "big:70b":
                provider: openai
                model: "big:70b"
              "no":
                provider: openai
                model: "no"
              small/1:
                provider: openai
                model: small/1
        "#]],
    );
}

#[test]
fn what_is_there_is_kept() {
    check(
        &[("OPENAI_API_KEY", "sk")],
        &[("config.yaml", "models: {}\n")],
        expect![[r#"
        error: $DIR/config.yaml exists and is left as it is
        hint: edit it, move it away, or run `crow-cli init` to be asked
        ExitCode(unix_exit_status(3))
        --- .env
        none
        --- config.yaml
        models: {}
    "#]],
    );
    check(
        &[("OPENAI_API_KEY", "sk")],
        &[(".env", "# mine\nLLM_A_API_KEY=a\nLLM_A_BASE_URL=http://a\nLLM_A_MODEL=m")],
        expect![[r#"
            wrote $DIR/config.yaml
              a: m
              openai: big:70b, no, small/1
            the first model is the default; edit the file to change it
            to search the web, start the SearXNG it set up: docker compose -f $DIR/searxng/compose.yaml up -d
            --- .env
            # mine
            LLM_A_API_KEY=a
            LLM_A_BASE_URL=http://a
            LLM_A_MODEL=m
            OPENAI_API_KEY=sk
            --- config.yaml
            # Where models are asked. Keys are read from the environment and from .env beside this file.
            providers:
              a:
                base_url: "http://a"
                api_key: ${LLM_A_API_KEY}
              openai:
                base_url: "https://api.openai.com/v1"
                api_key: ${OPENAI_API_KEY}

            # The first model is the default.
            models:
              m:
                provider: a
                model: m
              "big:70b":
                provider: openai
                model: "big:70b"
              "no":
                provider: openai
                model: "no"
              small/1:
                provider: openai
                model: small/1
        "#]],
    );
}

#[test]
fn what_is_written_is_read_back() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("deep/.crow");
    let env = [
        ("LLM_ODD_API_KEY", "a'b\"c$d\\e f#g"),
        ("LLM_ODD_BASE_URL", "http://h:1/v1"),
        ("LLM_ODD_MODEL", "off"),
    ];
    let env: Environment = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let list = async |_| Err(String::new());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime
        .block_on(super::run(&InitArgs { yes: true, from: None }, &dir, &env, &list, &mut Vec::new()))
        .unwrap();
    let (settings, warnings) = Settings::load(&dir, &Environment::new()).unwrap();
    assert_eq!(warnings, []);
    let model = settings.model(None).unwrap();
    assert_eq!((model.name.as_str(), model.model.as_str()), ("off", "off"));
    assert_eq!(model.provider.base_url, "http://h:1/v1");
    assert_eq!(model.provider.api_key, Some(crow_model::ApiKey::new("a'b\"c$d\\e f#g")));
}

#[cfg(unix)]
#[test]
fn only_the_owner_reads_what_is_written() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join(".crow");
    let env = Environment::from([("OPENAI_API_KEY".to_owned(), "sk".to_owned())]);
    let list = async |_| Ok(vec!["gpt".to_owned()]);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime
        .block_on(super::run(&InitArgs { yes: true, from: None }, &dir, &env, &list, &mut Vec::new()))
        .unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&dir.join(".env")), 0o600);
    assert_eq!(mode(&dir.join("config.yaml")), 0o600);
}
