//! The words of a reply that is still being said. What a person has seen is on disk before they see it, so the death
//! of the process loses none of it; the reply itself is stored when it is whole.
//!
//! A draft is a file that only grows: who it belongs to, then pieces. One that ends in the middle of a piece is read up
//! to there.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use crow_core::{Failure, FailureKind, MessageId, Reply, ReplyEnd, SessionId};

use crate::{hashing, private};

/// More than any model says at once; a file that is longer is none of ours.
const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Why a reply that was read from its draft has no end.
const INTERRUPTED: &str = "Crow stopped while the model was speaking; this is as far as it came.";

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceKind {
    Thought = 1,
    Text = 2,
}

/// The draft of one reply.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    session: SessionId,
    seq: u64,
    /// Pieces that are not on disk yet.
    waiting: Vec<u8>,
    state: DraftState,
}

#[derive(Debug)]
enum DraftState {
    /// Nothing was said yet, and there is no file.
    Silent,
    Open(File),
    /// The disk refused; the reply goes on without a draft.
    Refused,
}

impl Draft {
    pub(crate) fn new(folder: &Path, session: &SessionId, seq: u64) -> Self {
        let path = draft_path(folder, session);
        Self { path, session: session.clone(), seq, waiting: Vec::new(), state: DraftState::Silent }
    }

    /// Takes more of the reasoning.
    pub fn push_thought(&mut self, text: &str) {
        self.push_piece(PieceKind::Thought, text);
    }

    /// Takes more of the words.
    pub fn push_text(&mut self, text: &str) {
        self.push_piece(PieceKind::Text, text);
    }

    fn push_piece(&mut self, kind: PieceKind, text: &str) {
        if let (Ok(len), false) = (u32::try_from(text.len()), text.is_empty()) {
            self.waiting.push(kind as u8);
            self.waiting.extend_from_slice(&len.to_le_bytes());
            self.waiting.extend_from_slice(text.as_bytes());
        }
    }

    /// Brings what was taken to the file. It is short and goes to the system's memory, so it does not wait for a disk.
    pub fn flush(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let kept = match &mut self.state {
            DraftState::Refused => Ok(()),
            DraftState::Open(file) => file.write_all(&self.waiting),
            DraftState::Silent => self.create_file(),
        };
        if let Err(error) = kept {
            tracing::warn!(%error, "a reply has no draft; what is shown of it is stored with its end");
            self.state = DraftState::Refused;
        }
        self.waiting.clear();
    }

    fn create_file(&mut self) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            private::make_folder(folder)?;
        }
        let mut file = private::open_file(&self.path)?;
        file.set_len(0)?;
        let mut head = self.seq.to_le_bytes().to_vec();
        // No id is longer than a number of 32 bits.
        head.extend_from_slice(&u32::try_from(self.session.as_str().len()).unwrap_or_default().to_le_bytes());
        head.extend_from_slice(self.session.as_str().as_bytes());
        head.append(&mut self.waiting);
        file.write_all(&head)?;
        self.state = DraftState::Open(file);
        Ok(())
    }

    /// Removes the file: the reply is stored.
    pub fn discard(self) {
        if matches!(self.state, DraftState::Open(_)) {
            remove_draft_file(&self.path);
        }
    }
}

/// Reads what there is of the reply at place `seq` of a session.
pub(crate) fn read_draft(folder: &Path, session: &SessionId, seq: u64) -> Option<Reply> {
    let mut bytes = Vec::new();
    let file = private::open_read_only(&draft_path(folder, session)).ok()?;
    file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let (place, mut rest) = bytes.split_first_chunk()?;
    if u64::from_le_bytes(*place) != seq || take_text(&mut rest)? != session.as_str() {
        return None;
    }
    let (mut thought, mut said) = (String::new(), String::new());
    while let Some((&kind, after)) = rest.split_first() {
        rest = after;
        let Some(piece) = take_text(&mut rest) else { break };
        match kind {
            kind if kind == PieceKind::Thought as u8 => thought.push_str(piece),
            kind if kind == PieceKind::Text as u8 => said.push_str(piece),
            _ => break,
        }
    }
    let ended = ReplyEnd::Failed(Failure::new(FailureKind::Internal, INTERRUPTED));
    let id = MessageId::from_seq(seq);
    Some(Reply {
        id,
        thought,
        text: said,
        calls: Vec::new(),
        ended,
        usage: None,
        sealed: None,
        answered_by: None,
    })
    .filter(|reply| !reply.is_empty())
}

/// Takes a text with its length in front off the bytes.
fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let (len, after) = rest.split_first_chunk()?;
    let (text, after) = after.split_at_checked(usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
    *rest = after;
    std::str::from_utf8(text).ok()
}

/// Removes the draft of a session, if there is one.
pub(crate) fn delete_draft(folder: &Path, session: &SessionId) {
    remove_draft_file(&draft_path(folder, session));
}

fn draft_path(folder: &Path, session: &SessionId) -> PathBuf {
    // A session that was brought over may have any name.
    folder.join(format!("{:016x}", hashing::short_hash(session.as_str()).cast_unsigned()))
}

fn remove_draft_file(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::debug!(%error, "a draft stays; nobody reads it, since its reply is stored");
        }
        Ok(()) | Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Draft, draft_path, read_draft};
    use crow_core::SessionId;

    #[test]
    fn wherever_it_breaks_off_what_is_before_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let session = SessionId::new("otter");
        let mut draft = Draft::new(folder.path(), &session, 7);
        for word in ["One ", "zwölf ", "🦀"] {
            draft.push_text(word);
            draft.flush();
        }
        let path = draft_path(folder.path(), &session);
        let whole = fs::read(&path).unwrap();
        let mut seen = Vec::new();
        for len in 0..=whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            seen.extend(read_draft(folder.path(), &session, 7).map(|reply| reply.text));
        }
        seen.dedup();
        assert_eq!(seen, ["One ", "One zwölf ", "One zwölf 🦀"]);
    }
}
