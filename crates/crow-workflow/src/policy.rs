//! The policy of a running workflow step: where it may write, which tools the model has in addition, and what the model
//! reported with them.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crow_core::{
    ContentPart, Mode, PermissionDecision, ToolAccess, ToolCall, ToolCallInfo, ToolCallStatus, ToolResult,
    escape_hidden,
};
use crow_speckit::{
    BackgroundWork, ChangeWatch, ProtectedChange, ProtectedChangeKind, SpeckitProject, StepDefinition,
    StepWork, WriteGuard,
};
use crow_tools::{Tool, Workspace};

use crate::blocking::run_blocking;
use crate::issues::IssueTarget;
use crate::step_state::SharedStepState;

/// The tools that start child agents.
const GIVES_WORK: [&str; 2] = ["task", "task_send"];

/// The policy of one step, in addition to that of the session.
pub struct StepPolicy {
    pub(crate) definition: &'static StepDefinition,
    pub(crate) guard: WriteGuard,
    pub(crate) step_state: Arc<SharedStepState>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// Files that only the user may change during the step.
    pub(crate) watch: Arc<Mutex<ChangeWatch>>,
    /// The target of issues, in the step that creates them.
    pub(crate) issues: Option<IssueTarget>,
}

impl StepPolicy {
    /// Captures the watched files. Earlier changes are the user's.
    pub(crate) async fn begin_watching(&self, background: BackgroundWork) {
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
            let path_text = escape_hidden(&path.display().to_string());
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
    pub(crate) async fn with_watch<T: Send + 'static>(
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

impl StepPolicy {
    /// Returns the additional tools.
    pub fn extra_tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }

    /// Returns the mode in which a call is evaluated.
    pub fn effective_mode(&self, mode: Mode, access: &ToolAccess) -> Mode {
        match (mode, access) {
            (_, access) if self.only_reads(access) => Mode::Plan,
            (Mode::Ask, ToolAccess::Writes(_)) if self.definition.work != StepWork::Tasks => {
                Mode::AcceptEdits
            }
            (mode, _) => mode,
        }
    }

    /// Restricts a permission decision to what the step is for.
    pub fn narrow_decision(
        &self,
        decision: PermissionDecision,
        call: &ToolCall,
        access: &ToolAccess,
    ) -> PermissionDecision {
        if let Some(reason) = self.issues.as_ref().and_then(|issue_target| issue_target.denial(call, access))
        {
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

    /// Whether the step has ended, and with it the turn.
    pub fn is_over(&self) -> bool {
        self.step_state.lock_state().is_over
    }

    /// Starts to watch the files of the step while a call runs that may change them. Earlier changes are the user's.
    pub async fn begin_call(&self, call: &ToolCall, info: &ToolCallInfo, background: BackgroundWork) {
        if Self::may_change_files(&call.name, &info.access) {
            self.begin_watching(background).await;
        }
    }

    /// Ends a call: restores files that it may not change, and tells the model.
    pub async fn end_call(&self, ended: EndedCall<'_>, result: ToolResult) -> ToolResult {
        let EndedCall { call, info, workspace, background } = ended;
        if !Self::may_change_files(&call.name, &info.access) {
            return result;
        }
        if let Some(issue_target) =
            self.issues.as_ref().filter(|_| result.status == ToolCallStatus::Completed)
        {
            issue_target.record_created(call, &info.access);
        }
        self.restore_files(workspace, background, result).await
    }
}

/// A call that has ended, with the state in which it ended.
#[derive(Debug, Clone, Copy)]
pub struct EndedCall<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// Its info.
    pub info: &'a ToolCallInfo,
    /// The workspace that it ran in.
    pub workspace: &'a Workspace,
    /// Whether other work was running.
    pub background: BackgroundWork,
}
