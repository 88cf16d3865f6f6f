//! A first request to a configured model: whether it answers, and whether it calls a tool.

use std::time::Duration;

use crow_core::{
    ContentPart, Failure, FailureKind, MessageId, Prompt, ReplyDelta, ReplyEnd, ToolSpec, Transcript,
    TranscriptEntry,
};
use crow_model::{EncodedMessages, HttpClients, ModelRequest, ModelSettings, ReplyListener, stream_reply};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// A model that thinks, or that a local server has to load first.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(120);

const TOOL: &str = "report_ready";

/// The rest of the sentence about a model that called no tool.
pub(super) const TEXT_ONLY: &str =
    "answered, but called no tool; if it writes calls into its text, set `tool_calls: text`";

/// The outcome of a request that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrialOutcome {
    /// It called the tool.
    CalledTool,
    /// It answered with text only.
    TextOnly,
}

/// Asks a model to call a tool.
pub(crate) async fn try_model(http: &HttpClients, settings: &ModelSettings) -> Result<TrialOutcome, Failure> {
    let mut transcript = Transcript::new("You are a coding agent. You work by calling tools.");
    let text = format!("Call the tool {TOOL} once, with the word \"yes\".");
    let prompt = Prompt { id: MessageId::from_seq(0), parts: vec![ContentPart::Text(text)] };
    let impossible = |error: &dyn std::fmt::Display| Failure::new(FailureKind::Internal, error.to_string());
    transcript.push(TranscriptEntry::Prompt(prompt)).map_err(|error| impossible(&error))?;
    let tools = [ToolSpec {
        name: TOOL.to_owned(),
        description: "Reports that you are ready.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"word": {"type": "string", "description": "yes or no"}},
            "required": ["word"],
        }),
    }];
    let transcript = transcript.for_model().map_err(|error| impossible(&error))?;
    let settings = ModelSettings { retries_max: 0, ..settings.clone() };
    let encoded_messages = &EncodedMessages::default();
    let request = ModelRequest { settings: &settings, transcript, tools: &tools, seq: 1, encoded_messages };
    let cancel = CancellationToken::new();
    let reply = tokio::time::timeout(TRIAL_TIMEOUT, stream_reply(http, request, &mut Silent, &cancel))
        .await
        .map_err(|_| {
            let message =
                format!("{} did not answer within {} seconds", settings.model, TRIAL_TIMEOUT.as_secs());
            Failure::new(FailureKind::Connection, message)
        })?;
    match reply.end {
        ReplyEnd::Failed(failure) => Err(failure),
        _ if reply.calls.iter().any(|call| call.name == TOOL) => Ok(TrialOutcome::CalledTool),
        ReplyEnd::Complete
        | ReplyEnd::OutputLimit
        | ReplyEnd::SizeLimit
        | ReplyEnd::Refused
        | ReplyEnd::Cancelled => Ok(TrialOutcome::TextOnly),
    }
}

/// A listener that waits for the end of the reply.
struct Silent;

impl ReplyListener for Silent {
    fn on_delta(&mut self, _delta: ReplyDelta<'_>) {}

    fn on_notice(&mut self, _notice: String) {}

    async fn wait_for_capacity(&mut self) {}
}

#[cfg(test)]
mod tests {
    use crow_model::{HttpClients, ModelApi, ModelSettings, ProviderSettings};
    use crow_testkit::{ModelServer, Script};

    use super::try_model;

    #[test]
    fn outcome_is_that_of_the_reply() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for (script, outcome) in [
            ("call report_ready {\"word\": \"yes\"}\n", "Ok(CalledTool)"),
            ("call other {}\n", "Ok(TextOnly)"),
            ("text \"Ready.\"\n", "Ok(TextOnly)"),
            ("status 401 {\"error\": {\"message\": \"wrong key\"}}\n", "ProviderAuth"),
        ] {
            let server = ModelServer::start(Script::parse(script));
            let provider = ProviderSettings {
                name: "acme".to_owned(),
                base_url: server.base_url().to_owned(),
                api: ModelApi::CHAT,
                api_key: None,
                key_variable: None,
                headers: Vec::new(),
            };
            let model = ModelSettings::new(provider, "acme-9");
            let seen = runtime.block_on(try_model(&HttpClients::new().unwrap(), &model));
            let seen =
                seen.map_or_else(|failure| format!("{:?}", failure.kind), |seen| format!("Ok({seen:?})"));
            assert_eq!(seen, outcome, "{script}");
        }
    }
}
