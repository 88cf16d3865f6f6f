//! Tasks that were given back, and go on at workers of other machines that have the same sessions.

use std::time::Duration;

use crow_core::NatsServer as ServerAddress;
use crow_fleet::{FarmConnections, TaskBeginning, WorkerOptions};

use super::access::{RIGHTS, farm, password};
use super::code::{make_repository, send_code, worktree};
use super::world::{RunningTask, World, run, start_worker};

/// Starts a server whose users have the rights of the guide, and makes its queue.
async fn start() -> Option<World> {
    let mut world = World::start_with(&format!("authorization {{ users: [{RIGHTS}] }}"))?;
    let mut options = world.worker_options(&[]);
    options.server.credentials = password("admin", "a");
    start_worker(options).await.expect("it connects").drain().await;
    Some(world)
}

/// The options of a worker on a machine of its own.
fn options_of(world: &mut World, name: &str, behaviors: &[&str]) -> WorkerOptions {
    WorkerOptions {
        server: ServerAddress { credentials: password(name, "w"), ..world.address() },
        name: name.to_owned(),
        workspaces_dir: world.path(name),
        shares_sessions: true,
        drain_time_max: Duration::ZERO,
        ..world.worker_options(behaviors)
    }
}

#[test]
fn task_goes_on_elsewhere_with_the_rights_of_the_guide() {
    run(async {
        let Some(mut world) = start().await else { return };
        let never = format!("slow={}", world.path("never").display());
        let options = options_of(&mut world, "w1", &["resumes", "where", &never]);
        let mut first = start_worker(options).await.expect("it connects");
        let (farms, farm) = (FarmConnections::default(), farm(&world, password("me", "m")));
        let code = send_code(&farms, &farm, &make_repository(&world), &world).await.expect("it is sent");
        let mut task =
            RunningTask::start_with_code(&farms, &farm, code).await.expect("the server is reached");
        assert_eq!(first.begun().await, (1, TaskBeginning::First));
        task.until("works in", None).await;
        std::fs::write(worktree(&task).join("made"), "made by the first").expect("it can be written");
        first.stop.cancel();
        assert_eq!(first.ended().await, "given back");
        first.drain().await;
        let options = options_of(&mut world, "w2", &["resumes", "where", &never]);
        let mut second = start_worker(options).await.expect("it connects");
        assert_eq!(second.begun().await, (2, TaskBeginning::Continued));
        task.log.clear();
        task.until("works in", None).await;
        let made = worktree(&task).join("made");
        assert!(made.starts_with(world.path("w2")), "{}", made.display());
        assert_eq!(std::fs::read_to_string(made).expect("it was saved"), "made by the first");
        task.cancel();
        assert_eq!(second.ended().await, "cancelled");
        drop(task.end(None).await);
        second.drain().await;
    });
}

#[test]
fn task_whose_session_is_missing_begins_again_once() {
    run(async {
        let Some(mut world) = start().await else { return };
        let never = format!("slow={}", world.path("never").display());
        let options = options_of(&mut world, "w1", &["resumes", &never]);
        let mut first = start_worker(options).await.expect("it connects");
        let (farms, farm) = (FarmConnections::default(), farm(&world, password("me", "m")));
        let mut task = RunningTask::start(&farms, &farm, "count").await.expect("the server is reached");
        assert_eq!(first.begun().await, (1, TaskBeginning::First));
        task.until("echo: count", None).await;
        first.stop.cancel();
        assert_eq!(first.ended().await, "given back");
        first.drain().await;
        let options = options_of(&mut world, "w2", &["forgets"]);
        let mut second = start_worker(options).await.expect("it connects");
        assert_eq!(second.begun().await, (2, TaskBeginning::Continued));
        assert_eq!(second.ended().await, "could not go on: session not found; given back, to begin again");
        assert_eq!(second.begun().await, (3, TaskBeginning::Again));
        assert_eq!(second.ended().await, "done");
        assert!(task.end(None).await.ends_with("Ok(EndTurn)\n"));
        second.drain().await;
    });
}
