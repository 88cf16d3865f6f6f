//! A cluster of three servers that loses one.

use super::world::{World, run};

/// The notice before an answer whose updates were missed.
const MISSED: &str = "\nnotice: Updates were missed; this is the end of the answer:\n";

#[test]
fn leader_that_is_killed_costs_no_task_and_each_end_is_told_once() {
    run(async {
        let Some(mut world) = World::start_cluster() else { return };
        let gate = world.path("gate");
        let slow = format!("slow={}", gate.display());
        let mut worker = world.start_worker(&[&slow]).await;
        let mut task = world.start_task("one").await;
        assert_eq!(worker.taken().await, 1);
        task.until("echo: one", None).await;
        let leader = world.server.stream_leader("CROW_TASKS");
        world.server.kill(leader);
        std::fs::write(&gate, "").expect("the gate opens");
        assert_eq!(task.end(None).await, "echo: one\nOk(EndTurn)\n");
        assert_eq!(worker.ended().await, "done");
        for word in ["two", "three", "four"] {
            // A parent that hears of its worker too late is given the answer by the end of the task.
            let log = world.start_task(word).await.end(None).await.replace(MISSED, "");
            assert_eq!(log, format!("echo: {word}\nOk(EndTurn)\n"));
            assert_eq!((worker.taken().await, worker.ended().await), (1, "done".to_owned()));
        }
        world.farms.close().await;
        worker.drain().await;
        let left = (world.server.stream_len("CROW_TASKS"), world.server.stream_len("CROW_RECORDS"));
        assert_eq!(left, (0, 0), "no message and no record of a told task is left");
    });
}

#[test]
fn worker_that_starts_while_a_cluster_elects_waits_for_it() {
    run(async {
        let Some(mut world) = World::start_cluster() else { return };
        world.start_worker(&[]).await.drain().await;
        let leader = world.server.stream_leader("CROW_TASKS");
        world.server.kill(leader);
        let mut worker = world.start_worker(&[]).await;
        let log = world.start_task("one").await.end(None).await.replace(MISSED, "");
        assert_eq!(log, "echo: one\nOk(EndTurn)\n");
        worker.taken().await;
        worker.drain().await;
    });
}
