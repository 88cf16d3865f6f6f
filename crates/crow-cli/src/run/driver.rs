//! Drives an agent through its turns. The one place that waits for the agent, the keyboard and the person's
//! interrupts at once.

use std::{collections::VecDeque, io, time::Duration};

use crow_acp::{ClientEvent, Connection, Heard, OpenedSession, StopReason, Until};
use crow_core::{Failure, FailureKind, ReportOutcome, SessionId};
use tokio::{sync::mpsc, time::MissedTickBehavior};

use super::{
    Onward, Plan,
    asked::{Asked, withdrawn},
    exit_of,
    plain::{Paint, one_line},
    replay::{Replay, ReplaySpan},
    signals::{Signals, Wish},
    speak::{self, Typed, Typing},
};
use crate::failure::{Code, Exit};

/// How often what turns on the screen moves on; slower looks stuck, faster nervous.
pub(super) const BEAT: Duration = Duration::from_millis(120);

/// Questions kept for the prompt: of as many children at once nobody answers more.
const QUESTIONS_KEPT_MAX: usize = 64;

/// Said where lines are set aside that look like an answer.
const NO_ANSWER: &str =
    "\n  What was typed before the question, or several lines at once, is no answer to it.\n";

/// How a turn came out for the person, who may go on after it.
type TurnEnd = Result<(), Exit>;

/// An agent and the person who drives it.
pub(super) struct Driver {
    pub(super) connection: Connection,
    pub(super) heard: mpsc::Receiver<ClientEvent>,
    pub(super) signals: Signals,
    pub(super) plan: Plan,
    pub(super) typed: Typed,
    refused: Refused,
    /// How the work ended that was reported last in the turn.
    outcome: Option<ReportOutcome>,
    /// The message that the agent spoke last.
    message: Option<String>,
    /// The question that stands on the screen; what ends a turn leaves it there, it may be about something else.
    pub(super) asked: Option<Asked>,
    /// Questions that came with the end of a turn.
    pub(super) kept: VecDeque<ClientEvent>,
}

/// Whether a call of the turn was refused because nobody could be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    Nothing,
    Something,
}

/// What the person wants next.
pub(super) enum Spoken {
    Prompt(String),
    End,
}

/// What the next interrupt does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interrupt {
    Cancels,
    Leaves,
}

impl Driver {
    pub(super) fn new(
        connection: Connection,
        heard: mpsc::Receiver<ClientEvent>,
        signals: Signals,
        plan: Plan,
    ) -> Self {
        let (typed, kept) = (Typed::default(), VecDeque::new());
        let refused = Refused::Nothing;
        Self {
            connection,
            heard,
            signals,
            plan,
            typed,
            refused,
            outcome: None,
            message: None,
            asked: None,
            kept,
        }
    }

    /// Opens the session and goes through its prompts.
    pub(super) async fn run(mut self) -> Result<(), Exit> {
        let (session, replay) = self.open().await?;
        self.plan.speaker.session(&session)?;
        replay.tell(self.plan.speaker.as_mut())?;
        let done = self.prompts(&session).await;
        let onward = if self.connection.abilities().loads { self.plan.onward } else { Onward::Gone };
        let bye = self.plan.speaker.goodbye(&session, onward, self.plan.args.agent.as_deref());
        done?;
        Ok(bye?)
    }

    async fn open(&mut self) -> Result<(SessionId, Replay), Exit> {
        let mut replay = Replay::new(self.plan.args.replay_span());
        let opening = open(&self.connection, &self.plan);
        tokio::pin!(opening);
        loop {
            tokio::select! {
                biased;
                _ = self.signals.next() => return Err(Exit::quiet(Code::Interrupted)),
                // No call runs before the first prompt, so a question among what is replayed is none of theirs to answer.
                Some(event) = self.heard.recv() => replay.take(event),
                opened = &mut opening => return Ok((opened?, replay)),
            }
        }
    }

