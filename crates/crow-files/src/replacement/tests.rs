use std::{fs, path::PathBuf};

use expect_test::expect;

use super::{FileReplacement, read_snapshot, remove_file, replace_file};
use crate::resolve_links;

fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = resolve_links(&dir.path().canonicalize().unwrap());
    (dir, path)
}

#[test]
fn file_is_created_replaced_and_removed() {
    let (_dir, place) = place();
    let path = place.join("new").join("file");
    for text in ["first", "second, longer"] {
        let expected = read_snapshot(&path).unwrap().fingerprint;
        replace_file(&path, FileReplacement { bytes: text.as_bytes(), mode: None, expected }).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    remove_file(&path, read_snapshot(&path).unwrap().fingerprint).unwrap();
    assert_eq!(fs::read_dir(place.join("new")).unwrap().count(), 0);
}

#[test]
fn file_that_changed_is_neither_replaced_nor_removed() {
    let (_dir, place) = place();
    let path = place.join("file");
    fs::write(&path, "mine").unwrap();
    let expected = read_snapshot(&path).unwrap().fingerprint;
    fs::write(&path, "theirs").unwrap();
    let replaced = replace_file(&path, FileReplacement { bytes: b"new", mode: None, expected });
    let removed = remove_file(&path, expected);
    expect![[r"
        it was changed at the same time; read it again
        it was changed at the same time; read it again"]]
    .assert_eq(&[replaced, removed].map(|result| result.unwrap_err().to_string()).join("\n"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
}

#[test]
fn file_that_is_read_only_is_not_replaced() {
    let (_dir, place) = place();
    let path = place.join("file");
    fs::write(&path, "mine").unwrap();
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    let expected = read_snapshot(&path).unwrap().fingerprint;
    let error = replace_file(&path, FileReplacement { bytes: b"new", mode: None, expected }).unwrap_err();
    expect!["it is read-only"].assert_eq(&error.to_string());
}
