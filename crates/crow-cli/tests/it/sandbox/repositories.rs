//! Attempts of a confined command to make the user's next `git` run a program.

use std::{fs, path::Path, process::Command};

use super::{Place, binary, said};
use crate::threads::map_on_threads;

/// An attempt: the initial files, the command, and the directory where the user runs git afterwards. `$EVIL` is a
/// command that leaves a mark; Git runs it as `core.fsmonitor`.
struct Trap {
    what: &'static str,
    before: &'static str,
    script: &'static str,
    then: &'static str,
}

const COMMIT: &str = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x";

const TRAPS: &[Trap] = &[
    Trap {
        what: "a new repository in the session's folder",
        before: "",
        script: "git init -q .; git config core.fsmonitor \"$EVIL\"",
        then: ".",
    },
    Trap {
        what: "a new repository below",
        before: "mkdir -p a/b",
        script: "cd a/b; git init -q .; git config core.fsmonitor \"$EVIL\"",
        then: "a/b",
    },
    Trap {
        what: "a new repository moved into place",
        before: "mkdir a",
        script: "git init -q new; git -C new config core.fsmonitor \"$EVIL\"; rmdir a; mv new a",
        then: "a",
    },
    Trap {
        what: "a new repository in a folder that cannot be listed",
        before: "",
        script: "mkdir a; cd a; git init -q .; git config core.fsmonitor \"$EVIL\"; chmod 0311 .",
        then: "a",
    },
    Trap {
        what: "a new repository with its config behind a link",
        before: "",
        script: "git init -q a; git -C a config core.fsmonitor \"$EVIL\"; mv a/.git/config c; ln -s ../../c a/.git/config",
        then: "a",
    },
    Trap {
        what: "a new repository that includes a file",
        before: "",
        script: "git init -q a; git config -f c core.fsmonitor \"$EVIL\"; git -C a config include.path $PWD/c",
        then: "a",
    },
    Trap {
        what: "a repository below",
        before: "git init -q a",
        script: "git -C a config core.fsmonitor \"$EVIL\"",
        then: "a",
    },
    Trap {
        what: "a repository below that is moved away and back",
        before: "git init -q a",
        script: "mv a b && git -C b config core.fsmonitor \"$EVIL\"; mv b a",
        then: "a",
    },
    Trap {
        what: "a `.git` that is a file",
        before: "mkdir a",
        script: "git init -q b; git -C b config core.fsmonitor \"$EVIL\"; mv b/.git store; echo \"gitdir: $PWD/store\" > a/.git",
        then: "a",
    },
    Trap {
        what: "a `.git` that is a link",
        before: "mkdir a",
        script: "git init -q b; git -C b config core.fsmonitor \"$EVIL\"; mv b/.git store; ln -s ../store a/.git",
        then: "a",
    },
    Trap {
        what: "a folder in the shape of a repository",
        before: "git init -q .; mkdir a",
        script: "cd a; git init -q --bare .; git config core.bare false; git config core.worktree $PWD; \
                 git config core.fsmonitor \"$EVIL\"",
        then: "a",
    },
    Trap {
        what: "the shared part of a worktree",
        before: "git init -q main; cd main; COMMIT; git worktree add -q ../tree",
        script: "cp -r main/.git evil; git config -f evil/config core.fsmonitor \"$EVIL\"; \
                 echo $PWD/evil > main/.git/worktrees/tree/commondir",
        then: "tree",
    },
    Trap {
        what: "the shared part of the main repository",
        before: "git init -q .; COMMIT",
        script: "cp -r .git evil; git config -f evil/config core.fsmonitor \"$EVIL\"; echo ../evil > .git/commondir",
        then: ".",
    },
    Trap {
        what: "the configuration of a worktree",
        before: "git init -q .; git config extensions.worktreeConfig true",
        script: "git config -f .git/config.worktree core.fsmonitor \"$EVIL\"",
        then: ".",
    },
    Trap {
        what: "a repository without a configuration",
        before: "git init -q .; rm .git/config",
        script: "git config core.fsmonitor \"$EVIL\"",
        then: ".",
    },
    Trap {
        what: "a submodule",
        before: "git init -q s; cd s; COMMIT; cd ..; git init -q .; \
                 git -c protocol.file.allow=always submodule --quiet add ./s m",
        script: "git config -f .git/modules/m/config core.fsmonitor \"$EVIL\"",
        then: "m",
    },
];

/// Runs git as the user would, and returns whether it ran the program.
fn is_sprung(place: &Place, then: &str) -> bool {
    let mark = place.folder().join("mark");
    let mut git = Command::new("git");
    git.args(["status", "--short"]).current_dir(place.root.join(then)).env("GIT_CONFIG_NOSYSTEM", "1");
    git.env("GIT_CEILING_DIRECTORIES", env!("CARGO_TARGET_TMPDIR"));
    git.env("HOME", place.folder()).output().expect("git starts");
    let is_sprung = mark.exists();
    let _ = fs::remove_file(mark);
    is_sprung
}

fn run(place: &Place, options: &[&str], script: &str) -> std::process::Output {
    let evil = format!("EVIL='touch {}; false'; export EVIL;", place.folder().join("mark").display());
    place.run(options, &format!("{evil} {}", script.replace("COMMIT", COMMIT)))
}

