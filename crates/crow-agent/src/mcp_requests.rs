//! Requests of an MCP server during one of its calls: to the user, question by question, and to the session's model,
//! after its approval.

use crow_acp::{ElicitationChoice, ElicitationForm, ElicitationOutcome, FormSubject};
use crow_core::{
    CallId, DialogueStep, ElicitationDialogue, OutputStreaming, ReplyEnd, SamplingEnd, SamplingReply,
    SamplingRequest, ServerElicitation, ServerElicitationOutcome, ServerQuestion, SessionUpdate, ToolAccess,
    ToolArguments, ToolCall, ToolCallContent, ToolCallInfo, ToolCallStatus, ToolKind, Transcript,
    replace_control_chars,
};
use crow_tools::{McpSessionPort, ServerRequestFuture};
use serde_json::Map;

use crate::call_approval::{PreparedCall, approve_server_request};
use crate::confirm::synthetic_call_id;
use crate::permission_gate::PermissionGate;
use crate::turn_context::TurnCx;
use crow_model::RequestBounds;

/// The name of a request to the model for rules and grants; no tool of a server can have it.
const SAMPLING: &str = "sampling/createMessage";

/// The session of a call, as the call's server may use it.
pub(crate) struct CallMcpSession<'a> {
    pub(crate) cx: &'a TurnCx<'a>,
    pub(crate) gate: &'a PermissionGate,
}

impl McpSessionPort for CallMcpSession<'_> {
    fn elicit(&self, request: ServerElicitation) -> ServerRequestFuture<'_, ServerElicitationOutcome> {
        Box::pin(self.ask_user(request))
    }

    fn sample(&self, request: SamplingRequest) -> ServerRequestFuture<'_, Result<SamplingReply, String>> {
        Box::pin(self.ask_model(request))
    }
}

impl CallMcpSession<'_> {
    /// Asks one question after the other; no other question of the turn comes between them.
    async fn ask_user(&self, request: ServerElicitation) -> ServerElicitationOutcome {
        let cx = self.cx;
        let _turn_to_ask = self.gate.question_lock.lock().await;
        let mut dialogue = ElicitationDialogue::new(request);
        loop {
            let question = match dialogue.next_step() {
                DialogueStep::Ask(question) => question,
                DialogueStep::End(outcome) => return outcome,
            };
            match cx.client.elicit_form(cx.session, &to_form(question), cx.cancel).await {
                ElicitationOutcome::Accepted(answer) => dialogue.on_answer(&answer),
                ElicitationOutcome::Declined => return ServerElicitationOutcome::Declined,
                ElicitationOutcome::Cancelled => return ServerElicitationOutcome::Cancelled,
                ElicitationOutcome::Unavailable { reason } => {
                    return ServerElicitationOutcome::Unavailable { reason };
                }
            }
        }
    }

    /// Sends the request to the model once it is allowed. The client sees it as a call of its own.
    async fn ask_model(&self, request: SamplingRequest) -> Result<SamplingReply, String> {
        let cx = self.cx;
        let id = synthetic_call_id(cx, self.gate.turn);
        let info = ToolCallInfo {
            title: format!("{}: ask the model", request.server),
            kind: ToolKind::Other,
            locations: Vec::new(),
            access: ToolAccess::Calls { server: request.server.clone(), tool: SAMPLING.to_owned() },
        };
        let content = vec![ToolCallContent::Text(request.description())];
        cx.client.send_update(
            cx.session,
            SessionUpdate::Call {
                call: id,
                name: SAMPLING.to_owned(),
                info: info.clone(),
                arguments: Map::new(),
                status: ToolCallStatus::Pending,
                content: content.clone(),
                streaming: OutputStreaming::Off,
            },
        );
        let mut end = SamplingCallEnd { cx, call: id, is_reported: false };
        let call = ToolCall {
            id,
            provider_id: String::new(),
            name: SAMPLING.to_owned(),
            arguments: ToolArguments::Valid(Map::new()),
        };
        let prepared = PreparedCall { call: &call, info: &info, tool_cx: cx.tool_cx(&info.access) };
        if let Err(reason) = approve_server_request(cx, prepared, self.gate, &content).await {
            return end.report_failure(reason);
        }
        end.send_status(ToolCallStatus::InProgress, None);
        match self.send_to_model(&request).await {
            Ok(reply) => {
                end.report_reply(&reply.text);
                Ok(reply)
            }
            Err(reason) => end.report_failure(reason),
        }
    }

    async fn send_to_model(&self, request: &SamplingRequest) -> Result<SamplingReply, String> {
        let cx = self.cx;
        let model = cx.current_model().map_err(|failure| failure.message)?;
        let bounds = RequestBounds {
            reply_tokens_max: Some(request.tokens_max),
            temperature: request.temperature,
            ..RequestBounds::default()
        };
        let transcript = Transcript::from_dialogue(request.system.clone(), request.messages.clone())
            .map_err(|error| error.to_string())?;
        let mut reply = cx.send_side_request(&model, &transcript, bounds).await;
        let end = match reply.end {
            ReplyEnd::Complete => SamplingEnd::Complete,
            ReplyEnd::OutputLimit | ReplyEnd::SizeLimit => SamplingEnd::TokensMax,
            ReplyEnd::Refused => return Err("the provider refused to answer".to_owned()),
            ReplyEnd::Cancelled => return Err("the turn was cancelled".to_owned()),
            ReplyEnd::Failed(failure) => return Err(failure.message),
        };
        let is_stopped = request.truncate_at_stop(&mut reply.text);
        let end = if is_stopped { SamplingEnd::StopSequence } else { end };
        let fallback = reply.fallback_model.and_then(|name| cx.model_named(Some(&name)).ok());
        let model = fallback.unwrap_or(model).model;
        Ok(SamplingReply { model, text: reply.text, end })
    }
}

fn to_form(ServerQuestion { message, options, free_text }: ServerQuestion) -> ElicitationForm {
    let choices = options.into_iter().map(|label| ElicitationChoice { label, description: String::new() });
    ElicitationForm { message, options: choices.collect(), free_text, subject: FormSubject::McpServer }
}

/// Shows the end of a request to the model; one that is dropped before has failed.
struct SamplingCallEnd<'a> {
    cx: &'a TurnCx<'a>,
    call: CallId,
    is_reported: bool,
}

impl SamplingCallEnd<'_> {
    fn send_status(&self, status: ToolCallStatus, text: Option<&str>) {
        let content = text.map(|text| vec![ToolCallContent::Text(replace_control_chars(text))]);
        let update = SessionUpdate::CallChanged { call: self.call, status, content };
        self.cx.client.send_update(self.cx.session, update);
    }

    fn report_reply(&mut self, text: &str) {
        self.is_reported = true;
        self.send_status(ToolCallStatus::Completed, Some(text));
    }

    fn report_failure(&mut self, reason: String) -> Result<SamplingReply, String> {
        self.is_reported = true;
        self.send_status(ToolCallStatus::Failed, Some(&reason));
        Err(reason)
    }
}

impl Drop for SamplingCallEnd<'_> {
    fn drop(&mut self) {
        if !self.is_reported {
            self.send_status(ToolCallStatus::Failed, Some("the call has ended"));
        }
    }
}
