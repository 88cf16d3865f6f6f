//! Converts a server's requests to the model, and the replies.
#![expect(deprecated, reason = "servers in use ask for it")]

use crow_core::{SamplingEnd, SamplingReply, SamplingRequest, SamplingTurn, alternate_messages};
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, Role, SamplingMessage, SamplingMessageContentBlock,
};

/// Tokens of one reply: some pages. Every token is paid for by the user.
const TOKENS_MAX: u64 = 8_192;

/// More than a conversation within one call needs.
const MESSAGES_MAX: usize = 64;

/// The user reads all of it before it is sent.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Parses a request. The error is a clause that says why it is not sent.
pub(super) fn parse_request(
    server: &str,
    params: CreateMessageRequestParams,
) -> Result<SamplingRequest, String> {
    if params.tools.is_some_and(|tools| !tools.is_empty()) {
        return Err("tools in a request to the model are not supported".to_owned());
    }
    if params.messages.len() > MESSAGES_MAX {
        return Err(format!("it has more than {MESSAGES_MAX} messages"));
    }
    let system = params.system_prompt.unwrap_or_default();
    let mut n_bytes = system.len();
    let mut turns = Vec::new();
    for SamplingMessage { role, content, .. } in params.messages {
        for block in content.into_vec() {
            let SamplingMessageContentBlock::Text(text) = block else {
                return Err("only text can be sent to the model".to_owned());
            };
            n_bytes = n_bytes.saturating_add(text.text.len());
            turns.push(SamplingTurn { is_user: role == Role::User, text: text.text });
        }
    }
    if n_bytes > TEXT_BYTES_MAX {
        return Err(format!("it has more than {TEXT_BYTES_MAX} bytes of text"));
    }
    Ok(SamplingRequest {
        server: server.to_owned(),
        system,
        messages: alternate_messages(turns)?,
        tokens_max: u64::from(params.max_tokens).clamp(1, TOKENS_MAX),
        temperature: params
            .temperature
            .map(f64::from)
            .filter(|temperature| (0.0..=2.0).contains(temperature)),
        stop_sequences: params.stop_sequences.unwrap_or_default(),
    })
}

/// Converts a reply.
pub(super) fn to_result(reply: SamplingReply) -> CreateMessageResult {
    let reason = match reply.end {
        SamplingEnd::Complete => CreateMessageResult::STOP_REASON_END_TURN,
        SamplingEnd::TokensMax => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
        SamplingEnd::StopSequence => CreateMessageResult::STOP_REASON_END_SEQUENCE,
    };
    let message = SamplingMessage::assistant_text(reply.text);
    CreateMessageResult::new(message, reply.model).with_stop_reason(reason)
}
