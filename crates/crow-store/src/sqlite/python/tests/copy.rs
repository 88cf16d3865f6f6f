//! Taking a database along.

use std::fs;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::{StoreError, copy_python_database};

#[test]
fn what_is_still_in_the_log_comes_along_and_the_original_stays() {
    let folder = TempDir::new().unwrap();
    let (from, to) = (folder.path().join("old.db"), folder.path().join("new.db"));
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
fn a_database_that_nobody_uses_is_left_without_a_trace() {
    let folder = TempDir::new().unwrap();
    let from = folder.path().join("an old?#.db");
    let user = Connection::open(&from).unwrap();
    user.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    user.execute_batch(include_str!("0.1.48.sql")).unwrap();
    user.close().unwrap();
    copy_python_database(&from, &folder.path().join("new.db")).unwrap();
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["an old?#.db", "new.db"]);
}

#[test]
fn nothing_is_written_over_and_nothing_else_is_taken() {
    let folder = TempDir::new().unwrap();
    let (from, to) = (folder.path().join("old.db"), folder.path().join("new.db"));
    Connection::open(&from).unwrap().execute_batch(include_str!("0.1.22.sql")).unwrap();
    fs::write(&to, "mine").unwrap();
    copy_python_database(&from, &to).unwrap_err();
    assert_eq!(fs::read(&to).unwrap(), b"mine");
    let other = folder.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE bookmarks (url TEXT)").unwrap();
    let error = copy_python_database(&other, &folder.path().join("copy.db")).unwrap_err();
    assert!(matches!(error, StoreError::OtherProgram { .. }), "{error}");
    let error = copy_python_database(&folder.path().join("none.db"), &to).unwrap_err();
    assert!(matches!(error, StoreError::CannotOpen { .. }), "{error}");
}
