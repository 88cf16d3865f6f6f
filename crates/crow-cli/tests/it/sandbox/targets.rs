//! Programs that an existing Git configuration or a shell executes, which a confined command tries to change.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use super::{Place, said};
use crate::threads::map_on_threads;

/// An attempt to have something run. `$EVIL` leaves a mark; `PUT FILE` creates a program that does so, `GOOD FILE`
/// one that does nothing.
struct Trap {
    what: &'static str,
    before: &'static str,
    script: &'static str,
    /// The user's next commands.
    then: &'static str,
}

const fn trap(what: &'static str, [before, script, then]: [&'static str; 3]) -> Trap {
    Trap { what, before, script, then }
}

const TRAPS: &[Trap] = &[
    trap(
        "a folder of hooks",
        ["INIT; git config core.hooksPath .husky/_; mkdir -p .husky/_", "PUT .husky/_/pre-commit", "COMMIT"],
    ),
    trap(
        "what the hooks of a folder call",
        [
            "INIT; git config core.hooksPath .husky/_; mkdir -p .husky/_; GOOD .husky/pre-commit; \
             printf '#!/bin/sh\nsh .husky/${0##*/}\n' > .husky/_/pre-commit; chmod 755 .husky/_/pre-commit",
            "PUT .husky/pre-commit",
            "COMMIT",
        ],
    ),
    trap(
        "a folder of hooks that is not there",
        ["INIT; git config core.hooksPath .githooks", "mkdir .githooks; PUT .githooks/pre-commit", "COMMIT"],
    ),
    trap(
        "a folder of hooks behind a link",
        [
            "INIT; git config core.hooksPath hooks; mkdir h; ln -s h hooks",
            "mkdir e; PUT e/pre-commit; ln -sfn e hooks",
            "COMMIT",
        ],
    ),
    trap(
        "a link in the folder of hooks",
        ["INIT; mkdir t; GOOD t/h; ln -s ../../t/h .git/hooks/pre-commit", "PUT t/h", "COMMIT"],
    ),
    trap(
        "the folder above what such a link leads to",
        [
            "INIT; mkdir t; GOOD t/h; ln -s ../../t/h .git/hooks/pre-commit",
            "mv t u; mkdir t; PUT t/h",
            "COMMIT",
        ],
    ),
    trap(
        "a program that a hook calls",
        [
            "INIT; mkdir t; GOOD t/h; printf '#!/bin/sh\nexec ./t/h\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit",
            "PUT t/h",
            "COMMIT",
        ],
    ),
    trap(
        "what a manager of hooks reads",
        [
            "INIT; printf '#!/bin/sh\n. ./lefthook.yml\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit; echo : > lefthook.yml",
            "echo \"$EVIL\" > lefthook.yml",
            "COMMIT",
        ],
    ),
    trap(
        "an included file",
        [
            "INIT; git config include.path ../.gitconfig; touch .gitconfig",
            "git config -f .gitconfig core.fsmonitor \"$EVIL\"",
            "git status",
        ],
    ),
    trap(
        "an included file that is not there",
        [
            "INIT; git config include.path ../.gitconfig",
            "git config -f .gitconfig core.fsmonitor \"$EVIL\"",
            "git status",
        ],
    ),
    trap(
        "a file included by another, under a condition",
        [
            "INIT; git config includeIf.gitdir:/.path ../a; git config -f a include.path b; touch b",
            "git config -f b core.fsmonitor \"$EVIL\"",
            "git status",
        ],
    ),
    trap(
        "a filter",
        [
            "INIT; mkdir t; git config filter.f.clean ./t/f; GOOD t/f",
            "PUT t/f; echo '*.txt filter=f' > .gitattributes; echo a > a.txt",
            "git add a.txt",
        ],
    ),
    trap(
        "a program for an interpreter",
        [
            "INIT; git config filter.f.clean 'sh f'; echo cat > f",
            "echo \"$EVIL\" > f; echo '*.txt filter=f' > .gitattributes; echo a > a.txt",
            "git add a.txt",
        ],
    ),
    trap(
        "a program that makes text",
        [
            "INIT; git config diff.d.textconv 'sh t/c'; mkdir t; echo : > t/c; echo '*.x diff=d' > .gitattributes; echo a > a.x; git add .; COMMIT; echo b > a.x",
            "echo \"$EVIL\" > t/c",
            "git diff",
        ],
    ),
    trap("a monitor", ["INIT; git config core.fsmonitor ./m; GOOD m", "PUT m", "git status"]),
    trap(
        "a program below the uppermost folder",
        [
            "INIT; git config core.fsmonitor '\"$(git rev-parse --show-toplevel)\"/m'; GOOD m",
            "PUT m",
            "git status",
        ],
    ),
    trap("an alias", ["INIT; git config alias.t '!./t.sh'; GOOD t.sh", "PUT t.sh", "git t"]),
    trap("an alias for what is not there", ["INIT; git config alias.t '!./t.sh'", "PUT t.sh", "git t"]),
    trap(
        "the person's hooks in each work tree",
        ["INIT; mkdir g; git config --global core.hooksPath g", "PUT g/pre-commit", "COMMIT"],
    ),
    trap(
        "the same in a new repository",
        [
            "git config --global core.hooksPath g",
            "git init -q a; mkdir a/g; PUT a/g/pre-commit",
            "cd a; COMMIT",
        ],
    ),
    trap(
        "the person's included file",
        [
            "INIT; git config --global include.path $PWD/c; touch c",
            "git config -f c core.fsmonitor \"$EVIL\"",
            "git status",
        ],
    ),
    trap(
        "a template of repositories",
        [
            "git config --global init.templateDir $PWD/t; mkdir -p t/hooks",
            "PUT t/hooks/post-commit",
            "git init -q n; cd n; COMMIT",
        ],
    ),
    trap(
        "the hooks of a repository above",
        ["cd ..; INIT; git config core.hooksPath root/h; mkdir root/h", "PUT h/pre-commit", "COMMIT"],
    ),
    trap(
        "a repository beside other names of one",
        [
            "",
            "git init -q a; git -C a config core.fsmonitor \"$EVIL\"; mkdir a/.GIT a/.giT a/.Git",
            "cd a; git status",
        ],
    ),
    trap(
        "a repository inside one",
        [
            "INIT",
            "mkdir .git/a; cd .git/a; INIT; git config core.fsmonitor \"$EVIL\"",
            "cd .git/a; git status",
        ],
    ),
    trap(
        "a folder that becomes a repository",
        [
            "git init -q --bare s; rm s/HEAD; cd s; git config -f config core.bare false; git config -f config core.worktree $PWD; \
             git config -f config core.fsmonitor \"$EVIL\"",
            "echo ref: refs/heads/m > s/HEAD",
            "cd s; git status",
        ],
    ),
    trap(
        "a program of a shell's start",
        ["mkdir d; echo : > d/rc; echo \". $PWD/d/rc\" > ~/.bashrc", "echo \"$EVIL\" > d/rc", "sh ~/.bashrc"],
    ),
    trap(
        "a start that is a link",
        ["mkdir d; echo : > d/rc; ln -s $PWD/d/rc ~/.bashrc", "echo \"$EVIL\" > d/rc", "sh ~/.bashrc"],
    ),
];

