//! Stores the prompts and messages of an external agent. Children that are Crow store their own sessions.

use crow_core::{ContentPart, MessageId, Prompt, Reply, ReplyEnd, SessionId, TranscriptEntry};
use crow_store::{Draft, SessionLease, Store, StoreError};

use crate::clock;

/// The record of one turn.
pub(super) struct ChildRecorder {
    store: Store,
    lease: SessionLease,
    seq: u64,
    draft: Draft,
    text: String,
}

/// The longest text stored for one turn; anything beyond it is displayed and not stored.
const TEXT_BYTES_MAX: usize = 1024 * 1024;

impl ChildRecorder {
    /// Stores the prompt.
    pub(super) async fn begin(
        store: &Store,
        task: &SessionId,
        prompt_text: &str,
    ) -> Result<Self, StoreError> {
        let lease = store.acquire_session_lease(task).await?;
        let tip = store.session_tip(task).await?;
        let mut seq = tip.map_or(0, |tip| tip.n_messages);
        if let Some(unfinished) = store.read_draft(task, seq).await {
            store.append_entry(&lease, seq, &TranscriptEntry::Reply(unfinished), clock::now()).await?;
            seq += 1;
        }
        let prompt =
            Prompt { id: MessageId::from_seq(seq), parts: vec![ContentPart::Text(prompt_text.to_owned())] };
        store.append_entry(&lease, seq, &TranscriptEntry::Prompt(prompt), clock::now()).await?;
        seq += 1;
        let draft = store.begin_draft(&lease, seq);
        Ok(Self { store: store.clone(), lease, seq, draft, text: String::new() })
    }

    /// Adds text of the child, before it is displayed.
    pub(super) fn push_text(&mut self, text: &str) {
        if self.text.len() + text.len() <= TEXT_BYTES_MAX {
            self.text.push_str(text);
            self.draft.push_text(text);
            self.draft.flush();
        }
    }

    /// Stores the reply.
    pub(super) async fn end(self) -> Result<(), StoreError> {
        let Self { store, lease, seq, draft, text } = self;
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
            false => store.append_entry(&lease, seq, &TranscriptEntry::Reply(reply), clock::now()).await,
        };
        store.release_session_lease(lease).await;
        stored?;
        draft.discard();
        Ok(())
    }
}
