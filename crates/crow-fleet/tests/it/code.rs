//! The code of tasks: to the worker, and back as a bundle that the parent has not looked at.
#![expect(clippy::disallowed_methods, reason = "the tests use git as a user does")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crow_core::FarmAddress;
use crow_fleet::{CodeRequest, FarmConnections, FetchedCode, SentCode};
use crow_tools::{BranchImport, GitCli};
use expect_test::expect;
use tokio_util::sync::CancellationToken;

use super::world::{RunningTask, World, run};

const NAME: &str = "quiet-otter";

/// Bytes of a file that makes a bundle of several chunks.
const LARGE_FILE_BYTES: usize = 700_000;

fn git(dir: &Path, line: &str) -> String {
    let mut command = Command::new("git");
    command.args(line.split(' ')).current_dir(dir);
    for (name, value) in [("NAME", "user"), ("EMAIL", "user@localhost")] {
        command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "git {line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text")
}

/// Bytes that cannot be compressed.
fn noise(n_bytes: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    };
    (0..n_bytes).map(|_| next()).collect()
}

/// Makes a repository with a file in a directory.
pub(crate) fn make_repository<S>(world: &World<S>) -> PathBuf {
    let repository = world.path("repository");
    fs::create_dir_all(repository.join("part")).expect("it can be made");
    fs::write(repository.join("part/a.txt"), "one\n").expect("it can be written");
    fs::write(repository.join("large"), noise(LARGE_FILE_BYTES)).expect("it can be written");
    for line in ["init -q -b main", "add .", "commit -q -m first"] {
        git(&repository, line);
    }
    repository
}

/// Sends the code that a directory is at.
pub(crate) async fn send_code(
    farms: &FarmConnections,
    farm: &FarmAddress,
    directory: &Path,
    world: &World,
) -> Result<SentCode, String> {
    let (git, scratch_dir) = (GitCli::standalone(), world.path("scratch"));
    let request = CodeRequest { git: &git, directory, scratch_dir: &scratch_dir, name: NAME };
    farms.send_code(farm, request, &CancellationToken::new()).await
}

async fn send(world: &World, directory: &Path) -> Result<SentCode, String> {
    send_code(&world.farms, &world.farm(), directory, world).await
}

/// Begins a task with code, whose agent waits until the gate is open.
async fn start(world: &World, code: &SentCode) -> RunningTask {
    let task = RunningTask::start_with_code(&world.farms, &world.farm(), code.clone()).await;
    task.expect("the server is reached")
}

/// The worktree in which the agent of a task says that it works.
pub(crate) fn worktree(task: &RunningTask) -> PathBuf {
    let (_, directory) = task.log.rsplit_once("works in ").expect("the agent says where");
    let root = Path::new(directory.lines().next().unwrap_or_default());
    let root = root.ancestors().find(|ancestor| ancestor.ends_with(NAME)).expect("it is a worktree");
    // Without a slash at the end.
    root.components().collect()
}

/// Takes what came back.
async fn take(world: &World, code: &SentCode, fetched: &FetchedCode) -> String {
    let import = BranchImport {
        repository: &code.head.repository,
        base: &code.head.commit,
        name: NAME,
        bundle: &fetched.bundle,
        quarantine: &world.path("quarantine"),
    };
    let settled = GitCli::standalone().import_branch(import, &CancellationToken::new()).await;
    settled.expect("it is taken").stat.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

pub(crate) fn slow(world: &World) -> String {
    format!("slow={}", world.path("gate").display())
}

pub(crate) fn open_gate(world: &World) {
    fs::write(world.path("gate"), "").expect("the gate opens");
}

#[test]
fn code_travels_to_the_worker_and_its_changes_back() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let mut worker = world.start_worker(&["where", &slow(&world)]).await;
        let repository = make_repository(&world);
        fs::write(repository.join("uncommitted"), "not sent").expect("it can be written");
        let code = send(&world, &repository.join("part")).await.expect("it is sent");
        assert_eq!(code.head.n_uncommitted, 1);
        let mut task = start(&world, &code).await;
        task.until("works in", None).await;
        assert_eq!(worker.taken().await, 1);
        let dir = worktree(&task);
        assert!(task.log.contains(&format!("works in {}", dir.join("part").display())), "{}", task.log);
        assert!(!dir.join("uncommitted").exists());
        assert_eq!(fs::read(dir.join("large")).expect("it is there"), noise(LARGE_FILE_BYTES));
        fs::write(dir.join("part/a.txt"), "one\ntwo\n").expect("it can be written");
        open_gate(&world);
        assert!(task.end(None).await.ends_with("Ok(EndTurn)\n"));
        let fetched = world.farms.fetch_code(&code).await.expect("it came back").expect("there are changes");
        expect![[r#"
             part/a.txt | 1 +
             1 file changed, 1 insertion(+)"#]]
        .assert_eq(&take(&world, &code, &fetched).await);
        assert_eq!(git(&repository, "show crow/quiet-otter:part/a.txt"), "one\ntwo\n");
        assert!(fetched.bundle.len() < 4096, "it has only what is new");
        fetched.delete().await;
        world.farms.close().await;
        worker.drain().await;
        assert_eq!(world.server.stream_len("CROW_CODE"), 0);
        assert_eq!(fs::read_dir(world.path("workspaces/tasks")).expect("it was made").count(), 0);
        assert_eq!(fs::read_dir(world.path("scratch")).expect("it was made").count(), 0);
    });
}

