//! The models that providers list, compared with the configuration.

use crow_testkit::Answer;
use expect_test::expect;

use super::{Stage, check};

/// A response of Ollama.
const OLLAMA: &str = r#"{"object":"list","data":[{"id":"qwen3:latest","object":"model","created":1740000000,"owned_by":"library"},{"id":"gemma:2b","object":"model","created":1740000000,"owned_by":"library"}]}"#;
const LOADED: &str =
    r#"{"models":[{"name":"qwen3:latest","model":"qwen3:latest","size":6591830464,"context_length":4096}]}"#;
const SHOWN: &str = r#"{"parameters":"stop x","model_info":{"general.architecture":"qwen3","qwen3.context_length":40960},"capabilities":["completion","tools"]}"#;

/// A response of OpenRouter.
const OPENROUTER: &str = r#"{"data":[{"id":"z/glm","name":"GLM","context_length":200000,"architecture":{"output_modalities":["text"]},"pricing":{"prompt":"0.0000006","completion":"0.0000022","input_cache_read":"0.00000011"},"top_provider":{"context_length":200000},"supported_parameters":["tools"]}]}"#;

const TWO: &str = "providers:\n  near: { base_url: $URL }\n  dead: { base_url: 'http://127.0.0.1:9/v1' }\n\
                   models:\n  main: { provider: near, model: qwen3, context_window: 32000 }\n  other: { provider: dead }\n";

fn ollama(yaml: &str, loaded: &str) -> Stage {
    let stage = Stage::configured("", yaml);
    for (address, body) in [("/v1/models", OLLAMA), ("/api/ps", loaded), ("/api/show", SHOWN)] {
        stage.server.serve_at(address, Answer::with_status(200, body));
    }
    stage
}

