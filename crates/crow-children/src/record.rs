//! Stores the prompts and messages of an external agent. Children that are Crow store their own sessions.

use std::sync::Arc;

use crow_core::{ContentPart, MessageId, Prompt, Reply, ReplyEnd, SessionId, TranscriptEntry};
use crow_store::{Draft, SessionLease, StoreError};

use crate::shared::ChildrenShared;

/// The record of one turn.
pub(crate) struct ChildRecorder {
    shared: Arc<ChildrenShared>,
    lease: SessionLease,
    seq: u64,
    draft: Draft,
    text: String,
}

/// The longest text stored for one turn; anything beyond it is displayed and not stored.
const TEXT_BYTES_MAX: usize = 1024 * 1024;

impl ChildRecorder {
    /// Stores the prompt.
    pub(crate) async fn begin(
        shared: &Arc<ChildrenShared>,
        task: &SessionId,
        prompt_text: &str,
    ) -> Result<Self, StoreError> {
        let (store, session) = (&shared.store, &shared.session);
        let lease = store.acquire_session_lease(task).await?;
        let tip = store.session_tip(task).await?;
        let mut seq = tip.map_or(0, |tip| tip.n_messages);
        if let Some(unfinished) = store.read_draft(task, seq).await {
            store.append_entry(&lease, seq, &TranscriptEntry::Reply(unfinished), session.now()).await?;
            seq += 1;
        }
        let prompt =
            Prompt { id: MessageId::from_seq(seq), parts: vec![ContentPart::Text(prompt_text.to_owned())] };
        store.append_entry(&lease, seq, &TranscriptEntry::Prompt(prompt), session.now()).await?;
        seq += 1;
        let draft = store.begin_draft(&lease, seq);
        Ok(Self { shared: shared.clone(), lease, seq, draft, text: String::new() })
    }

    /// Continues the record of a turn that an earlier process began; returns it with what the child had said.
    pub(crate) async fn resume(
        shared: &Arc<ChildrenShared>,
        task: &SessionId,
    ) -> Result<(Self, String), StoreError> {
        let store = &shared.store;
        let lease = store.acquire_session_lease(task).await?;
        let stored = store.load_session(task).await?;
        let seq = stored.as_ref().map_or(0, |stored| stored.session.n_messages);
        let draft = store.begin_draft(&lease, seq);
        let mut recorder = Self { shared: shared.clone(), lease, seq, draft, text: String::new() };
        let Some(stored) = stored else { return Ok((recorder, String::new())) };
        let said = match (stored.unfinished_reply, stored.entries.last()) {
            (Some(unfinished), _) => {
                recorder.push_text(&unfinished.text);
                unfinished.text
            }
            // It was stored, and the end of the task was not.
            (None, Some(TranscriptEntry::Reply(reply))) => reply.text.clone(),
            (None, _) => String::new(),
        };
        Ok((recorder, said))
    }

    /// Separates what follows from the text so far.
    pub(crate) fn begin_paragraph(&mut self) {
        if !self.text.is_empty() {
            self.push_text("\n\n");
        }
    }

    /// Adds text of the child, before it is displayed.
    pub(crate) fn push_text(&mut self, text: &str) {
        if self.text.len() + text.len() <= TEXT_BYTES_MAX {
            self.text.push_str(text);
            self.draft.push_text(text);
            self.draft.flush();
        }
    }

    /// Stores the reply.
    pub(crate) async fn end(self) -> Result<(), StoreError> {
        let Self { shared, lease, seq, draft, text } = self;
        let store = &shared.store;
        let reply = Reply {
            id: MessageId::from_seq(seq),
            thought: String::new(),
            text,
            calls: Vec::new(),
            end: ReplyEnd::Complete,
            usage: None,
            provider_state: None,
            fallback_model: None,
        };
        let stored = match reply.is_empty() {
            true => Ok(()),
            false => {
                store.append_entry(&lease, seq, &TranscriptEntry::Reply(reply), shared.session.now()).await
            }
        };
        store.release_session_lease(lease).await;
        stored?;
        draft.discard();
        Ok(())
    }
}
