//! A program's output in bounded memory: the beginning and the end are kept, and once they no longer hold everything,
//! the whole goes to a file. Knows nothing of processes.

use std::{collections::VecDeque, path::PathBuf};

use tokio::io::AsyncWriteExt;

use crate::{ansi::AnsiStripper, spill};

/// A program in a loop must not fill the disk; no reader needs more than this of one command.
const SPILL_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// A program's output, as a terminal would still show it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedOutput {
    /// The beginning and the end, with a note of what was omitted between them.
    pub text: String,
    /// Total bytes of output.
    pub n_bytes: u64,
    /// Bytes that `text` omits.
    pub n_omitted: u64,
    /// The file with all of it, if something was omitted and a file could be written.
    pub spill_file: Option<SpillFile>,
    /// The working directory that the program last reported to the terminal.
    pub cwd: Option<String>,
}

/// A file with a program's whole output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillFile {
    pub path: PathBuf,
    /// Bytes in the file; less than the output only beyond a very large limit or on a full disk.
    pub n_bytes: u64,
}

impl CapturedOutput {
    /// Truncates an existing text as the output of a program is truncated.
    pub async fn from_text(
        text: &str,
        head_bytes: usize,
        tail_bytes: usize,
        spill_dir: Option<PathBuf>,
    ) -> Self {
        let mut collector = OutputCollector::new(OutputLimits { head_bytes, tail_bytes, spill_dir });
        collector.push(text.as_bytes()).await;
        collector.take_output().await
    }
}

/// Collects output as it arrives.
#[derive(Debug)]
pub(crate) struct OutputCollector {
    stripper: AnsiStripper,
    limits: OutputLimits,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    n_bytes: u64,
    spill: SpillState,
}

/// Limits of the output that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputLimits {
    pub head_bytes: usize,
    pub tail_bytes: usize,
    /// The directory for the whole output when that exceeds both.
    pub spill_dir: Option<PathBuf>,
}

#[derive(Debug)]
enum SpillState {
    /// Everything fits so far; the file would be created here.
    NotNeeded(PathBuf),
    Open(tokio::fs::File, SpillFile),
    Complete(SpillFile),
    /// Not wanted, or not possible.
    Disabled,
}

impl SpillState {
    fn from_limits(limits: &OutputLimits) -> Self {
        limits.spill_dir.clone().map_or(Self::Disabled, Self::NotNeeded)
    }
}

impl OutputCollector {
    pub(crate) fn new(limits: OutputLimits) -> Self {
        let spill = SpillState::from_limits(&limits);
        Self {
            stripper: AnsiStripper::default(),
            limits,
            head: Vec::new(),
            tail: VecDeque::new(),
            n_bytes: 0,
            spill,
        }
    }

    pub(crate) async fn push(&mut self, bytes: &[u8]) {
        let mut lines = Vec::with_capacity(bytes.len());
        self.stripper.push(bytes, &mut lines);
        self.append_bytes(&lines).await;
    }

    /// Returns the output so far.
    pub(crate) fn text(&self) -> String {
        self.render_text().0 + &String::from_utf8_lossy(self.stripper.line())
    }

