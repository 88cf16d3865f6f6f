//! The children of a session: the list, a look into one, and back.

use super::*;
use crate::screen::{InputEvent, KeyCode, KeyPress, TimedInput};

impl ViewStage {
    fn child(&mut self, session: &str, title: &str, is_running: bool) {
        let title = Some(title.to_owned());
        let session = SessionId::new(session);
        self.update(AgentUpdate::Child { session, title, is_running: Some(is_running) });
    }

    fn grandchild(&mut self, parent: &str, session: &str, title: &str) {
        let (session, title) = (SessionId::new(session), Some(title.to_owned()));
        self.child_update(parent, AgentUpdate::Child { session, title, is_running: Some(true) });
    }

    fn child_update(&mut self, session: &str, update: AgentUpdate) {
        self.apply(AppEvent::ChildUpdate { session: SessionId::new(session), message: None, update });
    }

    fn press(&mut self, code: KeyCode) {
        let event = InputEvent::Key(KeyPress::plain(code));
        self.apply(AppEvent::Input(TimedInput { event, read_at: self.now }));
    }
}

#[test]
fn children_are_listed_and_looked_into() {
    let mut stage = ViewStage::new(80);
    stage.child("calm-owl", "Review the parser", true);
    stage.child("keen-fox", "codex: Review the store", true);
    stage.child_update("calm-owl", call("cargo test", ToolCallStatus::InProgress, Vec::new()));
    stage.child_update("keen-fox", AgentUpdate::Text("I found **nothing**.\n".into()));
    stage.now += Duration::from_secs(12);
    stage.child("keen-fox", "codex: Review the store", false);
    stage.type_text("/agents\n");
    stage.check(&expect![[r#"
        ────
        Agents of this session:  ◂24
        › ├ Review the parser        working · 12 s · `cargo test`
          └ codex: Review the store  idle · 12 s · I found **nothing**.
        2 · type to search · enter chooses · esc closes
        crow · small · ask · ~/project · brave-otter
    "#]]);
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    stage.child_update("keen-fox", AgentUpdate::Text("And one more thing.".into()));
    let frame = view(&stage.state, stage.now);
    let shown: String = frame.live.iter().map(|row| row.text() + "\n").collect();
    expect![[r#"
        codex: Review the store · keen-fox · rows to 3 of 3
        I found nothing.

        And one more thing.
        ↑↓ space scroll · / search · n next match · q closes
    "#]]
    .assert_eq(&shown);
    stage.press(KeyCode::Escape);
    stage.check(&expect![[r#"
        ────
        Agents of this session:  ◂24
          ├ Review the parser        working · 12 s · `cargo test`
        › └ codex: Review the store  idle · 12 s · And one more thing.
        2 · type to search · enter chooses · esc closes
        crow · small · ask · ~/project · brave-otter
    "#]]);
}

#[test]
fn children_of_children_are_a_tree() {
    let mut stage = ViewStage::new(80);
    stage.child("calm-owl", "Review", true);
    stage.grandchild("calm-owl", "keen-fox", "Parser");
    stage.child("wide-elk", "Document", true);
    stage.grandchild("keen-fox", "tidy-bee", "Lexer");
    stage.grandchild("calm-owl", "loud-jay", "Store");
    stage.grandchild("unknown", "lost-ant", "Of an agent that was forgotten");
    // It is its own parent, or that of its parent: neither ends in a circle.
    stage.grandchild("odd-ape", "odd-ape", "Circle");
    stage.child_update("tidy-bee", AgentUpdate::Text("I read the tokens.".into()));
    stage.type_text("/agents\n");
    stage.check(&expect![[r#"
        ────
        Agents of this session:  ◂24
        › ├ Review                          working · 0 s ·
          │ ├ Parser                        working · 0 s ·
          │ │ └ Lexer                       working · 0 s · I read the tokens.
          │ └ Store                         working · 0 s ·
          ├ Document                        working · 0 s ·
          ├ Of an agent that was forgotten  working · 0 s ·
          └ Circle                          working · 0 s ·
        7 · type to search · enter chooses · esc closes
        crow · small · ask · ~/project · brave-otter
    "#]]);
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    let frame = view(&stage.state, stage.now);
    let shown: String = frame.live.iter().map(|row| row.text() + "\n").collect();
    expect![[r#"
        Lexer · tidy-bee · rows to 1 of 1
        I read the tokens.
        ↑↓ space scroll · / search · n next match · q closes
    "#]]
    .assert_eq(&shown);
    stage.press(KeyCode::Escape);
    stage.check(&expect![[r#"
        ────
        Agents of this session:  ◂24
          ├ Review                          working · 0 s ·
          │ ├ Parser                        working · 0 s ·
        › │ │ └ Lexer                       working · 0 s · I read the tokens.
          │ └ Store                         working · 0 s ·
          ├ Document                        working · 0 s ·
          ├ Of an agent that was forgotten  working · 0 s ·
          └ Circle                          working · 0 s ·
        7 · type to search · enter chooses · esc closes
        crow · small · ask · ~/project · brave-otter
    "#]]);
}

#[test]
fn without_children_the_agents_are_named() {
    let mut stage = ViewStage::new(80);
    stage.type_text("/agents\n");
    stage.check(&expect![[r#"
        • no agent works for this session
          no agents are configured
        ────

        › Ask anything; / for commands, @ for files, ! for the shell ◂2
        crow · small · ask · ~/project · brave-otter
    "#]]);
}

#[test]
fn call_folds_in_the_transcript() {
    let mut stage = working(80);
    let event = InputEvent::Key(crate::app::keys::tests::parse_key("ctrl-o"));
    stage.apply(AppEvent::Input(TimedInput { event, read_at: stage.now }));
    stage.press(KeyCode::Tab);
    let shown = |stage: &ViewStage| {
        let frame = view(&stage.state, stage.now);
        frame.live.iter().map(|row| row.text() + "\n").collect::<String>()
    };
    expect![[r#"
        Transcript · rows to 17 of 17
        › fix the tests

        ∴ Where are they?
          Let me see.

        I look at the tests first, and then at the code.

        Then

        ⠴ `cargo test` · 1 min 5 s ◂
          line 1
          line 2
          line 3
          line 4
          line 5
          line 6
          line 7
        ↑↓ space scroll · tab selects a call, enter folds it · / search · q closes
    "#]]
    .assert_eq(&shown(&stage));
    stage.press(KeyCode::Enter);
    expect![[r#"
        Transcript · rows to 10 of 10
        › fix the tests

        ∴ Where are they?
          Let me see.

        I look at the tests first, and then at the code.

        Then

        ⠴ `cargo test` · 1 min 5 s · 7 rows folded ◂
        ↑↓ space scroll · tab selects a call, enter folds it · / search · q closes
    "#]]
    .assert_eq(&shown(&stage));
}
