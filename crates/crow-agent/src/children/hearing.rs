//! What is done with what a child says and asks while it works: it is seen, counted, passed on to the client of its
//! parent, or refused. Nothing here waits: whoever takes time is a task that ends with the round.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crow_acp::{
    AgentPermissionRequest, AgentUpdate, ClientAccessRequest, ClientEvent, ParentClient, PermissionAnswer,
    PermissionSubject,
};
use crow_core::{CallId, SessionId, SessionUpdate, ToolCallContent, ToolCallInfo, ToolCallStatus, ToolKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::children::ChildrenShared;
use crate::children::book::BudgetSlot;
use crate::children::permit::{ApprovalCache, ClientAccessDecision, decide_access, is_allowed};
use crate::children::record::ChildRecorder;
use crate::children::view::ChildView;

/// Places that the children of one child may hold; the root's book allows fewer.
const SEATS_MAX: usize = 1_000;

/// Questions and wishes of one child that may be open at once; agents have a handful.
pub(super) const OPEN_MAX: usize = 64;

/// An agent that goes on after so many refusals does not stop by itself.
const REFUSED_MAX: u32 = 1_000;

/// How long word of a stopped turn may come after the end of its questions.
const STOP_WAIT_MAX: Duration = Duration::from_millis(200);

/// Whose rules a child's wishes are judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildKind {
    /// It is Crow with this very configuration, and has judged them itself.
    Itself,
    /// It is an agent of others.
    Nobody,
}

/// The call of the parent that a child stands in.
#[derive(Debug, Clone)]
pub(crate) struct ParentCall {
    pub(crate) call: CallId,
    pub(crate) facets: ToolCallInfo,
    /// What the call shows for good, when it does not wait for the child.
    pub(crate) shows: Option<String>,
}

/// An ear for one child.
pub(super) struct ChildEventHandler {
    pub(super) family: Arc<ChildrenShared>,
    pub(super) task: SessionId,
    pub(super) who: String,
    pub(super) spot: ParentCall,
    pub(super) trusted: ChildKind,
    /// It is a program of this machine.
    pub(super) is_near: bool,
    pub(super) cwd: PathBuf,
    pub(super) view: Arc<Mutex<ChildView>>,
    /// Rings when there is something else to see.
    pub(super) seen: Arc<watch::Sender<()>>,
    pub(super) upstream: Option<Arc<ParentClient>>,
    pub(super) record: Option<ChildRecorder>,
    pub(super) approved: Arc<ApprovalCache>,
    /// It is Crow in the parent's folder or a worktree of it: what is allowed to one is allowed to the other.
    pub(super) shares_approvals: bool,
    /// Places of the children of the child.
    pub(super) seats: Arc<Mutex<HashMap<u64, BudgetSlot>>>,
    /// What it has cost since it was started, as it says itself.
    pub(super) n_told: u64,
    /// Of that, in this round.
    pub(super) n_round: u64,
    /// Questions and wishes that may be open at once.
    pub(super) open: Arc<Semaphore>,
    /// What was refused because too much was open.
    pub(super) n_refused: u32,
}

impl ChildEventHandler {
    /// Takes what the child said or asked.
    pub(super) fn handle_event(&mut self, event: ClientEvent, round: &CancellationToken) {
        match event {
            ClientEvent::Heard { heard, .. } => self.handle_update(&heard),
            ClientEvent::Said(said) => {
                self.family.client.send_update(&self.task, SessionUpdate::Passed(said));
            }
            ClientEvent::Permission { question, answer, .. } => {
                self.handle_permission_request(question, answer, round);
            }
            // A child is not told of forms; one that asks all the same finds them closed.
            ClientEvent::Form { .. } => {}
            ClientEvent::Wanted(wanted) => self.handle_access_request(*wanted, round),
            ClientEvent::Claim { answer, .. } => self.handle_slot_request(answer),
            ClientEvent::Released { claim } => drop(lock_slots(&self.seats).remove(&claim)),
        }
    }

