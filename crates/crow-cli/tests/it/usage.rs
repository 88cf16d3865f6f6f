//! Usage and cost of a session: reported after each reply, stored, and reported again when it is loaded.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use crow_testkit::ModelServer;
use crow_testkit::client::{FakeClient, TestHome};
use expect_test::expect;
use serde_json::Value;

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

/// Returns a home whose model has a price, with a file that is worth summarizing.
fn priced(server: &ModelServer) -> TestHome {
    let world = TestHome::new(server.base_url());
    world.configure(&format!(
        "providers:\n  fake: {{ base_url: {} }}\nmodels:\n  scripted: {{ provider: fake, model: scripted, context_window: 32000, tools: full, price: {{ input: 3, output: 15 }} }}\nmax_retries_per_step: 0\npermissions: {{ mode: auto }}\n",
        server.base_url()
    ));
    let lines = (0..260).map(|line| format!("a.txt has in its line {line:04} these words\n"));
    world.write_file("a.txt", &lines.collect::<String>());
    world
}

async fn say(client: &mut FakeClient, session: &str, text: &str) {
    let id = client.prompt(session, text).await;
    client.response_to(id).await.expect("the turn ends");
}

/// Returns the usage updates of a client, without estimated numbers.
fn told(client: &FakeClient) -> Vec<String> {
    let updates = client.updates.iter().filter(|(_, update)| update["sessionUpdate"] == "usage_update");
    let spelled = |update: &Value| {
        let used = match update["_meta"]["crow"]["estimated"] == true {
            true => {
                assert!(update["used"].as_u64() > Some(1000), "{update}");
                "about".to_owned()
            }
            false => update["used"].to_string(),
        };
        format!("{used}/{} {}", update["size"], update["cost"])
    };
    updates.map(|(_, update)| spelled(update)).collect()
}

/// Returns the output of the binary.
#[expect(clippy::disallowed_methods, reason = "the program is tested from outside")]
fn run(world: &TestHome, args: &[&str]) -> String {
    let mut command = Command::new(binary());
    command.args(args).current_dir(world.project()).env_clear().env("HOME", world.home());
    let said = command.output().expect("the program runs");
    format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr))
}

#[tokio::test]
async fn session_shows_its_cost_live_and_when_loaded() {
    let server = ModelServer::start(
        "call read {\"file_path\":\"a.txt\"} | usage 1000 10\ntext \"Read.\"\ntext \"Fine.\" | usage 3000 20",
    );
    server.set_side_answers("text \"Notes.\" | usage 500 100\ntext \"complete\" | usage 600 1");
    let world = priced(&server);
    let mut client = FakeClient::start(binary(), &world.home()).await;
    let session = client.new_session(&world.project()).await;
    say(&mut client, &session, "read it").await;
    say(&mut client, &session, "good").await;
    say(&mut client, &session, "/compact").await;
    let live = told(&client);
    expect![[r#"
        1010/32000 {"amount":0.00315,"currency":"USD"}
        about/32000 {"amount":0.00315,"currency":"USD"}
        3020/32000 {"amount":0.01245,"currency":"USD"}
        about/32000 {"amount":0.017265,"currency":"USD"}"#]]
    .assert_eq(&live.join("\n"));

    // Estimates during a replay are sent only at its end.
    let mut second = FakeClient::start(binary(), &world.home()).await;
    second.load_session(&session, &world.project()).await.expect("the session loads");
    let counted: Vec<String> =
        live.into_iter().filter(|line| !line.contains("0.00315") || !line.starts_with("about")).collect();
    assert_eq!(told(&second), counted);

    server.replace_answers("text \"More.\" | usage 100 2\ntext \"Uncounted.\"");
    say(&mut second, &session, "go on").await;
    say(&mut second, &session, "and on").await;
    let last = told(&second).split_off(counted.len());
    assert_eq!(
        last,
        [
            "102/32000 {\"amount\":0.017595,\"currency\":\"USD\"}",
            "about/32000 {\"amount\":0.017595,\"currency\":\"USD\"}"
        ]
    );
    client.kill().await;
    second.kill().await;

    let mut third = FakeClient::start(binary(), &world.home()).await;
    third.load_session(&session, &world.project()).await.expect("the session loads");
    assert_eq!(told(&third).split_off(counted.len()), last);
    third.kill().await;
    let overview = run(&world, &["inspect", "-s", &session]);
    assert!(overview.contains("5200 input, 133 output") && overview.contains("$0.0176"), "{overview}");
    assert_eq!(server.rejections(), Vec::<String>::new(), "the model refused a request");
}

#[tokio::test]
async fn terminal_shows_the_cost() {
    let server = ModelServer::start("text \"Hi.\" | usage 1000 10\ntext \"Hi.\"");
    let world = priced(&server);
    let said = run(&world, &["run", "hello"]);
    assert!(said.contains("\ncost        $0.0032\n"), "{said}");
    let said = run(&world, &["run", "hello"]);
    assert!(said.contains("\nsession ") && !said.contains("cost"), "{said}");
}
