mod any_order;
mod ends;

use expect_test::{Expect, expect};

use super::*;
use crate::FailureKind;

const TURN_TIME_MAX: Duration = Duration::from_secs(1_800);

/// Starts a child with these properties: `worktree`, `mode`, `replay`.
fn start(properties: &str) -> (ChildMachine, Vec<ChildAction>) {
    let has = |word: &str| properties.split(' ').any(|property| property == word);
    let profile = ChildProfile {
        ends_with_turn: has("worktree"),
        follows_mode: has("mode"),
        replays_session: has("replay"),
        times: ChildTimes::default(),
    };
    ChildMachine::start(profile, TURN_TIME_MAX)
}

/// Parses an event: a word, and after it perhaps a text.
fn event(line: &str) -> ChildEvent {
    let (word, text) = line.split_once(' ').unwrap_or((line, ""));
    let ended = |stop_reason| ChildEvent::PromptEnded { stop_reason, n_tokens: text.parse().ok() };
    match word {
        "connected" => ChildEvent::Connected,
        "opened" => ChildEvent::SessionOpened,
        "prepared" => ChildEvent::TurnPrepared,
        "end_turn" => ended(ChildStopReason::EndTurn),
        "max_tokens" => ended(ChildStopReason::MaxTokens),
        "max_requests" => ended(ChildStopReason::MaxTurnRequests),
        "refusal" => ended(ChildStopReason::Refusal),
        "stopped" => ended(ChildStopReason::Cancelled),
        "disconnected" => ChildEvent::AgentFailed(Failure::new(FailureKind::Connection, text)),
        "failed" => ChildEvent::AgentFailed(Failure::new(FailureKind::Protocol, text)),
        "broken" => ChildEvent::DriverFailed(text.to_owned()),
        "message" => ChildEvent::MessageReceived,
        "flood" => ChildEvent::RequestsExceeded,
        "turn" => ChildEvent::TurnRequested { time_max: TURN_TIME_MAX },
        "steer" => ChildEvent::SteeringRequested { is_supported: true },
        "steer_unsupported" => ChildEvent::SteeringRequested { is_supported: false },
        "cancel" => ChildEvent::CancelRequested,
        "mode" => ChildEvent::ModeChanged,
        "exhausted" => ChildEvent::BudgetExhausted(text.to_owned()),
        "turn_timer" => ChildEvent::TimerFired(ChildTimer::Turn),
        "open_timer" => ChildEvent::TimerFired(ChildTimer::Open),
        "stop_timer" => ChildEvent::TimerFired(ChildTimer::Stop),
        "idle_timer" => ChildEvent::TimerFired(ChildTimer::Idle),
        "no_slot" => ChildEvent::IdleSlotMissing,
        "parent_closed" => ChildEvent::ParentClosed,
        "exit" => ChildEvent::ProgramEnded(ChildExit {
            status: text.parse().ok().map(ChildExitStatus::Exited),
            ..ChildExit::default()
        }),
        "killed" => ChildEvent::ProgramEnded(ChildExit {
            status: Some(ChildExitStatus::Signalled(9)),
            stray_line: Some("Segmentation fault".to_owned()),
            stderr: "out of memory".to_owned(),
        }),
        _ => panic!("{line}"),
    }
}

fn action_line(action: &ChildAction) -> String {
    match action {
        ChildAction::FinishTurn(ChildTurnEnd { outcome, reason }) => match reason {
            Some(reason) => format!("finish: {outcome:?}: {reason}"),
            None => format!("finish: {outcome:?}"),
        },
        ChildAction::StartTimer(timer, time) => format!("timer {timer:?} {time:?}"),
        ChildAction::RejectSteering(reason) => format!("reject steering: {reason}"),
        ChildAction::Connect
        | ChildAction::OpenSession
        | ChildAction::BeginTurn
        | ChildAction::RejectTurn
        | ChildAction::PrepareTurn
        | ChildAction::SendPrompt
        | ChildAction::CancelPrompt
        | ChildAction::HandleMessage
        | ChildAction::HandleQueuedMessages
        | ChildAction::CountMessage
        | ChildAction::CountTokens(_)
        | ChildAction::SendSteering
        | ChildAction::SetMode
        | ChildAction::WaitForTurn
        | ChildAction::CloseCommands
        | ChildAction::EndProgram(_)
        | ChildAction::Release => format!("{action:?}"),
    }
}

