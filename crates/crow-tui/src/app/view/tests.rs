//! Frames as text: `│` at the right edge of the terminal, `▏` where the caret is.

mod children;
mod day;
mod fullscreen;
mod permissions;
mod searching;
mod unfolding;

use std::time::{Duration, Instant};

use crow_acp::{AgentUpdate, ConfigChoice, ConfigOption, OpenedSession};
use crow_core::{PlanEntry, PlanPriority, PlanStatus, SessionId, ToolCallContent, ToolCallStatus, ToolKind};
use expect_test::{Expect, expect};

use super::*;
use crate::{
    app::{
        event::AppEvent,
        state::{AppState, ClientFacts},
        update::update,
    },
    screen::ScreenSize,
    text::ColorTheme,
};

struct ViewStage {
    state: AppState,
    now: Instant,
}

impl ViewStage {
    fn new(columns: u16) -> Self {
        let facts = ClientFacts {
            agent: None,
            version: "1",
            cwd: "/home/me/project".into(),
            home: Some("/home/me".into()),
            agents: Vec::new(),
            mcp_servers: Vec::new(),
            has_vi_keys: false,
        };
        let theme = ColorTheme { has_color: false, is_light: false };
        let state = AppState::new(facts, ScreenSize { columns, rows: 24 }, theme, None);
        let mut stage = Self { state, now: Instant::now() };
        let choice = |name: &str| ConfigChoice { value: name.into(), name: name.into(), description: None };
        let option = |id: &str, current: &str| ConfigOption {
            id: id.into(),
            category: None,
            name: id.into(),
            current: current.into(),
            choices: vec![choice(current)],
        };
        let options = vec![option("model", "small"), option("mode", "ask")];
        let session = SessionId::new("brave-otter");
        stage.apply(AppEvent::SessionOpened(Ok(OpenedSession { session, options })));
        stage
    }

    fn apply(&mut self, event: AppEvent) {
        update(&mut self.state, event, self.now);
    }

    fn update(&mut self, update: AgentUpdate) {
        self.apply(AppEvent::Update { message: None, update });
    }

    fn type_text(&mut self, text: &str) {
        for letter in text.chars() {
            let code = if letter == '\n' {
                crate::screen::KeyCode::Enter
            } else {
                crate::screen::KeyCode::Char(letter)
            };
            let event = crate::screen::InputEvent::Key(crate::screen::KeyPress::plain(code));
            let read_at = self.now;
            self.apply(AppEvent::Input(crate::screen::TimedInput { event, read_at }));
        }
    }

    #[track_caller]
    fn check(&self, expected: &Expect) {
        let frame = view(&self.state, self.now);
        let mut shown = String::new();
        for row in &frame.history {
            shown.push_str(&format!("{}\n", row.text()));
        }
        shown.push_str("────\n");
        for (index, row) in frame.live.iter().enumerate() {
            assert!(row.width() < usize::from(self.state.size.columns), "{}", row.text());
            let is_caret_row = frame.caret.is_some_and(|caret| usize::from(caret.row) == index);
            let caret = if is_caret_row {
                format!(" ◂{}", frame.caret.map_or(0, |caret| caret.column))
            } else {
                String::new()
            };
            shown.push_str(format!("{}{caret}", row.text()).trim_end());
            shown.push('\n');
        }
        assert!(frame.live.len() <= self.state.size.live_rows_max());
        expected.assert_eq(&shown);
    }
}

fn call(id: &str, status: ToolCallStatus, content: Vec<ToolCallContent>) -> AgentUpdate {
    AgentUpdate::Call {
        id: id.into(),
        title: Some(format!("`{id}`")),
        kind: Some(ToolKind::Execute),
        status: Some(status),
        content: Some(content),
        input: None,
    }
}

fn working(columns: u16) -> ViewStage {
    let mut stage = ViewStage::new(columns);
    stage.type_text("fix the tests\n");
    stage.update(AgentUpdate::Thought("Where are they?\nLet me see.".into()));
    stage.update(AgentUpdate::Text("I look at the **tests** first, and then at the code.\n\nThen".into()));
    let entry = |text: &str, status| PlanEntry {
        text: text.into(),
        status,
        priority: PlanPriority::Medium,
        meta: None,
    };
    stage.update(AgentUpdate::Plan(vec![
        entry("Read the tests", PlanStatus::Completed),
        entry("Fix the code", PlanStatus::InProgress),
    ]));
    stage.update(call("cargo test", ToolCallStatus::InProgress, Vec::new()));
    let output = (1..=7).map(|number| format!("line {number}\n")).collect();
    stage.update(AgentUpdate::CallOutput { id: "cargo test".into(), text: output });
    stage.now += Duration::from_secs(65);
    stage
}

