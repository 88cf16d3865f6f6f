//! What a program said, in bounded memory: the beginning and the end are kept, and once they no longer
//! hold everything, the whole goes to a file. Knows nothing of processes.

use std::{collections::VecDeque, path::PathBuf};

use tokio::io::AsyncWriteExt;

use crate::{plain::AnsiStripper, spill};

/// A program in a loop must not fill the disk; nobody reads more than this of one command.
const SPILL_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// What a program said, as a terminal would still show it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedOutput {
    /// The beginning and the end, with a note between them of what was left out.
    pub text: String,
    /// How much there was.
    pub n_bytes: u64,
    /// How much of it `text` leaves out.
    pub n_left_out: u64,
    /// Where all of it is, when something was left out and a file could be written.
    pub spilled: Option<SpillFile>,
    /// The working directory that it told the terminal last.
    pub directory: Option<String>,
}

/// A file with all that a program said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillFile {
    /// The file.
    pub path: PathBuf,
    /// How much it holds; less than there was only beyond a very large limit or on a full disk.
    pub n_bytes: u64,
}

impl CapturedOutput {
    /// Bounds a text that is there already, as the output of a program that runs here is bounded.
    pub async fn from_text(text: &str, head_bytes: usize, tail_bytes: usize, spill: Option<PathBuf>) -> Self {
        let mut collector = OutputCollector::new(OutputLimits { head_bytes, tail_bytes, spill });
        collector.push(text.as_bytes()).await;
        collector.take_output().await
    }
}

/// Collects output as it comes.
#[derive(Debug)]
pub(crate) struct OutputCollector {
    plain: AnsiStripper,
    kept: OutputLimits,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    n_bytes: u64,
    spill: SpillState,
}

/// How much of what a program says is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputLimits {
    /// How much of the beginning.
    pub head_bytes: usize,
    /// How much of the end.
    pub tail_bytes: usize,
    /// The folder for the whole when that is more than both.
    pub spill: Option<PathBuf>,
}

#[derive(Debug)]
enum SpillState {
    /// Everything fits so far; the file would go here.
    NotNeeded(PathBuf),
    Open(tokio::fs::File, SpillFile),
    Ended(SpillFile),
    /// Not wanted, or not possible.
    Off,
}

impl SpillState {
    fn from_limits(kept: &OutputLimits) -> Self {
        kept.spill.clone().map_or(Self::Off, Self::NotNeeded)
    }
}

impl OutputCollector {
    pub(crate) fn new(kept: OutputLimits) -> Self {
        let spill = SpillState::from_limits(&kept);
        Self {
            plain: AnsiStripper::default(),
            kept,
            head: Vec::new(),
            tail: VecDeque::new(),
            n_bytes: 0,
            spill,
        }
    }

    /// Takes more output in.
    pub(crate) async fn push(&mut self, bytes: &[u8]) {
        let mut lines = Vec::with_capacity(bytes.len());
        self.plain.push(bytes, &mut lines);
        self.append_bytes(&lines).await;
    }

    /// Shows what there is so far.
    pub(crate) fn text(&self) -> String {
        self.render_text().0 + &String::from_utf8_lossy(self.plain.line())
    }

