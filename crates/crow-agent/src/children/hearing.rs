//! What is done with what a child says and asks while it works: it is seen, counted, passed on to the client of its
//! parent, or refused. Nothing here waits: whoever takes time is a task that ends with the round.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crow_acp::{ClientEvent, Heard, PermissionAnswer, PermissionQuestion, Subject, Upstream, Wanted};
use crow_core::{CallId, Content, Facets, SessionId, Status, ToolKind, Update};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::children::Family;
use crate::children::book::Seat;
use crate::children::permit::{ApprovalCache, Permit, is_yes, permit};
use crate::children::record::Record;
use crate::children::view::View;

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
pub(super) enum Trusted {
    /// It is Crow with this very configuration, and has judged them itself.
    Itself,
    /// It is an agent of others.
    Nobody,
}

/// The call of the parent that a child stands in.
#[derive(Debug, Clone)]
pub(crate) struct Spot {
    pub(crate) call: CallId,
    pub(crate) facets: Facets,
    /// What the call shows for good, when it does not wait for the child.
    pub(crate) shows: Option<String>,
}

/// An ear for one child.
pub(super) struct Hearing {
    pub(super) family: Arc<Family>,
    pub(super) task: SessionId,
    pub(super) who: String,
    pub(super) spot: Spot,
    pub(super) trusted: Trusted,
    /// It is a program of this machine.
    pub(super) is_near: bool,
    pub(super) cwd: PathBuf,
    pub(super) view: Arc<Mutex<View>>,
    /// Rings when there is something else to see.
    pub(super) seen: Arc<watch::Sender<()>>,
    pub(super) upstream: Option<Arc<Upstream>>,
    pub(super) record: Option<Record>,
    pub(super) approved: Arc<ApprovalCache>,
    /// It is Crow in the parent's folder or a worktree of it: what is allowed to one is allowed to the other.
    pub(super) shares_approvals: bool,
    /// Places of the children of the child.
    pub(super) seats: Arc<Mutex<HashMap<u64, Seat>>>,
    /// What it has cost since it was started, as it says itself.
    pub(super) n_told: u64,
    /// Of that, in this round.
    pub(super) n_round: u64,
    /// Questions and wishes that may be open at once.
    pub(super) open: Arc<Semaphore>,
    /// What was refused because too much was open.
    pub(super) n_refused: u32,
}

impl Hearing {
    /// Takes what the child said or asked.
    pub(super) fn hear(&mut self, event: ClientEvent, round: &CancellationToken) {
        match event {
            ClientEvent::Heard { heard, .. } => self.heard(&heard),
            ClientEvent::Said(said) => self.family.client.tell(&self.task, Update::Passed(said)),
            ClientEvent::Permission { question, answer, .. } => self.asks(question, answer, round),
            // A child is not told of forms; one that asks all the same finds them closed.
            ClientEvent::Form { .. } => {}
            ClientEvent::Wanted(wanted) => self.wants(*wanted, round),
            ClientEvent::Claim { answer, .. } => self.claims(answer),
            ClientEvent::Released { claim } => drop(seats(&self.seats).remove(&claim)),
        }
    }