/// Behind more directories than the 2,000 that are examined in a cache, and more files than the 10,000 entries of one
/// part; a walk over directories ends at 1,000,000. Without the sandbox there are few.
const TRAPS_IN_LARGE_TREES: &[Trap] = &[
    trap(
        "a repository behind many folders",
        [
            "INIT",
            "mkdir f; cd f; seq $DIRS | xargs mkdir; seq -f f%.0f $FILES | xargs touch; cd ..; mkdir -p x/y; cd x/y; INIT; git config core.fsmonitor \"$EVIL\"",
            "cd x/y; git status",
        ],
    ),
    trap(
        "one from before behind many folders",
        [
            "INIT; git init -q v/w/x; mkdir a b; (cd a; seq $DIRS | xargs mkdir); (cd b; seq $FILES | xargs touch)",
            "printf '[core]\nfsmonitor=%s\n' \"$EVIL\" >> v/w/x/.git/config",
            "cd v/w/x; git status",
        ],
    ),
];

/// The same in a session whose directory is the user's home.
const HOME_TRAPS: &[Trap] = &[
    trap(
        "the person's configuration",
        [
            "git init -q a; touch .gitconfig",
            "git config --global core.fsmonitor \"$EVIL\"",
            "cd a; git status",
        ],
    ),
    trap(
        "one that is not there",
        ["git init -q a", "git config --global core.fsmonitor \"$EVIL\"", "cd a; git status"],
    ),
    trap(
        "the other place for it",
        [
            "git init -q a",
            "mkdir -p .config/git; git config -f .config/git/config core.fsmonitor \"$EVIL\"",
            "cd a; git status",
        ],
    ),
    trap("the start of a shell", ["echo : > .bashrc", "echo \"$EVIL\" >> .bashrc", "sh .bashrc"]),
    trap("a start that is not there", ["", "echo \"$EVIL\" >> .profile", "sh .profile"]),
    trap(
        "a start behind a link",
        ["mkdir d; echo : > d/rc; ln -s d/rc .zshrc", "echo \"$EVIL\" > new; ln -sf new .zshrc", "sh .zshrc"],
    ),
    trap(
        "a start moved into place",
        ["echo : > .zshenv", "echo \"$EVIL\" > new; mv -f new .zshenv", "sh .zshenv"],
    ),
    trap(
        "a program that is found first",
        ["", "mkdir -p .local/bin; PUT .local/bin/git", "PATH=~/.local/bin:$PATH git status"],
    ),
    trap("what it connects through", ["mkdir .ssh; GOOD .ssh/x", "PUT .ssh/x", ".ssh/x"]),
];

