//! The content of a provider's error: its message for users, and the kind of error. Each has its own format, and some
//! send a web page.

use std::time::Duration;

use serde_json::Value;

/// The nesting depth of an error: gateways quote the errors of those behind them.
const DEPTH_MAX: u8 = 6;

/// Problems of one error that are quoted.
const PROBLEMS_MAX: usize = 3;

/// A server that loads a model needs a while for it, and does not say how long.
const LOADING_WAIT: Duration = Duration::from_secs(10);

/// The phrases for a conversation that is too long.
const OVERFLOW: [&str; 20] = [
    "context_length_exceeded",
    "exceed_context_size",
    "exceeds the available context size",
    "maximum context length",
    "maximum context size",
    "maximum prompt length",
    "context window",
    "context length",
    "context size",
    "context the overflows",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input length and `max_tokens`",
    "input length should be",
    "input token count",
    "prompt token count",
    "request_too_large",
    "reduce the length of the messages",
    "reduce your message size",
];

const NO_MODEL: [&str; 7] = [
    "model_not_found",
    "invalid_model",
    "invalid model",
    "model not exist",
    "not a valid model",
    "no endpoints found for",
    "unknown model",
];

const BAD_KEY: [&str; 5] =
    ["invalid_api_key", "api_key_invalid", "api key not valid", "incorrect api key", "invalid api key"];

const NO_CREDIT: [&str; 7] = [
    "insufficient_quota",
    "insufficient_user_quota",
    "insufficient balance",
    "exceeded_current_quota",
    "billing_not_active",
    "credit balance is too low",
    "requires more credits",
];

const CONTENT_REFUSED: [&str; 9] = [
    "content_filter",
    "content_policy",
    "responsibleaipolicy",
    "requires moderation",
    "content exists risk",
    "data_inspection_failed",
    "safety_check",
    "usage policy",
    "was flagged",
];

const NO_TOOLS: [&str; 5] = [
    "does not support tools",
    "support tool use",
    "tool choice requires",
    "requires --jinja",
    "tools are not supported",
];

/// The kinds of errors of Anthropic, with their status.
const ERROR_TYPES: [(&str, u16); 9] = [
    ("authentication_error", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("api_error", 500),
    ("timeout_error", 504),
    ("overloaded_error", 529),
];

/// The text of an error, ready to be searched.
#[derive(Debug)]
pub(super) struct ErrorBody<'a> {
    body: &'a str,
    lowercase_body: String,
}

impl<'a> ErrorBody<'a> {
    pub(super) fn new(body: &'a str) -> Self {
        Self { body, lowercase_body: body.to_lowercase() }
    }

    pub(super) fn is_overflow(&self) -> bool {
        self.contains_any(&OVERFLOW) || self.exceeds_plan()
    }

    /// Whether the limit is another one than the model's context window.
    pub(super) fn exceeds_other_limit(&self) -> bool {
        self.exceeds_plan() || !self.contains_any(&OVERFLOW)
    }

    /// Whether it exceeds what the plan ever permits: waiting does not help, fewer tokens do.
    fn exceeds_plan(&self) -> bool {
        self.contains_any(&["request too large"]) && self.contains_any(&["tokens per min"])
    }

    pub(super) fn is_invalid_key(&self) -> bool {
        self.contains_any(&BAD_KEY)
    }

    pub(super) fn is_out_of_credit(&self) -> bool {
        self.contains_any(&NO_CREDIT)
    }

    pub(super) fn is_content_refusal(&self) -> bool {
        self.contains_any(&CONTENT_REFUSED)
    }

    /// Whether the model wrote a call that its provider could not parse. It may do better next time.
    pub(super) fn is_malformed_call(&self) -> bool {
        self.contains_any(&["tool_use_failed", "malformed_function_call"])
    }

    /// Whether the model does not support tools.
    pub(super) fn is_without_tool_support(&self) -> bool {
        self.contains_any(&NO_TOOLS)
    }

    /// Whether the model is missing, and not the URL wrong.
    pub(super) fn is_unknown_model(&self, code: u16) -> bool {
        let is_missing = code == 404 || self.contains_any(&["does not exist"]);
        self.contains_any(&NO_MODEL) || (is_missing && self.contains_any(&["model"]))
    }

