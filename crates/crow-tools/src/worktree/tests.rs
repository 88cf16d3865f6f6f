#![expect(clippy::disallowed_methods, reason = "the tests use git as a user does")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crow_process::ProcessGroups;
use expect_test::{Expect, expect};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::{GitCli, SettledWorktree, Worktree, WorktreeError};

/// A repository with content, and a directory for worktrees.
pub(super) struct Scene {
    dir: TempDir,
    pub(super) git: GitCli,
    pub(super) cancel: CancellationToken,
}

/// Runs git, which has to succeed.
pub(super) fn git(dir: &Path, line: &str) -> String {
    let mut command = Command::new("git");
    command.args(line.split(' ')).current_dir(dir);
    for (name, value) in [("NAME", "user"), ("EMAIL", "user@localhost")] {
        command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(super) fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

impl Scene {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let scene =
            Self { dir, git: GitCli::new(ProcessGroups::new(), &[]), cancel: CancellationToken::new() };
        let repository = scene.repository();
        fs::create_dir(&repository).unwrap();
        git(&repository, "init -q -b main");
        write(repository.join("a.txt"), "one\ntwo\nthree\nfour\nfive\n");
        write(repository.join("b.txt"), "to be deleted\n");
        write(repository.join("part/c.bin"), "\0\u{1}\u{2}");
        git(&repository, "add .");
        git(&repository, "commit -q -m first");
        scene
    }

    pub(super) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub(super) fn repository(&self) -> PathBuf {
        self.root().join("repository")
    }

    async fn make_in(&self, dir: &Path) -> Result<Worktree, WorktreeError> {
        Worktree::create(&self.git, dir, &self.root().join("trees"), "quiet-otter", &self.cancel).await
    }

    async fn make(&self) -> Worktree {
        self.make_in(&self.repository()).await.unwrap()
    }

    pub(super) fn show(&self, settled: &SettledWorktree) -> String {
        let mut said = format!("branch {:?}, {} files\n", settled.branch, settled.n_files);
        for file in &settled.files {
            let before =
                file.previous_path.as_ref().map(|before| format!(" from {before}")).unwrap_or_default();
            said += &format!("{:?} {}{before}\n", file.kind, file.path);
        }
        if let Some(left) = &settled.leftover {
            said += &format!("left: {left}\n");
        }
        if let Some(ignored) = &settled.ignored {
            said += &format!("ignored: {ignored}\n");
        }
        said += &format!("folder there: {}\n", self.root().join("trees/quiet-otter").exists());
        said += &git(&self.repository(), "branch --list");
        said.replace(&self.root().display().to_string(), "$DIR")
    }

    #[track_caller]
    fn check(&self, settled: &SettledWorktree, told: &Expect) {
        told.assert_eq(&self.show(settled));
    }
}

/// Works in a worktree of a new repository and settles it.
async fn check(work: impl FnOnce(&Path), told: Expect) {
    let scene = Scene::new();
    let worktree = scene.make().await;
    work(&worktree.path);
    let settled = worktree.settle(&scene.git, &scene.cancel).await;
    told.assert_eq(&scene.show(&settled));
    assert_eq!(git(&scene.repository(), "status --porcelain"), "", "the repository is as it was");
    assert_eq!(git(&scene.repository(), "branch --show-current"), "main\n");
}

#[tokio::test]
async fn worktree_without_changes_is_removed_with_its_branch() {
    check(
        |_| (),
        expect![[r#"
        branch None, 0 files
        folder there: false
        * main
    "#]],
    )
    .await;
}

#[tokio::test]
async fn changes_of_every_kind_are_on_the_branch() {
    let scene = Scene::new();
    let worktree = scene.make().await;
    let dir = &worktree.path;
    git(dir, "mv a.txt moved.txt");
    fs::remove_file(dir.join("b.txt")).unwrap();
    write(dir.join("part/c.bin"), "\0\u{3}");
    write(dir.join("new/näme \"x\".txt"), "hi\n");
    symlink("/etc/passwd", dir.join("link")).unwrap();
    let settled = worktree.settle(&scene.git, &scene.cancel).await;
    scene.check(
        &settled,
        &expect![[r#"
        branch Some("crow/quiet-otter"), 5 files
        Deleted b.txt
        Added link
        Renamed moved.txt from a.txt
        Added "new/n\303\244me \"x\".txt"
        Modified part/c.bin
        folder there: false
          crow/quiet-otter
        * main
    "#]],
    );
    expect![[r#"
        b.txt                       |   1 -
        link                        |   1 +
        a.txt => moved.txt          |   0
        "new/n\303\244me \"x\".txt" |   1 +
        part/c.bin                  | Bin 3 -> 2 bytes
        5 files changed, 2 insertions(+), 1 deletion(-)
    "#]]
    .assert_eq(&settled.stat.lines().map(|line| format!("{}\n", line.trim())).collect::<String>());
    assert!(settled.diff.contains("+hi\n") && settled.diff.contains("Binary files"), "{}", settled.diff);
    let log = git(&scene.repository(), "log -1 --format=%an,%cn,%s crow/quiet-otter");
    assert_eq!(log, "crow,crow,crow: quiet-otter\n");
}

/// Writes files into a worktree whose repository ignores some.
fn write_ignored(dir: &Path, files: &[&str]) {
    let ignored = "*.pyc\n*.o\n.env\n/target/\nö/\n";
    write(dir.parent().unwrap().with_file_name("repository/.git/info/exclude"), ignored);
    for file in files {
        write(dir.join(file), "");
    }
}

#[tokio::test]
async fn ignored_directories_are_named_and_removed() {
    let files = ["target/debug/x", "part/__pycache__/a.pyc", "part/b.o", "ö/x", "made"];
    check(|dir| write_ignored(dir, &files), expect![[r#"
        branch Some("crow/quiet-otter"), 1 files
        Added made
        ignored: Git ignores these, so they are not on a branch but deleted with the worktree: part/__pycache__/a.pyc, part/b.o, target/, "\303\266/"
        folder there: false
          crow/quiet-otter
        * main
    "#]]).await;
}

#[tokio::test]
async fn ignored_file_keeps_the_worktree() {
    check(|dir| write_ignored(dir, &[".env", "target/x"]), expect![[r#"
        branch None, 0 files
        ignored: Git ignores these, so they are not on a branch but only in $DIR/trees/quiet-otter: .env, target/
        folder there: true
        + crow/quiet-otter
        * main
    "#]]).await;
    let many: Vec<String> = (0..23).map(|number| format!("{number}/.env")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    check(|dir| write_ignored(dir, &many), expect![[r#"
        branch None, 0 files
        ignored: Git ignores these, so they are not on a branch but only in $DIR/trees/quiet-otter: 0/.env, 1/.env, 10/.env, 11/.env, 12/.env, 13/.env, 14/.env, 15/.env, 16/.env, 17/.env, 18/.env, 19/.env, 2/.env, 20/.env, 21/.env, 22/.env, 3/.env, 4/.env, 5/.env, 6/.env and 3 more
        folder there: true
        + crow/quiet-otter
        * main
    "#]]).await;
}

#[tokio::test]
async fn diff_is_truncated_when_large() {
    let scene = Scene::new();
    let worktree = scene.make().await;
    for number in 0..300 {
        write(worktree.path.join(format!("{number}.txt")), &"line\n".repeat(1000));
    }
    let settled = worktree.settle(&scene.git, &scene.cancel).await;
    assert_eq!((settled.n_files, settled.files.len()), (300, super::settle::FILES_MAX));
    assert!(settled.diff.len() < 300_000, "{}", settled.diff.len());
    assert!(settled.stat.lines().count() < 70, "{}", settled.stat);
}

#[tokio::test]
async fn uncommitted_files_are_counted_and_not_copied() {
    let scene = Scene::new();
    write(scene.repository().join("a.txt"), "changed\n");
    write(scene.repository().join("untracked.txt"), "new\n");
    let worktree = scene.make().await;
    assert_eq!(worktree.n_uncommitted, 2);
    assert!(fs::read_to_string(worktree.path.join("a.txt")).unwrap().starts_with("one\n"));
    assert!(!worktree.path.join("untracked.txt").exists());
    let settled = worktree.settle(&scene.git, &scene.cancel).await;
    assert_eq!(settled, SettledWorktree::default());
    assert_eq!(git(&scene.repository(), "status --porcelain"), " M a.txt\n?? untracked.txt\n");
}

#[tokio::test]
async fn subdirectory_of_the_repository_is_kept() {
    let scene = Scene::new();
    let worktree = scene.make_in(&scene.repository().join("part")).await.unwrap();
    assert_eq!(worktree.path, scene.root().join("trees/quiet-otter/part"));
    worktree.settle(&scene.git, &scene.cancel).await;
    fs::create_dir_all(scene.repository().join("not/committed")).unwrap();
    let worktree = scene.make_in(&scene.repository().join("not/committed")).await.unwrap();
    assert!(worktree.path.is_dir());
}

#[tokio::test]
async fn directory_outside_the_worktree_is_rejected() {
    let scene = Scene::new();
    symlink("/", scene.repository().join("out")).unwrap();
    git(&scene.repository(), "add out");
    git(&scene.repository(), "commit -q -m link");
    fs::remove_file(scene.repository().join("out")).unwrap();
    fs::create_dir_all(scene.repository().join("out/etc")).unwrap();
    let refused = scene.make_in(&scene.repository().join("out/etc")).await.unwrap_err();
    assert!(matches!(refused, WorktreeError::OutsideWorktree { .. }), "{refused}");
    scene.check(
        &SettledWorktree::default(),
        &expect![[r#"
        branch None, 0 files
        folder there: false
        * main
    "#]],
    );
}

/// A repository with programs in every possible setting; each leaves a file behind.
fn arm(repository: &Path, ran: &Path) {
    let script = repository.join(".git/run.sh");
    write(script.clone(), &format!("#!/bin/sh\necho $0 $* >> {}\ncat\n", ran.display()));
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let run = script.display().to_string();
    for hook in [
        "post-checkout",
        "pre-commit",
        "post-commit",
        "prepare-commit-msg",
        "commit-msg",
        "reference-transaction",
        "post-index-change",
    ] {
        symlink(&script, repository.join(".git/hooks").join(hook)).unwrap();
    }
    let keys = [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "diff.external",
        "diff.odd.command",
        "diff.odd.textconv",
        "filter.odd.clean",
        "filter.odd.smudge",
        "filter.odd.process",
        "gpg.program",
        "credential.helper",
    ];
    for key in keys {
        git(repository, &format!("config {key} {run}"));
    }
    for key in ["commit.gpgSign", "filter.odd.required", "submodule.recurse"] {
        git(repository, &format!("config {key} true"));
    }
    git(repository, &format!("config hook.odd.command {run}"));
    git(repository, "config hook.odd.event post-checkout");
}

#[tokio::test]
async fn hostile_repository_runs_nothing() {
    let scene = Scene::new();
    let ran = scene.root().join("ran");
    let repository = scene.repository();
    write(repository.join(".gitattributes"), "* filter=odd diff=odd\n");
    git(&repository, "add .");
    git(&repository, "commit -q -m attributes");
    arm(&repository, &ran);
    let worktree = scene.make().await;
    write(worktree.path.join("a.txt"), "changed\n");
    let settled = worktree.settle(&scene.git, &scene.cancel).await;
    assert!(settled.diff.contains("+changed"), "{settled:?}");
    assert_eq!(settled.leftover, None);
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
    // The trap works: the user's own git runs it.
    Command::new("git").args(["add", "--renormalize", "."]).current_dir(&repository).output().unwrap();
    assert!(ran.exists());
}

#[tokio::test]
async fn programs_that_cannot_be_disabled_are_rejected() {
    let scene = Scene::new();
    git(&scene.repository(), "config filter.a=b.clean run");
    let refused = scene.make_in(&scene.repository()).await.unwrap_err();
    assert!(matches!(refused, WorktreeError::UnsafeConfig { .. }), "{refused}");
}

#[tokio::test]
async fn missing_repository_or_commit_is_an_error() {
    let scene = Scene::new();
    let refused = scene.make_in(&scene.root()).await.unwrap_err();
    assert!(matches!(refused, WorktreeError::NoRepository { .. }), "{refused}");
    let refused = scene.make_in(&scene.repository().join(".git")).await.unwrap_err();
    assert!(matches!(refused, WorktreeError::NoRepository { .. }), "{refused}");
    let empty = scene.root().join("empty");
    fs::create_dir(&empty).unwrap();
    git(&empty, "init -q");
    let refused = scene.make_in(&empty).await.unwrap_err();
    assert!(matches!(refused, WorktreeError::NoCommit { .. }), "{refused}");
    for name in ["", "../x", "-b", "a b", "Ä"] {
        let refused = Worktree::create(&scene.git, &empty, &empty, name, &scene.cancel).await.unwrap_err();
        assert!(matches!(refused, WorktreeError::InvalidName { .. }), "{refused}");
    }
    scene.cancel.cancel();
    let refused = scene.make_in(&scene.repository()).await.unwrap_err();
    assert!(matches!(refused, WorktreeError::Cancelled), "{refused}");
}

#[tokio::test]
async fn existing_worktree_is_continued() {
    let scene = Scene::new();
    let left = scene.make().await;
    write(left.path.join("half.txt"), "half\n");
    let again = scene.make().await;
    assert_eq!(again, left);
    let settled = again.settle(&scene.git, &scene.cancel).await;
    scene.check(
        &settled,
        &expect![[r#"
        branch Some("crow/quiet-otter"), 1 files
        Added half.txt
        folder there: false
          crow/quiet-otter
        * main
    "#]],
    );
    // A further round continues the branch and reports all of it.
    let further = scene.make().await;
    write(further.path.join("more.txt"), "more\n");
    let settled = further.settle(&scene.git, &scene.cancel).await;
    scene.check(
        &settled,
        &expect![[r#"
        branch Some("crow/quiet-otter"), 2 files
        Added half.txt
        Added more.txt
        folder there: false
          crow/quiet-otter
        * main
    "#]],
    );
}

#[tokio::test]
async fn incomplete_worktree_is_created_again() {
    for reason in ["initializing", super::SETTLED_LOCK] {
        let scene = Scene::new();
        let left = scene.make().await;
        fs::remove_file(left.path.join("a.txt")).unwrap();
        fs::write(scene.repository().join(".git/worktrees/quiet-otter/locked"), reason).unwrap();
        let again = scene.make().await;
        assert!(again.path.join("a.txt").exists(), "{reason}");
        assert_eq!(again.settle(&scene.git, &scene.cancel).await, SettledWorktree::default());
    }
}

#[tokio::test]
async fn worktree_on_a_disk_that_is_not_mounted_stays() {
    let scene = Scene::new();
    let (mounted, unmounted) = (scene.root().join("disk"), scene.root().join("away"));
    git(&scene.repository(), &format!("worktree add -q -b other {}", mounted.display()));
    fs::rename(&mounted, &unmounted).unwrap();
    let worktree = scene.make().await;
    fs::remove_dir_all(&worktree.path).unwrap();
    let again = scene.make().await;
    fs::remove_dir_all(&again.path).unwrap();
    again.settle(&scene.git, &scene.cancel).await;
    fs::rename(&unmounted, &mounted).unwrap();
    git(&mounted, "status");
}

#[tokio::test]
async fn removed_directory_is_created_again() {
    let scene = Scene::new();
    let left = scene.make().await;
    fs::remove_dir_all(&left.path).unwrap();
    scene.make().await;
    assert!(left.path.join("a.txt").exists());
    fs::remove_dir_all(&left.path).unwrap();
    let settled = left.settle(&scene.git, &scene.cancel).await;
    scene.check(
        &settled,
        &expect![[r#"
        branch None, 0 files
        left: the directory $DIR/trees/quiet-otter was gone: uncommitted work in it is lost
        folder there: false
        * main
    "#]],
    );
}

#[tokio::test]
async fn foreign_directory_is_left_unchanged() {
    let scene = Scene::new();
    write(scene.root().join("trees/quiet-otter/mine.txt"), "mine\n");
    let refused = scene.make_in(&scene.repository()).await.unwrap_err();
    assert!(matches!(refused, WorktreeError::PathOccupied { .. }), "{refused}");
    assert!(scene.root().join("trees/quiet-otter/mine.txt").exists());
}

#[tokio::test]
async fn worktree_that_cannot_be_removed_is_reported() {
    let scene = Scene::new();
    let worktree = scene.make().await;
    write(worktree.path.join("new.txt"), "new\n");
    git(&scene.repository(), "worktree lock ../trees/quiet-otter");
    let settled = worktree.settle(&scene.git, &scene.cancel).await;
    scene.check(&settled, &expect![[r#"
        branch Some("crow/quiet-otter"), 1 files
        Added new.txt
        left: the worktree $DIR/trees/quiet-otter could not be removed: git worktree failed: '$DIR/trees/quiet-otter' is already locked
        folder there: true
        + crow/quiet-otter
        * main
    "#]]);
}

#[tokio::test]
async fn work_that_cannot_be_committed_stays() {
    let scene = Scene::new();
    let worktree = scene.make().await;
    write(worktree.path.join("new.txt"), "new\n");
    write(scene.repository().join(".git/worktrees/quiet-otter/index.lock"), "");
    let settled = worktree.settle(&scene.git, &scene.cancel).await;
    scene.check(
        &settled,
        &expect![[r#"
            branch Some("crow/quiet-otter"), 0 files
            left: the work is in $DIR/trees/quiet-otter: git add failed: Unable to create '$DIR/repository/.git/worktrees/quiet-otter/index.lock': File exists.
            folder there: true
            + crow/quiet-otter
            * main
        "#]],
    );
    assert!(worktree.path.join("new.txt").exists());
}

#[tokio::test]
async fn nested_repository_keeps_the_worktree() {
    check(
        |dir| {
            git(dir, "init -q inner");
            git(&dir.join("inner"), "commit -q --allow-empty -m inner");
        },
        expect![[r#"
            branch Some("crow/quiet-otter"), 1 files
            Added inner
            left: inner is a repository of its own, which cannot be on the branch; it is in $DIR/trees/quiet-otter
            folder there: true
            + crow/quiet-otter
            * main
        "#]],
    )
    .await;
}

#[tokio::test]
async fn branch_has_the_work_after_the_child_changed_git() {
    check(
        |dir| {
            git(dir, "checkout -q -b elsewhere");
            write(dir.join("new.txt"), "new\n");
            git(dir, "add .");
            git(dir, "commit -q -m own");
            git(dir, "branch -D -q crow/quiet-otter");
            fs::write(dir.join(".git"), "gitdir: /nowhere\n").unwrap();
        },
        expect![[r#"
            branch Some("crow/quiet-otter"), 1 files
            Added new.txt
            folder there: false
              crow/quiet-otter
              elsewhere
            * main
        "#]],
    )
    .await;
}

#[tokio::test]
async fn worktrees_are_independent() {
    let scene = Scene::new();
    let (repository, trees) = (scene.repository(), scene.root().join("trees"));
    let make = |name| Worktree::create(&scene.git, &repository, &trees, name, &scene.cancel);
    let (one, two) = tokio::join!(make("one"), make("two"));
    let (one, two) = (one.unwrap(), two.unwrap());
    write(one.path.join("a.txt"), "one\n");
    write(two.path.join("a.txt"), "two\n");
    let settled = tokio::join!(one.settle(&scene.git, &scene.cancel), two.settle(&scene.git, &scene.cancel));
    assert_eq!(
        (settled.0.n_files, settled.1.n_files, settled.0.leftover, settled.1.leftover),
        (1, 1, None, None)
    );
    // A child's child starts from its parent's branch.
    let inner = make("one").await.unwrap();
    let inner_most = Worktree::create(&scene.git, &inner.path, &trees, "inner", &scene.cancel).await.unwrap();
    assert_eq!(fs::read_to_string(inner_most.path.join("a.txt")).unwrap(), "one\n");
}
