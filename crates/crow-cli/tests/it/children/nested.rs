//! Crow as a child of Crow, three levels deep: questions of the deepest agent reach the user at the root, and
//! whatever is stopped or breaks leaves no process.

use expect_test::expect;
use serde_json::json;

use super::{AUTO, Stage, check, leashed_call, run};

const DEEP: &str = "agents: { max_depth: 3 }";

/// Three levels, each of which only waits for the next.
const CHAIN: [(&str, &str); 2] = [
    ("ALPHA", "call task {\"prompt\":\"BETA\"}\ntext \"Beta told me.\"\ntext \"Alpha again.\""),
    ("BETA", "call task {\"prompt\":\"GAMMA\"}\ntext \"Gamma told me.\"\ntext \"Beta again.\""),
];

/// Starts such a chain, with a script for the deepest model.
async fn chain(config: &[&str], deepest: &str) -> Stage {
    let config: Vec<&str> = config.iter().copied().chain([DEEP]).collect();
    let stage = Stage::start(&config, "call task {\"prompt\":\"ALPHA\"}\ntext \"Alpha told me.\"").await;
    CHAIN.into_iter().for_each(|(text, script)| stage.server.add_answers_for(text, script));
    stage.server.add_answers_for("GAMMA", deepest);
    stage
}

#[test]
fn request_of_the_deepest_child_is_answered_at_the_root() {
    check(
        &[],
        r#"
        config: agents: { max_depth: 3 }
        model: call task {"prompt":"ALPHA"}
        child ALPHA: call task {"prompt":"BETA"}
        child BETA: call task {"prompt":"GAMMA"}
        child GAMMA: call write {"file_path":"a.txt","content":"a"}
        child GAMMA: text "Written."
        child BETA: text "Gamma wrote."
        child ALPHA: text "Beta had it written."
        model: text "It is written."
        > prompt go
        > end
        > run inspect -s $SESSION --tree
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task: ALPHA" pending {"prompt":"ALPHA"}
            < call call-1-0 in_progress
            ? ALPHA: BETA: GAMMA: Write a.txt [allow_once, allow_always, allow_project, reject_once] -> allow_once
            < call call-1-0 completed "Task $TASK (ALPHA) is done.\n\nBeta had it written.\n\nIt changed 1 file with its tools (+1 -0):\n  $HOME/project/a.txt (+1 -0)\n\nThe whole of it: query_session with " diff $HOME/project/a.txt null -> "a"
            < text[msg-3] It is written.
            < title go
            = end_turn
            $ SESSION UPDATED MESSAGES MODEL TITLE TASK COPY OF
            $ $SESSION just now 4 scripted go
            $ └ $TASK just now 4 scripted ALPHA crow: done, 1 turn, 0 tokens
            $ └ $TASK just now 4 scripted BETA crow: done, 1 turn, 0 tokens
            $ └ $TASK just now 4 scripted GAMMA crow: done, 1 turn, 0 tokens
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"ALPHA\"}")
            model saw tool: "Task $TASK (ALPHA) is done.\n\nBeta had it written.\n\nIt changed 1 file with its tools (+1 -0):\n  $HOME/project/a.txt (+1 -"
        "#]],
    );
}

#[test]
fn request_without_a_user_is_rejected_with_a_reason() {
    run(async {
        let script = "call write {\"file_path\":\"a.txt\",\"content\":\"a\"}\ntext \"Not written.\"";
        let mut stage = chain(&[], script).await;
        stage.client.permission_answers.push_back("error".into());
        assert_eq!(stage.say("go").await, "end_turn");
        expect!["not run: it needs permission, and the user could not be asked (the dialog broke)"]
            .assert_eq(&stage.told("GAMMA"));
        assert!(!stage.world.project().join("a.txt").exists());
        stage.clean("refused").await;
    });
}

#[test]
fn request_without_a_terminal_is_rejected() {
    run(async {
        let script = "call write {\"file_path\":\"a.txt\",\"content\":\"a\"}\ntext \"Not written.\"";
        let stage = chain(&[], script).await;
        let mut command = tokio::process::Command::new(super::binary());
        command.args(["run", "go"]).env("HOME", stage.world.home()).current_dir(stage.world.project());
        let ran = command.stdin(std::process::Stdio::null()).output().await.expect("it runs");
        expect![
            "not run: it needs permission, and the user could not be asked (there is no terminal to ask on)"
        ]
        .assert_eq(&stage.told("GAMMA"));
        expect![[r#"
            Alpha told me.
        "#]]
        .assert_eq(&stage.hidden(&String::from_utf8_lossy(&ran.stdout)));
        expect![[r#"
            ✓ Task: ALPHA
            error: a tool call needed permission and there was no terminal to ask on
            hint: approve it with -y, or choose another --mode
            session     $TASK
            continue    crow-cli run -s $TASK "…"
        "#]]
        .assert_eq(&stage.hidden(&String::from_utf8_lossy(&ran.stderr)));
        assert_eq!(ran.status.code(), Some(5));
    });
}

/// Continues after a chain was cancelled.
async fn cancelled(stage: &mut Stage, id: u64, when: &str) {
    stage.cancel().await;
    assert_eq!(stage.end_of(id).await, "cancelled", "{when}");
    let takes_back = stage.client.log().contains("< takes its question back");
    assert_eq!(takes_back, stage.client.log().contains("-> silence"), "{when}");
    stage.leash.wait_until_gone(when).await;
    stage.server.replace_answers("text \"Here I am.\"");
    assert_eq!(stage.say("once more").await, "end_turn", "{when}");
    stage.clean(when).await;
}

#[test]
fn cancel_while_the_deepest_child_runs_a_command() {
    run(async {
        let mut stage = chain(&[AUTO], &leashed_call()).await;
        let id = stage.client.prompt(&stage.session, "go").await;
        stage.leashed().await;
        cancelled(&mut stage, id, "a command").await;
    });
}

#[test]
fn cancel_while_the_deepest_child_asks() {
    run(async {
        let mut stage = chain(&[], &leashed_call()).await;
        stage.client.permission_answers.push_back("silence".into());
        let id = stage.client.prompt(&stage.session, "go").await;
        stage.client.wait_for_line("-> silence").await;
        cancelled(&mut stage, id, "a question").await;
    });
}

#[test]
fn cancel_while_the_model_of_the_deepest_child_hangs() {
    run(async {
        let mut stage = chain(&[], "hold").await;
        let id = stage.client.prompt(&stage.session, "go").await;
        stage.server.wait_for_requests(4).await;
        cancelled(&mut stage, id, "a request").await;
        stage.server.wait_for_disconnect(3).await;
    });
}

#[test]
fn steering_reaches_the_root_only() {
    run(async {
        let mut stage = chain(&[], "hold | text \"Gamma.\"").await;
        let id = stage.client.prompt(&stage.session, "go").await;
        stage.server.wait_for_requests(4).await;
        let steered = json!({"sessionId": stage.session, "prompt": [{"type": "text", "text": "hurry"}]});
        let steered = stage.client.send("_session/steering", steered).await;
        stage.server.release();
        assert_eq!(stage.end_of(id).await, "end_turn");
        stage.client.response_to(steered).await.expect("the root takes it");
        assert_eq!(stage.told("go"), "hurry");
        stage.clean("steered").await;
    });
}
