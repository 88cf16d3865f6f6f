//! Tasks of workers that are gone: others go on with their conversations.

use crow_testkit::client::TestHome;
use expect_test::expect;
use nix::sys::signal::Signal;

use super::worktrees::{git, make_repository};
use super::{Stage, Worker, run};

/// A task whose first call leaves a line in its directory.
const FIRST: &str = "call terminal {\"command\":\"echo first >> log\"}\nhold";

const SECOND: &str = "call terminal {\"command\":\"echo second >> log; cat log\"}\ntext \"Both.\"";

async fn start(task: &str, first: &str) -> Option<Stage> {
    let script = format!("call task {{\"prompt\":\"ALPHA\",\"agent\":\"farm\"{task}}}\ntext \"It is done.\"");
    let stage = Stage::start(&script).await?;
    stage.server.add_answers_for("ALPHA", first);
    Some(stage)
}

/// Begins the task of a stage at a worker; returns when its second request is at the model.
async fn begin(stage: &mut Stage, first: &mut Worker, second: &str) -> u64 {
    let id = stage.client.prompt(&stage.session, "go").await;
    first.says("begins").await;
    stage.client.wait_for_line("? farm, ALPHA: `echo first").await;
    stage.server.wait_for_requests(3).await;
    stage.server.add_answers_for("ALPHA", second);
    id
}

/// The longest conversation that the model had about the task, without what the environment adds.
fn longest_conversation(stage: &Stage) -> String {
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
    longest.expect("the task has a conversation").concat()
}

/// Stops a worker without time to drain, which gives its task back.
async fn give_back(mut worker: Worker) {
    worker.signal(Signal::SIGTERM);
    worker.says("given back").await;
    assert_eq!(worker.exit().await, Some(0));
}

