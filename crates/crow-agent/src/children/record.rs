//! What is stored of a child that is an agent of others: what it was told and what it said. Crow's own children store
//! their sessions themselves.

use crow_core::{ContentPart, MessageId, Prompt, Reply, ReplyEnd, SessionId, TranscriptEntry};
use crow_store::{Draft, SessionLease, Store, StoreError};

use crate::clock;

/// One round on its way to the store.
pub(super) struct ChildRecorder {
    store: Store,
    writer: SessionLease,
    seq: u64,
    draft: Draft,
    said: String,
}

/// The longest text that is kept of one round; what a child says beyond it is seen and not kept.
const SAID_BYTES_MAX: usize = 1024 * 1024;

impl ChildRecorder {
    /// Stores what the child is told.
    pub(super) async fn begin(store: &Store, task: &SessionId, told: &str) -> Result<Self, StoreError> {
        let writer = store.acquire_session_lease(task).await?;
        let tip = store.session_tip(task).await?;
        let mut seq = tip.map_or(0, |tip| tip.n_messages);
        if let Some(unfinished) = store.read_draft(task, seq).await {
            store.append_entry(&writer, seq, &TranscriptEntry::Reply(unfinished), clock::now()).await?;
            seq += 1;
        }
        let prompt = Prompt { id: MessageId::from_seq(seq), parts: vec![ContentPart::Text(told.to_owned())] };
        store.append_entry(&writer, seq, &TranscriptEntry::Prompt(prompt), clock::now()).await?;
        seq += 1;
        let draft = store.begin_draft(&writer, seq);
        Ok(Self { store: store.clone(), writer, seq, draft, said: String::new() })
    }

    /// Takes what it says, before that is shown.
    pub(super) fn push_text(&mut self, text: &str) {
        if self.said.len() + text.len() <= SAID_BYTES_MAX {
            self.said.push_str(text);
            self.draft.push_text(text);
            self.draft.flush();
        }
    }

    /// Stores what it said.
    pub(super) async fn end(self) -> Result<(), StoreError> {
        let Self { store, writer, seq, draft, said } = self;
        let reply = Reply {
            id: MessageId::from_seq(seq),
            thought: String::new(),
            text: said,
            calls: Vec::new(),
            ended: ReplyEnd::Normally,
            usage: None,
            sealed: None,
            answered_by: None,
        };
        let stored = match reply.is_empty() {
            true => Ok(()),
            false => store.append_entry(&writer, seq, &TranscriptEntry::Reply(reply), clock::now()).await,
        };
        store.release_session_lease(writer).await;
        stored?;
        draft.discard();
        Ok(())
    }
}
