#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use std::fmt::Write as _;
use std::time::Duration;

use crow_core::Failure;
use crow_testkit::{Answer, ModelServer, Step};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{ModelListing, check_key, list_models, parse};
use crate::test_settings::{self, SECRET_KEY};
use crate::{HttpClients, ProviderSettings};

const WAIT: Duration = Duration::from_secs(20);

/// Lists the models of a server with these responses by path; shows the result and the requests.
#[track_caller]
fn check(pages: &[(&str, &str)], expect: Expect) {
    let answers = pages.iter().map(|(address, body)| (*address, Answer::with_status(200, *body)));
    check_answers(answers, expect);
}

#[track_caller]
fn check_answers<'a>(answers: impl Iterator<Item = (&'a str, Answer)>, expect: Expect) {
    let server = ModelServer::start("");
    for (address, answer) in answers {
        server.serve_at(address, answer);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listed = runtime.block_on(list_models(&HttpClients::new().unwrap(), &provider(&server), WAIT));
    let asked = server.page_heads();
    assert!(asked.iter().all(|head| head.contains(SECRET_KEY)), "every question carries the key");
    let asked =
        asked.iter().map(|head| format!("{}\n", head.lines().next().unwrap().replace(" HTTP/1.1", "")));
    expect.assert_eq(&(show(&listed).replace(server.base_url(), "$URL") + &asked.collect::<String>()));
}

fn provider(server: &ModelServer) -> ProviderSettings {
    ProviderSettings {
        base_url: server.base_url().to_owned(),
        headers: Vec::new(),
        ..test_settings::sample_settings().provider
    }
}

fn show(listed: &Result<ModelListing, Failure>) -> String {
    let listing = match listed {
        Ok(listing) => listing,
        Err(failure) => return format!("{}: {}\n", failure.kind.as_str(), failure.message),
    };
    let mut text = format!("= {}\n", listing.server.map_or("anything", super::ModelServerKind::as_str));
    for model in &listing.models {
        write!(text, "{:?}", model.id).unwrap();
        let number = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
        write!(text, " {} of {}", number(model.window), number(model.window_max)).unwrap();
        if let Some(title) = &model.title {
            write!(text, " title {title:?}").unwrap();
        }
        if let Some(price) = &model.price {
            let part = |dollars: Option<f64>| dollars.map_or("-".to_owned(), |dollars| dollars.to_string());
            let (cached, written) = (part(price.cached), part(price.cache_written));
            write!(text, " price {} {} {cached} {written}", price.input, price.output).unwrap();
        }
        for (what, is_so) in
            [("chats", model.chats), ("tools", model.takes_tools), ("images", model.reads_images)]
        {
            write!(text, "{}", is_so.map_or(String::new(), |is_so| format!(" {what} {is_so}"))).unwrap();
        }
        text.push('\n');
    }
    text
}

const LLAMA_CPP: &str = r#"{"models":[{"name":"qwen2.5-coder","model":"qwen2.5-coder","modified_at":"","size":"","digest":"","type":"model","description":"","tags":[""],"capabilities":["completion"],"parameters":"","details":{"parent_model":"","format":"gguf","family":"","families":[""],"parameter_size":"","quantization_level":""}}],"object":"list","data":[{"id":"qwen2.5-coder","object":"model","created":1787976473,"owned_by":"llamacpp","meta":{"vocab_type":2,"n_vocab":151936,"n_ctx_train":32768,"n_embd":896,"n_params":494032768,"size":397807104}}]}"#;

#[test]
fn llama_cpp_props_give_the_slot_window() {
    let props = r#"{"default_generation_settings":{"id":0,"id_task":-1,"n_ctx":8192,"speculative":false,"is_processing":false,"params":{"n_predict":-1}},"total_slots":4,"model_path":"/models/q.gguf"}"#;
    check(
        &[("/v1/models", LLAMA_CPP), ("/props", props)],
        expect![[r#"
            = llama.cpp
            "qwen2.5-coder" 8192 of 32768
            GET /v1/models
            GET /props
        "#]],
    );
    let newer = LLAMA_CPP.replace("\"n_ctx_train\"", "\"n_ctx\":4096,\"n_ctx_train\"");
    check(
        &[("/v1/models", &newer), ("/props", props)],
        expect![[r#"
            = llama.cpp
            "qwen2.5-coder" 4096 of 32768
            GET /v1/models
        "#]],
    );
}

#[test]
fn llama_cpp_with_several_models_loads_none() {
    let list = r#"{"data":[{"id":"a","aliases":[],"tags":[],"object":"model","owned_by":"llamacpp","created":1787976473,"status":{"value":"unloaded","args":["llama-server","-c","4096"]}},{"id":"b","object":"model","owned_by":"llamacpp","created":1787976473,"status":{"value":"unloaded"}}],"object":"list"}"#;
    check(
        &[("/v1/models", list), ("/props", r#"{"default_generation_settings":{"n_ctx":0},"role":"router"}"#)],
        expect![[r#"
            = llama.cpp
            "a" ? of ?
            "b" ? of ?
            GET /v1/models
        "#]],
    );
}

#[test]
fn lm_studio_native_list_gives_the_loaded_models() {
    let list = r#"{"data":[{"id":"qwen/qwen3-4b","object":"model","owned_by":"organization_owner"},{"id":"phi-4","object":"model","owned_by":"organization_owner"},{"id":"text-embedding-nomic-embed-text-v1.5","object":"model","owned_by":"organization_owner"}],"object":"list"}"#;
    let older = r#"{"data":[{"id":"qwen/qwen3-4b","object":"model","type":"llm","publisher":"qwen","arch":"qwen3","compatibility_type":"gguf","quantization":"Q4_K_M","state":"loaded","max_context_length":40960,"loaded_context_length":4096},{"id":"phi-4","object":"model","type":"llm","state":"not-loaded","max_context_length":16384},{"id":"text-embedding-nomic-embed-text-v1.5","object":"model","type":"embeddings","state":"not-loaded","max_context_length":2048}],"object":"list"}"#;
    check(
        &[("/v1/models", list), ("/api/v0/models", older)],
        expect![[r#"
            = LM Studio
            "qwen/qwen3-4b" 4096 of 40960 chats true images false
            "phi-4" ? of 16384 chats true images false
            "text-embedding-nomic-embed-text-v1.5" ? of 2048 chats false
            GET /v1/models
            GET /api/v0/models
        "#]],
    );
    let unknown = r#"{"error":"Unexpected endpoint or method. (GET /api/v0/models)"}"#;
    let newer = r#"{"models":[{"type":"llm","publisher":"qwen","key":"qwen/qwen3-4b","display_name":"Qwen3 4B","architecture":"qwen3","loaded_instances":[{"id":"qwen/qwen3-4b","config":{"context_length":8192,"flash_attention":true}}],"max_context_length":40960},{"type":"llm","key":"phi-4","display_name":"Phi 4","loaded_instances":[],"max_context_length":16384}]}"#;
    check(
        &[("/v1/models", list), ("/api/v0/models", unknown), ("/api/v1/models", newer)],
        expect![[r#"
            = LM Studio
            "qwen/qwen3-4b" 8192 of 40960 title "Qwen3 4B" chats true images false
            "phi-4" ? of 16384 title "Phi 4" chats true images false
            "text-embedding-nomic-embed-text-v1.5" ? of ?
            GET /v1/models
            GET /api/v0/models
            GET /api/v1/models
        "#]],
    );
}

const OLLAMA: &str = r#"{"object":"list","data":[{"id":"qwen3:8b","object":"model","created":1740000000,"owned_by":"library"}]}"#;
const SHOWN: &str = r#"{"parameters":"PARAMETERS","details":{"format":"gguf","family":"qwen3"},"model_info":{"general.architecture":"qwen3","qwen3.vision.context_length":1024,"qwen3.context_length":40960},"capabilities":["completion","tools","thinking"]}"#;

#[test]
fn ollama_window_is_below_the_models_maximum() {
    let shown = |parameters: &str| SHOWN.replace("PARAMETERS", parameters);
    let (unset, set) = (shown("stop \\\"<|end|>\\\""), shown("num_ctx                        8192\\nstop x"));
    let loaded = r#"{"models":[{"name":"qwen3:8b","model":"qwen3:8b","size":6591830464,"size_vram":5333539264,"context_length":4096}]}"#;
    let status = r#"{"cloud":{"disabled":false},"context_length":131072}"#;
    check(
        &[("/v1/models", OLLAMA), ("/api/ps", r#"{"models":[]}"#), ("/api/show", &unset)],
        expect![[r#"
            = Ollama
            "qwen3:8b" ? of 40960 chats true tools true images false
            GET /v1/models
            GET /api/ps
            POST /api/show
        "#]],
    );
    for (pages, window) in [
        (vec![("/v1/models", OLLAMA), ("/api/show", set.as_str())], 8192),
        (vec![("/v1/models", OLLAMA), ("/api/show", set.as_str()), ("/api/ps", loaded)], 4096),
        (vec![("/v1/models", OLLAMA), ("/api/show", unset.as_str()), ("/api/status", status)], 40960),
        (vec![("/v1/models", OLLAMA), ("/api/show", set.as_str()), ("/api/status", status)], 8192),
    ] {
        let server = ModelServer::start("");
        for (address, body) in pages {
            server.serve_at(address, Answer::with_status(200, body));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listed = runtime.block_on(list_models(&HttpClients::new().unwrap(), &provider(&server), WAIT));
        assert_eq!(listed.unwrap().models[0].window, Some(window));
    }
}

#[test]
fn ollama_is_recognized_by_its_version() {
    let of_another_vendor = OLLAMA.replace("\"library\"", "\"vendor\"");
    let elsewhere = SHOWN.replace("\"details\"", "\"remote_host\":\"https://ollama.com:443\",\"details\"");
    check(
        &[
            ("/v1/models", &of_another_vendor),
            ("/api/version", r#"{"version":"0.12.3"}"#),
            ("/api/show", &elsewhere),
        ],
        expect![[r#"
            = Ollama
            "qwen3:8b" 40960 of 40960 chats true tools true images false
            GET /v1/models
            GET /api/version
            POST /api/show
        "#]],
    );
    check(
        &[("/v1/models", r#"{"object":"list","data":null}"#), ("/api/version", r#"{"version":"0.12.3"}"#)],
        expect![[r#"
            = Ollama
            GET /v1/models
            GET /api/version
        "#]],
    );
}

#[test]
fn vllm_and_gateways_list_all_details() {
    let vllm = r#"{"object":"list","data":[{"id":"Qwen/Qwen3-8B","object":"model","created":1760000000,"owned_by":"vllm","root":"Qwen/Qwen3-8B","parent":null,"max_model_len":32768,"permission":[{"id":"modelperm-1","object":"model_permission"}]}]}"#;
    check(
        &[("/v1/models", vllm)],
        expect![[r#"
            = vLLM
            "Qwen/Qwen3-8B" 32768 of ?
            GET /v1/models
        "#]],
    );
    let openrouter = r#"{"data":[{"id":"anthropic/claude-sonnet-4","canonical_slug":"anthropic/claude-4-sonnet-20250522","name":"Anthropic: Claude Sonnet 4","created":1747930371,"context_length":1000000,"architecture":{"modality":"text+image->text","input_modalities":["image","text"],"output_modalities":["text"]},"pricing":{"prompt":"0.000003","completion":"0.000015","request":"0","image":"0.0048","input_cache_read":"0.0000003","input_cache_write":"0.00000375"},"top_provider":{"context_length":1000000,"max_completion_tokens":64000,"is_moderated":true},"supported_parameters":["max_tokens","tools"]},{"id":"openrouter/auto","name":"Auto Router","context_length":2000000,"architecture":{"output_modalities":["text"]},"pricing":{"prompt":"-1","completion":"-1"},"top_provider":{"context_length":null},"supported_parameters":[]},{"id":"a/image","name":"Painter","context_length":8000,"architecture":{"output_modalities":["image"]},"pricing":{"prompt":"0","completion":"0"},"top_provider":{}}]}"#;
    check(
        &[("/v1/models", openrouter)],
        expect![[r#"
            = OpenRouter
            "anthropic/claude-sonnet-4" 1000000 of ? title "Anthropic: Claude Sonnet 4" price 3 15 0.3 3.75 chats true tools true images true
            "openrouter/auto" 2000000 of ? title "Auto Router" chats true tools false
            "a/image" 8000 of ? title "Painter" price 0 0 - - chats false
            GET /v1/models
        "#]],
    );
    let groq = r#"{"object":"list","data":[{"id":"llama-3.3-70b-versatile","object":"model","created":1733447754,"owned_by":"Meta","active":true,"context_window":131072,"public_apps":null,"max_completion_tokens":32768}]}"#;
    check(
        &[("/v1/models", groq)],
        expect![[r#"
            = anything
            "llama-3.3-70b-versatile" 131072 of ?
            GET /v1/models
        "#]],
    );
}

#[test]
fn paged_list_is_read_completely() {
    let first = r#"{"data":[{"type":"model","id":"claude-opus-4","display_name":"Claude Opus 4","created_at":"2025-05-22T00:00:00Z","max_input_tokens":200000,"max_tokens":32000}],"has_more":true,"first_id":"claude-opus-4","last_id":"claude-opus-4"}"#;
    let second = r#"{"data":[{"type":"model","id":"claude-haiku-3","display_name":"Claude Haiku 3"}],"has_more":false,"first_id":"claude-haiku-3","last_id":"claude-haiku-3"}"#;
    check(
        &[("/v1/models", first), ("/v1/models?after_id=claude-opus-4", second)],
        expect![[r#"
            = anything
            "claude-opus-4" 200000 of ? title "Claude Opus 4"
            "claude-haiku-3" ? of ? title "Claude Haiku 3"
            GET /v1/models
            GET /v1/models?after_id=claude-opus-4
        "#]],
    );
    // An endless list repeats itself.
    check(
        &[("/v1/models", first), ("/v1/models?after_id=claude-opus-4", first)],
        expect![[r#"
            = anything
            "claude-opus-4" 200000 of ? title "Claude Opus 4"
            GET /v1/models
            GET /v1/models?after_id=claude-opus-4
        "#]],
    );
}

#[test]
fn lists_without_a_wrapper_and_with_invalid_entries() {
    let odd = r#"[{"id":"plain"},"bare",{"name":"models/named","context_length":"8192"},{"id":7},null,{"id":""},{"id":"plain"},{"id":"huge","context_length":99999999999},{"id":"less","context_length":-1,"pricing":{"prompt":"NaN","completion":"1"}}]"#;
    check(
        &[("/v1/models", odd)],
        expect![[r#"
            = anything
            "plain" ? of ?
            "bare" ? of ?
            "models/named" ? of ?
            "huge" ? of ?
            "less" ? of ?
            GET /v1/models
        "#]],
    );
}

#[test]
fn names_with_control_characters_are_rejected() {
    let long = "x".repeat(257);
    let hostile = format!(
        r#"{{"data":[{{"id":"\u001b[2Jgpt"}},{{"id":"gpt\nmodels:"}},{{"id":"\u202egpt"}},{{"id":"g\u200bpt"}},{{"id":"{long}"}},{{"id":"gpt","display_name":"\u001b]0;mine\u0007"}}]}}"#
    );
    check(
        &[("/v1/models", &hostile)],
        expect![[r#"
            = anything
            "gpt" ? of ?
            GET /v1/models
        "#]],
    );
}

#[test]
fn invalid_list_is_an_error() {
    let refusal = format!(r#"{{"error":{{"message":"Incorrect API key provided: {SECRET_KEY}"}}}}"#);
    for (code, body, expect) in [
        (
            200,
            "<!doctype html><title>Sign in</title>".to_owned(),
            expect![[r#"
                protocol: `acme` answered with something that is not a list of models
                GET /v1/models
            "#]],
        ),
        (
            200,
            r#"{"hello":"world"}"#.to_owned(),
            expect![[r#"
                protocol: `acme` answered with something that is not a list of models
                GET /v1/models
            "#]],
        ),
        (
            200,
            format!("\"{}\"", "x".repeat(super::PAGE_LEN_MAX)),
            expect![[r#"
                protocol: `acme` sent a list of models that is too long
                GET /v1/models
            "#]],
        ),
        (
            401,
            refusal,
            expect![[r#"
                provider_auth: `acme` rejected the key in ACME_API_KEY (401): Incorrect API key provided: …; check that it is valid
                GET /v1/models
            "#]],
        ),
    ] {
        check_answers([("/v1/models", Answer::with_status(code, body))].into_iter(), expect);
    }
}

#[tokio::test(start_paused = true)]
async fn silent_server_times_out() {
    let (server, http) = (ModelServer::start(""), HttpClients::new().unwrap());
    let wait = Duration::from_millis(1500);
    server.serve_at("/v1/models", Answer::new([Step::Hold]));
    let failure = list_models(&http, &provider(&server), wait).await.unwrap_err();
    let expected = "connection: `acme` did not list its models within 1.5 s; try again";
    assert_eq!(format!("{}: {}", failure.kind.as_str(), failure.message), expected);
}

#[tokio::test]
async fn key_is_checked_separately() {
    let (server, http) = (ModelServer::start(""), HttpClients::new().unwrap());
    server.serve_at(
        "/v1/key",
        Answer::with_status(200, r#"{"data":{"label":"sk-or-v1-0e6","usage":1.5,"limit":null}}"#),
    );
    assert_eq!(check_key(&http, &provider(&server), WAIT).await, Ok(()));
    server.serve_at(
        "/v1/key",
        Answer::with_status(401, r#"{"error":{"message":"User not found.","code":401}}"#),
    );
    let failure = check_key(&http, &provider(&server), WAIT).await.unwrap_err();
    let expected = "`acme` rejected the key in ACME_API_KEY (401): User not found; check that it is valid";
    assert_eq!(failure.message, expected);
}

#[test]
fn model_is_found_by_all_of_its_names() {
    let found = |server: Option<super::ModelServerKind>, ids: &[&str], name: &str| {
        let model = |id: &&str| super::ListedModel { id: (*id).to_owned(), ..super::ListedModel::default() };
        let listing = ModelListing { server, models: ids.iter().map(model).collect() };
        listing.find_model(name).map(|model| model.id.clone())
    };
    use super::ModelServerKind::{LlamaCpp, Ollama, OpenRouter, Vllm};
    for (server, ids, name, expected) in [
        (Some(Ollama), &["qwen3:8b", "qwen3:latest"] as &[_], "qwen3", Some("qwen3:latest")),
        (Some(Ollama), &["qwen3:8b"], "qwen3", None),
        (Some(OpenRouter), &["z/glm", "z/glm:free"], "z/glm:free", Some("z/glm:free")),
        (Some(OpenRouter), &["z/glm"], "z/glm:nitro", Some("z/glm")),
        (Some(LlamaCpp), &["/models/q.gguf"], "anything", Some("/models/q.gguf")),
        (Some(LlamaCpp), &["a", "b"], "anything", None),
        (Some(Vllm), &["a"], "a:latest", None),
        (None, &["models/gemini"], "gemini", Some("models/gemini")),
    ] {
        assert_eq!(found(server, ids, name).as_deref(), expected, "{server:?} {name}");
    }
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let fields = "id|name|model|key|data|models|object|owned_by|meta|pricing|prompt|completion|context_length|\
                  model_info|parameters|capabilities|has_more|last_id|n_ctx|loaded_instances";
    let texts = prop_oneof![".{0,12}", "num_ctx .{0,6}", "[0-9.e-]{0,8}", Just("list".to_owned())];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        texts.prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map(fields, inner, 0..6)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_that_is_read_can_move_a_cursor_or_is_beyond_sense(page in any_json()) {
        let listing = parse::parse_listing(&page).unwrap_or_default();
        let mut models = listing.models;
        models.extend(parse::parse_lm_studio(&page).unwrap_or_default());
        models.extend(parse::parse_loaded_models(&page));
        models.push(parse::parse_model_details("shown", &page, parse::parse_default_window(&page)));
        for model in models {
            let texts = [Some(model.id), model.title];
            let mut letters = texts.iter().flatten().flat_map(|text| text.chars());
            prop_assert!(letters.all(|letter| !letter.is_control()));
            let windows = [model.window, model.window_max, parse::parse_slot_window(&page)];
            prop_assert!(windows.into_iter().flatten().all(|count| (1..=1_000_000_000).contains(&count)));
            if let Some(price) = model.price {
                prop_assert!(price.input.is_finite() && price.input >= 0.0 && price.output >= 0.0);
            }
        }
        parse::next_page_cursor(&page);
        parse::is_ollama(&page);
    }
}
