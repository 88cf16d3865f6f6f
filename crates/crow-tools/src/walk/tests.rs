//! Walks of directories that were made to hang them.

use std::{fs, os::unix::fs::symlink, sync::Mutex};

use rustix::fs::{CWD, Mode, mkfifoat};

use super::*;

struct Names<'a>(&'a Mutex<Vec<String>>);

impl FileVisitor for Names<'_> {
    fn visit_file(&mut self, file: FoundFile) {
        self.0.lock().unwrap().push(file.display_path("."));
    }
}

fn names(start: &Path) -> (Vec<String>, WalkSummary) {
    let names = Mutex::default();
    let start = start.canonicalize().unwrap();
    let walked = walk_files(&start, ".", &CancellationToken::new(), || Names(&names)).unwrap();
    let mut names = names.into_inner().unwrap();
    names.sort();
    (names, walked)
}

#[test]
fn ignore_file_may_be_a_link_within_the_repository_only() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("project");
    for path in ["project/.git/info", "project/sub"] {
        fs::create_dir_all(dir.path().join(path)).unwrap();
    }
    fs::write(dir.path().join("outside"), "kept\n").unwrap();
    fs::write(project.join("rules"), "left-out\n").unwrap();
    for name in ["sub/left-out", "sub/kept"] {
        fs::write(project.join(name), "").unwrap();
    }
    symlink("../rules", project.join("sub/.gitignore")).unwrap();
    symlink("../../outside", project.join("sub/.ignore")).unwrap();
    mkfifoat(CWD, project.join(".git/info/exclude"), Mode::from_raw_mode(0o600)).unwrap();
    let (names, walked) = names(&project.join("sub"));
    assert_eq!(names, ["kept"]);
    assert_eq!(walked, WalkSummary { n_unread_rules: 2, is_truncated: false });
}

#[test]
fn ignore_files_are_bounded_together() {
    let dir = tempfile::tempdir().unwrap();
    let rules = "x*yyyyyyyyyyyyy\n".repeat(1000) + "left-out\n";
    for number in 0..100 {
        let sub = dir.path().join(format!("{number:03}"));
        fs::create_dir(&sub).unwrap();
        fs::write(sub.join(".ignore"), &rules).unwrap();
        fs::write(sub.join("left-out"), "").unwrap();
    }
    let (names, walked) = names(dir.path());
    let n_shown = names.iter().filter(|name| name.ends_with("left-out")).count();
    assert!((20..60).contains(&n_shown), "{n_shown}");
    assert!(walked.n_unread_rules >= n_shown, "{walked:?}");
}

#[test]
fn directories_of_any_depth_are_walked() {
    let dir = tempfile::tempdir().unwrap();
    let mut deep = dir.path().canonicalize().unwrap();
    while deep.as_os_str().len() < 3800 {
        deep.push("x".repeat(200));
        fs::create_dir(&deep).unwrap();
    }
    fs::write(deep.join("end"), "").unwrap();
    symlink(".", deep.join("round")).unwrap();
    let (names, walked) = names(dir.path());
    assert_eq!(names.len(), 1);
    assert_eq!(walked, WalkSummary { n_unread_rules: 0, is_truncated: false });
}