#[test]
fn provider_failure_does_not_affect_others() {
    let stage = ollama(TWO, LOADED);
    check(
        &stage,
        "crow models --available",
        &expect![[r#"
            exit 0
            PROVIDER  MODEL         WINDOW       USD/M IN  OUT
            near      qwen3:latest  4096                        configured as main
            near      gemma:2b      up to 40960
            warning: `dead` cannot be reached at http://127.0.0.1:9/v1: connection refused; is it running, and is `base_url` right?
        "#]],
    );
    check(
        &stage,
        "crow models --available --json",
        &expect![[r#"
            exit 0
            {"providers":[{"name":"dead","error":{"kind":"connection","message":"`dead` cannot be reached at http://127.0.0.1:9/v1: connection refused; is it running, and is `base_url` right?"}},{"name":"near","server":"Ollama","models":[{"id":"qwen3:latest","title":null,"context_window":4096,"context_window_max":40960,"price":null,"chats":true,"tools":true,"images":false,"configured":["main"]},{"id":"gemma:2b","title":null,"context_window":null,"context_window_max":40960,"price":null,"chats":true,"tools":true,"images":false,"configured":[]}]}]}
        "#]],
    );
}

#[test]
fn prices_and_names_of_a_gateway() {
    let yaml =
        "providers:\n  gate: { base_url: $URL }\nmodels:\n  main: { provider: gate, model: 'z/glm:nitro' }\n";
    let stage = Stage::configured("", yaml);
    stage.server.serve_at("/v1/models", Answer::with_status(200, OPENROUTER));
    check(
        &stage,
        "crow models -a",
        &expect![[r#"
            exit 0
            PROVIDER  MODEL  WINDOW  USD/M IN  OUT
            gate      z/glm  200000  0.6       2.2  configured as main
        "#]],
    );
    check(
        &stage,
        "crow models -aj",
        &expect![[r#"
            exit 0
            {"providers":[{"name":"gate","server":"OpenRouter","models":[{"id":"z/glm","title":"GLM","context_window":200000,"context_window_max":null,"price":{"input":0.6,"output":2.2,"cached":0.11,"cache_written":null},"chats":true,"tools":true,"images":null,"configured":["main"]}]}]}
        "#]],
    );
}

#[test]
fn providers_that_do_not_answer() {
    let yaml =
        "providers:\n  dead: { base_url: 'http://127.0.0.1:9/v1' }\nmodels:\n  main: { provider: dead }\n";
    let stage = Stage::configured("", yaml);
    check(
        &stage,
        "crow models --available",
        &expect![[r#"
        exit 1
        PROVIDER  MODEL  WINDOW  USD/M IN  OUT
        warning: `dead` cannot be reached at http://127.0.0.1:9/v1: connection refused; is it running, and is `base_url` right?
    "#]],
    );
    check(
        &stage,
        "crow models --available --json",
        &expect![[r#"
        exit 1
        {"providers":[{"name":"dead","error":{"kind":"connection","message":"`dead` cannot be reached at http://127.0.0.1:9/v1: connection refused; is it running, and is `base_url` right?"}}]}
    "#]],
    );
}

#[test]
fn names_with_escapes_never_reach_the_terminal() {
    let stage = Stage::new("");
    let list =
        r#"{"data":[{"id":"\u001b[2J\u001b]0;mine\u0007"},{"id":"scripted","display_name":"\u202eevil"}]}"#;
    stage.server.serve_at("/v1/models", Answer::with_status(200, list));
    check(
        &stage,
        "crow models --available --json",
        &expect![[r#"
            exit 0
            {"providers":[{"name":"fake","server":null,"models":[{"id":"scripted","title":null,"context_window":null,"context_window_max":null,"price":null,"chats":null,"tools":null,"images":null,"configured":["scripted"]}]}]}
        "#]],
    );
    let refusal = r#"{"error":{"message":"\u001b[2J\u001b]0;mine\u0007 no"}}"#;
    stage.server.serve_at("/v1/models", Answer::with_status(500, refusal));
    check(
        &stage,
        "crow models --available",
        &expect![[r#"
            exit 1
            PROVIDER  MODEL  WINDOW  USD/M IN  OUT
            warning: `fake` is overloaded or failing (500): [2J ]0;mine no; try again later
        "#]],
    );
}

/// Returns the line of `doctor` about a provider.
#[track_caller]
fn check_doctor(stage: &Stage, provider: &str, expected: &expect_test::Expect) {
    let told = stage.crow("crow doctor").stdout;
    let lines = told.lines().filter(|line| line.split_whitespace().nth(1) == Some(provider));
    expected.assert_eq(&lines.map(|line| format!("{line}\n")).collect::<String>());
}

#[test]
fn doctor_compares_context_windows() {
    let stage = ollama(TWO, LOADED);
    check_doctor(
        &stage,
        "near",
        &expect![[r#"
        warning  near             reachable, lists 2 models; main is configured with 32000 tokens but may read only 4096: set models.main.context_window to 4096, or start Ollama with OLLAMA_CONTEXT_LENGTH=32000
    "#]],
    );
    let stage = ollama(&TWO.replace("32000", "4096"), LOADED);
    check_doctor(
        &stage,
        "near",
        &expect![[r#"
        ok       near             reachable, lists 2 models
    "#]],
    );
    let stage = ollama(TWO, r#"{"models":[]}"#);
    check_doctor(
        &stage,
        "near",
        &expect![[r#"
        ok       near             reachable, lists 2 models; reports the context window of qwen3:latest once it is loaded
    "#]],
    );
    let stage = ollama(&TWO.replace("32000", "64000"), r#"{"models":[]}"#);
    check_doctor(
        &stage,
        "near",
        &expect![[r#"
        warning  near             reachable, lists 2 models; main is configured with 64000 tokens but may read only 40960: set models.main.context_window to 40960
    "#]],
    );
}

#[test]
fn doctor_names_missing_models() {
    let stage = ollama(&TWO.replace("qwen3", "qwen4"), LOADED);
    check_doctor(
        &stage,
        "near",
        &expect![[r#"
        warning  near             reachable, lists 2 models; does not list qwen4; see `crow-cli models --available`
    "#]],
    );
}

#[test]
fn doctor_warns_of_a_key_that_is_not_set() {
    let yaml = "providers:\n  open: { base_url: $URL, api_key: '${OPEN_KEY}' }\nmodels:\n  main: { provider: open, model: z/glm }\n";
    let stage = Stage::configured("", yaml);
    stage.server.serve_at("/v1/models", Answer::with_status(200, OPENROUTER));
    check_doctor(
        &stage,
        "open",
        &expect![[r#"
        warning  open             reachable, lists 1 model; its key is missing: OPEN_KEY is not set
    "#]],
    );
}

#[test]
fn doctor_tries_a_key_where_the_list_is_public() {
    let yaml = "providers:\n  gate: { base_url: $URL, api_key: '${GATE_API_KEY}' }\nmodels:\n  main: { provider: gate, model: z/glm }\n";
    let stage = Stage::configured("", yaml);
    stage.server.serve_at("/v1/models", Answer::with_status(200, OPENROUTER));
    let refusal = r#"{"error":{"message":"No cookie auth credentials found","code":401}}"#;
    stage.server.serve_at("/v1/key", Answer::with_status(401, refusal));
    check_doctor(
        &stage,
        "gate",
        &expect![[r#"
            problem  gate             `gate` needs a key (401): No cookie auth credentials found; set GATE_API_KEY
        "#]],
    );
    stage.server.serve_at(
        "/v1/key",
        Answer::with_status(200, r#"{"data":{"label":"sk-or-v1-0e6...f3a","usage":0}}"#),
    );
    check_doctor(
        &stage,
        "gate",
        &expect![[r#"
            warning  gate             reachable, lists 1 model; its key is missing: GATE_API_KEY is not set
        "#]],
    );
}
