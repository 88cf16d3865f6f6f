#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

mod well_known;

use std::{fs, net::TcpListener, time::Duration};

use crow_core::{Failure, FailureKind};
use crow_model::{HttpClients, ListedModel, ModelListing, ModelSettings, ProviderSettings, list_models};
use crow_testkit::{Answer, ModelServer};
use expect_test::{Expect, expect};

use super::{
    environment_scan,
    local_servers::LocalModelServer,
    model_servers::{InitContext, ModelServers},
    trial::TrialOutcome,
};
use crate::{
    cli::InitArgs,
    settings::{Environment, Settings},
};

/// A server whose `/models` lists some.
async fn some(provider: ProviderSettings, _wait: Duration) -> Result<ModelListing, Failure> {
    if provider.base_url.contains("down") {
        return Err(Failure::new(FailureKind::Connection, "the connection was refused"));
    }
    let model = |id: &str| ListedModel { id: id.to_owned(), ..ListedModel::default() };
    let ids: &[&str] = match provider.name.as_str() {
        "anthropic" => &["claude-opus-5-5", "claude-sonnet-4-5-20250929", "claude-sonnet-5-5"],
        "openai" => &["davinci-002", "gpt-4-0613", "gpt-6-sol", "gpt-6.1-sol", "gpt-6.1-sol-2026-10-01"],
        _ => &["embed-1", "big:70b", "no", "small/1", "whisper"],
    };
    let models = ids.iter().copied().map(model).collect();
    Ok(ModelListing { server: None, models })
}

/// Servers with these lists, whose models call the tool unless their name says otherwise.
pub(super) struct Listed<F>(pub(super) F);

impl<F> ModelServers for Listed<F>
where
    F: AsyncFn(ProviderSettings, Duration) -> Result<ModelListing, Failure>,
{
    async fn list(&self, provider: ProviderSettings, timeout: Duration) -> Result<ModelListing, Failure> {
        (self.0)(provider, timeout).await
    }

    async fn try_model(&self, model: &ModelSettings) -> Result<TrialOutcome, Failure> {
        match model.model.as_str() {
            "locked" => Err(Failure::new(FailureKind::ProviderAuth, "the key was rejected.")),
            "talker" => Ok(TrialOutcome::TextOnly),
            _ => Ok(TrialOutcome::CalledTool),
        }
    }
}

/// Runs `init -y` in a new directory with servers that list some models, and renders its output and files.
#[track_caller]
fn check(env: &[(&str, &str)], before: &[(&str, &str)], expect: Expect) {
    check_outside(env, before, &InitContext { models: &Listed(some), servers: &[] }, expect);
}

#[track_caller]
fn check_outside(
    env: &[(&str, &str)],
    before: &[(&str, &str)],
    outside: &InitContext<'_, impl ModelServers>,
    expect: Expect,
) {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join(".crow");
    if !before.is_empty() {
        fs::create_dir(&dir).unwrap();
    }
    for (name, text) in before {
        fs::write(dir.join(name), text).unwrap();
    }
    let env: Environment = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut log = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let end =
        runtime.block_on(super::run(&InitArgs { yes: true, from: None }, &dir, &env, outside, &mut log));
    if let Err(error) = end {
        let code = error.report(&mut log);
        log.extend(format!("{code:?}\n").bytes());
    }
    let mut text = String::from_utf8(log).unwrap();
    for name in [".env", "config.yaml"] {
        let file = fs::read_to_string(dir.join(name)).unwrap_or_else(|_| "none\n".to_owned());
        text.push_str(&format!("--- {name}\n{file}"));
    }
    let mut text = text.replace(&dir.display().to_string(), "$DIR");
    for (n, place) in outside.servers.iter().enumerate() {
        text = text.replace(&place.port.to_string(), &format!("$PORT{n}"));
    }
    expect.assert_eq(&text);
}

