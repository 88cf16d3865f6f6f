use std::time::Duration;

use expect_test::{Expect, expect};
use serde_json::Map;

use super::*;
use crate::{CallId, ContentPart, SessionId, ToolArguments, ToolCall, ToolResult};

/// Renders the decision for each event, in the order of [`HookEvent::ALL`]; one line if all are the same.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]
fn check(exit: HookExit, stdout: &str, stderr: &str, expect: Expect) {
    let said = HookEvent::ALL.map(|event| format!("{:?}", parse_hook_output(event, &exit, stdout, stderr)));
    let same = said.iter().all(|one| *one == said[0]);
    let lines = HookEvent::ALL.iter().zip(&said).map(|(event, said)| format!("{}: {said}", event.as_str()));
    expect.assert_eq(&if same { said[0].clone() } else { lines.collect::<Vec<_>>().join("\n") });
}

#[track_caller]
fn check_answer(stdout: &str, expect: Expect) {
    check(HookExit::Exited(0), stdout, "a word on the side", expect);
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]
fn check_matcher(text: &str, expect: Expect) {
    let tools = ["read", "edit", "terminal", "terminal_list", "mcp__docs__find"];
    expect.assert_eq(&match HookMatcher::parse(text) {
        Ok(matcher) => {
            tools.into_iter().filter(|tool| matcher.matches_tool(tool)).collect::<Vec<_>>().join(" ")
        }
        Err(bad) => format!("{text} {bad}"),
    });
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]
fn check_told(moment: HookInput<'_>, expect: Expect) {
    let session = SessionId::new("brave-otter");
    expect.assert_eq(&moment.to_json(HookSession { session: &session, cwd: "/project" }));
}

#[test]
fn matcher_matches_whole_names() {
    check_matcher("", expect!["read edit terminal terminal_list mcp__docs__find"]);
    check_matcher("*", expect!["read edit terminal terminal_list mcp__docs__find"]);
    check_matcher("terminal", expect!["terminal"]);
    check_matcher("edit|terminal", expect!["edit terminal"]);
    check_matcher("terminal.*", expect!["terminal terminal_list"]);
    check_matcher("mcp__.*", expect!["mcp__docs__find"]);
    check_matcher("Edit", expect![""]);
    check_matcher(r"\w+", expect!["read edit terminal terminal_list mcp__docs__find"]);
}

#[test]
fn matcher_rejects_invalid_expressions() {
    check_matcher("(edit", expect!["(edit is not a regular expression: unclosed group"]);
    check_matcher("edit)|(read", expect!["edit)|(read is not a regular expression: unopened group"]);
    assert!(!HookMatcher::parse(&"a".repeat(200)).unwrap().matches_tool("a"));
    assert_eq!(HookMatcher::parse(&"a".repeat(201)).unwrap_err(), HookMatcherError::TooLarge);
    check_matcher(r"(\w{50}){50}", expect![r"(\w{50}){50} is too large for a matcher"]);
    check_matcher("+", expect!["+ is not a regular expression: repetition operator missing expression"]);
}

