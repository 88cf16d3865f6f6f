//! The demo, run by a user without any configuration.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path, process::Output};

#[expect(clippy::disallowed_methods, reason = "the binary is what is tested, with an environment of its own")]
fn demo(home: &Path, temp: &Path) -> Output {
    let path = std::env::var_os("PATH").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_crow-cli"));
    command.arg("demo").env_clear().env("PATH", path).env("HOME", home).env("TMPDIR", temp);
    command.current_dir(home).stdin(std::process::Stdio::null()).output().unwrap()
}

fn names(dir: &Path) -> Vec<std::ffi::OsString> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn demo_fixes_the_project_and_leaves_nothing() {
    let (home, temp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ran = demo(home.path(), temp.path());
    let (out, err) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
    assert_eq!(ran.status.code(), Some(0), "{out}\n{err}");
    assert!(out.lines().next().unwrap().contains("scripted model"), "{out}");
    let green = "$ sh test.sh\nok      three pens, no discount\nok      ten books, ten percent off\n";
    assert!(out.contains(green), "{out}");
    // The first run of the tests is the only failure.
    assert!(err.matches('✗').count() == 1 && !err.contains("window"), "{err}");
    assert!(err.contains("✗ `sh test.sh`") && err.contains("✓ `sh test.sh`"), "{err}");
    let session = err.lines().find_map(|line| line.strip_prefix("session ")).unwrap().trim();
    assert!(session.contains('-') && !err.contains("continue    crow-cli"), "{err}");
    assert!(!format!("{out}{err}").contains('\x1b'), "escape codes in a file:\n{out}\n{err}");
    assert_eq!((names(home.path()), names(temp.path())), (Vec::new(), Vec::new()));
}