    /// Counts the bytes so far.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.n_bytes + self.stripper.line().len() as u64
    }

    /// Takes the output so far of a program that is still running, except an incomplete character at its end.
    pub(crate) async fn take_partial_output(&mut self) -> CapturedOutput {
        let mut line = Vec::new();
        self.stripper.flush(&mut line);
        let incomplete_char = line.split_off(trim_incomplete_end(&line).len());
        self.append_bytes(&line).await;
        let output = self.flush_output().await;
        self.push(&incomplete_char).await;
        output
    }

    /// Takes the output, with its file complete, and starts over.
    pub(crate) async fn take_output(&mut self) -> CapturedOutput {
        let mut line = Vec::new();
        self.stripper.flush(&mut line);
        self.append_bytes(&line).await;
        self.flush_output().await
    }

    async fn flush_output(&mut self) -> CapturedOutput {
        if let SpillState::Open(file, _) = &mut self.spill
            && let Err(error) = file.flush().await
        {
            tracing::warn!(%error, "could not write a command's output to a file");
        }
        let (text, n_omitted) = self.render_text();
        let spill_file = match std::mem::replace(&mut self.spill, SpillState::from_limits(&self.limits)) {
            SpillState::Open(_, spill_file) | SpillState::Complete(spill_file) => Some(spill_file),
            SpillState::NotNeeded(_) | SpillState::Disabled => None,
        };
        self.head.clear();
        self.tail.clear();
        let cwd = self.stripper.cwd().map(str::to_owned);
        CapturedOutput { text, n_bytes: std::mem::take(&mut self.n_bytes), n_omitted, spill_file, cwd }
    }

    async fn append_bytes(&mut self, bytes: &[u8]) {
        let OutputLimits { head_bytes, tail_bytes, .. } = self.limits;
        let fits = self.head.len() + self.tail.len() + bytes.len() <= head_bytes + tail_bytes;
        if !fits {
            self.spill_bytes(bytes).await;
        }
        self.n_bytes += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(head_bytes - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(tail_bytes)..];
        let n_excess = (self.tail.len() + rest.len()).saturating_sub(tail_bytes);
        self.tail.drain(..n_excess);
        self.tail.extend(rest);
    }

    fn render_text(&self) -> (String, u64) {
        let (front, back) = self.tail.as_slices();
        if self.n_bytes == (self.head.len() + self.tail.len()) as u64 {
            let all_bytes = [&self.head, front, back].concat();
            return (String::from_utf8_lossy(&all_bytes).into_owned(), 0);
        }
        let tail = [front, back].concat();
        let (head, tail) = (trim_incomplete_end(&self.head), trim_incomplete_start(&tail));
        let n_omitted = self.n_bytes - (head.len() + tail.len()) as u64;
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        (format!("{head}\n… {n_omitted} bytes omitted …\n{tail}"), n_omitted)
    }

    /// Writes to the file, which begins with everything held until now.
    async fn spill_bytes(&mut self, bytes: &[u8]) {
        let state = match std::mem::replace(&mut self.spill, SpillState::Disabled) {
            SpillState::NotNeeded(directory) => match spill::create_spill_file(&directory).await {
                Ok((file, path)) => {
                    let (front, back) = self.tail.as_slices();
                    let buffered = [&self.head, front, back].concat();
                    append_to_spill_file(file, SpillFile { path, n_bytes: 0 }, &buffered).await
                }
                Err(error) => {
                    tracing::warn!(%error, "could not create a file for a command's output");
                    SpillState::Disabled
                }
            },
            other @ (SpillState::Open(..) | SpillState::Complete(_) | SpillState::Disabled) => other,
        };
        self.spill = match state {
            SpillState::Open(file, spill_file) => append_to_spill_file(file, spill_file, bytes).await,
            other @ (SpillState::NotNeeded(_) | SpillState::Complete(_) | SpillState::Disabled) => other,
        };
    }
}

async fn append_to_spill_file(
    mut file: tokio::fs::File,
    mut spill_file: SpillFile,
    bytes: &[u8],
) -> SpillState {
    let n_bytes_left = usize::try_from(SPILL_BYTES_MAX - spill_file.n_bytes).unwrap_or(usize::MAX);
    let bytes = &bytes[..bytes.len().min(n_bytes_left)];
    let written = async {
        file.write_all(bytes).await?;
        // The file writes in the background; at its end everything must be on disk.
        if bytes.len() == n_bytes_left { file.flush().await } else { Ok(()) }
    };
    match written.await {
        Ok(()) => {
            spill_file.n_bytes += bytes.len() as u64;
            if bytes.len() == n_bytes_left {
                SpillState::Complete(spill_file)
            } else {
                SpillState::Open(file, spill_file)
            }
        }
        Err(error) => {
            tracing::warn!(%error, "could not write a command's output to a file");
            SpillState::Complete(spill_file)
        }
    }
}

/// A character has at most four bytes, so at most three of its bytes can be without the rest.
const HALF_CHAR_BYTES_MAX: usize = 3;

fn trim_incomplete_end(bytes: &[u8]) -> &[u8] {
    let from = bytes.len().saturating_sub(HALF_CHAR_BYTES_MAX);
    let start = (from..bytes.len()).rev().find(|&at| bytes[at] >= 0xC0);
    match start {
        Some(at) if std::str::from_utf8(&bytes[at..]).is_err_and(|error| error.error_len().is_none()) => {
            &bytes[..at]
        }
        Some(_) | None => bytes,
    }
}

fn trim_incomplete_start(bytes: &[u8]) -> &[u8] {
    let is_inner = |byte: &&u8| (0x80..0xC0).contains(*byte);
    let n_inner = bytes.iter().take(HALF_CHAR_BYTES_MAX).take_while(is_inner).count();
    &bytes[n_inner..]
}
