//! Comparison with the scripts of the real Spec Kit, whose program `CROW_TEST_SPECIFY` names.

#![expect(clippy::print_stderr, reason = "a test that compares nothing says so")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use super::Place;

/// Returns the program to compare with, if there is one.
fn specify() -> Option<PathBuf> {
    let named = std::env::var_os("CROW_TEST_SPECIFY").filter(|path| !path.is_empty()).map(PathBuf::from);
    if named.is_none() {
        eprintln!("not compared: CROW_TEST_SPECIFY names no specify");
    }
    named
}

/// Lets the real program create a project, or adopt an existing one.
fn adopt(place: &Place, specify: &Path) {
    let mut init = place.command(specify, "");
    init.args(["init", "--here", "--force", "--integration", "none", "--script", "sh"]);
    let init = init.output().unwrap();
    assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stdout));
}

/// Runs a script of the project with a Python that starts at once.
fn real(place: &Place, specify: &Path, words: &str, variables: &str) -> Output {
    let mut words = words.split_whitespace();
    let script = format!("$ROOT/.specify/scripts/bash/{}.sh", words.next().unwrap());
    let mut bash = place.command(Path::new("bash"), variables);
    let path = std::env::var_os("PATH").unwrap();
    let beside = specify.parent().unwrap().to_owned();
    bash.env("PATH", std::env::join_paths([beside].into_iter().chain(std::env::split_paths(&path))).unwrap());
    bash.arg(script.replace("$ROOT", &place.root().display().to_string()));
    bash.args(words.map(|word| word.replace('%', " "))).output().unwrap()
}

/// Returns the parts of a run that scripts read: the document, its keys in order, and the state of the project
/// afterwards.
fn read(place: &Place, ran: &Output) -> String {
    if !ran.status.success() {
        assert!(!ran.stderr.is_empty(), "a failure says why");
        assert_eq!(ran.status.code(), Some(1));
    }
    let document = match serde_json::from_slice::<Value>(&ran.stdout) {
        Ok(document) => place.plain(document.to_string().as_bytes()),
        Err(_) => String::new(),
    };
    let pointer = fs::read_to_string(place.root().join(".specify/feature.json")).unwrap_or_default();
    format!("{document}\npoints: {}", place.plain(pointer.trim_end().as_bytes()))
}

fn files(place: &Place) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![place.root().join("specs")];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                // Ours exists from the beginning; theirs is created by the model.
                true if path.ends_with("checklists") => {}
                true => folders.push(path),
                false => names.push(path.strip_prefix(place.root()).unwrap().display().to_string()),
            }
        }
    }
    names.sort();
    names
}

const POINTED: &str = r#".specify/feature.json={"feature_directory":"specs/002-b"}"#;

/// The contents of a project besides those of the real program, and the environment.
const STATES: [(&str, &str); 19] = [
    ("", ""),
    ("specs/001-a/ specs/002-b/", ""),
    (POINTED, ""),
    ("specs/002-b/ $POINTED", ""),
    ("specs/002-b/spec.md=x $POINTED", ""),
    ("specs/002-b/plan.md=x $POINTED", ""),
    ("specs/002-b/plan.md= specs/002-b/spec.md=x $POINTED", ""),
    (
        "specs/002-b/plan.md=x specs/002-b/spec.md=x specs/002-b/research.md= specs/002-b/contracts/ $POINTED",
        "",
    ),
    (
        "specs/002-b/plan.md=x specs/002-b/spec.md= specs/002-b/tasks.md=x specs/002-b/contracts/a=x \
         specs/002-b/quickstart.md=x specs/002-b/data-model.md=x $POINTED",
        "",
    ),
    ("specs/002-b/plan.md/ specs/002-b/spec.md=x $POINTED", ""),
    (".specify/feature.json=[]", ""),
    (".specify/feature.json={%\"a\":1,~\"feature_directory\":%\"specs/002-b\"%} specs/002-b/plan.md=x", ""),
    ("specs/003-c/plan.md=x $POINTED", "SPECIFY_FEATURE_DIRECTORY=specs/003-c"),
    ("specs/003-c/plan.md=x $POINTED", "SPECIFY_FEATURE_DIRECTORY=$ROOT/specs/003-c"),
    ("specs/003-c/plan.md=x $POINTED", "SPECIFY_FEATURE_DIRECTORY=specs/003-c SPECIFY_FEATURE_NO_PERSIST=1"),
    ("specs/003-c/plan.md=x", "SPECIFY_FEATURE_DIRECTORY=specs/003-c SPECIFY_FEATURE_NO_PERSIST=0"),
    (
        "specs/002-b/plan.md=x specs/002-b/spec.md=x $POINTED",
        "SPECIFY_FEATURE=other SPECIFY_FEATURE_NO_PERSIST=true",
    ),
    (
        "$POINTED .specify/templates/overrides/plan-template.md= .specify/templates/overrides/tasks-template.md=mine",
        "",
    ),
    ("$POINTED", "SPECIFY_INIT_DIR=$ROOT/nowhere"),
];

