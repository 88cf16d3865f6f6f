use crow_acp::PermissionSubject;
use crow_core::{ToolCallContent, ToolKind};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

fn question(title: &str, input: Value) -> AgentPermissionRequest {
    let choice = |id: &str, name: &str, (allows, always)| PermissionOption {
        id: id.into(),
        name: name.into(),
        allows,
        always,
        prefix: None,
    };
    AgentPermissionRequest {
        subject: PermissionSubject::Call,
        call: "1".into(),
        title: title.into(),
        kind: match title.split(' ').next() {
            Some("Edit" | "Write") => ToolKind::Edit,
            Some("Fetch" | "box:") => ToolKind::Other,
            Some(_) | None => ToolKind::Execute,
        },
        input: Some(input),
        content: Vec::new(),
        options: vec![
            choice("once", "Allow", (true, false)),
            choice("no", "Reject", (false, false)),
            choice("always", "Allow for this session", (true, true)),
            choice("never", "Reject for this session", (false, true)),
        ],
        offer: None,
    }
}

#[track_caller]
fn check(title: &str, input: Value, expected: &Expect) {
    expected.assert_eq(&(render_question(&question(title, input), PaintMode::Plain).join("\n") + "\n"));
}

#[test]
fn command_is_shown_completely() {
    let command = format!("cd /tmp\n{}\necho \u{1b}[8mhidden\u{202e}txt.exe", "x".repeat(100));
    check(
        "`cd /tmp…`",
        json!({"command": command, "timeout": 5}),
        &expect![[r#"
            Allow this? Run a command
              cd /tmp
              xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
              echo ␛[8mhidden\u{202e}txt.exe
              timeout: 5
        "#]],
    );
}

#[test]
fn origin_and_reason_are_shown() {
    let mut asked = question("ALPHA: `rm -rf build`", json!({"command": "rm -rf build"}));
    let said = ["Asked by ALPHA\u{1b}[8m.", "Why this is asked: it leads out of the directory."];
    asked.content = said.map(|text| ToolCallContent::Text(text.into())).to_vec();
    let command = render_question(&asked, PaintMode::Plain).join("\n");
    asked.input = Some(json!({"url": "https://example.com"}));
    asked.title = "ALPHA: Fetch".into();
    expect![[r#"
        Allow this? Run a command
          Asked by ALPHA␛[8m.
          Why this is asked: it leads out of the directory.
          rm -rf build
        Allow this? ALPHA: Fetch
          Asked by ALPHA␛[8m.
          Why this is asked: it leads out of the directory.
          url: https://example.com
    "#]]
    .assert_eq(&format!("{command}\n{}\n", render_question(&asked, PaintMode::Plain).join("\n")));
}

#[test]
fn edit_is_shown_as_a_diff() {
    let input =
        json!({"file_path": "a.txt", "old_string": "one\ntwo", "new_string": "one\n2", "replace_all": true});
    check(
        "Edit a.txt",
        input,
        &expect![[r#"
            Allow this? Edit a.txt
              +1 −1
              1   one
              2 - two
              2 + 2
              replace_all: true
        "#]],
    );
}

#[test]
fn new_file_is_shown_with_its_text() {
    check(
        "Write a.txt",
        json!({"file_path": "a.txt", "content": "one\ntwo\n"}),
        &expect![[r#"
            Allow this? Write a.txt
              (new)  +2 −0
              1 + one
              2 + two
        "#]],
    );
}

#[test]
fn nothing_of_a_long_change_is_left_out() {
    let text: String = (1..=900).map(|number| format!("line {number}\n")).collect();
    let input = json!({"file_path": "a.txt", "content": text});
    let lines = render_question(&question("Write a.txt", input), PaintMode::Plain);
    assert_eq!(lines.len(), 902);
    assert_eq!(lines[901], "  900 + line 900");
}

#[test]
fn change_of_another_agent_is_shown() {
    let mut asked = question("Edit a.txt", json!({"file_path": "a.txt", "new_string": "two"}));
    asked.content = vec![ToolCallContent::Diff {
        path: "/p/a.txt".into(),
        old: Some("one\n".into()),
        new: "two\n".into(),
    }];
    expect![[r#"
        Allow this? Edit a.txt
          /p/a.txt  +1 −1
          1 - one
          1 + two
    "#]]
    .assert_eq(&(render_question(&asked, PaintMode::Plain).join("\n") + "\n"));
    check(
        "box: run",
        json!(["rm", "x\u{200b}"]),
        &expect![[r#"
            Allow this? box: run
              input: ["rm","x\u{200b}"]
        "#]],
    );
}

#[test]
fn other_calls_are_shown_with_their_input() {
    check(
        "Fetch",
        json!({"url": "https://example.com", "headers": {"a": 1}}),
        &expect![[r#"
        Allow this? Fetch
          url: https://example.com
          headers: {"a":1}
    "#]],
    );
}

#[test]
fn arguments_of_other_tools_are_shown_by_their_names() {
    check(
        "box: run",
        json!({"name": "run", "command": "rm -rf /", "content": "a", "old_string": "same", "new_string": "same"}),
        &expect![[r#"
            Allow this? box: run
              name: run
              command: rm -rf /
              content: a
              old_string: same
              new_string: same
        "#]],
    );
    check(
        "Edit a.txt",
        json!({"old_string": "same", "new_string": "same"}),
        &expect![[r#"
            Allow this? Edit a.txt
              old_string: same
              new_string: same
        "#]],
    );
    check(
        "`ls …` in /",
        json!({"command": "ls x", "cwd": "/"}),
        &expect![[r#"
        Allow this? Run a command
          ls x
          cwd: /
    "#]],
    );
}

#[test]
fn answers_are_numbers_letters_or_words() {
    let question = question("Edit a.txt", Value::Null);
    let typed = ["1", " 2 ", "3", "4", "5", "0", "y", "N", "a", "yes", "no", "always", "", "yep"];
    let read = typed.map(|typed| format!("{typed:?} {:?}\n", parse_choice(&question, typed)));
    expect![[r#"
        1 Allow (y)
          2 Reject (n)
          3 Allow for this session (s)
          4 Reject for this session
        "1" Some("once")
        " 2 " Some("no")
        "3" Some("always")
        "4" Some("never")
        "5" None
        "0" None
        "y" Some("once")
        "N" Some("no")
        "a" Some("always")
        "yes" Some("once")
        "no" Some("no")
        "always" Some("always")
        "" None
        "yep" None
    "#]]
    .assert_eq(&format!("{}\n{}", describe_choices(&question), read.concat()));
}

#[test]
fn offers_have_their_own_heading() {
    let mut asked = question("Go on with /speckit.plan", json!({}));
    asked.subject = PermissionSubject::Proposal;
    expect![[r#"
        Do this? Go on with /speckit.plan
    "#]]
    .assert_eq(&(render_question(&asked, PaintMode::Plain).join("\n") + "\n"));
}

#[test]
fn answers_of_crow_have_letters() {
    let choice = |id: &str, name: &str, (allows, always)| PermissionOption {
        id: id.into(),
        name: name.into(),
        allows,
        always,
        prefix: None,
    };
    let mut asked = question("x", json!({}));
    asked.options = vec![
        choice("allow_once", "Allow once", (true, false)),
        choice("allow_always", "Allow `cargo test …` for this session", (true, true)),
        choice("allow_project", "Always allow `cargo test …` in this project", (true, true)),
        choice("reject_once", "Reject", (false, false)),
        choice("reject_and_tell", "Reject and say what to do instead", (false, false)),
    ];
    let typed = ["y", "s", "a", "n", "t", "yes", "always", "5", "x"];
    let chosen = typed.map(|typed| format!("{typed} -> {:?}\n", parse_choice(&asked, typed)));
    expect![[r#"
        1 Allow once (y)
          2 Allow `cargo test …` for this session (s)
          3 Always allow `cargo test …` in this project (a)
          4 Reject (n)
          5 Reject and say what to do instead (t)
        y -> Some("allow_once")
        s -> Some("allow_always")
        a -> Some("allow_project")
        n -> Some("reject_once")
        t -> Some("reject_and_tell")
        yes -> Some("allow_once")
        always -> Some("allow_project")
        5 -> Some("reject_and_tell")
        x -> None
    "#]]
    .assert_eq(&format!("{}\n{}", describe_choices(&asked), chosen.concat()));
}
