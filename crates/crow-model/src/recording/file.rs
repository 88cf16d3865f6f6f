//! The files of recordings: one JSON value per line. The first is the request, the second the head of the response,
//! then its pieces, and a last line with the end; a file without that line is incomplete.

use std::collections::BTreeMap;
use std::fs::File;
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

/// Characters of a name in a file name.
const NAME_CHARS_MAX: usize = 40;

/// Attempts to find a free name.
const TRIES_MAX: usize = 1000;

/// Simultaneous responses; more are left over from a slow disk.
const OPEN_FILES_MAX: usize = 256;

/// A request to be written.
#[derive(Debug)]
pub(super) struct RecordedRequest {
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) method: String,
    /// Without the query, where some providers put keys.
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    pub(super) secrets: Vec<String>,
}

/// The head of a response to be written.
#[derive(Debug)]
pub(super) struct RecordedResponse {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) ms: u128,
}

/// The directory of the files.
#[derive(Debug)]
pub(super) struct RecordingFolder {
    path: PathBuf,
    /// The number of the latest file.
    last_number: u64,
}

impl RecordingFolder {
    /// Creates the directory, or opens an existing writable one.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        crow_files::create_private_dir(path)?;
        let mut last_number = 0;
        for entry in std::fs::read_dir(path)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.split_once('-')?.0.parse().ok());
            last_number = last_number.max(number.unwrap_or_default());
        }
        let probe = path.join(format!(".recording-{}", std::process::id()));
        create_file(&probe)?;
        std::fs::remove_file(&probe)?;
        Ok(Self { path: path.to_owned(), last_number })
    }

    /// Creates the next file, which must be new.
    fn create_next(&mut self, name: &str) -> io::Result<File> {
        let mut last_error = None;
        for _ in 0..TRIES_MAX {
            self.last_number = self.last_number.saturating_add(1);
            match create_file(&self.path.join(format!("{:04}-{name}.jsonl", self.last_number))) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last_error = Some(error),
                result => return result,
            }
        }
        Err(last_error.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into()))
    }
}

fn create_file(path: &Path) -> io::Result<File> {
    crow_files::private_file_options().write(true).create_new(true).open(path)
}

/// Writes what arrives until all senders are gone.
pub(super) fn write_recordings(
    directory: RecordingFolder,
    inbox: &Receiver<RecordingNote>,
    n_bytes: &AtomicUsize,
) {
    let mut writer = RecordingWriter { directory, open: BTreeMap::new(), has_warned: false };
    while let Ok(note) = inbox.recv() {
        let n_note_bytes = match &note {
            RecordingNote::Request(_, request) => request.body.len(),
            RecordingNote::Chunk { bytes, .. } => bytes.len(),
            RecordingNote::Response(..) | RecordingNote::End { .. } => 0,
        };
        if let Err(error) = writer.handle_note(note)
            && !std::mem::replace(&mut writer.has_warned, true)
        {
            tracing::warn!(%error, folder = %writer.directory.path.display(), "a recording could not be written");
        }
        n_bytes.fetch_sub(n_note_bytes, Ordering::Relaxed);
    }
}

struct RecordingWriter {
    directory: RecordingFolder,
    open: BTreeMap<usize, RecordingFile>,
    /// The problem was logged.
    has_warned: bool,
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
            RecordingNote::Request(id, request) => {
                if self.open.len() >= OPEN_FILES_MAX {
                    self.open.pop_first();
                }
                let recording = RecordingFile::start(&mut self.directory, &request)?;
                self.open.insert(id, recording);
                Ok(())
            }
            RecordingNote::Response(id, response) => {
                self.write_to(id, |recording| recording.write_response(&response))
            }
            RecordingNote::Chunk { id, ms, bytes } => {
                self.write_to(id, |recording| recording.write_chunk(ms, &bytes))
            }
            RecordingNote::End { id, ms, end, is_complete, writer_end: written } => {
                let result = self.write_to(id, |recording| recording.write_end(ms, end, is_complete));
                self.open.remove(&id);
                if let Some(written) = written
                    && written.send(()).is_err()
                {
                    tracing::debug!("the disk was too slow for the waiting caller");
                }
                result
            }
        }
    }

    /// Writes to an open file; after an error it stays incomplete.
    fn write_to(
        &mut self,
        id: usize,
        write: impl FnOnce(&mut RecordingFile) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(recording) = self.open.get_mut(&id) else { return Ok(()) };
        let result = write(recording);
        if result.is_err() {
            self.open.remove(&id);
        }
        result
    }
}

