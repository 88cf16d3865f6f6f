use std::{fs, path::Path};

use crow_core::{CallId, ToolArguments, ToolCall};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::{Machine, check};
use crate::ToolCx;

fn edit(old: &str, new: &str) -> (&'static str, Value) {
    ("edit", json!({"file_path": "a", "old_string": old, "new_string": new}))
}

#[tokio::test]
async fn edit_that_needs_the_rest_of_an_unread_file_shows_it() {
    let setup = |cwd: &Path| fs::write(cwd.join("a"), "one\ntwo\nthree\n").unwrap();
    let everywhere = json!({"file_path": "a", "old_string": "two", "new_string": "2", "replace_all": true});
    check(
        setup,
        &[edit("tw0", "2"), ("edit", everywhere.clone())],
        expect![[r#"
            > Edit a Edit Writes(["$DIR/project/a"])
            Failed: could not edit a: it was not read in this session; nothing was changed, and these are its lines:
                 1	one
                 2	two
                 3	three
            (make the edit with an old text that is copied from these lines)
            > Edit a Edit Writes(["$DIR/project/a"])
            Completed: edited a in 1 place; match: exact
                 1	one
                 2	2
                 3	three
            client: Diff { path: "$DIR/project/a", old: Some("one\ntwo\nthree\n"), new: "one\n2\nthree\n" }
        "#]],
    )
    .await;
    check(setup, &[("edit", everywhere)], expect![[r#"
        > Edit a Edit Writes(["$DIR/project/a"])
        Failed: could not edit a: it was not read in this session; nothing was changed, and these are its lines:
             1	one
             2	two
             3	three
        (make the edit with an old text that is copied from these lines)
    "#]]).await;
}

#[tokio::test]
async fn text_that_is_once_in_an_unread_file_is_edited_and_the_rest_stays_unread() {
    let setup = |cwd: &Path| fs::write(cwd.join("a"), "one = 1\ntwo = 2\nthree = 3\n").unwrap();
    check(
        setup,
        &[
            edit("two=2", "two=22"),
            edit("one", "uno"),
            ("write", json!({"file_path": "a", "content": "uno\n"})),
            ("write", json!({"file_path": "a", "content": "uno\n"})),
        ],
        expect![[r#"
            > Edit a Edit Writes(["$DIR/project/a"])
            Completed: edited a in 1 place; match: ignoring white space beside symbols
                 1	one = 1
                 2	two = 22
                 3	three = 3
            client: Diff { path: "$DIR/project/a", old: Some("one = 1\ntwo = 2\nthree = 3\n"), new: "one = 1\ntwo = 22\nthree = 3\n" }
            > Edit a Edit Writes(["$DIR/project/a"])
            Completed: edited a in 1 place; match: exact
                 1	uno = 1
                 2	two = 22
                 3	three = 3
            client: Diff { path: "$DIR/project/a", old: Some("one = 1\ntwo = 22\nthree = 3\n"), new: "uno = 1\ntwo = 22\nthree = 3\n" }
            > Write a Edit Writes(["$DIR/project/a"])
            Failed: could not write a: it was not read in this session; nothing was changed, and these are its lines:
                 1	uno = 1
                 2	two = 22
                 3	three = 3
            (change a part of it, append to it, or write it again to replace all of these lines)
            > Write a Edit Writes(["$DIR/project/a"])
            Completed: replaced a: 3 lines before, 1 line now
            client: Diff { path: "$DIR/project/a", old: Some("uno = 1\ntwo = 22\nthree = 3\n"), new: "uno\n" }
        "#]],
    )
    .await;
}

#[tokio::test]
async fn empty_old_text_creates_a_file() {
    let setup = |cwd: &Path| {
        fs::write(cwd.join("empty"), "").unwrap();
        fs::write(cwd.join("full"), "one\n").unwrap();
        fs::create_dir(cwd.join("folder")).unwrap();
    };
    let begin =
        |path: &str, text: &str| ("edit", json!({"file_path": path, "old_string": "", "new_string": text}));
    check(
        setup,
        &[
            begin("deep/new", "a\n"),
            begin("empty", "b\n"),
            begin("full", "c\n"),
            begin("folder", "d\n"),
            begin("deep/new", "e"),
        ],
        expect![[r#"
            > Edit deep/new Edit Writes(["$DIR/project/deep/new"])
            Completed: edited deep/new in 1 place; match: exact
                 1	a
            client: Diff { path: "$DIR/project/deep/new", old: None, new: "a\n" }
            > Edit empty Edit Writes(["$DIR/project/empty"])
            Completed: edited empty in 1 place; match: exact
                 1	b
            client: Diff { path: "$DIR/project/empty", old: Some(""), new: "b\n" }
            > Edit full Edit Writes(["$DIR/project/full"])
            Failed: could not edit full: the old text is empty, which creates a file, but this file has content; give the lines to replace, or write the whole file
            > Edit folder Edit Writes(["$DIR/project/folder"])
            Failed: could not read folder: it is a directory; list it with `glob`
            > Edit deep/new Edit Writes(["$DIR/project/deep/new"])
            Failed: could not edit deep/new: the old text is empty, which creates a file, but this file has content; give the lines to replace, or write the whole file
        "#]],
    )
    .await;
}

#[tokio::test]
async fn written_file_counts_as_read() {
    let write = ("write", json!({"file_path": "a", "content": "x x\n"}));
    let all = ("edit", json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": true}));
    check(|_| (), &[write, edit("x", "y"), all, edit("nothing", "")], expect![[r#"
        > Write a Edit Writes(["$DIR/project/a"])
        Completed: created a: 1 line
        client: Diff { path: "$DIR/project/a", old: None, new: "x x\n" }
        > Edit a Edit Writes(["$DIR/project/a"])
        Failed: could not edit a: the old text is in more than one place (line 1); add lines around it until it is unique, or replace all of them
        > Edit a Edit Writes(["$DIR/project/a"])
        Completed: edited a in 2 places; match: exact
             1	y y
        client: Diff { path: "$DIR/project/a", old: Some("x x\n"), new: "y y\n" }
        > Edit a Edit Writes(["$DIR/project/a"])
        Failed: could not edit a: the old text is not in the file; read the file again and copy the lines exactly
    "#]]).await;
}

#[tokio::test]
async fn change_since_the_read_is_rejected() {
    let machine = Machine::new(|cwd| fs::write(cwd.join("a"), "one\n").unwrap());
    machine.call("read", json!({"file_path": "a"})).await;
    fs::write(machine.path("a"), "two\n").unwrap();
    let (name, arguments) = edit("two", "2");
    let said = machine.call(name, arguments).await;
    expect![[r#"
        > Edit a Edit Writes(["$DIR/project/a"])
        Failed: could not edit a: it has changed since it was read; read it again
    "#]]
    .assert_eq(&said);
    assert_eq!(fs::read(machine.path("a")).unwrap(), b"two\n");
}

#[tokio::test]
async fn missing_file_is_reported() {
    check(
        |_| (),
        &[edit("a", "b")],
        expect![[r#"
        > Edit a Edit Writes(["$DIR/project/a"])
        Failed: could not read a: it does not exist
    "#]],
    )
    .await;
}

async fn check_bytes(before: &[u8], (old, new): (&str, &str), expect: Expect) {
    let machine = Machine::new(|_| ());
    fs::write(machine.path("a"), before).unwrap();
    machine.call("read", json!({"file_path": "a"})).await;
    let (name, arguments) = edit(old, new);
    machine.call(name, arguments).await;
    expect.assert_eq(&fs::read(machine.path("a")).unwrap().escape_ascii().to_string());
}

#[tokio::test]
async fn encoding_and_line_endings_are_kept() {
    check_bytes(
        b"one\r\ntwo\r\nthree\r\n",
        ("one\ntwo", "1\n2\n2a"),
        expect![[r#"1\r\n2\r\n2a\r\nthree\r\n"#]],
    )
    .await;
    check_bytes(b"\xEF\xBB\xBFone\n", ("one", "1"), expect![[r#"\xef\xbb\xbf1\n"#]]).await;
    check_bytes(b"\xFF\xFEa\0\r\0\n\0b\0", ("b", "ö"), expect![[r#"\xff\xfea\x00\r\x00\n\x00\xf6\x00"#]])
        .await;
    check_bytes(b"\xFE\xFF\0a", ("a", "b"), expect![[r#"\xfe\xff\x00b"#]]).await;
    check_bytes(b"caf\xE9 a", ("a", "b"), expect![[r#"caf\xe9 a"#]]).await;
}

#[tokio::test]
async fn first_line_after_a_byte_order_mark_is_found() {
    check_bytes(
        b"\xEF\xBB\xBF  one\n  two\n",
        ("one\ntwo", "1\ntwo"),
        expect![[r#"\xef\xbb\xbf  1\n  two\n"#]],
    )
    .await;
    check_bytes(
        b"\xFF\xFEa\0 \0\r\0\n\0b\0",
        ("a\nb", "ä\nb"),
        expect![[r#"\xff\xfe\xe4\x00\r\x00\n\x00b\x00"#]],
    )
    .await;
}

/// The user who decides and the model have to know that the match was not exact.
#[tokio::test]
async fn match_that_is_not_exact_has_a_note() {
    let machine =
        Machine::new(|cwd| fs::write(cwd.join("a"), "class A:\n    def f(self):\n        pass\n").unwrap());
    machine.call("read", json!({"file_path": "a"})).await;
    let (name, arguments) = edit("def f(self):\n    pass\n", "def f(self):\n    if self:\n        pass\n");
    let mut said = preview(&machine, arguments.clone()).await;
    said += &machine.call(name, arguments).await;
    expect![[r#"
        preview Ok([Text("The text to replace was found ignoring indentation."), Diff { path: "$DIR/a", old: Some("class A:\n    def f(self):\n        pass\n"), new: "class A:\n    def f(self):\n        if self:\n            pass\n" }])
        > Edit a Edit Writes(["$DIR/project/a"])
        Completed: edited a in 1 place; match: ignoring indentation
             1	class A:
             2	    def f(self):
             3	        if self:
             4	            pass
        client: Diff { path: "$DIR/project/a", old: Some("class A:\n    def f(self):\n        pass\n"), new: "class A:\n    def f(self):\n        if self:\n            pass\n" }
    "#]].assert_eq(&said);
}

async fn preview(machine: &Machine, arguments: Value) -> String {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let arguments = ToolArguments::Valid(arguments);
    let call =
        ToolCall { id: CallId::from_position(1, 0), provider_id: "1".into(), name: "edit".into(), arguments };
    let info = machine.tools.call_info(&call, &machine.workspace);
    let cx = ToolCx { access: &info.access, ..machine.cx(&|_| ()) };
    let shown = machine.tools.preview_call(&call, cx).await;
    let outside = machine.path("").display().to_string();
    format!("preview {shown:?}\n").replace(&outside, "$DIR/")
}

fn with_odd_files(cwd: &Path) {
    fs::write(cwd.join("a"), "one\n\n\ntwo\nxxx\n").unwrap();
    fs::write(cwd.join("latin"), b"caf\xE9 a\n").unwrap();
    fs::write(cwd.join("binary"), b"a\0b\n").unwrap();
    fs::write(cwd.join("empty"), "").unwrap();
    fs::create_dir(cwd.join("folder")).unwrap();
    fs::write(cwd.join("locked"), "one\n").unwrap();
    let mut permissions = fs::metadata(cwd.join("locked")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(cwd.join("locked"), permissions).unwrap();
}

/// Invalid arguments.
fn hostile() -> Vec<(&'static str, Value)> {
    let on =
        |path: &str, old: &str, new: &str| json!({"file_path": path, "old_string": old, "new_string": new});
    let mut with_word = on("a", "q", "2");
    with_word["replace_all"] = "perhaps".into();
    let mut unknown = on("a", "q", "2");
    unknown["force"] = true.into();
    let mut huge_result = on("a", "x", &"y".repeat(8 << 20));
    huge_result["replace_all"] = true.into();
    vec![
        ("nothing", json!({})),
        ("a missing one", json!({"file_path": "a", "old_string": "one"})),
        ("a number", json!({"file_path": 5, "old_string": [], "new_string": {"a": 1}})),
        ("null", json!({"file_path": null, "old_string": null, "new_string": null})),
        ("a word for a flag", with_word),
        ("an unknown one", unknown),
        ("a zero byte in the path", on("a\0b", "one", "1")),
        ("an empty path", on("", "one", "1")),
        ("a zero byte in the old text", on("a", "o\0ne", "1")),
        ("a zero byte in the new text", on("a", "one", "1\0")),
        ("no old text", on("a", "", "1")),
        ("blank old text", on("a", " \n\t\n", "1")),
        ("the same twice", on("a", "one", "one")),
        ("several places", on("a", "x", "y")),
        ("a huge old text", on("a", &"x\n".repeat(1024 * 1024), "1")),
        ("a long line", on("a", &"[".repeat(1024 * 1024), "1")),
        ("a huge result", huge_result),
        ("an empty file", on("empty", "one", "1")),
        ("an unknown encoding", on("latin", "a", "b")),
        ("a binary file", on("binary", "a", "b")),
        ("a folder", on("folder", "a", "b")),
        ("a missing file", on("missing", "a", "b")),
        ("a file as a folder", on("a/b", "a", "b")),
        ("a file that is read-only", on("locked", "one", "1")),
    ]
}

/// Every call has a result, and the directory is unchanged.
#[tokio::test]
async fn hostile_arguments_change_nothing() {
    let machine = Machine::new(with_odd_files);
    for name in ["a", "latin", "empty", "locked"] {
        machine.call("read", json!({"file_path": name})).await;
    }
    let before = folder(&machine);
    let mut said = String::new();
    for (title, arguments) in hostile() {
        let answer = machine.call("edit", arguments).await;
        let (_, answer) = answer.split_once('\n').unwrap();
        said += &format!("{title}: {}", answer.replace('\0', "\\0"));
        assert_eq!(folder(&machine), before, "{title}");
    }
    expect![[r#"
        nothing: Failed: `edit` was not run: `file_path` is missing; it must be a string
        a missing one: Failed: `edit` was not run: `new_string` is missing; it takes `file_path`, `old_string` and `new_string`, or a list of `edits`
        a number: Failed: `edit` was not run: `old_string` must be a string, not the array []; `new_string` must be a string, not the object {"a":1}
        null: Failed: `edit` was not run: `file_path` must be a string, not null
        a word for a flag: Failed: `edit` was not run: `replace_all` must be true or false, not the string "perhaps"
        an unknown one: Failed: `edit` was not run: there is no parameter `force` (it takes `file_path`, `old_string`, `new_string`, `replace_all`, `edits`)
        a zero byte in the path: Failed: could not use the path `a b`: a path cannot contain a zero byte
        an empty path: Failed: could not read .: it is a directory; list it with `glob`
        a zero byte in the old text: Failed: could not edit a: the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (85 % similar, the first difference is in line 1):
        one
        a zero byte in the new text: Failed: could not edit a: the new text contains a zero byte, which no text file has
        no old text: Failed: could not edit a: the old text is empty, which creates a file, but this file has content; give the lines to replace, or write the whole file
        blank old text: Failed: could not edit a: the old text is not in the file; read the file again and copy the lines exactly
        the same twice: Failed: could not edit a: the old and the new text are equal; give the text as it shall become
        several places: Failed: could not edit a: the old text is in more than one place (line 5); add lines around it until it is unique, or replace all of them
        a huge old text: Failed: could not edit a: the old text is not in the file; read the file again and copy the lines exactly
        a long line: Failed: could not edit a: the old text is not in the file; read the file again and copy the lines exactly
        a huge result: Failed: could not edit a: the edit is too large: the limits are 100000 places and 16 MiB; replace less at a time
        an empty file: Failed: could not edit empty: the old text is not in the file; read the file again and copy the lines exactly
        an unknown encoding: Failed: could not edit latin: its encoding is unknown and would be lost
        a binary file: Failed: could not edit binary: it is a binary file
        a folder: Failed: could not read folder: it is a directory; list it with `glob`
        a missing file: Failed: could not read missing: it does not exist
        a file as a folder: Failed: could not read a/b: it does not exist
        a file that is read-only: Failed: could not edit locked: it is read-only
    "#]].assert_eq(&said);
}

/// All files in the project with their content.
fn folder(machine: &Machine) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(machine.path("")).unwrap().map(Result::unwrap);
    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap_or_default()))
        .collect();
    files.sort();
    files
}
