//! The newest call shown whole, and what else a call shows.

use super::*;
use crate::{
    app::keys::tests::parse_key,
    screen::{InputEvent, TimedInput},
};

pub(super) fn press(stage: &mut ViewStage, key: &str) {
    stage.apply(AppEvent::Input(TimedInput { event: InputEvent::Key(parse_key(key)), read_at: stage.now }));
}

fn printed(id: &str, n_lines: usize) -> AgentUpdate {
    let lines: Vec<String> = (1..=n_lines).map(|line| format!("{id} line {line}")).collect();
    call(id, ToolCallStatus::Completed, vec![ToolCallContent::Text(lines.join("\n"))])
}

#[test]
fn newest_call_is_unfolded_and_folded() {
    let mut stage = ViewStage::new(60);
    press(&mut stage, "alt-o");
    stage.update(printed("ls", 6));
    // It is in the history, folded.
    press(&mut stage, "alt-o");
    stage.check(&expect![[r#"
        ✓ `ls`
          … 3 earlier lines
          ls line 4
          ls line 5
          ls line 6
        ────

        ✓ `ls`
          ls line 1
          ls line 2
          ls line 3
          ls line 4
          ls line 5
          ls line 6

        › Ask anything; / command, @ file, ! shell ◂2
        there is no call yet
    "#]]);
    press(&mut stage, "alt-o");
    stage.check(&expect![[r#"
        ✓ `ls`
          … 3 earlier lines
          ls line 4
          ls line 5
          ls line 6
        ────

        › Ask anything; / command, @ file, ! shell ◂2
        there is no call yet
    "#]]);
}

#[test]
fn unfolded_call_is_cut_and_gives_way_to_a_newer_one() {
    let mut stage = ViewStage::new(60);
    stage.state.size.rows = 10;
    stage.update(printed("find", 60));
    press(&mut stage, "alt-o");
    stage.check(&expect![[r#"
        ✓ `find`
          … 57 earlier lines
          find line 58
          find line 59
          find line 60
        ────
        … 56 rows above · ctrl-o shows all
          find line 55
          find line 56
          find line 57
          find line 58
          find line 59
          find line 60
        › Ask anything; / command, @ file, ! shell ◂2
        crow · small · ask · ~/project · brave-otter
    "#]]);
    stage.update(printed("cat", 1));
    stage.check(&expect![[r#"
        ✓ `find`
          … 57 earlier lines
          find line 58
          find line 59
          find line 60
        ✓ `cat`
          cat line 1
        ────

        › Ask anything; / command, @ file, ! shell ◂2
        crow · small · ask · ~/project · brave-otter
    "#]]);
}

#[test]
fn running_call_is_unfolded_in_its_place() {
    let mut stage = working(40);
    press(&mut stage, "ctrl-x");
    press(&mut stage, "ctrl-o");
    stage.check(&expect![[r#"
        › fix the tests

        ∴ Where are they? … 1 more lines

        I look at the tests first, and then at
        the code.

        Then
        ────

        ⠴ `cargo test` · 1 min 5 s
          line 1
          line 2
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
fn raw_result_is_shown_where_nothing_else_is() {
    let mut stage = ViewStage::new(60);
    let result = |id: &str, text: &str| AgentUpdate::CallResult { id: id.into(), text: text.into() };
    stage.update(call("ls", ToolCallStatus::InProgress, Vec::new()));
    stage.update(result("ls", "a\nb\n"));
    stage.update(call("cat", ToolCallStatus::InProgress, vec![ToolCallContent::Text("content".into())]));
    stage.update(result("cat", "raw"));
    stage.check(&expect![[r#"
        ────
        ⠋ `ls`
          a
          b
        ⠋ `cat`
          content

        › Ask anything; / command, @ file, ! shell ◂2
        crow · small · ask · ~/project · brave-otter
    "#]]);
}

#[test]
fn change_behind_an_open_call_is_compared_once() {
    let mut stage = ViewStage::new(60);
    stage.update(call("sleep", ToolCallStatus::InProgress, Vec::new()));
    let diff = |new: &str| ToolCallContent::Diff {
        path: "/work/project/a.rs".into(),
        old: Some("a\n".into()),
        new: new.into(),
    };
    stage.update(call("edit", ToolCallStatus::Completed, vec![diff("b\n")]));
    stage.check(&expect![[r#"
        ────
        ⠋ `sleep`
        ✓ `edit`
          /work/project/a.rs  +1 −1
          1 - a
          1 + b

        › Ask anything; / command, @ file, ! shell ◂2
        crow · small · ask · ~/project · brave-otter
    "#]]);
    // Other content is compared again, and so it is at another width.
    stage.update(call("edit", ToolCallStatus::Completed, vec![diff("c\n")]));
    stage.check(&expect![[r#"
        ────
        ⠋ `sleep`
        ✓ `edit`
          /work/project/a.rs  +1 −1
          1 - a
          1 + c

        › Ask anything; / command, @ file, ! shell ◂2
        crow · small · ask · ~/project · brave-otter
    "#]]);
}

#[test]
fn hint_of_the_transcript_fits() {
    for columns in [40, 60, 80] {
        let mut stage = working(columns);
        press(&mut stage, "ctrl-o");
        let frame = view(&stage.state, stage.now);
        let footer = frame.live.last().map(StyledRow::text).unwrap_or_default();
        assert!(footer.ends_with("closes"), "{footer}");
        assert!(footer.chars().count() < usize::from(columns), "{footer}");
    }
}

#[test]
fn shell_command_has_one_sign() {
    let mut stage = ViewStage::new(60);
    stage.type_text("!ls");
    stage.check(&expect![[r#"
        ────
        › !ls ◂5
        crow · small · ask · ~/project · brave-otter
    "#]]);
}
