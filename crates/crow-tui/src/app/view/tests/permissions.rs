//! Permission questions: whatever is sent to the tool is shown.

use serde_json::{Value, json};

use super::*;

fn ask(stage: &mut ViewStage, kind: ToolKind, title: &str, input: Value, content: Vec<ToolCallContent>) {
    let option = |name: &str, allows| crow_acp::PermissionOption {
        id: name.into(),
        name: name.into(),
        allows,
        always: false,
        prefix: None,
    };
    let request = crow_acp::AgentPermissionRequest {
        subject: crow_acp::PermissionSubject::Call,
        call: "c".into(),
        title: title.into(),
        kind,
        input: Some(input),
        content,
        options: vec![option("Allow once", true), option("Reject", false)],
        offer: None,
    };
    stage.apply(AppEvent::Permission { id: 1, request: Box::new(request) });
}

/// Compares what the question shows of a request on a high screen.
#[track_caller]
fn check(kind: ToolKind, title: &str, input: Value, content: Vec<ToolCallContent>, expected: &Expect) {
    let mut stage = ViewStage::new(60);
    stage.state.size.rows = 2000;
    ask(&mut stage, kind, title, input, content);
    let frame = view(&stage.state, stage.now);
    let rows = frame.live.iter().map(StyledRow::text);
    let rows = rows.skip_while(|row| !row.starts_with("Allow this?"));
    let rows: String = rows.take_while(|row| !row.contains("Allow once")).map(|row| row + "\n").collect();
    expected.assert_eq(&rows);
}

