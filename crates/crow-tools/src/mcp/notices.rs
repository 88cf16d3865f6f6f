//! Notices about the servers for the user, until they are taken.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use tokio::sync::Notify;

/// Only a server whose notices are never read has more; the oldest are dropped.
const NOTICES_MAX: usize = 64;

#[derive(Default)]
pub(super) struct McpNotices {
    notices: Mutex<VecDeque<String>>,
    added: Notify,
}

impl McpNotices {
    pub(super) fn post(&self, notice: String) {
        tracing::info!("{notice}");
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.len() == NOTICES_MAX {
            notices.pop_front();
        }
        notices.push_back(notice);
        drop(notices);
        self.added.notify_one();
    }

    pub(super) fn take_all(&self) -> Vec<String> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    pub(super) async fn next_batch(&self) -> Vec<String> {
        loop {
            let notices = self.take_all();
            if !notices.is_empty() {
                return notices;
            }
            self.added.notified().await;
        }
    }
}
