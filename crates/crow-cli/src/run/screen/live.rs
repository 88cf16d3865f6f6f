//! The live region of the screen: running calls, the plan, and the wait for the model.
//!
//! Knows what to show and not where.

use std::collections::{HashMap, VecDeque};

use console::truncate_str;
use crow_core::{PlanEntry, PlanStatus, ToolCallContent, ToolCallStatus};
use crow_tui::text::{fold_diff, render_diff, sanitize_text};

use crate::run::{
    plain::{PaintMode, THEME, UNWRAPPED, to_one_line},
    terminal_size::TerminalSize,
};

/// Lines of a failed call that are shown; the model gets the rest.
const FAILURE_LINES_MAX: usize = 12;

/// Cells in front of the details of a call.
const INDENT: &str = "  ";

/// Spinner frames.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

#[derive(Debug, Default)]
pub(super) struct LiveRegion {
    calls: Vec<CallLine>,
    plan: Vec<PlanEntry>,
    /// The plan as last written.
    shown_plan: Vec<PlanEntry>,
    wait: WaitState,
    frame: usize,
}

#[derive(Debug)]
struct CallLine {
    id: String,
    title: String,
    status: ToolCallStatus,
    content: Vec<ToolCallContent>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum WaitState {
    #[default]
    Idle,
    /// Not long enough to be shown.
    Starting,
    Visible,
    /// The user has cancelled the turn.
    Stopping,
}

impl LiveRegion {
    /// Adds or updates a call; returns whether the screen changes.
    pub(super) fn on_call(
        &mut self,
        id: String,
        title: Option<String>,
        status: Option<ToolCallStatus>,
        content: Option<Vec<ToolCallContent>>,
    ) -> bool {
        let index = self.calls.iter().position(|call| call.id == id);
        match (index, title) {
            (Some(index), title) => {
                let call = &mut self.calls[index];
                let is_visible = title.is_some() || status.is_some_and(|status| status != call.status);
                call.title =
                    title.map_or_else(|| std::mem::take(&mut call.title), |title| to_one_line(&title));
                call.status = status.unwrap_or(call.status);
                call.content = content.unwrap_or_else(|| std::mem::take(&mut call.content));
                is_visible
            }
            (None, Some(title)) => {
                self.stop_waiting();
                let (title, status) = (to_one_line(&title), status.unwrap_or(ToolCallStatus::Pending));
                self.calls.push(CallLine { id, title, status, content: content.unwrap_or_default() });
                true
            }
            (None, None) => false,
        }
    }

    /// Updates the plan; returns whether the screen changes.
    pub(super) fn on_plan(&mut self, plan: Vec<PlanEntry>) -> bool {
        let is_visible =
            !self.plan.is_empty() || !plan_lines(&plan, &self.shown_plan, PaintMode::Plain).is_empty();
        if is_visible {
            self.plan = plan;
        }
        is_visible
    }

    pub(super) fn start_waiting(&mut self) {
        self.wait = WaitState::Starting;
    }

    /// The turn is being cancelled, which may take a tool some time.
    pub(super) fn mark_stopping(&mut self) {
        self.wait = WaitState::Stopping;
    }

    pub(super) fn stop_waiting(&mut self) {
        self.wait = WaitState::Idle;
    }

    /// Advances the spinner; returns whether one is shown.
    pub(super) fn advance_frame(&mut self) -> bool {
        self.frame = (self.frame + 1) % FRAMES.len();
        if self.wait == WaitState::Starting {
            self.wait = WaitState::Visible;
        }
        matches!(self.wait, WaitState::Visible | WaitState::Stopping)
            || self.calls.iter().any(|call| call.status == ToolCallStatus::InProgress)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.plan.is_empty()
    }

    /// Marks calls that will not end any more as failed.
    pub(super) fn fail_open_calls(&mut self) {
        for call in &mut self.calls {
            if !has_ended(call) {
                call.status = ToolCallStatus::Failed;
            }
        }
    }

    /// Takes out what is final: the calls before the first running one, and the plan after the last.
    pub(super) fn take_settled(&mut self, paint: PaintMode, terminal: Option<TerminalSize>) -> Vec<String> {
        let n_ended = self.calls.iter().take_while(|call| has_ended(call)).count();
        let mut lines = Vec::new();
        for call in self.calls.drain(..n_ended) {
            lines.push(fit_line(call_line(&call, paint, "●"), terminal));
            let columns = terminal.map_or(UNWRAPPED, |size| size.columns.saturating_sub(INDENT.len() + 1));
            lines.extend(
                call_details(&call, paint, columns).into_iter().map(|line| format!("{INDENT}{line}")),
            );
        }
        if self.calls.is_empty() {
            lines.extend(plan_lines(&self.plan, &self.shown_plan, paint));
            if !self.plan.is_empty() {
                self.shown_plan = std::mem::take(&mut self.plan);
            }
            if n_ended > 0 && self.wait != WaitState::Stopping {
                self.start_waiting();
            }
        }
        lines
    }