#[test]
fn code_is_sent_once_and_a_task_may_change_nothing() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let worker = world.start_worker(&[]).await;
        let repository = make_repository(&world);
        let code = send(&world, &repository).await.expect("it is sent");
        let n_messages = world.server.stream_len("CROW_CODE");
        assert!(n_messages > 2, "{n_messages} chunks");
        let again = send(&world, &repository).await.expect("it is sent");
        assert_eq!(world.server.stream_len("CROW_CODE"), n_messages);
        for code in [&code, &again] {
            assert!(start(&world, code).await.end(None).await.ends_with("Ok(EndTurn)\n"));
            assert!(world.farms.fetch_code(code).await.expect("it came back").is_none());
        }
        worker.drain().await;
    });
}

#[test]
fn later_commit_is_sent_as_what_is_new_and_the_history_is_kept_by_the_worker() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let worker = world.start_worker(&[]).await;
        let repository = make_repository(&world);
        let first = send(&world, &repository).await.expect("it is sent");
        assert!(start(&world, &first).await.end(None).await.ends_with("Ok(EndTurn)\n"));
        // The worker has the history, so the server need not.
        let client = async_nats::connect(world.server.url()).await.expect("it connects");
        let stream = async_nats::jetstream::new(client).get_stream("CROW_CODE").await.expect("it exists");
        let n_chunks = stream.cached_info().state.messages;
        stream.purge().await.expect("it is emptied");
        for name in ["second", "third"] {
            fs::write(repository.join(name), name).expect("it can be written");
            git(&repository, "add .");
            git(&repository, &format!("commit -q -m {name}"));
            let code = send(&world, &repository).await.expect("it is sent");
            assert!(start(&world, &code).await.end(None).await.ends_with("Ok(EndTurn)\n"), "{name}");
        }
        assert!(n_chunks > 2);
        assert_eq!(world.server.stream_len("CROW_CODE"), 2, "one chunk for each later commit");
        // A commit from before is sent with its history.
        git(&repository, "checkout -q HEAD~2");
        let earlier = send(&world, &repository).await.expect("it is known");
        assert_eq!(earlier.head.commit, first.head.commit);
        worker.drain().await;
    });
}

#[test]
fn history_that_a_worker_keeps_is_that_of_one_parent() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let worker = world.start_worker(&[]).await;
        let repository = make_repository(&world);
        for name in ["me", "you"] {
            let farm = FarmAddress { parent_name: name.to_owned(), ..world.farm() };
            let code = send_code(&world.farms, &farm, &repository, &world).await.expect("it is sent");
            let task = RunningTask::start_with_code(&world.farms, &farm, code).await;
            let end = task.expect("the server is reached").end(None).await;
            assert!(end.ends_with("Ok(EndTurn)\n"), "{end}");
        }
        let kept = fs::read_dir(world.path("workspaces/repositories")).expect("it was made");
        let mut kept: Vec<_> = kept.map(|entry| entry.expect("it is read").file_name()).collect();
        kept.sort();
        assert_eq!(kept, ["me", "you"]);
        worker.drain().await;
    });
}

#[test]
fn code_of_a_lost_worker_is_checked_out_by_another() {
    run(async {
        let Some(mut world) = World::start() else { return };
        world.ack_wait = std::time::Duration::from_secs(3);
        let slow = slow(&world);
        let first = world.start_worker(&["where", &slow]).await;
        let code = send(&world, &make_repository(&world)).await.expect("it is sent");
        let mut task = start(&world, &code).await;
        task.until("works in", None).await;
        fs::write(worktree(&task).join("half"), "").expect("it can be written");
        first.crash().await;
        task.log.clear();
        let second = world.start_worker(&["where", &slow]).await;
        task.until("works in", None).await;
        fs::write(worktree(&task).join("whole"), "").expect("it can be written");
        open_gate(&world);
        assert!(task.end(None).await.ends_with("Ok(EndTurn)\n"));
        let fetched = world.farms.fetch_code(&code).await.expect("it came back").expect("there are changes");
        expect![[r#"
             whole | 0
             1 file changed, 0 insertions(+), 0 deletions(-)"#]]
        .assert_eq(&take(&world, &code, &fetched).await);
        second.drain().await;
    });
}

#[test]
fn cancelled_task_sends_back_what_it_did() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let mut worker = world.start_worker(&["where", &slow(&world)]).await;
        let code = send(&world, &make_repository(&world)).await.expect("it is sent");
        let mut task = start(&world, &code).await;
        task.until("works in", None).await;
        assert_eq!(worker.taken().await, 1);
        fs::write(worktree(&task).join("half"), "").expect("it can be written");
        task.cancel();
        assert!(task.end(None).await.ends_with("Ok(Cancelled)\n"));
        let fetched = world.farms.fetch_code(&code).await.expect("it came back").expect("there are changes");
        assert!(take(&world, &code, &fetched).await.starts_with("half"));
        assert_eq!(worker.ended().await, "cancelled");
        worker.drain().await;
    });
}