/// Starts a child and brings it to a phase: `new`, `opening`, `preparing`, `prompting` or `idle`.
fn start_in_phase(properties: &str, phase: &str) -> ChildMachine {
    let (mut machine, _) = start(properties);
    let phases = ["new", "opening", "preparing", "prompting", "idle"];
    let n_events = phases.iter().position(|name| *name == phase).unwrap();
    for line in ["connected", "opened", "prepared", "end_turn"].iter().take(n_events) {
        machine.handle_event(event(line));
    }
    machine
}

/// Runs a child through events, separated by ` | `, from a phase on; shows each with the steps after it.
#[track_caller]
fn check(properties: &str, events: &str, expected: &Expect) {
    let (phase, events) = events.split_once(": ").unwrap();
    let mut machine = start_in_phase(properties, phase);
    let mut text = String::new();
    let mut show = |event: &str, actions: &[ChildAction]| {
        let lines: Vec<String> = actions.iter().map(action_line).collect();
        text.push_str(format!("{event} -> {}", lines.join(", ")).trim_end());
        text.push('\n');
    };
    if phase == "new" {
        show("start", &start(properties).1);
    }
    for line in events.split(" | ") {
        show(line, &machine.handle_event(event(line)));
    }
    text.push_str(if machine.has_ended() { "over\n" } else { "" });
    expected.assert_eq(&text);
}

