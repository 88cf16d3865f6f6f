//! What somebody laid out in a repository to hang or mislead an agent, and what a client attaches to a prompt.

use std::fs;
use std::path::Path;

use crow_testkit::client::{Answered, FakeClient, World};
use crow_testkit::{ModelServer, Script};
use serde_json::{Value, json};

struct Stage {
    server: ModelServer,
    world: World,
    client: FakeClient,
}

impl Stage {
    async fn new(capabilities: Value) -> Self {
        let server = ModelServer::start(Script::default());
        let world = World::new(server.base_url());
        let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
        let client = FakeClient::start_with(binary, &world.home(), capabilities).await;
        Self { server, world, client }
    }

    async fn open(&mut self) -> String {
        let project = self.world.project();
        self.client.new_session(&project).await
    }

    async fn say(&mut self, session: &str, blocks: Value) -> Answered {
        self.server.replace("text \"Hello.\"");
        let id = self.client.prompt_with(session, blocks).await;
        let answered = self.client.answer_to(id).await;
        assert_eq!(self.server.refused(), Vec::<String>::new(), "the model refused a request");
        answered
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[tokio::test]
async fn patterns_that_break_or_bloat_are_an_error_with_its_place() {
    for (rules, problem) in [
        (format!("['path({})']", "{".repeat(5000)), "is longer than 4096 bytes"),
        (
            format!("['path({})']", "{".repeat(3000)),
            "has a pattern that has braces within braces beyond 8 levels",
        ),
        (format!("[{}]", "'path(a*b)', ".repeat(8000)), "permissions.allow: at most 500 rules"),
    ] {
        let mut stage = Stage::new(json!({"session": {"notices": {}}})).await;
        let config = stage.world.project().join(".crow/config.yaml");
        fs::create_dir_all(config.parent().expect("a folder")).expect("a folder");
        fs::write(&config, format!("permissions:\n  allow: {rules}\n")).expect("a file");
        let session = stage.open().await;
        stage.say(&session, json!([text("hello")])).await.expect("the turn ends");
        let log = stage.client.log();
        assert!(log.contains(".crow/config.yaml:2: permissions.allow: ") && log.contains(problem), "{log}");
    }
}
