//! Handles the updates and requests of a running child: they are displayed, counted, forwarded to the client of the
//! parent, or rejected. Nothing here waits: slow work is a task that ends with the turn.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crow_acp::{
    AgentPermissionRequest, AgentUpdate, ClientAccessRequest, ClientEvent, ElicitationForm,
    ElicitationOutcome, FormSubject, ParentClient, PermissionAnswer, PermissionSubject,
};
use crow_core::{SessionId, SessionUpdate};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::access::{ApprovalCache, ClientAccessDecision, decide_access, is_allowed, judge_question};
use crate::budget::BudgetSlot;
use crate::questions::{ParentCall, QuestionForwarder};
use crate::record::ChildRecorder;
use crate::shared::ChildrenShared;
use crate::view::ChildView;

/// Slots that the children of one child may hold; the root's budget allows fewer.
const SLOTS_MAX: usize = 1_000;

/// Sessions below one child that are shown; a tree of agents has a handful.
const DEEPER_MAX: usize = 1_000;

/// Requests of one child that may be open at once; agents have a handful.
pub(crate) const OPEN_REQUESTS_MAX: usize = 64;

/// An agent that continues after so many rejections does not stop on its own.
const REJECTED_MAX: u32 = 1_000;

/// Whose permissions apply to a child's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildKind {
    /// Crow with the same configuration, which has evaluated the request itself.
    Crow,
    /// Another agent.
    External,
}

/// Handles the events of one child.
pub(crate) struct ChildEventHandler {
    pub(crate) shared: Arc<ChildrenShared>,
    pub(crate) task: SessionId,
    pub(crate) label: String,
    pub(crate) parent_call: ParentCall,
    pub(crate) kind: ChildKind,
    /// True if it runs at a worker of a queue.
    pub(crate) is_farm: bool,
    /// True if it is a program on this machine.
    pub(crate) is_local: bool,
    pub(crate) cwd: PathBuf,
    pub(crate) view: Arc<Mutex<ChildView>>,
    /// Signals a change of the view.
    pub(crate) view_changed: Arc<watch::Sender<()>>,
    pub(crate) parent_client: Option<Arc<ParentClient>>,
    pub(crate) recorder: Option<ChildRecorder>,
    pub(crate) approvals: Arc<ApprovalCache>,
    /// True if it is Crow in the parent's directory or a worktree of it: grants of one apply to the other.
    pub(crate) shares_approvals: bool,
    /// The slots of the child's own children.
    pub(crate) slots: Arc<Mutex<HashMap<u64, BudgetSlot>>>,
    /// Tokens that it has reported since it was started.
    pub(crate) n_reported_tokens: u64,
    /// Tokens of this turn.
    pub(crate) n_turn_tokens: u64,
    /// The announced sessions below the child.
    pub(crate) deeper: HashSet<SessionId>,
    /// Limits the number of open requests.
    pub(crate) request_slots: Arc<Semaphore>,
    /// Number of requests rejected because too many were open.
    pub(crate) n_rejected: u32,
}

impl ChildEventHandler {
    /// Handles an update or a request of the child.
    pub(crate) fn handle_event(&mut self, event: ClientEvent, turn_cancel: &CancellationToken) {
        match event {
            ClientEvent::Update { session, update, .. } => self.handle_update(&session, &update),
            ClientEvent::RawUpdate { session, update } => {
                let session = if self.is_deeper(&session) { &session } else { &self.task };
                if self.kind == ChildKind::External || *session == self.task || self.deeper.contains(session)
                {
                    self.shared.client.send_update(session, SessionUpdate::Forwarded(update));
                }
            }
            ClientEvent::Permission { question: request, answer: reply, .. } => {
                self.handle_permission_request(request, reply, turn_cancel);
            }
            ClientEvent::Form { form, answer: reply, .. } => self.handle_form(*form, reply, turn_cancel),
            ClientEvent::AccessRequest(request) => self.handle_access_request(*request, turn_cancel),
            ClientEvent::Claim { answer: reply, .. } => self.handle_slot_request(reply),
            ClientEvent::Release { claim: slot } => drop(lock_slots(&self.slots).remove(&slot)),
        }
    }

    /// Handles an event between turns: usage and released slots are counted.
    pub(crate) fn handle_idle_event(&mut self, event: &ClientEvent) {
        match event {
            ClientEvent::Update {
                session,
                update: AgentUpdate::Usage { tokens_spent: Some(n_tokens), .. },
                ..
            } if !self.is_deeper(session) => {
                self.record_spent(*n_tokens);
            }
            ClientEvent::Release { claim: slot } => drop(lock_slots(&self.slots).remove(slot)),
            // A request dropped without an answer is rejected.
            ClientEvent::Update { .. }
            | ClientEvent::RawUpdate { .. }
            | ClientEvent::Permission { .. }
            | ClientEvent::Form { .. }
            | ClientEvent::AccessRequest(_)
            | ClientEvent::Claim { .. } => {}
        }
    }

