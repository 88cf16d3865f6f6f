//! Children in the process of the test: a scripted agent, a fake session and a store in a temporary directory.

mod fake_session;
mod resume;
mod scripted_agent;
mod world;

use crow_core::TreeLimits;
use expect_test::expect;

use self::world::{check, check_limited};

#[test]
fn child_does_a_task_and_another() {
    check(
        &["say one, two | usage 70 | end", "say three | usage 90 | end"],
        "start other / wait / send go on / wait",
        &expect![[r#"
            > start other
            > wait
            agent: open New
            agent: prompt count
            Task TASK (other, count) is done.

            one, two

            It used 70 tokens.

            The whole of it: query_session with session_id TASK. To go on with it: task_send.
            > send go on
            > wait
            agent: prompt go on
            Task TASK (other, count) is done.

            three

            It used 20 tokens.

            The whole of it: query_session with session_id TASK. To go on with it: task_send.
        "#]],
    );
}

#[test]
fn child_that_is_crow_follows_the_mode() {
    check(
        &["say one | ask Run ls | hang"],
        "start / until one / mode plan / send faster / cancel",
        &expect![[r#"
            > start
            > until one
            agent: open Resume(SessionId("TASK"))
            agent: mode ask
            agent: prompt count
            user: count: Run ls
            > mode plan
            > send faster
            agent: allowed
            agent: steered faster
            agent: mode plan
            steered
            > cancel
            agent: cancel
            Task TASK (count) was cancelled.

            one

            The whole of it: query_session with session_id TASK. To go on with it: task_send.
        "#]],
    );
}

#[test]
fn view_of_a_child_does_not_replace_its_question() {
    check(
        &["say one | hang"],
        "start / until one / shown / cancel",
        &expect![[r#"
        > start
        > until one
        agent: open Resume(SessionId("TASK"))
        agent: mode ask
        agent: prompt count
        > shown
        one
        > cancel
        agent: cancel
        Task TASK (count) was cancelled.

        one

        The whole of it: query_session with session_id TASK. To go on with it: task_send.
    "#]],
    );
    check(
        &["say one | ask Run rm (slow) | hang"],
        "start / asked count: Run rm / shown / cancel",
        &expect![[r#"
            > start
            > asked count: Run rm
            agent: open Resume(SessionId("TASK"))
            agent: mode ask
            agent: prompt count
            user: count: Run rm (slow)
            > shown

            > cancel
            agent: rejected
            agent: cancel
            Task TASK (count) was cancelled.

            one

            The whole of it: query_session with session_id TASK. To go on with it: task_send.
        "#]],
    );
}

#[test]
fn form_of_a_child_is_shown_to_the_user() {
    check(
        &["form Which port? | end"],
        "start / wait",
        &expect![[r#"
        > start
        > wait
        agent: open Resume(SessionId("TASK"))
        agent: mode ask
        agent: prompt count
        user: Trust: count: Which port?
        agent: Accepted("yes")
        Task TASK (count) is done.

        It said nothing.

        The whole of it: query_session with session_id TASK. To go on with it: task_send.
    "#]],
    );
}

#[test]
fn form_of_another_agent_is_never_one_about_trust() {
    check(
        &["form Trust me? | end"],
        "start other / wait",
        &expect![[r#"
        > start other
        > wait
        agent: open New
        agent: prompt count
        user: Question: other, count: Trust me?
        agent: Accepted("yes")
        Task TASK (other, count) is done.

        It said nothing.

        The whole of it: query_session with session_id TASK. To go on with it: task_send.
    "#]],
    );
}

#[test]
fn open_form_of_a_child_ends_with_its_turn() {
    check(
        &["open_form Which port? (slow) | say one | hang"],
        "start / until one / cancel",
        &expect![[r#"
        > start
        > until one
        agent: open Resume(SessionId("TASK"))
        agent: mode ask
        agent: prompt count
        user: Trust: count: Which port? (slow)
        > cancel
        agent: cancel
        agent: Cancelled
        Task TASK (count) was cancelled.

        one

        The whole of it: query_session with session_id TASK. To go on with it: task_send.
    "#]],
    );
}

#[test]
fn end_of_a_background_task_is_a_message() {
    check(
        &["say done | end"],
        "background other / mail / mail",
        &expect![[r#"
        > background other
        > mail
        agent: open New
        agent: prompt count
        session: mail
        Mail
        Task TASK (other, count) is done.

        done

        The whole of it: query_session with session_id TASK. To go on with it: task_send.
        > mail
        NoTasks
    "#]],
    );
}

#[test]
fn cancelled_child_confirms() {
    check(
        &["say one | hang"],
        "start other / until one / cancel / cancel",
        &expect![[r#"
        > start other
        > until one
        agent: open New
        agent: prompt count
        > cancel
        agent: cancel
        Task TASK (other, count) was cancelled.

        one

        The whole of it: query_session with session_id TASK. To go on with it: task_send.
        > cancel
        it is not running: it is cancelled
    "#]],
    );
}

#[test]
fn cancelled_child_that_does_not_confirm_is_ended() {
    check(
        &["say one | deaf"],
        "start other / until one / cancel / gone",
        &expect![[r#"
        > start other
        > until one
        agent: open New
        agent: prompt count
        > cancel
        agent: gone
        Task TASK (other, count) was cancelled.

        one

        The whole of it: query_session with session_id TASK. To go on with it: task_send.
        > gone
    "#]],
    );
}

#[test]
fn cancelled_background_task_starts_no_turn() {
    check(
        &["say one | hang"],
        "background other / until one / cancel / mail",
        &expect![[r#"
        > background other
        > until one
        agent: open New
        agent: prompt count
        > cancel
        agent: cancel
        Task TASK (other, count) was cancelled.

        one

        The whole of it: query_session with session_id TASK. To go on with it: task_send.
        > mail
        NoTasks
        Task TASK (other, count) was cancelled.

        one

        The whole of it: query_session with session_id TASK. To go on with it: task_send.
    "#]],
    );
}

#[test]
fn child_stops_at_the_token_limit() {
    let limits = TreeLimits { tokens_max: Some(100), ..TreeLimits::default() };
    check_limited(
        limits,
        &["say one | usage 120 | hang"],
        "start other / wait / start other",
        &expect![[r#"
            > start other
            > wait
            agent: open New
            agent: prompt count
            agent: cancel
            Task TASK (other, count) failed: the agents of this session have used 120 tokens, and agents.max_tokens allows 100

            one

            It used 120 tokens.

            The whole of it: query_session with session_id TASK. To go on with it: task_send.
            > start other
            the agents of this session have used 120 tokens, and agents.max_tokens allows 100
        "#]],
    );
}

#[test]
fn child_beyond_the_limit_is_not_started() {
    let limits = TreeLimits { children_max: 1, ..TreeLimits::default() };
    check_limited(
        limits,
        &["say one | hang"],
        "start other / until one / start other",
        &expect![[r#"
        > start other
        > until one
        agent: open New
        agent: prompt count
        > start other
        agents.max_children allows 1 child at a time; wait for one to finish or cancel it
    "#]],
    );
    let limits = TreeLimits { depth_max: 0, ..TreeLimits::default() };
    check_limited(
        limits,
        &[],
        "start other",
        &expect![[r#"
        > start other
        this agent is 0 levels below the root, and agents.max_depth allows 0; do the work yourself
    "#]],
    );
}

#[test]
fn crash_of_a_child_fails_its_task() {
    check(
        &["say one | hang", "say two | end"],
        "start other / until one / crash / wait / gone / send again / wait",
        &expect![[r#"
            > start other
            > until one
            agent: open New
            agent: prompt count
            > crash
            > wait
            agent: gone
            Task TASK (other, count) failed: the agent has disconnected.

            one

            The whole of it: query_session with session_id TASK. To go on with it: task_send.
            > gone
            > send again
            > wait
            agent: open Resume(SessionId("far"))
            agent: prompt again
            Task TASK (other, count) is done.

            two

            The whole of it: query_session with session_id TASK. To go on with it: task_send.
        "#]],
    );
}

#[test]
fn failure_of_a_child_fails_its_task() {
    check(
        &["fail it has no key"],
        "start other / wait",
        &expect![[r#"
        > start other
        > wait
        agent: open New
        agent: prompt count
        agent: gone
        Task TASK (other, count) failed: it has no key.

        It said nothing.

        The whole of it: query_session with session_id TASK. To go on with it: task_send.
    "#]],
    );
    check(
        &["refuse"],
        "start other / wait",
        &expect![[r#"
        > start other
        > wait
        agent: open New
        agent: prompt count
        Task TASK (other, count) failed: its model refused

        It said nothing.

        The whole of it: query_session with session_id TASK. To go on with it: task_send.
    "#]],
    );
    check(
        &[],
        "start missing / wait",
        &expect![[r#"
            > start missing
            > wait
            Task TASK (missing, count) failed: it could not be started: there is no such program

            It said nothing.

            Its agent opened no session, so it cannot go on; start a new task.
        "#]],
    );
    check(
        &[],
        "start unknown",
        &expect![[r#"
        > start unknown
        there is no agent unknown; the agents are: crow, other, missing
    "#]],
    );
}

#[test]
fn task_of_another_process_is_not_continued() {
    check(
        &["say one | hang"],
        "start other / until one / crash / wait / gone / taken / send again",
        &expect![[r#"
            > start other
            > until one
            agent: open New
            agent: prompt count
            > crash
            > wait
            agent: gone
            Task TASK (other, count) failed: the agent has disconnected.

            one

            The whole of it: query_session with session_id TASK. To go on with it: task_send.
            > gone
            > taken
            > send again
            session TASK is in use for another client of this process; wait until its turn has ended, or stop it there
        "#]],
    );
}

#[test]
fn task_without_a_process_is_lost() {
    check(
        &[],
        "lost / recover / mail / list",
        &expect![[r#"
        > lost
        > recover
        1 deliveries
        > mail
        NoTasks
        Task TASK (count) was lost: Crow exited while it was running.

        Its messages until then: query_session with session_id TASK. To go on with it: task_send.
        > list
        - `TASK` crow: count — lost
    "#]],
    );
}

#[test]
fn lost_task_has_its_worktree() {
    check(
        &[],
        "lost / worktree / recover / mail",
        &expect![[r#"
            > lost
            > worktree
            > recover
            1 deliveries
            > mail
            NoTasks
            Task TASK (count) was lost: Crow exited while it was running.

            Its git worktree has what it changed, also what is not committed: FOLDER/worktrees/TASK

            Its messages until then: query_session with session_id TASK. To go on with it: task_send.
        "#]],
    );
}

#[test]
fn child_ends_with_its_session() {
    check(
        &["say one | hang"],
        "start other / until one / end_all / list",
        &expect![[r#"
        > start other
        > until one
        agent: open New
        agent: prompt count
        > end_all
        agent: cancel
        agent: gone
        > list
        - `TASK` other: count — cancelled
    "#]],
    );
    check(
        &["say one | end"],
        "start other / wait / end_all / list / read",
        &expect![[r#"
        > start other
        > wait
        agent: open New
        agent: prompt count
        Task TASK (other, count) is done.

        one

        The whole of it: query_session with session_id TASK. To go on with it: task_send.
        > end_all
        agent: gone
        > list
        - `TASK` other: count — done
        > read
        Task TASK (other, count) is done.

        one

        The whole of it: query_session with session_id TASK. To go on with it: task_send.
    "#]],
    );
}
