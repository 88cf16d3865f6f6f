//! The export of spans to a collector: what arrives, what never does, and what a bad collector costs.

mod collector;

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use expect_test::{ExpectFile, expect, expect_file};

use super::{Ran, Stage};
use collector::{CollectorBehavior, FakeCollector};

/// The promise is two seconds; a loaded machine takes longer.
const ENDED_WITHIN: Duration = Duration::from_secs(9);

/// The log's word for a collector that takes longer than the end of the program waits.
const LATE: &str = "did not answer before the end";

/// The longest wait for an event on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Words that are in prompts, arguments, results, errors or keys of the tests, and in no span.
const PRIVATE_WORDS: [&str; 6] =
    ["q-prompt", "q-reply", "q-output", "q-unknown", "sk-telemetry-key", "collector-secret"];

/// Starts Crow with variables.
fn start(stage: &Stage, args: &str, env: &[(&str, &str)]) -> Child {
    let mut command = stage.command(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.envs(env.iter().copied()).spawn().expect("the shell starts")
}

fn end(stage: &Stage, process: Child) -> Ran {
    let output = process.wait_with_output().expect("it can be waited for");
    Ran {
        code: output.status.code(),
        stdout: stage.plain(&output.stdout),
        stderr: stage.plain(&output.stderr),
    }
}

/// Runs Crow with variables.
fn run(stage: &Stage, args: &str, env: &[(&str, &str)]) -> Ran {
    end(stage, start(stage, args, env))
}

/// Waits until the collector has the spans of a whole turn.
fn wait_for_turn(collector: &FakeCollector) {
    let started_at = Instant::now();
    while !collector.requests().iter().any(|request| request.body.contains("crow.turn.end")) {
        assert!(started_at.elapsed() < PATIENCE, "no turn was exported");
        std::thread::yield_now();
    }
}

/// Runs a turn with a collector and compares the spans.
#[track_caller]
fn check(script: &str, args: &str, expected: &ExpectFile) -> FakeCollector {
    let stage = Stage::new(script);
    let url = stage.server.base_url();
    stage.world.configure(&format!(
        "providers:\n  acme: {{ base_url: {url}, api_key: sk-telemetry-key }}\n\
         models:\n  main: {{ provider: acme, model: scripted, tools: full, max_tokens: 900 }}\nmax_retries_per_step: 0\n"
    ));
    let collector = FakeCollector::start(CollectorBehavior::Answers(200));
    let process = start(
        &stage,
        args,
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-token=collector-secret%21"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
        ],
    );
    if script.contains("hold") {
        // A child is ended with its parent, whether or not its spans were exported.
        wait_for_turn(&collector);
        stage.server.release();
    }
    end(&stage, process);
    expected.assert_eq(&collector.tree());
    for request in collector.requests() {
        assert!(request.head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{}", request.head);
        let head = request.head.to_ascii_lowercase();
        assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{head}");
        assert!(head.contains("\r\nx-token: collector-secret!\r\n"), "{head}");
        for word in PRIVATE_WORDS {
            assert!(!request.body.contains(word), "{word} is in {}", request.body);
        }
    }
    collector
}

#[test]
fn telemetry_has_the_spans_of_a_turn() {
    let collector = check(
        r#"
        text "A q-reply." | call terminal {"command":"echo q-output"} | usage 100 10 | cache 60 0
        call q-unknown {"q-prompt":1} | call read {"file_path":"q-prompt.txt"} | usage 200 20
        text "A q-reply again." | usage 300 30
        "#,
        "crow run -y 'Show me a q-prompt.'",
        &expect_file!["telemetry/turn.txt"],
    );
    expect![[r#"
        deployment.environment.name=test
        service.name=crow-cli
        service.version=1.0.0
        telemetry.sdk.language=rust
        telemetry.sdk.name=crow-telemetry
        telemetry.sdk.version=1.0.0
    "#]]
    .assert_eq(&collector.resource());
}

#[test]
fn telemetry_has_the_turns_of_children() {
    check(
        "call task {\"prompt\":\"Find a q-prompt.\"}\ntext \"A q-output.\"\nhold | text \"A q-reply.\"",
        "crow run -y 'Ask someone for a q-prompt.'",
        &expect_file!["telemetry/children.txt"],
    );
}

#[test]
fn telemetry_has_the_failure_of_a_turn() {
    check(
        "status 401 {\"error\":{\"message\":\"no q-unknown for sk-telemetry-key\"}}",
        "crow run 'Show me a q-prompt.'",
        &expect_file!["telemetry/failure.txt"],
    );
}

/// Runs a turn whose collector is bad: it prints what it always prints, and ends soon.
#[track_caller]
fn check_bad_collector(url: &str, logged: &str) {
    let stage = Stage::new("text \"Here.\"");
    let started_at = Instant::now();
    let ran = run(&stage, "crow run hello", &[("OTEL_EXPORTER_OTLP_ENDPOINT", url)]);
    assert!(started_at.elapsed() < ENDED_WITHIN, "it took {:?}", started_at.elapsed());
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "Here."));
    assert!(!ran.stderr.contains("collector"), "{}", ran.stderr);
    let log =
        std::fs::read_to_string(stage.world.home().join(".crow/logs/crow-cli.log")).expect("there is a log");
    // On a loaded machine the answer may come after the two seconds.
    assert!(log.contains(logged) || log.contains(LATE), "{log}");
}

#[test]
fn telemetry_collector_that_is_bad_costs_two_seconds_at_the_end() {
    let silent = FakeCollector::start(CollectorBehavior::Silent);
    check_bad_collector(&silent.url, LATE);
    let full = FakeCollector::start(CollectorBehavior::Answers(503));
    check_bad_collector(&full.url, "it answered with status 503");
    let other = FakeCollector::start(CollectorBehavior::Answers(404));
    check_bad_collector(&other.url, "it answered with status 404");
    // A rejected request is not sent again.
    assert_eq!(other.requests().len(), 1);
    check_bad_collector("http://127.0.0.1:9", "connection refused");
    check_bad_collector("nowhere", "it is not a URL");
}

#[test]
fn telemetry_is_off_unless_a_collector_is_named() {
    let collector = FakeCollector::start(CollectorBehavior::Answers(200));
    for env in [
        vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "")],
        vec![("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url), ("OTEL_SDK_DISABLED", "true")],
        vec![("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url), ("OTEL_TRACES_EXPORTER", "none")],
        vec![("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
    ] {
        let stage = Stage::new("text \"Here.\"");
        let ran = run(&stage, "crow run hello", &env);
        assert_eq!(ran.stdout.trim(), "Here.");
        assert_eq!(collector.requests().len(), 0, "{env:?}");
    }
}
