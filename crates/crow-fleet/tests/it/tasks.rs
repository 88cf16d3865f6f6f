//! Parents and workers while nothing breaks.

use std::time::Duration;

use async_nats::StatusCode;
use crow_core::FarmAddress;
use crow_fleet::{FleetObserver, TaskBeginning};
use expect_test::expect;
use futures_util::StreamExt;

use super::holding_proxy::HoldingProxy;
use super::resumption::wait_until_forgotten;
use super::world::{RunningTask, World, run, soon, start_worker};

#[test]
fn task_runs_on_a_worker_in_a_directory_of_its_own() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let mut worker = world.start_worker(&["where", "env=CROW_DEPTH"]).await;
        let task = world.start_task("count").await;
        let log = task.end(None).await;
        let workspaces = world.path("workspaces").display().to_string();
        let log = log.replace(&workspaces, "$WORKSPACES");
        let name =
            log.split_once("$WORKSPACES/tasks/").map(|(_, rest)| rest[..41].to_owned()).expect("it has one");
        expect![[r#"
            echo: count; CROW_DEPTH: 1; started in $WORKSPACES/tasks/TASK/work, works in $WORKSPACES/tasks/TASK/work
            Ok(EndTurn)
        "#]]
        .assert_eq(&log.replace(&name, "TASK"));
        assert_eq!((worker.taken().await, worker.ended().await), (1, "done".to_owned()));
        worker.drain().await;
        let left = std::fs::read_dir(world.path("workspaces/tasks")).expect("it was made").count();
        assert_eq!(left, 0, "the directory of the task is removed");
    });
}

#[test]
fn worker_that_has_waited_takes_a_task_at_once() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let mut worker = world.start_worker(&[]).await;
        let watcher = async_nats::connect(world.server.url()).await.expect("it is reached");
        let mut replies = watcher.subscribe("_INBOX.w1.>").await.expect("it can be watched");
        let heartbeat = async {
            while let Some(message) = replies.next().await {
                if message.status == Some(StatusCode::IDLE_HEARTBEAT) {
                    return;
                }
            }
        };
        soon("the worker is told that it waits", heartbeat).await;
        assert!(world.start_task("count").await.end(None).await.contains("echo: count"));
        assert_eq!(worker.taken().await, 1);
        worker.drain().await;
    });
}

#[test]
fn questions_come_to_the_parent() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let worker = world.start_worker(&["asks"]).await;
        let task = world.start_task("count").await;
        expect![[r#"
            echo: count
            question: rm -rf build
            ; session/request_permission: {"outcome":{"outcome":"selected","optionId":"allow_once"}}
            Ok(EndTurn)
        "#]]
        .assert_eq(&task.end(Some("allow_once")).await);
        worker.drain().await;
    });
}

#[test]
fn running_task_is_cancelled() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let mut worker = world.start_worker(&["flood"]).await;
        let mut task = world.start_task("count").await;
        task.until("and so on and so on", None).await;
        task.cancel();
        let log = task.end(None).await;
        assert!(log.ends_with("\nOk(Cancelled)\n"), "{log}");
        assert_eq!((worker.taken().await, worker.ended().await), (1, "cancelled".to_owned()));
        worker.drain().await;
    });
}

#[test]
fn waiting_task_is_cancelled_and_never_runs() {
    run(async {
        let Some(mut world) = World::start() else { return };
        // The first worker makes the queue and leaves.
        world.start_worker(&[]).await.drain().await;
        let task = world.start_task("never").await;
        assert!(task.steer("faster").await.is_err_and(|reason| reason.contains("waits in its queue")));
        task.cancel();
        expect![[r#"

            Ok(Cancelled)
        "#]]
        .assert_eq(&task.end(None).await);
        world.farms.close().await;
        assert_eq!(world.server.stream_len("CROW_TASKS"), 0);
        let mut worker = world.start_worker(&[]).await;
        let next = world.start_task("second").await.end(None).await;
        assert!(next.contains("echo: second"), "{next}");
        assert_eq!(worker.taken().await, 1);
        assert_eq!(worker.ended().await, "done");
        worker.drain().await;
    });
}

#[test]
fn task_that_is_cancelled_on_its_way_to_a_worker_never_runs() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let proxy = HoldingProxy::start(&world.server.url());
        let mut options = world.worker_options(&[]);
        options.server.urls.clone_from(&proxy.url);
        let mut worker = start_worker(options).await.expect("it connects");
        let on_its_way = proxy.hold("crow.task.build.");
        let task = world.start_task("never").await;
        soon("the server sends it", on_its_way).await.expect("the proxy runs");
        task.cancel();
        task.end(None).await;
        wait_until_forgotten(&world).await;
        proxy.release();
        world.start_task("next").await.end(None).await;
        assert_eq!((worker.taken().await, worker.ended().await), (1, "done".to_owned()));
        worker.stop.cancel();
        assert!(worker.events.recv().await.is_none(), "it has begun a second task");
        worker.drain().await;
    });
}

