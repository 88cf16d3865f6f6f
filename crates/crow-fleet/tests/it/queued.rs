//! Tasks that wait in a queue without a client.

use crow_core::Mode;
use crow_fleet::{FarmTask, QueuedFarmTask};
use expect_test::expect;

use super::resumption::{wait_until_forgotten, wait_until_published};
use super::world::{RunningTask, World, run, soon};

/// Makes a task for the queue.
async fn prepare(world: &World, prompt: &str) -> QueuedFarmTask {
    let task = FarmTask { mode: Mode::Ask, depth: 1, version: "0", keeper: None, code: None };
    let farm = world.farm();
    let prepared = world.farms.prepare_task(&farm, &task, prompt.to_owned(), None).await;
    prepared.expect("the server is reached")
}

#[test]
fn client_comes_when_a_worker_has_begun() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let mut worker = world.start_worker(&["asks"]).await;
        let mut queued = prepare(&world, "count").await;
        soon("it begins", queued.wait()).await.expect("the queue takes it");
        expect![[r#"
            echo: count
            question: rm -rf build
            ; session/request_permission: {"outcome":{"outcome":"selected","optionId":"allow_once"}}
            Ok(EndTurn)
        "#]]
        .assert_eq(&RunningTask::open(queued).await.end(Some("allow_once")).await);
        assert_eq!((worker.taken().await, worker.ended().await), (1, "done".to_owned()));
        wait_until_forgotten(&world).await;
        worker.drain().await;
    });
}

#[test]
fn end_before_the_client_comes_is_told() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let mut worker = world.start_worker(&[]).await;
        let mut queued = prepare(&world, "count").await;
        soon("it begins", queued.wait()).await.expect("the queue takes it");
        assert_eq!((worker.taken().await, worker.ended().await), (1, "done".to_owned()));
        expect![[r#"

            notice: Updates were missed; this is the end of the answer:
            echo: count
            Ok(EndTurn)
        "#]]
        .assert_eq(&RunningTask::open(queued).await.end(None).await);
        wait_until_forgotten(&world).await;
        worker.drain().await;
    });
}

#[test]
fn withdrawn_task_never_runs() {
    run(async {
        let Some(mut world) = World::start() else { return };
        world.start_worker(&[]).await.drain().await;
        let mut queued = prepare(&world, "never").await;
        tokio::select! {
            begun = queued.wait() => panic!("{begun:?}"),
            () = wait_until_published(&world) => {}
        }
        queued.withdraw();
        world.farms.close().await;
        assert_eq!(world.server.stream_len("CROW_TASKS"), 0);
    });
}

#[test]
fn queue_that_no_worker_made_is_named() {
    run(async {
        let Some(world) = World::start() else { return };
        let refused = prepare(&world, "never").await.wait().await;
        expect!["the server has no queues yet: start a worker of build, which makes them"]
            .assert_eq(&refused.expect_err("there is no stream"));
    });
}