    async fn prompts(&mut self, session: &SessionId) -> Result<(), Exit> {
        let first = self.plan.first.take();
        if !self.plan.args.interactive {
            return match first {
                Some(prompt) => self.turn(session, &prompt).await?,
                None => Ok(()),
            };
        }
        self.typed.listen()?;
        match first {
            Some(prompt) => self.turn_and_on(session, &prompt).await?,
            None => self.plan.speaker.greet()?,
        }
        while let Spoken::Prompt(prompt) = self.next_prompt().await? {
            self.turn_and_on(session, &prompt).await?;
        }
        Ok(())
    }

    /// Runs one turn, tells the person how it failed and lets them type on.
    async fn turn_and_on(&mut self, session: &SessionId, prompt: &str) -> Result<(), Exit> {
        if let Err(exit) = self.turn(session, prompt).await? {
            self.plan.speaker.pause()?;
            exit.report(&mut io::stderr().lock());
        }
        Ok(())
    }

    /// Runs one turn. The outer error is the end of everything, the inner one of this turn.
    async fn turn(&mut self, session: &SessionId, prompt: &str) -> Result<TurnEnd, Exit> {
        let connection = self.connection.clone();
        // Nobody is there after the last turn; between two of them a person is.
        let is_last = !self.plan.args.interactive || self.typed.is_over().await?;
        let until = if is_last { Until::TasksEnded } else { Until::Answered };
        let ended = async { connection.prompt(session, prompt, until).await.map(|prompted| prompted.reason) };
        tokio::pin!(ended);
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut interrupt = Interrupt::Cancels;
        (self.refused, self.outcome) = (Refused::Nothing, None);
        self.plan.speaker.begin()?;
        let ended = loop {
            tokio::select! {
                biased;
                wish = self.signals.next() => match (wish, interrupt) {
                    (Wish::Interrupt, Interrupt::Cancels) => {
                        connection.cancel(session);
                        self.plan.speaker.stopping()?;
                        interrupt = Interrupt::Leaves;
                        self.drop_question()?;
                    }
                    (Wish::End, _) | (_, Interrupt::Leaves) => return Err(Exit::quiet(Code::Interrupted)),
                },
                typing = self.typed.answer(), if self.asked.is_some() => self.on_typing(typing?)?,
                () = withdrawn(&mut self.asked) => self.drop_question()?,
                // While a question stands on the screen nothing is written over it.
                event = self.heard.recv(), if self.asked.is_none() => match event {
                    Some(event) => self.asked = self.on_event(event, interrupt).await?,
                    None => break ended.await,
                },
                ended = &mut ended => break ended,
                _ = beat.tick(), if self.asked.is_none() => self.plan.speaker.beat()?,
            }
        };
        self.finish(interrupt).await?;
        self.settle(ended)
    }

    /// Takes in what came before the end of the turn. A question may be about something that goes on behind turns,
    /// so it is kept for the prompt that follows; without one, and after a stop, it is dropped, which is an answer.
    async fn finish(&mut self, interrupt: Interrupt) -> Result<(), Exit> {
        let keeps = self.plan.args.interactive && interrupt == Interrupt::Cancels;
        if !keeps {
            self.drop_question()?;
        }
        while let Ok(event) = self.heard.try_recv() {
            match event {
                ClientEvent::Permission { .. } | ClientEvent::Form { .. } => {
                    if keeps && self.kept.len() < QUESTIONS_KEPT_MAX {
                        self.kept.push_back(event);
                    }
                }
                ClientEvent::Heard { .. }
                | ClientEvent::Said(_)
                | ClientEvent::Wanted(_)
                | ClientEvent::Claim { .. }
                | ClientEvent::Released { .. } => drop(self.on_event(event, interrupt).await?),
            }
        }
        Ok(())
    }

    /// Takes the question off that stands on the screen, which tells the agent that nobody answers.
    pub(super) fn drop_question(&mut self) -> Result<(), Exit> {
        if self.asked.take().is_some() {
            speak::mark("\n")?;
        }
        Ok(())
    }

