//! Drives an agent through its turns. The only place that waits for the agent, the keyboard and signals at once.

use std::{collections::VecDeque, time::Duration};

use crow_acp::{
    AgentConnection, AgentUpdate, ClientEvent, OpenedSession, PromptOutcome, StopReason, TurnScope,
};
use crow_core::{ContentPart, Failure, FailureKind, ReportOutcome, SessionId};
use tokio::{sync::mpsc, time::MissedTickBehavior};

use super::{
    agent_failure::exit_for_failure,
    interrupts::StopListener,
    output::{ContinuationHint, SessionRetention},
    pending_question::{PendingQuestion, wait_until_withdrawn},
    plain::{PaintMode, to_one_line},
    plan::RunPlan,
    replay::ReplayBuffer,
    typed_input::{self, TypedAnswer, TypedLines},
};
use crate::{
    cli::ReplaySpan,
    failure::{CliError, CliExitCode},
};
use crow_process::StopRequest;

/// Interval of the spinner; a longer one looks stuck, a shorter one nervous.
pub(super) const TICK: Duration = Duration::from_millis(120);

/// Questions deferred to the prompt; more cannot be answered anyway.
const DEFERRED_QUESTIONS_MAX: usize = 64;

/// Shown when typed lines cannot be the answer to a question.
const NOT_AN_ANSWER: &str =
    "\n  Lines typed before the question, or several lines at once, do not answer it.\n";

/// The result of one turn; the user may continue after a failed one.
type TurnResult = Result<(), CliError>;

/// A connection to an agent and the user who drives it.
pub(super) struct RunDriver {
    pub(super) connection: AgentConnection,
    pub(super) events: mpsc::Receiver<ClientEvent>,
    pub(super) signals: StopListener,
    pub(super) plan: RunPlan,
    pub(super) input: TypedLines,
    /// Whether a call of the turn was rejected because there was no terminal to ask on.
    has_rejected_call: bool,
    /// The outcome of the last task report in the turn.
    outcome: Option<ReportOutcome>,
    /// ID of the last message.
    message: Option<String>,
    /// The open question. It outlives the turn, since it may be about background work.
    pub(super) pending: Option<PendingQuestion>,
    /// Questions that arrived at the end of a turn.
    pub(super) deferred: VecDeque<ClientEvent>,
}

pub(super) enum NextPrompt {
    Prompt(String),
    End,
}

/// The effect of the next interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InterruptAction {
    CancelTurn,
    Quit,
}

impl RunDriver {
    pub(super) fn new(
        connection: AgentConnection,
        events: mpsc::Receiver<ClientEvent>,
        signals: StopListener,
        plan: RunPlan,
    ) -> Self {
        let (input, deferred) = (TypedLines::default(), VecDeque::new());
        Self {
            connection,
            events,
            signals,
            plan,
            input,
            has_rejected_call: false,
            outcome: None,
            message: None,
            pending: None,
            deferred,
        }
    }

    /// Opens the session and runs its prompts.
    pub(super) async fn run(mut self) -> Result<(), CliError> {
        if !self.plan.images.is_empty() && !self.connection.capabilities().reads_images {
            let error = CliError::new(CliExitCode::Usage, "the agent does not accept images");
            return Err(error.with_hint("leave out --image, or use another agent"));
        }
        let (session, replay) = self.open_session().await?;
        self.plan.output.on_session_opened(&session)?;
        replay.replay_to(self.plan.output.as_mut())?;
        let result = self.run_prompts(&session).await;
        let retention = if self.connection.capabilities().load_session {
            self.plan.retention
        } else {
            SessionRetention::Gone
        };
        if let Err(error) = &result {
            // The error comes before the lines that say how to continue.
            self.plan.output.on_error(error)?;
        }
        let agent = self.plan.args.options.agent.as_deref();
        let continuation = ContinuationHint { agent, is_interactive: false };
        self.plan.output.on_session_end(&session, retention, continuation)?;
        result.map_err(CliError::into_reported)
    }

    async fn open_session(&mut self) -> Result<(SessionId, ReplayBuffer), CliError> {
        let mut replay = ReplayBuffer::new(self.plan.args.replay_span());
        let session = open_or_load_session(&self.connection, &self.plan);
        tokio::pin!(session);
        loop {
            tokio::select! {
                biased;
                _ = self.signals.next_request() => return Err(CliError::without_message(CliExitCode::Interrupted)),
                // No call runs before the first prompt, so replayed questions need no answer.
                Some(event) = self.events.recv() => replay.push(event),
                opened = &mut session => return Ok((opened?, replay)),
            }
        }
    }

