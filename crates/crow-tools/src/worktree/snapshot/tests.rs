//! Snapshots on one machine, and what another one has of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};

use super::super::import::RepositoryImport;
use super::super::tests::{Scene, git, write};
use super::*;

const NAME: &str = "quiet-otter";

async fn take(
    scene: &Scene,
    files: &SnapshotFiles,
    last: Option<&SnapshotContent>,
) -> Result<Option<BundledSnapshot>, WorktreeError> {
    let scratch = scene.root().join("scratch");
    let request = SnapshotRequest { files, last, scratch: &scratch };
    let taken = scene.git.take_snapshot(request, &scene.cancel).await;
    assert!(!scratch.exists());
    taken
}

/// A directory of a task that has no code.
fn make_directory(scene: &Scene, name: &str) -> PathBuf {
    let directory = scene.root().join(name);
    fs::create_dir(&directory).unwrap();
    directory
}

async fn restore(scene: &Scene, directory: &Path, bundle: &[u8]) -> Result<(), WorktreeError> {
    let scratch = scene.root().join("scratch");
    let restored = scene.git.restore_directory(directory, bundle, &scratch, &scene.cancel).await;
    assert!(!scratch.exists());
    restored
}

/// Describes all files below a directory, apart from those of git.
fn show_files(directory: &Path) -> String {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let show = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let metadata = fs::symlink_metadata(path).unwrap();
        match () {
            () if name == ".git" => String::new(),
            () if metadata.is_dir() => {
                show_files(path).lines().map(|line| format!("{name}/{line}\n")).collect()
            }
            () if metadata.is_symlink() => format!("{name} -> {}\n", fs::read_link(path).unwrap().display()),
            () => {
                let is_program = if metadata.permissions().mode() & 0o100 == 0 { "" } else { "*" };
                format!(
                    "{name}{is_program}: {}\n",
                    fs::read_to_string(path).unwrap().trim_end().replace('\n', "|")
                )
            }
        }
    };
    paths.iter().map(show).collect()
}

