//! `crow-cli speckit` in scripts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "the binary is what is tested, with an environment of its own"
)]

mod real;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use expect_test::{Expect, expect};

/// A home and a project beside each other.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// Creates files: `a/` is a directory, `a=text` a file; `%` is a space and `~` ends a line.
    fn new(things: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(place.root()).unwrap();
        place.add(things);
        place
    }

    fn root(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join("project")
    }

    fn add(&self, things: &str) {
        for thing in things.split_whitespace() {
            let (name, text) = thing.split_once('=').map_or((thing, None), |(name, text)| (name, Some(text)));
            let path = self.root().join(name);
            match text {
                Some(text) => {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, text.replace('%', " ").replace('~', "\n")).unwrap();
                }
                None => fs::create_dir_all(path).unwrap(),
            }
        }
    }

    /// Returns a program with this environment, in the project.
    fn command(&self, program: &Path, variables: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap();
        command.env_clear().env("PATH", path).env("HOME", self.folder.path()).stdin(Stdio::null());
        for (name, value) in variables.split_whitespace().filter_map(|variable| variable.split_once('=')) {
            command.env(name, value.replace("$ROOT", &self.root().display().to_string()));
        }
        command.current_dir(self.root());
        command
    }

    fn crow(&self, words: &str, variables: &str) -> Output {
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_crow-cli")), variables);
        command.arg("speckit").args(words.split_whitespace().map(|word| word.replace('%', " ")));
        command.output().unwrap()
    }

    fn plain(&self, text: &[u8]) -> String {
        String::from_utf8_lossy(text).replace(&self.root().display().to_string(), "$ROOT")
    }
}

#[track_caller]
fn check(things: &str, words: &str, expected: &Expect) {
    let place = Place::new(things);
    let ran = place.crow(words, "");
    let code = ran.status.code().unwrap();
    expected.assert_eq(&format!("{}{}exit {code}\n", place.plain(&ran.stdout), place.plain(&ran.stderr)));
}

const PLANNED: &str = ".specify/ specs/001-a/spec.md=x specs/001-a/plan.md=x specs/001-a/research.md=";