    async fn run_prompts(&mut self, session: &SessionId) -> Result<(), CliError> {
        let first = self.plan.first_prompt.take();
        if !self.plan.args.interactive {
            return match first {
                Some(prompt) => self.run_turn(session, &prompt).await?,
                None => Ok(()),
            };
        }
        self.input.start_listening()?;
        match first {
            Some(prompt) => self.run_turn_and_report(session, &prompt).await?,
            None => self.plan.output.on_first_prompt()?,
        }
        while let NextPrompt::Prompt(prompt) = self.next_prompt().await? {
            self.run_turn_and_report(session, &prompt).await?;
        }
        Ok(())
    }

    /// Runs one turn and reports a failure, after which the user may continue.
    async fn run_turn_and_report(&mut self, session: &SessionId, prompt: &str) -> Result<(), CliError> {
        if let Err(error) = self.run_turn(session, prompt).await? {
            self.plan.output.on_error(&error)?;
        }
        Ok(())
    }

    /// Runs one turn. The outer error ends the run, the inner one only this turn.
    async fn run_turn(&mut self, session: &SessionId, prompt: &str) -> Result<TurnResult, CliError> {
        let connection = self.connection.clone();
        // After the last turn there is no user to wait for; between turns there is.
        let is_last = !self.plan.args.interactive || self.input.is_over().await?;
        let turn_scope = if is_last { TurnScope::WithTasks } else { TurnScope::WithoutTasks };
        let mut content = vec![ContentPart::Text(prompt.to_owned())];
        content.append(&mut self.plan.images);
        let turn = connection.send_prompt(session, content, turn_scope);
        tokio::pin!(turn);
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut interrupt = InterruptAction::CancelTurn;
        let is_animated = self.plan.output.is_animated();
        (self.has_rejected_call, self.outcome) = (false, None);
        self.plan.output.on_turn_start()?;
        let result = loop {
            tokio::select! {
                biased;
                request = self.signals.next_request() => match (request, interrupt) {
                    (StopRequest::Interrupt, InterruptAction::CancelTurn) => {
                        connection.cancel_turn(session);
                        self.plan.output.on_stopping()?;
                        interrupt = InterruptAction::Quit;
                        self.drop_question()?;
                    }
                    (StopRequest::Terminate, _) | (_, InterruptAction::Quit) => return Err(CliError::without_message(CliExitCode::Interrupted)),
                },
                typing = self.input.next_answer(), if self.pending.is_some() => self.on_answer(typing?)?,
                () = wait_until_withdrawn(&mut self.pending) => self.drop_question()?,
                // Nothing is written over an open question.
                event = self.events.recv(), if self.pending.is_none() => match event {
                    Some(event) => self.pending = self.on_event(event, interrupt).await?,
                    None => break turn.await,
                },
                ended = &mut turn => break ended,
                _ = ticks.tick(), if is_animated && self.pending.is_none() => self.plan.output.on_tick()?,
            }
        };
        self.drain_events(interrupt).await?;
        self.turn_result(result, interrupt)
    }

    /// Handles the events before the end of the turn. A question may be about background work, so it is deferred to the
    /// next prompt; without a prompt, or after an interrupt, it is dropped, which rejects it.
    async fn drain_events(&mut self, interrupt: InterruptAction) -> Result<(), CliError> {
        let keeps_questions = self.plan.args.interactive && interrupt == InterruptAction::CancelTurn;
        if !keeps_questions {
            self.drop_question()?;
        }
        while let Ok(event) = self.events.try_recv() {
            match event {
                ClientEvent::Permission { .. } | ClientEvent::Form { .. } => {
                    if keeps_questions && self.deferred.len() < DEFERRED_QUESTIONS_MAX {
                        self.deferred.push_back(event);
                    }
                }
                ClientEvent::Update { .. }
                | ClientEvent::RawUpdate { .. }
                | ClientEvent::AccessRequest(_)
                | ClientEvent::Claim { .. }
                | ClientEvent::Release { .. } => drop(self.on_event(event, interrupt).await?),
            }
        }
        Ok(())
    }

    /// Drops the open question, which tells the agent that it was not answered.
    pub(super) fn drop_question(&mut self) -> Result<(), CliError> {
        if self.pending.take().is_some() {
            typed_input::write_prompt("\n")?;
        }
        Ok(())
    }