#[test]
fn worker_takes_as_many_tasks_as_it_has_slots() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let gate = world.path("gate");
        let slow = format!("slow={}", gate.display());
        let mut options = world.worker_options(&[&slow]);
        options.n_slots = 2;
        let mut worker = start_worker(options).await.expect("it connects");
        let first = world.start_task("one").await;
        let second = world.start_task("two").await;
        assert_eq!((worker.taken().await, worker.taken().await), (1, 1));
        let third = world.start_task("three").await;
        std::fs::write(&gate, "").expect("the gate opens");
        for (task, word) in [(first, "one"), (second, "two"), (third, "three")] {
            let log = task.end(None).await;
            assert!(log.contains(&format!("echo: {word}")) && log.ends_with("Ok(EndTurn)\n"), "{log}");
        }
        // The third was taken only after one of the others had ended.
        let first_ended = worker.ended().await;
        assert_eq!(first_ended, "done");
        worker.drain().await;
    });
}

#[test]
fn agent_that_fails_or_exits_fails_its_task_without_another_try() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let worker = world.start_worker(&["dies"]).await;
        expect![[r#"
            echo: 
            Err("the agent exited; its stderr: the wings fell off")
        "#]]
        .assert_eq(&world.start_task("count").await.end(None).await);
        worker.drain().await;
        let worker = world.start_worker(&["fails"]).await;
        expect![[r#"
            echo: count
            Err("no fuel")
        "#]]
        .assert_eq(&world.start_task("count").await.end(None).await);
        worker.drain().await;
        let worker = world.start_worker(&["locked"]).await;
        expect![[r#"

            Err("Authentication required")
        "#]]
        .assert_eq(&world.start_task("count").await.end(None).await);
        worker.drain().await;
    });
}

#[test]
fn queue_without_a_worker_ever_is_named() {
    run(async {
        let Some(world) = World::start() else { return };
        expect![[r#"

            Err("the server has no queues yet: start a worker of build, which makes them")
        "#]]
        .assert_eq(&world.start_task("count").await.end(None).await);
    });
}

#[test]
fn worker_of_two_queues_has_as_many_tasks_as_slots() {
    run(async {
        let Some(mut world) = World::start() else { return };
        // What a worker holds without running it would stay with it.
        world.ack_wait = Duration::from_secs(600);
        let gate = world.path("gate");
        let slow = format!("slow={}", gate.display());
        let mut options = world.worker_options(&[&slow]);
        options.queues.push(world.queue_options("gpu"));
        let mut worker = start_worker(options).await.expect("it connects");
        let start = async |queue: &str| {
            let farm = FarmAddress { queue: queue.to_owned(), ..world.farm() };
            RunningTask::start(&world.farms, &farm, queue).await.expect("the server is reached")
        };
        let mut tasks = vec![start("gpu").await];
        assert_eq!(worker.begun().await.1, TaskBeginning::First);
        for queue in ["build", "gpu", "build"] {
            tasks.push(start(queue).await);
        }
        let observer = FleetObserver::connect(&world.address()).await.expect("it connects");
        let overview = observer.read_overview(None).await.expect("it is read");
        let workers: Vec<_> =
            overview.workers.iter().map(|worker| (&*worker.queue, worker.running)).collect();
        assert_eq!(workers, [("build", 1), ("gpu", 1)], "it is one worker in both queues");
        let mut other = world.start_worker(&[]).await;
        // What was returned to its queue did not begin.
        assert_eq!(other.begun().await.1, TaskBeginning::First);
        assert_eq!(other.ended().await, "done");
        assert_eq!(other.begun().await.1, TaskBeginning::First);
        assert_eq!(other.ended().await, "done");
        std::fs::write(gate, "").expect("the gate opens");
        for task in tasks {
            assert!(task.end(None).await.ends_with("Ok(EndTurn)\n"));
        }
        worker.drain().await;
        other.drain().await;
    });
}