fn spelled(script: &str) -> String {
    let put = |word: &str, what: &str| {
        format!("{word}() {{ printf '#!/bin/sh\\n%s\\n' \"{what}\" > \"$1\"; chmod 755 \"$1\"; }}; ")
    };
    let script = script
        .replace("COMMIT", "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x")
        .replace("INIT", "git init -q .");
    put("PUT", "$EVIL") + &put("GOOD", ":") + &script
}

fn check(traps: &[Trap], is_home: bool, options: &[&str]) {
    map_on_threads(traps, |trap| check_trap(trap, is_home, options));
}

fn check_trap(Trap { what, before, script, then }: &Trap, is_home: bool, options: &[&str]) {
    let tried = |is_held: bool| {
        let place = Place::new();
        let home = if is_home { place.root.clone() } else { place.folder().to_owned() };
        let mark = place.folder().join("outside/mark");
        let run = |options: &[&str], script: &str| {
            let mut command = place.command(options, &spelled(script));
            command
                .env("HOME", &home)
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env("XDG_CONFIG_HOME", home.join(".config"));
            command.env("EVIL", format!("touch {}; false", mark.display()));
            let (n_dirs, n_files) = if is_held { ("2100", "10100") } else { ("10", "10") };
            command.env("DIRS", n_dirs).env("FILES", n_files);
            command.output().expect("the supervisor starts")
        };
        run(&["--free"], before);
        let _ = fs::remove_file(&mark);
        let (root, home) = (place.root.display().to_string(), home.display().to_string());
        let held = [&["--write", root.as_str(), "--home", &home], options].concat();
        let output = run(if is_held { &held } else { &["--free"] }, script);
        let _ = fs::remove_file(&mark);
        run(&["--free"], then);
        (mark.exists(), said(&output))
    };
    // Whether a trap works without the sandbox does not depend on how the sandbox is made.
    assert!(!options.is_empty() || tried(false).0, "the trap works: {what}");
    let (is_sprung, told) = tried(true);
    assert!(!is_sprung, "{what}: {told}");
}