    /// Takes what the child says between rounds: it keeps its lists up to date, gives places back and counts tokens.
    pub(super) fn handle_idle_event(&mut self, event: &ClientEvent) {
        match event {
            ClientEvent::Heard { heard: AgentUpdate::Usage { spent: Some(n_tokens), .. }, .. } => {
                self.record_spent(*n_tokens);
            }
            ClientEvent::Released { claim } => drop(lock_slots(&self.seats).remove(claim)),
            // What is dropped unanswered is refused.
            ClientEvent::Heard { .. }
            | ClientEvent::Said(_)
            | ClientEvent::Permission { .. }
            | ClientEvent::Form { .. }
            | ClientEvent::Wanted(_)
            | ClientEvent::Claim { .. } => {}
        }
    }

    /// Tells whether the child asks for more than can be answered, and does not stop.
    pub(super) fn is_flooded(&self) -> bool {
        self.n_refused > REFUSED_MAX
    }

    /// Finds room for one more question or wish.
    fn try_reserve(&mut self) -> Option<OwnedSemaphorePermit> {
        let room = self.open.clone().try_acquire_owned().ok();
        self.n_refused += u32::from(room.is_none());
        room
    }

    fn handle_update(&mut self, heard: &AgentUpdate) {
        if let AgentUpdate::Usage { spent: Some(n_tokens), .. } = heard {
            self.record_spent(*n_tokens);
        }
        if let (AgentUpdate::Text(text), Some(record)) = (heard, &mut self.record) {
            record.push_text(text);
        }
        if self.view.lock().unwrap_or_else(PoisonError::into_inner).apply_update(heard) {
            self.seen.send_replace(());
        }
    }

    /// Counts what the child says it has cost so far.
    pub(super) fn record_spent(&mut self, n_tokens: u64) {
        let n_more = n_tokens.saturating_sub(self.n_told);
        self.n_told = self.n_told.max(n_tokens);
        self.n_round += n_more;
        self.family.add_tokens(n_more);
    }

    /// Asks the person, in the place of the parent's call.
    fn handle_permission_request(
        &mut self,
        mut question: Box<AgentPermissionRequest>,
        mut answer: oneshot::Sender<PermissionAnswer>,
        round: &CancellationToken,
    ) {
        let Some(room) = self.try_reserve() else { return };
        let (asker, approved, is_near) = (self.permission_asker(round), self.approved.clone(), self.is_near);
        let (cwd, shares) = (self.cwd.clone(), self.shares_approvals);
        match self.trusted {
            ChildKind::Itself => {}
            ChildKind::Nobody => {
                // What a repository supplies is asked about by Crow alone, and what it may remember is its own word.
                question.subject = PermissionSubject::Call;
                question.offer = None;
                if question.kind == ToolKind::Other {
                    // Many agents say it only when they announce the call.
                    let view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
                    question.kind = view.kind(&question.call).unwrap_or(question.kind);
                }
            }
        }
        tokio::spawn(async move {
            let _room = room;
            let family = asker.family.clone();
            let is_covered =
                question.offer.as_ref().is_some_and(|offer| shares && family.approvals.covers_offer(offer));
            let known = if is_covered { question.allow_once() } else { None };
            // Elsewhere the same words mean something else, further up as well.
            let asked = AgentPermissionRequest {
                offer: question.offer.clone().filter(|_| shares),
                ..(*question).clone()
            };
            let answered = match known {
                Some(answer) => Some(answer),
                None => tokio::select! {
                    biased;
                    // The child has taken it back.
                    () = answer.closed() => return,
                    answered = asker.ask_user(&asked) => answered,
                },
            };
            // Without an answer the question is dropped, which the child hears as a turn that was stopped.
            let Some(answered) = answered else { return };
            if is_near {
                approved.remember_answer(&question, &answered);
            }
            let remembered = question.offer.as_ref().zip(question.grant_scope(&answered));
            if answer.send(answered).is_err() {
                tracing::debug!("a child no longer waits for its answer");
            }
            if let Some((offer, lasting)) = remembered {
                family.remember_for_child(lasting, offer, shares, &cwd).await;
            }
        });
    }

    fn permission_asker(&self, round: &CancellationToken) -> PermissionAsker {
        PermissionAsker {
            family: self.family.clone(),
            who: self.who.clone(),
            spot: self.spot.clone(),
            view: self.view.clone(),
            round: round.clone(),
        }
    }

