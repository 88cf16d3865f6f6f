//! The output of a hook: text that blocks never counts as an approval, and no decision is longer than its limit.
//!
//! The input is a byte for the event and the exit, and stdout and stderr, separated by a zero byte.
#![no_main]

use std::time::Duration;

use crow_core::{HookDecision, HookEvent, HookExit, read_hook};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const EVENTS: [HookEvent; 4] =
    [HookEvent::UserPromptSubmit, HookEvent::PreToolUse, HookEvent::PostToolUse, HookEvent::Stop];

/// Twice the limit of a reason, which has room for a note.
const DECISION_CHARS_MAX: usize = 32_000;

fn exit(number: u8) -> HookExit {
    match number {
        0..=4 => HookExit::Exited(0),
        5 => HookExit::Exited(2),
        6 => HookExit::Exited(1),
        7 => HookExit::Signalled(9),
        8 => HookExit::TimedOut(Duration::from_secs(60)),
        _ => HookExit::NotStarted("it does not exist".to_owned()),
    }
}

fn text_of(decision: &HookDecision) -> &str {
    match decision {
        HookDecision::NoDecision => "",
        HookDecision::Context(text)
        | HookDecision::Block(text)
        | HookDecision::ContinueTurn(text)
        | HookDecision::EndTurn(text)
        | HookDecision::Failed(text) => text,
    }
}

fn blocks(stdout: &str) -> bool {
    let answer: Option<Value> = serde_json::from_str(stdout).ok();
    let decision = answer.as_ref().and_then(|answer| answer.get("decision")?.as_str());
    decision.is_some_and(|decision| ["block", "deny"].contains(&decision))
}

fuzz_target!(|data: &[u8]| {
    let [selector, output @ ..] = data else { return };
    let Ok(output) = std::str::from_utf8(output) else { return };
    let (stdout, stderr) = output.split_once('\0').unwrap_or((output, ""));
    let (event, exit) = (EVENTS[usize::from(selector % 4)], exit(selector / 4 % 10));
    let decision = read_hook(event, &exit, stdout, stderr);
    assert!(text_of(&decision).chars().count() <= DECISION_CHARS_MAX);
    let is_answer = exit == HookExit::Exited(0);
    match decision {
        HookDecision::NoDecision | HookDecision::Context(_) => {
            assert!(exit == HookExit::Exited(2) || is_answer, "{exit:?}");
            assert!(!(is_answer && event == HookEvent::PreToolUse && blocks(stdout)), "{stdout}");
            assert!(!(exit == HookExit::Exited(2) && event == HookEvent::PreToolUse), "{stderr}");
        }
        HookDecision::ContinueTurn(_) => assert_eq!(event, HookEvent::Stop),
        HookDecision::Block(_) | HookDecision::EndTurn(_) | HookDecision::Failed(_) => {}
    }
});
