mod session_hint;

use crow_core::{PlanEntry, PlanStatus, ToolCallContent, ToolCallStatus};
use expect_test::{Expect, expect};

use super::*;
use crate::run::fake_terminal::FakeTerminal;

const SIZE: TerminalSize = TerminalSize { columns: 40, rows: 12 };

/// Sends a line to the screen. `look` adds the screen's content so far.
#[expect(clippy::too_many_lines, reason = "a table of commands")]
fn say(screen: &mut TerminalScreen<FakeTerminal, FakeTerminal>, line: &str) -> io::Result<()> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (id, text) = rest.split_once(' ').unwrap_or((rest, ""));
    let text_of = |text: &str| text.replace("\\n", "\n").replace("\\e", "\x1b").replace("\\t", "\t");
    let call = |title: Option<&str>, status, content| AgentUpdate::Call {
        id: id.into(),
        title: title.map(text_of),
        kind: None,
        status: Some(status),
        content,
        input: None,
    };
    let entry = |text: &str| {
        let status = match text.as_bytes()[0] {
            b'x' => PlanStatus::Completed,
            b'>' => PlanStatus::InProgress,
            _ => PlanStatus::Pending,
        };
        PlanEntry::new(text_of(&text[1..]), status)
    };
    match word {
        "begin" => screen.on_turn_start(),
        "beat" => screen.on_tick(),
        "stopping" => screen.on_stopping(),
        "pause" => screen.prepare_for_input(),
        "part" => screen.on_new_message(),
        "prompt" => screen.on_update(AgentUpdate::Prompt(text_of(rest))),
        "before" => screen.on_replay_start(rest.parse().unwrap()),
        "now" => screen.on_replay_end(),
        "text" => screen.on_update(AgentUpdate::Text(text_of(rest))),
        "thought" => screen.on_update(AgentUpdate::Thought(text_of(rest))),
        "notice" => screen.on_update(AgentUpdate::Notice(text_of(rest))),
        "plan" => screen.on_update(AgentUpdate::Plan(rest.split(',').map(entry).collect())),
        "call" => screen.on_update(call(Some(text), ToolCallStatus::Pending, Some(Vec::new()))),
        "run" => screen.on_update(call(None, ToolCallStatus::InProgress, None)),
        "done" => screen.on_update(call(None, ToolCallStatus::Completed, None)),
        "fail" => {
            let content = vec![ToolCallContent::Text(text_of(text))];
            screen.on_update(call(None, ToolCallStatus::Failed, Some(content)))
        }
        "edit" => {
            let (old, new) = text.split_once('|').unwrap();
            let diff = ToolCallContent::Diff { path: "a".into(), old: Some(text_of(old)), new: text_of(new) };
            screen.on_update(call(None, ToolCallStatus::Completed, Some(vec![diff])))
        }
        "cost" => {
            let cost = rest.trim().parse().ok();
            screen.on_update(AgentUpdate::Usage {
                used: 1,
                size: 2,
                tokens_spent: None,
                cost,
                is_estimate: false,
            })
        }
        "end" => screen.on_turn_end(PromptOutcome { stop_reason: StopReason::EndTurn, tokens_spent: None }),
        "rejected" => screen.on_turn_failed(&Failure::new(FailureKind::InvalidValue, "the prompt is empty")),
        "cancelled" => {
            screen.on_turn_end(PromptOutcome { stop_reason: StopReason::Cancelled, tokens_spent: None })
        }
        "goodbye" => {
            let retention = if id == "gone" { SessionRetention::Gone } else { SessionRetention::Stored };
            let agent = Some(id).filter(|id| !["", "gone"].contains(id));
            let continuation = ContinuationHint { agent, is_interactive: false };
            screen.on_session_end(&SessionId::new("brave-otter"), retention, continuation)
        }
        "leave" => {
            let continuation =
                ContinuationHint { agent: Some(id).filter(|id| !id.is_empty()), is_interactive: true };
            screen.on_session_end(&SessionId::new("brave-otter"), SessionRetention::Stored, continuation)
        }
        other => unreachable!("{other} is not a word of these tests"),
    }
}

fn play(script: &str, terminal: Option<TerminalSize>, seen: &FakeTerminal) -> String {
    let looks = terminal.map_or(MarkdownStyle::Plain, MarkdownStyle::Styled);
    let mut screen = TerminalScreen::with_writers(seen.clone(), seen.clone(), looks, terminal);
    let mut looked = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line == "look" {
            looked += &format!("{}----\n", seen.rendered_lines(SIZE.columns));
        } else {
            say(&mut screen, line).unwrap();
        }
    }
    looked
}

/// Compares the output on a terminal.
#[track_caller]
fn check(script: &str, expected: &Expect) {
    let seen = FakeTerminal::default();
    let looked = play(script, Some(SIZE), &seen);
    expected.assert_eq(&(looked + &seen.rendered_lines(SIZE.columns)));
}

