//! Converts the entries of a plan.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the protocol's enums are open: what is new is taken for the ordinary"
)]

use agent_client_protocol as sdk;
use crow_core::{PlanEntry, PlanPriority, PlanStatus};
use sdk::v1::schema as wire;
use serde_json::Value;

use crate::v1::primitives::to_meta;

pub(super) fn to_wire_entry(entry: PlanEntry) -> wire::PlanEntry {
    let status = match entry.status {
        PlanStatus::Pending => wire::PlanEntryStatus::Pending,
        PlanStatus::InProgress => wire::PlanEntryStatus::InProgress,
        PlanStatus::Completed => wire::PlanEntryStatus::Completed,
    };
    let priority = match entry.priority {
        PlanPriority::High => wire::PlanEntryPriority::High,
        PlanPriority::Medium => wire::PlanEntryPriority::Medium,
        PlanPriority::Low => wire::PlanEntryPriority::Low,
    };
    wire::PlanEntry::new(entry.text, priority, status).meta(entry.meta.and_then(to_meta))
}

pub(super) fn from_wire_entry(entry: wire::PlanEntry) -> PlanEntry {
    let status = match entry.status {
        wire::PlanEntryStatus::InProgress => PlanStatus::InProgress,
        wire::PlanEntryStatus::Completed => PlanStatus::Completed,
        _ => PlanStatus::Pending,
    };
    let priority = match entry.priority {
        wire::PlanEntryPriority::High => PlanPriority::High,
        wire::PlanEntryPriority::Low => PlanPriority::Low,
        _ => PlanPriority::Medium,
    };
    PlanEntry { text: entry.content, status, priority, meta: entry.meta.map(Value::Object) }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    /// Encodes an entry, and decodes the result.
    #[track_caller]
    fn check_entry(step: &PlanEntry, expected: &Expect) {
        let spelled = to_wire_entry(step.clone());
        let line = serde_json::to_string(&spelled);
        expected.assert_eq(&line.unwrap_or_else(|error| error.to_string()));
        assert_eq!(&from_wire_entry(spelled), step);
    }

    #[test]
    fn plan_entry_has_its_priority() {
        let step = |priority| PlanEntry { priority, ..PlanEntry::new("look", PlanStatus::Completed) };
        check_entry(
            &step(PlanPriority::High),
            &expect![[r#"{"content":"look","priority":"high","status":"completed"}"#]],
        );
        check_entry(
            &PlanEntry::new("do", PlanStatus::InProgress),
            &expect![[r#"{"content":"do","priority":"medium","status":"in_progress"}"#]],
        );
        check_entry(
            &PlanEntry { meta: Some(json!({"speckit": {"id": "T012"}})), ..step(PlanPriority::Low) },
            &expect![[
                r#"{"content":"look","priority":"low","status":"completed","_meta":{"speckit":{"id":"T012"}}}"#
            ]],
        );
    }
}
