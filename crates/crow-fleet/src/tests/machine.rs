//! The course of a task as its parent sees it.

use expect_test::{Expect, expect};
use serde_json::{Map, json};

use crate::farm::{FarmAction, FarmEvent, FarmMachine};
use crate::record::{EndRecord, TakenRecord};

/// Runs the machine of a new task: events separated by commas.
#[track_caller]
fn check(events: &str, expected: &Expect) {
    run_machine(FarmMachine::default(), events, expected);
}

/// Runs the machine of a task that an earlier process gave.
#[track_caller]
fn check_resumed(events: &str, expected: &Expect) {
    run_machine(FarmMachine::resume(false), events, expected);
}

#[track_caller]
fn run_machine(mut machine: FarmMachine, events: &str, expected: &Expect) {
    let mut log = String::new();
    for event in events.split(", ") {
        let words: Vec<&str> = event.split(' ').collect();
        let taken = |worker: &str, moment: &str, is_given_back| {
            let (sequence, delivery) = moment.split_once('.').unwrap();
            let (sequence, delivery) = (sequence.parse().unwrap(), delivery.parse().unwrap());
            FarmEvent::Taken(TakenRecord {
                worker: worker.to_owned(),
                sequence,
                delivery,
                is_given_back,
                goes_on: false,
            })
        };
        let actions = machine.handle_event(match words[..] {
            ["start"] => FarmEvent::Started,
            ["kept"] => FarmEvent::PlaceKept,
            ["unkept"] => FarmEvent::PlaceNotKept("no space".to_owned()),
            ["resume"] => FarmEvent::Resumed,
            ["unknown"] => FarmEvent::LookFailed,
            ["stored", sequence] => FarmEvent::Published { sequence: sequence.parse().unwrap() },
            ["queued"] => FarmEvent::AlreadyQueued,
            ["unconfirmed"] => FarmEvent::PublishUnconfirmed,
            ["refused"] => FarmEvent::PublishFailed("no queue".to_owned()),
            ["taken", worker, moment] => taken(worker, moment, false),
            ["back", worker, moment] => taken(worker, moment, true),
            ["end", worker] => FarmEvent::Ended(EndRecord {
                worker: worker.to_owned(),
                response: Map::from_iter([("result".to_owned(), json!({}))]),
                missed_answer: None,
                code: None,
            }),
            ["cancel"] => FarmEvent::CancelRequested,
            ["close"] => FarmEvent::ClientClosed,
            ["check"] => FarmEvent::CheckDue,
            ["missing"] => FarmEvent::NoEndFound,
            ["deleted"] => FarmEvent::MessageDeleted,
            ["gone"] => FarmEvent::MessageMissing,
            _ => panic!("{event}"),
        });
        log.push_str(&format!("{event}: {}\n", actions.iter().map(render).collect::<Vec<_>>().join(", ")));
    }
    expected.assert_eq(&log);
}

fn render(action: &FarmAction) -> String {
    match action {
        FarmAction::Publish { attempt } => format!("publish {attempt}"),
        FarmAction::PublishAgain { attempt } => format!("publish {attempt} again"),
        FarmAction::KeepPlace => "keep place".to_owned(),
        FarmAction::LookForRecords => "look".to_owned(),
        FarmAction::LookAgain => "look again".to_owned(),
        FarmAction::FindMessage => "find message".to_owned(),
        FarmAction::Attach(record) => format!("attach {}", record.worker),
        FarmAction::Detach => "detach".to_owned(),
        FarmAction::ShowNotice(text) => format!("show {text:?}"),
        FarmAction::DeleteMessage { sequence } => format!("delete {sequence}"),
        FarmAction::SendCancel => "send cancel".to_owned(),
        FarmAction::Finish(record) => format!("finish by {}", record.worker),
        FarmAction::FinishCancelled => "finish cancelled".to_owned(),
        FarmAction::Fail(reason) => format!("fail {reason}"),
        FarmAction::DeleteRecords => "delete records".to_owned(),
        FarmAction::Close => "close".to_owned(),
    }
}