    /// Reads a line as an answer; the question stays open if it is none.
    pub(super) fn on_answer(&mut self, answer: TypedAnswer) -> Result<(), CliError> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        self.pending = match answer {
            TypedAnswer::Line(line) => pending.try_answer(Some(&line))?,
            TypedAnswer::End => pending.try_answer(None)?,
            TypedAnswer::Pasted => {
                typed_input::write_prompt(NOT_AN_ANSWER)?;
                self.input.set_aside_typed()?;
                pending.prompt_for_answer()?;
                Some(pending)
            }
        };
        Ok(())
    }

    pub(super) async fn on_event(
        &mut self,
        event: ClientEvent,
        interrupt: InterruptAction,
    ) -> Result<Option<PendingQuestion>, CliError> {
        let pending = match event {
            // The user's own prompts are on the screen already; this one is from a task.
            ClientEvent::Update { update: AgentUpdate::Prompt(text), .. } => {
                let line = text.lines().next().unwrap_or_default().to_owned();
                self.plan.output.on_update(AgentUpdate::Notice(line))?;
                return Ok(None);
            }
            ClientEvent::Update { message, update, .. } => {
                self.on_update(message, update)?;
                return Ok(None);
            }
            ClientEvent::Permission { question, answer, .. } => PendingQuestion::Call { question, answer },
            ClientEvent::Form { form, answer, .. } => PendingQuestion::Form { form, answer },
            ClientEvent::AccessRequest(request) => {
                request.reject("this client provides no files or terminals");
                return Ok(None);
            }
            // A dropped claim is rejected: an agent counts the children it starts itself.
            ClientEvent::RawUpdate { .. } | ClientEvent::Claim { .. } | ClientEvent::Release { .. } => {
                return Ok(None);
            }
        };
        if interrupt == InterruptAction::Quit {
            return Ok(None);
        }
        if self.plan.args.options.yes && pending.is_covered_by_yes_flag() {
            pending.allow();
            return Ok(None);
        }
        // `-y` approves calls, but trust requires that the user has seen the files.
        if self.plan.args.options.yes && pending.is_about_trust() {
            pending.answer_unavailable("-y does not answer questions about trust");
            return Ok(None);
        }
        if !self.plan.control.can_ask() {
            if pending.is_required() {
                self.has_rejected_call = true;
            }
            // Other agents take an error for a failure of their turn.
            match self.plan.args.options.agent {
                Some(_) => pending.reject(),
                None => pending.answer_unavailable("there is no terminal to ask on"),
            }
            return Ok(None);
        }
        self.input.wait_for_quiet().await?;
        self.show_question(&pending)?;
        Ok(Some(pending))
    }

    fn on_update(&mut self, message: Option<String>, update: AgentUpdate) -> Result<(), CliError> {
        if let AgentUpdate::Outcome(outcome) = update {
            self.outcome = Some(outcome);
        }
        if message.is_some() && message != self.message {
            self.plan.output.on_new_message()?;
            self.message = message;
        }
        Ok(self.plan.output.on_update(update)?)
    }

    /// Shows a question. Only input typed afterwards answers it.
    pub(super) fn show_question(&mut self, pending: &PendingQuestion) -> Result<(), CliError> {
        self.plan.output.prepare_for_input()?;
        typed_input::write_prompt(&(pending.render_lines(PaintMode::for_stderr()).join("\n") + "\n"))?;
        self.input.set_aside_typed()?;
        Ok(pending.prompt_for_answer()?)
    }

    fn turn_result(
        &mut self,
        result: Result<PromptOutcome, Failure>,
        interrupt: InterruptAction,
    ) -> Result<TurnResult, CliError> {
        // How another agent ends a turn after a rejection is its own affair.
        let is_rejected = self.has_rejected_call && interrupt == InterruptAction::CancelTurn;
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(failure) => {
                self.plan.output.on_turn_failed(&failure)?;
                // The connection is lost, so no turn can follow.
                let error = if is_rejected { rejected_call_error() } else { exit_for_failure(&failure) };
                return if self.connection.disconnect_failure().is_some() {
                    Err(error)
                } else {
                    Ok(Err(error))
                };
            }
        };
        self.plan.output.on_turn_end(outcome)?;
        Ok(match (outcome.stop_reason, is_rejected) {
            (StopReason::Cancelled, false) => Err(CliError::without_message(CliExitCode::Interrupted)),
            (StopReason::MaxTurnRequests, _) => {
                let error =
                    CliError::new(CliExitCode::Limit, "the turn reached a limit before the model was done");
                Err(error
                    .with_hint("continue the session; max_turn_requests is the limit of requests in a turn"))
            }
            (_, true) => Err(rejected_call_error()),
            (StopReason::EndTurn, false) => match self.outcome {
                // The report has stated what is missing.
                Some(ReportOutcome::Incomplete | ReportOutcome::NotStarted) => {
                    Err(CliError::without_message(CliExitCode::Failed))
                }
                Some(ReportOutcome::Done) | None => Ok(()),
            },
            (StopReason::MaxTokens, false) => {
                Err(CliError::new(CliExitCode::Failed, "the answer was truncated at the token limit"))
            }
            (StopReason::Refusal, false) => {
                Err(CliError::new(CliExitCode::Failed, "the model refused to answer"))
            }
        })
    }
}

