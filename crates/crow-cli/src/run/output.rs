//! The output of a run, whatever shows it.

use std::io;

use crow_acp::{AgentUpdate, PromptOutcome};
use crow_core::{Failure, SessionId};

use crate::failure::CliError;

/// Whether the session can be continued later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionRetention {
    /// Stored in the database or by the agent.
    Stored,
    /// Deleted when the program ends.
    Gone,
}

/// The output of a run: a terminal or JSON lines.
pub(crate) trait RunOutput: Send {
    fn on_session_opened(&mut self, session: &SessionId) -> io::Result<()>;
    /// The user is about to type the first prompt.
    fn on_first_prompt(&mut self) -> io::Result<()>;
    fn on_turn_start(&mut self) -> io::Result<()>;
    /// Whether something is shown that moves. If not, a silent agent wakes up nothing.
    fn is_animated(&self) -> bool {
        false
    }
    /// One interval passed during a turn, if something moves.
    fn on_tick(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// The user cancelled the turn, which has not ended yet.
    fn on_stopping(&mut self) -> io::Result<()>;
    /// The user is about to read and type on stderr.
    fn prepare_for_input(&mut self) -> io::Result<()>;
    /// The replay of earlier messages begins; `n_omitted` earlier prompts are left out.
    fn on_replay_start(&mut self, n_omitted: usize) -> io::Result<()>;
    fn on_replay_end(&mut self) -> io::Result<()>;
    /// The next update belongs to a new message.
    fn on_new_message(&mut self) -> io::Result<()>;
    fn on_update(&mut self, update: AgentUpdate) -> io::Result<()>;
    fn on_turn_end(&mut self, outcome: PromptOutcome) -> io::Result<()>;
    fn on_turn_failed(&mut self, failure: &Failure) -> io::Result<()>;
    /// A turn or the run ended with an error, which is not reported elsewhere.
    fn on_error(&mut self, error: &CliError) -> io::Result<()>;
    /// The run ends; prints how to continue, with the agent's name if it is not Crow.
    fn on_session_end(
        &mut self,
        session: &SessionId,
        retention: SessionRetention,
        continuation: ContinuationHint<'_>,
    ) -> io::Result<()>;
}

/// Parts of the command that continues the session, for the hint at the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContinuationHint<'a> {
    /// The agent, if it is not Crow.
    pub(crate) agent: Option<&'a str>,
    /// The session was in the interactive terminal.
    pub(crate) is_interactive: bool,
}