    /// Whether the child sends more requests than can be answered and does not stop.
    pub(crate) fn is_flooded(&self) -> bool {
        self.n_rejected > REJECTED_MAX
    }

    /// Reserves capacity for one more request.
    fn try_reserve(&mut self) -> Option<OwnedSemaphorePermit> {
        let permit = self.request_slots.clone().try_acquire_owned().ok();
        self.n_rejected += u32::from(permit.is_none());
        permit
    }

    /// Whether a session is not the child's own but of a child of it. Only Crow's are told apart: its child has the
    /// session of the task.
    fn is_deeper(&self, session: &SessionId) -> bool {
        self.kind == ChildKind::Crow && *session != self.task
    }

    fn handle_update(&mut self, session: &SessionId, update: &AgentUpdate) {
        if let AgentUpdate::Child { session, .. } = update
            && self.kind == ChildKind::Crow
            && self.deeper.len() < DEEPER_MAX
        {
            self.deeper.insert(session.clone());
        }
        if self.is_deeper(session) {
            // It is shown as a session of its own. Its tokens are among those of the child.
            return;
        }
        if let AgentUpdate::Usage { tokens_spent: Some(n_tokens), .. } = update {
            self.record_spent(*n_tokens);
        }
        if let (AgentUpdate::Text(text), Some(recorder)) = (update, &mut self.recorder) {
            recorder.push_text(text);
        }
        let mut view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        if view.apply_update(update) {
            self.view_changed.send_replace(());
        }
        // A queue says that another worker begins again, or that the whole answer follows.
        if self.is_farm && matches!(update, AgentUpdate::Notice(_)) {
            view.begin_answer();
            if let Some(recorder) = &mut self.recorder {
                recorder.begin_paragraph();
            }
        }
    }

    /// Shows what the child has said to an earlier process.
    pub(crate) fn restore_text(&mut self, text: String) {
        self.view.lock().unwrap_or_else(PoisonError::into_inner).apply_update(&AgentUpdate::Text(text));
        self.view_changed.send_replace(());
    }

    /// Counts the tokens that the child reports as its total.
    pub(crate) fn record_spent(&mut self, n_tokens: u64) {
        let n_new_tokens = n_tokens.saturating_sub(self.n_reported_tokens);
        self.n_reported_tokens = self.n_reported_tokens.max(n_tokens);
        self.n_turn_tokens += n_new_tokens;
        self.shared.add_tokens(n_new_tokens);
    }

    /// Asks the user, within the parent's call.
    fn handle_permission_request(
        &mut self,
        mut request: Box<AgentPermissionRequest>,
        mut reply: oneshot::Sender<PermissionAnswer>,
        turn_cancel: &CancellationToken,
    ) {
        let Some(permit) = self.try_reserve() else { return };
        let (asker, approvals, is_local) =
            (self.question_forwarder(turn_cancel), self.approvals.clone(), self.is_local);
        let (cwd, shares_approvals) = (self.cwd.clone(), self.shares_approvals);
        match self.kind {
            ChildKind::Crow => {}
            ChildKind::External => {
                // Trust in repository content is requested by Crow only, and a grant offered by another agent has no
                // meaning here.
                request.subject = PermissionSubject::Call;
                request.offer = None;
                if let Some(known_answer) = judge_question(&self.shared, &self.cwd, self.is_local, &request) {
                    if reply.send(known_answer).is_err() {
                        tracing::debug!("a child no longer waits for its answer");
                    }
                    return;
                }
            }
        }
        let is_external = self.kind == ChildKind::External;
        tokio::spawn(async move {
            let _room = permit;
            let shared = asker.shared.clone();
            let is_granted = request
                .offer
                .as_ref()
                .is_some_and(|offer| shares_approvals && shared.session.covers_offer(offer));
            let known_answer = if is_granted { request.allow_once() } else { None };
            // In another directory the same command means something else, for the ancestors as well.
            let forwarded = AgentPermissionRequest {
                offer: request.offer.clone().filter(|_| shares_approvals),
                ..(*request).clone()
            };
            let answer = match known_answer {
                Some(reply) => Some(reply),
                None => tokio::select! {
                    biased;
                    // The child has withdrawn the request.
                    () = reply.closed() => return,
                    answered = asker.request_permission(&forwarded) => answered,
                },
            };
            // A question dropped without an answer tells the child that its turn was cancelled.
            let answer = match answer {
                // Other agents take an error for a failure of their turn.
                Some(PermissionAnswer::Unavailable { .. }) if is_external => request.reject(),
                answer => answer,
            };
            let Some(answer) = answer else { return };
            if is_local {
                approvals.remember_answer(&cwd, &request, &answer);
            }
            let grant = request.offer.as_ref().zip(request.grant_scope(&answer));
            if reply.send(answer).is_err() {
                tracing::debug!("a child no longer waits for its answer");
            }
            if let Some((offer, scope)) = grant {
                shared.remember_for_child(scope, offer, shares_approvals, &cwd).await;
            }
        });
    }

