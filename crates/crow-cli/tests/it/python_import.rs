//! A database of the Python version in the configuration directory: its sessions are listed, load and continue.

mod documents;
mod folders;

use std::fs;
use std::path::Path;

use crow_testkit::ModelServer;
use crow_testkit::client::{FakeClient, TestHome};
use serde_json::json;

#[test]
fn imported_sessions_are_continued() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let server = ModelServer::start("text \"Hello again.\"");
        let world = TestHome::new(server.base_url());
        let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/init/python/tests/python.db");
        fs::copy(old, world.home().join(".crow/crow.db")).expect("copied");
        let mut client = FakeClient::start(Path::new(env!("CARGO_BIN_EXE_crow-cli")), &world.home()).await;
        let listed = client.request("session/list", json!({})).await.expect("sessions are listed");
        assert_eq!(listed["sessions"][0]["sessionId"], "wise-otter");
        client.load_session("wise-otter", &world.project()).await.expect("the session loads");
        assert!(client.log().contains("hello"), "{}", client.log());
        let id = client.prompt("wise-otter", "still there?").await;
        client.response_to(id).await.expect("the session goes on");
        let requests = server.requests();
        let said = |place: usize| requests[0]["messages"][place]["content"].as_str().unwrap_or_default();
        assert!(said(0).starts_with("You are Crow, a coding agent."), "{}", said(0));
        assert_eq!(said(1), "hello\nstill there?");
        assert!(world.home().join(".crow/crow.db.python").exists(), "what was there is kept");
        assert_eq!(server.rejections(), Vec::<String>::new(), "the model refused a request");
    });
}
