//! One kill: a turn during which a process is killed, and the processes after it that load and continue the session.
#![expect(clippy::disallowed_methods, reason = "the agent is started as an editor does")]

use std::path::Path;
use std::time::Duration;

use crow_store::DatabaseAddress;
use crow_testkit::client::{FakeClient, RpcResult, TestHome};
use crow_testkit::{ModelServer, ShownContent};
use serde_json::json;

use super::checks::{
    Violation, ViolationKind, check_loaded, check_replay, check_requests, check_turn_end, shown_content,
};
use super::database::{CampaignDatabase, find_damage_at};
use super::killer::{KillTarget, Killer};
use super::process_table::wait_until_gone;
use super::scene::{ANSWERS_AFTERWARDS, Scene};
use super::schedule::{PlannedKill, Trigger, VictimKind};

/// The outcome of a kill.
#[derive(Debug, Default)]
pub(crate) struct RoundOutcome {
    pub(crate) was_killed: bool,
    /// Whether the process was killed before its session was stored.
    pub(crate) is_unstored: bool,
    /// Whether the turn had ended before the agent was killed.
    pub(crate) was_idle: bool,
    /// The longest time until all processes of the round were gone.
    pub(crate) slowest_end: Duration,
    pub(crate) violations: Vec<Violation>,
}

impl RoundOutcome {
    /// The outcome if a check of the test kit has failed.
    pub(crate) fn broken(reason: String) -> Self {
        Self { violations: vec![Violation::new(ViolationKind::Stuck, reason)], ..Self::default() }
    }

    fn check_processes(&mut self, home: &Path) {
        match wait_until_gone(home) {
            Ok(took) => self.slowest_end = self.slowest_end.max(took),
            Err(left) => self.violations.push(Violation::new(ViolationKind::Left, left.join("; "))),
        }
    }
}

/// The place and the parts of one round.
struct RoundStage<'a> {
    kill: PlannedKill,
    program: &'a Path,
    model: ModelServer,
    home: TestHome,
}

/// Makes one kill and checks what is left.
pub(crate) async fn run_round(
    kill: &PlannedKill,
    database: &CampaignDatabase,
    program: &Path,
) -> RoundOutcome {
    let model = kill.scene.start_model(kill);
    let home = TestHome::new(model.base_url());
    home.add_config(&kill.scene.config(kill.has_sandbox));
    if kill.scene != Scene::Start {
        home.add_config(&format!("db_uri: {}", database.uri()));
    }
    home.write_file("a.txt", "one\ntwo\n");
    let stage = RoundStage { kill: *kill, program, model, home };
    let mut outcome = RoundOutcome::default();
    if kill.scene == Scene::Start {
        stage.run_start(&mut outcome).await;
    } else {
        stage.run_session(&mut outcome).await;
    }
    outcome.violations.extend(check_requests(&stage.model));
    outcome
}

