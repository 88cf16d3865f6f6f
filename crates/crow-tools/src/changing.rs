//! The one way in which a tool changes a file: what is there is kept first, then it is replaced, on disk or through the
//! client. Knows no tool, and not where things are kept.

use std::{
    path::{Path, PathBuf},
    pin::Pin,
};

use crow_acp::Editor;
use crow_core::{ContentHash, undo::Before};
use sha2::{Digest, Sha256};

use crate::{
    ToolCx,
    buffers::{self, Via},
    edit::CHANGED,
    files::{self, Replacement, Snapshot},
    text::{Decoded, Encoding, decode, encode},
    tool::{Refusal, off_thread},
    workspace::Stamp,
};

/// What the model has to know when an editor formats what it saves.
const CHANGED_BY_EDITOR: &str =
    "\n(the editor changed the text while saving; read the file before the next edit)";

/// What a person has to know before they rely on undoing it.
const NOT_KEPT: &str = "\n(the file was too large to keep; this change cannot be undone)";

/// What a text in Unicode may begin with.
const BOM: char = '\u{feff}';

/// Something that is kept, on its way.
pub type Keeping<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Keeps what one call is about to change, so that it can be undone.
pub trait Keeper: Send + Sync {
    /// Keeps what is at a resolved path before `after` is put there; the other side is why it could not be kept.
    fn keep<'a>(
        &'a self,
        path: &'a Path,
        before: Before,
        after: ContentHash,
    ) -> Keeping<'a, Result<(), String>>;

    /// Hears that the change kept last left something else; `None` is no file.
    fn left(&self, after: Option<ContentHash>) -> Keeping<'_, ()>;
}

/// What a tool found before it worked out a change.
#[derive(Debug)]
pub(crate) enum Old<'a> {
    Nothing,
    /// A file on disk.
    Disk(&'a str),
    /// What the client has, saved or not.
    Buffer(&'a str),
    /// Something that is no text, or too large to look at.
    Unseen,
}

/// A change of a file, worked out.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    /// What the tool does, for a refusal.
    pub(crate) verb: &'static str,
    pub(crate) file_path: &'a str,
    pub(crate) old: Old<'a>,
    pub(crate) text: String,
    /// How the file is written, which stays so.
    pub(crate) encoding: Encoding,
}

/// A change that was made.
#[derive(Debug)]
pub(crate) struct Made {
    /// What the file holds now.
    pub(crate) text: String,
    /// What else there is to know.
    pub(crate) note: String,
}

/// Names a content.
pub(crate) fn hash(bytes: &[u8]) -> ContentHash {
    ContentHash::new(Sha256::digest(bytes).into())
}

/// Names what was there; nothing where it is not known.
pub(crate) fn hash_of(before: &Before) -> Option<ContentHash> {
    match before {
        Before::Content { bytes, .. } => Some(hash(bytes)),
        Before::Missing | Before::Unknown => None,
    }
}

/// The permission bits of what was there.
pub(crate) fn mode_of(before: &Before) -> Option<u32> {
    match before {
        Before::Content { mode, .. } => *mode,
        Before::Missing | Before::Unknown => None,
    }
}

/// Keeps what is there, then makes a change.
pub(crate) async fn make(cx: &ToolCx<'_>, change: Change<'_>) -> Result<Made, Refusal> {
    let path = cx.judged(change.file_path)?;
    let snapshot = snapshot(cx, &change, path.clone()).await?;
    // What a client does not have open it would write in an encoding of its own.
    let is_its = buffers::via(cx, change.file_path) == Via::Client && change.encoding == Encoding::Utf8;
    let mut note = String::new();
    if cx.keeper.is_some() && snapshot.before == Before::Unknown {
        note.push_str(NOT_KEPT);
    }
    let text = match cx.editor.filter(|_| is_its) {
        Some(editor) => {
            let text = through_client(cx, editor, (change, path.clone()), snapshot).await?;
            if let Saved::Otherwise(_) = text {
                note.push_str(CHANGED_BY_EDITOR);
            }
            text.into_text()
        }
        None => on_disk(cx, (change, path.clone()), snapshot).await?,
    };
    cx.workspace.remember(path, Stamp::of(&text));
    Ok(Made { text, note })
}

impl Change<'_> {
    fn refuse(&self, cx: &ToolCx<'_>, why: &dyn std::fmt::Display) -> Refusal {
        Refusal(format!("could not {} {}: {why}", self.verb, cx.workspace.shown(self.file_path)))
    }
}

/// Takes down what would be replaced, which has to be what the tool has seen.
async fn snapshot(cx: &ToolCx<'_>, change: &Change<'_>, path: PathBuf) -> Result<Snapshot, Refusal> {
    let looked =
        off_thread(move || Ok(files::snapshot(&path).map(|snapshot| (stamp(&snapshot.before), snapshot))));
    let (now, mut snapshot) = looked.await?.map_err(|error| change.refuse(cx, &error))?;
    let is_seen = match change.old {
        Old::Nothing => snapshot.before == Before::Missing,
        Old::Disk(text) => now == Some(Stamp::of(text)),
        Old::Buffer(text) => {
            // What is not saved would be replaced as well. Beside an encoding that nobody knows it cannot be told.
            let is_another = now.is_some_and(|now| now != Stamp::of(text));
            if is_another || snapshot.before == Before::Missing {
                let bytes = on_disk_as(text, &snapshot.before);
                snapshot.before = Before::Content { bytes, mode: mode_of(&snapshot.before) };
            }
            true
        }
        Old::Unseen => true,
    };
    if is_seen { Ok(snapshot) } else { Err(change.refuse(cx, &CHANGED)) }
}

