//! Between turns: the prompt, and an agent that speaks or asks meanwhile, because something that it was to do behind
//! the turns is done or needs a word. Nothing of that is passed over.

use crow_acp::{AgentUpdate, ClientEvent};
use tokio::time::MissedTickBehavior;

use super::{
    asked::wait_until_withdrawn,
    driver::{BEAT, InterruptAction, NextPrompt, RunDriver},
    speak,
};
use crate::failure::{CliError, CliExitCode};

/// Beats without a word after which the prompt is shown again. An agent that speaks by itself does not say when it has
/// done; a model pauses for less.
const SILENT_BEATS: u32 = 8;

/// What the screen ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScreenBottom {
    /// The mark behind which a prompt is typed.
    Prompt,
    /// What the agent said, so many beats ago.
    Words { n_beats: u32 },
}

impl RunDriver {
    /// Waits for the next prompt, past empty lines and past what the agent says meanwhile.
    pub(super) async fn next_prompt(&mut self) -> Result<NextPrompt, CliError> {
        let connection = self.connection.clone();
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
        if let Some(asked) = self.asked.take() {
            // The end of its turn was written below it.
            self.show_question(&asked)?;
            self.asked = Some(asked);
        }
        let mut bottom = self.show_prompt().await?;
        loop {
            if let Some(event) = self.kept.pop_front() {
                bottom = self.handle_event(event, bottom).await?;
                continue;
            }
            tokio::select! {
                biased;
                _ = self.signals.next_request() => return Err(interrupted_exit()?),
                // Before what is heard: an agent that never stops would keep a person from leaving.
                line = self.typed.next_line() => match line? {
                    None => {
                        speak::write_prompt("\n")?;
                        return Ok(NextPrompt::End);
                    }
                    Some(line) => match line.trim() {
                        "exit" | "quit" => return Ok(NextPrompt::End),
                        "" => speak::write_prompt("› ")?,
                        _ => return Ok(NextPrompt::Prompt(line)),
                    },
                },
                event = self.heard.recv() => match event {
                    Some(event) => bottom = self.handle_event(event, bottom).await?,
                    None => return Err(agent_gone_exit()),
                },
                () = connection.wait_closed() => return Err(agent_gone_exit()),
                _ = beat.tick(), if matches!(bottom, ScreenBottom::Words { .. }) => bottom = self.on_tick(bottom).await?,
            }
        }
    }

    /// Shows where to type, once no question stands on the screen any more.
    async fn show_prompt(&mut self) -> Result<ScreenBottom, CliError> {
        let connection = self.connection.clone();
        while self.asked.is_some() {
            tokio::select! {
                biased;
                _ = self.signals.next_request() => return Err(interrupted_exit()?),
                typing = self.typed.next_answer() => self.on_typing(typing?)?,
                () = wait_until_withdrawn(&mut self.asked) => self.drop_question()?,
                () = connection.wait_closed() => return Err(agent_gone_exit()),
            }
        }
        self.plan.speaker.prepare_for_input()?;
        speak::write_prompt("› ")?;
        Ok(ScreenBottom::Prompt)
    }

    /// Takes in what the agent says or asks by itself.
    async fn handle_event(
        &mut self,
        event: ClientEvent,
        bottom: ScreenBottom,
    ) -> Result<ScreenBottom, CliError> {
        let is_seen = is_visible(&event);
        if is_seen && bottom == ScreenBottom::Prompt {
            // What was typed so far stays in the keyboard's hands.
            speak::write_prompt("\n")?;
        }
        self.asked = self.on_event(event, InterruptAction::Cancels).await?;
        match is_seen {
            _ if self.asked.is_some() => self.show_prompt().await,
            true => Ok(ScreenBottom::Words { n_beats: 0 }),
            false => Ok(bottom),
        }
    }

    async fn on_tick(&mut self, bottom: ScreenBottom) -> Result<ScreenBottom, CliError> {
        match bottom {
            ScreenBottom::Words { n_beats } if n_beats < SILENT_BEATS => {
                self.plan.speaker.on_tick()?;
                Ok(ScreenBottom::Words { n_beats: n_beats + 1 })
            }
            ScreenBottom::Words { .. } => self.show_prompt().await,
            ScreenBottom::Prompt => Ok(bottom),
        }
    }
}

fn interrupted_exit() -> Result<CliError, CliError> {
    speak::write_prompt("\n")?;
    Ok(CliError::without_message(CliExitCode::Interrupted))
}

fn agent_gone_exit() -> CliError {
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
        ClientEvent::Heard { heard, .. } => match heard {
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