    /// The setting that would help, if the error concerns one.
    pub(super) fn suggested_setting(&self) -> Option<&'static str> {
        let is_about_reasoning = self.contains_any(&["reasoning_content"]);
        if self.is_without_tool_support() {
            Some("`tool_calls: text`")
        } else if is_about_reasoning && self.contains_any(&["missing", "passed back"]) {
            Some("`send_reasoning: true`")
        } else if is_about_reasoning || self.contains_any(&["encrypted content", "encrypted_content"]) {
            Some("`send_reasoning: false`")
        } else if self.contains_any(&["reasoning summaries", "reasoning summary", "reasoning.summary"]) {
            Some("`thought_levels` that set only `reasoning.effort`")
        } else if self.contains_any(&["reasoning_effort"]) {
            Some("the thought level `default`, or `thought_levels`")
        } else {
            None
        }
    }

    /// The wait that the body asks for.
    pub(super) fn retry_delay(&self) -> Option<Duration> {
        if self.contains_any(&["loading model"]) {
            return Some(LOADING_WAIT);
        }
        let (_, rest) = self.lowercase_body.split_once("\"retrydelay\"")?;
        let seconds = rest.trim_start_matches([':', ' ', '"']).split('s').next()?;
        Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
    }

    /// The tokens of the conversation and of the window, if reported.
    pub(super) fn token_counts(&self) -> Option<(u64, u64)> {
        let error = error_object(self.body);
        let number = |field: &str| error.get(field).and_then(Value::as_u64);
        number("n_prompt_tokens").zip(number("n_ctx")).or_else(|| self.parse_token_counts())
    }

    /// Parses `prompt is too long: 208310 tokens > 200000 maximum`.
    fn parse_token_counts(&self) -> Option<(u64, u64)> {
        let (_, counts) = self.lowercase_body.split_once("prompt is too long: ")?;
        let (prompt, rest) = counts.split_once(" tokens > ")?;
        let window = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Some((prompt.parse().ok()?, window.parse().ok()?))
    }

    /// The message for users: the one in the body, or the body itself.
    pub(super) fn message_text(&self) -> String {
        if self.body.trim_start().starts_with('<') {
            return self.web_page_text();
        }
        let value = serde_json::from_str::<Value>(self.body).unwrap_or(Value::Null);
        find_message(&value, DEPTH_MAX).unwrap_or_else(|| self.body.to_owned())
    }

    /// The title of a web page.
    fn web_page_text(&self) -> String {
        let title = || {
            let start = self.body.find("<title>")? + "<title>".len();
            let (title, _) = self.body[start..].split_once("</title>")?;
            Some(title.trim()).filter(|title| !title.is_empty())
        };
        title().map_or_else(|| "a web page".to_owned(), |title| format!("a web page, \"{title}\""))
    }

    /// The status of an error inside a stream.
    pub(super) fn status_code(&self) -> u16 {
        let value = error_object(self.body);
        let number = |name: &str| {
            let field = value.get(name)?;
            field.as_u64().or_else(|| field.as_str()?.parse().ok()).and_then(|code| u16::try_from(code).ok())
        };
        let code = ["code", "status", "status_code"].iter().find_map(|name| number(name));
        if let Some(code) = code.filter(|code| (400..600).contains(code)) {
            return code;
        }
        let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
        if let Some((_, code)) = ERROR_TYPES.iter().find(|(name, _)| *name == kind) {
            return *code;
        }
        let is_invalid_request =
            self.contains_any(&["invalid_request", "invalid_prompt", "invalid_image", "_policy"]);
        if self.is_overflow() || self.is_malformed_call() || is_invalid_request {
            400
        } else if self.contains_any(&["model_not_found"]) {
            404
        } else if self.contains_any(&["rate_limit", "rate limit", "too many requests", "too_many_requests"])
            || self.is_out_of_credit()
        {
            429
        } else if self.contains_any(&[
            "overloaded",
            "unavailable",
            "capacity",
            "insufficient_system_resource",
        ]) {
            503
        } else if self.is_invalid_key() || self.contains_any(&["authentication"]) {
            401
        } else {
            500
        }
    }

    fn contains_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.lowercase_body.contains(word))
    }
}

/// The message in a value, however it is wrapped.
fn find_message(value: &Value, depth: u8) -> Option<String> {
    let depth_left = depth.checked_sub(1)?;
    match value {
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => {
                find_message(&inner, depth_left).or_else(|| Some(text.clone()))
            }
            _ => Some(text.clone()),
        },
        Value::Array(problems) => {
            let problems =
                problems.iter().filter_map(|problem| find_message(problem, depth_left)).take(PROBLEMS_MAX);
            Some(problems.collect::<Vec<_>>().join("; ")).filter(|problems| !problems.is_empty())
        }
        Value::Object(error) => {
            let names = ["error", "message", "detail", "msg", "errors", "code"];
            let message = names.iter().find_map(|name| find_message(error.get(*name)?, depth_left))?;
            // A gateway's own message says little; that of the provider behind it is next to it.
            let upstream_message =
                error.get("metadata").and_then(|metadata| find_message(metadata.get("raw")?, depth_left));
            let location = error.get("loc").and_then(Value::as_array).map(|place| {
                let steps =
                    place.iter().map(|step| step.as_str().map_or_else(|| step.to_string(), str::to_owned));
                steps.collect::<Vec<_>>().join(".")
            });
            Some(location.into_iter().chain([message]).chain(upstream_message).collect::<Vec<_>>().join(": "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The innermost object that describes the error: some wrap it in `error`, some in a list, some not at all.
fn error_object(body: &str) -> Value {
    let mut value = serde_json::from_str::<Value>(body).unwrap_or(Value::Null);
    if let Value::Array(list) = &mut value {
        value = list.first_mut().map(Value::take).unwrap_or_default();
    }
    match value.get_mut("error").map(Value::take) {
        Some(error) if !error.is_null() => error,
        _ => value,
    }
}