#[test]
fn output_without_object_is_no_decision() {
    check_answer("", expect!["NoDecision"]);
    check_answer("  \n", expect!["NoDecision"]);
    check_answer("{}", expect!["NoDecision"]);
    check_answer(
        "checked 3 files\n",
        expect![[r#"
            PreToolUse: NoDecision
            PostToolUse: NoDecision
            UserPromptSubmit: Context("checked 3 files")
            Stop: NoDecision"#]],
    );
    check_answer(
        "[1]",
        expect![[r#"
            PreToolUse: Failed("its answer is JSON but not an object: a word on the side")
            PostToolUse: NoDecision
            UserPromptSubmit: Failed("its answer is JSON but not an object: a word on the side")
            Stop: NoDecision"#]],
    );
    check_answer(r#"{"continue":true,"suppressOutput":true,"note":1}"#, expect!["NoDecision"]);
}

#[test]
fn byte_order_mark_does_not_hide_block() {
    check_answer(
        "\u{feff}{\"decision\":\"block\",\"reason\":\"no\"}",
        expect![[r#"
            PreToolUse: Block("no")
            PostToolUse: Context("no")
            UserPromptSubmit: Block("no")
            Stop: ContinueTurn("no")"#]],
    );
}

#[test]
fn approval_is_no_permission() {
    check_answer(r#"{"decision":"approve","reason":"looks fine"}"#, expect!["NoDecision"]);
    check_answer(
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"ok"}}"#,
        expect!["NoDecision"],
    );
}

#[test]
fn block_depends_on_event() {
    check_answer(
        r#"{"decision":"block","reason":" no pushes "}"#,
        expect![[r#"
            PreToolUse: Block("no pushes")
            PostToolUse: Context("no pushes")
            UserPromptSubmit: Block("no pushes")
            Stop: ContinueTurn("no pushes")"#]],
    );
    check_answer(
        r#"{"decision":"block"}"#,
        expect![[r#"
            PreToolUse: Block("it gave no reason")
            PostToolUse: Context("rejected without a reason")
            UserPromptSubmit: Block("it gave no reason")
            Stop: ContinueTurn("it gave no reason")"#]],
    );
    check_answer(
        r#"{"reason":"too late in the day"}"#,
        expect![[r#"
            PreToolUse: Block("too late in the day")
            PostToolUse: Context("too late in the day")
            UserPromptSubmit: Block("too late in the day")
            Stop: ContinueTurn("too late in the day")"#]],
    );
    check_answer(
        r#"{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"not here"}}"#,
        expect![[r#"
            PreToolUse: Block("not here")
            PostToolUse: Context("not here")
            UserPromptSubmit: Block("not here")
            Stop: ContinueTurn("not here")"#]],
    );
    check_answer(
        r#"{"decision":"block","reason":"bad style","context":"see STYLE.md"}"#,
        expect![[r#"
            PreToolUse: Block("bad style")
            PostToolUse: Context("bad style\nsee STYLE.md")
            UserPromptSubmit: Block("bad style")
            Stop: ContinueTurn("bad style")"#]],
    );
}

#[test]
fn block_in_any_field_counts() {
    check_answer(
        r#"{"decision":"approve","hookSpecificOutput":{"permissionDecision":"deny"}}"#,
        expect![[r#"
            PreToolUse: Block("it gave no reason")
            PostToolUse: Context("rejected without a reason")
            UserPromptSubmit: Block("it gave no reason")
            Stop: ContinueTurn("it gave no reason")"#]],
    );
    check_answer(
        r#"{"decision":"block","hookSpecificOutput":{"permissionDecision":"allow"}}"#,
        expect![[r#"
            PreToolUse: Block("it gave no reason")
            PostToolUse: Context("rejected without a reason")
            UserPromptSubmit: Block("it gave no reason")
            Stop: ContinueTurn("it gave no reason")"#]],
    );
}

#[test]
fn context_is_added() {
    check_answer(
        r#"{"context":"use tabs"}"#,
        expect![[r#"
            PreToolUse: Context("use tabs")
            PostToolUse: Context("use tabs")
            UserPromptSubmit: Context("use tabs")
            Stop: NoDecision"#]],
    );
    check_answer(
        r#"{"hookSpecificOutput":{"additionalContext":"use tabs"}}"#,
        expect![[r#"
            PreToolUse: Context("use tabs")
            PostToolUse: Context("use tabs")
            UserPromptSubmit: Context("use tabs")
            Stop: NoDecision"#]],
    );
    check_answer(r#"{"context":" "}"#, expect!["NoDecision"]);
}

#[test]
fn end_takes_precedence() {
    check_answer(
        r#"{"continue":false,"stopReason":"budget","decision":"approve"}"#,
        expect![[r#"
            PreToolUse: EndTurn("budget")
            PostToolUse: EndTurn("budget")
            UserPromptSubmit: Block("budget")
            Stop: NoDecision"#]],
    );
    check_answer(
        r#"{"continue":false,"decision":"block","reason":"why"}"#,
        expect![[r#"
            PreToolUse: EndTurn("why")
            PostToolUse: EndTurn("why")
            UserPromptSubmit: Block("why")
            Stop: NoDecision"#]],
    );
}

#[test]
fn exit_code_two_blocks() {
    check(
        HookExit::Exited(2),
        r#"{"decision":"approve"}"#,
        "no\npushes\n",
        expect![[r#"
            PreToolUse: Block("no\npushes")
            PostToolUse: Context("no\npushes")
            UserPromptSubmit: Block("no\npushes")
            Stop: ContinueTurn("no\npushes")"#]],
    );
    check(
        HookExit::Exited(2),
        "",
        "",
        expect![[r#"
            PreToolUse: Block("it gave no reason")
            PostToolUse: Context("rejected without a reason")
            UserPromptSubmit: Block("it gave no reason")
            Stop: ContinueTurn("it gave no reason")"#]],
    );
}

#[test]
fn other_exits_are_failures() {
    let reason = |exit: HookExit, expect: Expect| check(exit, "{}", "", expect);
    reason(HookExit::Exited(1), expect![[r#"Failed("it exited with code 1")"#]]);
    reason(HookExit::Exited(127), expect![[r#"Failed("it exited with code 127")"#]]);
    reason(HookExit::Signalled(9), expect![[r#"Failed("it was ended by signal 9")"#]]);
    reason(
        HookExit::TimedOut(Duration::from_secs(3)),
        expect![[r#"Failed("it exceeded its timeout of 3 s")"#]],
    );
    reason(
        HookExit::NotStarted("there is no folder /gone".to_owned()),
        expect![[r#"Failed("it could not be started: there is no folder /gone")"#]],
    );
    check(
        HookExit::Exited(1),
        "",
        "sh: 1: jq: not found\n",
        expect![[r#"Failed("it exited with code 1: sh: 1: jq: not found")"#]],
    );
}

#[test]
fn invalid_answer_is_failure() {
    check_answer(
        "{decision: block}",
        expect![[
            r#"Failed("its answer is not JSON: key must be a string at line 1 column 2: a word on the side")"#
        ]],
    );
    check_answer(
        r#"{"decision":"block"} trailing"#,
        expect![[
            r#"Failed("its answer is not JSON: trailing characters at line 1 column 22: a word on the side")"#
        ]],
    );
    check_answer(
        r#"{"decision":true}"#,
        expect![[r#"Failed("its answer has a `decision` that is not a string: a word on the side")"#]],
    );
    check_answer(
        r#"{"decision":"maybe"}"#,
        expect![[r#"Failed("its answer has an unknown value of `decision`: a word on the side")"#]],
    );
    check_answer(
        r#"{"reason":["a"]}"#,
        expect![[r#"Failed("its answer has a `reason` that is not a string: a word on the side")"#]],
    );
    check_answer(
        r#"{"continue":"no"}"#,
        expect![[r#"Failed("its answer has a `continue` that is not true or false: a word on the side")"#]],
    );
    check_answer(
        r#"{"hookSpecificOutput":[]}"#,
        expect![[
            r#"Failed("its answer has a `hookSpecificOutput` that is not an object: a word on the side")"#
        ]],
    );
    check_answer(
        r#"{"hookSpecificOutput":{"permissionDecision":"ask"}}"#,
        expect![[
            r#"Failed("its answer has an unknown value of `hookSpecificOutput.permissionDecision`: a word on the side")"#
        ]],
    );
    check_answer(
        r#"{"hookSpecificOutput":{"updatedInput":{"command":"ls"}}}"#,
        expect![[
            r#"Failed("its answer has `hookSpecificOutput.updatedInput`, which Crow does not support: a word on the side")"#
        ]],
    );
}

#[test]
fn texts_are_truncated() {
    let HookDecision::Block(reason) =
        parse_hook_output(HookEvent::PreToolUse, &HookExit::Exited(2), "", &"ä".repeat(20_000))
    else {
        panic!("it blocks");
    };
    assert_eq!(reason.chars().filter(|&letter| letter == 'ä').count(), 16_000);
    let said = parse_hook_output(
        HookEvent::Stop,
        &HookExit::Exited(1),
        "",
        &format!("{}the end", "ö".repeat(1_000)),
    );
    let HookDecision::Failed(why) = said else { panic!("it failed") };
    assert_eq!(why.chars().filter(|&letter| letter == 'ö').count(), 393);
    assert!(why.ends_with("öthe end"));
}

#[test]
fn input_json_of_each_event() {
    let mut arguments = Map::new();
    arguments.insert("command".to_owned(), "ls".into());
    let call = &ToolCall {
        id: CallId::from_position(1, 0),
        provider_id: "1".to_owned(),
        name: "terminal".to_owned(),
        arguments: ToolArguments::Valid(arguments),
    };
    check_told(
        HookInput::BeforeCall(call),
        expect![[r#"
        {"session_id":"brave-otter","cwd":"/project","hook_event_name":"PreToolUse","tool_name":"terminal","tool_input":{"command":"ls"}}
    "#]],
    );
    let outcome = &ToolResult::failure("exit code 1");
    check_told(
        HookInput::AfterCall { call, result: outcome },
        expect![[r#"
        {"session_id":"brave-otter","cwd":"/project","hook_event_name":"PostToolUse","tool_name":"terminal","tool_input":{"command":"ls"},"tool_response":{"status":"failed","text":"exit code 1"}}
    "#]],
    );
    let parts = &[ContentPart::Text("say \"hi\"".to_owned())];
    check_told(
        HookInput::Prompt { parts },
        expect![[r#"
        {"session_id":"brave-otter","cwd":"/project","hook_event_name":"UserPromptSubmit","prompt":"say \"hi\""}
    "#]],
    );
    check_told(
        HookInput::Stop { reply: "Done.", n_continuations: 0 },
        expect![[r#"
        {"session_id":"brave-otter","cwd":"/project","hook_event_name":"Stop","stop_reason":"end_turn","stop_hook_active":false,"last_assistant_message":"Done."}
    "#]],
    );
    check_told(
        HookInput::Stop { reply: "Done.", n_continuations: 1 },
        expect![[r#"
        {"session_id":"brave-otter","cwd":"/project","hook_event_name":"Stop","stop_reason":"end_turn","stop_hook_active":true,"last_assistant_message":"Done."}
    "#]],
    );
}

#[test]
fn name_is_truncated_first_line() {
    let hook = |command: &str| HookConfig {
        event: HookEvent::Stop,
        matcher: HookMatcher::default(),
        command: command.to_owned(),
        timeout: Duration::from_secs(1),
    };
    assert_eq!(hook(" ./check.sh --all\nexit 2").name(), "./check.sh --all");
    assert_eq!(hook(&"x".repeat(70)).name(), format!("{}…", "x".repeat(60)));
}

/// Renders what a hook's decision does to a call and to a prompt, and the notice for the user.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]
fn check_effect(event: HookEvent, decision: Option<HookDecision>, expect: Expect) {
    let hook = HookConfig {
        event,
        matcher: HookMatcher::default(),
        command: "./check".into(),
        timeout: Duration::from_secs(1),
    };
    let results = || {
        let mut results = HookResults::default();
        let notice = results.add_decision(&hook, decision.clone());
        (results, notice)
    };
    let call = match results().0.into_call_context() {
        Ok(context) => {
            let mut result = ToolResult::success("done");
            append_hook_context(&mut result, context);
            format!("{:?}", result.for_model)
        }
        Err(result) => format!("{:?} {:?}", result.status, result.for_model),
    };
    let prompt = match results().0.into_prompt(vec![ContentPart::Text("hello".into())]) {
        Ok(parts) => format!("{parts:?}"),
        Err(rejection) => format!("{rejection:?} {}", rejection.clone().into_failure().message),
    };
    expect.assert_eq(&format!("call: {call}\nprompt: {prompt}\nnotice: {:?}\n", results().1));
}

#[test]
fn hook_decisions_stop_what_they_object_to() {
    let text = |text: &str| text.to_owned();
    check_effect(
        HookEvent::PreToolUse,
        Some(HookDecision::NoDecision),
        expect![[r#"
        call: [Text("done")]
        prompt: [Text("hello")]
        notice: None
    "#]],
    );
    check_effect(
        HookEvent::PreToolUse,
        Some(HookDecision::Context(text("mind the gap"))),
        expect![[r#"
        call: [Text("done"), Text("(a hook says) mind the gap")]
        prompt: [Text("hello"), FromCrow { kind: PromptHook, text: "mind the gap" }]
        notice: None
    "#]],
    );
    check_effect(
        HookEvent::PreToolUse,
        Some(HookDecision::Block(text("no"))),
        expect![[r#"
        call: Failed [Text("not run: a hook rejected it: no")]
        prompt: Rejected("Not sent: a hook rejected it: no") Not sent: a hook rejected it: no
        notice: None
    "#]],
    );
    check_effect(
        HookEvent::Stop,
        Some(HookDecision::ContinueTurn(text("more"))),
        expect![[r#"
        call: Failed [Text("not run: more")]
        prompt: Rejected("Not sent: more") Not sent: more
        notice: None
    "#]],
    );
    check_effect(
        HookEvent::PostToolUse,
        Some(HookDecision::EndTurn(text("enough"))),
        expect![[r#"
        call: Failed [Text("not run: a hook ended the turn here: enough")]
        prompt: Rejected("Not sent: enough") Not sent: enough
        notice: Some("A hook ended the turn: enough")
    "#]],
    );
    check_effect(
        HookEvent::PreToolUse,
        None,
        expect![[r#"
        call: Failed [Text("not run: the turn was cancelled")]
        prompt: Cancelled the turn was cancelled before the model read this; send it as a prompt
        notice: None
    "#]],
    );
}

#[test]
fn hook_that_fails_stops_only_what_it_must_approve() {
    let failed = || Some(HookDecision::Failed("exit code 3".into()));
    check_effect(
        HookEvent::UserPromptSubmit,
        failed(),
        expect![[r#"
        call: Failed [Text("not run: the hook `./check`, which must approve it, failed: exit code 3")]
        prompt: Rejected("Not sent: the hook `./check`, which must approve it, failed: exit code 3") Not sent: the hook `./check`, which must approve it, failed: exit code 3
        notice: Some("The UserPromptSubmit hook `./check` failed: exit code 3")
    "#]],
    );
    check_effect(
        HookEvent::PostToolUse,
        failed(),
        expect![[r#"
        call: [Text("done")]
        prompt: [Text("hello")]
        notice: Some("The PostToolUse hook `./check` failed: exit code 3")
    "#]],
    );
}