    fn handle_access_request(&mut self, wanted: ClientAccessRequest, round: &CancellationToken) {
        let Some(upstream) = self.upstream.clone() else {
            return wanted.reject("this agent was told that there are no files and terminals for it here");
        };
        let Some(room) = self.try_reserve() else {
            return wanted.reject("too many requests are open at once; wait for their answers");
        };
        let permit = match self.trusted {
            ChildKind::Itself => ClientAccessDecision::Yes,
            ChildKind::Nobody => decide_access(&self.family, &self.cwd, &self.approved, &wanted),
        };
        match permit {
            ClientAccessDecision::Yes => wanted.forward_to(&upstream, room),
            ClientAccessDecision::No(why) => wanted.reject(&format!("not allowed: {why}")),
            ClientAccessDecision::Ask(question) => {
                let asker = self.permission_asker(round);
                tokio::spawn(async move {
                    match asker.ask_user(&question).await {
                        // A yes for a round that is over allows nothing any longer.
                        answer if is_allowed(answer.as_ref()) && !asker.round.is_cancelled() => {
                            wanted.forward_to(&upstream, room);
                        }
                        Some(PermissionAnswer::Nobody { why }) => wanted.reject(&format!(
                            "not allowed: it needs permission and nobody could be asked ({why})"
                        )),
                        Some(PermissionAnswer::Chosen(_)) => {
                            wanted.reject("not allowed: the person refused it");
                        }
                        None => wanted.reject("not allowed: the question was closed without an answer"),
                    }
                });
            }
        }
    }

    /// Tells a client that follows children whether this one is at work.
    pub(super) fn send_child_state(&self, is_working: bool) {
        let (child, cwd) = (self.task.clone(), self.cwd.display().to_string());
        let update = SessionUpdate::Child { child, title: self.who.clone(), cwd, is_working };
        self.family.client.send_update(&self.family.parent, update);
    }

    /// Finds a place for a child of the child.
    fn handle_slot_request(&mut self, answer: oneshot::Sender<Result<u64, String>>) {
        let Some(room) = self.try_reserve() else { return };
        let (book, held) = (self.family.book.clone(), self.seats.clone());
        tokio::spawn(async move {
            let _room = room;
            let claimed = match book.acquire_slot().await {
                Ok(_) if lock_slots(&held).len() >= SEATS_MAX => {
                    Err("this agent holds more places than anybody needs".to_owned())
                }
                Ok(seat) => {
                    let number = seat.slot_number();
                    lock_slots(&held).insert(number, seat);
                    Ok(number)
                }
                Err(why) => Err(why),
            };
            if let Err(Ok(number)) = answer.send(claimed) {
                // Whoever wanted it is gone.
                lock_slots(&held).remove(&number);
            }
        });
    }
}

fn lock_slots(held: &Mutex<HashMap<u64, BudgetSlot>>) -> MutexGuard<'_, HashMap<u64, BudgetSlot>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts questions of a child to the person.
struct PermissionAsker {
    family: Arc<ChildrenShared>,
    who: String,
    spot: ParentCall,
    view: Arc<Mutex<ChildView>>,
    round: CancellationToken,
}

impl PermissionAsker {
    /// Asks; nothing when the round ended first.
    async fn ask_user(&self, question: &AgentPermissionRequest) -> Option<PermissionAnswer> {
        let family = &self.family;
        // Two questions in the place of one call would be taken for one.
        let _turn_to_ask = self.round.run_until_cancelled(family.asking.lock()).await?;
        let spot = (self.spot.call, self.who.as_str());
        let answered =
            family.client.request_child_permission(&family.parent, spot, question, &self.round).await;
        if answered.is_none() {
            // Whoever stops a turn closes its questions; that must not reach the child before it hears of the stop.
            drop(timeout(STOP_WAIT_MAX, self.round.cancelled()).await);
        }
        let (status, shown) = match &self.spot.shows {
            Some(shows) => (ToolCallStatus::Done, shows.clone()),
            None => (
                ToolCallStatus::Running,
                self.view.lock().unwrap_or_else(PoisonError::into_inner).render_view(),
            ),
        };
        let again = SessionUpdate::CallAgain {
            call: self.spot.call,
            facets: self.spot.facets.clone(),
            status,
            content: vec![ToolCallContent::Text(shown)],
        };
        family.client.send_update(&family.parent, again);
        answered
    }
}