/// Compares the output in a file.
#[track_caller]
fn check_file(script: &str, expected: &Expect) {
    let seen = FakeTerminal::default();
    play(script, None, &seen);
    expected.assert_eq(&seen.raw_text());
}

#[test]
fn replay_is_separated() {
    check(
        r"
        before 3
        prompt Read it.\nAll of it.
        call 1 Read a.txt
        done 1
        text Two lines.
        prompt And \ethen?
        text Nothing.
        now
        begin
        text New words.
        end
        ",
        &expect![[r#"
            (3 earlier prompts; --replay all shows t
            hem)

            > Read it.
            > All of it.
            ✓ Read a.txt

            Two lines.

            > And then?

            Nothing.

            (end of the replay)

            New words.
        "#]],
    );
}

#[test]
fn turn_is_shown_from_the_first_thought_to_the_end() {
    let script = r"
        begin
        thought Let me\n
        thought see.\n\n
        text \n\nI look
        text  at it.\n\n
        call 1 Read a.txt
        run 1
        done 1
        text Two lines.\nDone.
        end
        goodbye
    ";
    check(
        script,
        &expect![[r#"
            Let me
            see.

            I look at it.

            ✓ Read a.txt

            Two lines. Done.

            session     brave-otter
            continue
            crow-cli run -s brave-otter "…"
        "#]],
    );
    check_file(
        script,
        &expect![[r#"
        Let me
        see.
        I look at it.
        ✓ Read a.txt

        Two lines.
        Done.
        session     brave-otter
        continue    crow-cli run -s brave-otter "…"
    "#]],
    );
}

#[test]
fn calls_settle_in_place_and_in_order() {
    check(
        r"
        call 1 `make`
        call 2 Read a.txt
        call 3 Read b.txt
        run 1
        run 2
        look
        done 2
        fail 3 could not read it\nit is gone
        look
        beat
        done 1
        ",
        &expect![[r#"
            ⠋ `make`
            ⠋ Read a.txt
            ○ Read b.txt
            ----
            ⠋ `make`
            ✓ Read a.txt
            ✗ Read b.txt
            ----
            ✓ `make`
            ✓ Read a.txt
            ✗ Read b.txt
              could not read it
              it is gone
        "#]],
    );
}

#[test]
fn plan_is_below_the_calls_until_they_end() {
    check(
        r"
        call 1 Plan
        call 2 `make`
        plan >See,.Mend
        done 1
        look
        plan xSee,>Mend
        done 2
        plan xSee,xMend
        ",
        &expect![[r#"
            ✓ Plan
            ○ `make`
            ▸ See
            ☐ Mend
            ----
            ✓ Plan
            ✓ `make`
            ☑ See
            ▸ Mend
            ☑ Mend
            2/2 done
        "#]],
    );
}

#[test]
fn plan_is_written_completely_once() {
    let script = r"
        plan .See,.Mend,.See
        plan >See,.Mend,.See
        text I see
        plan >See,.Mend,.See
        text  a nest.
        plan xSee,>Mend,.See,.Sing
        plan xSee,xMend,xSee,.Sing
        end
        begin
        plan >Nest,.Fly
        end
    ";
    check_file(
        script,
        &expect![[r#"
            ☐ See
            ☐ Mend
            ☐ See
            ▸ See
            0/3 done
            I see a nest.
            ☑ See
            ▸ Mend
            ☐ Sing
            1/4 done
            ☑ Mend
            ☑ See
            3/4 done
            ▸ Nest
            ☐ Fly
        "#]],
    );
    check(
        script,
        &expect![[r#"
            ☐ See
            ☐ Mend
            ☐ See
            ▸ See
            0/3 done

            I see a nest.

            ☑ See
            ▸ Mend
            ☐ Sing
            1/4 done
            ☑ Mend
            ☑ See
            3/4 done
            ▸ Nest
            ☐ Fly
        "#]],
    );
}

#[test]
fn messages_are_separated() {
    let script = r"
        part
        text Spec written.
        part
        text still
        text  here.
        part
        text \n**A report**\n
        part
        text Another.
        thought Hm.
        part
        thought Hm hm.
        part
        text Done.
        end
    ";
    check_file(
        script,
        &expect![[r#"
        Spec written.
        still here.

        **A report**
        Another.
        Hm.
        Hm hm.

        Done.
    "#]],
    );
    check(
        script,
        &expect![[r#"
            Spec written.

            still here.

            A report

            Another.

            Hm.

            Hm hm.

            Done.
        "#]],
    );
}

#[test]
fn wait_for_the_model_is_shown_on_terminals_only() {
    check(
        r"
        begin
        beat
        look
        call 1 Read a
        done 1
        beat
        look
        text There.
        beat
        end
        beat
        ",
        &expect![[r#"
            ⠙ waiting for the model
            ----
            ✓ Read a
            ⠹ waiting for the model
            ----
            ✓ Read a

            There.
        "#]],
    );
}

#[test]
fn text_between_running_calls_stays() {
    check(
        r"
        call 1 `sleep 9`
        run 1
        notice The provider is busy; trying again in 2 s
        look
        text Meanwhile.
        look
        beat
        done 1
        ",
        &expect![[r#"
            The provider is busy; trying again in 2
            s
            ⠋ `sleep 9`
            ----
            The provider is busy; trying again in 2
            s

            Meanwhile.
            ----
            The provider is busy; trying again in 2
            s

            Meanwhile.

            ✓ `sleep 9`
        "#]],
    );
}

#[test]
fn titles_are_truncated_to_one_row() {
    check(
        r"
        call 1 日本語のとても長い題名日本語のとても長い題名
        call 2 a long title with a\nnew line and a\ttab that never ends
        call 3 🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀
        run 1
        done 3
        look
        done 1
        done 2
        ",
        &expect![[r#"
            ⠋ 日本語のとても長い題名日本語のとても…
            ○ a long title with a new line and a t…
            ✓ 🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀…
            ----
            ✓ 日本語のとても長い題名日本語のとても…
            ✓ a long title with a new line and a t…
            ✓ 🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀…
        "#]],
    );
}

#[test]
fn calls_beyond_the_screen_are_counted() {
    let calls: String = (1..=20).map(|n| format!("call {n} Read {n}\n")).collect();
    let ends: String = (1..=20).rev().map(|n| format!("done {n}\n")).collect();
    check(
        &format!("{calls}look\n{ends}"),
        &expect![[r#"
        ○ Read 1
        ○ Read 2
        ○ Read 3
        ○ Read 4
        ○ Read 5
        ○ Read 6
        ○ Read 7
        ○ Read 8
        ○ Read 9
        … 11 more
        ----
        ✓ Read 1
        ✓ Read 2
        ✓ Read 3
        ✓ Read 4
        ✓ Read 5
        ✓ Read 6
        ✓ Read 7
        ✓ Read 8
        ✓ Read 9
        ✓ Read 10
        ✓ Read 11
        ✓ Read 12
        ✓ Read 13
        ✓ Read 14
        ✓ Read 15
        ✓ Read 16
        ✓ Read 17
        ✓ Read 18
        ✓ Read 19
        ✓ Read 20
    "#]],
    );
}

#[test]
fn edit_shows_its_diff() {
    let script = r"
        call 1 Edit a
        edit 1 one\ntwo\nthree\nfour\n|one\n2\nthree\nfour\n
    ";
    check(
        script,
        &expect![[r#"
            ✓ Edit a
              a  +1 −1
              1   one
              2 - two
              2 + 2
              3   three
              4   four
        "#]],
    );
}

#[test]
fn cancelled_turn_is_marked() {
    check(
        r"
        text I wait
        call 1 `sleep 9`
        run 1
        stopping
        beat
        look
        cancelled
        pause
        text Again.
        end
        ",
        &expect![[r#"
            I wait

            ⠙ `sleep 9`
            ⠙ cancelling; press Ctrl-C again to ex…
            ----
            I wait

            ✗ `sleep 9`
            cancelled

            Again.
        "#]],
    );
}

#[test]
fn escape_codes_of_others_are_removed() {
    let hostile = r"\e[2Jclear \e]0;title\x07 \e[31mred \e\e[[5A \u{9b}2J half \e[";
    let hostile = hostile.replace("\\x07", "\x07").replace("\\u{9b}", "\u{9b}");
    let lines =
        ["text", "thought", "notice", "call 1", "fail 1", "plan >"].map(|word| format!("{word} {hostile}\n"));
    check_file(
        &lines.concat(),
        &expect![[r#"
            clear  red 5A  half
            clear  red 5A  half
            clear  red 5A  half
            ✗ clear  red 5A  half
              clear  red 5A  half
            ▸ clear  red 5A  half
        "#]],
    );
}

#[test]
fn session_without_a_prompt_gets_no_hint() {
    let seen = FakeTerminal::default();
    play("goodbye", Some(SIZE), &seen);
    assert_eq!(seen.raw_text(), "");
}

#[test]
fn session_of_another_agent_is_continued_with_that_agent() {
    let seen = FakeTerminal::default();
    play("begin\ntext Done.\nend\ngoodbye codex", Some(SIZE), &seen);
    expect![[r#"
        Done.

        session     brave-otter
        continue
        crow-cli run --agent codex \
        -s brave-otter "…"
    "#]]
    .assert_eq(&seen.rendered_lines(SIZE.columns));
}
