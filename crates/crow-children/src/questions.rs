//! Forwards the questions of a child to the user of the parent's client, one at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crow_acp::{
    AgentPermissionRequest, ChildPermissionRequest, ElicitationForm, ElicitationOutcome, PermissionAnswer,
};
use crow_core::{CallId, SessionUpdate, ToolCallContent, ToolCallInfo, ToolCallStatus};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::shared::ChildrenShared;
use crate::view::ChildView;

/// Time within which the cancellation of a turn may follow the end of its questions.
const STOP_WAIT_MAX: Duration = Duration::from_millis(200);

/// The call of the parent in which a child runs.
#[derive(Debug, Clone)]
pub struct ParentCall {
    pub call: CallId,
    pub info: ToolCallInfo,
    /// The final text of the call, if it does not wait for the child.
    pub shown_text: Option<String>,
}

/// Forwards the questions of one turn of a child.
pub(crate) struct QuestionForwarder {
    pub(crate) shared: Arc<ChildrenShared>,
    pub(crate) label: String,
    pub(crate) parent_call: ParentCall,
    pub(crate) view: Arc<Mutex<ChildView>>,
    pub(crate) turn_cancel: CancellationToken,
}

impl QuestionForwarder {
    /// Forwards a permission request; `None` if the turn ended first.
    pub(crate) async fn request_permission(
        &self,
        request: &AgentPermissionRequest,
    ) -> Option<PermissionAnswer> {
        let shared = &self.shared;
        // The client would take two questions within one call for one.
        let _turn_to_ask = self.turn_cancel.run_until_cancelled(shared.question_lock.lock()).await?;
        let hidden = HiddenView::new(&self.view);
        let question =
            ChildPermissionRequest { parent_call: self.parent_call.call, agent_name: &self.label, request };
        let answer =
            shared.client.request_child_permission(&shared.parent, question, &self.turn_cancel).await;
        if answer.is_none() {
            self.wait_for_cancellation().await;
        }
        drop(hidden);
        self.restore_parent_call();
        answer
    }

    /// Forwards a form, named after the child.
    pub(crate) async fn show_form(&self, form: ElicitationForm) -> ElicitationOutcome {
        let shared = &self.shared;
        let Some(_turn_to_ask) = self.turn_cancel.run_until_cancelled(shared.question_lock.lock()).await
        else {
            return ElicitationOutcome::Cancelled;
        };
        let form = ElicitationForm { message: format!("{}: {}", self.label, form.message), ..form };
        let outcome = shared.client.elicit_form(&shared.parent, &form, &self.turn_cancel).await;
        if outcome == ElicitationOutcome::Cancelled {
            self.wait_for_cancellation().await;
        }
        outcome
    }

    /// Cancelling a turn closes its questions; the child must get the cancellation before it sees that.
    async fn wait_for_cancellation(&self) {
        drop(timeout(STOP_WAIT_MAX, self.turn_cancel.cancelled()).await);
    }

    /// Shows the parent's call again, whose place a permission request takes.
    fn restore_parent_call(&self) {
        let shared = &self.shared;
        let failure = shared.failure_of_call(self.parent_call.call);
        let (status, text) = match (failure, &self.parent_call.shown_text) {
            (Some(reason), _) => (ToolCallStatus::Failed, reason),
            (None, Some(shown_text)) => (ToolCallStatus::Completed, shown_text.clone()),
            (None, None) => (ToolCallStatus::InProgress, lock_view(&self.view).render_view()),
        };
        let update = SessionUpdate::CallRestored {
            call: self.parent_call.call,
            info: self.parent_call.info.clone(),
            status,
            content: vec![ToolCallContent::Text(text)],
        };
        shared.client.send_update(&shared.parent, update);
    }
}

/// Keeps the view of a child from replacing an open question.
struct HiddenView<'a>(&'a Mutex<ChildView>);

impl<'a> HiddenView<'a> {
    fn new(view: &'a Mutex<ChildView>) -> Self {
        lock_view(view).is_hidden = true;
        Self(view)
    }
}

impl Drop for HiddenView<'_> {
    fn drop(&mut self) {
        lock_view(self.0).is_hidden = false;
    }
}

fn lock_view(view: &Mutex<ChildView>) -> MutexGuard<'_, ChildView> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}
