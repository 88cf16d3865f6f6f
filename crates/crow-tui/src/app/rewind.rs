//! Going back to an earlier prompt: what is offered for it, and how far it is. Knows no key and no row.

use crow_acp::EarlierPrompt;
use crow_core::{MessageId, SessionId};

/// A way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RewindWay {
    /// A copy of the session that ends before the prompt.
    Conversation,
    /// Undoes the changes of files.
    Files,
    Both,
    /// The text of the prompt, and nothing else.
    Text,
}

/// A prompt of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RewindTarget {
    /// The message, if the agent can go back to it.
    pub(crate) message: Option<MessageId>,
    pub(crate) text: String,
    /// The same text was sent this often since.
    pub(crate) n_repeats: usize,
    /// Turns whose changes of files have to be undone.
    pub(crate) n_undoable_turns: u64,
    pub(crate) n_undoable_files: u64,
}

/// The way back to a prompt, step by step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RewindState {
    /// The prompts of the open list, newest first.
    pub(crate) targets: Vec<RewindTarget>,
    /// The prompt that was chosen.
    pub(crate) chosen: Option<RewindTarget>,
    /// The prompt whose copy is opened after the undo that runs.
    pub(crate) copy_after_turn: Option<RewindTarget>,
    /// The prompt whose copy is being opened.
    pub(crate) copy: Option<RewindTarget>,
    /// The session that it is a copy of.
    pub(crate) origin: Option<SessionId>,
}

impl RewindWay {
    pub(crate) const ALL: [Self; 4] = [Self::Conversation, Self::Files, Self::Both, Self::Text];

    /// The name in the list of ways.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Conversation => "conversation",
            Self::Files => "files",
            Self::Both => "both",
            Self::Text => "text",
        }
    }
}

impl RewindTarget {
    /// Returns the targets of an agent's list, newest first.
    pub(crate) fn from_prompts(prompts: Vec<EarlierPrompt>) -> Vec<Self> {
        let mut targets: Vec<Self> = Vec::new();
        for prompt in prompts {
            let n_repeats = targets.iter().filter(|later| later.text == prompt.text).count();
            targets.push(Self {
                message: Some(prompt.message),
                text: prompt.text,
                n_repeats,
                n_undoable_turns: prompt.n_undoable_turns,
                n_undoable_files: prompt.n_undoable_files,
            });
        }
        targets
    }

    /// Returns the targets of prompts that only this client knows, newest first.
    pub(crate) fn from_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<Self> {
        let target = |text: &str| Self {
            message: None,
            text: text.to_owned(),
            n_repeats: 0,
            n_undoable_turns: 0,
            n_undoable_files: 0,
        };
        texts.map(target).collect()
    }

    /// The ways back that the agent has.
    pub(crate) fn ways(&self) -> Vec<RewindWay> {
        let can_fork = self.message.is_some();
        let can_undo = can_fork && self.n_undoable_turns > 0;
        let is_offered = |way: &RewindWay| match way {
            RewindWay::Conversation => can_fork,
            RewindWay::Files | RewindWay::Both => can_undo,
            RewindWay::Text => true,
        };
        RewindWay::ALL.into_iter().filter(is_offered).collect()
    }
}