#[test]
fn empty_environment_gets_a_hint() {
    check(
        &[],
        &[],
        expect![[r#"
            error: no provider was found in the environment
            hint: set the key of a provider, such as ANTHROPIC_API_KEY or OPENAI_API_KEY, or LLM_<NAME>_API_KEY and LLM_<NAME>_BASE_URL, or start a server such as Ollama on this machine
            ExitCode(unix_exit_status(3))
            --- .env
            none
            --- config.yaml
            none
        "#]],
    );
}

#[test]
fn keys_in_the_environment_become_providers() {
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
            note: LLM_HALF_API_KEY is ignored: LLM_HALF_BASE_URL is not set
            note: openrouter lists no anthropic/claude-sonnet-*; choose a model with LLM_OPENROUTER_MODEL
            wrote $DIR/config.yaml
              work: gpt-oss:120b
              local: big:70b, no, small/1
            the first model is the default; edit the file to change it
            gpt-oss:120b answered and called a tool
            --- .env
            LLM_WORK_API_KEY="it's \$5 \"odd\""
            OPENROUTER_API_KEY=sk-or-1
            --- config.yaml
            # yaml-language-server: $schema=./config.schema.json
            # $schema: ./config.schema.json

            # Model providers. Keys are read from the environment and from .env next to this file.
            providers:
              work:
                base_url: "https://llm.work/v1"
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
        "#]],
    );
}

#[test]
fn unreachable_provider_is_reported_with_a_hint() {
    let down = [("LLM_FAR_API_KEY", "k"), ("LLM_FAR_BASE_URL", "https://down/v1")];
    check(
        &down,
        &[],
        expect![[r#"
        note: could not list the models of far: the connection was refused; choose one with LLM_FAR_MODEL
        error: no model was found, so nothing was written
        hint: set LLM_FAR_MODEL to a model and run it again
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
            note: could not list the models of far: the connection was refused; choose one with LLM_FAR_MODEL
            wrote $DIR/config.yaml
              openai: gpt-6.1-sol
            the first model is the default; edit the file to change it
            gpt-6.1-sol answered and called a tool
            --- .env
            LLM_FAR_API_KEY=k
            OPENAI_API_KEY=sk
            --- config.yaml
            # yaml-language-server: $schema=./config.schema.json
            # $schema: ./config.schema.json

            # Model providers. Keys are read from the environment and from .env next to this file.
            providers:
              far:
                base_url: "https://down/v1"
                api_key: ${LLM_FAR_API_KEY}
              openai:
                base_url: "https://api.openai.com/v1"
                api: responses
                api_key: ${OPENAI_API_KEY}

            # The first model is the default.
            models:
              gpt-6.1-sol:
                provider: openai
                model: gpt-6.1-sol
                context_window: 922000
                price: { input: 2, output: 10, cached: 0.1, cache_written: 2.5 }
        "#]],
    );
}

#[test]
fn existing_files_are_kept() {
    check(
        &[("OPENAI_API_KEY", "sk")],
        &[("config.yaml", "models: {}\n")],
        expect![[r#"
            error: $DIR/config.yaml already exists
            hint: add to it or replace it with `crow-cli init` on a terminal, or edit it with `crow-cli config edit`
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
              openai: gpt-6.1-sol
            the first model is the default; edit the file to change it
            m answered and called a tool
            --- .env
            # mine
            LLM_A_API_KEY=a
            LLM_A_BASE_URL=http://a
            LLM_A_MODEL=m
            OPENAI_API_KEY=sk
            --- config.yaml
            # yaml-language-server: $schema=./config.schema.json
            # $schema: ./config.schema.json

            # Model providers. Keys are read from the environment and from .env next to this file.
            providers:
              a:
                base_url: "http://a"
                api_key: ${LLM_A_API_KEY}
              openai:
                base_url: "https://api.openai.com/v1"
                api: responses
                api_key: ${OPENAI_API_KEY}

            # The first model is the default.
            models:
              m:
                provider: a
                model: m
              gpt-6.1-sol:
                provider: openai
                model: gpt-6.1-sol
                context_window: 922000
                price: { input: 2, output: 10, cached: 0.1, cache_written: 2.5 }
        "#]],
    );
}

#[test]
fn written_configuration_is_read_back() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("deep/.crow");
    let env = [
        ("LLM_ODD_API_KEY", "a'b\"c$d\\e f#g"),
        ("LLM_ODD_BASE_URL", "http://h:1/v1"),
        ("LLM_ODD_MODEL", "off"),
    ];
    let env: Environment = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime
        .block_on(super::run(
            &InitArgs { yes: true, from: None },
            &dir,
            &env,
            &InitContext { models: &Listed(some), servers: &[] },
            &mut Vec::new(),
        ))
        .unwrap();
    let (settings, warnings) = Settings::load(&dir, &Environment::new()).unwrap();
    assert_eq!(warnings, []);
    let model = settings.find_model(None).unwrap();
    assert_eq!((model.name.as_str(), model.model.as_str()), ("off", "off"));
    assert_eq!(model.provider.base_url, "http://h:1/v1");
    assert_eq!(model.provider.api_key, Some(crow_model::ApiKey::new("a'b\"c$d\\e f#g")));
}

#[cfg(unix)]
#[test]
fn written_files_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join(".crow");
    let env = Environment::from([("OPENAI_API_KEY".to_owned(), "sk".to_owned())]);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime
        .block_on(super::run(
            &InitArgs { yes: true, from: None },
            &dir,
            &env,
            &InitContext { models: &Listed(some), servers: &[] },
            &mut Vec::new(),
        ))
        .unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&dir.join(".env")), 0o600);
    assert_eq!(mode(&dir.join("config.yaml")), 0o600);
}

/// Serves each page as a local server on its own port.
fn serve(pages: &[(&str, &str)]) -> (ModelServer, u16) {
    let server = ModelServer::start("");
    for (address, body) in pages {
        server.serve_at(address, Answer::with_status(200, *body));
    }
    let port = server.base_url().trim_end_matches("/v1").rsplit(':').next().unwrap().parse().unwrap();
    (server, port)
}

async fn ask(provider: ProviderSettings, wait: Duration) -> Result<ModelListing, Failure> {
    list_models(&HttpClients::new()?, &provider, wait).await
}

const OLLAMA: &str = r#"{"object":"list","data":[{"id":"qwen3:8b","object":"model","owned_by":"library"},{"id":"gemma:2b","object":"model","owned_by":"library"},{"id":"nomic-embed-text:latest","object":"model","owned_by":"library"}]}"#;
const SHOWN: &str = r#"{"parameters":"","model_info":{"general.architecture":"qwen3","qwen3.context_length":40960},"capabilities":["completion","tools"]}"#;

#[test]
fn local_servers_become_providers() {
    let (_ollama, ollama) = serve(&[("/v1/models", OLLAMA), ("/api/show", SHOWN)]);
    let llama_cpp = r#"{"object":"list","data":[{"id":"/models/q.gguf","object":"model","owned_by":"llamacpp","meta":{"n_ctx":8192,"n_ctx_train":32768}}]}"#;
    let (_llama_cpp, llama_cpp) = serve(&[("/v1/models", llama_cpp)]);
    let (_page, page) = serve(&[("/v1/models", "<html>a page</html>")]);
    // A bound port that is not listened on refuses connections.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = taken.local_addr().unwrap().port();
    drop(taken);
    let places = [
        LocalModelServer { name: "ollama", title: "Ollama", port: ollama },
        LocalModelServer { name: "lmstudio", title: "LM Studio", port: closed },
        LocalModelServer { name: "llamacpp", title: "llama.cpp", port: llama_cpp },
        LocalModelServer { name: "vllm", title: "vLLM", port: page },
    ];
    check_outside(
        &[],
        &[],
        &InitContext { models: &Listed(ask), servers: &places },
        expect![[r#"
            note: Ollama at http://127.0.0.1:$PORT0/v1 has 3 models
            note: llama.cpp at http://127.0.0.1:$PORT2/v1 has 1 model
            note: http://127.0.0.1:$PORT3/v1 is not a model server
            note: not found on this machine: LM Studio ($PORT1)
            note: Ollama reports the context window of qwen3:8b, gemma:2b only once it is loaded, and it may be smaller than configured: start Ollama with OLLAMA_CONTEXT_LENGTH=32768, and compare with `crow-cli doctor`
            note: llama.cpp gives /models/q.gguf a small context window: start llama.cpp with `-c 32768` per slot, and raise its context_window to that
            wrote $DIR/config.yaml
              ollama: qwen3:8b, gemma:2b
              llamacpp: /models/q.gguf
            the first model is the default; edit the file to change it
            qwen3:8b answered and called a tool
            --- .env
            --- config.yaml
            # yaml-language-server: $schema=./config.schema.json
            # $schema: ./config.schema.json

            # Model providers. Keys are read from the environment and from .env next to this file.
            providers:
              ollama:
                base_url: "http://127.0.0.1:$PORT0/v1"
              llamacpp:
                base_url: "http://127.0.0.1:$PORT2/v1"

            # The first model is the default.
            models:
              "qwen3:8b":
                provider: ollama
                model: "qwen3:8b"
                context_window: 32768
                modality: [text]
              "gemma:2b":
                provider: ollama
                model: "gemma:2b"
                context_window: 32768
                modality: [text]
              q:
                provider: llamacpp
                model: "/models/q.gguf"
                context_window: 8192
        "#]],
    );
}

#[test]
fn local_server_in_the_environment_is_not_scanned() {
    let (_ollama, ollama) = serve(&[("/v1/models", OLLAMA), ("/api/show", SHOWN)]);
    let url = format!("http://localhost:{ollama}/v1");
    let env = [("LLM_MINE_BASE_URL", url.as_str()), ("LLM_MINE_MODEL", "qwen3:8b")];
    let (_other, other) =
        serve(&[("/v1/models", r#"{"object":"list","data":[{"id":"m","max_model_len":65536}]}"#)]);
    let places = [
        LocalModelServer { name: "ollama", title: "Ollama", port: ollama },
        LocalModelServer { name: "mine", title: "vLLM", port: other },
    ];
    check_outside(
        &env,
        &[],
        &InitContext { models: &Listed(ask), servers: &places },
        expect![[r#"
            note: vLLM at http://127.0.0.1:$PORT1/v1 has 1 model
            wrote $DIR/config.yaml
              mine: qwen3:8b
              mine-$PORT1: m
            the first model is the default; edit the file to change it
            qwen3:8b answered and called a tool
            --- .env
            --- config.yaml
            # yaml-language-server: $schema=./config.schema.json
            # $schema: ./config.schema.json

            # Model providers. Keys are read from the environment and from .env next to this file.
            providers:
              mine:
                base_url: "http://localhost:$PORT0/v1"
              mine-$PORT1:
                base_url: "http://127.0.0.1:$PORT1/v1"

            # The first model is the default.
            models:
              "qwen3:8b":
                provider: mine
                model: "qwen3:8b"
              m:
                provider: mine-$PORT1
                model: m
                context_window: 65536
        "#]],
    );
}

#[test]
fn model_details_are_written() {
    let list = r#"{"data":[{"id":"a/talker","context_length":8000,"architecture":{"input_modalities":["text"]},"pricing":{"prompt":"0","completion":"0"},"top_provider":{},"supported_parameters":["max_tokens"]},{"id":"a/painter","context_length":8000,"architecture":{"output_modalities":["image"]}},{"id":"a/worker","context_length":200000,"pricing":{"prompt":"0.000003","completion":"0.000015","input_cache_read":"0.0000003","input_cache_write":"0.00000375"},"top_provider":{},"supported_parameters":["tools"]}]}"#;
    let (server, _) = serve(&[("/v1/models", list)]);
    let env = [("LLM_GATE_BASE_URL", server.base_url()), ("LLM_GATE_API_KEY", "k")];
    let far = |text: &str| text.replace(server.base_url(), "https://gate/v1");
    let list = async |mut provider: ProviderSettings, wait| {
        provider.base_url = server.base_url().to_owned();
        ask(provider, wait).await
    };
    let env = env.map(|(name, value)| (name, far(value)));
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    check_outside(
        &env,
        &[],
        &InitContext { models: &Listed(list), servers: &[] },
        expect![[r#"
            wrote $DIR/config.yaml
              gate: a/worker, a/talker
            the first model is the default; edit the file to change it
            a/worker answered and called a tool
            --- .env
            LLM_GATE_API_KEY=k
            --- config.yaml
            # yaml-language-server: $schema=./config.schema.json
            # $schema: ./config.schema.json

            # Model providers. Keys are read from the environment and from .env next to this file.
            providers:
              gate:
                base_url: "https://gate/v1"
                api_key: ${LLM_GATE_API_KEY}

            # The first model is the default.
            models:
              a/worker:
                provider: gate
                model: a/worker
                context_window: 200000
                price: { input: 3, output: 15, cached: 0.3, cache_written: 3.75 }
              a/talker:
                provider: gate
                model: a/talker
                context_window: 8000
                modality: [text]
                tool_calls: text
                price: { input: 0, output: 0 }
        "#]],
    );
}

#[test]
fn env_example_lists_the_provider_variables() {
    let example = include_str!("../../../../.env.example");
    assert!(example.lines().all(|line| line.is_empty() || line.starts_with('#')), "nothing is set in it");
    let variables = example.lines().filter_map(|line| line.strip_prefix('#')?.split_once('='));
    let env: Environment = variables
        .filter(|(name, _)| !name.contains(' '))
        .map(|(name, value)| (name.to_owned(), if value.is_empty() { "x" } else { value }.to_owned()))
        .collect();
    let scan = environment_scan::scan_environment(&env);
    let names: Vec<_> = scan.providers.iter().map(|provider| provider.name.as_str()).collect();
    assert_eq!(
        (names, scan.notes),
        (
            vec![
                "own",
                "anthropic",
                "openai",
                "gemini",
                "openrouter",
                "xai",
                "deepseek",
                "mistral",
                "zai",
                "dashscope",
                "groq"
            ],
            Vec::new()
        )
    );
    for name in ["SEARXNG_URL", "SEARXNG_PORT", "DATABASE_PATH"] {
        assert!(env.contains_key(name), "{name}");
    }
}