#[test]
fn git_configured_commands_are_confined() {
    check(TRAPS, false, &[]);
}

#[test]
fn git_configured_commands_are_confined_without_a_namespace() {
    check(TRAPS, false, &["--no-namespace"]);
}

#[test]
fn git_configured_commands_in_large_trees_are_confined() {
    check(TRAPS_IN_LARGE_TREES, false, &[]);
    check(TRAPS_IN_LARGE_TREES, false, &["--no-namespace"]);
}

#[test]
fn home_autorun_files_are_protected() {
    check(HOME_TRAPS, true, &[]);
    check(HOME_TRAPS, true, &["--no-namespace"]);
}

#[test]
fn git_configuration_that_cannot_be_resolved_blocks_the_command() {
    for (before, why) in [
        ("git init -q .; git config core.hooksPath .", "programs are searched for in all of it"),
        ("git init -q .; git config include.path '~nobody/x'", "programs are searched for in all of it"),
        ("git init -q .; echo '[' >> .git/config", "not a valid Git configuration"),
        ("git init -q .; echo '[include]\npath = config' >> .git/config", ""),
    ] {
        let place = Place::new();
        place.run(&["--free"], before);
        let output = place.run_held(&[], "touch new");
        assert_eq!(place.root.join("new").exists(), why.is_empty(), "{before}: {}", said(&output));
        if !why.is_empty() {
            assert!(
                said(&output).contains(why) && said(&output).contains("not permitted"),
                "{}",
                said(&output)
            );
            assert_eq!(output.status.code(), Some(126));
        }
    }
}

#[test]
fn repository_elsewhere_does_not_keep_commands_from_running() {
    let place = Place::new();
    let beside = place.folder().join("beside");
    let setup = format!("git init -q {0}/x; echo '[' >> {0}/x/.git/config", beside.display());
    place.run(&["--free"], &setup);
    let output = place.run_held(&["--write-beside", beside.to_str().expect("text")], "touch new");
    assert!(place.root.join("new").exists(), "{}", said(&output));
}

#[test]
fn repository_is_kept_by_a_command_that_runs_no_git() {
    let place = Place::new();
    place.run(&["--free"], &spelled("INIT; echo a > a; git add a; COMMIT; mkdir src; echo b > src/b"));
    let keep = ["--keep-repositories"];
    let output =
        place.run_held(&keep, "rm -rf $(pwd) .git/index; find . -delete; echo x > .git/HEAD; echo c > c");
    assert!(!output.status.success() || place.root.join("c").exists(), "{}", said(&output));
    assert!(!place.root.join("src").exists() && !place.root.join("a").exists(), "{}", said(&output));
    let output = place.run(&["--free"], "git status --porcelain && git fsck");
    assert!(output.status.success() && said(&output).contains(" D a"), "{}", said(&output));
    // What a command that may run Git does is not restricted.
    let output = place.run_held(&[], &spelled("git checkout -q a; git add .; COMMIT"));
    assert!(output.status.success(), "{}", said(&output));
}

/// Ordinary work in a repository that contains its own hooks.
#[test]
fn files_beside_protected_ones_stay_writable() {
    let place = Place::new();
    place.run(
        &["--free"],
        &spelled("INIT; git config core.hooksPath .husky/_; mkdir -p .husky/_ src; GOOD .husky/_/pre-commit"),
    );
    let script =
        "set -e; echo a > a; mkdir b; echo c > src/c; git add .; COMMIT; mv b src; rm -r src; git status";
    let output = place.run_held(&[], &spelled(script));
    assert!(output.status.success(), "{}", said(&output));
    assert!(!said(&output).contains("set-aside"), "{}", said(&output));
}

