use std::{
    fs,
    path::{Path, PathBuf},
};

use expect_test::expect;

use super::{DirHandle, open_file, read_metadata};
use crate::resolve_links;

/// A directory with a file `in/file`.
fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = resolve_links(dir.path());
    fs::create_dir(path.join("in")).unwrap();
    fs::write(path.join("in/file"), "text").unwrap();
    (dir, path)
}

#[test]
fn resolved_paths_are_opened() {
    let (_dir, place) = place();
    assert_eq!(std::io::read_to_string(open_file(&place.join("in").join("file")).unwrap()).unwrap(), "text");
    assert!(read_metadata(&place.join("in")).unwrap().is_dir());
    assert!(read_metadata(Path::new(r"C:\")).unwrap().is_dir());
    let missing = open_file(&place.join("in").join("none")).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn unresolved_paths_and_other_names_are_rejected() {
    let (_dir, place) = place();
    let shown: Vec<String> = [
        "Cargo.toml".to_owned(),
        String::new(),
        format!(r"{}\in\..\in\file", place.display()),
        format!(r"{}\in\file:stream", place.display()),
        format!(r"{}\in\file.", place.display()),
        r"\\.\NUL".to_owned(),
    ]
    .iter()
    .map(|path| open_file(Path::new(path)).unwrap_err().to_string())
    .collect();
    expect![[r"
        the path is not resolved
        the path is not resolved
        the path is not resolved
        a name with a colon or a control character, or with a dot or a space at its end, is not opened
        a name with a colon or a control character, or with a dot or a space at its end, is not opened
        the path is not resolved"]]
    .assert_eq(&shown.join("\n"));
}

#[test]
fn entries_are_created_renamed_listed_and_removed() {
    let (_dir, place) = place();
    let dir = DirHandle::open_or_create(&place.join(r"in\a\b")).unwrap();
    dir.create_entry("one".as_ref()).unwrap();
    assert!(dir.create_entry("one".as_ref()).is_err());
    fs::write(place.join(r"in\a\b\two"), "old").unwrap();
    dir.rename_entry("one".as_ref(), "two".as_ref()).unwrap();
    assert_eq!(dir.entry_names(10).unwrap(), ["two"]);
    assert_eq!(fs::read_to_string(place.join(r"in\a\b\two")).unwrap(), "");
    dir.remove_entry("two".as_ref()).unwrap();
    assert!(dir.entry_names(10).unwrap().is_empty());
    assert!(DirHandle::open_or_create(&place.join(r"in\file\b")).is_err());
}

#[test]
fn directory_with_many_entries_is_listed() {
    let (_dir, place) = place();
    for n in 0..2000 {
        fs::write(place.join(format!("file with a longer name {n}")), "").unwrap();
    }
    let entries = DirHandle::open_to_list(&place).unwrap().into_entries().unwrap();
    assert_eq!(entries.map(Result::unwrap).count(), 2001);
}