#[track_caller]
fn check_traps(options: &[&str]) {
    map_on_threads(TRAPS, |Trap { what, before, script, then }| {
        let free = Place::new();
        run(&free, &["--free"], before);
        run(&free, &["--free"], script);
        assert!(is_sprung(&free, then), "the trap works: {what}");
        let held = Place::new();
        run(&held, &["--free"], before);
        let root = held.root.display().to_string();
        let output = run(&held, &[&["--write", &root], options].concat(), script);
        assert!(!is_sprung(&held, then), "{what}: {}", said(&output));
    });
}

#[test]
fn repository_traps_are_removed() {
    check_traps(&[]);
}

#[test]
fn repository_traps_are_removed_without_a_namespace() {
    check_traps(&["--no-namespace"]);
}

#[test]
fn moved_files_are_reported_and_kept() {
    let place = Place::new();
    let output = place.run_held(&[], "git init -q a; git -C a config core.pager x; git init -q b; exit 3");
    assert_eq!(output.status.code(), Some(3));
    let told = said(&output);
    assert!(
        told.contains("/a/.git/config to config.set-aside, because an unapproved command created it"),
        "{told}"
    );
    assert!(place.root.join("a/.git/config.set-aside").exists());
    assert!(place.root.join("b/.git/config").exists(), "a plain repository stays as it is");
    assert_eq!(told.matches("set-aside").count(), 1, "{told}");
}

/// Runs a script that may also write in a temporary directory, `$OUT`.
fn run_beside(place: &Place, options: &[&str], script: &str) -> std::process::Output {
    let (root, temporary) = (place.root.display().to_string(), place.outside.display().to_string());
    run(place, &[&["--write", &root, "--write-beside", &temporary], options].concat(), script)
}

#[test]
fn new_repositories_in_temporary_directories_may_be_of_other_programs() {
    for options in [[].as_slice(), &["--no-namespace"]] {
        let place = Place::new();
        let new = ["new", "folder/new", "folder"];
        let init = new.map(|new| format!("git init -q $OUT/{new}; git -C $OUT/{new} config core.pager x"));
        let output = run_beside(&place, options, &init.join(";"));
        assert_eq!(said(&output), "");
        for directory in new {
            assert!(place.outside.join(directory).join(".git/config").exists(), "{directory}");
        }
    }
    let place = Place::new();
    run(&place, &["--free"], "git init -q $OUT/known");
    run_beside(&place, &[], "touch $OUT/known/.git/config.lock");
    assert!(place.outside.join("known/.git/config.lock").exists());
}

#[test]
fn temporary_directories_and_their_repositories_are_protected() {
    for (script, then) in [
        ("cd $OUT; git init -q .; git config core.fsmonitor \"$EVIL\"", "../outside/folder"),
        ("git -C $OUT/known config core.fsmonitor \"$EVIL\"", "../outside/known"),
        (
            "cd $OUT; cp -r known/.git evil; git config -f evil/config core.fsmonitor \"$EVIL\"; \
             echo ../../evil > known/.git/commondir",
            "../outside/known",
        ),
    ] {
        let free = Place::new();
        run(&free, &["--free"], "git init -q $OUT/known");
        run(&free, &["--free"], script);
        assert!(is_sprung(&free, then), "the trap works: {script}");
        for options in [[].as_slice(), &["--no-namespace"]] {
            let held = Place::new();
            run(&held, &["--free"], "git init -q $OUT/known");
            let output = run_beside(&held, options, script);
            assert!(!is_sprung(&held, then), "{script}: {}", said(&output));
        }
    }
}

#[test]
fn repositories_above_or_named_by_the_session_are_protected() {
    for options in [[].as_slice(), &["--no-namespace"]] {
        let place = Place::new();
        let beside = place.folder().display().to_string();
        let root = place.root.display().to_string();
        let all = [&["--write", &root, "--write-beside", &beside], options].concat();
        run(&place, &all, "cd ..; git init -q .; git config core.fsmonitor \"$EVIL\"");
        assert!(!is_sprung(&place, "."), "a repository above");
        let place = Place::new();
        run(
            &place,
            &["--free"],
            "cd ..; git init -q main; cd main; COMMIT; git worktree add -q ../root/tree",
        );
        let beside = place.folder().display().to_string();
        let (root, main) = (place.root.join("tree").display().to_string(), place.folder().join("main/.git"));
        let main = main.display().to_string();
        let all = [&["--write", &root, "--write-beside", &beside, "--repository", &main], options].concat();
        run(&place, &all, "git config -f ../main/.git/config core.fsmonitor \"$EVIL\"");
        assert!(!is_sprung(&place, "tree"), "the repository of a worktree");
    }
}

/// Whether this user may start the binary as another user, who can read it.
pub(super) fn can_be_nobody() -> bool {
    use std::os::unix::process::CommandExt as _;
    let mut probe = Command::new(binary());
    probe.args(["sandbox-exec", "--probe"]).uid(65534).gid(65534).current_dir(Path::new("/"));
    probe.output().is_ok_and(|output| output.status.success())
}
