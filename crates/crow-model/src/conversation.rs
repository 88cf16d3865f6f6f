//! The walk over a conversation, the same for every API: prompts are merged, replies without content are left out, and
//! results find their calls. An API encodes the pieces; this module must not know their JSON.

use std::borrow::Cow;

use crow_core::{ContentPart, ModelStep, ModelTranscript, Reply, ToolResult};

use crate::wire::WireCallIds;

/// Encodes the pieces of a conversation, in their order.
pub(crate) trait ConversationEncoder<'a> {
    /// An encoded reply.
    type EncodedReply;

    /// Chooses the IDs of a reply's calls.
    fn choose_call_ids(&mut self, reply: &'a Reply) -> WireCallIds<'a>;

    /// Encodes a reply; `None` if nothing of it is sent.
    fn encode_reply(&self, step: ReplyStep<'a, '_>) -> Option<Self::EncodedReply>;

    /// Called before a message of the user begins, with the number of steps before it. They are not in the last turn,
    /// also in later requests.
    fn on_prompt(&mut self, _n_steps: usize) {}

    /// Adds the parts of all prompts since the last reply that was sent; there may be none.
    fn add_prompt_parts(&mut self, parts: &[&'a ContentPart]);

    /// Adds a reply.
    fn add_reply(&mut self, reply: Self::EncodedReply);

    /// Adds the result of a call.
    fn add_result(&mut self, call_id: Cow<'a, str>, result: &'a ToolResult);
}

/// A reply in its conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyStep<'a, 'n> {
    pub(crate) reply: &'a Reply,
    pub(crate) call_ids: &'n WireCallIds<'a>,
    /// No prompt follows the reply.
    pub(crate) is_in_last_turn: bool,
}

/// Encodes a conversation from a step on, which is its first step or begins a message of the user.
pub(crate) fn encode_conversation<'a>(
    transcript: ModelTranscript<'a>,
    first_step: usize,
    encoder: &mut impl ConversationEncoder<'a>,
) {
    let steps = || transcript.steps().enumerate().skip(first_step);
    let prompts = steps().filter(|(_, step)| matches!(step, ModelStep::Prompt(_)));
    let last_prompt_index = prompts.last().map_or(0, |(index, _)| index);
    let mut call_ids = WireCallIds::default();
    // Many servers reject two user messages in a row, so prompts are merged until a reply follows.
    let mut prompt_parts: Vec<&ContentPart> = Vec::new();
    for (index, step) in steps() {
        match step {
            ModelStep::Prompt(prompt) => {
                if prompt_parts.is_empty() {
                    encoder.on_prompt(index);
                }
                prompt_parts.extend(&prompt.parts);
            }
            ModelStep::Reply(reply) => {
                call_ids = encoder.choose_call_ids(reply);
                let is_in_last_turn = index > last_prompt_index;
                let step = ReplyStep { reply, call_ids: &call_ids, is_in_last_turn };
                if let Some(encoded_reply) = encoder.encode_reply(step) {
                    encoder.add_prompt_parts(&prompt_parts);
                    prompt_parts.clear();
                    encoder.add_reply(encoded_reply);
                }
            }
            ModelStep::Result { call, result } => {
                // The transcript has a reply before each result; without one nothing is sent.
                let Some(call_id) = call_ids.id_of(call) else { continue };
                encoder.add_result(call_id.clone(), result);
            }
        }
    }
    encoder.add_prompt_parts(&prompt_parts);
}