const STEPS: [(&str, &str); 11] = [
    ("check-prerequisites --json --paths-only", "paths --json"),
    ("check-prerequisites --json", "prereq --json"),
    ("check-prerequisites --json --require-spec", "prereq --json --require-spec"),
    (
        "check-prerequisites --json --require-tasks --include-tasks --template checklist-template",
        "prereq --json --require-tasks --include-tasks --template checklist-template",
    ),
    ("setup-plan --json", "setup-plan --json"),
    ("setup-tasks --json", "setup-tasks --json"),
    ("resolve-template --json tasks-template", "resolve-template --json tasks-template"),
    ("resolve-template --json no-such-template", "resolve-template --json no-such-template"),
    ("create-new-feature --json --dry-run sort%my%photos", "new-feature --json --dry-run sort%my%photos"),
    ("create-new-feature --json --number 2 sort my photos", "new-feature --json --number 2 sort my photos"),
    (
        "create-new-feature --json --allow-existing-branch --number 2 --short-name b sort photos",
        "new-feature --json --allow-existing-branch --number 2 --short-name b sort photos",
    ),
];

#[test]
fn steps_behave_like_the_real_scripts_in_every_state() {
    let Some(specify) = specify() else { return };
    let mut n_compared = 0;
    let begun = Place::new("");
    adopt(&begun, &specify);
    begun.add("specs/");
    for (things, variables) in STATES {
        for (theirs, ours) in STEPS {
            let mut told = Vec::new();
            for is_ours in [false, true] {
                let place = Place::new("");
                let copied = place
                    .command(Path::new("cp"), "")
                    .arg("-a")
                    .arg(begun.root().join("."))
                    .arg(".")
                    .status();
                assert!(copied.unwrap().success());
                place.add(&things.replace("$POINTED", POINTED));
                let ran = match is_ours {
                    true => place.crow(ours, variables),
                    false => real(&place, &specify, theirs, variables),
                };
                told.push((ran.status.success(), read(&place, &ran), files(&place)));
            }
            assert_eq!(told[1], told[0], "{ours} with {things} and {variables}");
            n_compared += 1;
        }
    }
    eprintln!("{n_compared} runs compared");
}

#[test]
fn project_of_crow_is_adopted_by_the_real_program() {
    let Some(specify) = specify() else { return };
    let place = Place::new("");
    assert!(place.crow("new-feature --short-name photo-albums sort photos", "").status.success());
    let kept = [
        ".specify/memory/constitution.md",
        ".specify/feature.json",
        ".specify/specs/001-photo-albums/spec.md",
        ".specify/specs/001-photo-albums/checklists/requirements.md",
    ];
    let texts = || kept.map(|file| fs::read_to_string(place.root().join(file)).unwrap());
    let before = texts();
    adopt(&place, &specify);
    assert_eq!(texts(), before, "the real program changed what is ours");
    let paths = real(&place, &specify, "check-prerequisites --json --paths-only", "");
    let paths: Value = serde_json::from_slice(&paths.stdout).unwrap();
    assert_eq!(paths, serde_json::from_slice::<Value>(&place.crow("paths --json", "").stdout).unwrap());
    let next = real(&place, &specify, "create-new-feature --json share albums", "");
    let next: Value = serde_json::from_slice(&next.stdout).unwrap();
    assert_eq!(next["BRANCH_NAME"], "002-share-albums");
    let after: Value =
        serde_json::from_slice(&place.crow("new-feature --json print albums", "").stdout).unwrap();
    assert_eq!(after["BRANCH_NAME"], "003-print-albums");
}

#[test]
fn project_of_the_real_program_is_continued_by_crow() {
    let Some(specify) = specify() else { return };
    let place = Place::new("");
    adopt(&place, &specify);
    assert!(real(&place, &specify, "create-new-feature --json sort photos", "").status.success());
    let ours: Value = serde_json::from_slice(&place.crow("paths --json", "").stdout).unwrap();
    assert_eq!(ours["BRANCH"], "001-sort-photos");
    let made: Value =
        serde_json::from_slice(&place.crow("new-feature --json share albums", "").stdout).unwrap();
    let spec = place.root().join("specs/002-share-albums/spec.md");
    assert_eq!(made["SPEC_FILE"], spec.display().to_string());
    let planned = real(&place, &specify, "setup-plan --json", "");
    let planned: Value = serde_json::from_slice(&planned.stdout).unwrap();
    assert_eq!(planned["BRANCH"], "002-share-albums");
}
