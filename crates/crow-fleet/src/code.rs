//! The code of a task: a bundle of its parent's commit on the way there, and one of its branch on the way back. A bundle is
//! stored in chunks, and a message says which bytes they must be: nothing else is taken.

mod transfer;

use std::sync::{Arc, Mutex, PoisonError};

use crow_core::GIT_BUNDLE_BYTES_MAX;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub(crate) use self::transfer::{BundleSubjects, clear_bundle, download_bundle, upload_bundle};
use crate::subject::{is_subject_token, random_name};

/// Bytes of a chunk; a server takes messages of a megabyte unless it is told otherwise.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;

/// Digits of a SHA-256.
const DIGEST_LEN: usize = 64;

/// The longest reason of a worker why it sends no code.
const REASON_CHARS_MAX: usize = 500;

/// A bundle as it was announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BundleRecord {
    /// The name of the upload in the subjects of its chunks. It cannot be guessed, and no two uploads share it at a time.
    pub(crate) name: String,
    pub(crate) n_bytes: u64,
    /// The SHA-256 of the bytes, in hexadecimal digits.
    pub(crate) digest: String,
}

/// The code of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CodeRecord {
    /// The name of the task's branch, without its prefix.
    pub(crate) name: String,
    /// The commit to begin from.
    pub(crate) commit: String,
    /// The directory of the task below the root of the repository.
    pub(crate) directory: String,
    pub(crate) bundles: CodeBundles,
}

/// The bundles of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CodeBundles {
    /// A commit with its history, which a worker keeps.
    pub(crate) base: BundleRecord,
    /// The commit of the task without that, unless it is the same.
    pub(crate) since: Option<BundleRecord>,
}

/// The code after the end of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EndCode {
    Unchanged,
    /// The branch, without what its parent has.
    Bundle(BundleRecord),
    /// The branch without work that only the worker has, for this reason.
    Partial(BundleRecord, String),
    /// The work did not leave the worker, for this reason.
    Lost(String),
}

/// A place for the code of a task after its end, once that was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct CodeReturn(Arc<Mutex<Option<ReturnedCode>>>);

/// The code after the end of a task, with who said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReturnedCode {
    pub(crate) worker: String,
    pub(crate) code: EndCode,
}

impl BundleRecord {
    /// Describes a new upload of these bytes.
    pub(crate) fn new(bytes: &[u8]) -> Result<Self, String> {
        Ok(Self::with_name(random_name()?, bytes))
    }

    /// Describes an upload of these bytes that replaces the one with the same name.
    pub(crate) fn with_name(name: String, bytes: &[u8]) -> Self {
        Self { name, n_bytes: bytes.len() as u64, digest: hex_digest(bytes) }
    }

    /// Whether it can be the description of a bundle.
    pub(crate) fn is_valid(&self) -> bool {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        is_subject_token(&self.name)
            && (1..=GIT_BUNDLE_BYTES_MAX).contains(&self.n_bytes)
            && self.digest.len() == DIGEST_LEN
            && self.digest.bytes().all(is_digit)
    }

    /// The length of each chunk.
    pub(crate) fn chunk_lengths(&self) -> impl Iterator<Item = usize> + use<> {
        let n_bytes = usize::try_from(self.n_bytes).unwrap_or(usize::MAX);
        (0..n_bytes.div_ceil(CHUNK_BYTES)).map(move |index| CHUNK_BYTES.min(n_bytes - index * CHUNK_BYTES))
    }

    /// Whether these are its bytes.
    pub(crate) fn matches(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 == self.n_bytes && hex_digest(bytes) == self.digest
    }
}

impl EndCode {
    /// Creates the end of work that is lost.
    pub(crate) fn lost(reason: &str) -> Self {
        Self::Lost(truncate_reason(reason))
    }

    /// Creates the end of work of which a part is lost.
    pub(crate) fn partial(bundle: BundleRecord, reason: &str) -> Self {
        Self::Partial(bundle, truncate_reason(reason))
    }

    /// Whether only the worker has some of the work.
    pub(crate) fn has_unsent_work(&self) -> bool {
        match self {
            Self::Partial(..) | Self::Lost(_) => true,
            Self::Unchanged | Self::Bundle(_) => false,
        }
    }
}

impl CodeReturn {
    /// Records the code after the end.
    pub(crate) fn set(&self, worker: &str, code: EndCode) {
        let returned = ReturnedCode { worker: worker.to_owned(), code };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(returned);
    }

    /// Takes it; `None` if no end has said anything.
    pub(crate) fn take(&self) -> Option<ReturnedCode> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn truncate_reason(reason: &str) -> String {
    reason.chars().take(REASON_CHARS_MAX).collect()
}

fn hex_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
