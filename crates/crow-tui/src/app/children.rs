//! The sessions that the session started, each with its transcript as far as it was sent.

use std::time::{Duration, Instant};

use crow_core::SessionId;

use super::cells::{TranscriptCell, TranscriptCells};

/// Children that are kept; of more, the oldest one that has ended is forgotten.
const CHILDREN_MAX: usize = 64;

/// Bytes of sources that are kept of each.
const SOURCE_BYTES_MAX: usize = 1024 * 1024;

/// All children of the session and theirs, in the order in which they were started.
#[derive(Debug, Default)]
pub(crate) struct SessionChildren(Vec<ChildSession>);

/// One child.
#[derive(Debug)]
pub(crate) struct ChildSession {
    pub(crate) session: SessionId,
    /// The child that started it; none if the session did.
    pub(crate) parent: Option<SessionId>,
    pub(crate) title: String,
    pub(crate) is_running: bool,
    pub(crate) cells: TranscriptCells,
    started_at: Instant,
    /// The end of its last turn.
    ended_at: Option<Instant>,
}

impl SessionChildren {
    /// Returns the children as a tree: each with the lines that lead to it, before its own children.
    pub(crate) fn tree(&self) -> Vec<(String, &ChildSession)> {
        // A parent that is forgotten leaves its children at the top.
        let tops = self.0.iter().filter(|child| self.find_parent(child).is_none());
        let mut rows = Vec::new();
        self.push_branches(&mut rows, "", tops.collect());
        rows
    }

    fn push_branches<'a>(
        &'a self,
        rows: &mut Vec<(String, &'a ChildSession)>,
        lines: &str,
        children: Vec<&'a ChildSession>,
    ) {
        let n_children = children.len();
        for (index, child) in children.into_iter().enumerate() {
            let (branch, below) = if index + 1 == n_children { ("└", "  ") } else { ("├", "│ ") };
            rows.push((format!("{lines}{branch}"), child));
            let is_below = |other: &&ChildSession| {
                self.find_parent(other).is_some_and(|parent| parent.session == child.session)
            };
            self.push_branches(rows, &format!("{lines}{below}"), self.0.iter().filter(is_below).collect());
        }
    }

    /// Finds the parent of a child. It was started before, so that there is no circle.
    fn find_parent(&self, child: &ChildSession) -> Option<&ChildSession> {
        let parent = child.parent.as_ref()?;
        let earlier = self.0.iter().take_while(|other| other.session != child.session);
        earlier.into_iter().find(|other| other.session == *parent)
    }

    pub(crate) fn find(&self, session: &SessionId) -> Option<&ChildSession> {
        self.0.iter().find(|child| child.session == *session)
    }

    pub(crate) fn find_mut(&mut self, session: &SessionId) -> Option<&mut ChildSession> {
        self.0.iter_mut().find(|child| child.session == *session)
    }

    /// Adds a child of a child or of the session, or returns the one with this session.
    pub(crate) fn add(
        &mut self,
        session: SessionId,
        parent: Option<SessionId>,
        now: Instant,
    ) -> Option<&mut ChildSession> {
        if self.find(&session).is_none() {
            let oldest_ended = self.0.iter().position(|child| !child.is_running);
            if let Some(oldest) = oldest_ended.filter(|_| self.0.len() >= CHILDREN_MAX) {
                self.0.remove(oldest);
            }
            if self.0.len() >= CHILDREN_MAX {
                return None;
            }
            let title = session.to_string();
            let cells = TranscriptCells::with_limit(SOURCE_BYTES_MAX);
            self.0.push(ChildSession {
                session,
                parent,
                title,
                is_running: true,
                cells,
                started_at: now,
                ended_at: None,
            });
            return self.0.last_mut();
        }
        self.find_mut(&session)
    }
}

impl ChildSession {
    /// The child began or ended a turn.
    pub(crate) fn set_running(&mut self, is_running: bool, now: Instant) {
        if is_running && !self.is_running {
            (self.started_at, self.ended_at) = (now, None);
        }
        self.is_running = is_running;
        if !is_running {
            self.ended_at = Some(now);
            self.cells.end_stream();
            self.cells.fail_open_calls(now);
        }
    }

    /// The time of the turn.
    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        self.ended_at.unwrap_or(now).saturating_duration_since(self.started_at)
    }

    /// The last thing it did, on one line.
    pub(crate) fn last_activity(&self) -> String {
        let last = self.cells.all().iter().rev().find_map(|cell| match cell {
            TranscriptCell::Call(call) => Some(call.title.clone()),
            TranscriptCell::Text(part) => last_line(&part.source),
            TranscriptCell::Notice(text) | TranscriptCell::Problem(text) => last_line(text),
            TranscriptCell::Thought(text) => last_line(text).map(|line| format!("thinking: {line}")),
            TranscriptCell::Prompt(_) | TranscriptCell::Plan(_) | TranscriptCell::Command(_) => None,
        });
        last.unwrap_or_default()
    }
}

fn last_line(text: &str) -> Option<String> {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}