impl RecordingFile {
    fn start(directory: &mut RecordingFolder, request: &RecordedRequest) -> io::Result<Self> {
        let secrets = SecretSet::new(&request.secrets);
        let redact = |text: &str| secrets.redact_text(text);
        let name = format!(
            "{}-{}",
            file_name_part(&redact(&request.provider)),
            file_name_part(&redact(&request.model))
        );
        let file = directory.create_next(&name)?;
        let head = json!({
            "recording": FORMAT,
            "provider": redact(&request.provider),
            "model": redact(&request.model),
            "method": request.method,
            "path": redact(&request.path),
            "headers": redact_headers(&secrets, &request.headers),
        });
        let body = String::from_utf8_lossy(&secrets.redact_bytes(&request.body)).into_owned();
        // Unchanged, if it is still JSON.
        let body = match RawValue::from_string(body.clone()) {
            Ok(body) if !body.get().contains('\n') => body.get().to_owned(),
            Ok(_) | Err(_) => Value::String(body).to_string(),
        };
        let mut recording = Self { file, redactor: SecretRedactor::new(secrets.clone()), secrets };
        let head = head.to_string();
        let line = format!("{},\"body\":{body}}}", head.strip_suffix('}').unwrap_or(&head));
        recording.write_line(&line)?;
        Ok(recording)
    }

    fn write_response(&mut self, response: &RecordedResponse) -> io::Result<()> {
        let headers = redact_headers(&self.secrets, &response.headers);
        self.write_line(
            &json!({ "status": response.status, "headers": headers, "ms": json_millis(response.ms) })
                .to_string(),
        )
    }

    fn write_chunk(&mut self, ms: u128, bytes: &[u8]) -> io::Result<()> {
        let redacted = self.redactor.feed(bytes);
        self.write_piece(ms, &redacted)
    }

    fn write_piece(&mut self, ms: u128, redacted: &[u8]) -> io::Result<()> {
        if redacted.is_empty() {
            return Ok(());
        }
        let ms = json_millis(ms);
        let piece = match std::str::from_utf8(redacted) {
            Ok(text) => json!({ "ms": ms, "text": text }),
            Err(_) => json!({ "ms": ms, "base64": BASE64_STANDARD.encode(redacted) }),
        };
        self.write_line(&piece.to_string())
    }

    fn write_end(&mut self, ms: u128, end: RecordingEnd, is_complete: bool) -> io::Result<()> {
        let redacted = self.redactor.finish();
        self.write_piece(ms, &redacted)?;
        let end = match end {
            RecordingEnd::Complete => "whole",
            RecordingEnd::Abandoned => "left",
            RecordingEnd::Interrupted => "broken",
        };
        let mut end = json!({ "end": end, "ms": json_millis(ms) });
        if !is_complete {
            end["incomplete"] = true.into();
        }
        self.write_line(&end.to_string())
    }

    fn write_line(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

fn redact_headers(secrets: &SecretSet, headers: &[(&'static str, String)]) -> Map<String, Value> {
    let redacted =
        headers.iter().map(|(name, value)| ((*name).to_owned(), secrets.redact_text(value).into()));
    redacted.collect()
}

/// Makes a name part of a file name.
fn file_name_part(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' };
    name.chars().take(NAME_CHARS_MAX).map(plain).collect()
}

/// Milliseconds as a JSON number.
fn json_millis(ms: u128) -> u64 {
    u64::try_from(ms).unwrap_or(u64::MAX)
}
