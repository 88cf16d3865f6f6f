//! Converts Crow's reports of finished work, with the outcome. Every client shows the text; a client that parses the
//! rest can offer the next step and report the outcome to a script.

use agent_client_protocol as sdk;
use crow_core::{MessageId, ReportOutcome, SuggestedCommand};
use sdk::v1::schema as wire;
use serde_json::json;

use crate::v1::primitives::to_meta;

const SPECKIT: &str = "speckit";
const OUTCOME: &str = "outcome";

pub(super) fn report_update(
    message: &MessageId,
    text: String,
    outcome: ReportOutcome,
    next: &[SuggestedCommand],
) -> wire::SessionUpdate {
    let mut meta = json!({ OUTCOME: outcome.as_str() });
    if !next.is_empty() {
        let next = next.iter().map(|next| json!({ "label": next.label, "command": next.command }));
        meta["handoffs"] = next.collect();
    }
    wire::SessionUpdate::AgentMessageChunk(
        wire::ContentChunk::new(text.into())
            .message_id(wire::MessageId::new(message.as_str()))
            .meta(to_meta(json!({ SPECKIT: meta }))),
    )
}

/// Parses the outcome of reported work; `None` if an update reports none.
pub(crate) fn report_outcome(update: &wire::SessionUpdate) -> Option<ReportOutcome> {
    let wire::SessionUpdate::AgentMessageChunk(chunk) = update else { return None };
    let meta = chunk.meta.as_ref()?.get(SPECKIT)?.get(OUTCOME)?;
    meta.as_str().and_then(ReportOutcome::parse)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::Value;

    use super::*;

    /// Encodes a report, and decodes its outcome.
    #[track_caller]
    fn check_report(ended: ReportOutcome, next: &[&str], expected: &Expect) {
        let next = next.iter().map(|next| SuggestedCommand { label: "go".into(), command: (*next).into() });
        let next: Vec<SuggestedCommand> = next.collect();
        let update = report_update(&MessageId::new("note-1"), "It is over.".into(), ended, &next);
        assert_eq!(report_outcome(&update), Some(ended));
        expected.assert_eq(&serde_json::to_value(&update).unwrap()["_meta"].to_string());
    }

    #[test]
    fn report_has_its_outcome_and_next_steps() {
        check_report(
            ReportOutcome::Done,
            &["speckit.plan"],
            &expect![[
                r#"{"speckit":{"outcome":"done","handoffs":[{"label":"go","command":"speckit.plan"}]}}"#
            ]],
        );
        check_report(ReportOutcome::Incomplete, &[], &expect![[r#"{"speckit":{"outcome":"left"}}"#]]);
        check_report(ReportOutcome::NotStarted, &[], &expect![[r#"{"speckit":{"outcome":"refused"}}"#]]);
    }

    #[test]
    fn invalid_outcome_is_none() {
        let chunk = |said: Value| {
            let chunk = wire::ContentChunk::new("Hi".into()).meta(to_meta(said));
            report_outcome(&wire::SessionUpdate::AgentMessageChunk(chunk))
        };
        assert_eq!(chunk(json!({})), None);
        assert_eq!(chunk(json!({ "speckit": "done" })), None);
        assert_eq!(chunk(json!({ "speckit": { "outcome": 1 } })), None);
        assert_eq!(chunk(json!({ "speckit": { "outcome": "great" } })), None);
    }
}
