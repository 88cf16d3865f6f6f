use std::fs;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::{Machine, check};

fn edit(old: &str, new: &str) -> (&'static str, Value) {
    ("edit", json!({"file_path": "a", "old_string": old, "new_string": new}))
}

fn read() -> (&'static str, Value) {
    ("read", json!({"file_path": "a"}))
}

#[tokio::test]
async fn only_what_was_read() {
    let setup = |cwd: &std::path::Path| fs::write(cwd.join("a"), "one\ntwo\nthree\n").unwrap();
    check(
        setup,
        &[edit("two", "2"), read(), edit("two", "2\n2a"), edit("three", "3")],
        expect![[r#"
        > Edit a Edit Writes(["$DIR/project/a"])
        Failed: could not edit a: it was not read in this session; read it first
        > Read a Read Reads(["$DIR/project/a"])
        Done:      1	one
             2	two
             3	three
        > Edit a Edit Writes(["$DIR/project/a"])
        Done: edited a in 1 place; match: exact
             1	one
             2	2
             3	2a
             4	three
        client: Diff { path: "$DIR/project/a", old: Some("one\ntwo\nthree\n"), new: "one\n2\n2a\nthree\n" }
        > Edit a Edit Writes(["$DIR/project/a"])
        Done: edited a in 1 place; match: exact
             1	one
             2	2
             3	2a
             4	3
        client: Diff { path: "$DIR/project/a", old: Some("one\n2\n2a\nthree\n"), new: "one\n2\n2a\n3\n" }
    "#]],
    )
    .await;
}

#[tokio::test]
async fn what_was_written_counts_as_read() {
    let write = ("write", json!({"file_path": "a", "content": "x x\n"}));
    let all = ("edit", json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": true}));
    check(|_| (), &[write, edit("x", "y"), all, edit("nothing", "")], expect![[r#"
        > Write a Edit Writes(["$DIR/project/a"])
        Done: created a: 1 line
        client: Diff { path: "$DIR/project/a", old: None, new: "x x\n" }
        > Edit a Edit Writes(["$DIR/project/a"])
        Failed: could not edit a: the old text is in more than one place (line 1); add lines around it until it names one place, or replace all of them
        > Edit a Edit Writes(["$DIR/project/a"])
        Done: edited a in 2 places; match: exact
             1	y y
        client: Diff { path: "$DIR/project/a", old: Some("x x\n"), new: "y y\n" }
        > Edit a Edit Writes(["$DIR/project/a"])
        Failed: could not edit a: the old text is not in the file; read the file again and copy the lines exactly
    "#]]).await;
}

#[tokio::test]
async fn changed_behind_our_back() {
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
async fn missing_file() {
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
async fn encoding_and_line_endings_stay() {
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
