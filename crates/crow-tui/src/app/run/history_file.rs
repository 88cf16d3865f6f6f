//! The file of earlier prompts: one JSON object per line, readable only by its owner.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use serde_json::{Value, json};

use crate::app::history::{ENTRIES_MAX, HistoryEntry};

/// A longer file is shortened to its newest entries.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A longer prompt is not kept: it was pasted.
const PROMPT_BYTES_MAX: usize = 64 * 1024;

/// Reads the newest entries; a file that does not exist has none.
pub(super) fn read_history(path: &Path) -> io::Result<Vec<HistoryEntry>> {
    let text = match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut entries: Vec<HistoryEntry> = text.lines().filter_map(parse_entry).collect();
    let n_old = entries.len().saturating_sub(ENTRIES_MAX);
    entries.drain(..n_old);
    if text.len() as u64 > FILE_BYTES_MAX {
        rewrite_history(path, &entries)?;
    }
    Ok(entries)
}

/// Appends an entry. One write, so that two processes do not mix their lines.
pub(super) fn append_history(path: &Path, entry: &HistoryEntry) -> io::Result<()> {
    if entry.text.len() > PROMPT_BYTES_MAX {
        return Ok(());
    }
    let mut file = crow_files::private_file_options().append(true).create(true).open(path)?;
    file.write_all(entry_line(entry).as_bytes())
}

fn rewrite_history(path: &Path, entries: &[HistoryEntry]) -> io::Result<()> {
    let new_path = path.with_extension("new");
    let mut file =
        crow_files::private_file_options().write(true).create(true).truncate(true).open(&new_path)?;
    let kept = &entries[entries.len() / 2..];
    file.write_all(kept.iter().map(entry_line).collect::<String>().as_bytes())?;
    fs::rename(new_path, path)
}

fn entry_line(entry: &HistoryEntry) -> String {
    format!("{}\n", json!({ "project": entry.project, "text": entry.text }))
}

fn parse_entry(line: &str) -> Option<HistoryEntry> {
    let value: Value = serde_json::from_str(line).ok()?;
    let field = |name: &str| value.get(name)?.as_str().map(str::to_owned);
    Some(HistoryEntry { project: field("project")?, text: field("text")? })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn history_survives_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.jsonl");
        assert_eq!(read_history(&path).unwrap(), []);
        let entry = HistoryEntry { project: "/p".into(), text: "two\nlines".into() };
        append_history(&path, &entry).unwrap();
        fs::write(&path, format!("broken\n{}", fs::read_to_string(&path).unwrap())).unwrap();
        append_history(&path, &entry).unwrap();
        assert_eq!(read_history(&path).unwrap(), [entry.clone(), entry]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn long_history_is_shortened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.jsonl");
        let entry = HistoryEntry { project: "/p".into(), text: "x".repeat(4000) };
        let line = entry_line(&entry);
        fs::write(&path, line.repeat(1100)).unwrap();
        assert_eq!(read_history(&path).unwrap().len(), 1100);
        assert_eq!(read_history(&path).unwrap().len(), 550);
    }
}