#[test]
fn paths_and_prerequisites_have_the_keys_of_the_real_scripts() {
    check(
        PLANNED,
        "paths --json",
        &expect![[r#"
        {"REPO_ROOT":"$ROOT","BRANCH":"001-a","FEATURE_DIR":"$ROOT/specs/001-a","FEATURE_SPEC":"$ROOT/specs/001-a/spec.md","IMPL_PLAN":"$ROOT/specs/001-a/plan.md","TASKS":"$ROOT/specs/001-a/tasks.md"}
        exit 0
    "#]],
    );
    check(
        PLANNED,
        "paths",
        &expect![[r#"
        REPO_ROOT: $ROOT
        BRANCH: 001-a
        FEATURE_DIR: $ROOT/specs/001-a
        FEATURE_SPEC: $ROOT/specs/001-a/spec.md
        IMPL_PLAN: $ROOT/specs/001-a/plan.md
        TASKS: $ROOT/specs/001-a/tasks.md
        exit 0
    "#]],
    );
    check(
        PLANNED,
        "prereq --json --require-spec",
        &expect![[r#"
        {"FEATURE_DIR":"$ROOT/specs/001-a","AVAILABLE_DOCS":["research.md"]}
        exit 0
    "#]],
    );
    check(
        PLANNED,
        "prereq",
        &expect![[r#"
        FEATURE_DIR: $ROOT/specs/001-a
        AVAILABLE_DOCS: research.md
        exit 0
    "#]],
    );
}

#[test]
fn missing_documents_are_named_with_the_command_that_creates_them() {
    check(
        PLANNED,
        "prereq --json --require-tasks",
        &expect![[r#"
        error: specs/001-a/tasks.md does not exist
        hint: run /speckit.tasks first
        exit 1
    "#]],
    );
    check(
        ".specify/",
        "paths",
        &expect![[r#"
        error: the project has no feature yet
        hint: run /speckit.specify first
        exit 1
    "#]],
    );
    check(
        "",
        "paths",
        &expect![[r#"
        error: there is no .specify/ in $ROOT or its parent directories
        hint: create a project with `/speckit init`, or with its first feature: `crow-cli speckit new-feature`
        exit 1
    "#]],
    );
    check(
        ".specify/ specs/001-a/ specs/002-b/",
        "setup-plan",
        &expect![[r#"
        error: no feature is selected; select one with /speckit use or --feature: 001-a, 002-b
        exit 1
    "#]],
    );
    check(
        PLANNED,
        "paths --feature 7",
        &expect![[r#"
        error: there is no feature "7"; select one with /speckit use or --feature: 001-a
        exit 1
    "#]],
    );
}

#[test]
fn feature_creation_initializes_a_project() {
    check(
        "",
        "new-feature --json --dry-run sort my photos",
        &expect![[r#"
        {"BRANCH_NAME":"001-sort-photos","SPEC_FILE":"$ROOT/.specify/specs/001-sort-photos/spec.md","FEATURE_NUM":"001","DRY_RUN":true}
        exit 0
    "#]],
    );
    check(
        "",
        "new-feature sort my photos",
        &expect![[r#"
        BRANCH_NAME: 001-sort-photos
        SPEC_FILE: $ROOT/.specify/specs/001-sort-photos/spec.md
        FEATURE_NUM: 001
        exit 0
    "#]],
    );
    check(
        PLANNED,
        "new-feature --number 1 --short-name Photo_Albums sort photos",
        &expect![[r#"
        BRANCH_NAME: 002-photo-albums
        SPEC_FILE: $ROOT/specs/002-photo-albums/spec.md
        FEATURE_NUM: 002
        note: the number 001 is taken; 002 is used
        exit 0
    "#]],
    );
    check(
        "",
        "new-feature --json %",
        &expect![[r#"
        error: the description is missing; describe what to build and why
        exit 1
    "#]],
    );
}

#[test]
fn existing_feature_is_reused_where_allowed() {
    let there = ".specify/ specs/001-a/spec.md=mine specs/002-b/";
    let words = "--number 1 --short-name a sort photos";
    check(
        there,
        &format!("new-feature {words}"),
        &expect![[r#"
            BRANCH_NAME: 003-a
            SPEC_FILE: $ROOT/specs/003-a/spec.md
            FEATURE_NUM: 003
            note: the number 001 is taken; 003 is used
            exit 0
        "#]],
    );
    check(
        there,
        &format!("new-feature --allow-existing-branch {words}"),
        &expect![[r#"
            BRANCH_NAME: 001-a
            SPEC_FILE: $ROOT/specs/001-a/spec.md
            FEATURE_NUM: 001
            note: specs/001-a already exists
            exit 0
        "#]],
    );
    check(
        there,
        "new-feature --allow-existing-branch --number 1 --short-name other sort photos",
        &expect![[r#"
            BRANCH_NAME: 003-other
            SPEC_FILE: $ROOT/specs/003-other/spec.md
            FEATURE_NUM: 003
            note: the number 001 is taken; 003 is used
            exit 0
        "#]],
    );
    let place = Place::new(there);
    assert!(place.crow(&format!("new-feature --allow-existing-branch {words}"), "").status.success());
    let read = |file: &str| std::fs::read_to_string(place.root().join(file)).unwrap();
    assert_eq!(read("specs/001-a/spec.md"), "mine");
    assert_eq!(read(".specify/feature.json"), "{\"feature_directory\":\"specs/001-a\"}\n");
}

#[test]
fn tasks_are_listed() {
    let tasks = "specs/001-a/tasks.md=##%Phase%1:%Setup~-%[x]%T001%[P]%Begin~##%Phase%3:%User%Story%1~-%[%]%T002%[US1]%Do%it%in%a.rs";
    check(
        &format!(".specify/ {tasks}"),
        "tasks --json",
        &expect![[r#"
        {"tasks":[{"id":"T001","done":true,"parallel":true,"stories":[],"phase":"Phase 1: Setup","text":"Begin"},{"id":"T002","done":false,"parallel":false,"stories":["US1"],"phase":"Phase 3: User Story 1","text":"Do it in a.rs"}]}
        exit 0
    "#]],
    );
    check(
        &format!(".specify/ {tasks}"),
        "tasks",
        &expect![[r#"
        x  T001  Begin
           T002  Do it in a.rs
        exit 0
    "#]],
    );
}

#[test]
fn programs_that_make_features_at_once_never_share_a_number() {
    const N: usize = 8;
    let place = Place::new("");
    let start = |n: usize| {
        let mut command = place.command(Path::new(env!("CARGO_BIN_EXE_crow-cli")), "");
        command.args(["speckit", "new-feature", "--json", &format!("feature called{n}")]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let started: Vec<_> = (0..N).map(start).collect();
    let mut numbers = BTreeSet::new();
    for child in started {
        let ran = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
        let printed: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
        numbers.insert(printed["FEATURE_NUM"].as_str().unwrap().to_owned());
    }
    assert_eq!(numbers, (1..=N).map(|n| format!("{n:03}")).collect());
}
