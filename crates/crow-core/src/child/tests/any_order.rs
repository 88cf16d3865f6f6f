use proptest::prelude::*;

use super::{event, start};
use crate::ChildAction;

/// The ordinary course, up to the second turn.
const COURSE: [&str; 6] = ["connected", "opened", "prepared", "end_turn", "turn", "prepared"];

/// Events in any order after some part of the ordinary course, which events in any order rarely follow.
fn any_events() -> impl Strategy<Value = Vec<&'static str>> {
    let events = prop::collection::vec(any_event(), 0..60);
    (0..=COURSE.len(), events)
        .prop_map(|(n_ordinary, events)| COURSE[..n_ordinary].iter().copied().chain(events).collect())
}

fn any_event() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "connected",
        "connected",
        "opened",
        "opened",
        "prepared",
        "prepared",
        "end_turn",
        "max_tokens",
        "refusal",
        "stopped",
        "disconnected gone",
        "failed so",
        "broken so",
        "message",
        "flood",
        "turn",
        "turn",
        "steer",
        "steer_unsupported",
        "cancel",
        "mode",
        "exhausted so",
        "turn_timer",
        "open_timer",
        "stop_timer",
        "idle_timer",
        "no_slot",
        "parent_closed",
        "exit 1",
        "killed",
    ])
}

proptest! {
    /// Any order of events ends once the parent wants it, and the parent is told exactly once about each turn.
    #[test]
    fn any_order_of_events_ends_and_reports_each_turn_once(
        properties in prop::sample::select(vec!["", "worktree", "mode", "replay mode"]),
        events in any_events(),
    ) {
        let (mut machine, mut actions) = start(properties);
        let (mut has_turn, mut n_finished, mut n_begun, mut n_endings) = (true, 0, 1, 0);
        let closing = ["cancel", "stop_timer", "parent_closed", "exit"];
        for line in events.into_iter().chain(closing) {
            let has_ended = machine.has_ended();
            actions.extend(machine.handle_event(event(line)));
            for action in actions.drain(..) {
                match action {
                    ChildAction::BeginTurn => {
                        prop_assert!(!has_turn, "a turn begins within another");
                        (has_turn, n_begun) = (true, n_begun + 1);
                    }
                    ChildAction::FinishTurn(_) => {
                        prop_assert!(has_turn, "a turn is finished twice");
                        (has_turn, n_finished) = (false, n_finished + 1);
                    }
                    ChildAction::EndProgram(_) => n_endings += 1,
                    ChildAction::Release => prop_assert!(!has_turn, "a turn is lost"),
                    ChildAction::SendPrompt | ChildAction::CancelPrompt | ChildAction::HandleMessage
                    | ChildAction::SendSteering | ChildAction::PrepareTurn | ChildAction::SetMode => {
                        prop_assert!(has_turn, "{action:?} without a turn");
                    }
                    ChildAction::RejectTurn | ChildAction::RejectSteering(_) => {}
                    ChildAction::Connect | ChildAction::OpenSession | ChildAction::HandleQueuedMessages
                    | ChildAction::CountMessage | ChildAction::CountTokens(_) | ChildAction::StartTimer(..)
                    | ChildAction::WaitForTurn | ChildAction::CloseCommands => {
                        prop_assert!(!has_ended, "{action:?} after the end");
                    }
                }
            }
        }
        prop_assert!(machine.has_ended(), "it does not end");
        prop_assert_eq!((n_finished, n_endings), (n_begun, 1));
    }

    /// An event that the driver waits for has a step, so that it is not reported again at once.
    #[test]
    fn awaited_event_has_a_step(events in any_events()) {
        let (mut machine, _) = start("mode");
        for line in events {
            let interests = machine.interests();
            for (is_awaited, awaited) in [
                (interests.interrupts, "cancel"),
                (interests.interrupts, "flood"),
                (interests.commands, "turn"),
                (interests.commands, "steer"),
                (interests.mode, "mode"),
                (interests.idle_ends, "parent_closed"),
                (interests.idle_ends, "disconnected gone"),
            ] {
                let mut copy = machine.clone();
                prop_assert!(!is_awaited || !copy.handle_event(event(awaited)).is_empty(), "{awaited}");
            }
            machine.handle_event(event(line));
        }
    }
}
