//! Drives an agent through its turns. The one place that waits for the agent, the keyboard and the person's
//! interrupts at once.

use std::{io, time::Duration};

use crow_acp::{ClientEvent, Connection, PermissionAnswer, PermissionQuestion, StopReason, Subject, Until};
use crow_core::{Failure, SessionId};
use tokio::{
    sync::{mpsc, oneshot},
    time::MissedTickBehavior,
};

use super::{
    Plan, exit_of,
    plain::Paint,
    question::{self, Allows},
    signals::{Signals, Wish},
    speak::{self, Typed},
};
use crate::failure::{Code, Exit};

/// How often what turns on the screen moves on; slower looks stuck, faster nervous.
const BEAT: Duration = Duration::from_millis(120);

/// How a turn came out for the person, who may go on after it.
type TurnEnd = Result<(), Exit>;

/// An agent and the person who drives it.
pub(super) struct Driver {
    pub(super) connection: Connection,
    pub(super) heard: mpsc::Receiver<ClientEvent>,
    pub(super) signals: Signals,
    pub(super) plan: Plan,
    pub(super) typed: Typed,
    pub(super) refused: Refused,
}

/// Whether a call of the turn was refused because nobody could be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Nothing,
    Something,
}

/// A question that waits for the person.
struct Asked {
    question: Box<PermissionQuestion>,
    answer: oneshot::Sender<PermissionAnswer>,
}

/// What the person wants next.
enum Spoken {
    Prompt(String),
    End,
}

/// What the next interrupt does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interrupt {
    Cancels,
    Leaves,
}

impl Driver {
    /// Opens the session and goes through its prompts.
    pub(super) async fn run(mut self) -> Result<(), Exit> {
        let session = self.open().await?;
        self.plan.speaker.session(&session)?;
        let done = self.prompts(&session).await;
        let bye = self.plan.speaker.goodbye(&session);
        done?;
        Ok(bye?)
    }

