use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use crow_core::{CallId, ToolAccess, ToolArguments, ToolCall};
use expect_test::{Expect, expect};
use serde_json::json;

use super::{Machine, check, show};
use crate::ToolCx;

#[tokio::test]
async fn write_creates_then_replaces() {
    let calls = ["one\n", "one\ntwo\n"]
        .map(|content| ("write", json!({"file_path": "a/b/c.txt", "content": content})));
    check(
        |_| (),
        &calls,
        expect![[r#"
            > Write a/b/c.txt Edit Writes(["$DIR/project/a/b/c.txt"])
            Completed: created a/b/c.txt: 1 line
            client: Diff { path: "$DIR/project/a/b/c.txt", old: None, new: "one\n" }
            > Write a/b/c.txt Edit Writes(["$DIR/project/a/b/c.txt"])
            Completed: replaced a/b/c.txt: 1 line before, 2 lines now
            client: Diff { path: "$DIR/project/a/b/c.txt", old: Some("one\n"), new: "one\ntwo\n" }
        "#]],
    )
    .await;
}

#[tokio::test]
async fn write_reports_unwritable_paths() {
    let setup = |cwd: &std::path::Path| {
        fs::create_dir(cwd.join("folder")).unwrap();
        fs::write(cwd.join("file"), "").unwrap();
        fs::write(cwd.join("fixed"), "").unwrap();
        fs::set_permissions(cwd.join("fixed"), fs::Permissions::from_mode(0o444)).unwrap();
    };
    let calls = ["folder", "file/below", "fixed"]
        .map(|path| ("write", json!({"file_path": path, "content": "text"})));
    check(
        setup,
        &calls,
        expect![[r#"
            > Write folder Edit Writes(["$DIR/project/folder"])
            Failed: could not write folder: it is a directory
            > Write file/below Edit Writes(["$DIR/project/file/below"])
            Failed: could not write file/below: the directory $DIR/project/file could not be created: Not a directory (os error 20)
            > Write fixed Edit Writes(["$DIR/project/fixed"])
            Failed: could not write fixed: it is read-only
        "#]],
    )
    .await;
}

#[tokio::test]
async fn binary_file_is_replaced_without_a_diff() {
    check(
        |cwd| fs::write(cwd.join("a"), b"\0").unwrap(),
        &[("write", json!({"file_path": "a", "content": "text"}))],
        expect![[r#"
            > Write a Edit Writes(["$DIR/project/a"])
            Completed: replaced a: 1 line now
        "#]],
    )
    .await;
}

#[tokio::test]
async fn mode_and_links_are_kept() {
    let machine = Machine::new(|cwd| {
        fs::write(cwd.join("script"), "").unwrap();
        fs::set_permissions(cwd.join("script"), fs::Permissions::from_mode(0o751)).unwrap();
        symlink("script", cwd.join("link")).unwrap();
        symlink("../made", cwd.join("dangling")).unwrap();
    });
    machine.call("write", json!({"file_path": "link", "content": "new"})).await;
    assert!(machine.path("link").is_symlink());
    assert_eq!(fs::read_to_string(machine.path("script")).unwrap(), "new");
    assert_eq!(fs::metadata(machine.path("script")).unwrap().permissions().mode() & 0o777, 0o751);
    let said = machine.call("write", json!({"file_path": "dangling", "content": "new"})).await;
    expect![[r#"
        > Write dangling Edit Writes(["$DIR/made"])
        Completed: created dangling: 1 line
        client: Diff { path: "$DIR/project/dangling", old: None, new: "new" }
    "#]]
    .assert_eq(&said);
    assert!(machine.path("dangling").is_symlink());
    assert_eq!(fs::read_dir(machine.workspace.cwd()).unwrap().count(), 3);
}

/// Writes a text over a file and shows its bytes.
async fn check_bytes(before: &[u8], content: &str, expect: Expect) {
    let machine = Machine::new(|_| ());
    fs::write(machine.path("a"), before).unwrap();
    machine.call("read", json!({"file_path": "a"})).await;
    let said = machine.call("write", json!({"file_path": "a", "content": content})).await;
    assert!(said.contains("Completed: replaced a"), "{said}");
    expect.assert_eq(&fs::read(machine.path("a")).unwrap().escape_ascii().to_string());
    // The model is shown its own text, so it may edit it.
    let edited = machine.call("edit", json!({"file_path": "a", "old_string": "n", "new_string": "m"})).await;
    assert!(edited.contains("Completed: edited a"), "{edited}");
}

#[tokio::test]
async fn encoding_is_kept() {
    check_bytes(b"\xFF\xFEo\0", "n\u{f6}\n", expect![[r#"\xff\xfen\x00\xf6\x00\n\x00"#]]).await;
    check_bytes(b"\xFE\xFF\0o", "n\n", expect![[r#"\xfe\xff\x00n\x00\n"#]]).await;
    check_bytes(b"\xEF\xBB\xBFo", "n\n", expect![[r#"\xef\xbb\xbfn\n"#]]).await;
    check_bytes(b"\xEF\xBB\xBFo", "\u{feff}n", expect![[r#"\xef\xbb\xbfn"#]]).await;
    check_bytes(b"o", "n\u{f6}", expect![[r#"n\xc3\xb6"#]]).await;
    check_bytes(b"caf\xE9", "n\u{f6}", expect![[r#"n\xc3\xb6"#]]).await;
    check_bytes(b"\xFF\xFEo\0\0", "n", expect!["n"]).await;
}

#[tokio::test]
async fn change_since_the_read_is_not_replaced() {
    let machine = Machine::new(|cwd| fs::write(cwd.join("a"), "one\n").unwrap());
    machine.call("read", json!({"file_path": "a"})).await;
    for others in [&b"two\n"[..], b"caf\xE9\n"] {
        fs::write(machine.path("a"), others).unwrap();
        let said = machine.call("write", json!({"file_path": "a", "content": "mine"})).await;
        expect![[r#"
            > Write a Edit Writes(["$DIR/project/a"])
            Failed: could not write a: it has changed since it was read; read it again
        "#]]
        .assert_eq(&said);
        assert_eq!(fs::read(machine.path("a")).unwrap(), others);
        machine.call("read", json!({"file_path": "a"})).await;
    }
    let said = machine.call("write", json!({"file_path": "a", "content": "mine"})).await;
    assert!(said.contains("Completed: replaced a"), "{said}");
}

#[tokio::test]
async fn unread_file_is_shown_and_not_replaced() {
    let setup = |cwd: &Path| {
        fs::write(cwd.join("a"), "one\ntwo\n").unwrap();
        fs::write(cwd.join("b"), "one\n").unwrap();
        fs::write(cwd.join("c"), "one\n").unwrap();
        fs::write(cwd.join("latin"), b"caf\xE9\n").unwrap();
        fs::write(cwd.join("long"), "line\n".repeat(300)).unwrap();
    };
    let write = |path: &str, text: &str| ("write", json!({"file_path": path, "content": text}));
    check(
        setup,
        &[
            write("a", "three\n"),
            write("a", "three\n"),
            write("a", "three\n"),
            write("b", "one\ntwo\n"),
            write("c", "one\n"),
            ("edit", json!({"file_path": "c", "old_string": "one", "new_string": "1"})),
            write("latin", "cafe\n"),
            write("latin", "cafe\n"),
        ],
        expect![[r#"
            > Write a Edit Writes(["$DIR/project/a"])
            Failed: could not write a: it was not read in this session; nothing was changed, and these are its lines:
                 1	one
                 2	two
            (change a part of it, append to it, or write it again to replace all of these lines)
            > Write a Edit Writes(["$DIR/project/a"])
            Completed: replaced a: 2 lines before, 1 line now
            client: Diff { path: "$DIR/project/a", old: Some("one\ntwo\n"), new: "three\n" }
            > Write a Edit Writes(["$DIR/project/a"])
            Completed: a already has this content; nothing was changed
            > Write b Edit Writes(["$DIR/project/b"])
            Completed: replaced b: 1 line before, 2 lines now
            client: Diff { path: "$DIR/project/b", old: Some("one\n"), new: "one\ntwo\n" }
            > Write c Edit Writes(["$DIR/project/c"])
            Completed: c already has this content; nothing was changed
            > Edit c Edit Writes(["$DIR/project/c"])
            Completed: edited c in 1 place; match: exact
                 1	1
            client: Diff { path: "$DIR/project/c", old: Some("one\n"), new: "1\n" }
            > Write latin Edit Writes(["$DIR/project/latin"])
            Failed: could not write latin: it was not read in this session; nothing was changed, and these are its lines:
                 1	caf�
            (not valid in its encoding: undecodable bytes are shown as �, and `edit` cannot change this file)
            (change a part of it, append to it, or write it again to replace all of these lines)
            > Write latin Edit Writes(["$DIR/project/latin"])
            Completed: replaced latin: 1 line now
        "#]],
    )
    .await;
    let machine = Machine::new(setup);
    let said = machine.call("write", json!({"file_path": "long", "content": "short"})).await;
    let last_lines: Vec<&str> = said.lines().skip(200).collect();
    expect![[r#"
           199	line
           200	line
        (lines 1 to 200 of 300; continue with offset=201)
        (change a part of it, append to it, or write it again to replace all of these lines)"#]]
    .assert_eq(&last_lines.join("\n"));
}

#[tokio::test]
async fn file_that_needs_a_question_to_be_read_is_not_shown() {
    let machine = Machine::new(|cwd| fs::write(cwd.join(".env"), "KEY=secret\n").unwrap());
    let access = ToolAccess::Writes(vec![machine.path(".env").display().to_string()]);
    let cx = ToolCx { access: &access, may_read_written: false, ..machine.cx(&|_| ()) };
    let calls = [
        ("write", json!({"file_path": ".env", "content": "KEY=other"})),
        ("edit", json!({"file_path": ".env", "old_string": "KEY", "new_string": "NAME"})),
        ("write", json!({"file_path": ".env", "mode": "append", "content": "OTHER=1"})),
    ];
    let mut said = String::new();
    for (name, arguments) in calls {
        let call = ToolCall {
            id: CallId::from_position(1, 0),
            provider_id: "1".into(),
            name: name.into(),
            arguments: ToolArguments::Valid(arguments.as_object().unwrap().clone()),
        };
        said += &show(&machine.tools.preview_call(&call, cx).await.unwrap_err());
        said += &show(&machine.tools.run_call(&call, cx).await);
    }
    expect![[r#"
        Failed: could not write .env: it was not read in this session; read it first
        Failed: could not write .env: it was not read in this session; read it first
        Failed: could not edit .env: it was not read in this session; read it first
        Failed: could not edit .env: it was not read in this session; read it first
        Failed: could not edit .env: it was not read in this session; read it first
        Failed: could not edit .env: it was not read in this session; read it first
    "#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn file_written_with_a_byte_order_mark_can_be_edited() {
    let machine = Machine::new(|_| ());
    machine.call("write", json!({"file_path": "a", "content": "\u{feff}one\ntwo\n"})).await;
    let edit = json!({"file_path": "a", "old_string": "two", "new_string": "three"});
    let said = machine.call("edit", edit).await;
    assert!(said.contains("Completed: edited a"), "{said}");
    assert_eq!(fs::read_to_string(machine.path("a")).unwrap(), "\u{feff}one\nthree\n");
}

#[tokio::test]
async fn attributes_are_kept() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    let machine = Machine::new(|cwd| fs::write(cwd.join("a"), "old").unwrap());
    let path = machine.path("a");
    if setxattr(&path, "user.origin", b"here", XattrFlags::empty()).is_err() {
        // This file system has none.
        return;
    }
    machine.call("read", json!({"file_path": "a"})).await;
    machine.call("write", json!({"file_path": "a", "content": "new"})).await;
    let mut value = [0; 10];
    let n_bytes = getxattr(&path, "user.origin", &mut value).unwrap();
    assert_eq!((&value[..n_bytes], fs::read(&path).unwrap().as_slice()), (&b"here"[..], &b"new"[..]));
}

#[tokio::test]
async fn failed_write_leaves_no_temporary_file() {
    let machine = Machine::new(|cwd| fs::write(cwd.join("a"), "old").unwrap());
    // A directory takes the name after the check: the last step fails.
    fs::create_dir_all(machine.path("b/c")).unwrap();
    let fingerprint = crow_files::read_snapshot(&machine.path("none")).unwrap().fingerprint;
    let new = crow_files::FileReplacement { bytes: b"new", mode: None, expected: fingerprint };
    let replaced = crow_files::replace_file(&machine.path("b"), new);
    assert_eq!(replaced.unwrap_err().kind(), std::io::ErrorKind::IsADirectory);
    assert_eq!(fs::read_dir(machine.workspace.cwd()).unwrap().count(), 2);
}

#[tokio::test]
async fn change_since_the_inspection_is_not_replaced() {
    let machine = Machine::new(|cwd| fs::write(cwd.join("a"), "old").unwrap());
    let (path, none) = (machine.path("a"), machine.path("none"));
    let [fingerprint, missing] =
        [&path, &none].map(|path| crow_files::read_snapshot(path).unwrap().fingerprint);
    fs::write(&none, "theirs").unwrap();
    fs::write(machine.path("b"), "new").unwrap();
    fs::rename(machine.path("b"), &path).unwrap();
    for (path, expected) in [(&path, fingerprint), (&none, missing)] {
        let new = crow_files::FileReplacement { bytes: b"ours", mode: None, expected };
        let error = crow_files::replace_file(path, new).unwrap_err().to_string();
        assert_eq!(error, "it was changed at the same time; read it again");
        assert!(crow_files::remove_file(path, expected).is_err());
    }
    assert_eq!(fs::read_to_string(path).unwrap() + &fs::read_to_string(none).unwrap(), "newtheirs");
    assert_eq!(fs::read_dir(machine.workspace.cwd()).unwrap().count(), 2, "no draft is left");
}

/// More than fits on an almost full disk, such as a small one for a test's temporary files.
const LARGE_BYTES: usize = 4_000_000;

#[tokio::test]
async fn file_is_replaced_atomically() {
    let machine = Machine::new(|cwd| fs::write(cwd.join("a"), "old").unwrap());
    machine.call("read", json!({"file_path": "a"})).await;
    let said = machine.call("write", json!({"file_path": "a", "content": "x".repeat(LARGE_BYTES)})).await;
    let now = fs::read_to_string(machine.path("a")).unwrap();
    if said.contains("Completed: replaced a") {
        assert!(now.len() == LARGE_BYTES);
    } else {
        assert!(
            said.ends_with("Failed: could not write a: No space left on device (os error 28)\n"),
            "{said}"
        );
        assert!(now == "old");
    }
    assert_eq!(fs::read_dir(machine.workspace.cwd()).unwrap().count(), 1);
}

#[tokio::test]
async fn append_adds_lines_to_a_file_that_need_not_be_read() {
    let setup = |cwd: &Path| {
        fs::write(cwd.join("closed"), "one\n").unwrap();
        fs::write(cwd.join("open"), "one").unwrap();
        fs::write(cwd.join("crlf"), "one\r\ntwo\r\n").unwrap();
    };
    let append =
        |path: &str, text: &str| ("write", json!({"file_path": path, "mode": "append", "content": text}));
    check(
        setup,
        &[
            append("closed", "two"),
            append("closed", "three\nfour\n"),
            append("open", "two\n"),
            append("crlf", "three\n"),
            append("deep/new", "one"),
            append("closed", ""),
            ("write", json!({"file_path": "closed", "mode": "prepend", "content": "zero"})),
        ],
        expect![[r#"
            > Append to closed Edit Writes(["$DIR/project/closed"])
            Completed: appended to closed
                 1	one
                 2	two
            client: Diff { path: "$DIR/project/closed", old: Some("one\n"), new: "one\ntwo\n" }
            > Append to closed Edit Writes(["$DIR/project/closed"])
            Completed: appended to closed
                 1	one
                 2	two
                 3	three
                 4	four
            client: Diff { path: "$DIR/project/closed", old: Some("one\ntwo\n"), new: "one\ntwo\nthree\nfour\n" }
            > Append to open Edit Writes(["$DIR/project/open"])
            Completed: appended to open
                 1	one
                 2	two
            client: Diff { path: "$DIR/project/open", old: Some("one"), new: "one\ntwo" }
            > Append to crlf Edit Writes(["$DIR/project/crlf"])
            Completed: appended to crlf
                 1	one
                 2	two
                 3	three
            client: Diff { path: "$DIR/project/crlf", old: Some("one\r\ntwo\r\n"), new: "one\r\ntwo\r\nthree\r\n" }
            > Append to deep/new Edit Writes(["$DIR/project/deep/new"])
            Completed: appended to deep/new
                 1	one
            client: Diff { path: "$DIR/project/deep/new", old: None, new: "one" }
            > Append to closed Edit Writes(["$DIR/project/closed"])
            Failed: could not append to closed: the content is empty
            > write Edit Nothing
            Failed: `write` was not run: `mode` must be one of "overwrite", "append", not the string "prepend"
        "#]],
    )
    .await;
}
