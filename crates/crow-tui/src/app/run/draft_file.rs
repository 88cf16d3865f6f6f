//! The file of drafts: one JSON object with a text for each project, readable only by its owner.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use serde_json::{Map, Value};

/// Projects with a draft; of more, one is forgotten.
const PROJECTS_MAX: usize = 100;

/// A longer draft is not stored: it was pasted.
const DRAFT_BYTES_MAX: usize = 256 * 1024;

/// A longer file is none of ours.
const FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Returns the draft of a project.
pub(super) fn read_draft(path: &Path, project: &str) -> Option<String> {
    read_drafts(path).get(project)?.as_str().map(str::to_owned)
}

/// Stores the draft of a project; an empty one is removed.
pub(super) fn store_draft(path: &Path, project: &str, text: &str) -> io::Result<()> {
    let mut drafts = read_drafts(path);
    let removed = drafts.remove(project);
    if text.trim().is_empty() && removed.is_none() {
        return Ok(());
    }
    if !text.trim().is_empty() && text.len() <= DRAFT_BYTES_MAX {
        if drafts.len() >= PROJECTS_MAX
            && let Some(first) = drafts.keys().next().cloned()
        {
            drafts.remove(&first);
        }
        drafts.insert(project.to_owned(), text.into());
    }
    // Another process reads the file before or after the change, never a part of it.
    let new_path = path.with_extension(format!("new-{}", std::process::id()));
    let mut file =
        crow_files::private_file_options().write(true).create(true).truncate(true).open(&new_path)?;
    file.write_all(Value::Object(drafts).to_string().as_bytes())?;
    fs::rename(new_path, path)
}

/// Reads all drafts; a file that is missing or broken has none.
fn read_drafts(path: &Path) -> Map<String, Value> {
    let is_ours =
        fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= FILE_BYTES_MAX);
    let text = is_ours.then(|| fs::read_to_string(path).ok()).flatten();
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn draft_is_stored_by_project_until_it_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("drafts.json");
        store_draft(&path, "/a", "").unwrap();
        assert!(!path.exists());
        store_draft(&path, "/a", "half\na thought").unwrap();
        store_draft(&path, "/b", "other").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read_draft(&path, "/a").as_deref(), Some("half\na thought"));
        store_draft(&path, "/a", " ").unwrap();
        assert_eq!((read_draft(&path, "/a"), read_draft(&path, "/b")), (None, Some("other".into())));
        fs::write(&path, "broken").unwrap();
        assert_eq!(read_draft(&path, "/b"), None);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
