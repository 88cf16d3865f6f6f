//! Which conversation in memory is which.

use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Identity of a conversation in memory. While it is the same, entries are only added; a copy has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranscriptIdentity(u64);

/// Identity of one value. It is no part of the content, so all are equal.
#[derive(Debug)]
pub(super) struct OwnIdentity(TranscriptIdentity);

impl OwnIdentity {
    pub(super) fn get(&self) -> TranscriptIdentity {
        self.0
    }
}

impl Default for OwnIdentity {
    fn default() -> Self {
        Self(TranscriptIdentity(NEXT.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Clone for OwnIdentity {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for OwnIdentity {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
