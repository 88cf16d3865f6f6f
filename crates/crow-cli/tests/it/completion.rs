//! Completion scripts and man pages, as a shell and a package use them.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::process::Command;

use crow_testkit::ModelServer;
use crow_testkit::client::TestHome;
use expect_test::{Expect, expect};

#[expect(clippy::disallowed_methods, reason = "the program is tested from outside")]
fn run(world: &TestHome, variables: &[(&str, &str)], args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crow-cli"));
    command.args(args).current_dir(world.project()).env_clear().env("HOME", world.home());
    let output = command.envs(variables.iter().copied()).output().expect("the program runs");
    format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout))
}

/// Completes the last of `words` as the dynamic script of fish does.
#[track_caller]
fn check(world: &TestHome, words: &[&str], expected: &Expect) {
    let args: Vec<&str> = ["--", "crow-cli"].iter().chain(words).copied().collect();
    let candidates = run(world, &[("CROW_COMPLETE", "fish")], &args);
    expected.assert_eq(&candidates);
}

#[tokio::test]
async fn completion_offers_sessions_models_and_agents() {
    let server = ModelServer::start("text \"One.\"");
    let world = TestHome::new(server.base_url());
    check(&world, &["run", "-s", ""], &expect![""]);
    assert!(!world.home().join(".crow/crow.db").exists(), "completion creates no database");
    let printed = run(&world, &[], &["run", "count the apples"]);
    let session = printed.lines().find_map(|line| line.strip_prefix("session     ")).expect("a session");
    let candidates = run(&world, &[("CROW_COMPLETE", "fish")], &["--", "crow-cli", "run", "-s", ""]);
    assert_eq!(candidates, format!("{session}\tcount the apples\n"));
    check(
        &world,
        &["run", "-m", ""],
        &expect![[r#"
        scripted
    "#]],
    );
    check(
        &world,
        &["run", "--agent", ""],
        &expect![[r#"
        crow
    "#]],
    );
    check(
        &world,
        &["inspect", "--sea"],
        &expect![[r#"
        --search	Search the messages of all sessions, or of one
    "#]],
    );
}

#[test]
fn completion_script_names_the_variable_and_the_program() {
    let world = TestHome::new("http://127.0.0.1:1");
    let script = run(&world, &[], &["completions", "--dynamic", "bash"]);
    assert!(script.contains("CROW_COMPLETE=\"bash\"") && script.contains("crow-cli"), "{script}");
    let script = run(&world, &[], &["completions", "bash"]);
    assert!(script.contains("--append-system-prompt"), "{script}");
}

#[test]
fn man_pages_of_all_commands_are_written() {
    let world = TestHome::new("http://127.0.0.1:1");
    assert_eq!(run(&world, &[], &["man-pages", "."]), "");
    let read = |page: &str| std::fs::read_to_string(world.project().join(page)).expect("the page");
    assert!(read("crow-cli.1").contains("crow\\-cli\\-run(1)"), "the page refers to those of the commands");
    assert!(read("crow-cli-run.1").contains("append\\-system\\-prompt"));
    assert!(read("crow-cli-sessions-prune.1").contains("older\\-than"));
    assert!(!world.project().join("crow-cli-man-pages.1").exists(), "a hidden command has no page");
}
