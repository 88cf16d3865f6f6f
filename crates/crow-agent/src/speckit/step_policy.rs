//! What a step of the workflow allows and offers while it runs: where it may write, which tools the model has beside the
//! others, and what it said with them.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crow_core::{
    ContentPart, Mode, PermissionDecision, ToolAccess, ToolCall, ToolCallInfo, ToolCallStatus, ToolResult,
};
use crow_speckit::{
    BackgroundWork, ChangeWatch, ConvergenceGap, ProtectedChange, ProtectedChangeKind, SpeckitProject,
    WorkflowCommand, WriteGuard,
};
use crow_tools::Tool;

use crate::run_turn::TurnCx;
use crate::speckit::issues::IssueHome;
use crate::speckit::project_files::run_blocking;
use crate::undo::escape_path;

/// The tools that give work to child agents.
const GIVES_WORK: [&str; 2] = ["task", "task_send"];

/// One step at work.
pub(crate) struct StepPolicy {
    pub(super) command: WorkflowCommand,
    pub(super) guard: WriteGuard,
    pub(super) step_state: Arc<SharedStepState>,
    pub(super) tools: Vec<Arc<dyn Tool>>,
    /// The files that nobody may change meanwhile but the person.
    pub(super) watch: Arc<Mutex<ChangeWatch>>,
    /// Where issues are made, in the step that makes some.
    pub(super) issues: Option<IssueHome>,
}

impl StepPolicy {
    /// The tools that there are beside the others.
    pub(crate) fn step_tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }

    /// Takes from what is allowed what the step is not for.
    pub(crate) fn narrow_decision(
        &self,
        decision: PermissionDecision,
        (call, access): (&ToolCall, &ToolAccess),
    ) -> PermissionDecision {
        if let Some(reason) = self.issues.as_ref().and_then(|issue_home| issue_home.refused(call, access)) {
            return PermissionDecision::Deny(reason);
        }
        // A child would not be bound by what the step may write.
        if GIVES_WORK.contains(&call.name.as_str()) && self.command != WorkflowCommand::Implement {
            return PermissionDecision::Deny(format!(
                "{} gives no work to others; do it yourself",
                self.command
            ));
        }
        match (self.write_refusal(access), decision) {
            (Some(reason), _) => PermissionDecision::Deny(reason),
            // The person is not in a mode that they could change.
            (None, PermissionDecision::Deny(_)) if self.only_reads(access) => {
                PermissionDecision::Deny(format!("{} runs nothing but what reads", self.command))
            }
            (None, decision) => decision,
        }
    }

    /// Notes that a call begins which may change any file. What changed before it is the person's.
    pub(crate) async fn begin_call(&self, background: BackgroundWork) {
        let result = self.with_watch(move |watch| watch.begin_call(background)).await;
        if let Err(reason) = result {
            tracing::warn!(reason, "the files of the workflow could not be looked at before a call");
        }
    }

    /// Notes that such a call has ended; what it may not change is put back, and the model told.
    async fn end_call(&self, mut result: ToolResult, cx: &TurnCx<'_>) -> ToolResult {
        let (workspace, background) = (cx.workspace, cx.background_work());
        let restored = match self.with_watch(move |watch| watch.end_call(background)).await {
            Ok(restored) => restored,
            Err(reason) => {
                tracing::warn!(reason, "the files of the workflow could not be looked at after a call");
                return result;
            }
        };
        for ProtectedChange { path, is_undone, kind: change } in restored {
            let status_text = match change {
                _ if is_undone => "it is as it was before the call",
                ProtectedChangeKind::Created => "it is new and stays where it is",
                ProtectedChangeKind::Changed | ProtectedChangeKind::Removed => "it could not be put back",
            };
            let path_text = escape_path(&path.display().to_string());
            result.for_model.push(ContentPart::Text(format!(
                "({} may not change {path_text}: {status_text})",
                self.command
            )));
            if self.guard.may_write(&path).is_ok() {
                let read =
                    run_blocking(move || Ok(SpeckitProject::read_file(&path)?.map(|text| (path, text))))
                        .await;
                if let Ok(Some((path, text))) = read {
                    workspace.record_write(path, &text);
                }
            }
        }
        result
    }

    /// Does something with the watched files, off the loop.
    pub(super) async fn with_watch<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut ChangeWatch) -> T + Send + 'static,
    ) -> Result<T, String> {
        let watch = self.watch.clone();
        run_blocking(move || Ok(work(&mut watch.lock().unwrap_or_else(PoisonError::into_inner)))).await
    }

    /// Whether a call may change files: by itself, or through a child agent.
    fn may_change_files(tool: &str, access: &ToolAccess) -> bool {
        match access {
            ToolAccess::Runs(_) | ToolAccess::Calls { .. } | ToolAccess::Writes(_) => true,
            ToolAccess::Nothing
            | ToolAccess::Reads(_)
            | ToolAccess::Fetches { .. }
            | ToolAccess::Searches => GIVES_WORK.contains(&tool),
        }
    }

    fn only_reads(&self, access: &ToolAccess) -> bool {
        self.command == WorkflowCommand::Analyze
            && matches!(access, ToolAccess::Runs(_) | ToolAccess::Calls { .. })
    }

    /// The mode that a call is judged in. Who starts a step wants the files that it is for; everything else stays as it
    /// was, and analysing only reads.
    pub(crate) fn effective_mode(&self, mode: Mode, access: &ToolAccess) -> Mode {
        match (mode, access) {
            (_, access) if self.only_reads(access) => Mode::Plan,
            (Mode::Ask, ToolAccess::Writes(_)) if self.command != WorkflowCommand::Implement => {
                Mode::AcceptEdits
            }
            (mode, _) => mode,
        }
    }

    fn write_refusal(&self, access: &ToolAccess) -> Option<String> {
        let ToolAccess::Writes(paths) = access else { return None };
        paths.iter().find_map(|path| self.guard.may_write(Path::new(path)).err())
    }

    /// Tells whether the model has said what it was asked for, or waits for the person: nothing more is asked of it now.
    pub(crate) fn is_over(&self) -> bool {
        self.step_state.lock_state().is_over
    }
}

