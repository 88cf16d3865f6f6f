//! Tables: keys and events in, the composer and requests out.

mod completing;
mod drafts;
mod questions;
mod queue;
mod reading;
mod rewinding;
mod vi;

use std::time::{Duration, Instant};

use crow_acp::{AcpAgentCapabilities, AgentUpdate, OpenedSession, PromptOutcome, StopReason};
use crow_core::{CommandInfo, SessionId};
use expect_test::{Expect, expect};

use super::*;
use crate::{
    app::{
        keys::tests::parse_key,
        state::{AppOverlay, ClientFacts},
    },
    screen::{InputEvent, ScreenSize, TimedInput},
    text::ColorTheme,
};

/// A terminal client with a clock of its own, driven by words.
pub(super) struct Stage {
    pub(super) state: AppState,
    pub(super) now: Instant,
    log: String,
}

impl Stage {
    pub(super) fn new() -> Self {
        let facts = ClientFacts {
            agent: None,
            version: "1",
            cwd: "/work/project".into(),
            home: None,
            agents: Vec::new(),
            mcp_servers: Vec::new(),
            has_vi_keys: false,
        };
        let theme = ColorTheme { has_color: false, is_light: false };
        let state = AppState::new(facts, ScreenSize { columns: 60, rows: 20 }, theme, None);
        Self { state, now: Instant::now(), log: String::new() }
    }

    /// A client with an open session whose agent can be steered.
    pub(super) fn open() -> Self {
        let mut stage = Self::new();
        let capabilities = AcpAgentCapabilities { steering: true, ..AcpAgentCapabilities::default() };
        stage.apply(AppEvent::Connected(capabilities));
        let session = SessionId::new("s-1");
        stage.apply(AppEvent::SessionOpened(Ok(OpenedSession { session, options: Vec::new() })));
        let command = |name: &str| CommandInfo { name: name.into(), description: String::new(), hint: None };
        stage.state.session.commands = Some(vec![command("compact"), command("undo")]);
        stage.log.clear();
        stage
    }

    pub(super) fn apply(&mut self, event: AppEvent) {
        for command in update(&mut self.state, event, self.now) {
            if let AppCommand::StoreHistory(entry) = &command {
                self.log.push_str(&format!("history {:?}\n", entry.text));
            } else if command != AppCommand::ReadBranch {
                self.log.push_str(&format!("{command:?}\n"));
            }
        }
    }

    pub(super) fn wait(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
    }

    pub(super) fn input(&mut self, event: InputEvent) {
        self.wait(1);
        self.apply(AppEvent::Input(TimedInput { event, read_at: self.now }));
    }

    /// Presses keys by name; a word in quotes is typed, one in brackets pasted, `500ms` waits, `held-KEY`
    /// repeats a key, `turn-ends` ends the turn.
    pub(super) fn keys(&mut self, script: &str) {
        for word in script.split(' ').filter(|word| !word.is_empty()) {
            if let Some(text) = word.strip_prefix('\'') {
                for letter in text.trim_end_matches('\'').replace('_', " ").chars() {
                    self.input(InputEvent::Key(crate::screen::KeyPress::plain(
                        crate::screen::KeyCode::Char(letter),
                    )));
                }
            } else if let Some(text) = word.strip_prefix('[') {
                self.input(InputEvent::Paste {
                    content: text.trim_end_matches(']').replace('/', "\n"),
                    is_truncated: false,
                });
            } else if let Some(milliseconds) = word.strip_suffix("ms") {
                self.wait(milliseconds.parse().expect("a number"));
            } else if word == "turn-ends" {
                let outcome = PromptOutcome { stop_reason: StopReason::EndTurn, tokens_spent: None };
                self.apply(AppEvent::TurnEnded(Ok(outcome)));
            } else if word == "turn-cancelled" {
                let outcome = PromptOutcome { stop_reason: StopReason::Cancelled, tokens_spent: None };
                self.apply(AppEvent::TurnEnded(Ok(outcome)));
            } else if let Some(word) = word.strip_prefix("held-") {
                self.input(InputEvent::KeyRepeat(parse_key(word)));
            } else {
                self.input(InputEvent::Key(parse_key(word)));
            }
        }
    }

    /// Shows the requests since the last time, the composer with its caret, and a short message.
    pub(super) fn show(&mut self) -> String {
        let composer = &self.state.composer;
        let (before, after) = composer.text().split_at(composer.caret());
        let draft = format!("{before}|{after}").replace('\n', "⏎").replace(['\u{F0000}', '\u{F0001}'], "#");
        let flash = self.state.flash.take().map(|(text, _)| format!("flash: {text}\n")).unwrap_or_default();
        format!("{}{draft}\n{flash}", std::mem::take(&mut self.log))
    }
}

#[track_caller]
pub(super) fn check(stage: &mut Stage, keys: &str, expected: &Expect) {
    stage.keys(keys);
    expected.assert_eq(&stage.show());
}