    /// Takes a line for an answer; what is none keeps the question standing.
    pub(super) fn on_typing(&mut self, typing: Typing) -> Result<(), Exit> {
        let Some(asked) = self.asked.take() else { return Ok(()) };
        self.asked = match typing {
            Typing::Line(line) => asked.answered(Some(&line))?,
            Typing::End => asked.answered(None)?,
            Typing::Pasted => {
                speak::mark(NO_ANSWER)?;
                self.typed.set_aside()?;
                asked.mark_answers()?;
                Some(asked)
            }
        };
        Ok(())
    }

    pub(super) async fn on_event(
        &mut self,
        event: ClientEvent,
        interrupt: Interrupt,
    ) -> Result<Option<Asked>, Exit> {
        let asked = match event {
            // What the person said themselves is on the screen; this came from a task.
            ClientEvent::Heard { heard: Heard::Prompt(news), .. } => {
                let line = news.lines().next().unwrap_or_default().to_owned();
                self.plan.speaker.heard(Heard::Notice(line))?;
                return Ok(None);
            }
            ClientEvent::Heard { message, heard, .. } => {
                self.on_heard(message, heard)?;
                return Ok(None);
            }
            ClientEvent::Permission { question, answer, .. } => Asked::Call { question, answer },
            ClientEvent::Form { form, answer, .. } => Asked::Form { form, answer },
            ClientEvent::Wanted(wanted) => {
                wanted.refuse("a terminal has no files and terminals to lend");
                return Ok(None);
            }
            // Dropped, a claim is refused: what starts children here counts them itself.
            ClientEvent::Said(_) | ClientEvent::Claim { .. } | ClientEvent::Released { .. } => {
                return Ok(None);
            }
        };
        if interrupt == Interrupt::Leaves {
            return Ok(None);
        }
        if self.plan.args.yes && asked.takes_any_yes() {
            asked.allow();
            return Ok(None);
        }
        // Whoever lets everything run unseen has looked at nothing.
        if self.plan.args.yes && asked.is_about_trust() {
            asked.give_up("-y answers no question about trust");
            return Ok(None);
        }
        if !speak::somebody() {
            if asked.is_needed() {
                self.refused = Refused::Something;
            }
            asked.give_up("there is no terminal to ask on");
            return Ok(None);
        }
        self.typed.wait_for_quiet().await?;
        self.show_question(&asked)?;
        Ok(Some(asked))
    }

    fn on_heard(&mut self, message: Option<String>, heard: Heard) -> Result<(), Exit> {
        if let Heard::Outcome(outcome) = heard {
            self.outcome = Some(outcome);
        }
        if message.is_some() && message != self.message {
            self.plan.speaker.part()?;
            self.message = message;
        }
        Ok(self.plan.speaker.heard(heard)?)
    }

    /// Puts a question on the screen. Only what is typed from then on answers it.
    pub(super) fn show_question(&mut self, asked: &Asked) -> Result<(), Exit> {
        self.plan.speaker.pause()?;
        speak::mark(&(asked.lines(Paint::of_stderr()).join("\n") + "\n"))?;
        self.typed.set_aside()?;
        Ok(asked.mark_answers()?)
    }

