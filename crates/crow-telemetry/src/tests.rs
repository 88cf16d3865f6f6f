use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crow_core::TELEMETRY_TARGET;
use expect_test::{Expect, expect, expect_file};
use tokio::sync::mpsc;
use tracing::field::Empty;
use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::TelemetryConfig;
use crate::layer::TelemetryLayer;
use crate::otlp::{encode_request, partial_success};
use crate::span::{AttributeValue, FinishedSpan, SpanIds, SpanKind};

#[track_caller]
fn check_config(variables: &[(&str, &str)], expected: &Expect) {
    let variable = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let shown = match TelemetryConfig::from_variables(variable, "1.2.3") {
        Ok(None) => "off".to_owned(),
        Ok(Some(TelemetryConfig { url, headers, resource })) => {
            let resource = resource.iter().filter(|(name, _)| !name.starts_with("telemetry.sdk"));
            format!("{url} {headers:?} {:?}", resource.collect::<Vec<_>>())
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&shown);
}

#[test]
fn config_follows_the_variables() {
    check_config(&[], &expect!["off"]);
    check_config(
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/")],
        &expect![[
            r#"http://c:4318/v1/traces [] [("service.name", "crow-cli"), ("service.version", "1.2.3")]"#
        ]],
    );
    check_config(
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t.example/api/traces"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20YTpi, x-scope = one"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_SERVICE_NAME", "mine"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,team=a%2Cb"),
        ],
        &expect![[
            r#"https://t.example/api/traces [("authorization", "Basic YTpi"), ("x-scope", "one")] [("service.version", "1.2.3"), ("team", "a,b"), ("service.name", "mine")]"#
        ]],
    );
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
    check_config(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")], &expect!["off"]);
    check_config(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")], &expect!["off"]);
    check_config(
        &[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
        &expect![[r#"OTEL_EXPORTER_OTLP_PROTOCOL is "grpc", and only http/json is supported"#]],
    );
    check_config(
        &[endpoint, ("OTEL_EXPORTER_OTLP_HEADERS", "no value")],
        &expect!["OTEL_EXPORTER_OTLP_HEADERS is not a list such as name=value,other=value"],
    );
}

#[test]
fn debug_output_has_no_header() {
    let variable = |name: &str| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("http://user:secret@c"),
        "OTEL_EXPORTER_OTLP_HEADERS" => Some("authorization=secret"),
        _ => None,
    };
    let config = TelemetryConfig::from_variables(variable, "1").unwrap().unwrap();
    assert!(!format!("{config:?}").contains("secret"));
}

#[test]
fn request_is_encoded_as_the_protocol_requires() {
    let span = FinishedSpan {
        ids: SpanIds { trace: [0xAB; 16], span: [1; 8] },
        parent: Some([0xF0; 8]),
        name: "chat m".to_owned(),
        kind: SpanKind::Client,
        start_ns: 1_700_000_000_000_000_001,
        end_ns: 1_700_000_000_000_000_002,
        attributes: vec![
            ("gen_ai.request.model", AttributeValue::Text("m".to_owned())),
            ("gen_ai.response.finish_reasons", AttributeValue::TextList("stop".to_owned())),
            ("gen_ai.usage.input_tokens", AttributeValue::Integer(i64::MAX)),
            ("gen_ai.response.time_to_first_chunk", AttributeValue::Number(0.5)),
            ("gen_ai.request.stream", AttributeValue::Flag(true)),
            ("error.type", AttributeValue::Text("connection".to_owned())),
        ],
    };
    let encoded = encode_request(&[("service.name".to_owned(), "crow-cli".to_owned())], "1.2.3", &[span]);
    let encoded: serde_json::Value = serde_json::from_str(&encoded).unwrap();
    let pretty = serde_json::to_string_pretty(&encoded).unwrap() + "\n";
    expect_file!["tests/request.json"].assert_eq(&pretty);
}

#[test]
fn rejected_spans_are_counted() {
    let reason = |body: &str| partial_success(body.as_bytes());
    assert_eq!(reason("{}"), None);
    assert_eq!(reason("not JSON"), None);
    assert_eq!(reason(r#"{"partialSuccess":{}}"#), None);
    assert_eq!(reason(r#"{"partialSuccess":{"rejectedSpans":"0","errorMessage":"hm"}}"#), None);
    let rejected = Some("it rejected 3 spans".to_owned());
    assert_eq!(reason(r#"{"partialSuccess":{"rejectedSpans":"3"}}"#), rejected);
    assert_eq!(reason(r#"{"partialSuccess":{"rejectedSpans":3}}"#), rejected);
}

/// Runs code with a layer whose queue has a length; returns the spans and the number of dropped ones.
fn collect(queue_len: usize, work: impl FnOnce()) -> (Vec<FinishedSpan>, u64) {
    let (finished_spans, mut spans) = mpsc::channel(queue_len);
    let n_dropped = Arc::new(AtomicU64::new(0));
    let layer = TelemetryLayer { finished_spans, n_dropped: n_dropped.clone() };
    tracing::subscriber::with_default(Registry::default().with(layer.into_filtered()), work);
    let spans = std::iter::from_fn(|| spans.try_recv().ok()).collect();
    (spans, n_dropped.load(Ordering::Relaxed))
}

#[test]
fn layer_collects_spans_below_their_parents() {
    let (spans, n_dropped) = collect(8, || {
        let turn = tracing::info_span!(target: TELEMETRY_TARGET, "turn", "error.type" = Empty);
        turn.in_scope(|| {
            tracing::info_span!(target: "crow_agent", "foreign").in_scope(|| {
                let call = tracing::info_span!(
                    target: TELEMETRY_TARGET,
                    "call",
                    otel.name = "call\nread",
                    otel.kind = "client",
                    length = "x".repeat(1000)
                );
                drop(call);
            });
        });
        turn.record("error.type", "first");
        turn.record("error.type", "second");
    });
    let [call, turn] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(
        (&*call.name, call.kind, &*turn.name, turn.kind),
        ("call read", SpanKind::Client, "turn", SpanKind::Internal)
    );
    assert_eq!((call.ids.trace, call.parent), (turn.ids.trace, Some(turn.ids.span)));
    assert_eq!(turn.attributes, [("error.type", AttributeValue::Text("second".to_owned()))]);
    assert_eq!(call.attributes, [("length", AttributeValue::Text("x".repeat(256)))]);
    assert!(turn.start_ns <= call.start_ns && call.end_ns <= turn.end_ns);
    assert_eq!(n_dropped, 0);
}

#[test]
fn layer_drops_spans_without_room() {
    let (spans, n_dropped) = collect(2, || {
        for _ in 0..5 {
            tracing::info_span!(target: TELEMETRY_TARGET, "call");
        }
    });
    assert_eq!((spans.len(), n_dropped), (2, 3));
}
