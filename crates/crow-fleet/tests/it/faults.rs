//! Workers, parents and servers that end in the middle.

use std::time::Duration;

use expect_test::expect;

use super::world::{World, run, start_worker};

#[test]
fn task_of_a_crashed_worker_is_begun_again_by_another_and_told_once() {
    run(async {
        let Some(mut world) = World::start() else { return };
        world.ack_wait = Duration::from_secs(2);
        let gate = world.path("gate");
        let slow = format!("slow={}", gate.display());
        let mut first = world.start_worker(&[&slow]).await;
        let mut task = world.start_task("count").await;
        assert_eq!(first.taken().await, 1);
        task.until("echo: count", None).await;
        first.crash().await;
        let mut second = world.start_worker(&[]).await;
        expect![[r#"
            echo: count
            notice: The worker w1 no longer has the task; w2 begins it again.
            echo: count
            Ok(EndTurn)
        "#]]
        .assert_eq(&task.end(None).await);
        assert_eq!((second.taken().await, second.ended().await), (2, "done".to_owned()));
        second.drain().await;
    });
}

#[test]
fn worker_that_drains_ends_its_tasks_and_takes_no_others() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let gate = world.path("gate");
        let slow = format!("slow={}", gate.display());
        let mut first = world.start_worker(&[&slow]).await;
        let task = world.start_task("count").await;
        assert_eq!(first.taken().await, 1);
        first.stop.cancel();
        let waiting = world.start_task("later").await;
        std::fs::write(&gate, "").expect("the gate opens");
        assert!(task.end(None).await.contains("Ok(EndTurn)"));
        first.drain().await;
        let mut second = world.start_worker(&[]).await;
        assert!(waiting.end(None).await.contains("echo: later"));
        assert_eq!(second.taken().await, 1, "no worker had it before");
        second.drain().await;
    });
}

#[test]
fn task_that_does_not_end_in_time_is_given_back_as_often_as_needed() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let slow = format!("slow={}", world.path("never").display());
        let mut task = None;
        // More often than a task may lose its worker.
        for delivery in 1..=7 {
            let mut options = world.worker_options(&[&slow]);
            options.drain_time_max = Duration::ZERO;
            let mut worker = start_worker(options).await.expect("it connects");
            if task.is_none() {
                task = Some(world.start_task("count").await);
            }
            assert_eq!(worker.taken().await, delivery);
            worker.stop.cancel();
            assert_eq!(worker.ended().await, "given back");
            worker.drain().await;
        }
        let mut last = world.start_worker(&[]).await;
        let log = task.expect("it was begun").end(None).await;
        assert!(log.ends_with("Ok(EndTurn)\n") && log.contains("w8 begins it again"), "{log}");
        assert_eq!(last.taken().await, 8);
        last.drain().await;
    });
}

#[test]
fn task_that_ends_its_workers_is_ended_with_their_names() {
    run(async {
        let Some(mut world) = World::start() else { return };
        world.ack_wait = Duration::from_millis(600);
        let slow = format!("slow={}", world.path("never").display());
        let mut task = None;
        for delivery in 1..=5 {
            let mut worker = world.start_worker(&[&slow]).await;
            if task.is_none() {
                task = Some(world.start_task("count").await);
            }
            assert_eq!(worker.taken().await, delivery);
            worker.crash().await;
        }
        let last = world.start_worker(&[]).await;
        let log = task.expect("it was begun").end(None).await;
        let (_, end) = log.rsplit_once("\nErr").expect("it failed");
        expect![[r#"
            ("5 workers began the task and did not finish it, so it is not tried again: w1, w2, w3, w4, w5")
        "#]]
        .assert_eq(end);
        last.drain().await;
    });
}

#[test]
fn server_that_is_killed_and_comes_back_costs_nothing() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let gate = world.path("gate");
        let slow = format!("slow={}", gate.display());
        let mut worker = world.start_worker(&[&slow]).await;
        let mut task = world.start_task("count").await;
        assert_eq!(worker.taken().await, 1);
        task.until("echo: count", None).await;
        world.server.kill();
        // The agent ends while there is no server.
        std::fs::write(&gate, "").expect("the gate opens");
        world.server.resume();
        let log = task.end(None).await;
        assert!(log.ends_with("Ok(EndTurn)\n") && !log.contains("again"), "{log}");
        assert_eq!(worker.ended().await, "done");
        worker.drain().await;
    });
}

#[test]
fn worker_stops_while_its_server_is_gone() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let worker = world.start_worker(&[]).await;
        world.server.kill();
        worker.drain().await;
    });
}

#[test]
fn parent_that_leaves_stops_its_task() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let mut worker = world.start_worker(&["flood"]).await;
        let mut task = world.start_task("count").await;
        task.until("and so on", None).await;
        task.leave();
        assert_eq!(worker.taken().await, 1);
        let outcome = worker.ended().await;
        assert!(["cancelled", "taken back"].contains(&outcome.as_str()), "{outcome}");
        worker.drain().await;
    });
}