/// Writes down what a client holds as the file has it: an editor shows every line end as `\n`.
pub(crate) fn on_disk_as(text: &str, disk: &Before) -> Vec<u8> {
    let has_returns = match disk {
        // Of another encoding nothing is known.
        Before::Content { bytes, .. } => match decode(bytes.clone()) {
            Decoded::Text(disk, _) => {
                let n_returns = disk.matches("\r\n").count();
                n_returns > 0 && n_returns == disk.matches('\n').count()
            }
            Decoded::Lossy(_) | Decoded::Binary => false,
        },
        Before::Missing | Before::Unknown => false,
    };
    match has_returns && !text.contains('\r') {
        true => text.replace('\n', "\r\n").into_bytes(),
        false => text.as_bytes().to_vec(),
    }
}

/// Stamps what was there as the text that a tool makes of it.
pub(crate) fn stamp(before: &Before) -> Option<Stamp> {
    match before {
        Before::Content { bytes, .. } => match decode(bytes.clone()) {
            Decoded::Text(text, _) => Some(Stamp::of(&text)),
            Decoded::Lossy(_) | Decoded::Binary => None,
        },
        Before::Missing | Before::Unknown => None,
    }
}

async fn keep(
    cx: &ToolCx<'_>,
    (change, path): (&Change<'_>, &Path),
    before: Before,
    after: ContentHash,
) -> Result<(), Refusal> {
    let Some(keeper) = cx.keeper else { return Ok(()) };
    let kept = keeper.keep(path, before, after).await;
    kept.map_err(|error| {
        let why =
            format!("what is there now could not be kept for undoing it ({error}); nothing was changed");
        change.refuse(cx, &why)
    })
}

async fn left(cx: &ToolCx<'_>, after: Option<ContentHash>) {
    if let Some(keeper) = cx.keeper {
        keeper.left(after).await;
    }
}

async fn on_disk(
    cx: &ToolCx<'_>,
    (mut change, path): (Change<'_>, PathBuf),
    snapshot: Snapshot,
) -> Result<String, Refusal> {
    let Snapshot { before, mark } = snapshot;
    let (mut text, encoding) = (std::mem::take(&mut change.text), change.encoding);
    let (text, bytes, was, will) = off_thread(move || {
        // The encoding brings its own mark.
        if encoding != Encoding::Utf8 && text.starts_with(BOM) {
            text.remove(0);
        }
        let bytes = encode(&text, encoding);
        let (was, will) = (hash_of(&before), hash(&bytes));
        Ok((text, bytes, (before, was), will))
    })
    .await?;
    let (before, was) = was;
    keep(cx, (&change, &path), before, will).await?;
    let replaced =
        off_thread(move || Ok(files::replace(&path, Replacement { bytes: &bytes, mode: None, over: mark })));
    match replaced.await? {
        Ok(()) => Ok(text),
        Err(error) => {
            left(cx, was).await;
            Err(change.refuse(cx, &error))
        }
    }
}

/// What a client holds after it saved.
enum Saved {
    AsTold(String),
    Otherwise(String),
}

impl Saved {
    fn into_text(self) -> String {
        match self {
            Self::AsTold(text) | Self::Otherwise(text) => text,
        }
    }
}

async fn through_client(
    cx: &ToolCx<'_>,
    editor: &Editor,
    (mut change, path): (Change<'_>, PathBuf),
    snapshot: Snapshot,
) -> Result<Saved, Refusal> {
    let text = std::mem::take(&mut change.text);
    let will = hash(text.as_bytes());
    keep(cx, (&change, &path), snapshot.before, will).await?;
    let saved = buffers::save(cx, editor, change.file_path, &text).await;
    let saved = saved.map(|now| now.map_or_else(|| Saved::AsTold(text), Saved::Otherwise));
    if cx.keeper.is_some() {
        let held = saved.as_ref().ok().map(|(Saved::AsTold(text) | Saved::Otherwise(text))| text.as_str());
        // What a client that failed does later nobody knows.
        if let Some(now) = now_there(path, held).await.filter(|now| *now != Some(will)) {
            left(cx, now).await;
        }
    }
    saved
}

/// Names what is on disk where a client says that it holds this text; what it only holds goes by the text.
async fn now_there(path: PathBuf, held: Option<&str>) -> Option<Option<ContentHash>> {
    let looked = off_thread(move || {
        let before = files::snapshot(&path).ok().map(|snapshot| snapshot.before);
        Ok(before.map(|before| (stamp(&before), hash_of(&before), before)))
    });
    let on_disk = looked.await.ok().flatten();
    match (on_disk, held) {
        (Some((stamp, hash, _)), Some(held)) if stamp == Some(Stamp::of(held)) => Some(hash),
        (Some((_, _, before)), Some(held)) => Some(Some(hash(&on_disk_as(held, &before)))),
        (None, Some(held)) => Some(Some(hash(held.as_bytes()))),
        (on_disk, None) => on_disk.map(|(_, hash, _)| hash),
    }
}
