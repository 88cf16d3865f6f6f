use std::{ffi::OsStr, fs, io, os::unix::fs::MetadataExt as _, path::Path};

use expect_test::expect;

use super::FileReservation;
use crate::{
    LinkPolicy, OpenOutcome, nofollow, open_guarded, open_resolved, read_file, read_snapshot,
    system::private_files::make_private,
};

/// Opens a file in each way.
fn opened_in_each_way(directory: &Path, name: &str) -> String {
    let path = directory.join(name);
    let outcome = |opened: io::Result<OpenOutcome>| {
        opened.map(|outcome| matches!(outcome, OpenOutcome::File(..))).map_err(|error| error.to_string())
    };
    let handle = nofollow::DirHandle::open(directory).unwrap();
    let user = fs::metadata(&path).unwrap().uid();
    let ways = [
        ("by its path", nofollow::open_file(&path).map(|_| true).map_err(|error| error.to_string())),
        ("by its name", handle.open_entry(OsStr::new(name)).map(|_| true).map_err(|error| error.to_string())),
        ("guarded", outcome(open_guarded(&path, LinkPolicy::Follow))),
        ("resolved", outcome(open_resolved(&path))),
        ("to read all", read_file(&path, 100).map(|_| true).map_err(|error| error.to_string())),
        ("before a change", read_snapshot(&path).map(|_| true).map_err(|error| error.to_string())),
        ("to make it private", make_private(&path, user).map(|()| true).map_err(|error| error.to_string())),
    ];
    ways.map(|(way, opened)| format!("{way}: {opened:?}\n")).concat()
}

#[test]
fn reserved_file_is_not_opened_under_any_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    fs::write(path.join("database"), "rows").unwrap();
    fs::write(path.join("other"), "text").unwrap();
    fs::hard_link(path.join("database"), path.join("second name")).unwrap();
    let reservation = FileReservation::of_file(&path.join("database")).unwrap();
    drop(FileReservation::of_file(&path.join("database")).unwrap());
    let names = ["database", "second name", "other"];
    let mut text = names.map(|name| format!("{name}\n{}", opened_in_each_way(&path, name))).concat();
    drop(reservation);
    text += &format!("database, when it is no longer reserved\n{}", opened_in_each_way(&path, "database"));
    expect![[r#"
        database
        by its path: Err("Crow has it open itself, and a second opening would break its locks")
        by its name: Err("Crow has it open itself, and a second opening would break its locks")
        guarded: Err("Crow has it open itself, and a second opening would break its locks")
        resolved: Err("Crow has it open itself, and a second opening would break its locks")
        to read all: Err("Crow has it open itself, and a second opening would break its locks")
        before a change: Err("Crow has it open itself, and a second opening would break its locks")
        to make it private: Err("Crow has it open itself, and a second opening would break its locks")
        second name
        by its path: Err("Crow has it open itself, and a second opening would break its locks")
        by its name: Err("Crow has it open itself, and a second opening would break its locks")
        guarded: Err("Crow has it open itself, and a second opening would break its locks")
        resolved: Err("Crow has it open itself, and a second opening would break its locks")
        to read all: Err("Crow has it open itself, and a second opening would break its locks")
        before a change: Err("Crow has it open itself, and a second opening would break its locks")
        to make it private: Err("Crow has it open itself, and a second opening would break its locks")
        other
        by its path: Ok(true)
        by its name: Ok(true)
        guarded: Ok(true)
        resolved: Ok(true)
        to read all: Ok(true)
        before a change: Ok(true)
        to make it private: Ok(true)
        database, when it is no longer reserved
        by its path: Ok(true)
        by its name: Ok(true)
        guarded: Ok(true)
        resolved: Ok(true)
        to read all: Ok(true)
        before a change: Ok(true)
        to make it private: Ok(true)
    "#]]
    .assert_eq(&text);
}

#[cfg(target_os = "linux")]
#[test]
fn number_of_a_removed_file_is_reserved_for_it_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (removed, other) = (directory.path().join("removed"), directory.path().join("other"));
    for _ in 0..100 {
        fs::write(&removed, "rows").unwrap();
        let reservation = FileReservation::of_file(&removed).unwrap();
        fs::remove_file(&removed).unwrap();
        fs::write(&other, "text").unwrap();
        assert_eq!(read_file(&other, 100).unwrap(), b"text");
        fs::remove_file(&other).unwrap();
        drop(reservation);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn reservation_keeps_the_locks_of_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("database");
    let file = fs::File::create(&path).unwrap();
    rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let suffix = format!(":{} 0 EOF", file.metadata().unwrap().ino());
    let is_locked = || fs::read_to_string("/proc/locks").unwrap().lines().any(|line| line.ends_with(&suffix));
    assert!(is_locked());
    drop(FileReservation::of_file(&path).unwrap());
    assert!(is_locked());
    // Any other descriptor ends them.
    drop(fs::File::open(&path).unwrap());
    assert!(!is_locked());
}
