//! Between turns: the prompt, and an agent that speaks or asks meanwhile, because something that it was to do behind
//! the turns is done or needs a word. Nothing of that is passed over.

use crow_acp::{AgentUpdate, ClientEvent};
use tokio::time::MissedTickBehavior;

use super::{
    driver::{InterruptAction, NextPrompt, RunDriver, TICK},
    pending_question::wait_until_withdrawn,
    typed_input,
};
use crate::failure::{CliError, CliExitCode};

/// Beats without a word after which the prompt is shown again. An agent that speaks by itself does not say when it has
/// done; a model pauses for less.
const SILENT_TICKS: u32 = 8;

/// What the screen ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScreenBottom {
    /// The mark behind which a prompt is typed.
    Prompt,
    /// What the agent said, so many beats ago.
    Output { n_ticks: u32 },
}

impl RunDriver {
    /// Waits for the next prompt, past empty lines and past what the agent says meanwhile.
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
                // Before what is heard: an agent that never stops would keep a person from leaving.
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

    /// Shows where to type, once no question stands on the screen any more.
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

    /// Takes in what the agent says or asks by itself.
    async fn handle_event(
        &mut self,
        event: ClientEvent,
        bottom: ScreenBottom,
    ) -> Result<ScreenBottom, CliError> {
        let is_shown = is_visible(&event);
        if is_shown && bottom == ScreenBottom::Prompt {
            // What was typed so far stays in the keyboard's hands.
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
    CliError::new(CliExitCode::Failed, "the agent has gone")
}

/// Tells whether a person sees something of it: lists and counts only keep us up to date.
fn is_visible(event: &ClientEvent) -> bool {
    match event {
        ClientEvent::Permission { .. } | ClientEvent::Form { .. } => true,
        ClientEvent::Said(_)
        | ClientEvent::Wanted(_)
        | ClientEvent::Claim { .. }
        | ClientEvent::Released { .. } => false,
        ClientEvent::Heard { heard: update, .. } => match update {
            AgentUpdate::Text(_)
            | AgentUpdate::Thought(_)
            | AgentUpdate::Notice(_)
            | AgentUpdate::Compaction(_)
            | AgentUpdate::Call { .. }
            | AgentUpdate::Prompt(_)
            | AgentUpdate::Plan(_) => true,
            AgentUpdate::Title(_)
            | AgentUpdate::Usage { .. }
            | AgentUpdate::Mode(_)
            | AgentUpdate::Commands(_)
            | AgentUpdate::Outcome(_) => false,
        },
    }
}
