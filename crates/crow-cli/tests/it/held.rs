//! Commands that the agent runs are held as whoever approved them says, and may run again when that was too tight.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use crow_testkit::client::{FakeClient, World};
use crow_testkit::{ModelServer, Script};
use serde_json::{Value, json};

/// One turn with one command, which writes to `$OUT`, a folder that is neither the project nor temporary.
struct Stage {
    model: ModelServer,
    client: FakeClient,
    world: World,
    outside: tempfile::TempDir,
}

impl Stage {
    async fn new(permissions: &str, capabilities: Value) -> Self {
        let outside = tempfile::tempdir_in(lasting()).expect("a folder can be made");
        let model = ModelServer::start("");
        let world = World::new(model.base_url());
        world.configure_more(&format!("permissions: {permissions}"));
        let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
        let mut client = FakeClient::start_with(binary, &world.home(), capabilities).await;
        client.hide(outside.path().display().to_string(), "$OUT");
        Self { model, client, world, outside }
    }

    /// Runs a command and gives what the model was told of it.
    async fn play(&mut self, command: &str, answers: &[&str]) -> String {
        let command = command.replace("$OUT", &self.outside.path().display().to_string());
        let call = format!("call terminal {}", json!({"command": command}));
        self.model.replace(Script::parse(&format!("{call}\ntext \"Done.\"")));
        self.client.answers.extend(answers.iter().map(|&answer| answer.to_owned()));
        let session = self.client.new_session(&self.world.project()).await;
        let id = self.client.prompt(&session, "go").await;
        let ended = self.client.answer_to(id).await.expect("the turn ends");
        assert_eq!(ended["stopReason"], "end_turn");
        assert_eq!(self.model.refused(), Vec::<String>::new(), "the model refused a request");
        let request = self.model.requests().pop().expect("there was one");
        let messages = request["messages"].as_array().expect("messages");
        let told = messages.last().expect("a result")["content"].to_string();
        told.replace(&self.outside.path().display().to_string(), "$OUT")
    }

    fn has_written(&self) -> bool {
        self.outside.path().join("new").exists()
    }

    fn n_questions(&self) -> usize {
        self.client.log().matches("\n? ").count()
    }
}

/// A folder that is not temporary, wherever this was cloned to: the person's own at the worst.
fn lasting() -> PathBuf {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    if !["/tmp", "/var/tmp"].iter().any(|temporary| target.starts_with(temporary)) {
        return target;
    }
    let person = nix::unistd::User::from_uid(nix::unistd::getuid()).expect("people are known here");
    person.expect("whoever runs this is somebody").dir
}

const WRITES: &str = "echo x > $OUT/new";

#[track_caller]
fn check(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(test);
}

#[test]
fn what_nobody_approved_is_held_and_runs_again_when_a_person_says_so() {
    check(async {
        for capabilities in [json!({}), json!({"terminal": true})] {
            let mut stage = Stage::new("{ mode: auto }", capabilities.clone()).await;
            let told = stage.play(WRITES, &["reject_once"]).await;
            assert!(!stage.has_written(), "{}", stage.client.log());
            assert!(told.contains("ran in a sandbox"), "{told}");
            assert!(told.contains("did not want it to run without"), "{told}");
            let told = stage.play(WRITES, &["allow_once"]).await;
            assert!(stage.has_written(), "{}", stage.client.log());
            assert!(told.contains("allowed to run again"), "{told}");
            assert_eq!(stage.n_questions(), 2, "{capabilities}: {}", stage.client.log());
        }
    });
}

#[test]
fn a_rule_does_not_free_and_a_person_does() {
    check(async {
        let mut stage = Stage::new("{ allow: [sh -c] }", json!({})).await;
        stage.play("sh -c 'echo x > $OUT/new'", &["reject_once"]).await;
        assert!(!stage.has_written(), "{}", stage.client.log());
        // No rule covers this one, so a person is asked before.
        stage.play(WRITES, &["allow_once"]).await;
        assert!(stage.has_written(), "{}", stage.client.log());
        assert_eq!(stage.n_questions(), 2, "{}", stage.client.log());
    });
}

#[test]
fn the_configuration_says_who_is_held() {
    check(async {
        let mut stage = Stage::new("{ mode: auto, sandbox: off }", json!({})).await;
        stage.play(WRITES, &[]).await;
        assert!(stage.has_written(), "{}", stage.client.log());
        let mut stage = Stage::new("{ sandbox: always }", json!({})).await;
        stage.play(WRITES, &["allow_once", "reject_once"]).await;
        assert!(!stage.has_written(), "{}", stage.client.log());
        assert_eq!(stage.n_questions(), 2, "{}", stage.client.log());
    });
}

#[test]
fn what_is_held_works_in_the_project_and_cannot_reach_the_configuration() {
    check(async {
        let mut stage = Stage::new("{ mode: auto }", json!({})).await;
        let told = stage.play("echo x > new && cat new", &[]).await;
        assert!(told.starts_with("\"x"), "{told}");
        let config = stage.world.home().join(".crow/config.yaml");
        let before = fs::read(&config).expect("it is there");
        let script = format!("f={}; echo x >> ${{f}}", config.display());
        stage.play(&script, &["reject_once", "reject_once"]).await;
        assert_eq!(fs::read(&config).expect("it is there"), before, "{}", stage.client.log());
    });
}