    async fn open(&mut self) -> Result<SessionId, Exit> {
        let opening = open(&self.connection, &self.plan);
        tokio::pin!(opening);
        loop {
            tokio::select! {
                biased;
                _ = self.signals.next() => return Err(Exit::quiet(Code::Interrupted)),
                // What is replayed is the person's already; it is taken to make room and not shown again. No
                // call runs before the first prompt, so a question among it is none of theirs to answer.
                Some(_) = self.heard.recv() => {}
                opened = &mut opening => return opened,
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

    /// Waits for the next prompt, past empty lines.
    async fn next_prompt(&mut self) -> Result<Spoken, Exit> {
        self.plan.speaker.pause()?;
        speak::mark("› ")?;
        loop {
            tokio::select! {
                biased;
                _ = self.signals.next() => {
                    speak::mark("\n")?;
                    return Err(Exit::quiet(Code::Interrupted));
                }
                line = self.typed.line() => match line? {
                    None => {
                        speak::mark("\n")?;
                        return Ok(Spoken::End);
                    }
                    Some(line) => match line.trim() {
                        "exit" | "quit" => return Ok(Spoken::End),
                        "" => speak::mark("› ")?,
                        _ => return Ok(Spoken::Prompt(line)),
                    },
                },
                // Between turns an agent only keeps its lists up to date.
                event = self.heard.recv() => if event.is_none() {
                    return Err(Exit::new(Code::Failed, "the agent is gone"));
                },
            }
        }
    }

    /// Runs one turn. The outer error is the end of everything, the inner one of this turn.
    async fn turn(&mut self, session: &SessionId, prompt: &str) -> Result<TurnEnd, Exit> {
        let connection = self.connection.clone();
        // Nobody is there after the only turn; between two of them a person is.
        let until = if self.plan.args.interactive { Until::Answered } else { Until::TasksEnded };
        let ended = async { connection.prompt(session, prompt, until).await.map(|prompted| prompted.reason) };
        tokio::pin!(ended);
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut interrupt = Interrupt::Cancels;
        let mut asked: Option<Asked> = None;
        self.refused = Refused::Nothing;
        self.plan.speaker.begin()?;
        let ended = loop {
            tokio::select! {
                biased;
                wish = self.signals.next() => match (wish, interrupt) {
                    (Wish::Interrupt, Interrupt::Cancels) => {
                        connection.cancel(session);
                        self.plan.speaker.stopping()?;
                        interrupt = Interrupt::Leaves;
                        // A question that is dropped tells the agent that nobody answers.
                        if asked.take().is_some() {
                            speak::mark("\n")?;
                        }
                    }
                    (Wish::End, _) | (_, Interrupt::Leaves) => return Err(Exit::quiet(Code::Interrupted)),
                },
                typed = self.typed.answer(), if asked.is_some() => asked = answered(asked.take(), typed?)?,
                // While a question stands on the screen nothing is written over it.
                event = self.heard.recv(), if asked.is_none() => match event {
                    Some(event) => asked = self.on_event(event, interrupt)?,
                    None => break ended.await,
                },
                ended = &mut ended => break ended,
                _ = beat.tick(), if asked.is_none() => self.plan.speaker.beat()?,
            }
        };
        if asked.is_some() {
            speak::mark("\n")?;
        }
        drop(asked);
        while let Ok(event) = self.heard.try_recv() {
            // A question of a turn that has ended is dropped, which is an answer.
            self.on_event(event, Interrupt::Leaves)?;
        }
        self.settle(ended)
    }

    fn on_event(&mut self, event: ClientEvent, interrupt: Interrupt) -> Result<Option<Asked>, Exit> {
        let (question, answer) = match event {
            ClientEvent::Heard { heard, .. } => {
                self.plan.speaker.heard(heard)?;
                return Ok(None);
            }
            ClientEvent::Permission { question, answer, .. } => (question, answer),
            ClientEvent::Wanted(wanted) => {
                wanted.refuse("a terminal has no files and terminals to lend");
                return Ok(None);
            }
            // Dropped, a claim is refused: what starts children here counts them itself.
            ClientEvent::Claim { .. } | ClientEvent::Released { .. } => return Ok(None),
        };
        if interrupt == Interrupt::Leaves {
            return Ok(None);
        }
        // A yes to everything is no yes to what nobody has looked at.
        if self.plan.args.yes && question.subject == Subject::Call {
            reply(answer, question::once(&question, Allows::Yes));
            return Ok(None);
        }
        if !speak::somebody() {
            if question.subject == Subject::Call {
                self.refused = Refused::Something;
            }
            give(answer, PermissionAnswer::Nobody { why: "there is no terminal to ask on".into() });
            return Ok(None);
        }
        self.plan.speaker.pause()?;
        self.typed.set_aside()?;
        speak::mark(&(question::lines(&question, Paint::of_stderr()).join("\n") + "\n"))?;
        mark_answers(&question)?;
        Ok(Some(Asked { question, answer }))
    }

    fn settle(&mut self, ended: Result<StopReason, Failure>) -> Result<TurnEnd, Exit> {
        let reason = match ended {
            Ok(reason) => reason,
            Err(failure) => {
                self.plan.speaker.error(&failure)?;
                return Ok(Err(exit_of(&failure)));
            }
        };
        self.plan.speaker.result(reason)?;
        Ok(match (reason, self.refused) {
            (StopReason::Cancelled, _) => Err(Exit::quiet(Code::Interrupted)),
            (StopReason::MaxTurnRequests, _) => {
                let exit = Exit::new(Code::Limit, "the limit of model calls in one turn was reached");
                Err(exit.with_hint("go on with the same session, or raise max_turn_requests"))
            }
            (_, Refused::Something) => {
                let exit = Exit::new(Code::Denied, "a call needed permission and nobody could be asked");
                Err(exit.with_hint("allow it with -y, or choose a --mode"))
            }
            (StopReason::EndTurn, Refused::Nothing) => Ok(()),
            (StopReason::MaxTokens, Refused::Nothing) => {
                Err(Exit::new(Code::Failed, "the model's output limit cut the answer"))
            }
            (StopReason::Refusal, Refused::Nothing) => Err(Exit::new(Code::Failed, "the model refused")),
        })
    }
}

async fn open(connection: &Connection, plan: &Plan) -> Result<SessionId, Exit> {
    let session = match plan.args.session.clone() {
        Some(id) => {
            let session = SessionId::new(id);
            let opened = match plan.args.fork {
                true => connection.fork_session(&session, &plan.cwd).await,
                false => connection.load_session(&session, &plan.cwd).await,
            };
            opened.map_err(|failure| exit_of(&failure))?.session
        }
        None => connection.new_session(&plan.cwd).await.map_err(|failure| exit_of(&failure))?.session,
    };
    let mode = plan.args.mode.map(|mode| ("mode", mode.as_str().to_owned()));
    let model = plan.args.model.clone().map(|model| ("model", model));
    for (option, value) in mode.into_iter().chain(model) {
        let set = connection.set_option(&session, option, &value).await;
        set.map_err(|failure| exit_of(&failure))?;
    }
    Ok(session)
}

/// Takes a line for an answer; what is none keeps the question standing.
fn answered(asked: Option<Asked>, typed: Option<String>) -> Result<Option<Asked>, Exit> {
    let Some(Asked { question, answer }) = asked else { return Ok(None) };
    match typed {
        None => {
            speak::mark("\n")?;
            reply(answer, question::once(&question, Allows::No));
            Ok(None)
        }
        Some(typed) => match question::chosen(&question, &typed) {
            Some(id) => {
                reply(answer, Some(id));
                Ok(None)
            }
            None => {
                mark_answers(&question)?;
                Ok(Some(Asked { question, answer }))
            }
        },
    }
}

fn mark_answers(question: &PermissionQuestion) -> io::Result<()> {
    speak::mark(&format!("  {} › ", question::answers(question)))
}

/// Answers the agent. One without a fitting choice is not answered, which refuses.
fn reply(answer: oneshot::Sender<PermissionAnswer>, id: Option<String>) {
    if let Some(id) = id {
        give(answer, PermissionAnswer::Chosen(id));
    }
}

fn give(answer: oneshot::Sender<PermissionAnswer>, given: PermissionAnswer) {
    if answer.send(given).is_err() {
        tracing::debug!("the agent no longer waits for the answer");
    }
}
