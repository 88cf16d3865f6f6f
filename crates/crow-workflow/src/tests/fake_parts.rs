//! The log, the approvals, the recorder and the forms of a scripted session.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crow_core::ContentHash;
use crow_core::undo::UndoSnapshot;
use crow_speckit::FileApprovals;
use crow_tools::{UndoFuture, UndoRecorder};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::{FormAnswer, QuestionForm, UserQuestions};

/// The log of a session, shared with its recorders and forms.
#[derive(Clone, Default)]
pub(super) struct SessionLog {
    pub(super) text: Arc<Mutex<String>>,
    pub(super) root: PathBuf,
}

impl SessionLog {
    pub(super) fn line(&self, line: &str) {
        let root = self.root.display().to_string();
        let line = line.trim().replace(&format!("{root}/"), "").replace(&root, "$ROOT");
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(&line);
        text.push('\n');
    }
}

/// Files that the user approved.
#[derive(Debug, Default)]
pub(super) struct ApprovedTexts(pub(super) Mutex<BTreeSet<(PathBuf, Vec<u8>)>>);

impl FileApprovals for ApprovedTexts {
    fn is_approved(&self, path: &Path, bytes: &[u8]) -> bool {
        self.0.lock().unwrap().contains(&(path.to_owned(), bytes.to_vec()))
    }
}

/// Logs recorded changes.
pub(super) struct FakeRecorder {
    pub(super) log: SessionLog,
}

impl UndoRecorder for FakeRecorder {
    fn record_change<'a>(
        &'a self,
        path: &'a Path,
        _before: UndoSnapshot,
        _after: ContentHash,
    ) -> UndoFuture<'a, Result<(), String>> {
        self.log.line(&format!("recorded: {}", path.display()));
        Box::pin(async { Ok(()) })
    }

    fn correct_after(&self, _after: Option<ContentHash>) -> UndoFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// Answers forms as the script says.
pub(super) struct FakeForms {
    pub(super) answers: Arc<Mutex<VecDeque<FormAnswer>>>,
    pub(super) log: SessionLog,
}

impl UserQuestions for FakeForms {
    fn ask_in_form<'a>(
        &'a self,
        form: QuestionForm,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, FormAnswer> {
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or(FormAnswer::Unavailable);
        self.log.line(&format!("form: {} -> {answer:?}", form.message));
        Box::pin(async move { answer })
    }

    fn send_text(&self, text: &str) {
        self.log.line(&format!("question: {}", text.trim()));
    }
}