#[test]
fn command_is_completed_when_the_agent_names_it_after_it_was_typed() {
    let mut stage = Stage::open();
    let commands = stage.state.session.commands.take().expect("the agent has commands");
    stage.keys("'/compac'");
    assert!(stage.state.completion.is_none());
    stage.apply(AppEvent::Update { message: None, update: AgentUpdate::Commands(commands) });
    check(
        &mut stage,
        "tab",
        &expect![[r#"
        /compact |
    "#]],
    );
}

#[test]
fn prompt_is_written_and_sent() {
    let mut stage = Stage::open();
    check(
        &mut stage,
        "'fix_the_tet' left 's' end shift-enter 'now' ctrl-a",
        &expect![[r#"
            fix the test⏎|now
        "#]],
    );
    check(
        &mut stage,
        "enter",
        &expect![[r#"
            history "fix the test\nnow"
            SendPrompt([Text("fix the test\nnow")])
            |
        "#]],
    );
    check(
        &mut stage,
        "turn-ends up",
        &expect![[r#"
            fix the test⏎now|
        "#]],
    );
    check(
        &mut stage,
        "ctrl-e 'x' backspace '\\' enter 'y'",
        &expect![[r#"
            fix the test⏎now⏎y|
        "#]],
    );
}

#[test]
fn long_paste_is_one_piece_and_short_one_is_text() {
    let mut stage = Stage::open();
    check(
        &mut stage,
        "'see_' [one/two] '_and_' [1/2/3/4/5/6/7/8/9/10] enter",
        &expect![[r#"
        history "see one\ntwo and 1\n2\n3\n4\n5\n6\n7\n8\n9\n10"
        SendPrompt([Text("see one\ntwo and 1\n2\n3\n4\n5\n6\n7\n8\n9\n10")])
        |
    "#]],
    );
    let shown = format!("{:?}", stage.state.cells.all());
    expect![[r#"[Prompt("see one\ntwo and [pasted 10 lines]")]"#]].assert_eq(&shown);
}

#[test]
fn unknown_command_is_refused_with_the_nearest() {
    let mut stage = Stage::open();
    check(
        &mut stage,
        "'/modle' esc enter",
        &expect![[r#"
        /modle|
        flash: there is no command /modle; did you mean /mode?
    "#]],
    );
    check(
        &mut stage,
        "ctrl-u '/compact_now' enter",
        &expect![[r#"
        history "/compact now"
        SendPrompt([Text("/compact now")])
        |
    "#]],
    );
    check(
        &mut stage,
        "turn-ends '/etc/hosts_is_broken' enter",
        &expect![[r#"
        history "/etc/hosts is broken"
        SendPrompt([Text("/etc/hosts is broken")])
        |
    "#]],
    );
    check(
        &mut stage,
        "turn-ends '/quit' enter",
        &expect![[r#"
        history "/quit"
        Quit
        |
    "#]],
    );
}

#[test]
fn ctrl_c_clears_keeps_the_draft_and_quits_at_the_second_press() {
    let mut stage = Stage::open();
    check(
        &mut stage,
        "'half_a_thought' ctrl-c",
        &expect![[r#"
        history "half a thought"
        |
        flash: ctrl-c again quits
    "#]],
    );
    check(
        &mut stage,
        "2000ms up",
        &expect![[r#"
        half a thought|
    "#]],
    );
    check(
        &mut stage,
        "ctrl-c ctrl-c",
        &expect![[r#"
        Quit
        |
        flash: ctrl-c again quits
    "#]],
    );
}

#[test]
fn quitting_keeps_the_draft() {
    let mut stage = Stage::open();
    check(
        &mut stage,
        "'go' enter 'later' tab 'draft' ctrl-c ctrl-c",
        &expect![[r#"
            history "go"
            SendPrompt([Text("go")])
            history "later"
            history "draft"
            history "later"
            CancelTurn
            Quit
            StoreDraft("later")
            later|
            flash: ctrl-c again quits
        "#]],
    );
}

#[test]
fn sequences_of_keys_work_and_expire() {
    let mut stage = Stage::open();
    check(
        &mut stage,
        "'text' ctrl-x ctrl-e",
        &expect![[r#"
        EditText("text")
        text|
    "#]],
    );
    check(
        &mut stage,
        "ctrl-u ctrl-x 2000ms ctrl-e esc",
        &expect![[r#"
        |
        flash: esc again goes back to an earlier prompt
    "#]],
    );
    check(
        &mut stage,
        "esc",
        &expect![[r#"
        |
        flash: there is no earlier prompt
    "#]],
    );
}

#[test]
fn history_is_searched() {
    let mut stage = Stage::open();
    stage.keys("'first_prompt' enter turn-ends 'second_thing' enter turn-ends 'draft'");
    stage.show();
    check(
        &mut stage,
        "ctrl-r 'prompt' enter",
        &expect![[r#"
        first prompt|
    "#]],
    );
    check(
        &mut stage,
        "ctrl-r 'thing' esc",
        &expect![[r#"
        first prompt|
    "#]],
    );
}

#[test]
fn commands_and_lists_open_and_close() {
    let mut stage = Stage::open();
    check(
        &mut stage,
        "'/res' tab enter",
        &expect![[r#"
        history "/resume "
        ListSessions
        |
    "#]],
    );
    check(
        &mut stage,
        "'/theme' enter",
        &expect![[r#"
        history "/theme"
        |
    "#]],
    );
    assert!(matches!(stage.state.overlay, Some(AppOverlay::Picker(_))));
    check(
        &mut stage,
        "'plain' enter",
        &expect![[r#"
        Redraw
        |
    "#]],
    );
    check(
        &mut stage,
        "ctrl-o",
        &expect![[r#"
        |
    "#]],
    );
    assert!(matches!(stage.state.overlay, Some(AppOverlay::Pager(_))));
    check(
        &mut stage,
        "q '!ls_-l' enter",
        &expect![[r#"
        history "!ls -l"
        RunCommand("ls -l")
        |
    "#]],
    );
}