/// Has the step at work look at its files before a call that may change any.
pub(crate) async fn begin_watching<'a>(
    cx: &TurnCx<'a>,
    call: &ToolCall,
    info: &ToolCallInfo,
) -> Option<&'a StepPolicy> {
    let step_policy = cx.step_policy.filter(|_| StepPolicy::may_change_files(&call.name, &info.touch))?;
    step_policy.begin_call(cx.background_work()).await;
    Some(step_policy)
}

/// Has the step look at its files again, and put back what the call may not change.
pub(crate) async fn end_watching(
    cx: &TurnCx<'_>,
    (step_policy, call, info): (Option<&StepPolicy>, &ToolCall, &ToolCallInfo),
    result: ToolResult,
) -> ToolResult {
    match step_policy {
        Some(step_policy) => {
            if let Some(issue_home) =
                step_policy.issues.as_ref().filter(|_| result.status == ToolCallStatus::Done)
            {
                issue_home.done(call, &info.touch);
            }
            step_policy.end_call(result, cx).await
        }
        None => result,
    }
}

/// Where the tools of a step leave what the model said.
#[derive(Debug, Default)]
pub(super) struct SharedStepState(Mutex<StepState>);

#[derive(Debug, Default)]
pub(super) struct StepState {
    /// Nothing more is asked of the model in this turn.
    pub(super) is_over: bool,
    /// Questions that were asked since the step began.
    pub(super) n_questions: usize,
    /// The person ended the step.
    pub(super) has_stopped: bool,
    /// A question was shown, and its answer comes as a prompt.
    pub(super) is_waiting: bool,
    /// The task that the model works on, and what became of it.
    pub(super) task: Option<String>,
    pub(super) result: Option<StepTaskResult>,
    /// What the code lacks.
    pub(super) gaps: Option<Vec<ConvergenceGap>>,
}

/// What became of a task, as whoever did it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StepTaskResult {
    Done { note: String },
    Failed { reason: String },
}

impl SharedStepState {
    pub(super) fn lock_state(&self) -> MutexGuard<'_, StepState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out a task.
    pub(super) fn set_current_task(&self, id: &str) {
        let mut state = self.lock_state();
        state.task = Some(id.to_owned());
        state.result = None;
        state.is_over = false;
    }

    /// Lets the model be asked again.
    pub(super) fn allow_further_replies(&self) {
        let mut state = self.lock_state();
        state.is_over = false;
        state.is_waiting = false;
    }
}
