//! The agent reads the files of its own database, and another process closes that database: nothing is lost.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;

use crow_store::{DatabaseAddress, Store};
use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{ModelServer, ShownContent};
use expect_test::{Expect, expect};

/// Lets the model run calls, opens and closes the database as another process, and prompts once more; checks the results
/// of the calls.
async fn check(calls: &str, expect: &Expect) {
    let server = ModelServer::start("text \"Hello.\"");
    let world = TestHome::new(server.base_url());
    world.add_config("permissions: { mode: auto }");
    let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
    let config_dir = world.home().join(".crow");
    let mut client = FakeClient::start(binary, &world.home()).await;
    let session = client.new_session(&config_dir).await;
    for (text, answers) in [
        ("begin", "text \"Hello.\""),
        ("look", &format!("{calls}\ntext \"Seen.\"")),
        ("go on", "text \"Still here.\""),
    ] {
        if text == "go on" {
            let other = Store::open(&DatabaseAddress::File(config_dir.join("crow.db"))).await;
            other.expect("it is opened").close().await.expect("it is closed");
        }
        server.replace_answers(answers);
        let id = client.prompt(&session, text).await;
        client.response_to(id).await.expect("the turn ends");
    }
    let shown = ShownContent::from_updates(client.updates.iter().map(|(_, update)| update));
    let mut second = FakeClient::start(binary, &world.home()).await;
    second.load_session(&session, &config_dir).await.expect("the session is loaded");
    let loaded = ShownContent::from_updates(second.updates.iter().map(|(_, update)| update));
    assert_eq!(shown.missing_in(&loaded), Vec::<String>::new(), "something is lost");
    let requests = server.requests();
    let messages = requests.last().expect("a request")["messages"].as_array().expect("messages").clone();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let results: String = results.map(|message| format!("{}\n", message["content"])).collect();
    expect.assert_eq(&results);
}

#[tokio::test]
async fn database_searched_as_a_file_loses_nothing() {
    check(
        r#"call grep {"pattern":"no such text"}"#,
        &expect![[r#"
        "no lines match\n(2 files could not be searched)\n"
    "#]],
    )
    .await;
    check(
        r#"call grep {"pattern":"no such text","path":"../.crow"}"#,
        &expect![[r#"
        "no lines match\n(2 files could not be searched)\n"
    "#]],
    )
    .await;
}

#[tokio::test]
async fn database_read_as_a_file_loses_nothing() {
    let calls = r#"call read {"file_path":"crow.db"} | call read {"file_path":"crow.db-shm"}"#;
    check(
        calls,
        &expect![[r#"
        "could not read crow.db: Crow has it open itself, and a second opening would break its locks"
        "could not read crow.db-shm: Crow has it open itself, and a second opening would break its locks"
    "#]],
    )
    .await;
}
