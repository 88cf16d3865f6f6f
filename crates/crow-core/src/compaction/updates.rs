//! The session updates about a compaction, the same live and in a replay.

use crate::{Compaction, CompactionStage, SessionUpdate};

/// Below this number of tokens, thousands are shown with a decimal.
const FEW_TOKENS: u64 = 10_000;

/// Returns the id of a compaction, the same live and in a replay. One that is repeated at the same place, because the
/// first one was undone or failed, began at another time.
pub fn compaction_id(at: u64, began_ms: i64) -> String {
    format!("compaction-{at}-{began_ms}")
}

/// Returns the update that a compaction has started.
pub fn compaction_started(id: String, is_clear: bool) -> SessionUpdate {
    let text = if is_clear { "Clearing the context …" } else { "Compacting the conversation …" };
    SessionUpdate::Compaction { id, stage: CompactionStage::Started, text: text.to_owned() }
}

/// Describes the result of a compaction.
pub fn compaction_sentence(compaction: &Compaction) -> String {
    let (before, after) = (format_tokens(compaction.tokens_before), format_tokens(compaction.tokens_after));
    let summary = match &compaction.summary {
        Some(_) => "Compacted: older messages are summarized for the model",
        None if compaction.is_clear() => "Cleared: the model starts with an empty context",
        None => "Compacted: old tool output is removed for the model",
    };
    format!("{summary}, {before} → {after} tokens. `/compact undo` undoes it.")
}

/// Formats a number of tokens.
pub fn format_tokens(tokens: u64) -> String {
    match tokens {
        0..1000 => tokens.to_string(),
        1000..FEW_TOKENS => format!("{}.{}k", tokens / 1000, tokens % 1000 / 100),
        FEW_TOKENS..1_000_000 => format!("{}k", tokens / 1000),
        1_000_000..10_000_000 => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
        10_000_000.. => format!("{}M", tokens / 1_000_000),
    }
}
