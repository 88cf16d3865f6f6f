//! Tasks on other machines whose parent was killed.

use expect_test::expect;

use super::world::check;

#[test]
fn far_task_without_its_agent_is_lost() {
    check(
        &[],
        "far 127.0.0.1:1 / recover / mail / list",
        &expect![[r#"
        > far 127.0.0.1:1
        > recover
        1 deliveries
        > mail
        NoTasks
        Task TASK (count) was lost: Crow exited while it was running on another machine, and there is no agent farm; the agents are: crow, other, missing.

        Its messages until then: query_session with session_id TASK. It may still be running there. To do the work again, start a new task.
        > list
        - `TASK` farm: count — lost
    "#]],
    );
}

#[test]
fn far_task_at_another_server_is_lost() {
    check(
        &[],
        "farm tls://user:secret@elsewhere / far 127.0.0.1:1 / recover / mail",
        &expect![[r#"
        > farm tls://user:secret@elsewhere
        > far 127.0.0.1:1
        > recover
        1 deliveries
        > mail
        NoTasks
        Task TASK (count) was lost: Crow exited while it was running on another machine, and the queue farm is at another server now, and the task at 127.0.0.1:1.

        Its messages until then: query_session with session_id TASK. It may still be running there. To do the work again, start a new task.
    "#]],
    );
}

#[test]
fn far_task_whose_place_cannot_be_read_is_lost() {
    check(
        &[],
        "farm nats://127.0.0.1:1 / far broken / recover / mail",
        &expect![[r#"
        > farm nats://127.0.0.1:1
        > far broken
        > recover
        1 deliveries
        > mail
        NoTasks
        Task TASK (count) was lost: Crow exited while it was running on another machine, and its place cannot be read.

        Its messages until then: query_session with session_id TASK. It may still be running there. To do the work again, start a new task.
    "#]],
    );
}

#[test]
fn far_task_waits_for_its_server_and_is_cancelled() {
    check(
        &[],
        "farm nats://127.0.0.1:1 / far 127.0.0.1:1 / recover / noticed The server / list / read / send more / cancel / list / recover",
        &expect![[r#"
            > farm nats://127.0.0.1:1
            > far 127.0.0.1:1
            > recover
            0 deliveries, 1 resumed
            > noticed The server
            notice: The server of task TASK (count) cannot be reached: IO error: Connection refused (os error 111). Crow keeps trying until the task is cancelled.
            > list
            - `TASK` farm: count — running
            > read
            Task TASK (farm: count): running.
            > send more
            the task waits in its queue, and takes no messages before a worker has it
            > cancel
            Task TASK (farm, count) was cancelled.

            It said nothing.

            The whole of it: query_session with session_id TASK. It has one turn; for more start a new task.
            > list
            - `TASK` farm: count — cancelled
            > recover
            1 deliveries
        "#]],
    );
}

#[test]
fn far_task_of_another_process_is_left_alone() {
    check(
        &[],
        "farm nats://127.0.0.1:1 / far 127.0.0.1:1 / taken / recover / list",
        &expect![[r#"
        > farm nats://127.0.0.1:1
        > far 127.0.0.1:1
        > taken
        > recover
        0 deliveries
        > list
        - `TASK` farm: count — running
    "#]],
    );
}
