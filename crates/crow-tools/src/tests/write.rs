use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use expect_test::expect;
use serde_json::json;

use super::{Machine, check};

#[tokio::test]
async fn new_then_replaced() {
    let calls = ["one\n", "one\ntwo\n"]
        .map(|content| ("write", json!({"file_path": "a/b/c.txt", "content": content})));
    check(
        |_| (),
        &calls,
        expect![[r#"
            > Write a/b/c.txt Edit Writes(["$DIR/project/a/b/c.txt"])
            Done: created a/b/c.txt: 1 line
            client: Diff { path: "$DIR/project/a/b/c.txt", old: None, new: "one\n" }
            > Write a/b/c.txt Edit Writes(["$DIR/project/a/b/c.txt"])
            Done: replaced a/b/c.txt: 2 lines
            client: Diff { path: "$DIR/project/a/b/c.txt", old: Some("one\n"), new: "one\ntwo\n" }
        "#]],
    )
    .await;
}

#[tokio::test]
async fn what_cannot_be_written() {
    let setup = |cwd: &std::path::Path| {
        fs::create_dir(cwd.join("folder")).unwrap();
        fs::write(cwd.join("file"), "").unwrap();
        fs::write(cwd.join("fixed"), "").unwrap();
        fs::set_permissions(cwd.join("fixed"), fs::Permissions::from_mode(0o444)).unwrap();
    };
    let calls =
        ["folder", "file/below", "fixed"].map(|path| ("write", json!({"file_path": path, "content": ""})));
    check(
        setup,
        &calls,
        expect![[r#"
            > Write folder Edit Writes(["$DIR/project/folder"])
            Failed: could not write folder: it is a folder
            > Write file/below Edit Writes(["$DIR/project/file/below"])
            Failed: could not write file/below: the folder $DIR/project/file could not be made: Not a directory (os error 20)
            > Write fixed Edit Writes(["$DIR/project/fixed"])
            Failed: could not write fixed: it is read-only
        "#]],
    )
    .await;
}

#[tokio::test]
async fn binary_is_replaced_without_a_picture() {
    check(
        |cwd| fs::write(cwd.join("a"), b"\0").unwrap(),
        &[("write", json!({"file_path": "a", "content": "text"}))],
        expect![[r#"
            > Write a Edit Writes(["$DIR/project/a"])
            Done: replaced a: 1 line
        "#]],
    )
    .await;
}

#[tokio::test]
async fn mode_and_links_stay() {
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
        Done: created dangling: 1 line
        client: Diff { path: "$DIR/project/dangling", old: None, new: "new" }
    "#]]
    .assert_eq(&said);
    assert!(machine.path("dangling").is_symlink());
    assert_eq!(fs::read_dir(machine.workspace.cwd()).unwrap().count(), 3);
}