#[test]
fn arguments_of_any_name_are_shown() {
    check(
        ToolKind::Other,
        "box: run",
        json!({
            "command": "rm -rf /", "content": "a\u{1b}[8mb", "old_string": "same", "new_string": "same", "mode": "run",
            "name": "run", "empty": "", "yes": true, "target": "x\ny",
        }),
        Vec::new(),
        &expect![[r#"
            Allow this? box: run
              command: rm -rf /
              content: a␛[8mb
              old_string: same
              new_string: same
              mode: run
              name: run
              empty:
              yes: true
              target: x
                y
        "#]],
    );
    check(
        ToolKind::Execute,
        "`ls`",
        json!({"command": ["rm", "x"]}),
        Vec::new(),
        &expect![[r#"
        Allow this? `ls`
          command: ["rm","x"]
    "#]],
    );
    check(
        ToolKind::Other,
        "box_run",
        json!(["rm", "x"]),
        Vec::new(),
        &expect![[r#"
        Allow this? box_run
          input: ["rm","x"]
    "#]],
    );
}

fn diff(old: Option<&str>, new: &str) -> Vec<ToolCallContent> {
    let path = "/home/me/project/a.rs".into();
    vec![ToolCallContent::Diff { path, old: old.map(Into::into), new: new.into() }]
}

fn edit(old: &str, new: &str) -> Value {
    json!({"file_path": "a.rs", "old_string": old, "new_string": new})
}

#[test]
fn texts_of_an_edit_are_shown_once_and_whole() {
    check(
        ToolKind::Edit,
        "Edit a.rs",
        edit("one", "two"),
        diff(Some("one\r\nthree\r\n"), "two\r\nthree\r\n"),
        &expect![[r#"
            Allow this? Edit a.rs
              a.rs  +1 −1
              1 - one
              1 + two
              2   three
        "#]],
    );
    check(
        ToolKind::Edit,
        "Edit a.rs",
        edit("one", "four"),
        diff(Some("one\n"), "two\n"),
        &expect![[r#"
        Allow this? Edit a.rs
          a.rs  +1 −1
          1 - one
          1 + two
          new_string: four
    "#]],
    );
}

#[test]
fn edit_without_a_preview_is_shown_whole() {
    check(
        ToolKind::Edit,
        "Edit a.rs",
        edit("1\n2\n3\n4\n5\n6", "1\n2\n3\n4\n5\n7"),
        Vec::new(),
        &expect![[r#"
        Allow this? Edit a.rs
          +1 −1
          1   1
          2   2
          3   3
          4   4
          5   5
          6 - 6
          6 + 7
    "#]],
    );
    check(
        ToolKind::Edit,
        "Edit a.rs",
        edit("same", "same"),
        Vec::new(),
        &expect![[r#"
        Allow this? Edit a.rs
          old_string: same
          new_string: same
    "#]],
    );
    check(
        ToolKind::Edit,
        "Write a.rs",
        json!({"file_path": "a.rs", "content": "a\u{1b}[8mb\n"}),
        diff(None, "a\u{1b}[8mb\n"),
        &expect![[r#"
            Allow this? Write a.rs
              a.rs (new)  +1 −0
              1 + a␛[8mb
        "#]],
    );
}

#[test]
fn nothing_of_a_long_request_is_cut() {
    let path = "a/rather/long/path/of/a/file/that/is/wider/than/the/screen.rs";
    let change = vec![ToolCallContent::Diff { path: path.into(), old: None, new: "a\n".into() }];
    check(
        ToolKind::Edit,
        &format!("Write {path}"),
        json!({"file_path": path}),
        change,
        &expect![[r#"
        Allow this? Write
          a/rather/long/path/of/a/file/that/is/wider/than/the/scree
          n.rs
          a/rather/long/path/of/a/file/that/is/wider/than/the/scree
        n.rs (new)  +1 −0
          1 + a
    "#]],
    );
    let mut stage = ViewStage::new(60);
    stage.state.size.rows = 2000;
    let text: String = (1..=900).map(|number| format!("line {number}\n")).collect();
    let change = vec![ToolCallContent::Diff { path: "a".into(), old: None, new: text }];
    ask(&mut stage, ToolKind::Edit, "Write a", json!({}), change);
    let frame = view(&stage.state, stage.now);
    assert!(frame.live.iter().any(|row| row.text().ends_with("+ line 900")));
}

#[test]
fn answers_give_way_in_a_low_window() {
    let mut stage = ViewStage::new(60);
    let command = json!({"command": "one\ntwo\nthree\nfour\nfive"});
    ask(&mut stage, ToolKind::Execute, "`one …`", command, Vec::new());
    stage.state.size.rows = 8;
    stage.check(&expect![[r#"
        ────
        Allow this? Run a command
          one
          … 0 rows above, 4 below · pagedown scrolls
          › y  Allow once
        y n e, or ↑↓ and enter · esc stops
        › Ask anything; / command, @ file, ! shell ◂2
        crow · small · ask · ~/project · brave-otter
    "#]]);
    stage.state.size.rows = 10;
    stage.check(&expect![[r#"
        ────
        Allow this? Run a command
          one
          … 0 rows above, 4 below · pagedown scrolls
          › y  Allow once
            n  Reject
            e  Reject and say what to do instead
        a key, or ↑↓ and enter · esc stops
        › Ask anything; / command, @ file, ! shell ◂2
        crow · small · ask · ~/project · brave-otter
    "#]]);
}

#[test]
fn question_keeps_a_row_in_every_window() {
    let mut log = String::new();
    for (rows, draft) in [(9, ""), (7, ""), (6, ""), (5, ""), (4, ""), (3, ""), (2, ""), (3, "a")] {
        let mut stage = ViewStage::new(60);
        stage.type_text("go\n");
        stage.type_text(draft);
        let command = json!({"command": "one\ntwo"});
        ask(&mut stage, ToolKind::Execute, "`one …`", command, Vec::new());
        stage.state.size.rows = rows;
        let frame = view(&stage.state, stage.now);
        assert!(frame.live.len() <= stage.state.size.live_rows_max());
        let seen = frame.question.map(|drawn| drawn.end - drawn.first);
        log.push_str(&format!("── {rows} rows, {seen:?} seen\n"));
        frame.live.iter().for_each(|row| log.push_str(&format!("{}\n", row.text().trim_end())));
    }
    expect![[r#"
        ── 9 rows, Some(3) seen
        ⠋ Waiting for your answer · 0 s · esc stops
        Allow this? Run a command
          one
          two
          › y  Allow once
        y n e, or ↑↓ and enter · esc stops
        › Ask anything; / command, @ file, ! shell
        crow · small · ask · ~/project · brave-otter
        ── 7 rows, Some(1) seen
        Allow this? Run a command
          … 0 rows above, 2 below · pagedown scrolls
          › y  Allow once
        y n e, or ↑↓ and enter · esc stops
        › Ask anything; / command, @ file, ! shell
        crow · small · ask · ~/project · brave-otter
        ── 6 rows, Some(0) seen

        window too low for the question · n rejects · esc stops
        › Ask anything; / command, @ file, ! shell
        crow · small · ask · ~/project · brave-otter
        ── 5 rows, Some(0) seen

        window too low for the question · n rejects · esc stops
        › Ask anything; / command, @ file, ! shell
        crow · small · ask · ~/project · brave-otter
        ── 4 rows, Some(0) seen
        window too low for the question · n rejects · esc stops
        › Ask anything; / command, @ file, ! shell
        crow · small · ask · ~/project · brave-otter
        ── 3 rows, Some(0) seen
        window too low for the question · n rejects · esc stops
        › Ask anything; / command, @ file, ! shell
        ── 2 rows, Some(0) seen
        window too low for the question · n rejects · esc stops
        ── 3 rows, Some(0) seen
        window too low for the question · tab answers it
        › a
    "#]]
    .assert_eq(&log);
}

#[test]
fn live_line_gives_way_to_a_question_in_a_low_window() {
    let mut stage = ViewStage::new(60);
    stage.type_text("go\n");
    let command = json!({"command": "one\ntwo\nthree\nfour\nfive"});
    ask(&mut stage, ToolKind::Execute, "`one …`", command, Vec::new());
    stage.state.size.rows = 7;
    let frame = view(&stage.state, stage.now);
    assert_eq!(frame.question.map(|drawn| (drawn.first, drawn.end)), Some((0, 1)));
    stage.check(&expect![[r#"
        › go
        ────
        Allow this? Run a command
          … 0 rows above, 5 below · pagedown scrolls
          › y  Allow once
        y n e, or ↑↓ and enter · esc stops
        › Ask anything; / command, @ file, ! shell ◂2
        crow · small · ask · ~/project · brave-otter
    "#]]);
}