#[test]
fn child_finishes_a_turn_and_waits_for_another() {
    check(
        "mode",
        "new: connected | opened | prepared | message | mode | steer | end_turn 70 | message | steer | turn | prepared | max_tokens | idle_timer | exit 0",
        &expect![[r#"
            start -> timer Turn 1800s, Connect
            connected -> timer Open 60s, OpenSession
            opened -> PrepareTurn
            prepared -> SendPrompt
            message -> HandleMessage
            mode -> SetMode
            steer -> SendSteering
            end_turn 70 -> HandleQueuedMessages, CountTokens(70), finish: Completed, timer Idle 300s, WaitForTurn
            message -> CountMessage
            steer -> reject steering: its turn has just ended; send the message again
            turn -> BeginTurn, timer Turn 1800s, PrepareTurn
            prepared -> SendPrompt
            max_tokens -> HandleQueuedMessages, finish: Completed: its answer was truncated at the output limit, timer Idle 300s, WaitForTurn
            idle_timer -> CloseCommands, EndProgram(ShutDown)
            exit 0 -> CloseCommands, Release
            over
        "#]],
    );
}

#[test]
fn child_with_a_worktree_ends_before_its_turn_is_finished() {
    check(
        "worktree",
        "prompting: end_turn | exit 0",
        &expect![[r#"
        end_turn -> HandleQueuedMessages, EndProgram(ShutDown)
        exit 0 -> CloseCommands, finish: Completed, Release
        over
    "#]],
    );
    check(
        "worktree",
        "prompting: cancel | end_turn | exit 0",
        &expect![[r#"
        cancel -> CancelPrompt, timer Stop 1s
        end_turn -> HandleQueuedMessages, EndProgram(ShutDown)
        exit 0 -> CloseCommands, finish: Cancelled, Release
        over
    "#]],
    );
}

#[test]
fn child_that_is_cancelled_confirms_or_is_killed() {
    check(
        "",
        "prompting: cancel | cancel | message | stopped | turn",
        &expect![[r#"
        cancel -> CancelPrompt, timer Stop 1s
        cancel ->
        message -> HandleMessage
        stopped -> HandleQueuedMessages, finish: Cancelled, timer Idle 300s, WaitForTurn
        turn -> BeginTurn, timer Turn 1800s, PrepareTurn
    "#]],
    );
    check(
        "",
        "prompting: cancel | stop_timer | killed",
        &expect![[r#"
        cancel -> CancelPrompt, timer Stop 1s
        stop_timer -> EndProgram(Kill)
        killed -> CloseCommands, finish: Cancelled, Release
        over
    "#]],
    );
    check(
        "",
        "prompting: cancel | disconnected gone | exit 1",
        &expect![[r#"
        cancel -> CancelPrompt, timer Stop 1s
        disconnected gone -> HandleQueuedMessages, EndProgram(ShutDown)
        exit 1 -> CloseCommands, finish: Cancelled, Release
        over
    "#]],
    );
}

#[test]
fn child_is_stopped_by_its_limits() {
    for event in ["turn_timer", "exhausted no tokens are left", "flood"] {
        let expected = match event {
            "turn_timer" => expect![[r#"
                turn_timer -> CancelPrompt, timer Stop 1s
                end_turn -> HandleQueuedMessages, finish: Failed: it ran for 30 min, the limit of agents.max_minutes, timer Idle 300s, WaitForTurn
                no_slot -> CloseCommands, EndProgram(ShutDown)
                exit -> CloseCommands, Release
                over
            "#]],
            "flood" => expect![[r#"
                flood -> CancelPrompt, timer Stop 1s
                end_turn -> HandleQueuedMessages, finish: Failed: it sends more requests at once than can be answered, timer Idle 300s, WaitForTurn
                no_slot -> CloseCommands, EndProgram(ShutDown)
                exit -> CloseCommands, Release
                over
            "#]],
            _ => expect![[r#"
                exhausted no tokens are left -> CancelPrompt, timer Stop 1s
                end_turn -> HandleQueuedMessages, finish: Failed: no tokens are left, timer Idle 300s, WaitForTurn
                no_slot -> CloseCommands, EndProgram(ShutDown)
                exit -> CloseCommands, Release
                over
            "#]],
        };
        check("", &format!("prompting: {event} | end_turn | no_slot | exit"), &expected);
    }
}

#[test]
fn child_is_stopped_before_its_prompt() {
    check(
        "",
        "new: cancel | exit",
        &expect![[r#"
        start -> timer Turn 1800s, Connect
        cancel -> EndProgram(ShutDown)
        exit -> CloseCommands, finish: Cancelled, Release
        over
    "#]],
    );
    check(
        "",
        "opening: turn_timer | opened | exit 1",
        &expect![[r#"
        turn_timer -> EndProgram(ShutDown)
        opened ->
        exit 1 -> CloseCommands, finish: Failed: it ran for 30 min, the limit of agents.max_minutes, Release
        over
    "#]],
    );
    check(
        "",
        "preparing: exhausted no tokens are left | prepared | exit 1",
        &expect![[r#"
        exhausted no tokens are left -> EndProgram(ShutDown)
        prepared ->
        exit 1 -> CloseCommands, finish: Failed: no tokens are left, Release
        over
    "#]],
    );
    check(
        "",
        "opening: open_timer | killed",
        &expect![[r#"
        open_timer -> EndProgram(ShutDown)
        killed -> CloseCommands, finish: Failed: it did not open a session within 60 s It was ended by signal 9. It printed a line that is not a protocol message: Segmentation fault
        The end of its stderr:
        out of memory, Release
        over
    "#]],
    );
}

#[test]
fn command_for_a_child_that_is_not_ready_is_rejected() {
    check(
        "",
        "opening: steer | turn | opened | prepared | steer_unsupported | turn",
        &expect![[r#"
        steer -> reject steering: it is running, and this agent accepts no messages meanwhile; wait for its end or cancel it
        turn -> RejectTurn
        opened -> PrepareTurn
        prepared -> SendPrompt
        steer_unsupported -> reject steering: it is running, and this agent accepts no messages meanwhile; wait for its end or cancel it
        turn -> RejectTurn
    "#]],
    );
    check(
        "",
        "idle: idle_timer | turn | steer | turn | exit",
        &expect![[r#"
        idle_timer -> CloseCommands, EndProgram(ShutDown)
        turn -> BeginTurn
        steer -> reject steering: its turn has just ended; send the message again
        turn -> RejectTurn
        exit -> CloseCommands, finish: Failed: its agent has just ended; send the message again, Release
        over
    "#]],
    );
}

#[test]
fn replay_of_an_earlier_session_is_not_handled() {
    check(
        "replay",
        "new: message | connected | message | opened | message | prepared | message",
        &expect![[r#"
            start -> timer Turn 1800s, Connect
            message ->
            connected -> timer Open 60s, OpenSession
            message ->
            opened -> PrepareTurn
            message -> HandleMessage
            prepared -> SendPrompt
            message -> HandleMessage
        "#]],
    );
}

#[test]
fn idle_child_ends_with_its_parent_or_its_connection() {
    check(
        "",
        "idle: parent_closed | exit",
        &expect![[r#"
        parent_closed -> CloseCommands, EndProgram(ShutDown)
        exit -> CloseCommands, Release
        over
    "#]],
    );
    check(
        "",
        "idle: disconnected gone | exit 1",
        &expect![[r#"
        disconnected gone -> CloseCommands, EndProgram(ShutDown)
        exit 1 -> CloseCommands, Release
        over
    "#]],
    );
    check(
        "",
        "idle: no_slot | exit",
        &expect![[r#"
        no_slot -> CloseCommands, EndProgram(ShutDown)
        exit -> CloseCommands, Release
        over
    "#]],
    );
}
