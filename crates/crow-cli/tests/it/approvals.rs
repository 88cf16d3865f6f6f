//! Remembered approvals: their scope, duration and coverage; and rejections with instructions.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{ModelServer, Script};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

struct Stage {
    model: ModelServer,
    world: TestHome,
    client: FakeClient,
    capabilities: Value,
}

impl Stage {
    async fn new(more: &str, capabilities: Value) -> Self {
        let model = ModelServer::start("");
        let world = TestHome::new(model.base_url());
        if !more.is_empty() {
            world.add_config(more);
        }
        std::fs::create_dir_all(world.project().join(".git")).expect("a folder can be made");
        world.write_file("work.sh", "#!/bin/sh\necho did $1\n");
        let work = world.project().join("work.sh");
        std::fs::set_permissions(&work, PermissionsExt::from_mode(0o755)).expect("modes can be set");
        let client = Self::start(&world, &capabilities).await;
        Self { model, world, client, capabilities }
    }

    async fn start(world: &TestHome, capabilities: &Value) -> FakeClient {
        let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
        FakeClient::start_with(binary, &world.home(), capabilities.clone()).await
    }

    /// Starts another agent in the same home.
    async fn restart(&mut self) {
        let next = Self::start(&self.world, &self.capabilities).await;
        std::mem::replace(&mut self.client, next).close_stdin().await;
    }

    async fn open(&mut self) -> String {
        self.client.new_session(&self.world.project()).await
    }

    /// Runs commands in one turn each; returns the questions with their answers.
    async fn asked(&mut self, session: &str, commands: &[&str], answers: &[&str]) -> String {
        let before = self.client.log().len();
        for command in commands {
            let call = format!("call terminal {}", json!({"command": command}));
            self.model.replace_answers(Script::parse(&format!("{call}\ntext \"Done.\"")));
            self.client.permission_answers.extend(answers.iter().map(|&answer| answer.to_owned()));
            self.prompt(session, "go").await;
            self.client.permission_answers.clear();
        }
        let log = self.client.log();
        let asked = log[before..].lines().filter(|line| line.starts_with("? "));
        asked.map(|line| format!("{line}\n")).collect()
    }

    async fn prompt(&mut self, session: &str, text: &str) {
        let id = self.client.prompt(session, text).await;
        let ended = self.client.response_to(id).await.expect("the turn ends");
        assert_eq!(ended["stopReason"], "end_turn", "{}", self.client.log());
    }

    /// Returns Crow's answer to a slash command.
    async fn command(&mut self, session: &str, text: &str) -> String {
        let before = self.client.log().len();
        self.prompt(session, text).await;
        let log = self.client.log();
        let answer = log[before..].lines().filter(|line| line.starts_with("< text"));
        answer.map(|line| format!("{line}\n")).collect()
    }
}

#[track_caller]
fn check(test: impl Future<Output = String>, expected: &Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let shown = runtime.expect("a runtime can be made").block_on(test);
    expected.assert_eq(&shown);
}

