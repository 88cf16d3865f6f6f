//! The files of recordings: one JSON value a line. The first is the request, the second the head of the answer,
//! then come its pieces, and a last line says how it ended; a file without that line is incomplete.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::redact::{SecretRedactor, SecretSet};
use super::{RecordingEnd, RecordingNote};

/// The format of the files.
const FORMAT: u64 = 1;

/// Characters of a name in the name of a file.
const NAME_LEN_MAX: usize = 40;

/// Names that others may take while one is looked for.
const TRIES_MAX: usize = 1000;

/// Answers at once; more of them are left over from a disk that was too slow.
const OPEN_MAX: usize = 256;

/// A question on its way to a file.
#[derive(Debug)]
pub(super) struct RecordedRequest {
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) method: String,
    /// Without what stands behind a question mark, where some have their keys.
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    pub(super) secrets: Vec<String>,
}

/// The head of an answer on its way to a file.
#[derive(Debug)]
pub(super) struct RecordedResponse {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) ms: u128,
}

/// Where the files go.
#[derive(Debug)]
pub(super) struct RecordingFolder {
    path: PathBuf,
    /// The number of the file made last.
    n: u64,
}

impl RecordingFolder {
    /// Makes the folder, or takes one that is there and can be written.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(path)?;
        let mut n = 0;
        for entry in std::fs::read_dir(path)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.split_once('-')?.0.parse().ok());
            n = n.max(number.unwrap_or_default());
        }
        let probe = path.join(format!(".recording-{}", std::process::id()));
        create_file(&probe)?;
        std::fs::remove_file(&probe)?;
        Ok(Self { path: path.to_owned(), n })
    }

    /// Makes the next file, which nobody had before.
    fn create_next(&mut self, name: &str) -> io::Result<File> {
        let mut taken = None;
        for _ in 0..TRIES_MAX {
            self.n = self.n.saturating_add(1);
            match create_file(&self.path.join(format!("{:04}-{name}.jsonl", self.n))) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = Some(error),
                made => return made,
            }
        }
        Err(taken.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into()))
    }
}

fn create_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create_new(true).open(path)
}

/// Writes what comes until nobody is left who sends.
pub(super) fn write_recordings(
    folder: RecordingFolder,
    inbox: &Receiver<RecordingNote>,
    n_bytes: &AtomicUsize,
) {
    let mut writer = RecordingWriter { folder, open: BTreeMap::new(), is_told: false };
    while let Ok(note) = inbox.recv() {
        let taken = match &note {
            RecordingNote::Asked(_, asked) => asked.body.len(),
            RecordingNote::Said { bytes, .. } => bytes.len(),
            RecordingNote::Answered(..) | RecordingNote::Ended { .. } => 0,
        };
        if let Err(error) = writer.handle_note(note)
            && !std::mem::replace(&mut writer.is_told, true)
        {
            tracing::warn!(%error, folder = %writer.folder.path.display(), "a recording could not be written");
        }
        n_bytes.fetch_sub(taken, Ordering::Relaxed);
    }
}

struct RecordingWriter {
    folder: RecordingFolder,
    open: BTreeMap<usize, RecordingFile>,
    /// Whoever reads the log knows that something goes wrong.
    is_told: bool,
}

/// One file.
struct RecordingFile {
    file: File,
    redactor: SecretRedactor,
    secrets: SecretSet,
}

impl RecordingWriter {
    fn handle_note(&mut self, note: RecordingNote) -> io::Result<()> {
        match note {
            RecordingNote::Asked(n, asked) => {
                if self.open.len() >= OPEN_MAX {
                    self.open.pop_first();
                }
                let page = RecordingFile::start(&mut self.folder, &asked)?;
                self.open.insert(n, page);
                Ok(())
            }
            RecordingNote::Answered(n, answered) => self.write_to(n, |page| page.write_response(&answered)),
            RecordingNote::Said { n, ms, bytes } => self.write_to(n, |page| page.write_chunk(ms, &bytes)),
            RecordingNote::Ended { n, ms, how, is_whole, written } => {
                let ended = self.write_to(n, |page| page.write_end(ms, how, is_whole));
                self.open.remove(&n);
                if let Some(written) = written
                    && written.send(()).is_err()
                {
                    tracing::debug!("the disk was too slow for whoever waited");
                }
                ended
            }
        }
    }

