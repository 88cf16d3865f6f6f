//! Between turns: the prompt, and an agent that speaks or asks meanwhile, because something that it was to do behind
//! the turns is done or needs a word. Nothing of that is passed over.

use crow_acp::{ClientEvent, Heard};
use tokio::time::MissedTickBehavior;

use super::{
    asked::withdrawn,
    driver::{BEAT, Driver, Interrupt, Spoken},
    speak,
};
use crate::failure::{Code, Exit};

/// Beats without a word after which the prompt is shown again. An agent that speaks by itself does not say when it has
/// done; a model pauses for less.
const SILENT_BEATS: u32 = 8;

/// What the screen ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bottom {
    /// The mark behind which a prompt is typed.
    Prompt,
    /// What the agent said, so many beats ago.
    Words { n_beats: u32 },
}

impl Driver {
    /// Waits for the next prompt, past empty lines and past what the agent says meanwhile.
    pub(super) async fn next_prompt(&mut self) -> Result<Spoken, Exit> {
        let connection = self.connection.clone();
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
        if let Some(asked) = self.asked.take() {
            // The end of its turn was written below it.
            self.show_question(&asked)?;
            self.asked = Some(asked);
        }
        let mut bottom = self.prompt().await?;
        loop {
            if let Some(event) = self.kept.pop_front() {
                bottom = self.overhear(event, bottom).await?;
                continue;
            }
            tokio::select! {
                biased;
                _ = self.signals.next() => return Err(interrupted()?),
                // Before what is heard: an agent that never stops would keep a person from leaving.
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
                event = self.heard.recv() => match event {
                    Some(event) => bottom = self.overhear(event, bottom).await?,
                    None => return Err(gone()),
                },
                () = connection.closed() => return Err(gone()),
                _ = beat.tick(), if matches!(bottom, Bottom::Words { .. }) => bottom = self.on_beat(bottom).await?,
            }
        }
    }

    /// Shows where to type, once no question stands on the screen any more.
    async fn prompt(&mut self) -> Result<Bottom, Exit> {
        let connection = self.connection.clone();
        while self.asked.is_some() {
            tokio::select! {
                biased;
                _ = self.signals.next() => return Err(interrupted()?),
                typing = self.typed.answer() => self.on_typing(typing?)?,
                () = withdrawn(&mut self.asked) => self.drop_question()?,
                () = connection.closed() => return Err(gone()),
            }
        }
        self.plan.speaker.pause()?;
        speak::mark("› ")?;
        Ok(Bottom::Prompt)
    }

    /// Takes in what the agent says or asks by itself.
    async fn overhear(&mut self, event: ClientEvent, bottom: Bottom) -> Result<Bottom, Exit> {
        let is_seen = is_seen(&event);
        if is_seen && bottom == Bottom::Prompt {
            // What was typed so far stays in the keyboard's hands.
            speak::mark("\n")?;
        }
        self.asked = self.on_event(event, Interrupt::Cancels).await?;
        match is_seen {
            _ if self.asked.is_some() => self.prompt().await,
            true => Ok(Bottom::Words { n_beats: 0 }),
            false => Ok(bottom),
        }
    }

    async fn on_beat(&mut self, bottom: Bottom) -> Result<Bottom, Exit> {
        match bottom {
            Bottom::Words { n_beats } if n_beats < SILENT_BEATS => {
                self.plan.speaker.beat()?;
                Ok(Bottom::Words { n_beats: n_beats + 1 })
            }
            Bottom::Words { .. } => self.prompt().await,
            Bottom::Prompt => Ok(bottom),
        }
    }
}

fn interrupted() -> Result<Exit, Exit> {
    speak::mark("\n")?;
    Ok(Exit::quiet(Code::Interrupted))
}

fn gone() -> Exit {
    Exit::new(Code::Failed, "the agent has gone")
}

/// Tells whether a person sees something of it: lists and counts only keep us up to date.
fn is_seen(event: &ClientEvent) -> bool {
    match event {
        ClientEvent::Permission { .. } | ClientEvent::Form { .. } => true,
        ClientEvent::Said(_)
        | ClientEvent::Wanted(_)
        | ClientEvent::Claim { .. }
        | ClientEvent::Released { .. } => false,
        ClientEvent::Heard { heard, .. } => match heard {
            Heard::Text(_)
            | Heard::Thought(_)
            | Heard::Notice(_)
            | Heard::Compaction(_)
            | Heard::Call { .. }
            | Heard::Prompt(_)
            | Heard::Plan(_) => true,
            Heard::Title(_)
            | Heard::Usage { .. }
            | Heard::Mode(_)
            | Heard::Commands(_)
            | Heard::Outcome(_) => false,
        },
    }
}
