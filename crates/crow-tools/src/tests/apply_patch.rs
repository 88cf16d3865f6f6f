use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use crow_core::{CallId, ToolArguments, ToolCall, undo::UndoMode};
use expect_test::expect;
use serde_json::{Value, json};

use super::{Machine, check, undo::Stage};

fn patch(sections: &str) -> (&'static str, Value) {
    ("apply_patch", json!({"input": format!("*** Begin Patch\n{sections}\n*** End Patch")}))
}

fn three_files(cwd: &Path) {
    fs::write(cwd.join("a"), "one\ntwo\nthree\n").unwrap();
    fs::write(cwd.join("b"), "x\r\ny\r\n").unwrap();
    fs::write(cwd.join("run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(cwd.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
}

const ALL_KINDS: &str = "*** Update File: a\n@@ one\n-two\n+2\n*** Add File: deep/new\n+1\n*** Delete File: b\n\
                         *** Update File: run.sh\n*** Move to: bin/run\n@@\n #!/bin/sh\n+true";

#[tokio::test]
async fn patch_changes_all_its_files() {
    check(three_files, &[patch(ALL_KINDS), ("read", json!({"file_path": "deep/new"}))], expect![[r##"
        > Edit 4 files Edit Writes(["$DIR/project/a", "$DIR/project/deep/new", "$DIR/project/b", "$DIR/project/run.sh", "$DIR/project/bin/run"])
        Completed: Success. Updated the following files:
        M a
        A deep/new
        D b
        D run.sh
        A bin/run
        client: Diff { path: "$DIR/project/a", old: Some("one\ntwo\nthree\n"), new: "one\n2\nthree\n" }
        client: Diff { path: "$DIR/project/deep/new", old: None, new: "1\n" }
        client: Diff { path: "$DIR/project/b", old: Some("x\r\ny\r\n"), new: "" }
        client: Diff { path: "$DIR/project/run.sh", old: Some("#!/bin/sh\n"), new: "" }
        client: Diff { path: "$DIR/project/bin/run", old: None, new: "#!/bin/sh\ntrue\n" }
        > Read deep/new Read Reads(["$DIR/project/deep/new"])
        Completed:      1	1
    "##]]).await;
}

#[tokio::test]
async fn patch_changes_no_file_if_one_does_not_fit() {
    let update = |rest: &str| patch(&format!("*** Add File: new\n+1\n*** Update File: a\n-two\n+2\n{rest}"));
    check(
        three_files,
        &[
            update("*** Update File: b\n-z\n+y"),
            update("*** Update File: missing\n-z\n+y"),
            update("*** Add File: b\n+y"),
            update("*** Update File: ."),
            ("apply_patch", json!({"input": "no patch"})),
            ("apply_patch", json!({})),
            ("apply_patch", json!({"input": "*** Begin Patch\n*** Add File: a\0\n+x\n*** End Patch"})),
            ("grep", json!({"pattern": "^"})),
        ],
        expect![[r#"
            > Edit 3 files Edit Writes(["$DIR/project/new", "$DIR/project/a", "$DIR/project/b"])
            Failed: the patch was not applied, no file was changed: b, hunk 1: its lines are not in the file; read the file again and copy the lines exactly
            > Edit 3 files Edit Writes(["$DIR/project/new", "$DIR/project/a", "$DIR/project/missing"])
            Failed: the patch was not applied, no file was changed: missing does not exist; find its path, or create it with `*** Add File: missing`
            > Edit 3 files Edit Writes(["$DIR/project/new", "$DIR/project/a", "$DIR/project/b"])
            Failed: the patch was not applied, no file was changed: b exists; change it with `*** Update File: b`, or delete it first in the same patch
            > Apply a patch Edit Nothing
            Failed: the patch was not applied, no file was changed: `*** Update File: .` has no lines to change
            > Apply a patch Edit Nothing
            Failed: the patch was not applied, no file was changed: there is no `*** Begin Patch`; a patch is: `*** Begin Patch`, a line such as `*** Update File: PATH`, hunks whose lines begin with a space, `+` or `-`, then `*** End Patch`
            > apply_patch Edit Nothing
            Failed: `apply_patch` was not run: `input` is missing; it must be a string
            > Create a\u{0} Edit Writes(["$DIR/project/a\0"])
            Failed: the patch was not applied, no file was changed: it contains a zero byte, which no text file has
            > Search `^` Search Reads(["$DIR/project"])
            Completed: a:1: one
            a:2: two
            a:3: three
            b:1: x
            b:2: y
            run.sh:1: #!/bin/sh
        "#]],
    )
    .await;
}

#[tokio::test]
async fn file_that_changed_since_it_was_read_is_not_patched() {
    let machine = Machine::new(three_files);
    machine.call("read", json!({"file_path": "a"})).await;
    fs::write(machine.path("a"), "one\ntwo\nother\n").unwrap();
    let (name, arguments) = patch("*** Update File: ./a\n-two\n+2");
    expect![[r#"
        > Edit a Edit Writes(["$DIR/project/a"])
        Failed: the patch was not applied, no file was changed: a: it has changed since it was read; read it again
    "#]].assert_eq(&machine.call(name, arguments).await);
}

#[tokio::test]
async fn link_is_not_removed() {
    let machine = Machine::new(three_files);
    std::os::unix::fs::symlink("a", machine.path("link")).unwrap();
    let (name, arguments) = patch("*** Delete File: link");
    expect![[r#"
        > Delete link Edit Writes(["$DIR/project/a"])
        Failed: the patch was not applied, no file was changed: link is a link; remove or rename it with `terminal`
    "#]].assert_eq(&machine.call(name, arguments).await);
    assert!(machine.path("a").exists());
}

/// Everything in the directory, with the permission bits of programs.
fn list_files(cwd: &Path) -> String {
    let mut lines = Vec::new();
    let mut directories = vec![cwd.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let is_program = fs::metadata(&path).unwrap().permissions().mode() & 0o111 != 0;
            let mark = if is_program { "*" } else { "" };
            let text = fs::read_to_string(&path).unwrap();
            lines.push(format!("{}{mark}: {text:?}\n", path.strip_prefix(cwd).unwrap().display()));
        }
    }
    lines.sort();
    lines.concat()
}

#[tokio::test]
async fn undo_takes_back_all_files_of_a_patch() {
    let stage = Stage::new(three_files);
    let before = list_files(&stage.machine.path(""));
    let (name, arguments) = patch(ALL_KINDS);
    stage.call(name, arguments).await;
    let after = list_files(&stage.machine.path(""));
    let undone = stage.undo(UndoMode::Apply).await;
    expect![[r##"
        a: "one\n2\nthree\n"
        bin/run*: "#!/bin/sh\ntrue\n"
        deep/new: "1\n"
        a restored [0]
        b restored [3]
        bin/run removed [2]
        deep/new removed [1]
        run.sh restored [4]
    "##]]
    .assert_eq(&format!("{after}{undone}"));
    assert_eq!(list_files(&stage.machine.path("")), before);
}

/// A directory that cannot be written makes the last file fail.
#[tokio::test]
async fn files_are_restored_if_a_later_one_cannot_be_written() {
    let stage = Stage::new(three_files);
    fs::create_dir(stage.machine.path("file")).unwrap();
    fs::write(stage.machine.path("file/x"), "x\n").unwrap();
    let mut locked = fs::metadata(stage.machine.path("file/x")).unwrap().permissions();
    locked.set_readonly(true);
    fs::set_permissions(stage.machine.path("file/x"), locked).unwrap();
    let before = list_files(&stage.machine.path(""));
    let (name, arguments) = patch(&format!("{ALL_KINDS}\n*** Update File: file/x\n-x\n+y"));
    expect![[r#"
        Failed: the patch was not applied, no file was changed: could not patch file/x: it is read-only
    "#]]
    .assert_eq(&stage.call(name, arguments).await);
    assert_eq!(list_files(&stage.machine.path("")), before);
    expect![[r#"
        a already []
        bin/run already []
        deep/new already []
        file/x already []
    "#]]
    .assert_eq(&stage.undo(UndoMode::Preview).await);
}

#[tokio::test]
async fn moved_file_keeps_its_permission_bits() {
    let machine = Machine::new(|cwd| {
        for (name, mode) in [("private", 0o600), ("shared", 0o664), ("program", 0o750)] {
            fs::write(cwd.join(name), "one\ntwo\n").unwrap();
            fs::set_permissions(cwd.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
    });
    let section = |name: &str| format!("*** Update File: {name}\n*** Move to: moved/{name}\n@@\n-one\n+1");
    let (name, arguments) = patch(&["private", "shared", "program"].map(section).join("\n"));
    let said = machine.call(name, arguments).await;
    assert!(said.contains("Completed: "), "{said}");
    let modes = ["private", "shared", "program"].map(|name| {
        let metadata = fs::metadata(machine.path("moved").join(name)).unwrap();
        format!("{name} {:o}", metadata.permissions().mode() & 0o777)
    });
    assert_eq!(modes, ["private 600", "shared 664", "program 750"]);
}

fn resolve(name: &str, arguments: Value) -> String {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let arguments = ToolArguments::Valid(arguments);
    let call =
        ToolCall { id: CallId::from_position(1, 0), provider_id: "1".into(), name: name.into(), arguments };
    let call = Machine::new(|_| ()).tools.resolve_call(&call);
    format!("{} {}", call.name, Value::Object(call.arguments.to_object()))
}

#[tokio::test]
async fn patch_in_the_terminal_is_a_call_of_the_tool() {
    let body = "*** Begin Patch\n*** Add File: b\n+x\n*** End Patch";
    let shown = [
        json!({"command": format!("apply_patch <<'EOF'\n{body}\nEOF")}),
        json!({"cmd": format!("cd a && apply_patch <<'EOF'\n{body}\nEOF"), "timeout": 10}),
        json!({"command": format!("apply_patch <<'EOF'\n{body}\nEOF"), "background": true}),
        json!({"command": format!("apply_patch <<'EOF'\n{body}\nEOF\nmake")}),
    ]
    .map(|arguments| resolve("terminal", arguments));
    expect![[r#"
        apply_patch {"input":"*** Begin Patch\n*** Add File: b\n+x\n*** End Patch"}
        apply_patch {"input":"*** Begin Patch\n*** Add File: a/b\n+x\n*** End Patch"}
        terminal {"command":"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: b\n+x\n*** End Patch\nEOF","background":true}
        terminal {"command":"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: b\n+x\n*** End Patch\nEOF\nmake"}"#]].assert_eq(&shown.join("\n"));
    let other = json!({"command": format!("apply_patch <<'EOF'\n{body}\nEOF\nmake")});
    check(|_| (), &[("terminal", other)], expect![[r#"
        > `apply_patch <<'EOF'…` Execute Nothing
        Failed: `apply_patch` is a tool and no program: call it with the patch as `input`, alone, and then run the other commands
    "#]]).await;
}

#[tokio::test]
async fn several_edits_are_made_or_none() {
    let edit = |old: &str, new: &str| json!({"old_string": old, "new_string": new});
    let edits = |edits: Value| ("edit", json!({"file_path": "a", "edits": edits}));
    let read = ("read", json!({"file_path": "a"}));
    check(
        three_files,
        &[
            read.clone(),
            edits(json!([edit("one", "1"), edit("four", "4")])),
            edits(json!([edit("one", "1"), edit("1\ntwo", "1\n2"), edit("three", "3")])),
            edits(json!([edit("1", "one"), edit("one", "1")])),
            edits(json!([])),
            ("edit", json!({"file_path": "a", "old_string": "1"})),
            ("edit", json!({"file_path": "a", "edits": [{"old_str": "1", "new_str": "one", "all": true}]})),
        ],
        expect![[r#"
            > Read a Read Reads(["$DIR/project/a"])
            Completed:      1	one
                 2	two
                 3	three
            > Edit a Edit Writes(["$DIR/project/a"])
            Failed: could not edit a: edit 2 of 2 (none was made): the old text is not in the file; read the file again and copy the lines exactly
            > Edit a Edit Writes(["$DIR/project/a"])
            Completed: edited a in 3 places; match: exact
                 1	1
                 2	2
                 3	3
            client: Diff { path: "$DIR/project/a", old: Some("one\ntwo\nthree\n"), new: "1\n2\n3\n" }
            > Edit a Edit Writes(["$DIR/project/a"])
            Failed: could not edit a: edit 2 of 2 (none was made): the edit changes nothing: the file already contains the new text
            > Edit a Edit Writes(["$DIR/project/a"])
            Failed: `edit` was not run: `old_string` and `new_string` are missing; it takes `file_path`, `old_string` and `new_string`, or a list of `edits`
            > Edit a Edit Writes(["$DIR/project/a"])
            Failed: `edit` was not run: `new_string` is missing; it takes `file_path`, `old_string` and `new_string`, or a list of `edits`
            > Edit a Edit Writes(["$DIR/project/a"])
            Completed: edited a in 1 place; match: exact
                 1	one
                 2	2
                 3	3
            client: Diff { path: "$DIR/project/a", old: Some("1\n2\n3\n"), new: "one\n2\n3\n" }
        "#]],
    )
    .await;
}

fn call(arguments: Value) -> (&'static str, Value) {
    ("str_replace_based_edit_tool", arguments)
}

#[tokio::test]
async fn tool_of_anthropic_views_creates_and_edits() {
    check(
        three_files,
        &[
            call(json!({"command": "view", "path": "a", "view_range": [2, -1]})),
            call(json!({"command": "view", "path": "a", "view_range": [1, 1]})),
            call(json!({"command": "str_replace", "path": "a", "old_str": "two", "new_str": "2"})),
            call(json!({"command": "insert", "path": "a", "insert_line": 0, "insert_text": "zero\n"})),
            call(json!({"command": "insert", "path": "a", "insert_line": 4, "new_str": "four"})),
            call(json!({"command": "create", "path": "new/c", "file_text": "c\n"})),
            call(json!({"command": "str_replace", "path": "b", "old_str": "x"})),
        ],
        expect![[r#"
            > Read a Read Reads(["$DIR/project/a"])
            Completed:      2	two
                 3	three
            > Read a Read Reads(["$DIR/project/a"])
            Completed:      1	one
            (lines 1 to 1 of 3; continue with offset=2)
            > Edit a Edit Writes(["$DIR/project/a"])
            Completed: edited a in 1 place; match: exact
                 1	one
                 2	2
                 3	three
            client: Diff { path: "$DIR/project/a", old: Some("one\ntwo\nthree\n"), new: "one\n2\nthree\n" }
            > Edit a Edit Writes(["$DIR/project/a"])
            Completed: edited a in 1 place; match: exact
                 1	zero
                 2	one
                 3	2
                 4	three
            client: Diff { path: "$DIR/project/a", old: Some("one\n2\nthree\n"), new: "zero\none\n2\nthree\n" }
            > Edit a Edit Writes(["$DIR/project/a"])
            Completed: edited a in 1 place; match: exact
                 2	one
                 3	2
                 4	three
                 5	four
            client: Diff { path: "$DIR/project/a", old: Some("zero\none\n2\nthree\n"), new: "zero\none\n2\nthree\nfour\n" }
            > Write new/c Edit Writes(["$DIR/project/new/c"])
            Completed: created new/c: 1 line
            client: Diff { path: "$DIR/project/new/c", old: None, new: "c\n" }
            > Edit b Edit Writes(["$DIR/project/b"])
            Completed: edited b in 1 place; match: exact
                 1	
                 2	y
            client: Diff { path: "$DIR/project/b", old: Some("x\r\ny\r\n"), new: "\r\ny\r\n" }
        "#]],
    )
    .await;
}

#[tokio::test]
async fn tool_of_anthropic_refuses_calls_that_cannot_be_made() {
    check(
        three_files,
        &[
            call(json!({"command": "view", "path": "a"})),
            call(json!({"command": "insert", "path": "a", "insert_line": 9, "insert_text": "x"})),
            call(json!({"command": "str_replace", "path": "a", "new_str": "x"})),
            call(json!({"command": "view", "path": "a", "view_range": [3, 2]})),
            call(json!({"command": "undo_edit", "path": "a"})),
        ],
        expect![[r#"
            > Read a Read Reads(["$DIR/project/a"])
            Completed:      1	one
                 2	two
                 3	three
            > Edit a Edit Writes(["$DIR/project/a"])
            Failed: could not edit a: there is no line 9; the file has 3 lines
            > Edit a Edit Writes(["$DIR/project/a"])
            Failed: `str_replace_based_edit_tool` was not run: `str_replace` needs `old_str`
            > Read a Read Reads(["$DIR/project/a"])
            Failed: `view_range` has two numbers: the first line, from 1, and the last, or -1 for the end of the file
            > str_replace_based_edit_tool Edit Nothing
            Failed: `str_replace_based_edit_tool` was not run: `command` must be one of "view", "create", "str_replace", "insert", not the string "undo_edit"
        "#]],
    )
    .await;
}
