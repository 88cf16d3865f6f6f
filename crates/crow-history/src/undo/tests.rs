use expect_test::expect;

use super::*;

fn file(path: &str, done: UndoStatus, reason: Option<&str>, diff: Option<&str>) -> UndoneFile {
    let (reason, diff) = (reason.map(str::to_owned), diff.map(str::to_owned));
    UndoneFile { path: path.into(), status: done, reason, diff, resolved_changes: Vec::new() }
}

#[test]
fn undo_report_has_a_line_for_each_file_and_shows_conflicts() {
    let files = vec![
        file("/p/a.txt", UndoStatus::Restored, None, None),
        file("/p/new/b", UndoStatus::Removed, None, None),
        file("/elsewhere/c", UndoStatus::AlreadyRestored, None, None),
        file("/p/d", UndoStatus::Conflict, Some("it has changed"), Some("-```\n+x")),
    ];
    let undone = TurnUndone { turn: 0, files };
    expect![[r"
        - `a.txt`: restored
        - `new/b`: removed
        - `/elsewhere/c`: restored already
        - `d`: left unchanged, it has changed

          Undoing would change this:

        ````diff
        -```
        +x
        ````


        Files that could not be restored are unchanged. /undo skip skips them, and /undo continues with the turn before.
    "]]
    .assert_eq(&render_undo(Some(&undone), Path::new("/p"), UndoMode::Apply));
    assert!(render_undo(None, Path::new("/p"), UndoMode::Apply).starts_with("There is nothing to undo"));
}

#[test]
fn path_with_control_characters_stays_on_one_line() {
    let name = "/p/a\n- `b`\u{1b}[2J";
    let undone = TurnUndone { turn: 0, files: vec![file(name, UndoStatus::Restored, None, None)] };
    assert_eq!(
        render_undo(Some(&undone), Path::new("/p"), UndoMode::Preview),
        "- `a\u{fffd}- `b`\u{fffd}[2J`: would be restored\n"
    );
    let Some(ContentPart::FromCrow { text, .. }) =
        pending_undo_part(&serde_json::json!({ "undone": [name] }).to_string())
    else {
        panic!("it is told")
    };
    assert!(text.ends_with("asked:\n- /p/a\u{fffd}- `b`\u{fffd}[2J"), "{text}");
}

#[test]
fn pending_undo_is_read_from_any_configuration() {
    for (text, wanted) in [("", 0), ("[1]", 0), (r#"{"undone":7}"#, 0), (r#"{"undone":["/a",1,"/b"]}"#, 2)] {
        assert_eq!(undone_files(text).len(), wanted, "{text}");
    }
    assert_eq!(undone_files(r#"{"other":1,"undone":["/a"]}"#), ["/a"]);
}
