use std::fs;
use std::path::Path;

use expect_test::{Expect, expect};

use super::{read_lines, write_text};

/// Reads or writes in a directory that has `a.txt`, `link` to a file outside, `inner` to a file inside, and `out` to the
/// directory outside. `$CWD` and `$OUT` are both directories.
#[track_caller]
fn check(requests: &[&str], expected: &Expect) {
    let world = tempfile::tempdir().unwrap();
    let [cwd, outside] = ["cwd", "outside"].map(|name| world.path().join(name));
    fs::create_dir_all(cwd.join(".git")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(cwd.join("a.txt"), "one\ntwo\nthree").unwrap();
    fs::write(cwd.join("binary"), b"\xff\0").unwrap();
    fs::write(outside.join("key"), "secret").unwrap();
    for (target, name) in
        [(outside.join("key"), "link"), (cwd.join("a.txt"), "inner"), (outside.clone(), "out")]
    {
        crow_files::create_link(&target, &cwd.join(name)).unwrap();
    }
    let names = [("$CWD", cwd.display().to_string()), ("$OUT", outside.display().to_string())];
    let mut shown = String::new();
    for request in requests {
        let real = names.iter().fold((*request).to_owned(), |text, (name, path)| text.replace(name, path));
        let words: Vec<&str> = real.split(' ').collect();
        let number = |index: usize| words.get(index).and_then(|word| word.parse().ok());
        let result = match words[0] {
            "read" => format!("{:?}", read_lines(&cwd, Path::new(words[1]), number(2), number(3))),
            _ => {
                let result = write_text(&cwd, Path::new(words[1]), "new");
                format!("{result:?} {:?}", fs::read_to_string(words[1]).ok())
            }
        };
        shown += &format!("{request}: {result}\n");
    }
    let shown = names.iter().fold(shown, |text, (name, path)| text.replace(path, name));
    expected.assert_eq(&shown);
    assert_eq!(fs::read_to_string(outside.join("key")).unwrap(), "secret");
}

#[test]
fn file_is_read_by_lines() {
    check(
        &[
            "read $CWD/a.txt",
            "read $CWD/a.txt 2",
            "read $CWD/a.txt 2 1",
            "read $CWD/a.txt 0 1",
            "read $CWD/inner 9",
        ],
        &expect![[r#"
            read $CWD/a.txt: Ok("one\ntwo\nthree")
            read $CWD/a.txt 2: Ok("two\nthree")
            read $CWD/a.txt 2 1: Ok("two\n")
            read $CWD/a.txt 0 1: Ok("one\n")
            read $CWD/inner 9: Ok("")
        "#]],
    );
}

#[test]
fn file_outside_is_not_read() {
    check(
        &["read $OUT/key", "read $CWD/../outside/key", "read $CWD/link", "read $CWD/out/key", "read a.txt"],
        &expect![[r#"
            read $OUT/key: Err(Failed("$OUT/key is outside of $CWD, the directory of the session"))
            read $CWD/../outside/key: Err(Failed("$CWD/../outside/key is outside of $CWD, the directory of the session"))
            read $CWD/link: Err(Failed("$CWD/link is outside of $CWD, the directory of the session"))
            read $CWD/out/key: Err(Failed("$CWD/out/key is outside of $CWD, the directory of the session"))
            read a.txt: Err(Failed("a.txt is not an absolute path"))
        "#]],
    );
}

#[test]
fn file_that_is_no_text_is_an_error() {
    check(
        &["read $CWD/none", "read $CWD", "read $CWD/binary", "read /dev/null"],
        &expect![[r#"
        read $CWD/none: Err(NotFound("$CWD/none: it does not exist"))
        read $CWD: Err(Failed("$CWD: it is a directory"))
        read $CWD/binary: Err(Failed("$CWD/binary is not UTF-8 text"))
        read /dev/null: Err(Failed("/dev/null is outside of $CWD, the directory of the session"))
    "#]],
    );
}

#[test]
fn file_is_written_inside_only() {
    check(
        &[
            "write $CWD/a.txt",
            "write $CWD/new/dir/b.txt",
            "write $CWD/inner",
            "write $CWD/link",
            "write $CWD/out/other",
            "write $OUT/other",
            "write $CWD/.git/config",
            "write $CWD/.GIT/config",
            "write $CWD/.git",
        ],
        &expect![[r#"
            write $CWD/a.txt: Ok(()) Some("new")
            write $CWD/new/dir/b.txt: Ok(()) Some("new")
            write $CWD/inner: Ok(()) Some("new")
            write $CWD/link: Err(Failed("$CWD/link is outside of $CWD, the directory of the session")) Some("secret")
            write $CWD/out/other: Err(Failed("$CWD/out/other is outside of $CWD, the directory of the session")) None
            write $OUT/other: Err(Failed("$OUT/other is outside of $CWD, the directory of the session")) None
            write $CWD/.git/config: Err(Failed("$CWD/.git/config is inside of .git")) None
            write $CWD/.GIT/config: Err(Failed("$CWD/.GIT/config is inside of .git")) None
            write $CWD/.git: Err(Failed("$CWD/.git is inside of .git")) None
        "#]],
    );
}