#[test]
fn empty_composer_fits_every_width() {
    ViewStage::new(40).check(&expect![[r#"
        ────
        › Ask anything ◂2
        crow · small · ask · ~/project
    "#]]);
    ViewStage::new(120).check(&expect![[r#"
        ────
        › Ask anything; / for commands, @ for files, ! for the shell ◂2
        crow · small · ask · ~/project · brave-otter
    "#]]);
}

#[test]
fn running_turn_shows_calls_plan_and_time() {
    working(60).check(&expect![[r#"
        › fix the tests

        ∴ Where are they? … 1 more lines

        I look at the tests first, and then at the code.

        Then
        ────

        ⠴ `cargo test` · 1 min 5 s
          … 2 earlier lines
          line 3
          line 4
          line 5
          line 6
          line 7

        Plan · 1 of 2 done
        ☑ Read the tests
        ▸ Fix the code
        ⠴ Running `cargo test` · 1 min 5 s · esc stops
        › Ask anything; / command, @ file, ! shell ◂2
        crow · small · ask · ~/project · brave-otter
    "#]]);
    working(40).check(&expect![[r#"
        › fix the tests

        ∴ Where are they? … 1 more lines

        I look at the tests first, and then at
        the code.

        Then
        ────

        ⠴ `cargo test` · 1 min 5 s
          … 2 earlier lines
          line 3
          line 4
          line 5
          line 6
          line 7

        Plan · 1 of 2 done
        ☑ Read the tests
        ▸ Fix the code
        ⠴ Running `cargo test` · 1 min 5 s
        › Ask anything ◂2
        crow · small · ask · ~/project
    "#]]);
}

#[test]
fn change_has_the_path_from_the_directory() {
    let mut stage = ViewStage::new(40);
    let change = |path: &str| ToolCallContent::Diff { path: path.into(), old: None, new: "a\n".into() };
    let paths = ["/home/me/project/src/a.rs", "/home/me/b.txt", "/etc/c"];
    stage.update(call("edit", ToolCallStatus::Completed, paths.map(change).to_vec()));
    stage.check(&expect![[r#"
        ✓ `edit`
          src/a.rs (new)  +1 −0
          1 + a
          ~/b.txt (new)  +1 −0
          1 + a
          /etc/c (new)  +1 −0
          1 + a
        ────

        › Ask anything ◂2
        crow · small · ask · ~/project
    "#]]);
}

#[test]
fn draft_wraps_and_has_the_caret() {
    let mut stage = ViewStage::new(40);
    stage.type_text("a rather long prompt that does not fit on one row");
    stage.check(&expect![[r#"
        ────
        › a rather long prompt that does not
          fit on one row ◂16
        crow · small · ask · ~/project
    "#]]);
}

#[test]
fn completions_are_above_the_composer() {
    let mut stage = ViewStage::new(80);
    stage.type_text("/th");
    stage.check(&expect![[r#"
        ────
        › /theme           Choose the colours
          /thinking LEVEL  Choose how much the model thinks
        › /th ◂5
        crow · small · ask · ~/project · brave-otter
    "#]]);
}

#[test]
fn question_shows_all_and_how_to_answer() {
    let mut stage = working(60);
    let option = |name: &str, allows, always| crow_acp::PermissionOption {
        id: name.into(),
        name: name.into(),
        allows,
        always,
        prefix: None,
    };
    let request = crow_acp::AgentPermissionRequest {
        subject: crow_acp::PermissionSubject::Call,
        call: "c".into(),
        title: "`rm`".into(),
        kind: ToolKind::Execute,
        input: Some(serde_json::json!({"command": "rm -rf \u{1b}[2J build\nrm b", "timeout": 5})),
        content: vec![ToolCallContent::Text("Reason: no rule covers `rm`.".into())],
        options: vec![option("Allow once", true, false), option("Reject", false, false)],
        offer: None,
    };
    stage.apply(AppEvent::Permission { id: 1, request: Box::new(request) });
    stage.check(&expect![[r#"
        › fix the tests

        ∴ Where are they? … 1 more lines

        I look at the tests first, and then at the code.

        Then
        ────

        ⠴ `cargo test` · 1 min 5 s
          … 2 earlier lines
          line 3
          line 4
          line 5
          line 6
          line 7
        Plan · 1 of 2 done
        ☑ Read the tests
        ▸ Fix the code
        ⠴ Waiting for your answer · 1 min 5 s · esc stops
        Allow this? Run a command
          Reason: no rule covers `rm`.
          rm -rf ␛[2J build
          rm b
          timeout: 5
          › y  Allow once
            n  Reject
            e  Reject and say what to do instead
        a key, or ↑↓ and enter · esc stops
        › Ask anything; / command, @ file, ! shell ◂2
        crow · small · ask · ~/project · brave-otter
    "#]]);
}