#[test]
fn work_that_could_not_be_committed_stays_on_the_worker() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let worker = world.start_worker(&["where", &slow(&world)]).await;
        let code = send(&world, &make_repository(&world)).await.expect("it is sent");
        let mut task = start(&world, &code).await;
        task.until("works in", None).await;
        let dir = worktree(&task);
        fs::write(dir.join("committed"), "").expect("it can be written");
        git(&dir, "add .");
        git(&dir, "commit -q -m early");
        fs::write(dir.join("uncommitted"), "").expect("it can be written");
        // The commit at the end fails.
        let git_dir = PathBuf::from(git(&dir, "rev-parse --absolute-git-dir").trim_end());
        fs::write(git_dir.join("index.lock"), "").expect("it can be written");
        open_gate(&world);
        assert!(task.end(None).await.ends_with("Ok(EndTurn)\n"));
        let fetched = world.farms.fetch_code(&code).await.expect("it came back").expect("there are changes");
        assert!(take(&world, &code, &fetched).await.starts_with("committed"));
        worker.drain().await;
        let leftover =
            fetched.leftover.expect("the parent is told").replace(&dir.display().to_string(), "$DIR");
        let (place, _) = leftover.split_once(": git").expect("git says why");
        expect!["the worker w1 says: the work is in $DIR"].assert_eq(place);
        assert!(dir.join("uncommitted").exists());
    });
}

#[test]
fn code_that_was_changed_at_the_server_is_not_used() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let worker = world.start_worker(&["where", &slow(&world)]).await;
        let repository = make_repository(&world);
        let code = send(&world, &repository).await.expect("it is sent");
        let mut task = start(&world, &code).await;
        task.until("works in", None).await;
        fs::write(worktree(&task).join("new"), "").expect("it can be written");
        open_gate(&world);
        task.end(None).await;
        let client = async_nats::connect(world.server.url()).await.expect("it connects");
        let jetstream = async_nats::jetstream::new(client);
        let stream = jetstream.get_stream("CROW_CODE").await.expect("it exists");
        let last = stream.cached_info().state.last_sequence;
        for sequence in 1..=last {
            let Ok(message) = stream.direct_get(sequence).await else { continue };
            let mut changed = message.payload.to_vec();
            changed[100] ^= 1;
            let stored = jetstream.publish(message.subject, changed.into()).await.expect("it is sent");
            stored.await.expect("it is stored");
        }
        let reason = world.farms.fetch_code(&code).await.map(drop).expect_err("it is another one");
        expect!["the bundle from the worker w1: it is damaged: its SHA-256 is another one than announced"]
            .assert_eq(&reason);
        let again = send(&world, &repository).await.expect("it is not sent again");
        // What the worker has kept would do.
        fs::remove_dir_all(world.path("workspaces/repositories")).expect("it can be removed");
        expect![[r#"

            Err("the worker could not check out the code: its bundle: it is damaged: its SHA-256 is another one than announced")
        "#]]
        .assert_eq(&start(&world, &again).await.end(None).await);
        assert!(world.farms.fetch_code(&again).await.expect("there is no work").is_none());
        worker.drain().await;
    });
}

#[test]
fn server_without_room_for_code_runs_other_tasks() {
    run(async {
        let directory = tempfile::tempdir().expect("a folder can be made");
        let config = format!("jetstream {{ store_dir: {:?}, max_file_store: 100MB }}", directory.path());
        let Some(mut world) = World::start_with(&config) else { return };
        let worker = world.start_worker(&[]).await;
        let reason = send(&world, &make_repository(&world)).await.map(drop).expect_err("there is no stream");
        expect![
            "the server has no stream CROW_CODE; start a worker as a user who may make it, and see its log"
        ]
        .assert_eq(&reason);
        assert!(world.start_task("count").await.end(None).await.contains("echo: count"));
        worker.drain().await;
    });
}
