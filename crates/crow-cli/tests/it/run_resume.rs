//! `run -s ID` shows the end of the conversation that it continues.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use crow_testkit::ModelServer;
use crow_testkit::client::TestHome;
use expect_test::expect;

/// Returns the binary's stdout and the session's name.
#[expect(clippy::disallowed_methods, reason = "the program is tested from outside")]
fn run(world: &TestHome, args: &[&str]) -> (String, String) {
    let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_crow-cli")));
    command.args(args).current_dir(world.project()).env_clear().env("HOME", world.home());
    let said = command.output().expect("the program runs");
    let (out, err) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    let session = err.lines().find_map(|line| line.strip_prefix("session     ")).unwrap_or_default();
    let before = err.lines().take_while(|line| !line.starts_with("session ")).map(|line| format!("{line}\n"));
    (format!("{}--\n{out}", before.collect::<String>()), session.to_owned())
}

#[tokio::test]
async fn history_is_shown_as_far_as_requested() {
    let server = ModelServer::start(
        "call read {\"file_path\":\"a.txt\"}\ntext \"One.\"\ntext \"Two.\"\ntext \"Three.\"\ntext \"Four.\"\ntext \"Five.\"\ntext \"Six.\"",
    );
    let world = TestHome::new(server.base_url());
    world.write_file("a.txt", "apples\n");
    let (_, session) = run(&world, &["run", "first"]);
    run(&world, &["run", "-s", &session, "second"]);
    let (said, _) = run(&world, &["run", "-s", &session, "third"]);
    expect![[r#"
        --
        Three.
    "#]]
    .assert_eq(&said);
    let (said, _) = run(&world, &["run", "-s", &session, "--replay", "2", "fourth"]);
    expect![[r#"
        (1 earlier prompt; --replay all shows them)
        > second
        > third
        (end of the replay)
        --
        Two.

        Three.

        Four.
    "#]]
    .assert_eq(&said);
    let (said, copy) = run(&world, &["run", "-s", &session, "--fork", "--replay", "all", "fifth"]);
    assert_ne!(copy, session);
    expect![[r#"
        > first
        ✓ Read a.txt
        > second
        > third
        > fourth
        (end of the replay)
        --
        One.

        Two.

        Three.

        Four.

        Five.
    "#]]
    .assert_eq(&said);
    let (said, _) = run(&world, &["run", "-s", &session, "--replay", "1", "--json", "sixth"]);
    let said = said.replace(&session, "$SESSION");
    // The size of the system prompt depends on the project's path.
    let lines = said.lines().filter(|line| !line.contains("\"usage\"")).map(|line| format!("{line}\n"));
    expect![[r#"
        --
        {"type":"session","session":"$SESSION"}
        {"type":"prompt","text":"fourth","replay":true}
        {"type":"message","text":"Four.","replay":true}
        {"type":"message","text":"Six."}
        {"type":"result","session":"$SESSION","stop_reason":"end_turn","text":"Six."}
    "#]]
    .assert_eq(&lines.collect::<String>());
    assert_eq!(server.rejections(), Vec::<String>::new(), "the model refused a request");
}
