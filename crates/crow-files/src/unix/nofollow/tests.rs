use std::{
    fs,
    io::Read as _,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use expect_test::{Expect, expect};
use rustix::fs::{CWD, Mode, RenameFlags, mkfifoat, renameat_with};

use super::{DirHandle, READ, open_at_once, open_file, open_in_steps, read_metadata};

/// A directory without links in its path, with a directory `in`, one `out` beside it, and links between them.
fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    for name in ["in", "out"] {
        fs::create_dir(path.join(name)).unwrap();
        fs::write(path.join(name).join("file"), name).unwrap();
    }
    symlink("../out/file", path.join("in/link")).unwrap();
    symlink("../out", path.join("in/away")).unwrap();
    symlink("none", path.join("in/none")).unwrap();
    mkfifoat(CWD, path.join("in/pipe"), Mode::from_raw_mode(0o600)).unwrap();
    (dir, path)
}

/// Opens paths in both ways and compares the results.
#[track_caller]
fn check(paths: &[&str], expect: &Expect) {
    let (_dir, place) = place();
    let mut said = String::new();
    for name in paths {
        let path = place.join(name);
        let all = open_file(&path).map_err(|error| error.to_string()).map(text_of);
        let steps = open_in_steps(&path, READ).map_err(|error| error.to_string());
        assert_eq!(all, steps.map(|opened| text_of(opened.into())), "{name}");
        said += &format!("{name}: {}\n", all.unwrap_or_else(|error| error));
    }
    expect.assert_eq(&said.replace(&place.display().to_string(), "$DIR"));
}

fn text_of(mut file: fs::File) -> String {
    let mut text = String::new();
    match file.read_to_string(&mut text) {
        Ok(_) => format!("{text:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn links_are_not_followed() {
    let paths = [
        "in/file",
        "in",
        "in/pipe",
        "in/link",
        "in/away/file",
        "in/away",
        "in/none",
        "in/no",
        "in/no/file",
        "in/file/no",
        "in/../out/file",
        "/",
        "/proc/self/cwd",
        "/proc/self/fd/0",
    ];
    check(
        &paths,
        &expect![[r#"
        in/file: "in"
        in: Is a directory (os error 21)
        in/pipe: ""
        in/link: a link in its path is circular or was created just now
        in/away/file: a link in its path is circular or was created just now
        in/away: a link in its path is circular or was created just now
        in/none: a link in its path is circular or was created just now
        in/no: No such file or directory (os error 2)
        in/no/file: No such file or directory (os error 2)
        in/file/no: Not a directory (os error 20)
        in/../out/file: the path is not resolved
        /: Is a directory (os error 21)
        /proc/self/cwd: a link in its path is circular or was created just now
        /proc/self/fd/0: a link in its path is circular or was created just now
    "#]],
    );
}

#[test]
fn relative_paths_are_rejected() {
    assert!(open_file(Path::new("Cargo.toml")).is_err());
    assert!(read_metadata(Path::new("Cargo.toml")).is_err());
    assert!(DirHandle::open_or_create(Path::new("made")).is_err());
    assert!(open_file(Path::new("")).is_err());
}

#[test]
fn paths_are_opened_in_one_system_call() {
    let (_dir, place) = place();
    assert!(open_at_once(&place.join("in/file"), READ).is_some_and(|opened| opened.is_ok()));
}

#[test]
fn pipe_is_inspected_without_waiting() {
    let (_dir, place) = place();
    let found = read_metadata(&place.join("in/pipe")).unwrap();
    assert!(!found.is_file() && !found.is_dir());
    assert!(read_metadata(&place.join("in/link")).is_err());
    assert!(read_metadata(&place).unwrap().is_dir() && read_metadata(Path::new("/")).unwrap().is_dir());
}

#[test]
fn directories_are_created_at_the_path() {
    let (_dir, place) = place();
    let made = DirHandle::open_or_create(&place.join("in/a/b/c")).unwrap();
    made.create_entry("x".as_ref()).unwrap();
    assert!(place.join("in/a/b/c/x").is_file());
    assert!(DirHandle::open_or_create(&place.join("in/away/b")).is_err());
    assert!(DirHandle::open_or_create(&place.join("in/file/b")).is_err());
    assert!(DirHandle::open_or_create(&place.join("in/none/b")).is_err());
    assert!(!place.join("in/no").exists() && !place.join("in/none").exists());
    assert_eq!(fs::read_dir(place.join("out")).unwrap().count(), 1);
}

#[test]
fn new_file_is_not_created_through_a_link() {
    let (_dir, place) = place();
    let dir = DirHandle::open(&place.join("in")).unwrap();
    assert!(dir.create_entry("none".as_ref()).is_err());
    assert!(dir.open_entry("link".as_ref()).is_err());
    dir.create_entry("new".as_ref()).unwrap();
    dir.rename_entry("new".as_ref(), "link".as_ref()).unwrap();
    assert!(!place.join("in/link").is_symlink());
    assert_eq!(fs::read_to_string(place.join("out/file")).unwrap(), "out");
}

/// Ends a thread even if a test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Enough to hit the moment between two steps many times.
const TRIES: usize = 20_000;

#[test]
fn link_that_comes_and_goes_is_never_followed() {
    let (_dir, place) = place();
    fs::rename(place.join("in/away"), place.join("link")).unwrap();
    fs::remove_file(place.join("link")).unwrap();
    symlink("out", place.join("link")).unwrap();
    let (inside, link) = (place.join("in"), place.join("link"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Ends(&is_over);
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                renameat_with(CWD, &inside, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let path = inside.join("file");
        let (mut n_read, mut n_refused) = (0, 0);
        for _ in 0..TRIES {
            for opened in [open_file(&path), open_in_steps(&path, READ).map(Into::into)] {
                match opened.map(text_of) {
                    Ok(text) => {
                        assert_eq!(text, "\"in\"");
                        n_read += 1;
                    }
                    Err(_) => n_refused += 1,
                }
            }
        }
        // The directory was there at times and absent at others.
        assert!(n_read > 0 && n_refused > 0, "{n_read} read, {n_refused} refused");
    });
}
