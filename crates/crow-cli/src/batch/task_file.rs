//! The file of tasks: read once to check every line, and a second time to run them, one line at a time.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek},
    path::Path,
};

use super::task_line::{BatchTask, LineError, TaskRules, parse_task_line};
use crate::failure::{CliError, CliExitCode};

/// Bytes of a line; the longest context windows are smaller.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The hash of an ID, in whose place it is remembered: a million of them take 16 MB.
pub(super) type IdHash = u128;

/// A task file that is open.
#[derive(Debug)]
pub(super) struct TaskFile {
    lines: BufReader<File>,
    /// Its name in messages.
    name: String,
    n_lines: usize,
}

/// The tasks of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskSurvey {
    pub(super) n_tasks: u64,
    /// Tasks that were done by earlier runs.
    pub(super) n_done: u64,
    /// Tasks that failed in earlier runs and are not run again.
    pub(super) n_failed: u64,
}

impl TaskFile {
    /// Opens a file; `-` is stdin. What cannot be read twice is copied to a temporary file.
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
        let failed = |error: io::Error| {
            CliError::new(CliExitCode::Usage, format!("could not read the tasks in {name}: {error}"))
        };
        let file = match is_stdin {
            true => copy_to_temporary_file(&mut io::stdin().lock()).map_err(failed)?,
            false => {
                let mut file = File::open(path).map_err(failed)?;
                match file.metadata().map_err(failed)?.is_file() {
                    true => file,
                    false => copy_to_temporary_file(&mut file).map_err(failed)?,
                }
            }
        };
        Ok(Self { lines: BufReader::new(file), name, n_lines: 0 })
    }

    /// Checks all lines and returns the hashes of their IDs. The next task is the first one again.
    pub(super) fn check_tasks(
        &mut self,
        rules: TaskRules<'_>,
        check_task: impl Fn(&BatchTask) -> Result<(), LineError>,
    ) -> Result<Vec<IdHash>, CliError> {
        let mut ids: Vec<IdHash> = Vec::new();
        while let Some(task) = self.next_task(rules)? {
            check_task(&task).map_err(|error| self.line_error(error))?;
            ids.push(hash_id(&task.id));
        }
        self.rewind()?;
        ids.sort_unstable();
        let repeated: HashSet<IdHash> =
            ids.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        if !repeated.is_empty() {
            return Err(self.repeated_id_error(rules, &repeated)?);
        }
        Ok(ids)
    }

    /// Returns the next task.
    pub(super) fn next_task(&mut self, rules: TaskRules<'_>) -> Result<Option<BatchTask>, CliError> {
        while let Some(line) = self.next_line()? {
            if let Some(task) = parse_task_line(&line, rules).map_err(|error| self.line_error(error))? {
                return Ok(Some(task));
            }
        }
        Ok(None)
    }

    fn next_line(&mut self) -> Result<Option<String>, CliError> {
        let mut line = Vec::new();
        let read = self.lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        match read {
            Ok(0) => return Ok(None),
            Ok(_) => self.n_lines += 1,
            Err(error) => {
                let reason = format!("could not read the tasks in {}: {error}", self.name);
                return Err(CliError::new(CliExitCode::Failed, reason));
            }
        }
        if line.len() as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
            return Err(self.line_error(LineError::new(format!("longer than {LINE_BYTES_MAX} bytes"))));
        }
        match String::from_utf8(line) {
            Ok(line) => Ok(Some(line)),
            Err(_) => Err(self.line_error(LineError::new("not UTF-8"))),
        }
    }

    fn rewind(&mut self) -> Result<(), CliError> {
        self.n_lines = 0;
        self.lines.rewind().map_err(|error| {
            CliError::new(CliExitCode::Failed, format!("could not read {} again: {error}", self.name))
        })
    }

    /// Finds the first line with the ID of an earlier one.
    fn repeated_id_error(
        &mut self,
        rules: TaskRules<'_>,
        repeated: &HashSet<IdHash>,
    ) -> Result<CliError, CliError> {
        let mut first_lines = HashMap::new();
        while let Some(task) = self.next_task(rules)? {
            let hash = hash_id(&task.id);
            if !repeated.contains(&hash) {
                continue;
            }
            if let Some(line) = first_lines.insert(hash, self.n_lines) {
                let reason = format!("the ID {:?} is that of line {line} as well", task.id);
                let hint = "give each line an \"id\" of its own; without one, equal lines have the same";
                return Ok(self.line_error(LineError { reason, hint: Some(hint.to_owned()) }));
            }
        }
        Ok(CliError::new(CliExitCode::Usage, format!("{} changed while it was read", self.name)))
    }

    /// An error in the line that was read last.
    fn line_error(&self, error: LineError) -> CliError {
        let reason = format!("{}, line {}: {}", self.name, self.n_lines, error.reason);
        let usage = CliError::new(CliExitCode::Usage, crate::table::sanitize_line(&reason));
        match error.hint {
            Some(hint) => usage.with_hint(crate::table::sanitize_line(&hint)),
            None => usage,
        }
    }
}

/// Returns the hash of an ID.
pub(super) fn hash_id(id: &str) -> IdHash {
    let hash = crow_files::hash_content(id.as_bytes()).to_string();
    hash.bytes()
        .take(32)
        .fold(0, |value, digit| value << 4 | IdHash::from(char::from(digit).to_digit(16).unwrap_or_default()))
}

fn copy_to_temporary_file(source: &mut impl Read) -> io::Result<File> {
    let mut copy = tempfile::tempfile()?;
    io::copy(source, &mut copy)?;
    copy.rewind()?;
    Ok(copy)
}
