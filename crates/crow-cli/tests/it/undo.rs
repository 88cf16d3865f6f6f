//! File changes of a turn are undone on request, and never over changes of others.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use crow_testkit::ModelServer;
use crow_testkit::client::{FakeClient, TestHome};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

const AUTO: &str = "permissions: { mode: auto }";

/// Writes a new file and edits an existing one.
const TURN: &str = r#"
    call read {"file_path":"a.txt"}
    call edit {"file_path":"a.txt","old_string":"two","new_string":"three"} | call write {"file_path":"new/b.txt","content":"apples\n"}
    call edit {"file_path":"a.txt","old_string":"three","new_string":"four"}
    text "Done."
"#;

struct Stage {
    server: ModelServer,
    world: TestHome,
    client: FakeClient,
    session: String,
}

impl Stage {
    async fn new(capabilities: Value) -> Self {
        let server = ModelServer::start("");
        let world = TestHome::new(server.base_url());
        world.add_config(AUTO);
        world.write_file("a.txt", "one\ntwo\n");
        let mut client = FakeClient::start_with(binary(), &world.home(), capabilities).await;
        let session = client.new_session(&world.project()).await;
        Self { server, world, client, session }
    }

    /// Runs a turn of this script.
    async fn turn(&mut self, script: &str) {
        self.server.replace_answers(script);
        self.say("go").await;
        assert_eq!(self.server.rejections(), Vec::<String>::new(), "the model refused a request");
    }

    /// Sends a prompt and returns the last updates of the client.
    async fn say(&mut self, text: &str) -> String {
        let id = self.client.prompt(&self.session, text).await;
        let ended = self.client.response_to(id).await.expect("the turn ends");
        assert_eq!(ended["stopReason"], "end_turn");
        self.last_text()
    }

    fn last_text(&self) -> String {
        let mut updates = self.client.updates.iter().map(|(_, update)| update);
        let last = updates.rfind(|update| update["sessionUpdate"] == "agent_message_chunk");
        let text = last.and_then(|update| update["content"]["text"].as_str()).unwrap_or_default();
        text.replace(&self.world.home().display().to_string(), "$HOME")
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.world.project().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("the file is there")
    }

    /// Runs the binary in the same directory.
    fn crow(&self, args: &[&str]) -> Ran {
        ran(&self.world, args)
    }

    /// Returns the last message to the model as one text.
    fn told(&self) -> String {
        self.server.requests().pop().unwrap_or_default()["messages"].to_string()
    }
}

/// The result of a process.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

#[expect(clippy::disallowed_methods, reason = "the program is tested from outside, as a shell starts it")]
fn ran(world: &TestHome, args: &[&str]) -> Ran {
    let command = Command::new(binary())
        .args(args)
        .current_dir(world.project())
        .env_clear()
        .env("HOME", world.home())
        .output();
    let Output { status, stdout, stderr } = command.expect("it starts");
    let plain = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).expect("text");
        text.replace(&world.home().display().to_string(), "$HOME")
    };
    Ran { code: status.code(), stdout: plain(stdout), stderr: plain(stderr) }
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

#[track_caller]
fn check(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(test);
}

#[track_caller]
fn says(said: &str, expect: &Expect) {
    expect.assert_eq(said);
}

