//! What a step of the workflow allows and offers while it runs: where it may write, which tools the model has beside the
//! others, and what it said with them.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crow_core::{Mode, Touch, Verdict};
use crow_speckit::{Command, Gap, Guard};
use crow_tools::Tool;

/// The tools that give work to child agents.
const GIVES_WORK: [&str; 2] = ["task", "task_send"];

/// One step at work.
pub(crate) struct Scope {
    pub(super) command: Command,
    pub(super) guard: Guard,
    pub(super) desk: Arc<Desk>,
    pub(super) tools: Vec<Arc<dyn Tool>>,
}

impl Scope {
    /// The tools that there are beside the others.
    pub(crate) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }

    /// Takes from what is allowed what the step is not for.
    pub(crate) fn narrowed(&self, verdict: Verdict, (tool, touch): (&str, &Touch)) -> Verdict {
        // A child would not be bound by what the step may write.
        if GIVES_WORK.contains(&tool) && self.command != Command::Implement {
            return Verdict::Deny(format!("{} gives no work to others; do it yourself", self.command));
        }
        match (self.refused_write(touch), verdict) {
            (Some(why), _) => Verdict::Deny(why),
            // The person is not in a mode that they could change.
            (None, Verdict::Deny(_)) if self.only_reads(touch) => {
                Verdict::Deny(format!("{} runs nothing but what reads", self.command))
            }
            (None, verdict) => verdict,
        }
    }

    fn only_reads(&self, touch: &Touch) -> bool {
        self.command == Command::Analyze && matches!(touch, Touch::Runs(_) | Touch::Calls { .. })
    }

    /// The mode that a call is judged in. Who starts a step wants the files that it is for; everything else stays as it
    /// was, and analysing only reads.
    pub(crate) fn mode(&self, mode: Mode, touch: &Touch) -> Mode {
        match (mode, touch) {
            (_, touch) if self.only_reads(touch) => Mode::Plan,
            (Mode::Ask, Touch::Writes(_)) if self.command != Command::Implement => Mode::AcceptEdits,
            (mode, _) => mode,
        }
    }

    fn refused_write(&self, touch: &Touch) -> Option<String> {
        let Touch::Writes(paths) = touch else { return None };
        paths.iter().find_map(|path| self.guard.may_write(Path::new(path)).err())
    }

    /// Tells whether the model has said what it was asked for, or waits for the person: nothing more is asked of it now.
    pub(crate) fn is_over(&self) -> bool {
        self.desk.state().is_over
    }
}

/// Where the tools of a step leave what the model said.
#[derive(Debug, Default)]
pub(super) struct Desk(Mutex<DeskState>);

#[derive(Debug, Default)]
pub(super) struct DeskState {
    /// Nothing more is asked of the model in this turn.
    pub(super) is_over: bool,
    /// Questions that were asked since the step began.
    pub(super) n_asked: usize,
    /// The person ended the step.
    pub(super) has_stopped: bool,
    /// A question was shown, and its answer comes as a prompt.
    pub(super) is_waiting: bool,
    /// The task that the model works on, and what became of it.
    pub(super) task: Option<String>,
    pub(super) result: Option<TaskResult>,
    /// What the code lacks.
    pub(super) gaps: Option<Vec<Gap>>,
}

/// What became of a task, as whoever did it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TaskResult {
    Done { note: String },
    Failed { why: String },
}

impl Desk {
    pub(super) fn state(&self) -> MutexGuard<'_, DeskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out a task.
    pub(super) fn hand_out(&self, id: &str) {
        let mut state = self.state();
        state.task = Some(id.to_owned());
        state.result = None;
        state.is_over = false;
    }

    /// Lets the model be asked again.
    pub(super) fn reopen(&self) {
        let mut state = self.state();
        state.is_over = false;
        state.is_waiting = false;
    }
}
