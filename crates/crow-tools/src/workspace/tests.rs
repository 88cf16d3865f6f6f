use std::{fs, os::unix::fs::symlink, path::Path};

use expect_test::{Expect, expect};

use super::Workspace;

/// Shows the Git directories around `project/sub`.
#[track_caller]
fn check(setup: fn(&Path), expect: &Expect) {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().canonicalize().unwrap();
    let cwd = place.join("project/sub");
    fs::create_dir_all(&cwd).unwrap();
    setup(&place);
    let found = Workspace::new(cwd, &[], Vec::new()).external_git_dirs();
    let lines = found.iter().map(|path| format!("{}\n", path.display()));
    expect.assert_eq(&lines.collect::<String>().replace(&place.display().to_string(), "$DIR"));
}

#[test]
fn plain_repository_has_no_external_git_dir() {
    check(|place| fs::create_dir(place.join("project/.git")).unwrap(), &expect![[""]]);
    check(|_| (), &expect![[""]]);
}

#[test]
fn worktree_gives_its_repository() {
    let setup = |place: &Path| {
        fs::create_dir_all(place.join("main/meta/worktrees/sub")).unwrap();
        fs::write(place.join("project/.git"), "gitdir: ../main/meta/worktrees/sub\n").unwrap();
        fs::write(place.join("main/meta/worktrees/sub/commondir"), "../..\n").unwrap();
    };
    check(
        setup,
        &expect![[r#"
        $DIR/main/meta
        $DIR/main/meta/worktrees/sub
    "#]],
    );
}

#[test]
fn repository_behind_a_link_is_resolved() {
    let setup = |place: &Path| symlink("../meta", place.join("project/.git")).unwrap();
    check(
        setup,
        &expect![[r#"
        $DIR/meta
    "#]],
    );
}

#[test]
fn parts_beside_head_are_those_of_a_repository() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().canonicalize().unwrap();
    let cwd = place.join("project/sub");
    fs::create_dir_all(cwd.join("HEAD")).unwrap();
    fs::create_dir(place.join("other")).unwrap();
    let workspace = Workspace::new(cwd, &[place.join("other")], Vec::new());
    assert!(!workspace.bare_repository_parts().iter().any(|part| part.starts_with(&place)));

    fs::write(place.join("project/HEAD"), "ref: refs/heads/main\n").unwrap();
    symlink("/missing", place.join("other/HEAD")).unwrap();
    let parts = workspace.bare_repository_parts();
    assert!(parts.contains(&place.join("other/refs")) && parts.contains(&place.join("project/config")));
    assert!(!parts.iter().any(|part| place.join("project/sub").starts_with(part)));
}

#[test]
fn invalid_git_file_is_protected_itself() {
    let setup = |place: &Path| {
        fs::write(place.join("project/.git"), "x".repeat(100_000)).unwrap();
        symlink("/dev/zero", place.join("project/sub/.git")).unwrap();
    };
    check(
        setup,
        &expect![[r#"
        /dev/zero
        $DIR/project/.git
    "#]],
    );
}
