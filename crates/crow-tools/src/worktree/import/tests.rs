//! Bundles between two machines, and those of a hostile one.
#![expect(clippy::disallowed_methods, reason = "the tests use git as a user does")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crow_core::GIT_BUNDLE_BYTES_MAX;
use expect_test::{Expect, expect};

use super::super::Worktree;
use super::super::bundle::BundledCommit;
use super::super::error::WorktreeError;
use super::super::settle::SettledWorktree;
use super::super::tests::{Scene, git, write};
use super::{BranchImport, RepositoryImport};

const NAME: &str = "quiet-otter";

/// The user's repository, and a worker's directory with the repository and the worktree of a task.
struct FarScene {
    scene: Scene,
    base: BundledCommit,
    worktree: Worktree,
}

impl FarScene {
    /// Sends `HEAD` to the worker, in whose worktree the task works then.
    async fn new() -> Self {
        let scene = Scene::new();
        let base = bundle_head(&scene).await;
        let directory = import(&scene, &base.commit, &base.bytes, "part").await.unwrap();
        let (parent, git) = (scene.root().join("far"), &scene.git);
        let worktree = Worktree::create(git, &directory, &parent, NAME, &scene.cancel).await.unwrap();
        assert_eq!(worktree.path, parent.join(NAME).join("part"));
        Self { scene, base, worktree }
    }

    fn far_repository(&self) -> PathBuf {
        self.scene.root().join("far/.repository")
    }

    /// Settles the work and bundles it.
    async fn bundle_work(&self) -> Option<BundledCommit> {
        let Scene { git, cancel, .. } = &self.scene;
        self.worktree.settle(git, cancel).await;
        let (repository, file) = (self.far_repository(), self.scene.root().join("work.bundle"));
        git.bundle_branch(&repository, [&self.base.commit, NAME], &file, cancel).await.unwrap()
    }

    /// Bundles commits of the worker's repository with git itself.
    fn bundle_with_git(&self, revisions: &str) -> Vec<u8> {
        let file = self.scene.root().join("hostile.bundle");
        git(&self.far_repository(), &format!("bundle create -q {} {revisions}", file.display()));
        fs::read(file).unwrap()
    }

    async fn take(&self, bundle: &[u8]) -> Result<SettledWorktree, WorktreeError> {
        let (repository, quarantine) = (self.scene.repository(), self.scene.root().join("quarantine"));
        let (base, quarantine) = (self.base.commit.as_str(), quarantine.as_path());
        let import = BranchImport { repository: &repository, base, name: NAME, bundle, quarantine };
        let taken = self.scene.git.import_branch(import, &self.scene.cancel).await;
        assert!(!quarantine.exists());
        taken
    }

    /// Expects that a bundle is rejected, and that nothing is different afterwards.
    async fn check_rejected(&self, bundle: &[u8], expected: &Expect) {
        let before = self.snapshot();
        let reason = self.take(bundle).await.unwrap_err().to_string();
        assert_eq!(self.snapshot(), before);
        let mut shown = reason.replace(&self.scene.root().display().to_string(), "$DIR");
        for word in reason.split([' ', ':', '\n']).filter(|word| word.len() == 40) {
            shown = shown.replace(word, "$OBJECT");
        }
        expected.assert_eq(&shown);
    }

    /// All references and all objects of the user's repository.
    fn snapshot(&self) -> String {
        let repository = self.scene.repository();
        let objects = git(&repository, "cat-file --batch-all-objects --batch-check --unordered");
        let mut objects: Vec<&str> = objects.lines().collect();
        objects.sort_unstable();
        git(&repository, "for-each-ref") + &git(&repository, "status --porcelain") + &objects.join("\n")
    }

    /// Makes a commit of a tree with one entry, which git itself would not check out.
    fn commit_of_tree(&self, entry: &str, message: &str) -> String {
        let repository = self.far_repository();
        let tree = git_with_input(&repository, &["mktree", "--missing"], entry.as_bytes());
        let base = &self.base.commit;
        git(&repository, &format!("commit-tree {} -p {base} -m {message}", tree.trim())).trim().to_owned()
    }