/// Kills the worker of a task, with which the second one goes on.
async fn check_takeover(stage: &mut Stage, id: u64, first: Worker, mut second: Worker) {
    first.signal(Signal::SIGKILL);
    second.says("goes on, delivery 2").await;
    stage.client.wait_for_line("The worker w1 no longer has the task; w2 goes on with it.").await;
    assert_eq!(stage.end_of(id).await, "end_turn");
    second.says("done").await;
    expect![[r#"
            user: ALPHA
            assistant:  "{\"command\":\"echo first >> log\"}"
            tool: (no output)
            user: The process that worked on this task was stopped, and you go on where it was, in the same directory. Calls that ran at that moment may have had effects: look before you repeat one. Finish the task, and end with its result.
            assistant:  "{\"command\":\"echo second >> log; cat log\"}"
            tool: first second 
        "#]].assert_eq(&longest_conversation(stage));
    assert_eq!(stage.server.rejections(), Vec::<String>::new());
}

#[test]
fn next_worker_goes_on_with_the_conversation_in_the_same_directory() {
    run(async {
        let Some(mut stage) = start("", FIRST).await else { return };
        let mut first = stage.worker("w1", &["--mode", "auto"]);
        let id = begin(&mut stage, &mut first, SECOND).await;
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
        let Some(mut stage) = start(",\"worktree\":true", FIRST).await else { return };
        make_repository(&stage);
        let mut first = stage.worker("w1", &["--mode", "auto", "--drain", "0"]);
        let id = begin(&mut stage, &mut first, SECOND).await;
        give_back(first).await;
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
        let Some(mut stage) = start("", FIRST).await else { return };
        let other = TestHome::new(stage.server.base_url());
        let shared = stage.worker_home.home().join("shared");
        let shared = ["--mode", "auto", "--workspaces", shared.to_str().expect("it is UTF-8")];
        let mut first = stage.worker("w1", &shared);
        let id = begin(&mut stage, &mut first, SECOND).await;
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

/// Starts a task whose sessions are in PostgreSQL, and returns the home of another machine; `None` where there is no server.
async fn start_with_postgresql(task: &str, first: &str) -> Option<(Stage, TestHome)> {
    #[expect(clippy::disallowed_methods, reason = "says whether a server is here")]
    let uri = std::env::var("CROW_TEST_POSTGRES").ok()?;
    let stage = start(task, first).await?;
    let other = TestHome::new(stage.server.base_url());
    for home in [&stage.worker_home, &other] {
        home.add_config(&format!("db_uri: \"{uri}\""));
    }
    Some((stage, other))
}

/// Counts the entries of the directories of a machine's tasks.
fn count_left(home: &TestHome) -> [usize; 2] {
    let worker = home.home().join(".local/state/crow/worker");
    ["tasks", "conversations"]
        .map(|name| std::fs::read_dir(worker.join(name)).map_or(0, |entries| entries.count()))
}

#[test]
fn worker_of_another_machine_goes_on_in_a_shared_directory() {
    run(async {
        let Some((mut stage, other)) = start_with_postgresql("", FIRST).await else { return };
        let shared = stage.worker_home.home().join("shared");
        let shared = ["--mode", "auto", "--workspaces", shared.to_str().expect("it is UTF-8")];
        let mut first = stage.worker("w1", &shared);
        let id = begin(&mut stage, &mut first, SECOND).await;
        let mut second = stage.worker_of(&other, "w2", &shared);
        second.says("worker").await;
        check_takeover(&mut stage, id, first, second).await;
    });
}

#[test]
fn worker_of_another_machine_goes_on_with_the_files_that_were_saved() {
    run(async {
        let Some((mut stage, other)) = start_with_postgresql("", FIRST).await else { return };
        let mut saved = stage.nats.listen("crow.result.>");
        let mut first = stage.worker("w1", &["--mode", "auto"]);
        let second = "call terminal {\"command\":\"echo second >> log; cat log; head -c 20000 /dev/urandom > noise\"}\n\
                      hold | text \"Both.\"";
        let id = begin(&mut stage, &mut first, second).await;
        saved.wait_for(".saved").await;
        let mut second = stage.worker_of(&other, "w2", &["--mode", "auto"]);
        second.says("worker").await;
        let mut saved_again = stage.nats.listen("crow.result.*.w2.>");
        first.signal(Signal::SIGKILL);
        second.says("goes on, delivery 2").await;
        stage.client.wait_for_line("The worker w1 no longer has the task; w2 goes on with it.").await;
        stage.client.wait_for_line("? farm, ALPHA: `echo second").await;
        saved_again.wait_for(".saved").await;
        stage.server.release();
        assert_eq!(stage.end_of(id).await, "end_turn");
        second.says("done").await;
        let shown = longest_conversation(&stage).replace(&other.home().display().to_string(), "$OTHER");
        let name = shown.split_once("/tasks/").and_then(|(_, rest)| rest.split_once("/work"));
        let conversation = shown.replace(name.expect("it has the new directory").0, "$NAME");
        expect![[r#"
            user: ALPHA
            assistant:  "{\"command\":\"echo first >> log\"}"
            tool: (no output)
            user: The machine that worked on this task was lost, and you go on on another one. Your working directory is $OTHER/.local/state/crow/worker/tasks/$NAME/work. Its files are as they were after one of your last calls; files that git ignores, and all that was outside of it, are not here. Look before you rely on a file or repeat a call. Finish the task, and end with its result.
            assistant:  "{\"command\":\"echo second >> log; cat log; head -c 20000 /dev/urandom > noise\"}"
            tool: first second 
        "#]].assert_eq(&conversation);
        assert_eq!(stage.server.rejections(), Vec::<String>::new());
        assert_eq!(count_left(&other), [0, 0], "nothing is left of a task that has ended");
        let bytes = stage.nats.stream_bytes("CROW_CODE");
        assert!(bytes < 8000, "the second worker has not emptied what it saved: {bytes} bytes");
    });
}

#[test]
fn task_that_was_given_back_goes_on_elsewhere_in_its_worktree() {
    run(async {
        let Some((mut stage, other)) = start_with_postgresql(",\"worktree\":true", FIRST).await else {
            return;
        };
        make_repository(&stage);
        let mut first = stage.worker("w1", &["--mode", "auto", "--drain", "0"]);
        let id = begin(&mut stage, &mut first, SECOND).await;
        // Its files are saved at the latest before it is given back.
        give_back(first).await;
        let mut second = stage.worker_of(&other, "w2", &["--mode", "auto"]);
        second.says("goes on").await;
        assert_eq!(stage.end_of(id).await, "end_turn");
        second.says("done").await;
        let branch = format!("crow/{}", stage.task());
        assert_eq!(git(&stage.world.project(), &format!("show {branch}:log")), "first\nsecond\n");
        assert_eq!(git(&stage.world.project(), &format!("log --format=%s {branch}")).lines().count(), 2);
    });
}

#[test]
fn task_whose_files_cannot_be_saved_begins_again_elsewhere() {
    run(async {
        let inner = "call terminal {\"command\":\"mkdir inner; cd inner; git init -q\"}\nhold";
        let Some((mut stage, other)) = start_with_postgresql("", inner).await else { return };
        let mut saved = stage.nats.listen("crow.result.>");
        let mut first = stage.worker("w1", &["--mode", "auto"]);
        let id = stage.client.prompt(&stage.session, "go").await;
        first.says("begins").await;
        stage.client.wait_for_line("? farm, ALPHA: `mkdir inner").await;
        saved.wait_for(".saved").await;
        let mut second = stage.worker_of(&other, "w2", &["--mode", "auto"]);
        second.says("worker").await;
        stage.server.add_answers_for("ALPHA", SECOND);
        first.signal(Signal::SIGKILL);
        second.says("begins again").await;
        assert_eq!(stage.end_of(id).await, "end_turn");
        second.says("done").await;
    });
}