    /// Renders everything open in less than a screen: lines that scroll off cannot be updated.
    pub(super) fn render_lines(&self, size: TerminalSize) -> Vec<String> {
        let paint = PaintMode::Styled;
        let calls = self.calls.iter().map(|call| call_line(call, paint, FRAMES[self.frame]));
        let mut lines: Vec<String> = calls.chain(plan_lines(&self.plan, &self.shown_plan, paint)).collect();
        let wait = match self.wait {
            WaitState::Idle | WaitState::Starting => None,
            WaitState::Visible => Some("waiting for the model"),
            WaitState::Stopping => Some("cancelling; press Ctrl-C again to exit now"),
        };
        if let Some(wait) = wait {
            let text = format!("{} {wait}", FRAMES[self.frame]);
            lines.push(paint.apply_style(THEME.secondary(), &text));
        }
        let n_rows_max = size.rows.saturating_sub(2).max(1);
        if lines.len() > n_rows_max {
            let n_hidden = lines.len() - (n_rows_max - 1);
            lines.truncate(n_rows_max - 1);
            lines.push(paint.apply_style(THEME.secondary(), &format!("… {n_hidden} more")));
        }
        lines.into_iter().map(|line| fit_line(line, Some(size))).collect()
    }
}

fn has_ended(call: &CallLine) -> bool {
    matches!(call.status, ToolCallStatus::Completed | ToolCallStatus::Failed)
}

/// Truncates a line so that it does not wrap: wrapped rows cannot be counted.
fn fit_line(line: String, terminal: Option<TerminalSize>) -> String {
    match terminal {
        Some(size) => truncate_str(&line, size.columns.saturating_sub(1), "…").into_owned(),
        None => line,
    }
}

fn call_line(call: &CallLine, paint: PaintMode, running: &str) -> String {
    let (mark, style) = match call.status {
        ToolCallStatus::Pending => ("○", THEME.secondary()),
        ToolCallStatus::InProgress => (running, THEME.warning()),
        ToolCallStatus::Completed => ("✓", THEME.success()),
        ToolCallStatus::Failed => ("✗", THEME.error()),
    };
    format!("{} {}", paint.apply_style(style, mark), call.title)
}

/// Renders the entries of a plan that changed since it was last shown, and the progress; all entries the first time.
fn plan_lines(plan: &[PlanEntry], shown_plan: &[PlanEntry], paint: PaintMode) -> Vec<String> {
    let line = |entry: &PlanEntry| {
        let (mark, style) = match entry.status {
            PlanStatus::Pending => ("☐", THEME.secondary()),
            PlanStatus::InProgress => ("▸", THEME.heading()),
            PlanStatus::Completed => ("☑", THEME.success()),
        };
        format!("{} {}", paint.apply_style(style, mark), to_one_line(&entry.text))
    };
    let mut previous: HashMap<&str, VecDeque<PlanStatus>> = HashMap::new();
    for entry in shown_plan {
        previous.entry(&entry.text).or_default().push_back(entry.status);
    }
    let is_changed = |entry: &&PlanEntry| {
        let previous_status = previous.get_mut(entry.text.as_str()).and_then(VecDeque::pop_front);
        previous_status != Some(entry.status)
    };
    let changed: Vec<&PlanEntry> = plan.iter().filter(is_changed).collect();
    let is_known = plan.iter().any(|entry| shown_plan.iter().any(|other| other.text == entry.text));
    let n_done = plan.iter().filter(|entry| entry.status == PlanStatus::Completed).count();
    let count = (is_known && !changed.is_empty()).then(|| {
        let count = format!("{n_done}/{} done", plan.len());
        paint.apply_style(THEME.secondary(), &count)
    });
    changed.into_iter().map(line).chain(count).collect()
}

/// Renders the details of a call: its changes and the reason of its failure.
fn call_details(call: &CallLine, paint: PaintMode, columns: usize) -> Vec<String> {
    let mut details = Vec::new();
    for content in &call.content {
        match content {
            ToolCallContent::Diff { path, old, new } => {
                let name = path.rsplit('/').next().unwrap_or(path);
                let rows = fold_diff(render_diff(name, old.as_deref(), new, columns, &THEME), &THEME);
                details.extend(rows.iter().map(|row| paint.paint_row(row)));
            }
            ToolCallContent::Text(text) if call.status == ToolCallStatus::Failed => {
                let text = sanitize_text(text);
                let lines: Vec<&str> = text.lines().collect();
                let n_hidden = lines.len().saturating_sub(FAILURE_LINES_MAX);
                let dim = |line: &str| paint.apply_style(THEME.secondary(), line);
                details.extend((n_hidden > 0).then(|| dim(&format!("… {n_hidden} earlier lines"))));
                details.extend(lines[n_hidden..].iter().map(|line| dim(line)));
            }
            ToolCallContent::Text(_) | ToolCallContent::Image { .. } => {}
        }
    }
    details
}
