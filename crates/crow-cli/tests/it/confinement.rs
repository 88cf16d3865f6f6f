//! Commands are confined according to their approval, and may run again if the sandbox was too strict.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{ModelServer, Script};
use serde_json::{Value, json};

/// A turn with one command that writes to `$OUT`, a directory outside the project and outside temporary directories.
struct Stage {
    model: ModelServer,
    client: FakeClient,
    world: TestHome,
    outside: tempfile::TempDir,
}

impl Stage {
    async fn new(permissions: &str, capabilities: Value) -> Self {
        Self::with_program(permissions, capabilities, Path::new(env!("CARGO_BIN_EXE_crow-cli"))).await
    }

    async fn with_program(permissions: &str, capabilities: Value, binary: &Path) -> Self {
        let outside = tempfile::tempdir_in(lasting()).expect("a folder can be made");
        let model = ModelServer::start("");
        let world = TestHome::new(model.base_url());
        world.add_config(&format!("permissions: {permissions}"));
        let mut client = FakeClient::start_with(binary, &world.home(), capabilities).await;
        client.mask(outside.path().display().to_string(), "$OUT");
        Self { model, client, world, outside }
    }

    /// Runs a command; returns its result for the model.
    async fn play(&mut self, command: &str, answers: &[&str]) -> String {
        let command = command.replace("$OUT", &self.outside.path().display().to_string());
        let call = format!("call terminal {}", json!({"command": command}));
        self.model.replace_answers(Script::parse(&format!("{call}\ntext \"Done.\"")));
        self.client.permission_answers.extend(answers.iter().map(|&answer| answer.to_owned()));
        let session = self.client.new_session(&self.world.project()).await;
        let id = self.client.prompt(&session, "go").await;
        let ended = self.client.response_to(id).await.expect("the turn ends");
        assert_eq!(ended["stopReason"], "end_turn");
        assert_eq!(self.model.rejections(), Vec::<String>::new(), "the model refused a request");
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

/// Returns a directory that is not temporary, wherever the repository was cloned: the user's own if necessary.
fn lasting() -> PathBuf {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    if !["/tmp", "/var/tmp"].iter().any(|temporary| target.starts_with(temporary)) {
        return target;
    }
    let person = nix::unistd::User::from_uid(nix::unistd::getuid()).expect("people are known here");
    person.expect("the current user").dir
}

const WRITES: &str = "echo x > $OUT/new";

#[track_caller]
fn check(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(test);
}

#[test]
fn unapproved_command_is_confined_and_retried_when_the_user_approves() {
    check(async {
        for capabilities in [json!({}), json!({"terminal": true})] {
            let mut stage = Stage::new("{ mode: auto }", capabilities.clone()).await;
            let told = stage.play(WRITES, &["reject_once"]).await;
            assert!(!stage.has_written(), "{}", stage.client.log());
            assert!(told.contains("ran in a sandbox"), "{told}");
            assert!(told.contains("rejected running it without"), "{told}");
            let told = stage.play(WRITES, &["allow_once"]).await;
            assert!(stage.has_written(), "{}", stage.client.log());
            assert!(told.contains("allowed to run again"), "{told}");
            assert_eq!(stage.n_questions(), 2, "{capabilities}: {}", stage.client.log());
        }
    });
}

#[test]
fn unapproved_build_changes_no_file_that_an_editor_runs() {
    check(async {
        for (mode, is_changed) in [("accept-edits", false), ("auto", true)] {
            let mut stage = Stage::new(&format!("{{ mode: {mode} }}"), json!({})).await;
            let project = stage.world.project();
            let makefile =
                "test:\n\tmkdir -p .vscode; echo bad > .vscode/tasks.json; echo bad > .envrc; echo x > out\n";
            fs::write(project.join("Makefile"), makefile).expect("a file can be written");
            fs::write(project.join(".envrc"), "good\n").expect("a file can be written");
            let told = stage.play("make test", &["reject_once"]).await;
            assert_eq!(project.join(".vscode/tasks.json").exists(), is_changed, "{told}");
            let envrc = fs::read_to_string(project.join(".envrc")).expect("it is there");
            assert_eq!(envrc == "bad\n", is_changed, "{told}");
            assert_eq!(told.contains("to .vscode.set-aside"), !is_changed, "{told}");
        }
    });
}

#[test]
fn failure_before_a_pipe_is_noticed() {
    check(async {
        let mut stage = Stage::new("{ mode: auto }", json!({})).await;
        let told = stage.play(&format!("{{ {WRITES}; }} 2>&1 | tee log"), &["reject_once"]).await;
        assert!(told.contains("rejected running it without"), "{told}");
        assert_eq!(stage.n_questions(), 1, "{}", stage.client.log());
    });
}

#[test]
fn rule_does_not_lift_confinement_and_the_user_does() {
    check(async {
        let mut stage = Stage::new("{ allow: [sh -c] }", json!({})).await;
        stage.play("sh -c 'echo x > $OUT/new'", &["reject_once"]).await;
        assert!(!stage.has_written(), "{}", stage.client.log());
        // No rule covers this command, so the user is asked first.
        stage.play(WRITES, &["allow_once"]).await;
        assert!(stage.has_written(), "{}", stage.client.log());
        assert_eq!(stage.n_questions(), 2, "{}", stage.client.log());
    });
}

#[test]
fn configuration_selects_which_commands_are_confined() {
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
fn confined_command_works_in_the_project_and_cannot_reach_the_configuration() {
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

/// Writes a script that starts Crow where no namespace can be created.
fn without_namespaces(folder: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_crow-cli"));
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces; echo 0 > /proc/sys/user/max_mnt_namespaces";
    let inside = format!("unshare --user --map-root-user sh -c '{forbid}; exec \"$@\"' sh");
    #[expect(clippy::disallowed_methods, reason = "it finds out what the machine can do")]
    let can = std::process::Command::new("sh").args(["-c", &format!("{inside} true")]).status();
    if !can.is_ok_and(|status| status.success()) {
        return binary;
    }
    let script = folder.join("crow");
    fs::write(&script, format!("#!/bin/sh\nexec {inside} {} \"$@\"\n", binary.display())).expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
    script
}

#[test]
fn missing_namespace_is_reported_once_and_asks() {
    check(async {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made");
        let program = without_namespaces(folder.path());
        let mut stage = Stage::with_program("{ mode: auto }", json!({}), &program).await;
        let project = stage.world.project();
        fs::create_dir_all(project.join(".git/hooks")).expect("made");
        fs::create_dir_all(project.join("sub")).expect("made");
        let told = stage.play("echo x > sub/new && cat sub/new", &[]).await;
        assert!(told.starts_with("\"x"), "{told}: {}", stage.client.log());
        assert_eq!(stage.n_questions(), 0, "{}", stage.client.log());
        assert_eq!(
            stage.client.log().matches("the sandbox is incomplete").count(),
            1,
            "{}",
            stage.client.log()
        );
        let told = stage.play("f=hooks; echo x > .git/${f}/new", &["reject_once"]).await;
        assert!(!project.join(".git/hooks/new").exists(), "{told}");
        let n_before = stage.n_questions();
        let told = stage.play("chmod 700 $OUT", &["reject_once"]).await;
        assert!(told.contains("the user rejected it"), "{told}");
        assert_eq!(stage.n_questions(), n_before + 1, "{}", stage.client.log());
        let mut stage = Stage::with_program("{ mode: auto, sandbox: off }", json!({}), &program).await;
        stage.play("chmod 700 $OUT", &[]).await;
        assert_eq!(stage.n_questions(), 0, "{}", stage.client.log());
        assert!(!stage.client.log().contains("the sandbox is incomplete"), "{}", stage.client.log());
    });
}