#[test]
fn task_is_taken_and_ends_once() {
    check(
        "start, kept, stored 4, taken a 4.1, end a, end a, cancel, close",
        &expect![[r#"
            start: keep place
            kept: publish 0
            stored 4: 
            taken a 4.1: attach a
            end a: finish by a, delete 4
            end a: 
            cancel: 
            close: close
        "#]],
    );
}

#[test]
fn records_are_deleted_once_no_worker_can_get_the_message() {
    check(
        "start, kept, stored 4, taken a 4.1, end a, deleted, close",
        &expect![[r#"
            start: keep place
            kept: publish 0
            stored 4: 
            taken a 4.1: attach a
            end a: finish by a, delete 4
            deleted: 
            close: close, delete records
        "#]],
    );
    check(
        "start, kept, stored 4, taken a 4.1, end a, close, deleted",
        &expect![[r#"
            start: keep place
            kept: publish 0
            stored 4: 
            taken a 4.1: attach a
            end a: finish by a, delete 4
            close: close
            deleted: delete records
        "#]],
    );
}

#[test]
fn lost_worker_is_followed_by_another() {
    check(
        "start, kept, stored 4, taken a 4.1, taken b 4.2, taken a 4.1, end b, close",
        &expect![[r#"
            start: keep place
            kept: publish 0
            stored 4: 
            taken a 4.1: attach a
            taken b 4.2: detach, show "The worker a no longer has the task; b begins it again.", attach b
            taken a 4.1: 
            end b: finish by b, delete 4
            close: close
        "#]],
    );
}

#[test]
fn end_of_an_earlier_worker_counts_and_stops_the_later_one() {
    check(
        "start, kept, stored 4, taken a 4.1, taken b 4.2, end a, end b, close",
        &expect![[r#"
            start: keep place
            kept: publish 0
            stored 4: 
            taken a 4.1: attach a
            taken b 4.2: detach, show "The worker a no longer has the task; b begins it again.", attach b
            end a: finish by a, delete 4
            end b: 
            close: close
        "#]],
    );
}

#[test]
fn waiting_task_is_cancelled_at_once() {
    check(
        "start, kept, stored 4, cancel, taken a 4.1, end a, close",
        &expect![[r#"
            start: keep place
            kept: publish 0
            stored 4: 
            cancel: finish cancelled, delete 4
            taken a 4.1: delete 4
            end a: 
            close: close
        "#]],
    );
}

#[test]
fn task_is_deleted_if_it_is_confirmed_after_its_cancellation() {
    check(
        "start, kept, cancel, stored 4, close",
        &expect![[r#"
            start: keep place
            kept: publish 0
            cancel: finish cancelled
            stored 4: delete 4
            close: close
        "#]],
    );
}

#[test]
fn running_task_is_told_to_stop() {
    check(
        "start, kept, stored 4, taken a 4.1, cancel, cancel, check, end a, close",
        &expect![[r#"
            start: keep place
            kept: publish 0
            stored 4: 
            taken a 4.1: attach a
            cancel: send cancel, delete 4
            cancel: 
            check: 
            end a: finish by a, delete 4
            close: close
        "#]],
    );
}

#[test]
fn client_that_leaves_takes_its_task_along() {
    check(
        "start, kept, stored 4, taken a 4.1, close, end a",
        &expect![[r#"
            start: keep place
            kept: publish 0
            stored 4: 
            taken a 4.1: attach a
            close: send cancel, delete 4, close
            end a: 
        "#]],
    );
    check(
        "close",
        &expect![[r#"
            close: close
        "#]],
    );
}

#[test]
fn lost_message_is_published_again() {
    check(
        "start, kept, unconfirmed, stored 4, check, missing, stored 4, check, missing, gone, missing, stored 9, taken a 9.1, end a",
        &expect![[r#"
            start: keep place
            kept: publish 0
            unconfirmed: publish 0 again
            stored 4: 
            check: look
            missing: find message
            stored 4: 
            check: look
            missing: find message
            gone: look
            missing: publish 1
            stored 9: 
            taken a 9.1: attach a
            end a: finish by a, delete 9
        "#]],
    );
}

#[test]
fn task_that_ends_while_its_message_is_looked_for_is_not_published_again() {
    check_resumed(
        "resume, taken a 4.1, missing, gone, end a, missing, deleted, close",
        &expect![[r#"
        resume: look
        taken a 4.1: attach a
        missing: find message
        gone: look
        end a: finish by a, delete 4
        missing: 
        deleted: 
        close: close, delete records
    "#]],
    );
}

#[test]
fn task_is_looked_for_after_the_outcome_of_every_request() {
    check(
        "start, check, kept, check, unconfirmed, check, stored 4, check, check, missing, check, gone, check, missing, \
         check, stored 9, check",
        &expect![[r#"
            start: keep place
            check: 
            kept: publish 0
            check: 
            unconfirmed: publish 0 again
            check: 
            stored 4: 
            check: look
            check: 
            missing: find message
            check: 
            gone: look
            check: 
            missing: publish 1
            check: 
            stored 9: 
            check: look
        "#]],
    );
}

#[test]
fn records_stay_while_the_queue_may_get_the_message() {
    check(
        "start, kept, taken a 4.1, end a, deleted, close, unconfirmed, stored 9, deleted",
        &expect![[r#"
        start: keep place
        kept: publish 0
        taken a 4.1: attach a
        end a: finish by a, delete 4
        deleted: 
        close: close
        unconfirmed: find message
        stored 9: delete 9
        deleted: delete records
    "#]],
    );
    check(
        "start, kept, taken a 4.1, end a, deleted, close, queued, deleted",
        &expect![[r#"
        start: keep place
        kept: publish 0
        taken a 4.1: attach a
        end a: finish by a, delete 4
        deleted: 
        close: close
        queued: delete 4
        deleted: delete records
    "#]],
    );
    check(
        "start, kept, stored 4, taken a 4.1, cancel, taken b 9.1, end b, close, deleted, deleted, deleted",
        &expect![[r#"
            start: keep place
            kept: publish 0
            stored 4: 
            taken a 4.1: attach a
            cancel: send cancel, delete 4
            taken b 9.1: delete 9
            end b: finish by b, delete 9
            close: close
            deleted: 
            deleted: 
            deleted: delete records
        "#]],
    );
}

#[test]
fn unconfirmed_message_of_a_cancelled_task_is_looked_for() {
    check(
        "start, kept, cancel, unconfirmed, stored 4",
        &expect![[r#"
        start: keep place
        kept: publish 0
        cancel: finish cancelled
        unconfirmed: find message
        stored 4: delete 4
    "#]],
    );
}

#[test]
fn missing_queue_is_a_failure() {
    check(
        "start, kept, refused, check, close",
        &expect![[r#"
            start: keep place
            kept: publish 0
            refused: fail no queue
            check: 
            close: close
        "#]],
    );
}

#[test]
fn task_that_was_given_back_has_no_worker() {
    check(
        "start, kept, stored 4, taken a 4.1, back a 4.1, taken a 4.1, taken b 4.2, end b",
        &expect![[r#"
            start: keep place
            kept: publish 0
            stored 4: 
            taken a 4.1: attach a
            back a 4.1: detach
            taken a 4.1: 
            taken b 4.2: show "The worker a no longer has the task; b begins it again.", attach b
            end b: finish by b, delete 4
        "#]],
    );
    check(
        "start, kept, stored 4, taken a 4.1, back a 4.1, cancel",
        &expect![[r#"
            start: keep place
            kept: publish 0
            stored 4: 
            taken a 4.1: attach a
            back a 4.1: detach
            cancel: finish cancelled, delete 4
        "#]],
    );
}

#[test]
fn task_is_published_only_with_its_place() {
    check(
        "start, unkept, kept, close",
        &expect![[r#"
        start: keep place
        unkept: fail no space
        kept: 
        close: close
    "#]],
    );
    check(
        "start, cancel, kept, close",
        &expect![[r#"
        start: keep place
        cancel: finish cancelled
        kept: 
        close: close
    "#]],
    );
    check(
        "start, close, kept",
        &expect![[r#"
        start: keep place
        close: finish cancelled, close
        kept: 
    "#]],
    );
}

#[test]
fn resumed_task_has_ended_meanwhile() {
    check_resumed(
        "resume, end a, taken a 4.1, missing, deleted, end a, close",
        &expect![[r#"
            resume: look
            end a: finish by a
            taken a 4.1: delete 4
            missing: 
            deleted: 
            end a: 
            close: close, delete records
        "#]],
    );
}

#[test]
fn resumed_task_goes_on_at_its_worker() {
    check_resumed(
        "resume, unknown, taken a 4.1, back a 4.1, taken b 4.2, missing, stored 4, unknown, end b, close",
        &expect![[r#"
            resume: look
            unknown: look again
            taken a 4.1: attach a
            back a 4.1: detach
            taken b 4.2: show "The worker a no longer has the task; b begins it again.", attach b
            missing: find message
            stored 4: 
            unknown: 
            end b: finish by b, delete 4
            close: close
        "#]],
    );
}

#[test]
fn resumed_task_that_is_nowhere_is_published_again() {
    check_resumed(
        "resume, missing, gone, unknown, missing, stored 9, taken a 9.1, cancel, end a, close",
        &expect![[r#"
            resume: look
            missing: find message
            gone: look
            unknown: look again
            missing: publish 1
            stored 9: 
            taken a 9.1: attach a
            cancel: send cancel, delete 9
            end a: finish by a, delete 9
            close: close
        "#]],
    );
}

#[test]
fn resumed_task_is_cancelled_before_it_is_found() {
    check_resumed(
        "resume, cancel, stored 4, deleted, unknown, missing, close",
        &expect![[r#"
            resume: look
            cancel: finish cancelled, find message
            stored 4: delete 4
            deleted: 
            unknown: 
            missing: 
            close: close, delete records
        "#]],
    );
    check_resumed(
        "resume, cancel, taken a 4.1, missing, close, deleted, gone",
        &expect![[r#"
            resume: look
            cancel: finish cancelled, find message
            taken a 4.1: delete 4
            missing: 
            close: close
            deleted: 
            gone: delete records
        "#]],
    );
    check_resumed(
        "close, stored 4, deleted",
        &expect![[r#"
        close: finish cancelled, find message, close
        stored 4: delete 4
        deleted: delete records
    "#]],
    );
}

#[test]
fn task_that_was_given_long_ago_does_not_run_again_unasked() {
    let old = || FarmMachine::resume(true);
    run_machine(
        old(),
        "resume, missing, gone, missing, gone, close",
        &expect![[r#"
            resume: look
            missing: find message
            gone: look
            missing: fail its end is no longer kept: a server keeps ends for seven days
            gone: 
            close: close, delete records
        "#]],
    );
    run_machine(
        old(),
        "resume, missing, stored 4, check, missing, stored 4, taken a 4.1, end a",
        &expect![[r#"
            resume: look
            missing: find message
            stored 4: 
            check: look
            missing: find message
            stored 4: 
            taken a 4.1: attach a
            end a: finish by a, delete 4
        "#]],
    );
    check_resumed(
        "resume, cancel, gone, close",
        &expect![[r#"
        resume: look
        cancel: finish cancelled, find message
        gone: 
        close: close
    "#]],
    );
}
