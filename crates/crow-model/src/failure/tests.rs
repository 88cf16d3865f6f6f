mod refusals;

use expect_test::{Expect, expect};

use super::{ErrorResponse, FailureContext};
use crate::api::StreamError;
use crate::retry::{FailedAttempt, FailureCause};
use crate::test_settings::{SECRET_KEY, sample_settings};

#[track_caller]
fn check(answers: &[(u16, &str)], expected: &Expect) {
    let settings = sample_settings();
    let asked = FailureContext::about_model(&settings);
    let answer = |&(code, body): &(u16, &str)| {
        show(&asked.explain_response(&ErrorResponse { code, body, retry_after: None, is_repeated: false }))
    };
    expected.assert_eq(&answers.iter().map(answer).collect::<String>());
}

fn show(tried: &FailedAttempt) -> String {
    let again = if tried.cause == FailureCause::Permanent { "final" } else { "again" };
    format!("{} ({again})\n  {}\n", tried.failure.kind, tried.failure.message)
}

#[test]
fn each_status_has_its_message() {
    check(
        &[
            (
                401,
                r#"{"error":{"message":"Incorrect API key provided: sk-secret-0123456789.","code":"invalid_api_key"}}"#,
            ),
            (403, ""),
            (404, r#"{"error":{"message":"The model `acme-9` does not exist","code":"model_not_found"}}"#),
            (404, "<html><h1>404</h1></html>"),
            (400, r#"{"error":{"message":"bad tool schema"}}"#),
            (429, r#"{"error":{"message":"Rate limit reached"}}"#),
            (429, r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#),
            (408, ""),
            (500, r#"{"detail":"boom"}"#),
            (503, "overloaded\u{1b}[31m\nnow"),
            (308, ""),
        ],
        &expect![[r#"
            provider_auth (final)
              `acme` rejected the key in ACME_API_KEY (401): Incorrect API key provided: …; check that it is valid and may use `acme-9`
            provider_auth (final)
              `acme` rejected the key in ACME_API_KEY (403); check that it is valid and may use `acme-9`
            model_not_found (final)
              `acme` has no model `acme-9` (404): The model `acme-9` does not exist; correct the model of `big` in the configuration
            provider_rejected (final)
              `acme` has nothing at https://api.acme.test/v1 (404): a web page; check its `base_url`
            provider_rejected (final)
              `acme` rejected the request for `acme-9` (400): bad tool schema; check its settings in the configuration
            provider_rate (again)
              `acme` limits the request rate for `acme-9` (429): Rate limit reached; wait or use another model
            provider_rate (final)
              `acme` has no credit left for the key in ACME_API_KEY (429): You exceeded your current quota; check its plan and billing
            connection (again)
              `acme` timed out waiting for the request (408); try again
            provider_overloaded (again)
              `acme` is overloaded or failing for `acme-9` (500): boom; try again later
            provider_overloaded (again)
              `acme` is overloaded or failing for `acme-9` (503): overloaded [31m now; try again later
            provider_rejected (final)
              `acme` is no longer at https://api.acme.test/v1 (308); correct its `base_url`
        "#]],
    );
}

#[test]
fn context_overflow_is_recognized_for_all_providers() {
    check(
        &[
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}"#,
            ),
            (400, r#"{"error":{"message":"Too many tokens","code":"context_length_exceeded"}}"#),
            (400, r#"{"object":"error","message":"This model's maximum context length is 8192 tokens."}"#),
            (413, r#"{"error":"prompt is too long: 9000 tokens > 8192 maximum"}"#),
        ],
        &expect![[r#"
            context_overflow (final)
              the conversation (9000 tokens) is longer than the window of `acme-9` at `acme` (8192 tokens); make it shorter with /compact or send a shorter prompt
            context_overflow (final)
              the conversation is longer than the window of `acme-9` at `acme`: Too many tokens; make it shorter with /compact or send a shorter prompt
            context_overflow (final)
              the conversation is longer than the window of `acme-9` at `acme`: This model's maximum context length is 8192 tokens; make it shorter with /compact or send a shorter prompt
            context_overflow (final)
              the conversation (9000 tokens) is longer than the window of `acme-9` at `acme` (8192 tokens); make it shorter with /compact or send a shorter prompt
        "#]],
    );
}

#[test]
fn stream_errors_count_as_their_status() {
    let settings = sample_settings();
    let asked = FailureContext::about_model(&settings);
    let errors = [
        StreamError::Provider(r#"{"message":"later","code":429}"#.to_owned()),
        StreamError::Provider(r#"{"message":"Overloaded","type":"overloaded_error"}"#.to_owned()),
        StreamError::Provider(r#""something broke""#.to_owned()),
        StreamError::Provider(r#"{"message":"no","type":"invalid_request_error"}"#.to_owned()),
        StreamError::Provider(
            r#"{"code":"rate_limit_exceeded","message":"Rate limit reached for acme-9"}"#.to_owned(),
        ),
        StreamError::Provider(r#"{"code":"insufficient_quota","message":"You exceeded it"}"#.to_owned()),
        StreamError::Provider(r#"{"code":"server_error","message":"Sorry about that"}"#.to_owned()),
        StreamError::Provider(
            r#"{"type":"error","code":"context_length_exceeded","message":"Too long","param":"input"}"#
                .to_owned(),
        ),
        StreamError::Provider(r#"{"code":"invalid_prompt","message":"It was flagged"}"#.to_owned()),
        StreamError::Provider(r#"{"code":"model_not_found","message":"no model acme-9"}"#.to_owned()),
        StreamError::Incomplete,
        StreamError::TooLong,
        StreamError::UnexpectedFormat("a web page".to_owned()),
    ];
    let seen: String = errors.iter().map(|error| show(&asked.explain_stream_error(error, false))).collect();
    expect![[r#"
        provider_rate (again)
          `acme` limits the request rate for `acme-9` (429): later; wait or use another model
        provider_overloaded (again)
          `acme` is overloaded or failing for `acme-9` (529): Overloaded; try again later
        provider_overloaded (again)
          `acme` is overloaded or failing for `acme-9` (500): something broke; try again later
        provider_rejected (final)
          `acme` rejected the request for `acme-9` (400): no; check its settings in the configuration
        provider_rate (again)
          `acme` limits the request rate for `acme-9` (429): Rate limit reached for acme-9; wait or use another model
        provider_rate (final)
          `acme` has no credit left for the key in ACME_API_KEY (429): You exceeded it; check its plan and billing
        provider_overloaded (again)
          `acme` is overloaded or failing for `acme-9` (500): Sorry about that; try again later
        context_overflow (final)
          the conversation is longer than the window of `acme-9` at `acme`: Too long; make it shorter with /compact or send a shorter prompt
        provider_rejected (final)
          `acme` rejected the content of the conversation for `acme-9` (400): It was flagged; rephrase it or use another model
        model_not_found (final)
          `acme` has no model `acme-9` (404): no model acme-9; correct the model of `big` in the configuration
        connection (again)
          the response of `acme` broke off; try again
        protocol (final)
          `acme` sent an event that is too long to be a reply for `acme-9`; use another model
        protocol (final)
          `acme` answered with something that is not a completion: a web page; check its `base_url`
    "#]]
    .assert_eq(&seen);
}

#[test]
fn missing_key_is_named() {
    let mut settings = sample_settings();
    settings.provider.api_key = None;
    let say = |settings: &crate::ModelSettings| {
        let answer = ErrorResponse { code: 401, body: "", retry_after: None, is_repeated: false };
        FailureContext::about_model(settings).explain_response(&answer).failure.message
    };
    assert_eq!(say(&settings), "`acme` needs a key (401); set ACME_API_KEY");
    settings.provider.key_variable = None;
    assert_eq!(say(&settings), "`acme` needs a key (401); configure its `api_key`");
}

#[test]
fn messages_have_no_secret_and_are_bounded() {
    let settings = sample_settings();
    for code in 300..=599 {
        let body = format!("{SECRET_KEY} and tenant-secret, {}", "words ".repeat(1000));
        let answer = ErrorResponse { code, body: &body, retry_after: None, is_repeated: false };
        let tried = format!("{:?}", FailureContext::about_model(&settings).explain_response(&answer));
        assert!(
            !tried.contains("secret") && !tried.contains("token=") && !tried.contains("user:word"),
            "{tried}"
        );
        assert!(tried.len() < 1000, "{tried}");
    }
    assert!(!format!("{:?}", settings.provider.api_key).contains("secret"));
}

fn body(kind: &str, message: &str) -> String {
    format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_1"}}"#)
}

#[test]
fn errors_of_the_messages_api() {
    let told = [
        (400, body("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum")),
        (
            400,
            body(
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again",
            ),
        ),
        (400, body("invalid_request_error", "messages.1: all messages must have non-empty content")),
        (401, body("authentication_error", "invalid x-api-key")),
        (
            403,
            body("permission_error", "Your API key does not have permission to use the specified resource."),
        ),
        (404, body("not_found_error", "model: acme-9")),
        (413, body("request_too_large", "Request exceeds the maximum size")),
        (429, body("rate_limit_error", "This request would exceed your rate limit")),
        (500, body("api_error", "Internal server error")),
        (529, body("overloaded_error", "Overloaded")),
    ];
    let answers: Vec<(u16, &str)> = told.iter().map(|(code, body)| (*code, body.as_str())).collect();
    check(
        &answers,
        &expect![[r#"
            context_overflow (final)
              the conversation (208310 tokens) is longer than the window of `acme-9` at `acme` (200000 tokens); make it shorter with /compact or send a shorter prompt
            context_overflow (final)
              the conversation is longer than the window of `acme-9` at `acme`: input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again; make it shorter with /compact or send a shorter prompt
            provider_rejected (final)
              `acme` rejected the request for `acme-9` (400): messages.1: all messages must have non-empty content; check its settings in the configuration
            provider_auth (final)
              `acme` rejected the key in ACME_API_KEY (401): invalid x-api-key; check that it is valid and may use `acme-9`
            provider_auth (final)
              `acme` rejected the key in ACME_API_KEY (403): Your API key does not have permission to use the specified resource; check that it is valid and may use `acme-9`
            model_not_found (final)
              `acme` has no model `acme-9` (404): model: acme-9; correct the model of `big` in the configuration
            context_overflow (final)
              the conversation is longer than the window of `acme-9` at `acme`: Request exceeds the maximum size; make it shorter with /compact or send a shorter prompt
            provider_rate (again)
              `acme` limits the request rate for `acme-9` (429): This request would exceed your rate limit; wait or use another model
            provider_overloaded (again)
              `acme` is overloaded or failing for `acme-9` (500): Internal server error; try again later
            provider_overloaded (again)
              `acme` is overloaded or failing for `acme-9` (529): Overloaded; try again later
        "#]],
    );
    // The same inside a stream, where only the kind is known.
    let settings = sample_settings();
    for (code, body) in &told {
        let value: serde_json::Value = serde_json::from_str(body).unwrap();
        let inside = StreamError::Provider(value["error"].to_string());
        let answer = ErrorResponse { code: *code, body, retry_after: None, is_repeated: false };
        let asked = FailureContext::about_model(&settings);
        assert_eq!(
            show(&asked.explain_stream_error(&inside, false)),
            show(&asked.explain_response(&answer)),
            "{body}"
        );
    }
}

#[test]
fn key_in_a_header_is_not_shown() {
    let mut settings = sample_settings();
    settings.provider.headers = vec![("Authorization".into(), "Bearer sk-other-0123456789".into())];
    let body = "no such key: sk-other-0123456789";
    let answer = ErrorResponse { code: 401, body, retry_after: None, is_repeated: false };
    let tried = FailureContext::about_model(&settings).explain_response(&answer);
    let expected = "`acme` rejected the key in ACME_API_KEY (401): no such key: …; check that it is valid and may use `acme-9`";
    assert_eq!(tried.failure.message, expected);
}

#[test]
fn repeated_failure_has_a_reason() {
    let settings = sample_settings();
    let body = r#"{"error":{"code":500,"message":"Failed to parse tool call arguments as JSON","type":"server_error"}}"#;
    let say = |code, is_same| {
        show(&FailureContext::about_model(&settings).explain_response(&ErrorResponse {
            code,
            body,
            retry_after: None,
            is_repeated: is_same,
        }))
    };
    let seen = [say(500, false), say(500, true), say(503, true)].concat();
    expect![[r#"
        provider_overloaded (again)
          `acme` is overloaded or failing for `acme-9` (500): Failed to parse tool call arguments as JSON; try again later
        provider_rejected (again)
          `acme` fails for this request for `acme-9` every time (500): Failed to parse tool call arguments as JSON; use another model
        provider_overloaded (again)
          `acme` is overloaded or failing for `acme-9` (503): Failed to parse tool call arguments as JSON; try again later
    "#]].assert_eq(&seen);
}

#[test]
fn retry_delay_in_the_body() {
    let settings = sample_settings();
    let wait = |code, body, retry_after| {
        let answer = ErrorResponse { code, body, retry_after, is_repeated: false };
        match FailureContext::about_model(&settings).explain_response(&answer).cause {
            FailureCause::Status { retry_after, .. } => retry_after.map(|wait| wait.as_millis()),
            FailureCause::Unreachable
            | FailureCause::TimedOut
            | FailureCause::Disconnected
            | FailureCause::Permanent => None,
        }
    };
    let gemini = r#"[{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay": "37.5s"}]}}]"#;
    assert_eq!(wait(429, gemini, None), Some(37_500));
    assert_eq!(wait(429, gemini, Some(std::time::Duration::from_secs(1))), Some(1000));
    assert_eq!(wait(429, r#"{"retryDelay":"-1s"}"#, None), None);
    assert_eq!(wait(429, r#"{"retryDelay":"soon"}"#, None), None);
    let hour = Some(std::time::Duration::from_secs(3590));
    let answer = ErrorResponse { code: 429, body: "", retry_after: hour, is_repeated: false };
    let failed = FailureContext::about_model(&settings).explain_response(&answer);
    expect![
        "`acme` limits the request rate for `acme-9` (429); try again in 60 minutes, or use another model"
    ]
    .assert_eq(&failed.failure.message);
    let loading = r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;
    assert_eq!(wait(503, loading, None), Some(10_000));
}

#[test]
fn rejected_fields_have_a_suggested_setting() {
    let mut settings = sample_settings();
    settings.provider.api = crate::ModelApi::parse("responses").unwrap();
    let answers = [
        (404, ""),
        (
            400,
            r#"{"error":{"message":"Encrypted content is not supported with this model.","param":"include"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"The encrypted content could not be verified.","code":"invalid_encrypted_content"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Your organization must be verified to generate reasoning summaries.","param":"reasoning.summary"}}"#,
        ),
    ];
    let seen = answers.map(|(code, body)| {
        show(&FailureContext::about_model(&settings).explain_response(&ErrorResponse {
            code,
            body,
            retry_after: None,
            is_repeated: false,
        }))
    });
    expect![[r#"
        provider_rejected (final)
          `acme` has nothing at https://api.acme.test/v1 (404); check its `base_url`, and whether it speaks `api: responses`
        provider_rejected (final)
          `acme` rejected the request for `acme-9` (400): Encrypted content is not supported with this model; try `send_reasoning: false` for `big` in the configuration
        provider_rejected (final)
          `acme` rejected the request for `acme-9` (400): The encrypted content could not be verified; try `send_reasoning: false` for `big` in the configuration
        provider_rejected (final)
          `acme` rejected the request for `acme-9` (400): Your organization must be verified to generate reasoning summaries; try `thought_levels` that set only `reasoning.effort` for `big` in the configuration
    "#]].assert_eq(&seen.concat());
}