impl RoundStage<'_> {
    fn start_agent(&self) -> FakeClient {
        let mut command = tokio::process::Command::new(self.program);
        // The processes of a round are known by their directory.
        command.arg("acp").current_dir(self.home.home());
        FakeClient::start_command(command, &self.home.home())
    }

    async fn start_initialized(&self) -> FakeClient {
        let mut client = self.start_agent();
        let initialized = client.initialize(self.kill.scene.capabilities()).await;
        assert!(initialized.is_ok(), "the agent does not answer `initialize`: {initialized:?}");
        client
    }

    fn start_killer(&self, client: &FakeClient) -> Killer {
        let (home, program) = (self.home.home(), self.program.to_owned());
        Killer::start(self.kill, KillTarget { agent: client.pid(), home, program })
    }

    /// Kills a process that has just started; the next one must work on what it left.
    async fn run_start(&self, outcome: &mut RoundOutcome) {
        let mut client = self.start_agent();
        client.allow_exit();
        let killer = self.start_killer(&client);
        let project = self.home.project();
        client.send("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
        client.send("session/new", json!({"cwd": project, "mcpServers": []})).await;
        while client.next_message_until_exit().await.is_some() {}
        outcome.was_killed = killer.finish();
        client.wait_for_exit().await;
        outcome.check_processes(&self.home.home());
        let mut next = self.start_initialized().await;
        let session = next.new_session(&project).await;
        let id = next.prompt(&session, "Hello?").await;
        outcome.violations.extend(check_turn_end("the first turn", &next.response_to(id).await));
        self.end_agent(&mut next, outcome).await;
        let path = self.home.home().join(".crow/crow.db");
        // It has a runtime of its own.
        let damage = std::thread::spawn(move || find_damage_at(&DatabaseAddress::File(path))).join();
        for text in damage.unwrap_or_else(|_| vec!["the check panicked".into()]) {
            outcome.violations.push(Violation::new(ViolationKind::Damaged, text));
        }
    }

    async fn run_session(&self, outcome: &mut RoundOutcome) {
        let mut client = self.start_initialized().await;
        let session = client.new_session(&self.home.project()).await;
        client.allow_exit();
        let killer = self.start_killer(&client);
        let ended = self.run_turn(&mut client, &session, &killer).await;
        if self.kill.victim == VictimKind::Agent {
            outcome.was_idle = ended.is_some();
            killer.end_turn();
            while client.next_message_until_exit().await.is_some() {}
            client.editor.close_terminals();
            client.wait_for_exit().await;
        } else {
            let ended = ended.unwrap_or_else(|| Err("the agent has exited".into()));
            outcome.violations.extend(check_turn_end("the turn", &ended));
            self.end_agent(&mut client, outcome).await;
        }
        outcome.was_killed = killer.finish();
        outcome.check_processes(&self.home.home());
        self.continue_session(&client, &session, outcome).await;
    }

    /// Runs the turn and sends the event of the kill; returns the response, or `None` if the agent has exited.
    async fn run_turn(&self, client: &mut FakeClient, session: &str, killer: &Killer) -> Option<RpcResult> {
        let n_messages = match self.kill.trigger {
            Trigger::Messages(n) => n,
            Trigger::ModelBytes(n) => {
                self.model.notify_after_bytes(n, killer.trigger.clone());
                u64::MAX
            }
            Trigger::Appearance => u64::MAX,
        };
        let id = client.prompt(session, "work").await;
        for n_received in 0_u64.. {
            if n_received == n_messages {
                // If it is full, the event has been sent.
                let _ = killer.trigger.try_send(());
            }
            let message = client.next_message_until_exit().await?;
            // The stream goes on with the client; a child that waits for the death of the other one ends.
            if self.kill.scene == Scene::Speech || killer.has_killed() {
                self.model.release();
            }
            if message["id"] == json!(id) && message.get("method").is_none() {
                break;
            }
        }
        Some(client.response_to(id).await)
    }

    async fn end_agent(&self, client: &mut FakeClient, outcome: &mut RoundOutcome) {
        let status = client.close_stdin().await;
        if !status.success() {
            let text = format!("the agent did not end well: {status}");
            outcome.violations.push(Violation::new(ViolationKind::Stuck, text));
        }
        outcome.check_processes(&self.home.home());
    }

    /// Loads the session, continues it, and loads it once more.
    async fn continue_session(&self, first: &FakeClient, session: &str, outcome: &mut RoundOutcome) {
        let shown = shown_content(first, session);
        self.model.replace_answers(ANSWERS_AFTERWARDS);
        let mut second = self.start_initialized().await;
        if let Err(error) = second.load_session(session, &self.home.project()).await {
            outcome.violations.extend(self.check_unstored(&shown, &error));
            outcome.is_unstored = true;
            return self.end_agent(&mut second, outcome).await;
        }
        outcome.violations.extend(check_loaded(&shown, &shown_content(&second, session)));
        if self.kill.victim != VictimKind::Agent {
            outcome.violations.extend(check_replay(session, first, &second));
        }
        let id = second.prompt(session, "go on").await;
        outcome.violations.extend(check_turn_end("the next turn", &second.response_to(id).await));
        let mut third = self.start_initialized().await;
        let loaded = third.load_session(session, &self.home.project()).await;
        assert!(loaded.is_ok(), "the session does not load again: {loaded:?}");
        outcome.violations.extend(check_replay(session, &second, &third));
        third.close_stdin().await;
        self.end_agent(&mut second, outcome).await;
    }

    /// A session that cannot be loaded was never stored, and nothing of it was shown.
    fn check_unstored(&self, shown: &ShownContent, error: &serde_json::Value) -> Option<Violation> {
        let is_expected = self.kill.victim == VictimKind::Agent
            && shown.is_empty()
            && error["data"]["kind"] == "session_not_found";
        (!is_expected).then(|| Violation::new(ViolationKind::Lost, format!("it cannot be loaded: {error}")))
    }
}
