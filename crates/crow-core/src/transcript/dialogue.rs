//! A transcript that is not a session's: a request of Crow's own to a model.

use super::{InvalidEntry, Transcript, TranscriptEntry};
use crate::{ContentPart, MessageId, Prompt, Reply, ReplyEnd};

impl Transcript {
    /// Builds a transcript in which user and model alternate.
    pub fn from_dialogue(system: String, messages: Vec<String>) -> Result<Self, InvalidEntry> {
        let mut transcript = Self::new(system);
        for (index, text) in messages.into_iter().enumerate() {
            let id = MessageId::from_seq(index as u64);
            transcript.push(match index % 2 {
                0 => TranscriptEntry::Prompt(Prompt { id, parts: vec![ContentPart::Text(text)] }),
                _ => TranscriptEntry::Reply(Reply {
                    id,
                    thought: String::new(),
                    text,
                    calls: Vec::new(),
                    end: ReplyEnd::Complete,
                    usage: None,
                    provider_state: None,
                    fallback_model: None,
                }),
            })?;
        }
        Ok(transcript)
    }
}