    /// Shows a form to the user, within the parent's turn.
    fn handle_form(
        &mut self,
        mut form: ElicitationForm,
        mut reply: oneshot::Sender<ElicitationOutcome>,
        turn_cancel: &CancellationToken,
    ) {
        let Some(permit) = self.try_reserve() else { return };
        if self.kind == ChildKind::External {
            // Trust in repository content is requested by Crow only.
            form.subject = FormSubject::Question;
        }
        let asker = self.question_forwarder(turn_cancel);
        tokio::spawn(async move {
            let _room = permit;
            let outcome = tokio::select! {
                biased;
                // The child has withdrawn the form.
                () = reply.closed() => return,
                outcome = asker.show_form(form) => outcome,
            };
            if reply.send(outcome).is_err() {
                tracing::debug!("a child no longer waits for its answer");
            }
        });
    }

    fn question_forwarder(&self, turn_cancel: &CancellationToken) -> QuestionForwarder {
        QuestionForwarder {
            shared: self.shared.clone(),
            label: self.label.clone(),
            parent_call: self.parent_call.clone(),
            view: self.view.clone(),
            turn_cancel: turn_cancel.clone(),
        }
    }

    fn handle_access_request(&mut self, request: ClientAccessRequest, turn_cancel: &CancellationToken) {
        let Some(parent_client) = self.parent_client.clone() else {
            return request.reject("files and terminals were not declared to this agent");
        };
        let Some(permit) = self.try_reserve() else {
            return request.reject("too many requests are open at once; wait for their answers");
        };
        let decision = match self.kind {
            ChildKind::Crow => ClientAccessDecision::Allow,
            ChildKind::External => decide_access(&self.shared, &self.cwd, &self.approvals, &request),
        };
        match decision {
            ClientAccessDecision::Allow => request.forward_to(&parent_client, permit),
            ClientAccessDecision::Deny(reason) => request.reject(&format!("not allowed: {reason}")),
            ClientAccessDecision::Ask(permission_request) => {
                let asker = self.question_forwarder(turn_cancel);
                tokio::spawn(async move {
                    match asker.request_permission(&permission_request).await {
                        // An approval for an ended turn allows nothing.
                        reply if is_allowed(reply.as_ref()) && !asker.turn_cancel.is_cancelled() => {
                            request.forward_to(&parent_client, permit);
                        }
                        Some(PermissionAnswer::Unavailable { reason }) => request.reject(&format!(
                            "not allowed: it needs permission, and the user could not be asked ({reason})"
                        )),
                        Some(PermissionAnswer::Selected(_) | PermissionAnswer::SelectedPrefix { .. }) => {
                            request.reject("not allowed: the user rejected it");
                        }
                        None => request.reject("not allowed: the question was closed without an answer"),
                    }
                });
            }
        }
    }

    /// Reports to a client that follows children whether this one is running.
    pub(crate) fn send_child_state(&self, is_working: bool) {
        let (child, cwd) = (self.task.clone(), self.cwd.display().to_string());
        let update = SessionUpdate::Child { child, title: self.label.clone(), cwd, is_running: is_working };
        self.shared.client.send_update(&self.shared.parent, update);
    }

    /// Acquires a slot for a child of the child.
    fn handle_slot_request(&mut self, reply: oneshot::Sender<Result<u64, String>>) {
        let Some(permit) = self.try_reserve() else { return };
        let (budget, slots) = (self.shared.budget.clone(), self.slots.clone());
        tokio::spawn(async move {
            let _room = permit;
            let result = match budget.acquire_slot().await {
                Ok(_) if lock_slots(&slots).len() >= SLOTS_MAX => {
                    Err("this agent holds too many child slots".to_owned())
                }
                Ok(slot) => {
                    let number = slot.slot_number();
                    lock_slots(&slots).insert(number, slot);
                    Ok(number)
                }
                Err(reason) => Err(reason),
            };
            if let Err(Ok(number)) = reply.send(result) {
                // The requester is gone.
                lock_slots(&slots).remove(&number);
            }
        });
    }
}

fn lock_slots(slots: &Mutex<HashMap<u64, BudgetSlot>>) -> MutexGuard<'_, HashMap<u64, BudgetSlot>> {
    slots.lock().unwrap_or_else(PoisonError::into_inner)
}