#[test]
fn session_goes_back_to_an_earlier_prompt() {
    check(async {
        let mut stage = Stage::new(json!({})).await;
        stage.turn(TURN).await;
        stage.turn("call write {\"file_path\":\"a.txt\",\"content\":\"again\\n\"}\ntext \"Done.\"").await;
        let session = stage.session.clone();
        let prompts = stage.client.request("_crow/session/prompts", json!({ "sessionId": session })).await;
        let prompts = prompts.expect("the prompts");
        let rows = prompts["prompts"].as_array().expect("a list").iter().map(|row| format!("{row}\n"));
        says(
            &rows.collect::<String>(),
            &expect![[r#"
            {"messageId":"msg-9","text":"go","undoableTurns":1,"undoableFiles":1}
            {"messageId":"msg-0","text":"go","undoableTurns":2,"undoableFiles":2}
        "#]],
        );
        says(
            &stage.say("/undo 2").await,
            &expect![[r#"
            - `a.txt`: restored
            - `a.txt`: restored
            - `new/b.txt`: removed
        "#]],
        );
        assert_eq!(stage.read("a.txt"), "one\ntwo\n");
        let second = prompts["prompts"][0]["messageId"].clone();
        let fork = json!({
            "sessionId": session,
            "cwd": stage.world.project(),
            "mcpServers": [],
            "_meta": { "crow": { "before": second } },
        });
        let forked = stage.client.request("session/fork", fork).await.expect("a copy");
        stage.session = forked["sessionId"].as_str().expect("its ID").to_owned();
        stage.turn("text \"Here.\"").await;
        let request = stage.server.requests().pop().unwrap_or_default();
        let roles = request["messages"].as_array().expect("messages").iter();
        let roles: Vec<&str> = roles.filter_map(|message| message["role"].as_str()).collect();
        says(
            &roles.join(" "),
            &expect!["system user assistant tool assistant tool tool assistant tool assistant user"],
        );
        assert!(!stage.told().contains("took back"), "the copy knows nothing of the changes");
    });
}

#[test]
fn turn_is_undone_and_then_the_one_before() {
    check(async {
        let mut stage = Stage::new(json!({})).await;
        fs::set_permissions(stage.path("a.txt"), fs::Permissions::from_mode(0o750)).expect("a mode");
        stage.turn(TURN).await;
        stage.turn("call write {\"file_path\":\"a.txt\",\"content\":\"again\\n\"}\ntext \"Done.\"").await;
        assert_eq!(stage.read("a.txt"), "again\n");
        says(
            &stage.say("/undo").await,
            &expect![[r"
            - `a.txt`: restored
        "]],
        );
        assert_eq!((stage.read("a.txt"), stage.read("new/b.txt")), ("one\nfour\n".into(), "apples\n".into()));
        says(
            &stage.say("/undo").await,
            &expect![[r"
            - `a.txt`: restored
            - `new/b.txt`: removed
        "]],
        );
        assert_eq!(stage.read("a.txt"), "one\ntwo\n");
        let mode = fs::metadata(stage.path("a.txt")).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
        assert!(stage.path("new").is_dir() && !stage.path("new/b.txt").exists());
        let nothing = stage.say("/undo").await;
        says(
            &nothing,
            &expect![[r"
            There is nothing to undo: this session has no file changes left.
        "]],
        );
    });
}

#[test]
fn model_is_informed_once_and_invisibly() {
    check(async {
        let mut stage = Stage::new(json!({})).await;
        stage.turn(TURN).await;
        stage.say("/undo").await;
        let edit = r#"call edit {"file_path":"a.txt","old_string":"other","new_string":"1"}"#;
        stage.turn(&format!("{edit}\ntext \"I see.\"")).await;
        let told = stage.told();
        assert_eq!(told.matches("The person took back what you did").count(), 1, "{told}");
        for file in ["a.txt", "new/b.txt"] {
            assert!(told.contains(&stage.path(file).display().to_string()), "{told}");
        }
        assert!(told.contains("it was not read in this session"), "{told}");
        stage.turn("text \"Yes.\"").await;
        assert_eq!(stage.told().matches("The person took back what you did").count(), 1);
        let (session, project) = (stage.session.clone(), stage.world.project());
        let mut other = FakeClient::start(binary(), &stage.world.home()).await;
        other.load_session(&session, &project).await.expect("the session loads");
        assert!(!other.log().contains("took back"), "{}", other.log());
    });
}

#[test]
fn changes_by_others_stay_and_can_be_undone_later() {
    check(async {
        let mut stage = Stage::new(json!({})).await;
        stage.turn(TURN).await;
        stage.world.write_file("a.txt", "one\nfour\nfive, by hand\n");
        fs::remove_file(stage.path("new/b.txt")).expect("it was there");
        says(
            &stage.say("/undo").await,
            &expect![[r#"
                - `a.txt`: left unchanged, it was changed after the agent's change

                  Undoing would change this:

                ```diff
                @@ -1,3 +1,2 @@
                 one
                -four
                -five, by hand
                +two
                ```

                - `new/b.txt`: restored already

                Files that could not be restored are unchanged. /undo skip skips them, and /undo continues with the turn before.
            "#]],
        );
        assert_eq!(stage.read("a.txt"), "one\nfour\nfive, by hand\n");
        stage.world.write_file("a.txt", "one\nfour\n");
        says(
            &stage.say("/undo").await,
            &expect![[r"
            - `a.txt`: restored
        "]],
        );
        assert_eq!(stage.read("a.txt"), "one\ntwo\n");
    });
}

#[test]
fn undo_works_in_another_process() {
    check(async {
        let mut stage = Stage::new(json!({})).await;
        stage.turn(TURN).await;
        let tried = stage.crow(&["undo", "--dry-run"]);
        says(
            &format!("{:?}\n{}{}", tried.code, tried.stdout, tried.stderr),
            &expect![[r#"
                Some(0)
                a.txt: would be restored
                new/b.txt: would be removed
            "#]],
        );
        assert_eq!(stage.read("a.txt"), "one\nfour\n");
        stage.world.write_file("new/b.txt", "pears\n");
        let done = stage.crow(&["undo"]);
        says(
            &format!("{:?}\n{}{}", done.code, done.stdout, done.stderr),
            &expect![[r#"
                Some(1)
                a.txt: restored
                new/b.txt: left unchanged, it was changed after the agent's change
                    @@ -1 +0,0 @@
                    -pears
            "#]],
        );
        assert_eq!((stage.read("a.txt"), stage.read("new/b.txt")), ("one\ntwo\n".into(), "pears\n".into()));
        stage.world.write_file("new/b.txt", "apples\n");
        let done = stage.crow(&["undo", "-j", "-s", &stage.session]);
        let document: Value = serde_json::from_str(&done.stdout).expect("JSON");
        let path = stage
            .path("new/b.txt")
            .display()
            .to_string()
            .replace(&stage.world.home().display().to_string(), "$HOME");
        let files = json!([{"path": path, "done": "removed", "why": null}]);
        assert_eq!(document, json!({"session": stage.session, "turn": 0, "files": files}));
        let none = stage.crow(&["undo"]);
        assert_eq!((none.code, none.stdout), (Some(0), format!("nothing to undo in {}\n", stage.session)));
        // The session that is still open in the first process takes it into account.
        stage.turn("text \"I see.\"").await;
        assert!(stage.told().contains("The person took back what you did"), "{}", stage.told());
        let unknown = stage.crow(&["undo", "-s", "unknown"]);
        assert_eq!(
            (unknown.code, unknown.stderr.lines().next()),
            (Some(4), Some("error: there is no session unknown"))
        );
    });
}

#[test]
fn directory_without_sessions_has_nothing_to_undo() {
    let server = ModelServer::start("");
    let world = TestHome::new(server.base_url());
    let none = ran(&world, &["undo"]);
    says(
        &format!("{:?}\n{}{}", none.code, none.stdout, none.stderr),
        &expect![[r#"
            Some(4)
            error: there is no session in $HOME/project
            hint: `crow-cli inspect` lists the sessions; choose one with -s
        "#]],
    );
    assert!(
        fs::read_dir(world.home().join(".crow")).expect("a folder").count() == 1,
        "looking makes no database"
    );
}

#[test]
fn undo_is_rejected_during_a_turn() {
    check(async {
        let mut stage = Stage::new(json!({})).await;
        stage.turn(TURN).await;
        stage.server.replace_answers("hold | text \"Done.\"");
        let n_requests = stage.server.n_requests();
        let running = stage.client.prompt(&stage.session.clone(), "wait").await;
        stage.server.wait_for_requests(n_requests + 1).await;
        says(
            &stage.say("/undo").await,
            &expect![[r"
            A turn is running. Stop it with /stop, then undo its changes.
        "]],
        );
        let busy = stage.crow(&["undo"]);
        assert_eq!((busy.code, busy.stdout.as_str()), (Some(1), ""), "{}", busy.stderr);
        assert!(busy.stderr.contains(&stage.session), "{}", busy.stderr);
        stage.server.release();
        stage.client.response_to(running).await.expect("the turn ends");
        assert_eq!(stage.read("a.txt"), "one\nfour\n");
        assert_eq!(stage.crow(&["undo"]).code, Some(0));
        assert_eq!(stage.read("a.txt"), "one\ntwo\n");
    });
}

#[test]
fn undo_writes_through_the_client() {
    check(async {
        let mut stage = Stage::new(json!({"fs": {"readTextFile": true, "writeTextFile": true}})).await;
        let path = stage.path("a.txt");
        fs::write(stage.path("crlf.txt"), "one\r\ntwo\r\n").expect("a file");
        // The agent reads the unsaved text, and undo restores it.
        stage.client.editor.buffers.insert(path.clone(), "one\ntwo\nnot saved\n".to_owned());
        stage.turn(TURN).await;
        stage.turn("call read {\"file_path\":\"crlf.txt\"}\ncall write {\"file_path\":\"crlf.txt\",\"content\":\"x\\n\"}\ntext \"Done.\"").await;
        stage.client.editor.buffers.insert(stage.path("crlf.txt"), "x\ntyped\n".to_owned());
        let left = stage.say("/undo").await;
        assert!(left.starts_with("- `crlf.txt`: left unchanged, it was changed after"), "{left}");
        stage.client.editor.buffers.clear();
        says(
            &stage.say("/undo").await,
            &expect![[r"
            - `crlf.txt`: restored
        "]],
        );
        assert_eq!(fs::read(stage.path("crlf.txt")).expect("a file"), b"one\r\ntwo\r\n");
        let before = stage.client.log().matches("> fs write").count();
        says(
            &stage.say("/undo").await,
            &expect![[r"
            - `a.txt`: restored
            - `new/b.txt`: removed
        "]],
        );
        assert_eq!(stage.client.log().matches("> fs write").count(), before + 1, "{}", stage.client.log());
        assert_eq!(stage.read("a.txt"), "one\ntwo\nnot saved\n");
    });
}

#[test]
fn text_that_is_restored_only_in_the_editor_is_restored_on_disk() {
    check(async {
        let mut stage = Stage::new(json!({"fs": {"readTextFile": true, "writeTextFile": true}})).await;
        stage.turn(TURN).await;
        stage.client.editor.buffers.insert(stage.path("a.txt"), "one\ntwo\n".to_owned());
        assert_eq!(stage.say("/undo").await, "- `a.txt`: restored\n- `new/b.txt`: removed\n");
        assert_eq!(stage.read("a.txt"), "one\ntwo\n");
    });
}

#[test]
fn file_unreadable_by_the_client_is_not_written_through_it() {
    check(async {
        let mut stage = Stage::new(json!({"fs": {"readTextFile": true, "writeTextFile": true}})).await;
        stage.turn("call read {\"file_path\":\"a.txt\"}\ncall write {\"file_path\":\"a.txt\",\"content\":\"agent\\n\"}\ntext \"Done.\"").await;
        let before = stage.client.log().matches("> fs write").count();
        stage.client.editor.fail_next("fs/read_text_file", crow_testkit::client::ResponseFault::Error);
        assert_eq!(stage.say("/undo").await, "- `a.txt`: restored\n");
        assert_eq!(stage.read("a.txt"), "one\ntwo\n");
        assert_eq!(stage.client.log().matches("> fs write").count(), before, "{}", stage.client.log());
    });
}

#[test]
fn unsaved_text_is_restored_with_the_line_endings_of_its_file() {
    check(async {
        let mut stage = Stage::new(json!({"fs": {"readTextFile": true, "writeTextFile": true}})).await;
        let path = stage.path("crlf.txt");
        fs::write(&path, "one\r\ntwo\r\n").expect("a file");
        stage.client.editor.buffers.insert(path.clone(), "one\ntwo\nnot saved\n".to_owned());
        let edit = r#"call edit {"file_path":"crlf.txt","old_string":"two","new_string":"three"}"#;
        stage.turn(&format!("call read {{\"file_path\":\"crlf.txt\"}}\n{edit}\ntext \"Done.\"")).await;
        assert!(stage.read("crlf.txt").contains("three"));
        assert_eq!(stage.say("/undo").await, "- `crlf.txt`: restored\n");
        assert_eq!(fs::read(&path).expect("a file"), b"one\r\ntwo\r\nnot saved\r\n");
    });
}

#[test]
fn undo_with_unknown_arguments_does_nothing() {
    check(async {
        let mut stage = Stage::new(json!({})).await;
        stage.turn(TURN).await;
        says(
            &stage.say("/undo everything").await,
            &expect![[r#"
                Nothing was undone. Type /undo, /undo N, /undo --dry-run or /undo skip.
            "#]],
        );
        says(
            &stage.say("/undo --dry-run").await,
            &expect![[r#"
                - `a.txt`: would be restored
                - `new/b.txt`: would be removed
            "#]],
        );
        says(
            &stage.say("/undo skip").await,
            &expect![[r#"
                There is nothing to skip: there are no conflicts.
            "#]],
        );
        assert_eq!((stage.read("a.txt"), stage.read("new/b.txt")), ("one\nfour\n".into(), "apples\n".into()));
    });
}

#[test]
fn skipped_changes_do_not_block_older_ones() {
    check(async {
        let mut stage = Stage::new(json!({})).await;
        stage.turn(TURN).await;
        for name in ["c.txt", "d.txt"] {
            let call = json!({"file_path": name, "content": "agent\n"});
            stage.turn(&format!("call write {call}\ntext \"Done.\"")).await;
            stage.world.write_file(name, "by hand\n");
        }
        let mut said = String::new();
        said += &stage.say("/undo").await;
        said += &stage.say("/undo skip").await;
        let done = stage.crow(&["undo", "--skip"]);
        said += &format!("{:?}\n{}{}", done.code, done.stdout, done.stderr);
        let none = stage.crow(&["undo", "--skip"]);
        said += &none.stdout;
        said += &stage.say("/undo").await;
        says(
            &said.replace(&stage.session, "SESSION"),
            &expect![[r#"
                - `d.txt`: left unchanged, it was changed after the agent's change

                  Undoing would change this:

                ```diff
                @@ -1 +0,0 @@
                -by hand
                ```


                Files that could not be restored are unchanged. /undo skip skips them, and /undo continues with the turn before.
                - `d.txt`: skipped, it was changed after the agent's change; it is unchanged
                Some(0)
                c.txt: skipped, it was changed after the agent's change; it is unchanged
                nothing to skip in SESSION
                - `a.txt`: restored
                - `new/b.txt`: removed
            "#]],
        );
        assert_eq!((stage.read("a.txt"), stage.read("c.txt")), ("one\ntwo\n".into(), "by hand\n".into()));
        let near = stage.crow(&["undo", "-s", &stage.session[..stage.session.len() - 1]]);
        assert_eq!(near.code, Some(4));
        assert!(near.stderr.contains(&format!("did you mean {}?", stage.session)), "{}", near.stderr);
    });
}

#[test]
fn disk_changes_unseen_by_the_client_are_not_overwritten() {
    check(async {
        let mut stage = Stage::new(json!({"fs": {"readTextFile": true, "writeTextFile": true}})).await;
        stage.turn("call write {\"file_path\":\"b.txt\",\"content\":\"agent\\n\"}\ntext \"Done.\"").await;
        stage.client.editor.buffers.insert(stage.path("b.txt"), "agent\n".to_owned());
        stage.world.write_file("b.txt", "another program\n");
        let left = stage.say("/undo").await;
        assert!(
            left.starts_with("- `b.txt`: left unchanged, it differs between the disk and the editor"),
            "{left}"
        );
        assert_eq!(stage.read("b.txt"), "another program\n");
    });
}

#[test]
fn agent_killed_before_it_writes_leaves_nothing_to_undo() {
    check(async {
        let mut stage = Stage::new(json!({"fs": {"readTextFile": true, "writeTextFile": true}})).await;
        stage.client.editor.fail_next("fs/write_text_file", crow_testkit::client::ResponseFault::Silence);
        stage
            .server
            .replace_answers("call read {\"file_path\":\"a.txt\"}\ncall write {\"file_path\":\"a.txt\",\"content\":\"never\\n\"}\ntext \"Done.\"");
        let session = stage.session.clone();
        stage.client.prompt(&session, "go").await;
        stage.client.wait_for_line("fs/write_text_file").await;
        let Stage { world, client, server: _server, .. } = stage;
        client.kill().await;
        let done = ran(&world, &["undo", "-s", &session]);
        assert_eq!(
            (done.code, done.stdout.as_str()),
            (Some(0), "a.txt: restored already\n"),
            "{}",
            done.stderr
        );
        let again = ran(&world, &["undo", "-s", &session]);
        assert_eq!(again.stdout, format!("nothing to undo in {session}\n"));
    });
}

#[test]
fn symlinks_and_directories_are_not_overwritten() {
    check(async {
        let mut stage = Stage::new(json!({})).await;
        let turn = r#"
            call read {"file_path":"a.txt"}
            call write {"file_path":"a.txt","content":"agent\n"} | call write {"file_path":"in/b.txt","content":"agent\n"}
            text "Done."
        "#;
        stage.turn(turn).await;
        fs::write(stage.world.home().join("outside"), "agent\n").expect("a file");
        fs::remove_file(stage.path("a.txt")).expect("it was there");
        symlink(stage.world.home().join("outside"), stage.path("a.txt")).expect("a link");
        fs::set_permissions(stage.path("in"), fs::Permissions::from_mode(0o555)).expect("a mode");
        let done = stage.crow(&["undo"]);
        let is_root = nix::unistd::geteuid().is_root();
        let of_folder = match is_root {
            true => "in/b.txt: removed",
            false => "in/b.txt: left unchanged, could not remove it: Permission denied (os error 13)",
        };
        let of_link = "a.txt: left unchanged, a link in its path is circular or was created just now";
        assert_eq!(done.stdout.lines().collect::<Vec<_>>(), [of_link, of_folder]);
        assert_eq!(done.code, Some(1));
        assert_eq!(fs::read_to_string(stage.world.home().join("outside")).expect("a file"), "agent\n");
        fs::set_permissions(stage.path("in"), fs::Permissions::from_mode(0o755)).expect("a mode");
    });
}
