//! The code of a task on a worker: what its user finds in the repository afterwards.

use std::path::Path;
use std::process::{Command, Stdio};

use crow_testkit::client::task_names;
use expect_test::expect;

use super::{PATIENCE, Stage, binary, run};

const TASK: &str =
    "call task {\"prompt\":\"ALPHA\",\"agent\":\"farm\",\"worktree\":true}\ntext \"It is done.\"";

pub(super) fn git(dir: &Path, line: &str) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=user", "-c", "user.email=user@localhost"]).args(line.split(' '));
    let output = command.current_dir(dir).output().expect("git runs");
    assert!(output.status.success(), "git {line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text")
}

/// Makes the project of a stage a repository with a commit.
pub(super) fn make_repository(stage: &Stage) {
    let project = stage.world.project();
    std::fs::write(project.join("greeting.txt"), "hello\n").expect("it can be written");
    for line in ["init -q -b main", "add greeting.txt", "commit -q -m first"] {
        git(&project, line);
    }
}

/// References, files and worktrees of the project.
fn show_repository(stage: &Stage) -> String {
    let project = stage.world.project();
    let shown =
        ["for-each-ref --format=%(refname)", "status --porcelain --branch", "worktree list --porcelain"];
    let shown: String = shown.map(|line| git(&project, line)).concat();
    task_names::mask_task_names(&shown.replace(&project.display().to_string(), "$PROJECT"))
}

#[test]
fn tasks_of_a_batch_work_in_worktrees_on_a_worker() {
    run(async {
        let Some(stage) = Stage::start("").await else { return };
        make_repository(&stage);
        let before = show_repository(&stage);
        let mut worker = stage.worker("w1", &["--mode", "auto", "--slots", "2"]);
        worker.says("worker").await;
        for word in ["ALPHA", "BETA"] {
            let write =
                format!("call write {{\"file_path\":\"{word}\",\"content\":\"made\\n\"}}\ntext \"Made.\"");
            stage.server.add_answers_for(word, write.as_str());
        }
        stage.server.add_answers_for("GAMMA", "text \"Nothing.\"");
        let tasks: String = ["ALPHA", "BETA", "GAMMA"]
            .map(|word| format!("{{\"id\":\"{word}\",\"prompt\":\"{word}\",\"worktree\":true}}\n"))
            .concat();
        let (project, home) = (stage.world.project(), stage.world.home());
        std::fs::write(home.join("tasks.jsonl"), tasks).expect("it can be written");
        let mut command = tokio::process::Command::new(binary());
        command.args(["batch", "../tasks.jsonl", "--agent", "farm", "--mode", "auto"]);
        command.env("HOME", &home).current_dir(&project).stdin(Stdio::null());
        let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("it ends in time");
        let output = output.expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let results = std::fs::read_to_string(home.join("tasks.results.jsonl")).expect("it is written");
        let mut changes: Vec<String> = results
            .lines()
            .map(|line| {
                let result: serde_json::Value = serde_json::from_str(line).expect("each line is an object");
                let id = result["id"].as_str().unwrap_or_default();
                let Some(branch) = result["branch"].as_str() else { return format!("{id}: no branch") };
                assert!(branch.starts_with(&format!("crow/{}-", id.to_lowercase())), "{branch}");
                let change = git(&project, &format!("diff --name-status main {branch}"));
                git(&project, &format!("branch -D {branch}"));
                format!("{id}: {}", change.trim())
            })
            .collect();
        changes.sort();
        assert_eq!(changes, ["ALPHA: A\tALPHA", "BETA: A\tBETA", "GAMMA: no branch"]);
        assert_eq!(show_repository(&stage), before);
    });
}

#[test]
fn task_with_a_worktree_on_a_worker_leaves_its_branch_and_nothing_else() {
    run(async {
        let Some(mut stage) = Stage::start(TASK).await else { return };
        make_repository(&stage);
        let before = show_repository(&stage);
        let mut worker = stage.worker("w1", &["--mode", "auto"]);
        worker.says("worker").await;
        let write = "call write {\"file_path\":\"made.txt\",\"content\":\"made\\n\"}\ntext \"Made.\"";
        stage.server.add_answers_for("ALPHA", write);
        assert_eq!(stage.say("go").await, "end_turn");
        worker.says("done").await;
        expect![[r#"
            Task $TASK (farm, ALPHA) is done.

            Made.

            Its work is on the branch crow/$TASK: look at it with `git diff HEAD...crow/$TASK`, take it over with `git merge crow/$TASK`.
             made.txt | 1 +
             1 file changed, 1 insertion(+)

            The whole of it: query_session with session_id $TASK. It has one turn; for more start a new task.
        "#]].assert_eq(&stage.told("go"));
        let branch = format!("crow/{}", stage.task());
        let project = stage.world.project();
        assert_eq!(git(&project, &format!("log --format=%s {branch}")).lines().count(), 2);
        assert_eq!(git(&project, &format!("diff --name-status main {branch}")), "A\tmade.txt\n");
        assert_eq!(git(&project, &format!("show {branch}:made.txt")), "made\n");
        git(&project, &format!("branch -D {branch}"));
        assert_eq!(show_repository(&stage), before);
        let count_entries = |name: &str| {
            let directory = stage.worker_home.home().join(".local/state/crow/worker").join(name);
            std::fs::read_dir(directory).expect("it was made").count()
        };
        let left = ["tasks", "conversations", "repositories"].map(count_entries);
        assert_eq!(left, [0, 0, 1], "the history is kept for later tasks");
    });
}

#[test]
fn task_with_a_worktree_outside_of_a_repository_is_not_sent() {
    run(async {
        let Some(mut stage) = Stage::start(TASK).await else { return };
        let mut worker = stage.worker("w1", &[]);
        worker.says("worker").await;
        assert_eq!(stage.say("go").await, "end_turn");
        let project = stage.world.project().display().to_string();
        expect!["could not send the code to farm: $PROJECT is not in a git repository"]
            .assert_eq(&stage.told("go").replace(&project, "$PROJECT"));
    });
}

#[test]
fn worker_without_git_says_so() {
    run(async {
        let Some(mut stage) = Stage::start(TASK).await else { return };
        make_repository(&stage);
        let empty = stage.world.project().join("bin");
        std::fs::create_dir(&empty).expect("it can be made");
        let mut worker = stage.worker_with_path("w1", &[], empty.as_os_str());
        worker.says("worker").await;
        assert_eq!(stage.say("go").await, "end_turn");
        expect![[r#"
            Task $TASK (farm, ALPHA) failed: the worker could not check out the code: git is not installed; install it, or work without a worktree.

            It said nothing.

            It worked in a git worktree of its own and changed nothing.

            The whole of it: query_session with session_id $TASK. It has one turn; for more start a new task.
        "#]].assert_eq(&stage.told("go"));
    });
}