    /// Makes the branch of the task point to a commit.
    fn set_branch(&self, commit: &str) {
        git(&self.far_repository(), &format!("update-ref refs/heads/crow/{NAME} {commit}"));
    }

    fn bundle_hostile_branch(&self) -> Vec<u8> {
        self.bundle_with_git(&format!("{}..refs/heads/crow/{NAME}", self.base.commit))
    }
}

fn git_with_input(dir: &Path, args: &[&str], input: &[u8]) -> String {
    String::from_utf8(git_bytes(dir, args, input)).unwrap()
}

fn git_bytes(dir: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.args(args).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(input).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "git {args:?}");
    output.stdout
}

async fn bundle_head(scene: &Scene) -> BundledCommit {
    let (git, file) = (&scene.git, scene.root().join("head.bundle"));
    let head = git.inspect_head(&scene.repository(), &scene.cancel).await.unwrap();
    let bundled = git.bundle_head(&head.repository, None, &file, &scene.cancel).await.unwrap();
    assert!(!file.exists());
    assert_eq!(bundled.commit, head.commit);
    bundled
}

async fn import(scene: &Scene, commit: &str, bundle: &[u8], prefix: &str) -> Result<PathBuf, WorktreeError> {
    let base = scene.root().join("base");
    if !base.exists() {
        scene.git.import_base(&base, bundle, &scene.cancel).await?;
    }
    import_on(scene, &base, [commit, prefix], None).await
}

async fn import_on(
    scene: &Scene,
    base: &Path,
    [commit, prefix]: [&str; 2],
    bundle: Option<&[u8]>,
) -> Result<PathBuf, WorktreeError> {
    let directory = scene.root().join("far/.repository");
    let import = RepositoryImport { directory: &directory, base, commit, bundle, prefix: Path::new(prefix) };
    scene.git.import_repository(import, &scene.cancel).await
}