fn rejected_call_error() -> CliError {
    let error = CliError::new(
        CliExitCode::Denied,
        "a tool call needed permission and there was no terminal to ask on",
    );
    error.with_hint("approve it with -y, or choose another --mode")
}

async fn open_or_load_session(connection: &AgentConnection, plan: &RunPlan) -> Result<SessionId, CliError> {
    let capabilities = connection.capabilities();
    let opened = match (&plan.args.session, plan.args.fork) {
        (None, _) => connection.new_session(&plan.cwd).await,
        (Some(_), true) if !capabilities.fork_session => {
            return Err(unsupported_error(plan, "copy sessions"));
        }
        (Some(_), false) if !capabilities.load_session => {
            return Err(unsupported_error(plan, "continue a session"));
        }
        (Some(id), true) => fork_session(connection, plan, id).await,
        (Some(id), false) => connection.load_session(&SessionId::new(id), &plan.cwd).await,
    };
    let opened = opened.map_err(|failure| open_error(plan, &failure))?;
    for (kind, value) in [("mode", &plan.args.options.mode), ("model", &plan.args.options.model)] {
        let Some(value) = value else { continue };
        let option = find_option(&opened, kind, value, plan)?;
        let result = connection.set_option(&opened.session, option, value).await;
        result.map_err(|failure| exit_for_failure(&failure))?;
    }
    Ok(opened.session)
}

/// Opens a copy of a session. Only a loaded session is replayed.
async fn fork_session(
    connection: &AgentConnection,
    plan: &RunPlan,
    id: &str,
) -> Result<OpenedSession, Failure> {
    let forked = connection.fork_session(&SessionId::new(id), &plan.cwd).await?;
    if plan.args.options.agent.is_some() || plan.args.replay_span() == ReplaySpan::NONE {
        return Ok(forked);
    }
    connection.load_session(&forked.session, &plan.cwd).await
}

fn unsupported_error(plan: &RunPlan, action: &str) -> CliError {
    let name = plan.args.options.agent.as_deref().unwrap_or_default();
    CliError::new(CliExitCode::Usage, format!("the agent {name} cannot {action}"))
        .with_hint("leave out --session")
}

/// An agent's authentication is between the user and that agent.
fn open_error(plan: &RunPlan, failure: &Failure) -> CliError {
    match &plan.args.options.agent {
        Some(name) if failure.kind == FailureKind::AuthRequired => {
            let error =
                CliError::new(CliExitCode::Config, format!("the agent {name} requires authentication"));
            error.with_hint("log in with its own program, or set a key in its env in agent_servers")
        }
        Some(_) | None => exit_for_failure(failure),
    }
}

/// Finds an option of another agent. Our own agent validates options itself.
fn find_option<'a>(
    opened: &'a OpenedSession,
    kind: &'static str,
    value: &str,
    plan: &RunPlan,
) -> Result<&'a str, CliError> {
    let Some(name) = &plan.args.options.agent else { return Ok(kind) };
    let Some(option) = opened.find_option(kind) else {
        return Err(CliError::new(CliExitCode::Usage, format!("the agent {name} has no {kind} option")));
    };
    if option.choices.iter().any(|choice| choice.value == value) {
        return Ok(&option.id);
    }
    let error = CliError::new(CliExitCode::Usage, format!("the agent {name} has no {kind} {value:?}"));
    let values: Vec<&str> = option.choices.iter().map(|choice| choice.value.as_str()).collect();
    Err(error.with_hint(to_one_line(&format!("available: {}", values.join(", ")))))
}
