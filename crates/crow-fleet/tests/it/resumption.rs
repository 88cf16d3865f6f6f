//! Parents that are killed, and others that take up their tasks.

use std::sync::Arc;

use crow_fleet::FarmConnections;
use expect_test::expect;

use super::access::{RIGHTS, farm, password};
use super::doomed_parent::{DoomedParent, TestKeeper};
use super::world::{RunningTask, World, run, soon};

/// The streams of tasks and of records.
const STREAMS: [&str; 2] = ["CROW_TASKS", "CROW_RECORDS"];

/// Takes up a task whose server can be reached.
async fn resume(world: &World, place: &str) -> RunningTask {
    RunningTask::resume(&world.farms, world.address(), place, stored_keeper()).await.0
}

/// A keeper for tests in which it does not matter when the end is stored.
fn stored_keeper() -> Arc<TestKeeper> {
    let (keeper, stored) = TestKeeper::of_kept_place();
    stored.cancel();
    Arc::new(keeper)
}

/// Waits until the server has nothing more of the task that ended.
pub(crate) async fn wait_until_forgotten(world: &World) {
    let forgotten = async {
        while STREAMS.iter().any(|stream| world.server.stream_len(stream) > 0) {
            tokio::task::yield_now().await;
        }
    };
    soon("the server forgets the task", forgotten).await;
}

/// Waits until the queue has a task.
pub(crate) async fn wait_until_published(world: &World) {
    let published = async {
        while world.server.stream_len(STREAMS[0]) == 0 {
            tokio::task::yield_now().await;
        }
    };
    soon("it is published", published).await;
}

#[test]
fn end_without_a_parent_is_told_to_the_next_one() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let gate = world.path("gate");
        let mut worker = world.start_worker(&[&format!("slow={}", gate.display()), "reports=done"]).await;
        let parent = DoomedParent::start(world.farm(), "count", "echo: count").await;
        assert_eq!(worker.taken().await, 1);
        let place = parent.kill().await;
        std::fs::write(&gate, "").expect("the gate opens");
        assert_eq!(worker.ended().await, "done");
        expect![[r#"

            notice: Updates were missed; this is the end of the answer:
            It is over.
            Ok(EndTurn)
        "#]]
        .assert_eq(&resume(&world, &place).await.end(None).await);
        wait_until_forgotten(&world).await;
        worker.drain().await;
    });
}

#[test]
fn end_that_was_not_stored_is_told_to_the_next_parent() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let worker = world.start_worker(&["slow=/"]).await;
        let place = DoomedParent::start(world.farm(), "count", "echo: count").await.kill().await;
        let (keeper, _never) = TestKeeper::of_kept_place();
        let farms = FarmConnections::default();
        let (task, _) = RunningTask::resume(&farms, world.address(), &place, Arc::new(keeper)).await;
        assert!(task.end(None).await.ends_with("\nOk(EndTurn)\n"));
        // Its driver does not end within this time: it waits until the end is stored.
        farms.close().await;
        assert!(resume(&world, &place).await.end(None).await.ends_with("\nOk(EndTurn)\n"));
        wait_until_forgotten(&world).await;
        worker.drain().await;
    });
}

#[test]
fn question_is_asked_again_by_the_next_parent() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let mut worker = world.start_worker(&["asks"]).await;
        let place = DoomedParent::start(world.farm(), "count", "question: rm -rf build").await.kill().await;
        expect![[r#"

            question: rm -rf build
            ; session/request_permission: {"outcome":{"outcome":"selected","optionId":"allow_once"}}
            Ok(EndTurn)
        "#]]
        .assert_eq(&resume(&world, &place).await.end(Some("allow_once")).await);
        assert_eq!((worker.taken().await, worker.ended().await), (1, "done".to_owned()));
        wait_until_forgotten(&world).await;
        worker.drain().await;
    });
}

