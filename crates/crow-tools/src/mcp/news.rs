//! What a person should know of the servers, until somebody takes it.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use tokio::sync::Notify;

/// More than this only a server says that nobody listens to; the oldest goes.
const SENTENCES_MAX: usize = 64;

#[derive(Default)]
pub(super) struct McpNotices {
    sentences: Mutex<VecDeque<String>>,
    said: Notify,
}

impl McpNotices {
    pub(super) fn post(&self, sentence: String) {
        tracing::info!("{sentence}");
        let mut sentences = self.sentences.lock().unwrap_or_else(PoisonError::into_inner);
        if sentences.len() == SENTENCES_MAX {
            sentences.pop_front();
        }
        sentences.push_back(sentence);
        drop(sentences);
        self.said.notify_one();
    }

    pub(super) fn take_all(&self) -> Vec<String> {
        self.sentences.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    pub(super) async fn next_batch(&self) -> Vec<String> {
        loop {
            let taken = self.take_all();
            if !taken.is_empty() {
                return taken;
            }
            self.said.notified().await;
        }
    }
}
