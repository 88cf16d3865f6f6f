//! Detects a model that ends its turn with an announcement instead of the call: some end with "Next, I'll run the tests"
//! while steps of their plan are open.

#[cfg(test)]
mod tests;

use crate::{PlanStatus, TranscriptEntry};

/// Beginnings of what a model announces, in lower case. Other languages are not recognized, so the turn just ends.
const ANNOUNCEMENTS: [&str; 11] = [
    "i'll ",
    "i\u{2019}ll ",
    "i will ",
    "let me ",
    "i'm going to ",
    "i\u{2019}m going to ",
    "i am going to ",
    "now i ",
    "next i ",
    "next, ",
    "let's ",
];

/// Whether the conversation ends with a reply that announces work, while the plan of this turn has open steps.
pub fn ends_with_announcement(entries: &[TranscriptEntry]) -> bool {
    let Some((TranscriptEntry::Reply(reply), before)) = entries.split_last() else { return false };
    reply.calls.is_empty() && has_open_steps(before) && announces_work(&reply.text)
}

/// Whether the last plan since the user's prompt has steps that are not completed.
fn has_open_steps(entries: &[TranscriptEntry]) -> bool {
    for entry in entries.iter().rev() {
        match entry {
            TranscriptEntry::Prompt(prompt) if prompt.has_user_content() => return false,
            TranscriptEntry::Result { result, .. } => {
                if let Some(plan) = &result.plan {
                    return plan.iter().any(|entry| entry.status != PlanStatus::Completed);
                }
            }
            TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => {}
        }
    }
    false
}

/// Whether the last sentence of a text says what comes next. A question waits for its answer.
fn announces_work(text: &str) -> bool {
    let text = text.trim();
    if text.ends_with('?') {
        return false;
    }
    if text.ends_with(':') {
        return true;
    }
    let mut sentences = text.split_inclusive(['.', '!', '?', '\n']).map(str::trim);
    let last = sentences.rfind(|sentence| !sentence.is_empty()).unwrap_or_default().to_lowercase();
    ANNOUNCEMENTS.iter().any(|start| last.starts_with(start) || last.contains(&format!(" {start}")))
}
