//! Copying a database.

use std::{fs, path::Path};

use crow_store::{StoreError, copy_foreign_database};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::PYTHON_FORMAT;

fn copy_python_database(from: &Path, to: &Path) -> Result<(), StoreError> {
    copy_foreign_database(&PYTHON_FORMAT, from, to)
}

#[test]
fn copy_includes_the_log_and_keeps_the_original() {
    let directory = TempDir::new().unwrap();
    let (from, to) = (directory.path().join("old.db"), directory.path().join("new.db"));
    let user = Connection::open(&from).unwrap();
    user.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0").unwrap();
    user.execute_batch(include_str!("0.1.48.sql")).unwrap();
    let message =
        "INSERT INTO messages (agent_id, fork_idx, created_at, data, role) VALUES ('a', 1, '', '{}', 'user')";
    user.execute(message, []).unwrap();
    let before = fs::read(&from).unwrap();
    copy_python_database(&from, &to).unwrap();
    assert_eq!(fs::read(&from).unwrap(), before);
    let copied = Connection::open(&to).unwrap();
    let n: i64 = copied.query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).unwrap();
    assert_eq!(n, 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn copy_of_an_idle_database_leaves_no_trace() {
    let directory = TempDir::new().unwrap();
    let from = directory.path().join("an old?#.db");
    let user = Connection::open(&from).unwrap();
    user.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    user.execute_batch(include_str!("0.1.48.sql")).unwrap();
    user.close().unwrap();
    copy_python_database(&from, &directory.path().join("new.db")).unwrap();
    let mut names: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["an old?#.db", "new.db"]);
}

#[test]
fn copy_overwrites_nothing_and_rejects_other_files() {
    let directory = TempDir::new().unwrap();
    let (from, to) = (directory.path().join("old.db"), directory.path().join("new.db"));
    Connection::open(&from).unwrap().execute_batch(include_str!("0.1.22.sql")).unwrap();
    fs::write(&to, "mine").unwrap();
    copy_python_database(&from, &to).unwrap_err();
    assert_eq!(fs::read(&to).unwrap(), b"mine");
    let other = directory.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE bookmarks (url TEXT)").unwrap();
    let error = copy_python_database(&other, &directory.path().join("copy.db")).unwrap_err();
    assert!(matches!(error, StoreError::OtherProgram { .. }), "{error}");
    let error = copy_python_database(&directory.path().join("none.db"), &to).unwrap_err();
    assert!(matches!(error, StoreError::CannotOpen { .. }), "{error}");
}
