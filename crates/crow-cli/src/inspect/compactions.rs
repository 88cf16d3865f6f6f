//! Compactions as text and JSON.

use crow_core::{CallId, Compaction};
use serde_json::{Value, json};

/// Describes a compaction on one line.
pub(super) fn describe_compaction(compaction: &Compaction) -> String {
    let Compaction { at_seq: at, keep_from, tokens_before, tokens_after, .. } = compaction;
    format!(
        "before msg-{at}, {tokens_before} to {tokens_after} tokens; the model sees msg-{keep_from} and later"
    )
}

/// JSON of a compaction.
pub(super) fn compaction_json(compaction: &Compaction) -> Value {
    json!({
        "at": compaction.at_seq,
        "keep_from": compaction.keep_from,
        "said": compaction.verbatim_prompts,
        "summary": compaction.summary,
        "pruned": compaction.pruned.iter().map(CallId::to_string).collect::<Vec<_>>(),
        "tokens_before": compaction.tokens_before,
        "tokens_after": compaction.tokens_after,
    })
}
