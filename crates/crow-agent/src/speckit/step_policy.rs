//! The policy of a running workflow step: where it may write, which tools the model has in addition, and what the model
//! reported with them.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crow_core::{
    ContentPart, Mode, PermissionDecision, ToolAccess, ToolCall, ToolCallInfo, ToolCallStatus, ToolResult,
};
use crow_speckit::{
    BackgroundWork, ChangeWatch, ConvergenceGap, ProtectedChange, ProtectedChangeKind, SpeckitProject,
    StepDefinition, StepWork, WriteGuard,
};
use crow_tools::{Tool, Workspace};
use futures_util::future::BoxFuture;

use crate::speckit::issues::IssueHome;
use crate::speckit::project_files::run_blocking;
use crate::turn_policy::{EndedCall, TurnPolicy};
use crate::undo::escape_path;

/// The tools that start child agents.
const GIVES_WORK: [&str; 2] = ["task", "task_send"];

/// The policy of one step.
pub(crate) struct StepPolicy {
    pub(super) definition: &'static StepDefinition,
    pub(super) guard: WriteGuard,
    pub(super) step_state: Arc<SharedStepState>,
    pub(super) tools: Vec<Arc<dyn Tool>>,
    /// Files that only the user may change during the step.
    pub(super) watch: Arc<Mutex<ChangeWatch>>,
    /// The target of issues, in the step that creates them.
    pub(super) issues: Option<IssueHome>,
}

impl StepPolicy {
    /// Captures the watched files. Earlier changes are the user's.
    pub(super) async fn begin_watching(&self, background: BackgroundWork) {
        if let Err(reason) = self.with_watch(move |watch| watch.begin_call(background)).await {
            tracing::warn!(reason, "the files of the workflow could not be read before a call");
        }
    }

    /// Restores files that a call may not change, and tells the model.
    async fn restore_files(
        &self,
        workspace: &Workspace,
        background: BackgroundWork,
        mut result: ToolResult,
    ) -> ToolResult {
        let restored = match self.with_watch(move |watch| watch.end_call(background)).await {
            Ok(restored) => restored,
            Err(reason) => {
                tracing::warn!(reason, "the files of the workflow could not be read after a call");
                return result;
            }
        };
        for ProtectedChange { path, is_undone, kind: change } in restored {
            let status_text = match change {
                _ if is_undone => "it was restored",
                ProtectedChangeKind::Created => "it is new and was kept",
                ProtectedChangeKind::Changed | ProtectedChangeKind::Removed => "it could not be restored",
            };
            let path_text = escape_path(&path.display().to_string());
            result.for_model.push(ContentPart::Text(format!(
                "({} may not change {path_text}: {status_text})",
                self.definition.command
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

    /// Runs work on the watched files on a blocking thread.
    pub(super) async fn with_watch<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut ChangeWatch) -> T + Send + 'static,
    ) -> Result<T, String> {
        let watch = self.watch.clone();
        run_blocking(move || Ok(work(&mut watch.lock().unwrap_or_else(PoisonError::into_inner)))).await
    }

    /// Whether a call may change files, directly or through a child agent.
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
        self.definition.is_read_only && matches!(access, ToolAccess::Runs(_) | ToolAccess::Calls { .. })
    }

    fn write_refusal(&self, access: &ToolAccess) -> Option<String> {
        let ToolAccess::Writes(paths) = access else { return None };
        paths.iter().find_map(|path| self.guard.may_write(Path::new(path)).err())
    }
}

impl TurnPolicy for StepPolicy {
    fn extra_tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }

    fn effective_mode(&self, mode: Mode, access: &ToolAccess) -> Mode {
        match (mode, access) {
            (_, access) if self.only_reads(access) => Mode::Plan,
            (Mode::Ask, ToolAccess::Writes(_)) if self.definition.work != StepWork::Tasks => {
                Mode::AcceptEdits
            }
            (mode, _) => mode,
        }
    }

    fn narrow_decision(
        &self,
        decision: PermissionDecision,
        call: &ToolCall,
        access: &ToolAccess,
    ) -> PermissionDecision {
        if let Some(reason) = self.issues.as_ref().and_then(|issue_home| issue_home.refused(call, access)) {
            return PermissionDecision::Deny(reason);
        }
        // The write limits of the step do not apply to a child.
        if GIVES_WORK.contains(&call.name.as_str()) && self.definition.work != StepWork::Tasks {
            return PermissionDecision::Deny(format!(
                "{} may not start child agents; do the work yourself",
                self.definition.command
            ));
        }
        match (self.write_refusal(access), decision) {
            (Some(reason), _) => PermissionDecision::Deny(reason),
            // The reason must not suggest to change the mode, which would have no effect.
            (None, PermissionDecision::Deny(_)) if self.only_reads(access) => {
                PermissionDecision::Deny(format!("{} may only read", self.definition.command))
            }
            (None, decision) => decision,
        }
    }

    fn is_over(&self) -> bool {
        self.step_state.lock_state().is_over
    }

    fn begin_call<'a>(
        &'a self,
        call: &'a ToolCall,
        info: &'a ToolCallInfo,
        background: BackgroundWork,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if Self::may_change_files(&call.name, &info.access) {
                self.begin_watching(background).await;
            }
        })
    }

    fn end_call<'a>(&'a self, ended: EndedCall<'a>, result: ToolResult) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let EndedCall { call, info, workspace, background } = ended;
            if !Self::may_change_files(&call.name, &info.access) {
                return result;
            }
            if let Some(issue_home) =
                self.issues.as_ref().filter(|_| result.status == ToolCallStatus::Completed)
            {
                issue_home.done(call, &info.access);
            }
            self.restore_files(workspace, background, result).await
        })
    }
}

/// State shared with the tools of a step.
#[derive(Debug, Default)]
pub(super) struct SharedStepState(Mutex<StepState>);

#[derive(Debug, Default)]
pub(super) struct StepState {
    /// True if no further reply is requested in this turn.
    pub(super) is_over: bool,
    /// Questions asked since the step began.
    pub(super) n_questions: usize,
    /// True if the user ended the step.
    pub(super) has_stopped: bool,
    /// True if a question was shown that the next prompt answers.
    pub(super) is_waiting: bool,
    /// The task that the model works on, and its result.
    pub(super) task: Option<String>,
    pub(super) result: Option<StepTaskResult>,
    /// The reported gaps.
    pub(super) gaps: Option<Vec<ConvergenceGap>>,
}

/// The result of a task, as reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StepTaskResult {
    Done { note: String },
    Failed { reason: String },
}

impl SharedStepState {
    pub(super) fn lock_state(&self) -> MutexGuard<'_, StepState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assigns a task.
    pub(super) fn set_current_task(&self, id: &str) {
        let mut state = self.lock_state();
        state.task = Some(id.to_owned());
        state.result = None;
        state.is_over = false;
    }

    /// Allows further requests to the model.
    pub(super) fn allow_further_replies(&self) {
        let mut state = self.lock_state();
        state.is_over = false;
        state.is_waiting = false;
    }
}