#[tokio::test]
async fn worktree_on_another_machine_comes_back_as_its_branch_only() {
    let far = FarScene::new().await;
    let dir = far.worktree.path.parent().unwrap();
    write(dir.join("a.txt"), "one\n");
    git(dir, "mv b.txt moved.txt");
    write(dir.join("part/new.txt"), "new\n");
    let bundle = far.bundle_work().await.unwrap();
    let (refs, head) = ("for-each-ref --format=%(refname)", git(&far.scene.repository(), "rev-parse HEAD"));
    let settled = far.take(&bundle.bytes).await.unwrap();
    expect![[r#"
        branch Some("crow/quiet-otter"), 3 files
        Modified a.txt
        Renamed moved.txt from b.txt
        Added part/new.txt
        folder there: false
          crow/quiet-otter
        * main
    "#]]
    .assert_eq(&far.scene.show(&settled));
    let repository = far.scene.repository();
    assert_eq!(git(&repository, refs), "refs/heads/crow/quiet-otter\nrefs/heads/main\n");
    assert_eq!(git(&repository, "rev-parse HEAD"), head);
    assert_eq!(git(&repository, "status --porcelain"), "");
    assert_eq!(git(&repository, "show crow/quiet-otter:part/new.txt"), "new\n");
    assert_eq!(git(&repository, "log --format=%s crow/quiet-otter"), "crow: quiet-otter\nfirst\n");
    // The end of a task may be handled twice.
    assert_eq!(far.take(&bundle.bytes).await.unwrap(), settled);
    git(&repository, "branch -f crow/quiet-otter main");
    far.check_rejected(
        &bundle.bytes,
        &expect!["the branch crow/quiet-otter exists already, with another commit; rename or delete it"],
    )
    .await;
}

#[tokio::test]
async fn worktree_on_another_machine_without_changes_has_no_branch() {
    let far = FarScene::new().await;
    assert_eq!(far.bundle_work().await, None);
}

#[tokio::test]
async fn repository_within_the_work_of_another_machine_is_named() {
    let far = FarScene::new().await;
    let nested = far.worktree.path.join("nested");
    write(nested.join("file"), "x");
    for line in ["init -q", "add .", "commit -q -m nested"] {
        git(&nested, line);
    }
    let bundle = far.bundle_work().await.unwrap();
    let settled = far.take(&bundle.bytes).await.unwrap();
    expect!["part/nested is a repository of its own, which cannot be on the branch; it was not sent"]
        .assert_eq(&settled.leftover.unwrap());
}

#[tokio::test]
async fn damaged_bundle_changes_nothing() {
    let far = FarScene::new().await;
    write(far.worktree.path.join("new.txt"), &"new\n".repeat(100));
    let bundle = far.bundle_work().await.unwrap().bytes;
    let position = bundle.windows(4).position(|window| window == b"PACK").unwrap();
    let before = far.snapshot();
    for index in (position..bundle.len()).step_by(23) {
        let mut damaged = bundle.clone();
        damaged[index] ^= 0x10;
        assert!(far.take(&damaged).await.is_err(), "byte {index}");
    }
    for len in [0, 20, position, position + 12, bundle.len() - 1] {
        assert!(far.take(&bundle[..len]).await.is_err(), "{len} bytes");
    }
    assert_eq!(far.snapshot(), before);
    assert!(far.take(&bundle).await.is_ok());
}

#[tokio::test]
async fn bundle_of_another_reference_is_rejected() {
    let far = FarScene::new().await;
    let commit = far.commit_of_tree("", "empty");
    git(&far.far_repository(), &format!("update-ref refs/heads/main {commit}"));
    let another =
        expect!["the bundle was rejected: it has another reference than the one that was agreed on"];
    let base = &far.base.commit;
    far.check_rejected(&far.bundle_with_git(&format!("{base}..refs/heads/main")), &another).await;
    far.set_branch(&commit);
    let both = format!("refs/heads/main refs/heads/crow/{NAME} --not {base}");
    far.check_rejected(&far.bundle_with_git(&both), &another).await;
}

#[tokio::test]
async fn tree_with_files_of_git_is_rejected() {
    let far = FarScene::new().await;
    let repository = far.far_repository();
    let blob =
        git_with_input(&repository, &["hash-object", "-w", "--stdin"], b"#!/bin/sh\ntouch /tmp/owned\n");
    let hook = format!("100755 blob {}\tpost-checkout\n", blob.trim());
    let hooks = git_with_input(&repository, &["mktree"], hook.as_bytes());
    let dot_git =
        git_with_input(&repository, &["mktree"], format!("040000 tree {}\thooks\n", hooks.trim()).as_bytes());
    let commit = far.commit_of_tree(&format!("040000 tree {}\t.git\n", dot_git.trim()), "hooks");
    far.set_branch(&commit);
    far.check_rejected(
        &far.bundle_hostile_branch(),
        &expect!["git index-pack failed: object $OBJECT: hasDotgit: contains '.git'"],
    )
    .await;
    // The same in the other direction.
    git(&repository, &format!("update-ref --no-deref HEAD {commit}"));
    let bundle = far.bundle_with_git("HEAD");
    for directory in ["far", "base"] {
        fs::remove_dir_all(far.scene.root().join(directory)).unwrap();
    }
    assert!(import(&far.scene, &commit, &bundle, "").await.is_err());
}

#[tokio::test]
async fn bundle_that_requires_an_unknown_commit_is_rejected() {
    let far = FarScene::new().await;
    let first = far.commit_of_tree("", "first");
    let tree = git(&far.far_repository(), &format!("rev-parse {first}^{{tree}}"));
    let second = git(&far.far_repository(), &format!("commit-tree {} -p {first} -m second", tree.trim()));
    far.set_branch(second.trim());
    let bundle = far.bundle_with_git(&format!("{first}..refs/heads/crow/{NAME}"));
    let unknown = expect!["the bundle was rejected: it requires a commit that was not sent"];
    far.check_rejected(&bundle, &unknown).await;
    // A commit of the user that the task does not know.
    write(far.scene.repository().join("later.txt"), "later\n");
    for line in ["add .", "commit -q -m later"] {
        git(&far.scene.repository(), line);
    }
    let later = git(&far.scene.repository(), "rev-parse HEAD");
    let text = String::from_utf8_lossy(&bundle).into_owned();
    assert!(text.contains(&first));
    let named = replace_bytes(&bundle, first.as_bytes(), later.trim().as_bytes());
    far.check_rejected(&named, &unknown).await;
    // A history with a hole that the header does not mention.
    let header_end = bundle.windows(2).position(|window| window == b"\n\n").unwrap() + 2;
    let header =
        format!("# v2 git bundle\n-{}\n{} refs/heads/crow/{NAME}\n\n", far.base.commit, second.trim());
    let hole = [header.as_bytes(), &bundle[header_end..]].concat();
    let before = far.snapshot();
    assert!(far.take(&hole).await.is_err());
    assert_eq!(far.snapshot(), before);
}

#[tokio::test]
async fn history_through_an_incomplete_commit_of_the_user_is_rejected() {
    let far = FarScene::new().await;
    let (repository, far_repository) = (far.scene.repository(), far.far_repository());
    let tree = git(&far_repository, "rev-parse HEAD^{tree}");
    // A commit that the user's repository still has, without its parent.
    let person = "user <user@localhost> 1 +0000";
    let commit = |parent: &str| {
        let tree = tree.trim();
        format!("tree {tree}\nparent {parent}\nauthor {person}\ncommitter {person}\n\nx\n")
    };
    let write = ["hash-object", "-t", "commit", "-w", "--stdin"];
    let incomplete = git_with_input(&repository, &write, commit(&"1".repeat(40)).as_bytes());
    let tip = git_with_input(&far_repository, &write, commit(incomplete.trim()).as_bytes());
    let pack = git_bytes(&far_repository, &["pack-objects", "-q", "--stdout"], tip.as_bytes());
    let header = format!("# v2 git bundle\n{} refs/heads/crow/{NAME}\n\n", tip.trim());
    far.check_rejected(
        &[header.as_bytes(), &pack].concat(),
        &expect!["git rev-list failed: Could not read $OBJECT"],
    )
    .await;
}

fn replace_bytes(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let position = bytes.windows(from.len()).position(|window| window == from).unwrap();
    [&bytes[..position], to, &bytes[position + from.len()..]].concat()
}

#[tokio::test]
async fn bundle_whose_reference_is_no_commit_is_rejected() {
    let far = FarScene::new().await;
    let commit = far.commit_of_tree("", "empty");
    far.set_branch(&commit);
    let bundle = far.bundle_hostile_branch();
    let tree = git(&far.far_repository(), &format!("rev-parse {commit}^{{tree}}"));
    let header_end = bundle.windows(2).position(|window| window == b"\n\n").unwrap();
    let header = String::from_utf8(bundle[..header_end].to_vec()).unwrap();
    let header = header.replace(&format!("\n{commit} "), &format!("\n{} ", tree.trim()));
    let changed = [header.as_bytes(), &bundle[header_end..]].concat();
    far.check_rejected(&changed, &expect!["the bundle was rejected: its reference is no commit"]).await;
}

#[tokio::test]
async fn bundle_that_is_too_large_is_rejected_unread() {
    let far = FarScene::new().await;
    let mut bundle = far.bundle_with_git("HEAD");
    bundle.resize(usize::try_from(GIT_BUNDLE_BYTES_MAX).unwrap() + 1, 0);
    far.check_rejected(&bundle, &expect!["the bundle has 65 MiB, and 64 are allowed"]).await;
    let mut bundle = b"# v2 git bundle\n".to_vec();
    bundle.extend(format!("{} refs/heads/crow/{NAME}\n\nPACK", "a".repeat(40)).bytes());
    bundle.extend([0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff]);
    far.check_rejected(&bundle, &expect!["the bundle was rejected: it has too many objects"]).await;
}

#[tokio::test]
async fn repository_is_taken_as_it_was_announced_only() {
    let scene = Scene::new();
    let BundledCommit { commit, bytes } = bundle_head(&scene).await;
    let other = "a".repeat(40);
    for (commit, prefix) in
        [(&other, ""), (&commit, "../x"), (&commit, "/x"), (&commit, ".GIT/hooks"), (&commit, "a/./../..")]
    {
        let error = import(&scene, commit, &bytes, prefix).await.unwrap_err().to_string();
        assert!(error.starts_with("the bundle was rejected: it"), "{error}");
    }
    assert!(!scene.root().join("far").exists());
}

#[tokio::test]
async fn later_commit_is_a_small_bundle_on_the_first() {
    let scene = Scene::new();
    let first = bundle_head(&scene).await;
    let base = scene.root().join("base");
    scene.git.import_base(&base, &first.bytes, &scene.cancel).await.unwrap();
    write(scene.repository().join("later.txt"), "later\n");
    for line in ["add .", "commit -q -m later"] {
        git(&scene.repository(), line);
    }
    let file = scene.root().join("later.bundle");
    let bundle_since = async |commit: &str| {
        scene.git.bundle_head(&scene.repository(), Some(commit), &file, &scene.cancel).await
    };
    let later = bundle_since(&first.commit).await.unwrap();
    assert!(later.bytes.len() < first.bytes.len() + 200);
    let directory = import_on(&scene, &base, [&later.commit, ""], Some(&later.bytes)).await.unwrap();
    assert_eq!(git(&directory, "show HEAD:later.txt"), "later\n");
    assert_eq!(git(&directory, "log --format=%s"), "later\nfirst\n");
    assert_eq!(git(&base, "rev-parse HEAD").trim(), first.commit, "the base is as it was");
    // Nothing is new, or the base does not have what is required.
    assert!(bundle_since(&later.commit).await.is_err());
    write(scene.repository().join("latest.txt"), "latest\n");
    for line in ["add .", "commit -q -m latest"] {
        git(&scene.repository(), line);
    }
    let latest = bundle_since(&later.commit).await.unwrap();
    fs::remove_dir_all(scene.root().join("far")).unwrap();
    let error = import_on(&scene, &base, [&latest.commit, ""], Some(&latest.bytes)).await.unwrap_err();
    expect!["the bundle was rejected: it requires a commit that was not sent"].assert_eq(&error.to_string());
}

#[tokio::test]
async fn head_that_cannot_be_sent_is_named() {
    let scene = Scene::new();
    let inspect = async |dir: &Path| {
        let error = scene.git.inspect_head(dir, &scene.cancel).await.unwrap_err().to_string();
        error.replace(&scene.root().display().to_string(), "$DIR")
    };
    expect!["$DIR is not in a git repository"].assert_eq(&inspect(&scene.root()).await);
    write(scene.repository().join("a.txt"), "second\n");
    git(&scene.repository(), "commit -q -a -m second");
    let url = format!("file://{}", scene.repository().display());
    git(&scene.root(), &format!("clone -q --depth 1 {url} shallow"));
    expect!["the repository $DIR/shallow is a shallow clone, whose history cannot be sent; get the rest of it with `git fetch --unshallow`"].assert_eq(&inspect(&scene.root().join("shallow")).await);
    git(&scene.root(), "init -q new");
    expect!["the repository $DIR/new has no commit yet; commit something first"]
        .assert_eq(&inspect(&scene.root().join("new")).await);
}
