use std::{fs, os::unix::fs::symlink};

use expect_test::expect;
use serde_json::json;

use super::{Machine, check};
use crate::workspace::READERS_MAX;

#[tokio::test]
async fn lines_are_numbered() {
    check(
        |cwd| fs::write(cwd.join("a.txt"), "one\r\ntwo\nthree").unwrap(),
        &[("read", json!({"file_path": "a.txt"}))],
        expect![[r#"
            > Read a.txt Read Reads(["$DIR/project/a.txt"])
            Completed:      1	one
                 2	two
                 3	three
        "#]],
    )
    .await;
}

#[tokio::test]
async fn page_has_a_note_on_how_to_continue() {
    let setup = |cwd: &std::path::Path| fs::write(cwd.join("a"), "1\n2\n3\n4\n5\n").unwrap();
    let calls = [
        ("read", json!({"file_path": "a", "offset": 2, "limit": 2})),
        ("read", json!({"file_path": "a", "offset": 4})),
        ("read", json!({"file_path": "a", "offset": 6})),
    ];
    check(
        setup,
        &calls,
        expect![[r#"
            > Read a Read Reads(["$DIR/project/a"])
            Completed:      2	2
                 3	3
            (lines 2 to 3 of 5; continue with offset=4)
            > Read a Read Reads(["$DIR/project/a"])
            Completed:      4	4
                 5	5
            > Read a Read Reads(["$DIR/project/a"])
            Failed: could not read a from line 6: it has 5 lines
        "#]],
    )
    .await;
}

#[tokio::test]
async fn unreadable_paths_give_a_reason() {
    let setup = |cwd: &std::path::Path| {
        fs::create_dir(cwd.join("src")).unwrap();
        fs::write(cwd.join("src/main.rs"), "").unwrap();
        fs::write(cwd.join("binary"), b"\x7fELF\0\0").unwrap();
        fs::File::create(cwd.join("large")).unwrap().set_len(1 << 30).unwrap();
    };
    let calls = ["src", "src/man.rs", "nowhere/at/all", "binary", "large", "/dev/zero", "src/main.rs"];
    let calls = calls.map(|path| ("read", json!({"file_path": path})));
    check(
        setup,
        &calls,
        expect![[r#"
            > Read src Read Reads(["$DIR/project/src"])
            Failed: could not read src: it is a directory; list it with `glob`
            > Read src/man.rs Read Reads(["$DIR/project/src/man.rs"])
            Failed: could not read src/man.rs: it does not exist; similar names in that directory: main.rs
            > Read nowhere/at/all Read Reads(["$DIR/project/nowhere/at/all"])
            Failed: could not read nowhere/at/all: it does not exist
            > Read binary Read Reads(["$DIR/project/binary"])
            Failed: could not read binary: it is a binary file
            > Read large Read Reads(["$DIR/project/large"])
            Failed: could not read large: it is a binary file
            > Read /dev/zero Read Reads(["/dev/zero"])
            Failed: could not read /dev/zero: it is a device or a pipe, not a file
            > Read src/main.rs Read Reads(["$DIR/project/src/main.rs"])
            Completed: (src/main.rs is empty)
        "#]],
    )
    .await;
}

#[tokio::test]
async fn encodings_are_decoded() {
    let setup = |cwd: &std::path::Path| {
        fs::write(cwd.join("bom"), b"\xEF\xBB\xBFhi").unwrap();
        fs::write(cwd.join("utf16"), b"\xFF\xFEh\0i\0").unwrap();
        fs::write(cwd.join("latin"), b"caf\xE9").unwrap();
    };
    let calls = ["bom", "utf16", "latin"].map(|path| ("read", json!({"file_path": path})));
    check(
        setup,
        &calls,
        expect![[r#"
            > Read bom Read Reads(["$DIR/project/bom"])
            Completed:      1	hi
            > Read utf16 Read Reads(["$DIR/project/utf16"])
            Completed:      1	hi
            > Read latin Read Reads(["$DIR/project/latin"])
            Completed:      1	caf�
            (not valid in its encoding: undecodable bytes are shown as �, and `edit` cannot change this file)
        "#]],
    )
    .await;
}

#[tokio::test]
async fn image_is_shown_as_an_image() {
    check(
        |cwd| fs::write(cwd.join("a.dat"), b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\x0dIDATx\xdacd\xf8\xcfP\x0f\x00\x03\x86\x01\x80Z4}k\x00\x00\x00\x00IEND\xaeB`\x82").unwrap(),
        &[("read", json!({"file_path": "a.dat"}))],
        expect![[r#"
            > Read a.dat Read Reads(["$DIR/project/a.dat"])
            Completed: a.dat (image/png, 70 bytes):
            Image { mime: "image/png", data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" }
            client: Image { mime: "image/png", data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" }
        "#]],
    )
    .await;
}

#[tokio::test]
async fn links_are_evaluated_by_their_target() {
    let setup = |cwd: &std::path::Path| {
        fs::write(cwd.join("../secret"), "secret").unwrap();
        fs::create_dir(cwd.join("sub")).unwrap();
        symlink("../secret", cwd.join("link")).unwrap();
        symlink("..", cwd.join("sub/up")).unwrap();
        symlink("round", cwd.join("round")).unwrap();
    };
    let calls = ["link", "sub/up/link", "../secret", "sub/up/../secret", "round", "./sub/../none/../link"];
    let calls = calls.map(|path| ("read", json!({"file_path": path})));
    check(
        setup,
        &calls,
        expect![[r#"
            > Read link Read Reads(["$DIR/secret"])
            Completed:      1	secret
            > Read sub/up/link Read Reads(["$DIR/secret"])
            Completed:      1	secret
            > Read $DIR/secret Read Reads(["$DIR/secret"])
            Completed:      1	secret
            > Read $DIR/secret Read Reads(["$DIR/secret"])
            Completed:      1	secret
            > Read round Read Reads(["$DIR/project/round"])
            Failed: could not read round: a link in its path is circular or was created just now
            > Read $DIR/secret Read Reads(["$DIR/secret"])
            Completed:      1	secret
        "#]],
    )
    .await;
}

#[tokio::test]
async fn lines_and_pages_are_truncated() {
    let machine = Machine::new(|cwd| {
        fs::write(cwd.join("long"), format!("{}\nend", "ä".repeat(3000))).unwrap();
        fs::write(cwd.join("much"), format!("{}\n", "x".repeat(1000)).repeat(500)).unwrap();
    });
    let said = machine.call("read", json!({"file_path": "long"})).await;
    assert!(said.contains("ä… (cut, the line has 3000 characters)\n     2\tend\n"));
    let said = machine.call("read", json!({"file_path": "much"})).await;
    assert!(
        said.ends_with("(lines 1 to 100 of 500; continue with offset=101)\n"),
        "{}",
        &said[said.len() - 100..]
    );
}

#[tokio::test]
async fn text_of_any_size_is_shown_in_parts() {
    const PADDING: &str =
        "a line of this file is long, so that a large file has few lines, and writing it takes little time";
    let setup = |cwd: &std::path::Path| {
        let to_wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let (mut lines, mut wide, wide_padding) = (String::new(), to_wide("\u{feff}"), to_wide(PADDING));
        for number in 1..=200_000 {
            let line = format!("this is line {number}");
            wide.extend([to_wide(&line).as_slice(), &wide_padding, b"\n\0"].concat());
            lines.extend([line.as_str(), PADDING, "\n"]);
        }
        fs::write(cwd.join("long.txt"), &lines).unwrap();
        fs::write(cwd.join("wide.txt"), wide).unwrap();
        fs::write(cwd.join("one-line"), "x".repeat(20 << 20)).unwrap();
        fs::write(cwd.join("later-binary"), [lines.as_bytes(), b"\0"].concat()).unwrap();
        let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
        png.resize(17 << 20, 1);
        fs::write(cwd.join("large.png"), png).unwrap();
    };
    let part = |name: &str, offset: usize| ("read", json!({"file_path": name, "offset": offset, "limit": 2}));
    let calls = [
        part("long.txt", 1),
        part("long.txt", 199_999),
        part("long.txt", 200_001),
        part("wide.txt", 100_000),
        part("one-line", 1),
        part("later-binary", 1),
        part("large.png", 1),
    ];
    let machine = Machine::new(setup);
    let mut said = String::new();
    for (name, arguments) in calls {
        said += &machine.call(name, arguments).await.replace(&"x".repeat(2000), "x…x").replace(PADDING, "…");
    }
    expect![[r#"
        > Read long.txt Read Reads(["$DIR/project/long.txt"])
        Completed:      1	this is line 1…
             2	this is line 2…
        (lines 1 to 2 of 200000; continue with offset=3)
        > Read long.txt Read Reads(["$DIR/project/long.txt"])
        Completed: 199999	this is line 199999…
        200000	this is line 200000…
        > Read long.txt Read Reads(["$DIR/project/long.txt"])
        Failed: could not read long.txt from line 200001: it has 200000 lines
        > Read wide.txt Read Reads(["$DIR/project/wide.txt"])
        Completed: 100000	this is line 100000…
        100001	this is line 100001…
        (lines 100000 to 100001 of 200000; continue with offset=100002)
        > Read one-line Read Reads(["$DIR/project/one-line"])
        Completed:      1	x…x… (cut, the line has 20971520 characters)
        > Read later-binary Read Reads(["$DIR/project/later-binary"])
        Failed: could not read later-binary: it is a binary file
        > Read large.png Read Reads(["$DIR/project/large.png"])
        Failed: could not read large.png: it is an image of more than 3700000 bytes; make a smaller copy first
    "#]]
    .assert_eq(&said);
}

/// On a disk that does not respond, the call ends with the turn, and only a limited number of threads is left behind.
#[tokio::test]
async fn disk_that_does_not_respond_blocks_a_thread_and_not_the_turn() {
    let machine = Machine::new(|_| ());
    let (answer, disk) = std::sync::mpsc::channel::<()>();
    let disk = std::sync::Arc::new(std::sync::Mutex::new(disk));
    let (begun, mut begins) = tokio::sync::mpsc::channel(100);
    let hang = || {
        let (disk, begun) = (disk.clone(), begun.clone());
        move || {
            begun.blocking_send(()).unwrap();
            disk.lock().unwrap().recv().unwrap_err();
            Ok(())
        }
    };
    let cx = machine.cx(&|_| ());
    let reads = futures_util::future::join_all((0..READERS_MAX + 5).map(|_| cx.read_blocking(hang())));
    let stop = async {
        for _ in 0..READERS_MAX {
            begins.recv().await.unwrap();
        }
        machine.cancel.cancel();
    };
    let (ended, ()) = tokio::join!(reads, stop);
    assert!(ended.iter().all(|read| read.as_ref().unwrap_err().0 == "stopped: the turn was cancelled"));
    assert!(begins.try_recv().is_err(), "no more than that began");
    drop(answer);
}