#[test]
fn repositories_beside_the_roots_are_protected() {
    let evil = "git config core.fsmonitor x";
    for (option, repository, is_new) in [
        ("--write-beside", "beside/a/b", false),
        ("--cache", "beside/a/b", false),
        ("--cache", "beside/a/b", true),
    ] {
        let place = Place::new();
        let path = place.folder().join(repository);
        fs::create_dir_all(&path).expect("a folder can be made");
        let init = format!("cd {}; git init -q .", path.display());
        if !is_new {
            place.run(&["--free"], &init);
        }
        let beside = place.folder().join("beside").display().to_string();
        let output = place.run_held(&[option, &beside], &format!("{init}; {evil}; echo x > ../file"));
        let config = fs::read_to_string(path.join(".git/config")).unwrap_or_default();
        assert!(!config.contains("fsmonitor"), "{option} {is_new}: {}", said(&output));
        assert!(path.join("../file").exists(), "{}", said(&output));
    }
}

/// A user's directory that happens to contain a `HEAD`.
#[test]
fn existing_files_keep_their_names() {
    let place = Place::new();
    place.run(
        &["--free"],
        "mkdir -p src/hooks src/modules; echo x > src/hooks/use; echo y > src/modules/m; echo z > src/config",
    );
    let output = place.run_held(&[], "cd src; echo main > HEAD; mkdir objects refs");
    assert!(!said(&output).contains("set-aside"), "{}", said(&output));
    let output = place.run_held(&[], "cd src; echo 'ref: refs/heads/main' > HEAD");
    assert!(said(&output).contains("/src/HEAD to HEAD.set-aside"), "{}", said(&output));
    for name in ["hooks/use", "modules/m", "config"] {
        assert!(place.root.join("src").join(name).exists(), "{name}");
    }
}

#[test]
fn locks_are_removed() {
    let place = Place::new();
    place.run(&["--free"], "git init -q .");
    let output = place.run_held(&[], "echo x > .git/config.lock; mv .git/config.lock .git/config; true");
    assert!(!place.root.join(".git/config.lock").exists(), "{}", said(&output));
    let set = Command::new("git").args(["config", "user.name", "a"]).current_dir(&place.root).status();
    assert!(set.expect("git starts").success());
}

/// A writable directory inside another, or the root itself in a temporary directory, is moved by a first command.
#[test]
fn symlink_in_place_of_a_writable_directory_leads_nowhere() {
    for swap in ["rm -rf target; ln -s $OUT target", "mv target t; ln -s $OUT target"] {
        for options in [[].as_slice(), &["--no-namespace"]] {
            let place = Place::new();
            fs::create_dir(place.root.join("target")).expect("a folder can be made");
            let target = place.root.join("target").display().to_string();
            let all = [&["--write-beside", target.as_str()], options].concat();
            place.run_held(&all, swap);
            assert!(place.root.join("target").is_symlink(), "{swap}");
            let output = place.run_held(&all, "echo bad > target/new; echo bad > target/file");
            assert!(!place.outside.join("new").exists(), "{swap}: {}", said(&output));
            assert_eq!(fs::read_to_string(place.outside.join("file")).expect("it is there"), "good\n");
        }
    }
}

/// A directory that a command made unlistable is opened by its descriptor: a link to another one opens nothing.
#[test]
fn directories_outside_keep_their_permissions() {
    let place = Place::new();
    fs::set_permissions(place.outside.join("folder"), fs::Permissions::from_mode(0o311)).expect("it is ours");
    let script = "mkdir a a/b; chmod 0311 a; rmdir a/b; ln -s $OUT/folder a/b; ln -s $OUT/folder c; mkdir d; chmod 0 d";
    place.run_held(&[], script);
    let mode =
        |path: std::path::PathBuf| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(place.outside.join("folder")), 0o311);
}