#[tokio::test]
async fn directory_is_the_same_on_another_machine_but_for_what_git_ignores() {
    let scene = Scene::new();
    let here = make_directory(&scene, "here");
    let files = SnapshotFiles::Directory(here.clone());
    let empty = take(&scene, &files, None).await.unwrap().unwrap();
    for (path, text) in
        [("a.txt", "one\n"), ("part/b.txt", "two\n"), (".gitignore", "*.log\n"), ("c.log", "three\n")]
    {
        write(here.join(path), text);
    }
    write(here.join("run"), "#!/bin/sh\n");
    fs::set_permissions(here.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("part/b.txt", here.join("link")).unwrap();
    let taken = take(&scene, &files, Some(&empty.content)).await.unwrap().unwrap();
    assert!(take(&scene, &files, Some(&taken.content)).await.unwrap().is_none());
    fs::remove_file(here.join("a.txt")).unwrap();
    assert!(take(&scene, &files, Some(&taken.content)).await.unwrap().is_some());
    let there = make_directory(&scene, "there");
    restore(&scene, &there, &taken.bundle).await.unwrap();
    expect![[r"
        .gitignore: *.log
        a.txt: one
        link -> part/b.txt
        part/b.txt: two
        run*: #!/bin/sh
    "]]
    .assert_eq(&show_files(&there));
    let nothing = make_directory(&scene, "nothing");
    restore(&scene, &nothing, &empty.bundle).await.unwrap();
    assert_eq!(show_files(&nothing), "");
}

/// Makes the worktree of a task of a commit that was sent, and of a snapshot of an earlier worker.
async fn make_worktree(
    scene: &Scene,
    machine: &str,
    snapshot: Option<&BundledSnapshot>,
) -> Result<Worktree, WorktreeError> {
    let Scene { git: cli, cancel, .. } = scene;
    let (parent, quarantine) = (scene.root().join(machine), scene.root().join("quarantine"));
    let base = scene.root().join("base");
    if !base.exists() {
        let bundled =
            cli.bundle_head(&scene.repository(), None, &scene.root().join("bundle"), cancel).await?;
        cli.import_base(&base, &bundled.bytes, cancel).await?;
    }
    let (directory, commit) = (parent.join(".repository"), git(&base, "rev-parse HEAD"));
    let import = RepositoryImport {
        directory: &directory,
        base: &base,
        commit: commit.trim(),
        bundle: None,
        prefix: Path::new("part"),
    };
    let dir = cli.import_repository(import, cancel).await?;
    if let Some(BundledSnapshot { bundle, .. }) = snapshot {
        let (base, quarantine) = (commit.trim(), quarantine.as_path());
        let import = BranchImport { repository: &directory, base, name: NAME, bundle, quarantine };
        cli.restore_branch(import, cancel).await?;
    }
    let worktree = Worktree::create(cli, &dir, &parent, NAME, cancel).await?;
    if snapshot.is_some() {
        worktree.undo_snapshot_commit(cli, cancel).await?;
    }
    Ok(worktree)
}

/// Describes the branch and the files of a worktree.
fn show_worktree(worktree: &Worktree) -> String {
    let log = git(&worktree.root, "log --format=%s crow/quiet-otter");
    format!("{log}{}---\n{}", git(&worktree.root, "status --porcelain"), show_files(&worktree.root))
}

#[tokio::test]
async fn worktree_is_the_same_on_another_machine_and_unchanged_on_the_first() {
    let scene = Scene::new();
    let here = make_worktree(&scene, "here", None).await.unwrap();
    write(here.root.join("committed.txt"), "one\n");
    git(&here.root, "add committed.txt");
    git(&here.root, "commit -q -m second");
    write(here.root.join("a.txt"), "changed\n");
    write(here.root.join("staged.txt"), "two\n");
    git(&here.root, "add staged.txt");
    write(here.root.join("new.txt"), "three\n");
    // The directory of the task has no file any more.
    fs::remove_dir_all(here.root.join("part")).unwrap();
    let before = (show_worktree(&here), git(&here.root, "for-each-ref"));
    let base = here.base.clone();
    let files = SnapshotFiles::Worktree { worktree: Box::new(here.clone()), base };
    let taken = take(&scene, &files, None).await.unwrap().unwrap();
    assert_eq!((show_worktree(&here), git(&here.root, "for-each-ref")), before);
    assert!(take(&scene, &files, Some(&taken.content)).await.unwrap().is_none());
    let there = make_worktree(&scene, "there", Some(&taken)).await.unwrap();
    assert!(there.path.is_dir());
    assert_eq!(there.base, here.base);
    expect![[r#"
        second
        first
         M a.txt
         D part/c.bin
        ?? new.txt
        ?? staged.txt
        ---
        a.txt: changed
        b.txt: to be deleted
        committed.txt: one
        new.txt: three
        staged.txt: two
    "#]]
    .assert_eq(&show_worktree(&there));
    let settled = there.settle(&scene.git, &scene.cancel).await;
    assert_eq!(settled.n_files, 5);
    git(&here.root, "commit -q -a -m third");
    assert!(take(&scene, &files, Some(&taken.content)).await.unwrap().is_some(), "it has another commit");
}

async fn check_refused(scene: &Scene, files: &SnapshotFiles, expected: &Expect) {
    expected.assert_eq(&take(scene, files, None).await.unwrap_err().to_string());
}

#[tokio::test]
async fn what_cannot_be_in_a_snapshot_is_refused() {
    let scene = Scene::new();
    let here = make_directory(&scene, "here");
    let files = SnapshotFiles::Directory(here.clone());
    fs::create_dir_all(here.join("part/inner")).unwrap();
    git(&here.join("part/inner"), "init -q");
    check_refused(&scene, &files, &expect!["part/inner is a repository of its own"]).await;
    write(here.join("part/inner/file"), "one\n");
    git(&here.join("part/inner"), "add .");
    git(&here.join("part/inner"), "commit -q -m first");
    check_refused(&scene, &files, &expect!["part/inner is a repository of its own"]).await;
    fs::remove_dir_all(here.join("part")).unwrap();
    let sparse = here.join("spärs\"\n\\e");
    fs::File::create(&sparse).unwrap().set_len(FILES_BYTES_MAX + 1).unwrap();
    let too_large =
        expect!["the changed files are too many or too large: more than 64 MiB, or ten thousand files"];
    check_refused(&scene, &files, &too_large).await;
    fs::remove_file(sparse).unwrap();
    let name = "n".repeat(200);
    for index in 0..=LISTING_BYTES_MAX / name.len() {
        write(here.join(format!("{name}{index}")), "");
    }
    check_refused(&scene, &files, &too_large).await;
}

#[tokio::test]
async fn hostile_snapshot_is_not_restored() {
    let scene = Scene::new();
    let there = make_directory(&scene, "there");
    let (repository, file) = (scene.repository(), scene.root().join("hostile.bundle"));
    let bundle = |revisions: &str| {
        git(&repository, &format!("bundle create -q {} {revisions}", file.display()));
        fs::read(&file).unwrap()
    };
    symlink("/", repository.join("outside")).unwrap();
    git(&repository, "add .");
    git(&repository, "commit -q -m second");
    let without_history = bundle("HEAD --not HEAD~1");
    let reason = restore(&scene, &there, &without_history).await.unwrap_err().to_string();
    expect!["the bundle was rejected: it requires a commit that was not sent"].assert_eq(&reason);
    let mut damaged = bundle("HEAD");
    *damaged.last_mut().unwrap() ^= 1;
    restore(&scene, &there, &damaged).await.unwrap_err();
    assert_eq!(show_files(&there), "");
    // A link instead of the directory of the task would lead out.
    let here = make_worktree(&scene, "here", None).await.unwrap();
    fs::remove_dir_all(here.root.join("part")).unwrap();
    symlink("/", here.root.join("part")).unwrap();
    let base = here.base.clone();
    let files = SnapshotFiles::Worktree { worktree: Box::new(here), base };
    let taken = take(&scene, &files, None).await.unwrap().unwrap();
    let reason = make_worktree(&scene, "far", Some(&taken)).await.unwrap_err().to_string();
    expect!["$DIR/far/quiet-otter/part/ leads out of the worktree"]
        .assert_eq(&reason.replace(&scene.root().display().to_string(), "$DIR"));
}
