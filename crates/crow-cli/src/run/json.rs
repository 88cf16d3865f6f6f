//! One JSON object a line, for scripts.

use std::io::{self, Write};

use crow_acp::{Heard, StopReason};
use crow_core::{Content, Failure, PlanStatus, ReportOutcome, SessionId};
use serde_json::{Value, json};

use super::{Onward, Speaker};
use crate::money;

/// Which events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// All of them.
    Events,
    /// How each turn ended.
    Results,
}

/// Writes events as lines of JSON.
pub(super) struct JsonLines<W> {
    out: W,
    shown: Shown,
    session: String,
    /// What the model said last in the turn, which is its answer.
    text: String,
    /// How the work ended that was reported last in the turn.
    outcome: Option<ReportOutcome>,
    /// What is heard was said before.
    is_replay: bool,
}

impl<W: Write> JsonLines<W> {
    pub(super) fn new(out: W, shown: Shown) -> Self {
        Self { out, shown, session: String::new(), text: String::new(), outcome: None, is_replay: false }
    }

    fn line(&mut self, event: &Value) -> io::Result<()> {
        let is_end = event["type"] == "result" || event["type"] == "error";
        if self.shown == Shown::Results && !is_end {
            return Ok(());
        }
        let mut event = event.clone();
        if self.is_replay {
            event["replay"] = true.into();
        }
        writeln!(self.out, "{event}")?;
        self.out.flush()
    }
}

impl<W: Write + Send> Speaker for JsonLines<W> {
    fn session(&mut self, session: &SessionId) -> io::Result<()> {
        self.session = session.to_string();
        self.line(&json!({"type": "session", "session": self.session}))
    }

    fn heard(&mut self, heard: Heard) -> io::Result<()> {
        let event = match heard {
            Heard::Text(text) => {
                self.text.push_str(&text);
                json!({"type": "message", "text": text})
            }
            Heard::Thought(text) | Heard::Notice(text) | Heard::Compaction(text) => {
                json!({"type": "thought", "text": text})
            }
            Heard::Call { id, title, status, content, input, .. } => {
                if title.is_some() {
                    // What was said before a call led up to it.
                    self.text.clear();
                }
                let mut event = json!({"type": "tool_call", "id": id});
                let fields = [
                    ("title", title.map(Value::from)),
                    ("status", status.map(|status| Value::from(status.as_str()))),
                    ("input", input),
                    ("content", content.map(|content| content.iter().map(content_json).collect())),
                ];
                for (name, value) in fields.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                    event[name] = value;
                }
                event
            }
            Heard::Plan(entries) => {
                let entries = entries.iter().map(|entry| {
                    let status = match entry.status {
                        PlanStatus::Pending => "pending",
                        PlanStatus::InProgress => "in_progress",
                        PlanStatus::Completed => "completed",
                    };
                    json!({"content": entry.text, "status": status})
                });
                json!({"type": "plan", "entries": entries.collect::<Vec<_>>()})
            }
            Heard::Usage { used, size, cost, is_guess, .. } => {
                let mut event = json!({"type": "usage", "used": used, "size": size});
                if let Some(cost) = cost {
                    event["cost"] = json!({"amount": money::dollars(cost), "currency": "USD"});
                }
                if is_guess {
                    event["estimated"] = true.into();
                }
                event
            }
            Heard::Outcome(outcome) => {
                self.outcome = Some(outcome);
                return Ok(());
            }
            Heard::Prompt(text) if self.is_replay => json!({"type": "prompt", "text": text}),
            Heard::Prompt(_) | Heard::Title(_) | Heard::Mode(_) | Heard::Commands(_) => return Ok(()),
        };
        self.line(&event)
    }

    fn result(&mut self, reason: StopReason) -> io::Result<()> {
        let text = std::mem::take(&mut self.text);
        let session = &self.session;
        let mut event =
            json!({"type": "result", "session": session, "stop_reason": reason.as_str(), "text": text});
        if let Some(outcome) = self.outcome.take() {
            event["outcome"] = outcome.as_str().into();
        }
        self.line(&event)
    }

    fn error(&mut self, failure: &Failure) -> io::Result<()> {
        self.text.clear();
        self.outcome = None;
        self.line(&json!({"type": "error", "kind": failure.kind.as_str(), "message": failure.sentence}))
    }

    fn greet(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn begin(&mut self) -> io::Result<()> {
        // What was said between turns answers nobody.
        self.text.clear();
        self.outcome = None;
        Ok(())
    }

    fn beat(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn stopping(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn replay_begins(&mut self, _: usize) -> io::Result<()> {
        self.is_replay = true;
        Ok(())
    }

    fn replay_ends(&mut self) -> io::Result<()> {
        self.is_replay = false;
        self.text.clear();
        Ok(())
    }

    fn part(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn pause(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn goodbye(&mut self, _: &SessionId, _: Onward, _: Option<&str>) -> io::Result<()> {
        Ok(())
    }
}

fn content_json(content: &Content) -> Value {
    match content {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Image { mime, .. } => json!({"type": "image", "mime": mime}),
        Content::Diff { path, old, new } => json!({"type": "diff", "path": path, "old": old, "new": new}),
    }
}

#[cfg(test)]
mod tests;
