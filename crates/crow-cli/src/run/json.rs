//! Prints events as JSON lines for scripts.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crow_acp::{AgentUpdate, PromptOutcome};
use crow_core::{
    Failure, FailureKind, PlanEntry, PlanStatus, ReportOutcome, SessionId, ToolCallContent, ToolCallStatus,
};
use serde_json::{Value, json};

use super::{
    answer_text::AnswerText,
    output::{ContinuationHint, RunOutput, SessionRetention},
};
use crate::{
    cli::{OutputFormat, RunArgs},
    failure::CliError,
    money,
};

/// Calls in progress whose titles are remembered. Agents run a handful at a time; those beyond have only the titles
/// that they send.
const TITLES_MAX: usize = 256;

/// The events to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonEventFilter {
    /// All events.
    Events,
    /// The end of each turn only.
    Results,
}

impl JsonEventFilter {
    /// Returns the events that a run prints; `None` if it prints text.
    pub(super) fn for_args(args: &RunArgs) -> Option<Self> {
        match args.output_format {
            Some(OutputFormat::StreamJson) => Some(Self::Events),
            Some(OutputFormat::Json) => Some(Self::Results),
            None => args.json.then_some(Self::Events),
            Some(OutputFormat::Text) => None,
        }
    }
}

pub(super) struct JsonLines<W> {
    out: W,
    filter: JsonEventFilter,
    session: String,
    answer: AnswerText,
    /// The outcome of the last task report in the turn.
    outcome: Option<ReportOutcome>,
    /// Titles of the calls in progress, by ID: an agent sends a title once, and each event has it.
    titles: BTreeMap<String, String>,
    /// Whether events are from before this run.
    is_replay: bool,
    has_turn_end: Arc<AtomicBool>,
}

impl<W: Write> JsonLines<W> {
    /// `has_turn_end` becomes true with the first end of a turn.
    pub(super) fn new(out: W, filter: JsonEventFilter, has_turn_end: Arc<AtomicBool>) -> Self {
        Self {
            out,
            filter,
            session: String::new(),
            answer: AnswerText::default(),
            outcome: None,
            titles: BTreeMap::new(),
            is_replay: false,
            has_turn_end,
        }
    }

    /// Returns the title of a call, and remembers it until the call has ended.
    fn call_title(
        &mut self,
        id: &str,
        title: Option<String>,
        status: Option<ToolCallStatus>,
    ) -> Option<String> {
        let title = title.or_else(|| self.titles.get(id).cloned())?;
        if matches!(status, Some(ToolCallStatus::Completed | ToolCallStatus::Failed)) {
            self.titles.remove(id);
        } else if self.titles.len() < TITLES_MAX {
            self.titles.insert(id.to_owned(), title.clone());
        }
        Some(title)
    }

    fn write_event(&mut self, event: &Value) -> io::Result<()> {
        let is_end = event["type"] == "result" || event["type"] == "error";
        if is_end {
            self.has_turn_end.store(true, Ordering::Relaxed);
        } else if self.filter == JsonEventFilter::Results {
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

impl<W: Write + Send> RunOutput for JsonLines<W> {
    fn on_session_opened(&mut self, session: &SessionId) -> io::Result<()> {
        self.session = session.to_string();
        self.write_event(&json!({"type": "session", "session": self.session}))
    }

    fn on_update(&mut self, update: AgentUpdate) -> io::Result<()> {
        self.answer.on_update(&update);
        let event = match update {
            AgentUpdate::Text(text) => json!({"type": "message", "text": text}),
            AgentUpdate::Thought(text) | AgentUpdate::Notice(text) | AgentUpdate::Compaction(text) => {
                json!({"type": "thought", "text": text})
            }
            AgentUpdate::Call { id, title, status, content, input, .. } => {
                let title = self.call_title(&id, title, status);
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
            AgentUpdate::Plan(entries) => {
                json!({"type": "plan", "entries": entries.iter().map(plan_entry_json).collect::<Vec<_>>()})
            }
            AgentUpdate::Usage { used, size, cost, is_estimate: is_guess, .. } => {
                let mut event = json!({"type": "usage", "used": used, "size": size});
                if let Some(cost) = cost {
                    event["cost"] = json!({"amount": money::to_dollars(cost), "currency": "USD"});
                }
                if is_guess {
                    event["estimated"] = true.into();
                }
                event
            }
            AgentUpdate::Outcome(outcome) => {
                self.outcome = Some(outcome);
                return Ok(());
            }
            AgentUpdate::Prompt(text) if self.is_replay => json!({"type": "prompt", "text": text}),
            AgentUpdate::Prompt(_)
            | AgentUpdate::Child { .. }
            | AgentUpdate::Title(_)
            | AgentUpdate::Mode(_)
            | AgentUpdate::Commands(_)
            | AgentUpdate::Options(_)
            | AgentUpdate::CallOutput { .. }
            | AgentUpdate::CallResult { .. }
            | AgentUpdate::CallExit { .. } => return Ok(()),
        };
        self.write_event(&event)
    }

    fn on_turn_end(&mut self, outcome: PromptOutcome) -> io::Result<()> {
        let (reason, text) = (outcome.stop_reason, self.answer.take());
        let session = &self.session;
        let mut event =
            json!({"type": "result", "session": session, "stop_reason": reason.as_str(), "text": text});
        if let Some(outcome) = self.outcome.take() {
            event["outcome"] = outcome.as_str().into();
        }
        self.write_event(&event)
    }

    fn on_turn_failed(&mut self, failure: &Failure) -> io::Result<()> {
        self.answer.clear();
        self.outcome = None;
        self.write_event(&error_event(failure.kind, &failure.message))
    }

    fn on_error(&mut self, error: &CliError) -> io::Result<()> {
        error.report(&mut io::stderr().lock());
        Ok(())
    }

    fn on_first_prompt(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn on_turn_start(&mut self) -> io::Result<()> {
        // Output between turns is not an answer.
        self.answer.clear();
        self.outcome = None;
        Ok(())
    }

    fn on_stopping(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn on_replay_start(&mut self, _: usize) -> io::Result<()> {
        self.is_replay = true;
        Ok(())
    }

    fn on_replay_end(&mut self) -> io::Result<()> {
        self.is_replay = false;
        self.answer.clear();
        Ok(())
    }

    fn on_new_message(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn prepare_for_input(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn on_session_end(
        &mut self,
        _: &SessionId,
        _: SessionRetention,
        _: ContinuationHint<'_>,
    ) -> io::Result<()> {
        Ok(())
    }
}

/// Prints the error that ended a run before its first turn.
pub(super) fn write_early_error(out: &mut impl Write, error: &CliError) -> io::Result<()> {
    let Some(message) = error.message() else { return Ok(()) };
    writeln!(out, "{}", error_event(error.kind(), message))
}

fn error_event(kind: FailureKind, message: &str) -> Value {
    json!({"type": "error", "kind": kind.as_str(), "message": message})
}

fn plan_entry_json(entry: &PlanEntry) -> Value {
    let status = match entry.status {
        PlanStatus::Pending => "pending",
        PlanStatus::InProgress => "in_progress",
        PlanStatus::Completed => "completed",
    };
    json!({"content": entry.text, "status": status})
}

fn content_json(content: &ToolCallContent) -> Value {
    match content {
        ToolCallContent::Text(text) => json!({"type": "text", "text": text}),
        ToolCallContent::Image { mime, .. } => json!({"type": "image", "mime": mime}),
        ToolCallContent::Diff { path, old, new } => {
            json!({"type": "diff", "path": path, "old": old, "new": new})
        }
    }
}

#[cfg(test)]
mod tests;