    /// Takes what the child says between rounds: it keeps its lists up to date, gives places back and counts tokens.
    pub(super) fn hear_between(&mut self, event: &ClientEvent) {
        match event {
            ClientEvent::Heard { heard: Heard::Usage { spent: Some(n_tokens), .. }, .. } => {
                self.spent(*n_tokens);
            }
            ClientEvent::Released { claim } => drop(seats(&self.seats).remove(claim)),
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
    fn room(&mut self) -> Option<OwnedSemaphorePermit> {
        let room = self.open.clone().try_acquire_owned().ok();
        self.n_refused += u32::from(room.is_none());
        room
    }

    fn heard(&mut self, heard: &Heard) {
        if let Heard::Usage { spent: Some(n_tokens), .. } = heard {
            self.spent(*n_tokens);
        }
        if let (Heard::Text(text), Some(record)) = (heard, &mut self.record) {
            record.says(text);
        }
        if self.view.lock().unwrap_or_else(PoisonError::into_inner).heard(heard) {
            self.seen.send_replace(());
        }
    }

    /// Counts what the child says it has cost so far.
    pub(super) fn spent(&mut self, n_tokens: u64) {
        let n_more = n_tokens.saturating_sub(self.n_told);
        self.n_told = self.n_told.max(n_tokens);
        self.n_round += n_more;
        self.family.spend(n_more);
    }

    /// Asks the person, in the place of the parent's call.
    fn asks(
        &mut self,
        mut question: Box<PermissionQuestion>,
        mut answer: oneshot::Sender<PermissionAnswer>,
        round: &CancellationToken,
    ) {
        let Some(room) = self.room() else { return };
        let (asker, approved, is_near) = (self.asker(round), self.approved.clone(), self.is_near);
        let (cwd, shares) = (self.cwd.clone(), self.shares_approvals);
        match self.trusted {
            Trusted::Itself => {}
            Trusted::Nobody => {
                // What a repository supplies is asked about by Crow alone, and what it may remember is its own word.
                question.subject = Subject::Call;
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
                question.offer.as_ref().is_some_and(|offer| shares && family.approvals.cover(offer));
            let known = if is_covered { question.allow_once() } else { None };
            // Elsewhere the same words mean something else, further up as well.
            let asked = PermissionQuestion {
                offer: question.offer.clone().filter(|_| shares),
                ..(*question).clone()
            };
            let answered = match known {
                Some(answer) => Some(answer),
                None => tokio::select! {
                    biased;
                    // The child has taken it back.
                    () = answer.closed() => return,
                    answered = asker.ask(&asked) => answered,
                },
            };
            // Without an answer the question is dropped, which the child hears as a turn that was stopped.
            let Some(answered) = answered else { return };
            if is_near {
                approved.remember(&question, &answered);
            }
            let remembered = question.offer.as_ref().zip(question.lasting(&answered));
            if answer.send(answered).is_err() {
                tracing::debug!("a child no longer waits for its answer");
            }
            if let Some((offer, lasting)) = remembered {
                family.remember_for_child(lasting, offer, shares, &cwd).await;
            }
        });
    }

    fn asker(&self, round: &CancellationToken) -> Asker {
        Asker {
            family: self.family.clone(),
            who: self.who.clone(),
            spot: self.spot.clone(),
            view: self.view.clone(),
            round: round.clone(),
        }
    }

    fn wants(&mut self, wanted: Wanted, round: &CancellationToken) {
        let Some(upstream) = self.upstream.clone() else {
            return wanted.refuse("this agent was told that there are no files and terminals for it here");
        };
        let Some(room) = self.room() else {
            return wanted.refuse("too many requests are open at once; wait for their answers");
        };
        let permit = match self.trusted {
            Trusted::Itself => Permit::Yes,
            Trusted::Nobody => permit(&self.family, &self.cwd, &self.approved, &wanted),
        };
        match permit {
            Permit::Yes => wanted.pass_on(&upstream, room),
            Permit::No(why) => wanted.refuse(&format!("not allowed: {why}")),
            Permit::Ask(question) => {
                let asker = self.asker(round);
                tokio::spawn(async move {
                    match asker.ask(&question).await {
                        // A yes for a round that is over allows nothing any longer.
                        answer if is_yes(answer.as_ref()) && !asker.round.is_cancelled() => {
                            wanted.pass_on(&upstream, room);
                        }
                        Some(PermissionAnswer::Nobody { why }) => wanted.refuse(&format!(
                            "not allowed: it needs permission and nobody could be asked ({why})"
                        )),
                        Some(PermissionAnswer::Chosen(_)) => {
                            wanted.refuse("not allowed: the person refused it");
                        }
                        None => wanted.refuse("not allowed: the question was closed without an answer"),
                    }
                });
            }
        }
    }

    /// Tells a client that follows children whether this one is at work.
    pub(super) fn tell_state(&self, is_working: bool) {
        let (child, cwd) = (self.task.clone(), self.cwd.display().to_string());
        let update = Update::Child { child, title: self.who.clone(), cwd, is_working };
        self.family.client.tell(&self.family.parent, update);
    }

    /// Finds a place for a child of the child.
    fn claims(&mut self, answer: oneshot::Sender<Result<u64, String>>) {
        let Some(room) = self.room() else { return };
        let (book, held) = (self.family.book.clone(), self.seats.clone());
        tokio::spawn(async move {
            let _room = room;
            let claimed = match book.claim().await {
                Ok(_) if seats(&held).len() >= SEATS_MAX => {
                    Err("this agent holds more places than anybody needs".to_owned())
                }
                Ok(seat) => {
                    let number = seat.number();
                    seats(&held).insert(number, seat);
                    Ok(number)
                }
                Err(why) => Err(why),
            };
            if let Err(Ok(number)) = answer.send(claimed) {
                // Whoever wanted it is gone.
                seats(&held).remove(&number);
            }
        });
    }
}

fn seats(held: &Mutex<HashMap<u64, Seat>>) -> MutexGuard<'_, HashMap<u64, Seat>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts questions of a child to the person.
struct Asker {
    family: Arc<Family>,
    who: String,
    spot: Spot,
    view: Arc<Mutex<View>>,
    round: CancellationToken,
}

impl Asker {
    /// Asks; nothing when the round ended first.
    async fn ask(&self, question: &PermissionQuestion) -> Option<PermissionAnswer> {
        let family = &self.family;
        // Two questions in the place of one call would be taken for one.
        let _turn_to_ask = self.round.run_until_cancelled(family.asking.lock()).await?;
        let spot = (self.spot.call, self.who.as_str());
        let answered = family.client.ask_for_child(&family.parent, spot, question, &self.round).await;
        if answered.is_none() {
            // Whoever stops a turn closes its questions; that must not reach the child before it hears of the stop.
            drop(timeout(STOP_WAIT_MAX, self.round.cancelled()).await);
        }
        let (status, shown) = match &self.spot.shows {
            Some(shows) => (Status::Done, shows.clone()),
            None => (Status::Running, self.view.lock().unwrap_or_else(PoisonError::into_inner).shown()),
        };
        let again = Update::CallAgain {
            call: self.spot.call,
            facets: self.spot.facets.clone(),
            status,
            content: vec![Content::Text(shown)],
        };
        family.client.tell(&family.parent, again);
        answered
    }
}
