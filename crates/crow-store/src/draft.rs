//! The text of a reply that is still streaming. Text is on disk before the user sees it, so the death of the process
//! loses none of it; the reply itself is stored when it is complete.
//!
//! A draft is a file that only grows: its owner, then pieces. A file that ends in the middle of a piece is read up to
//! there.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use crow_core::{Failure, FailureKind, MessageId, Reply, ReplyEnd, SessionId};

use crate::hashing;

/// More than any model sends at once; a longer file is not a draft.
const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The reason why a reply that was read from its draft is incomplete.
const INTERRUPTED: &str = "Crow stopped while the model was replying; this is as far as it got.";

/// The kind of a piece.
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
    buffer: Vec<u8>,
    state: DraftState,
}

#[derive(Debug)]
enum DraftState {
    /// Nothing has arrived yet, and there is no file.
    Empty,
    Open(File),
    /// Writing failed; the reply continues without a draft.
    Failed,
}

impl Draft {
    pub(crate) fn new(directory: &Path, session: &SessionId, seq: u64) -> Self {
        let path = draft_path(directory, session);
        Self { path, session: session.clone(), seq, buffer: Vec::new(), state: DraftState::Empty }
    }

    /// Appends thinking.
    pub fn push_thought(&mut self, text: &str) {
        self.push_piece(PieceKind::Thought, text);
    }

    /// Appends text.
    pub fn push_text(&mut self, text: &str) {
        self.push_piece(PieceKind::Text, text);
    }

    fn push_piece(&mut self, kind: PieceKind, text: &str) {
        if let (Ok(len), false) = (u32::try_from(text.len()), text.is_empty()) {
            self.buffer.push(kind as u8);
            self.buffer.extend_from_slice(&len.to_le_bytes());
            self.buffer.extend_from_slice(text.as_bytes());
        }
    }

    /// Writes what was appended to the file. It is short and goes to the page cache, so it does not wait for a disk.
    pub fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let result = match &mut self.state {
            DraftState::Failed => Ok(()),
            DraftState::Open(file) => file.write_all(&self.buffer),
            DraftState::Empty => self.create_file(),
        };
        if let Err(error) = result {
            tracing::warn!(%error, "a reply has no draft; its text is stored only when it ends");
            self.state = DraftState::Failed;
        }
        self.buffer.clear();
    }

    fn create_file(&mut self) -> io::Result<()> {
        if let Some(directory) = self.path.parent() {
            crow_files::create_private_dir(directory)?;
        }
        let mut file = crow_files::open_private_file(&self.path)?;
        file.set_len(0)?;
        let mut header = self.seq.to_le_bytes().to_vec();
        // No ID is longer than 32 bits can count.
        header
            .extend_from_slice(&u32::try_from(self.session.as_str().len()).unwrap_or_default().to_le_bytes());
        header.extend_from_slice(self.session.as_str().as_bytes());
        header.append(&mut self.buffer);
        file.write_all(&header)?;
        self.state = DraftState::Open(file);
        Ok(())
    }

    /// Removes the file, because the reply is stored.
    pub fn discard(self) {
        if matches!(self.state, DraftState::Open(_)) {
            remove_draft_file(&self.path);
        }
    }
}

/// Reads the draft of the reply at `seq` of a session.
pub(crate) fn read_draft(directory: &Path, session: &SessionId, seq: u64) -> Option<Reply> {
    let mut bytes = Vec::new();
    let file = crow_files::open_to_read(&draft_path(directory, session)).ok()?;
    file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let (stored_seq, mut rest) = bytes.split_first_chunk()?;
    if u64::from_le_bytes(*stored_seq) != seq || take_text(&mut rest)? != session.as_str() {
        return None;
    }
    let (mut thought, mut text) = (String::new(), String::new());
    while let Some((&kind, after)) = rest.split_first() {
        rest = after;
        let Some(chunk) = take_text(&mut rest) else { break };
        match kind {
            kind if kind == PieceKind::Thought as u8 => thought.push_str(chunk),
            kind if kind == PieceKind::Text as u8 => text.push_str(chunk),
            _ => break,
        }
    }
    let end = ReplyEnd::Failed(Failure::new(FailureKind::Internal, INTERRUPTED));
    let id = MessageId::from_seq(seq);
    Some(Reply {
        id,
        thought,
        text,
        calls: Vec::new(),
        end,
        usage: None,
        provider_state: None,
        fallback_model: None,
    })
    .filter(|reply| !reply.is_empty())
}

/// Takes a length-prefixed text off the bytes.
fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let (len, after) = rest.split_first_chunk()?;
    let (text, after) = after.split_at_checked(usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
    *rest = after;
    std::str::from_utf8(text).ok()
}

/// Removes the draft of a session, if there is one.
pub(crate) fn delete_draft(directory: &Path, session: &SessionId) {
    remove_draft_file(&draft_path(directory, session));
}

fn draft_path(directory: &Path, session: &SessionId) -> PathBuf {
    // An imported session may have any name.
    directory.join(format!("{:016x}", hashing::short_hash(session.as_str()).cast_unsigned()))
}

fn remove_draft_file(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::debug!(%error, "could not remove a draft whose reply is stored");
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
    fn draft_is_read_up_to_any_truncation() {
        let directory = tempfile::tempdir().unwrap();
        let session = SessionId::new("otter");
        let mut draft = Draft::new(directory.path(), &session, 7);
        for word in ["One ", "zwölf ", "🦀"] {
            draft.push_text(word);
            draft.flush();
        }
        let path = draft_path(directory.path(), &session);
        let whole = fs::read(&path).unwrap();
        let mut seen = Vec::new();
        for len in 0..=whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            seen.extend(read_draft(directory.path(), &session, 7).map(|reply| reply.text));
        }
        seen.dedup();
        assert_eq!(seen, ["One ", "One zwölf ", "One zwölf 🦀"]);
    }
}