#[test]
fn running_task_is_cancelled_by_the_next_parent() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let mut worker = world.start_worker(&["flood"]).await;
        let place = DoomedParent::start(world.farm(), "count", "and so on").await.kill().await;
        let mut task = resume(&world, &place).await;
        task.until("and so on", None).await;
        task.cancel();
        assert!(task.end(None).await.ends_with("\nOk(Cancelled)\n"));
        assert_eq!((worker.taken().await, worker.ended().await), (1, "cancelled".to_owned()));
        worker.drain().await;
    });
}

#[test]
fn message_that_was_never_published_is_published_by_the_next_parent() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let mut worker = world.start_worker(&[]).await;
        let place = DoomedParent::start_stuck(world.farm(), "count").await.kill().await;
        assert_eq!(world.server.stream_len(STREAMS[0]), 0);
        expect![[r#"
            echo: count
            Ok(EndTurn)
        "#]]
        .assert_eq(&resume(&world, &place).await.end(None).await);
        assert_eq!((worker.taken().await, worker.ended().await), (1, "done".to_owned()));
        wait_until_forgotten(&world).await;
        worker.drain().await;
    });
}

#[test]
fn server_that_is_away_is_waited_for() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let mut worker = world.start_worker(&["slow=/"]).await;
        let place = DoomedParent::start(world.farm(), "count", "echo: count").await.kill().await;
        assert_eq!((worker.taken().await, worker.ended().await), (1, "done".to_owned()));
        world.server.kill();
        let (task, unreachable) =
            RunningTask::resume(&world.farms, world.address(), &place, stored_keeper()).await;
        let reason = soon("it is reported", unreachable).await.expect("there is a reason");
        expect!["IO error: Connection refused (os error 111)"].assert_eq(&reason);
        world.server.resume();
        assert!(task.end(None).await.ends_with("\nOk(EndTurn)\n"));
        wait_until_forgotten(&world).await;
        worker.drain().await;
    });
}

#[test]
fn waiting_task_is_cancelled_while_its_server_is_away() {
    run(async {
        let users = format!("authorization {{ users: [{RIGHTS}] }}\nno_auth_user: admin");
        let Some(mut world) = World::start_with(&users) else { return };
        world.start_worker(&[]).await.drain().await;
        let farm = farm(&world, password("me", "m"));
        let parent = DoomedParent::start_unseen(farm.clone(), "never").await;
        wait_until_published(&world).await;
        let place = parent.kill().await;
        world.server.kill();
        let (task, unreachable) =
            RunningTask::resume(&world.farms, farm.server, &place, stored_keeper()).await;
        soon("it is reported", unreachable).await.expect("there is a reason");
        task.cancel();
        expect![[r#"

            Ok(Cancelled)
        "#]]
        .assert_eq(&task.end(None).await);
        world.server.resume();
        wait_until_forgotten(&world).await;
    });
}

#[test]
fn task_of_long_ago_fails_if_nothing_of_it_is_there() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let mut worker = world.start_worker(&[]).await;
        let place = DoomedParent::start_stuck(world.farm(), "count").await.kill().await;
        let mut place: serde_json::Value = serde_json::from_str(&place).expect("it is JSON");
        place["given_at"] = 0.into();
        expect![[r#"

            Err("its end is no longer kept: a server keeps ends for seven days")
        "#]]
        .assert_eq(&resume(&world, &place.to_string()).await.end(None).await);
        assert!(world.start_task("second").await.end(None).await.contains("echo: second"));
        assert_eq!((worker.taken().await, worker.ended().await), (1, "done".to_owned()));
        worker.drain().await;
    });
}

#[test]
fn task_whose_place_is_not_kept_never_runs() {
    run(async {
        let Some(mut world) = World::start() else { return };
        world.start_worker(&[]).await.drain().await;
        let (farms, keeper) = (FarmConnections::default(), TestKeeper::full());
        let task = RunningTask::start_kept(&farms, &world.farm(), "count", Some(Arc::new(keeper))).await;
        expect![[r#"

            Err("its place could not be stored: no space")
        "#]]
        .assert_eq(&task.expect("the server is reached").end(None).await);
        farms.close().await;
        assert_eq!(world.server.stream_len(STREAMS[0]), 0);
    });
}