    /// Writes in a file that is open; one that cannot be written stays as far as it came.
    fn write_to(
        &mut self,
        n: usize,
        work: impl FnOnce(&mut RecordingFile) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(page) = self.open.get_mut(&n) else { return Ok(()) };
        let written = work(page);
        if written.is_err() {
            self.open.remove(&n);
        }
        written
    }
}

impl RecordingFile {
    fn start(folder: &mut RecordingFolder, asked: &RecordedRequest) -> io::Result<Self> {
        let secrets = SecretSet::new(&asked.secrets);
        let shown = |text: &str| secrets.redact_text(text);
        let name =
            format!("{}-{}", file_name_part(&shown(&asked.provider)), file_name_part(&shown(&asked.model)));
        let file = folder.create_next(&name)?;
        let head = json!({
            "recording": FORMAT,
            "provider": shown(&asked.provider),
            "model": shown(&asked.model),
            "method": asked.method,
            "path": shown(&asked.path),
            "headers": redact_headers(&secrets, &asked.headers),
        });
        let body = String::from_utf8_lossy(&secrets.redact_bytes(&asked.body)).into_owned();
        // As it was sent, where it still is JSON.
        let body = match RawValue::from_string(body.clone()) {
            Ok(body) if !body.get().contains('\n') => body.get().to_owned(),
            Ok(_) | Err(_) => Value::String(body).to_string(),
        };
        let mut page = Self { file, redactor: SecretRedactor::new(secrets.clone()), secrets };
        let head = head.to_string();
        let line = format!("{},\"body\":{body}}}", head.strip_suffix('}').unwrap_or(&head));
        page.write_line(&line)?;
        Ok(page)
    }

    fn write_response(&mut self, answered: &RecordedResponse) -> io::Result<()> {
        let headers = redact_headers(&self.secrets, &answered.headers);
        self.write_line(
            &json!({ "status": answered.status, "headers": headers, "ms": json_millis(answered.ms) })
                .to_string(),
        )
    }

    fn write_chunk(&mut self, ms: u128, bytes: &[u8]) -> io::Result<()> {
        let shown = self.redactor.feed(bytes);
        self.write_piece(ms, &shown)
    }

    fn write_piece(&mut self, ms: u128, shown: &[u8]) -> io::Result<()> {
        if shown.is_empty() {
            return Ok(());
        }
        let ms = json_millis(ms);
        let piece = match std::str::from_utf8(shown) {
            Ok(text) => json!({ "ms": ms, "text": text }),
            Err(_) => json!({ "ms": ms, "base64": BASE64_STANDARD.encode(shown) }),
        };
        self.write_line(&piece.to_string())
    }

    fn write_end(&mut self, ms: u128, how: RecordingEnd, is_whole: bool) -> io::Result<()> {
        let shown = self.redactor.finish();
        self.write_piece(ms, &shown)?;
        let how = match how {
            RecordingEnd::Whole => "whole",
            RecordingEnd::Left => "left",
            RecordingEnd::Broken => "broken",
        };
        let mut end = json!({ "end": how, "ms": json_millis(ms) });
        if !is_whole {
            end["incomplete"] = true.into();
        }
        self.write_line(&end.to_string())
    }

    fn write_line(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

fn redact_headers(secrets: &SecretSet, headers: &[(&'static str, String)]) -> Map<String, Value> {
    let shown = headers.iter().map(|(name, value)| ((*name).to_owned(), secrets.redact_text(value).into()));
    shown.collect()
}

/// Makes a name part of a file's name.
fn file_name_part(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' };
    name.chars().take(NAME_LEN_MAX).map(plain).collect()
}

/// Milliseconds as JSON has them.
fn json_millis(ms: u128) -> u64 {
    u64::try_from(ms).unwrap_or(u64::MAX)
}