#[test]
fn prefix_is_narrower_than_offered_and_covers_the_command() {
    let test = async {
        let mut stage = Stage::new("", json!({})).await;
        let session = stage.open().await;
        let mut shown =
            stage.asked(&session, &["./work.sh one two"], &["allow_project: ./work.sh one"]).await;
        shown += "its other words are asked\n";
        shown += &stage.asked(&session, &["./work.sh one three", "./work.sh two"], &["reject_once"]).await;
        shown += "it has to cover the command, and to be one\n";
        for prefix in ["./work.sh one", "sh", "./work.sh four && rm", ""] {
            let before = stage.client.log().len();
            shown +=
                &stage.asked(&session, &["./work.sh four"], &[&format!("allow_project: {prefix}")]).await;
            let log = stage.client.log();
            let notices = log[before..].lines().filter(|line| line.contains("was not stored"));
            shown += &notices.map(|line| format!("{line}\n")).collect::<String>();
        }
        shown + &stage.command(&session, "/permissions").await
    };
    check(
        test,
        &expect![[r#"
        ? `./work.sh one two` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_project: ./work.sh one
        its other words are asked
        ? `./work.sh two` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> reject_once
        it has to cover the command, and to be one
        ? `./work.sh four` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_project: ./work.sh one
        < thought[] The permission was not stored, and the command is allowed once: `./work.sh one` does not cover this command.⏎
        ? `./work.sh four` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_project: sh
        < thought[] The permission was not stored, and the command is allowed once: commands that begin with `sh` always ask.⏎
        ? `./work.sh four` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_project: ./work.sh four && rm
        < thought[] The permission was not stored, and the command is allowed once: commands that begin with `./work.sh four && rm` always ask.⏎
        ? `./work.sh four` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_project: 
        < thought[] The permission was not stored, and the command is allowed once: the prefix is empty.⏎
        < text[note-1] Always allowed in $HOME/project:⏎⏎1. `./work.sh one …`⏎⏎Allowed for this session:⏎⏎2. `./work.sh one two`⏎⏎`/permissions remove N` removes one, `/permissions clear` removes all.⏎
    "#]],
    );
}

#[test]
fn project_grant_survives_the_process_and_is_revoked() {
    let test = async {
        let mut stage = Stage::new("", json!({})).await;
        let session = stage.open().await;
        let mut shown = stage.asked(&session, &["sh ./x", "./work.sh one"], &["allow_project"]).await;
        shown += "a prefix covers other words\n";
        shown += &stage.asked(&session, &["./work.sh two", "./work.sh three | wc -l"], &[]).await;
        stage.restart().await;
        shown += "another process, another session\n";
        let session = stage.open().await;
        shown += &stage.asked(&session, &["./work.sh four"], &[]).await;
        shown += &stage.command(&session, "/permissions").await;
        shown += &stage.command(&session, "/permissions remove 2").await;
        shown += &stage.command(&session, "/permissions remove 1").await;
        shown += &stage.command(&session, "/permissions").await;
        shown += "it asks again\n";
        shown += &stage.asked(&session, &["./work.sh five"], &["reject_once"]).await;
        shown
    };
    check(
        test,
        &expect![[r#"
        ? `sh ./x` [allow_once, allow_always, reject_once, reject_and_tell] -> allow_project
        ? `./work.sh one` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_project
        a prefix covers other words
        another process, another session
        < text[note-1] Always allowed in $HOME/project:⏎⏎1. `./work.sh …`⏎⏎`/permissions remove N` removes one, `/permissions clear` removes all.⏎
        < text[note-2] There is no permission with this number. Type /permissions to see the list.⏎
        < text[note-3] Removed: `./work.sh …`.⏎
        < text[note-4] There are no stored permissions. A permission question offers to store one.⏎
        it asks again
        ? `./work.sh five` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> reject_once
    "#]],
    );
}

#[test]
fn session_grant_survives_close_and_load_only() {
    let test = async {
        let mut stage = Stage::new("", json!({})).await;
        let session = stage.open().await;
        let mut shown = stage.asked(&session, &["python3 -c 1"], &["allow_always"]).await;
        stage.restart().await;
        let project = stage.world.project();
        stage.client.load_session(&session, &project).await.expect("it is there");
        shown += "the same session in another process\n";
        shown += &stage.asked(&session, &["python3 -c 1"], &[]).await;
        shown += "other words, and another session\n";
        shown += &stage.asked(&session, &["python3 -c 2"], &["reject_once"]).await;
        let other = stage.open().await;
        shown += &stage.asked(&other, &["python3 -c 1"], &["reject_once"]).await;
        shown
    };
    check(
        test,
        &expect![[r#"
        ? `python3 -c 1` [allow_once, allow_always, reject_once, reject_and_tell] -> allow_always
        the same session in another process
        other words, and another session
        ? `python3 -c 2` [allow_once, allow_always, reject_once, reject_and_tell] -> reject_once
        ? `python3 -c 1` [allow_once, allow_always, reject_once, reject_and_tell] -> reject_once
    "#]],
    );
}

/// Rejects the first of two calls with instructions; returns the questions and the model's view.
async fn rejected(capabilities: Value, form: Option<&str>) -> String {
    let mut stage = Stage::new("", capabilities).await;
    let session = stage.open().await;
    let call = |command: &str| format!("call terminal {}", json!({"command": command}));
    let script = format!("{} | {}\ntext \"I do that.\"", call("rm a"), call("rm b"));
    stage.model.replace_answers(Script::parse(&script));
    stage.client.permission_answers.extend(["reject_and_tell".to_owned(), "reject_once".to_owned()]);
    stage.client.form_answers.extend(form.map(str::to_owned));
    stage.prompt(&session, "go").await;
    let n_before = stage.model.requests().len();
    if form.is_none() {
        stage.prompt(&session, "move it to the bin").await;
    }
    let request = stage.model.requests().pop().expect("there was one");
    let messages = request["messages"].as_array().expect("messages").iter();
    let told = messages
        .filter(|message| message["role"] != "system")
        .map(|message| format!("{}: {}\n", message["role"].as_str().unwrap_or_default(), message["content"]));
    let told: String = told.collect();
    let log = stage.client.log();
    let asked = log.lines().filter(|line| line.starts_with("? ")).map(|line| format!("{line}\n"));
    format!("{}{n_before} requests in the turn\n{told}", asked.collect::<String>())
}

#[test]
fn rejection_with_text_ends_the_turn_without_forms() {
    check(
        rejected(json!({}), None),
        &expect![[r#"
            ? `rm a` [allow_once, allow_always, reject_once, reject_and_tell] -> reject_and_tell
            1 requests in the turn
            user: "go"
            assistant: null
            tool: "not run: the user rejected it and will give instructions with the next message"
            tool: "not run: the user rejected an earlier call and will give instructions with the next message"
            user: "move it to the bin"
        "#]],
    );
}

#[test]
fn rejection_with_text_reaches_the_model_by_a_form() {
    let capabilities = json!({"elicitation": {"form": {}}});
    check(
        rejected(capabilities, Some("move it to the bin")),
        &expect![[r#"
            ? `rm a` [allow_once, allow_always, reject_once, reject_and_tell] -> reject_and_tell
            ? form What should be done instead? [] -> move it to the bin
            ? `rm b` [allow_once, allow_always, reject_once, reject_and_tell] -> reject_once
            2 requests in the turn
            user: "go"
            assistant: null
            tool: "not run: the user rejected it and says: move it to the bin"
            tool: "not run: the user rejected it"
        "#]],
    );
}

#[test]
fn command_that_cannot_run_asks_nothing() {
    for (use_client, expected) in [
        (
            "true",
            expect![[r#"
        < call call-1-0 terminal "`rm x`" pending {"command":"rm x"}
        < call call-1-0 failed "could not run the command: there is no terminal that the configuration allows (use_acp_terminal, fallback_to_mcp_terminal)"
        < text[msg-3] Done.
        < title go
    "#]],
        ),
        (
            "false",
            expect![[r#"
        < call call-1-0 terminal "`rm x`" pending {"command":"rm x"}
        < call call-1-0 failed "could not run the command: there is no terminal that the configuration allows (use_acp_terminal, fallback_to_mcp_terminal)"
        < text[msg-3] Done.
        < title go
    "#]],
        ),
    ] {
        let test = async {
            let config = format!("use_acp_terminal: {use_client}\nfallback_to_mcp_terminal: false");
            let mut stage = Stage::new(&config, json!({})).await;
            let session = stage.open().await;
            stage.asked(&session, &["rm x"], &[]).await + &stage.client.log()
        };
        check(test, &expected);
    }
}

#[test]
fn child_does_not_ask_for_grants_of_its_parent() {
    let test = async {
        let mut stage = Stage::new("", json!({})).await;
        let session = stage.open().await;
        let mut shown = stage.asked(&session, &["./work.sh one"], &["allow_always"]).await;
        let child = format!(
            "call terminal {} | call terminal {}\ntext \"Both ran.\"",
            json!({"command": "./work.sh two"}),
            json!({"command": "make all"}),
        );
        stage.model.add_answers_for("ALPHA", Script::parse(&child));
        let task = json!({"prompt": "ALPHA: work", "title": "work"});
        stage.model.replace_answers(Script::parse(&format!("call task {task}\ntext \"Done.\"")));
        let before = stage.client.log().len();
        stage.client.permission_answers.push_back("allow_always".to_owned());
        stage.prompt(&session, "go").await;
        let log = stage.client.log();
        shown += "by the child\n";
        shown.extend(
            log[before..].lines().filter(|line| line.starts_with("? ")).map(|line| format!("{line}\n")),
        );
        shown += "what the child was allowed holds for the parent\n";
        shown += &stage.asked(&session, &["make all"], &[]).await;
        shown
    };
    check(
        test,
        &expect![[r#"
        ? `./work.sh one` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_always
        by the child
        ? work: `make all` [allow_once, allow_always, allow_project, reject_once] -> allow_always
        what the child was allowed holds for the parent
    "#]],
    );
}

#[test]
fn grandchild_does_not_ask_for_grants_of_the_root() {
    let test = async {
        let mut stage = Stage::new("", json!({})).await;
        let session = stage.open().await;
        let mut shown = stage.asked(&session, &["./work.sh one"], &["allow_always"]).await;
        let run = format!("call terminal {}\ntext \"It ran.\"", json!({"command": "./work.sh two"}));
        stage.model.add_answers_for("BETA", Script::parse(&run));
        let task = |prompt: &str| format!("call task {}\ntext \"Done.\"", json!({"prompt": prompt}));
        stage.model.add_answers_for("ALPHA", Script::parse(&task("BETA: work")));
        stage.model.replace_answers(Script::parse(&task("ALPHA: work")));
        let before = stage.client.log().len();
        stage.prompt(&session, "go").await;
        let log = stage.client.log();
        shown += "by the child of the child\n";
        shown.extend(
            log[before..].lines().filter(|line| line.starts_with("? ")).map(|line| format!("{line}\n")),
        );
        assert!(log.contains("is done"), "{log}");
        shown
    };
    check(
        test,
        &expect![[r#"
            ? `./work.sh one` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_always
            by the child of the child
        "#]],
    );
}
