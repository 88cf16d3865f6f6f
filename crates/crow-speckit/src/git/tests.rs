use crate::fixture::fixture_project;

use super::*;

/// Lists the branches seen from a path in a directory with these files; `$DIR` in them is that directory.
#[track_caller]
fn check(files: &[(&str, &str)], place: &str, expected: &str) {
    let (directory, _project) = fixture_project(&[]);
    let root = directory.path().canonicalize().unwrap();
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.replace("$DIR", &root.display().to_string())).unwrap();
    }
    assert_eq!(list_branches(&root.join(place)).join(" "), expected, "{files:?}");
}

const HEADS: [(&str, &str); 4] = [
    ("main/.git/refs/heads/main", ""),
    ("main/.git/refs/heads/feat/001-a", ""),
    ("main/.git/refs/remotes/origin/002-b", ""),
    ("main/.git/packed-refs", "# pack-refs with: peeled\n00 refs/heads/003-c\n^00\n00 refs/tags/x\n"),
];

#[test]
fn branches_are_loose_and_packed_refs() {
    check(&HEADS, "main", "002-b 003-c feat/001-a main");
    check(&[], "main", "");
}

#[test]
fn worktree_has_the_branches_of_its_repository() {
    let seen = |back: &str, expected: &str| {
        let mut files = HEADS.to_vec();
        files.extend([
            ("w/.git", "gitdir: ../main/.git/worktrees/w\n"),
            ("main/.git/worktrees/w/commondir", "../..\n"),
            ("main/.git/worktrees/w/gitdir", back),
        ]);
        check(&files, "w", expected);
    };
    seen("$DIR/w/.git\n", "002-b 003-c feat/001-a main");
    seen("../../../../w/.git\n", "002-b 003-c feat/001-a main");
    seen("$DIR/other/.git\n", "");
}

#[test]
fn submodule_has_its_own_branches() {
    let seen = |config: &str, expected: &str| {
        let mut files = HEADS.to_vec();
        files.extend([
            ("main/sub/.git", "gitdir: ../.git/modules/sub\n"),
            ("main/.git/modules/sub/config", config),
            ("main/.git/modules/sub/refs/heads/007-x", ""),
        ]);
        check(&files, "main/sub", expected);
    };
    seen("[core]\n\tbare = false\n\tworktree = ../../../sub\n[remote \"origin\"]\n\tworktree = x\n", "007-x");
    seen("[Core]\n\tworkTree = \"$DIR/main/sub\"\n", "007-x");
    seen("[core]\n\tworktree = ../../../other\n", "");
    seen("[other]\n\tworktree = ../../../sub\n", "");
    seen("", "");
}

#[test]
fn directories_without_branches_are_limited() {
    let (directory, _project) = fixture_project(&[("refs/heads/a/b/c", ""), ("refs/heads/a/d", "")]);
    let seen = |n_entries: usize| {
        let mut refs = RefNames { names: Vec::new(), n_entries_left: n_entries };
        refs.collect_refs(directory.path(), "refs/heads", REF_LEVELS_MAX);
        refs.names.len()
    };
    assert_eq!((seen(0), seen(1), seen(4)), (0, 0, 2));
    let mut refs = RefNames { names: Vec::new(), n_entries_left: ENTRIES_MAX };
    refs.collect_refs(directory.path(), "refs/heads", 1);
    assert_eq!(refs.names, ["refs/heads/a/d"]);
}
