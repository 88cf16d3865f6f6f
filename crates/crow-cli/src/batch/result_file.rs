//! The file of results: one line for each task that ended, on disk before it is shown.

use std::{
    collections::HashSet,
    fs::{File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::Path,
    sync::Arc,
};

use super::{
    result_line::{
        BatchTaskState, EarlierResult, TaskResult, UnendedLine, classify_unended_line, parse_result_line,
    },
    task_file::{IdHash, TaskSurvey, hash_id},
};
use crate::failure::{CliError, CliExitCode};

/// Bytes of a line: the longest answer, with all of its letters escaped, is shorter.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A result file that is open, and locked until it is dropped.
#[derive(Debug)]
pub(super) struct ResultFile {
    file: Arc<File>,
    /// False for a pipe or a device, which has no earlier results and cannot be synced.
    is_regular: bool,
}

/// The results of earlier runs.
#[derive(Debug, Default)]
pub(super) struct EarlierResults {
    done: HashSet<IdHash>,
    /// Tasks that failed and are not run again.
    failed: HashSet<IdHash>,
    /// Tokens of all lines: what a repeated task used before counts as well.
    pub(super) tokens: u64,
}

impl EarlierResults {
    /// Whether a task is not run again.
    pub(super) fn has_ended(&self, id: &str) -> bool {
        let has_results = self.done.len() + self.failed.len() > 0;
        has_results && {
            let hash = hash_id(id);
            self.done.contains(&hash) || self.failed.contains(&hash)
        }
    }

    /// Counts the tasks of a file and those that have ended.
    pub(super) fn survey(&self, ids: &[IdHash]) -> TaskSurvey {
        let count = |ended: &HashSet<IdHash>| ids.iter().filter(|id| ended.contains(id)).count() as u64;
        TaskSurvey { n_tasks: ids.len() as u64, n_done: count(&self.done), n_failed: count(&self.failed) }
    }

    fn add(&mut self, result: &EarlierResult, retries_failed: bool) {
        self.tokens = self.tokens.saturating_add(result.tokens.unwrap_or(0));
        let hash = hash_id(&result.id);
        // The last line of a task counts.
        self.done.remove(&hash);
        self.failed.remove(&hash);
        match result.state {
            BatchTaskState::Done => drop(self.done.insert(hash)),
            BatchTaskState::Failed if !retries_failed => drop(self.failed.insert(hash)),
            BatchTaskState::Failed | BatchTaskState::Cancelled => {}
        }
    }
}

impl ResultFile {
    /// Opens or creates a file and reads its results. The beginning of a line at the end is removed.
    pub(super) fn open(path: &Path, retries_failed: bool) -> Result<(Self, EarlierResults), CliError> {
        let failed = |error: io::Error| {
            let reason = format!("could not open the results in {}: {error}", path.display());
            CliError::new(CliExitCode::Failed, reason)
        };
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let is_regular = path.metadata().map_or(true, |metadata| metadata.is_file());
        let file = options.read(is_regular).open(path).map_err(failed)?;
        if !is_regular {
            return Ok((Self { file: Arc::new(file), is_regular }, EarlierResults::default()));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let reason = format!("{} is in use by another batch", path.display());
                return Err(
                    CliError::new(CliExitCode::Usage, reason).with_hint("choose another file with -o")
                );
            }
            Err(TryLockError::Error(error)) => tracing::debug!(%error, "this file system has no locks"),
        }
        let earlier = read_results(&file, path, retries_failed, failed)?;
        Ok((Self { file: Arc::new(file), is_regular }, earlier))
    }

    /// Appends results; they are on disk when this returns.
    pub(super) async fn append(&self, results: &[TaskResult]) -> io::Result<()> {
        let mut lines = Vec::new();
        for result in results {
            serde_json::to_writer(&mut lines, result)?;
            lines.push(b'\n');
        }
        let (file, is_regular) = (Arc::clone(&self.file), self.is_regular);
        let writing = tokio::task::spawn_blocking(move || {
            (&*file).write_all(&lines)?;
            if is_regular { file.sync_data() } else { Ok(()) }
        });
        writing.await?
    }
}

/// Reads all lines, and leaves the position behind the last one.
fn read_results(
    mut file: &File,
    path: &Path,
    retries_failed: bool,
    failed: impl Fn(io::Error) -> CliError,
) -> Result<EarlierResults, CliError> {
    let mut earlier = EarlierResults::default();
    let (mut n_lines, mut end) = (0, 0);
    let mut lines = BufReader::new(file);
    loop {
        let mut line = Vec::new();
        let n_bytes =
            lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(&failed)? as u64;
        n_lines += 1;
        let no_result = |reason: &str| no_result_error(path, n_lines, reason);
        if line.last() == Some(&b'\n') {
            let text = std::str::from_utf8(&line).map_err(|_| no_result("not UTF-8"))?;
            let result = parse_result_line(text).map_err(|reason| no_result(&reason))?;
            earlier.add(&result, retries_failed);
            end += n_bytes;
            continue;
        }
        match classify_unended_line(&line) {
            _ if line.is_empty() => {}
            UnendedLine::Complete(result) => {
                earlier.add(&result, retries_failed);
                file.seek(SeekFrom::End(0)).map_err(&failed)?;
                file.write_all(b"\n").map_err(&failed)?;
                return Ok(earlier);
            }
            UnendedLine::Truncated => file.set_len(end).map_err(&failed)?,
            UnendedLine::NoResult => return Err(no_result("no JSON object")),
        }
        file.seek(SeekFrom::Start(end)).map_err(&failed)?;
        return Ok(earlier);
    }
}

fn no_result_error(path: &Path, n_lines: usize, reason: &str) -> CliError {
    let reason = format!("{}, line {n_lines}: not the result of a batch: {reason}", path.display());
    let error = CliError::new(CliExitCode::Usage, crate::table::sanitize_line(&reason));
    error.with_hint("results are appended to the file of -o; choose one that does not exist")
}
