//! The examples are programs that run.

use crow_testkit::agent::command;
use crow_testkit::example::run_example;
use expect_test::{Expect, expect};

use crate::world::hide_directory;

/// Runs an example with a prompt and a fake agent; shows its output and exit code. `$CWD` is its directory.
#[track_caller]
fn check(example: &str, behaviors: &[&str], expected: &Expect) {
    let directory = tempfile::tempdir().unwrap();
    let cwd = directory.path().display().to_string();
    let (program, args) = command(behaviors);
    let args = args.into_iter().map(|word| word.replace("$CWD", &cwd));
    let words = ["go".to_owned(), program].into_iter().chain(args);
    let output = run_example(example, words, directory.path());
    expected.assert_eq(&hide_directory(&output, directory.path()));
}

#[test]
fn question_is_answered() {
    check(
        "ask",
        &[],
        &expect![[r#"
        echo: go
        exit Some(0)
    "#]],
    );
    check(
        "ask",
        &["broken"],
        &expect![[r#"
            Error: the agent $AGENT exited during initialization with code 3; its stderr: cannot find the frobnicator
            exit Some(1)
        "#]],
    );
}

#[test]
fn edits_are_allowed_and_commands_rejected() {
    check(
        "edit_only",
        &["asks"],
        &expect![[r#"
            says: echo: 
            says: go
            calls: Edit notes.txt
            calls: rm -rf build
            says: ; session/request_permission: {"outcome":{"outcome":"selected","optionId":"reject_once"}}
            exit Some(0)
        "#]],
    );
    check(
        "edit_only",
        &["asks", "writes=$CWD/b.txt", "gives-up"],
        &expect![[r#"
            says: echo: 
            says: go
            calls: Edit notes.txt
            calls: rm -rf build
            says: ; session/request_permission: {"outcome":{"outcome":"selected","optionId":"allow_once"}}
            says: ; fs/write_text_file: {}
            exit Some(1)
        "#]],
    );
}