    fn settle(&mut self, ended: Result<StopReason, Failure>) -> Result<TurnEnd, Exit> {
        let reason = match ended {
            Ok(reason) => reason,
            Err(failure) => {
                self.plan.speaker.error(&failure)?;
                // There is no turn after this one.
                return if self.connection.gone().is_some() {
                    Err(exit_of(&failure))
                } else {
                    Ok(Err(exit_of(&failure)))
                };
            }
        };
        self.plan.speaker.result(reason)?;
        Ok(match (reason, self.refused) {
            (StopReason::Cancelled, _) => Err(Exit::quiet(Code::Interrupted)),
            (StopReason::MaxTurnRequests, _) => {
                let exit = Exit::new(Code::Limit, "the turn reached a limit before the model was done");
                Err(exit.with_hint("go on with the same session, or raise max_turn_requests"))
            }
            (_, Refused::Something) => {
                let exit = Exit::new(Code::Denied, "a call needed permission and nobody could be asked");
                Err(exit.with_hint("allow it with -y, or choose a --mode"))
            }
            (StopReason::EndTurn, Refused::Nothing) => match self.outcome {
                // The report has said what is missing.
                Some(ReportOutcome::Left | ReportOutcome::Refused) => Err(Exit::quiet(Code::Failed)),
                Some(ReportOutcome::Done) | None => Ok(()),
            },
            (StopReason::MaxTokens, Refused::Nothing) => {
                Err(Exit::new(Code::Failed, "the answer was cut because it became too long"))
            }
            (StopReason::Refusal, Refused::Nothing) => Err(Exit::new(Code::Failed, "the model refused")),
        })
    }
}

async fn open(connection: &Connection, plan: &Plan) -> Result<SessionId, Exit> {
    let can = connection.abilities();
    let opened = match (&plan.args.session, plan.args.fork) {
        (None, _) => connection.new_session(&plan.cwd).await,
        (Some(_), true) if !can.forks => return Err(cannot(plan, "copy sessions")),
        (Some(_), false) if !can.loads => return Err(cannot(plan, "go on with a session")),
        (Some(id), true) => fork(connection, plan, id).await,
        (Some(id), false) => connection.load_session(&SessionId::new(id), &plan.cwd).await,
    };
    let opened = opened.map_err(|failure| not_opened(plan, &failure))?;
    for (what, value) in [("mode", &plan.args.mode), ("model", &plan.args.model)] {
        let Some(value) = value else { continue };
        let option = chosen(&opened, what, value, plan)?;
        let set = connection.set_option(&opened.session, option, value).await;
        set.map_err(|failure| exit_of(&failure))?;
    }
    Ok(opened.session)
}

/// Opens a copy of a session. Only what is loaded is replayed.
async fn fork(connection: &Connection, plan: &Plan, id: &str) -> Result<OpenedSession, Failure> {
    let forked = connection.fork_session(&SessionId::new(id), &plan.cwd).await?;
    if plan.args.agent.is_some() || plan.args.replay_span() == ReplaySpan::NONE {
        return Ok(forked);
    }
    connection.load_session(&forked.session, &plan.cwd).await
}

fn cannot(plan: &Plan, what: &str) -> Exit {
    let name = plan.args.agent.as_deref().unwrap_or_default();
    Exit::new(Code::Usage, format!("the agent {name} cannot {what}")).with_hint("leave out --session")
}

/// Signing in is between a person and the agent.
fn not_opened(plan: &Plan, failure: &Failure) -> Exit {
    match &plan.args.agent {
        Some(name) if failure.kind == FailureKind::AuthRequired => {
            let exit = Exit::new(Code::Config, format!("the agent {name} wants to know who asks"));
            exit.with_hint("sign in with its own program, or give it a key in its env in agent_servers")
        }
        Some(_) | None => exit_of(failure),
    }
}

/// Finds the option that another agent offers. Our own is asked as it is: it says by itself what is wrong.
fn chosen<'a>(
    opened: &'a OpenedSession,
    what: &'static str,
    value: &str,
    plan: &Plan,
) -> Result<&'a str, Exit> {
    let Some(name) = &plan.args.agent else { return Ok(what) };
    let Some(option) = opened.option(what) else {
        return Err(Exit::new(Code::Usage, format!("the agent {name} offers no {what} to choose")));
    };
    if option.values.iter().any(|offered| offered == value) {
        return Ok(&option.id);
    }
    let exit = Exit::new(Code::Usage, format!("the agent {name} has no {what} {value:?}"));
    Err(exit.with_hint(one_line(&format!("there is: {}", option.values.join(", ")))))
}
