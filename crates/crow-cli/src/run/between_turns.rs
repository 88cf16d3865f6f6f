//! Between two turns: waits for the next prompt and handles updates and questions of background work meanwhile.

use crow_acp::{AgentUpdate, ClientEvent};
use tokio::time::MissedTickBehavior;

use super::{
    driver::{InterruptAction, NextPrompt, RunDriver, TICK},
    pending_question::wait_until_withdrawn,
    typed_input,
};
use crate::failure::{CliError, CliExitCode};

/// Ticks of silence after which the prompt is shown again. An agent does not announce the end of unprompted output;
/// pauses of a model are shorter.
const SILENT_TICKS: u32 = 8;

/// The last thing on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScreenBottom {
    /// The input prompt.
    Prompt,
    /// Output of the agent, and the ticks since then.
    Output { n_ticks: u32 },
}

impl RunDriver {
    /// Waits for the next prompt; skips empty lines and handles what the agent sends meanwhile.
    pub(super) async fn next_prompt(&mut self) -> Result<NextPrompt, CliError> {
        let connection = self.connection.clone();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        if let Some(pending) = self.pending.take() {
            // The end of its turn was written below it.
            self.show_question(&pending)?;
            self.pending = Some(pending);
        }
        let mut bottom = self.show_prompt().await?;
        loop {
            if let Some(event) = self.deferred.pop_front() {
                bottom = self.handle_event(event, bottom).await?;
                continue;
            }
            tokio::select! {
                biased;
                _ = self.signals.next_request() => return Err(interrupted_error()?),
                // Before the agent's events: an agent that never stops must not keep the user from leaving.
                line = self.input.next_line() => match line? {
                    None => {
                        typed_input::write_prompt("\n")?;
                        return Ok(NextPrompt::End);
                    }
                    Some(line) => match line.trim() {
                        "exit" | "quit" => return Ok(NextPrompt::End),
                        "" => typed_input::write_prompt("› ")?,
                        _ => return Ok(NextPrompt::Prompt(line)),
                    },
                },
                event = self.events.recv() => match event {
                    Some(event) => bottom = self.handle_event(event, bottom).await?,
                    None => return Err(agent_gone_error()),
                },
                () = connection.wait_closed() => return Err(agent_gone_error()),
                _ = ticks.tick(), if matches!(bottom, ScreenBottom::Output { .. }) => bottom = self.on_tick(bottom).await?,
            }
        }
    }

    /// Shows the input prompt as soon as no question is open.
    async fn show_prompt(&mut self) -> Result<ScreenBottom, CliError> {
        let connection = self.connection.clone();
        while self.pending.is_some() {
            tokio::select! {
                biased;
                _ = self.signals.next_request() => return Err(interrupted_error()?),
                typing = self.input.next_answer() => self.on_answer(typing?)?,
                () = wait_until_withdrawn(&mut self.pending) => self.drop_question()?,
                () = connection.wait_closed() => return Err(agent_gone_error()),
            }
        }
        self.plan.output.prepare_for_input()?;
        typed_input::write_prompt("› ")?;
        Ok(ScreenBottom::Prompt)
    }

    /// Handles an unprompted update or question of the agent.
    async fn handle_event(
        &mut self,
        event: ClientEvent,
        bottom: ScreenBottom,
    ) -> Result<ScreenBottom, CliError> {
        let is_shown = is_visible(&event);
        if is_shown && bottom == ScreenBottom::Prompt {
            // Text typed so far stays in the input queue.
            typed_input::write_prompt("\n")?;
        }
        self.pending = self.on_event(event, InterruptAction::CancelTurn).await?;
        match is_shown {
            _ if self.pending.is_some() => self.show_prompt().await,
            true => Ok(ScreenBottom::Output { n_ticks: 0 }),
            false => Ok(bottom),
        }
    }

    async fn on_tick(&mut self, bottom: ScreenBottom) -> Result<ScreenBottom, CliError> {
        match bottom {
            ScreenBottom::Output { n_ticks: n_beats } if n_beats < SILENT_TICKS => {
                self.plan.output.on_tick()?;
                Ok(ScreenBottom::Output { n_ticks: n_beats + 1 })
            }
            ScreenBottom::Output { .. } => self.show_prompt().await,
            ScreenBottom::Prompt => Ok(bottom),
        }
    }
}

fn interrupted_error() -> Result<CliError, CliError> {
    typed_input::write_prompt("\n")?;
    Ok(CliError::without_message(CliExitCode::Interrupted))
}

fn agent_gone_error() -> CliError {
    CliError::new(CliExitCode::Failed, "the connection to the agent was lost")
}

/// Whether an event shows on the screen; lists and counts do not.
fn is_visible(event: &ClientEvent) -> bool {
    match event {
        ClientEvent::Permission { .. } | ClientEvent::Form { .. } => true,
        ClientEvent::RawUpdate { .. }
        | ClientEvent::AccessRequest(_)
        | ClientEvent::Claim { .. }
        | ClientEvent::Release { .. } => false,
        ClientEvent::Update { update, .. } => match update {
            AgentUpdate::Text(_)
            | AgentUpdate::Thought(_)
            | AgentUpdate::Notice(_)
            | AgentUpdate::Compaction(_)
            | AgentUpdate::Call { .. }
            | AgentUpdate::Prompt(_)
            | AgentUpdate::Plan(_) => true,
            AgentUpdate::Child { .. }
            | AgentUpdate::Title(_)
            | AgentUpdate::Usage { .. }
            | AgentUpdate::Mode(_)
            | AgentUpdate::Commands(_)
            | AgentUpdate::Options(_)
            | AgentUpdate::CallOutput { .. }
            | AgentUpdate::CallResult { .. }
            | AgentUpdate::CallExit { .. }
            | AgentUpdate::Outcome(_) => false,
        },
    }
}
