//! The report to the parent about a turn that ended: outcome, answer, changed files, cost, and where to read the rest.
//! Text in, text out.

use crow_core::SessionId;
use crow_store::TaskState;
use crow_tools::SettledWorktree;

use crate::view::{ChangedFiles, ChildView};

/// Length of the answer in a report; the child's session has all of it.
const ANSWER_CHARS_MAX: usize = 24_000;

/// Length of the part from its beginning.
const ANSWER_HEAD_CHARS: usize = 6_000;

/// Files listed by name.
const FILES_NAMED_MAX: usize = 50;

/// Whether a task can go on after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskContinuation {
    Possible,
    /// It ran on another machine, where nothing of it is left.
    OneTurn,
    /// Its agent never opened a session.
    NoSession,
}

/// Facts about a turn that ended.
pub(crate) struct ChildTurnSummary<'a> {
    pub(crate) task: &'a SessionId,
    pub(crate) label: &'a str,
    pub(crate) state: TaskState,
    /// The error.
    pub(crate) reason: Option<&'a str>,
    pub(crate) n_tokens: Option<u64>,
    /// The description of its own worktree.
    pub(crate) worktree: Option<&'a str>,
    pub(crate) continuation: TaskContinuation,
}

/// Renders the report on a turn.
pub(crate) fn render_report(summary: &ChildTurnSummary<'_>, view: &ChildView) -> String {
    let state = match summary.state {
        TaskState::Running => "is running",
        TaskState::Completed => "is done",
        TaskState::Failed => "failed",
        TaskState::Cancelled => "was cancelled",
        TaskState::Lost => "was lost",
    };
    let mut text = format!("Task {} ({}) {state}", summary.task, summary.label);
    match summary.reason {
        Some(reason) => text.push_str(&format!(": {}\n", reason.trim_end())),
        None => text.push_str(".\n"),
    }
    let (answer, is_truncated) = view.answer();
    if answer.is_empty() {
        text.push_str("\nIt said nothing.\n");
    } else {
        text.push_str(&format!("\n{}\n", shorten_answer(answer, is_truncated)));
    }
    match summary.worktree {
        Some(worktree) => text.push_str(&format!("\n{}\n", worktree.trim_end())),
        None => push_changes(&mut text, view.changed_files()),
    }
    if let Some(n_tokens) = summary.n_tokens.filter(|n_tokens| *n_tokens > 0) {
        text.push_str(&format!("\nIt used {n_tokens} tokens.\n"));
    }
    let task = summary.task;
    text.push_str(&match summary.continuation {
        TaskContinuation::Possible => {
            format!("\nThe whole of it: query_session with session_id {task}. To go on with it: task_send.\n")
        }
        TaskContinuation::OneTurn => format!(
            "\nThe whole of it: query_session with session_id {task}. It has one turn; for more start a new task.\n"
        ),
        TaskContinuation::NoSession => {
            "\nIts agent opened no session, so it cannot go on; start a new task.\n".to_owned()
        }
    });
    text
}

/// Describes the changes in a worktree.
pub(crate) fn describe_worktree(n_uncommitted: usize, settled: &SettledWorktree) -> String {
    let mut text = match &settled.branch {
        None if settled.ignored.is_some() => {
            "It worked in a git worktree of its own and changed nothing but ignored files.\n".to_owned()
        }
        None => "It worked in a git worktree of its own and changed nothing.\n".to_owned(),
        Some(branch) => format!(
            "Its work is on the branch {branch}: look at it with `git diff HEAD...{branch}`, take it over with `git merge \
             {branch}`.\n{}",
            settled.stat
        ),
    };
    if n_uncommitted > 0 {
        text.push_str(&format!(
            "\nIt began from the last commit: {n_uncommitted} changed files that are not committed were not there.\n"
        ));
    }
    if let Some(leftover) = &settled.leftover {
        text.push_str(&format!("\nWhat is left: {leftover}\n"));
    }
    if let Some(ignored) = &settled.ignored {
        text.push_str(&format!("\n{ignored}\n"));
    }
    text
}

/// Describes why the changes in a worktree on another machine are not here.
pub(crate) fn describe_lost_worktree(reason: &str) -> String {
    format!("It worked in a git worktree on another machine, and its changes did not come back: {reason}\n")
}

fn shorten_answer(answer: &str, is_truncated: bool) -> String {
    let n_chars = answer.chars().count();
    if n_chars <= ANSWER_CHARS_MAX {
        return if is_truncated { format!("[…]\n{answer}") } else { answer.to_owned() };
    }
    let head: String = answer.chars().take(ANSWER_HEAD_CHARS).collect();
    let n_omitted = n_chars - ANSWER_CHARS_MAX;
    let tail: String = answer.chars().skip(ANSWER_HEAD_CHARS + n_omitted).collect();
    format!("{head}\n[… {n_omitted} characters are left out here …]\n{tail}")
}

fn push_changes(text: &mut String, ChangedFiles { files, n_uncounted }: ChangedFiles) {
    if files.is_empty() && n_uncounted == 0 {
        return;
    }
    let n_added: usize = files.iter().map(|file| file.n_added).sum();
    let n_removed: usize = files.iter().map(|file| file.n_removed).sum();
    let plural = if files.len() == 1 { "" } else { "s" };
    text.push_str(&format!(
        "\nIt changed {} file{plural} with its tools (+{n_added} -{n_removed}):\n",
        files.len()
    ));
    for file in files.iter().take(FILES_NAMED_MAX) {
        text.push_str(&format!("  {} (+{} -{})\n", file.path, file.n_added, file.n_removed));
    }
    let n_more = files.len().saturating_sub(FILES_NAMED_MAX) + n_uncounted;
    if n_more > 0 {
        text.push_str(&format!("  and {n_more} more\n"));
    }
}

/// The result of a call that started a task and does not wait for its end.
pub(crate) fn task_started_text(task: &SessionId) -> String {
    format!(
        "Task {task} has begun. Its end comes to you as a message; do something else meanwhile, or end your turn. To \
         look at it: task_read. To stop it: task_cancel.\n"
    )
}

/// The result of a call that resumed a task and does not wait for its end.
pub(crate) fn task_resumed_text(task: &SessionId) -> String {
    format!("Task {task} goes on. Its end comes to you as a message.\n")
}

#[cfg(test)]
mod tests;
