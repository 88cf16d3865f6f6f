//! What is stored of a child that is an agent of others: what it was told and what it said. Crow's own children store
//! their sessions themselves.

use crow_core::{Ended, Entry, MessageId, Part, Prompt, Reply, SessionId};
use crow_store::{Draft, Store, StoreError, Writer};

use crate::clock;

/// One round on its way to the store.
pub(super) struct Record {
    store: Store,
    writer: Writer,
    seq: u64,
    draft: Draft,
    said: String,
}

/// The longest text that is kept of one round; what a child says beyond it is seen and not kept.
const SAID_BYTES_MAX: usize = 1024 * 1024;

impl Record {
    /// Stores what the child is told.
    pub(super) async fn begin(store: &Store, task: &SessionId, told: &str) -> Result<Self, StoreError> {
        let writer = store.begin_writing(task).await?;
        let tip = store.tip(task).await?;
        let mut seq = tip.map_or(0, |tip| tip.n_messages);
        if let Some(unfinished) = store.read_draft(task, seq).await {
            store.append(&writer, seq, &Entry::Reply(unfinished), clock::now()).await?;
            seq += 1;
        }
        let prompt = Prompt { id: MessageId::at(seq), parts: vec![Part::Text(told.to_owned())] };
        store.append(&writer, seq, &Entry::Prompt(prompt), clock::now()).await?;
        seq += 1;
        let draft = store.draft(&writer, seq);
        Ok(Self { store: store.clone(), writer, seq, draft, said: String::new() })
    }

    /// Takes what it says, before that is shown.
    pub(super) fn says(&mut self, text: &str) {
        if self.said.len() + text.len() <= SAID_BYTES_MAX {
            self.said.push_str(text);
            self.draft.text(text);
            self.draft.keep();
        }
    }

    /// Stores what it said.
    pub(super) async fn end(self) -> Result<(), StoreError> {
        let Self { store, writer, seq, draft, said } = self;
        let reply = Reply {
            id: MessageId::at(seq),
            thought: String::new(),
            text: said,
            calls: Vec::new(),
            ended: Ended::Normally,
            usage: None,
            sealed: None,
            answered_by: None,
        };
        let stored = match reply.is_empty() {
            true => Ok(()),
            false => store.append(&writer, seq, &Entry::Reply(reply), clock::now()).await,
        };
        store.end_writing(writer).await;
        stored?;
        draft.done();
        Ok(())
    }
}