    /// Counts what there is so far.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.n_bytes + self.plain.line().len() as u64
    }

    /// Gives out what there is of a program that runs on, but for the beginning of a character that is still coming.
    pub(crate) async fn take_partial_output(&mut self) -> CapturedOutput {
        let mut line = Vec::new();
        self.plain.flush(&mut line);
        let begun = line.split_off(trim_incomplete_end(&line).len());
        self.append_bytes(&line).await;
        let taken = self.flush_output().await;
        self.push(&begun).await;
        taken
    }

    /// Gives out what there is, its file complete, and begins anew.
    pub(crate) async fn take_output(&mut self) -> CapturedOutput {
        let mut line = Vec::new();
        self.plain.flush(&mut line);
        self.append_bytes(&line).await;
        self.flush_output().await
    }

    async fn flush_output(&mut self) -> CapturedOutput {
        if let SpillState::Open(file, _) = &mut self.spill
            && let Err(error) = file.flush().await
        {
            tracing::warn!(%error, "could not write a command's output to a file");
        }
        let (text, n_left_out) = self.render_text();
        let spilled = match std::mem::replace(&mut self.spill, SpillState::from_limits(&self.kept)) {
            SpillState::Open(_, spilled) | SpillState::Ended(spilled) => Some(spilled),
            SpillState::NotNeeded(_) | SpillState::Off => None,
        };
        self.head.clear();
        self.tail.clear();
        let directory = self.plain.directory().map(str::to_owned);
        CapturedOutput { text, n_bytes: std::mem::take(&mut self.n_bytes), n_left_out, spilled, directory }
    }

    async fn append_bytes(&mut self, bytes: &[u8]) {
        let OutputLimits { head_bytes, tail_bytes, .. } = self.kept;
        let fits = self.head.len() + self.tail.len() + bytes.len() <= head_bytes + tail_bytes;
        if !fits {
            self.spill_bytes(bytes).await;
        }
        self.n_bytes += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(head_bytes - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(tail_bytes)..];
        let n_over = (self.tail.len() + rest.len()).saturating_sub(tail_bytes);
        self.tail.drain(..n_over);
        self.tail.extend(rest);
    }

    fn render_text(&self) -> (String, u64) {
        let (front, back) = self.tail.as_slices();
        if self.n_bytes == (self.head.len() + self.tail.len()) as u64 {
            let whole = [&self.head, front, back].concat();
            return (String::from_utf8_lossy(&whole).into_owned(), 0);
        }
        let tail = [front, back].concat();
        let (head, tail) = (trim_incomplete_end(&self.head), trim_incomplete_start(&tail));
        let n_left_out = self.n_bytes - (head.len() + tail.len()) as u64;
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        (format!("{head}\n… {n_left_out} bytes left out …\n{tail}"), n_left_out)
    }

    /// Writes to the file, which begins with all that was held until now.
    async fn spill_bytes(&mut self, bytes: &[u8]) {
        let opened = match std::mem::replace(&mut self.spill, SpillState::Off) {
            SpillState::NotNeeded(folder) => match spill::create_spill_file(&folder).await {
                Ok((file, path)) => {
                    let (front, back) = self.tail.as_slices();
                    let held = [&self.head, front, back].concat();
                    append_to_spill_file(file, SpillFile { path, n_bytes: 0 }, &held).await
                }
                Err(error) => {
                    tracing::warn!(%error, "could not create a file for a command's output");
                    SpillState::Off
                }
            },
            other @ (SpillState::Open(..) | SpillState::Ended(_) | SpillState::Off) => other,
        };
        self.spill = match opened {
            SpillState::Open(file, spilled) => append_to_spill_file(file, spilled, bytes).await,
            other @ (SpillState::NotNeeded(_) | SpillState::Ended(_) | SpillState::Off) => other,
        };
    }
}

async fn append_to_spill_file(mut file: tokio::fs::File, mut spilled: SpillFile, bytes: &[u8]) -> SpillState {
    let room = usize::try_from(SPILL_BYTES_MAX - spilled.n_bytes).unwrap_or(usize::MAX);
    let bytes = &bytes[..bytes.len().min(room)];
    let written = async {
        file.write_all(bytes).await?;
        // The file writes behind our back; at its end all has to be there.
        if bytes.len() == room { file.flush().await } else { Ok(()) }
    };
    match written.await {
        Ok(()) => {
            spilled.n_bytes += bytes.len() as u64;
            if bytes.len() == room { SpillState::Ended(spilled) } else { SpillState::Open(file, spilled) }
        }
        Err(error) => {
            tracing::warn!(%error, "could not write a command's output to a file");
            SpillState::Ended(spilled)
        }
    }
}

/// A character is at most four bytes, so at most three of its bytes can be without the rest.
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
