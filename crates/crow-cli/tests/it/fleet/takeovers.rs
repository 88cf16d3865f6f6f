//! Tasks of workers that are gone: others go on with their conversations.

use crow_testkit::client::TestHome;
use expect_test::expect;
use nix::sys::signal::Signal;

use super::worktrees::{git, make_repository};
use super::{Stage, Worker, run};

/// A task whose first call leaves a line in its directory.
const FIRST: &str = "call terminal {\"command\":\"echo first >> log\"}\nhold";

const SECOND: &str = "call terminal {\"command\":\"echo second >> log; cat log\"}\ntext \"Both.\"";

async fn start(task: &str) -> Option<Stage> {
    let script = format!("call task {{\"prompt\":\"ALPHA\",\"agent\":\"farm\"{task}}}\ntext \"It is done.\"");
    let stage = Stage::start(&script).await?;
    stage.server.add_answers_for("ALPHA", FIRST);
    Some(stage)
}

/// Begins the task of a stage at a worker; returns when its second request is at the model.
async fn begin(stage: &mut Stage, first: &mut Worker) -> u64 {
    let id = stage.client.prompt(&stage.session, "go").await;
    first.says("begins").await;
    stage.client.wait_for_line("? farm, ALPHA: `echo first").await;
    stage.server.wait_for_requests(3).await;
    stage.server.add_answers_for("ALPHA", SECOND);
    id
}

/// Checks the longest conversation that the model had about the task, without what the environment adds.
fn check_conversation(stage: &Stage) {
    let requests = stage.server.requests();
    let messages = |request: &serde_json::Value| -> Vec<String> {
        let messages = request["messages"].as_array().into_iter().flatten();
        let shown = messages.filter(|message| message["role"] != "system").map(|message| {
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            let calls: String = calls.map(|call| format!(" {}", call["function"]["arguments"])).collect();
            let text = message["content"].as_str().unwrap_or_default().replace('\n', " ");
            format!("{}: {text}{calls}\n", message["role"].as_str().unwrap_or_default())
        });
        shown.filter(|line| !line.contains("<environment>")).collect()
    };
    let of_task = requests.iter().filter(|request| request.to_string().contains("ALPHA"));
    let longest =
        of_task.map(messages).filter(|lines| lines.concat().contains("echo first")).max_by_key(Vec::len);
    expect![[r#"
            user: ALPHA
            assistant:  "{\"command\":\"echo first >> log\"}"
            tool: (no output)
            user: The process that worked on this task was stopped, and you go on where it was, in the same directory. Calls that ran at that moment may have had effects: look before you repeat one. Finish the task, and end with its result.
            assistant:  "{\"command\":\"echo second >> log; cat log\"}"
            tool: first second 
        "#]].assert_eq(&longest.expect("the task has a conversation").concat());
    assert_eq!(stage.server.rejections(), Vec::<String>::new());
}

/// Kills the worker of a task, with which the second one goes on.
async fn check_takeover(stage: &mut Stage, id: u64, first: Worker, mut second: Worker) {
    first.signal(Signal::SIGKILL);
    second.says("goes on, delivery 2").await;
    stage.client.wait_for_line("The worker w1 no longer has the task; w2 goes on with it.").await;
    assert_eq!(stage.end_of(id).await, "end_turn");
    second.says("done").await;
    check_conversation(stage);
}

#[test]
fn next_worker_goes_on_with_the_conversation_in_the_same_directory() {
    run(async {
        let Some(mut stage) = start("").await else { return };
        let mut first = stage.worker("w1", &["--mode", "auto"]);
        let id = begin(&mut stage, &mut first).await;
        let mut second = stage.worker("w2", &["--mode", "auto"]);
        second.says("worker").await;
        check_takeover(&mut stage, id, first, second).await;
        let tasks = stage.worker_home.home().join(".local/state/crow/worker");
        let left = ["tasks", "conversations"]
            .map(|name| std::fs::read_dir(tasks.join(name)).expect("it can be read").count());
        assert_eq!(left, [0, 0], "nothing is left of a task that has ended");
    });
}

#[test]
fn task_that_was_given_back_goes_on_in_its_worktree() {
    run(async {
        let Some(mut stage) = start(",\"worktree\":true").await else { return };
        make_repository(&stage);
        let mut first = stage.worker("w1", &["--mode", "auto", "--drain", "0"]);
        let id = begin(&mut stage, &mut first).await;
        first.signal(Signal::SIGTERM);
        first.says("given back").await;
        assert_eq!(first.exit().await, Some(0));
        let mut second = stage.worker("w2", &["--mode", "auto"]);
        second.says("goes on").await;
        assert_eq!(stage.end_of(id).await, "end_turn");
        second.says("done").await;
        let branch = format!("crow/{}:log", stage.task());
        assert_eq!(git(&stage.world.project(), &format!("show {branch}")), "first\nsecond\n");
    });
}

#[test]
fn task_begins_again_where_its_conversation_is_not() {
    run(async {
        let Some(mut stage) = start("").await else { return };
        let other = TestHome::new(stage.server.base_url());
        let shared = stage.worker_home.home().join("shared");
        let shared = ["--mode", "auto", "--workspaces", shared.to_str().expect("it is UTF-8")];
        let mut first = stage.worker("w1", &shared);
        let id = begin(&mut stage, &mut first).await;
        let mut second = stage.worker_of(&other, "w2", &shared);
        second.says("worker").await;
        first.signal(Signal::SIGKILL);
        second.says("goes on").await;
        second.says("could not go on: session not found; given back, to begin again").await;
        second.says("begins again").await;
        assert_eq!(stage.end_of(id).await, "end_turn");
        second.says("done").await;
    });
}

#[test]
fn worker_of_another_machine_goes_on_with_a_session_in_postgresql() {
    #[expect(clippy::disallowed_methods, reason = "says whether a server is here")]
    let Ok(uri) = std::env::var("CROW_TEST_POSTGRES") else { return };
    run(async {
        let Some(mut stage) = start("").await else { return };
        let other = TestHome::new(stage.server.base_url());
        for home in [&stage.worker_home, &other] {
            home.add_config(&format!("db_uri: \"{uri}\""));
        }
        let shared = stage.worker_home.home().join("shared");
        let shared = ["--mode", "auto", "--workspaces", shared.to_str().expect("it is UTF-8")];
        let mut first = stage.worker("w1", &shared);
        let id = begin(&mut stage, &mut first).await;
        let mut second = stage.worker_of(&other, "w2", &shared);
        second.says("worker").await;
        check_takeover(&mut stage, id, first, second).await;
    });
}
