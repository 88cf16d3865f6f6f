//! Files that editors, shells and other agents run by themselves, changed by a build command.

use std::fs;

use super::{Place, said};

const FILES: [(&str, &str); 5] = [
    (".vscode/settings.json", "good\n"),
    (".envrc", "good\n"),
    ("sub/.cargo/config.toml", "good\n"),
    ("real/tasks.json", "good\n"),
    (".gitmodules", "good\n"),
];

/// Attempts of a build to make another program run something later.
const TRAPS: [&str; 14] = [
    "echo bad > .vscode/tasks.json",
    "echo bad > .vscode/settings.json",
    "echo bad >> .envrc",
    "rm -f .envrc; echo bad > .envrc",
    "mv .vscode old; mkdir .vscode; echo bad > .vscode/tasks.json",
    "echo bad > sub/.cargo/config.toml",
    "mv sub old; mkdir -p sub/.cargo; echo bad > sub/.cargo/config.toml",
    "echo bad > .zed/tasks.json",
    "echo bad > real/tasks.json",
    "rm .zed; mkdir .zed; echo bad > .zed/tasks.json",
    "mkdir -p new/.idea && echo bad > new/.idea/x.xml",
    "echo bad > new.code-workspace",
    "mkdir -p a/b; chmod 0311 a; mkdir a/b/.ClAuDe; echo bad > a/b/.ClAuDe/settings.json",
    "echo bad > x; ln -s x .nvim.lua",
];

fn project() -> Place {
    let place = Place::new();
    for (name, text) in FILES {
        let path = place.root.join(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder can be made");
        fs::write(path, text).expect("a file can be written");
    }
    std::os::unix::fs::symlink("real", place.root.join(".zed")).expect("a link can be made");
    place
}

/// Returns all files that run by their name, as a shell finds them.
fn autorun(place: &Place) -> String {
    let find = "chmod 0755 a 2>/dev/null; find -L . \\( -ipath '*/.vscode/*' -o -name .envrc -o -path '*/.cargo/config.toml' \
                -o -path './.zed/*' -o -path '*/.idea/*' -o -ipath '*/.claude/*' -o -name '*.code-workspace' -o -name .nvim.lua \
                -o -name .gitmodules \\) -type f | sort | xargs grep -H .";
    said(&place.run(&["--free"], find))
}

#[track_caller]
fn check(options: &[&str], script: &str) {
    let free = project();
    let before = autorun(&free);
    free.run(&["--free"], script);
    assert_ne!(autorun(&free), before, "free: {script}");
    let held = project();
    let output = held.run_held(&[&["--guard-autorun"], options].concat(), script);
    assert_eq!(autorun(&held), before, "held: {script}: {}", said(&output));
}

#[test]
fn build_changes_nothing_that_other_programs_run() {
    TRAPS.iter().for_each(|script| check(&[], script));
}

#[test]
fn build_changes_nothing_without_a_mount_namespace() {
    TRAPS.iter().for_each(|script| check(&["--no-namespace"], script));
}

#[test]
fn package_files_stay_and_allowed_files_are_not_guarded() {
    let place = project();
    let script = "mkdir -p node_modules/a/.vscode && echo x > node_modules/a/.vscode/y; echo x > .gitignore; echo x > z";
    let output = place.run_held(&["--guard-autorun"], script);
    assert_eq!(said(&output), "");
    assert!(place.root.join("node_modules/a/.vscode/y").exists());
    let output = place.run_held(&[], "echo x > .envrc; echo x > .nvim.lua");
    assert_eq!(said(&output), "");
    assert_eq!(fs::read_to_string(place.root.join(".envrc")).expect("it is there"), "x\n");
}

#[test]
fn moved_files_are_reported() {
    let place = project();
    let output =
        place.run_held(&["--guard-autorun"], "mkdir -p b/.vscode/.vscode; echo x > b/.vscode/.vscode/y");
    let path = place.root.join("b/.vscode");
    let sentence = format!(
        "crow-cli sandbox-exec: renamed {} to .vscode.set-aside, because an unapproved command created it and an \
         editor, a shell or an agent could execute a program through it: operation not permitted in the sandbox\n",
        path.display()
    );
    assert_eq!(said(&output), sentence);
}
