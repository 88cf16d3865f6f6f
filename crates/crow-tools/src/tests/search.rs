use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::{Duration, SystemTime},
};

use expect_test::expect;
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Machine, check};
use crate::walk::{FileVisitor, FoundFile, walk_files};

fn project(cwd: &Path) {
    let files = [
        (".gitignore", "target/\n*.log\n"),
        (".git/config", "needle"),
        (".github/ci.yml", "needle: ci\n"),
        ("src/main.rs", "fn main() {}\r\n// Needle\r\n// needle\r\n"),
        ("src/deep/lib.rs", "needle"),
        ("src/deep/page.ts", "needle\n"),
        ("target/out.rs", "needle"),
        ("a.log", "needle"),
        ("data.bin", "\0needle"),
    ];
    for (age, (name, text)) in files.into_iter().enumerate() {
        let path = cwd.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + age as u64);
        File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    }
}

#[tokio::test]
async fn grep_leaves_out_key_files_unless_given() {
    let setup = |cwd: &Path| {
        for name in [".env", ".env.example", "a/server.pem", "a/.ssh/config", "a/plain"] {
            let path = cwd.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "needle\n").unwrap();
        }
    };
    let calls = [
        ("grep", json!({"pattern": "needle"})),
        ("grep", json!({"pattern": "needle", "path": "a", "output": "count"})),
        ("grep", json!({"pattern": "needle", "include": "*.pem"})),
        ("grep", json!({"pattern": "needle", "path": ".env"})),
        ("grep", json!({"pattern": "needle", "path": "a/.ssh"})),
    ];
    check(
        setup,
        &calls,
        expect![[r#"
            > Search `needle` Search Reads(["$DIR/project"])
            Completed: .env.example:1: needle
            a/plain:1: needle
            (3 files that contain keys, by their names, were left out; a `path` to one of them asks the user)
            > Search `needle` in a Search Reads(["$DIR/project/a"])
            Completed: a/plain: 1
            (2 files that contain keys, by their names, were left out; a `path` to one of them asks the user)
            > Search `needle` Search Reads(["$DIR/project"])
            Completed: no lines match
            (1 file that contains keys, by its name, was left out; a `path` to it asks the user)
            > Search `needle` in .env Search Reads(["$DIR/project/.env"])
            Completed: .env:1: needle
            > Search `needle` in a/.ssh Search Reads(["$DIR/project/a/.ssh"])
            Completed: a/.ssh/config:1: needle
        "#]],
    )
    .await;
}

#[tokio::test]
async fn grep_finds_lines() {
    let calls = [
        ("grep", json!({"pattern": "needle"})),
        ("grep", json!({"pattern": "^// needle$", "ignore_case": true, "path": "src"})),
        ("grep", json!({"pattern": "needle", "include": "*.{rs,ts}", "limit": 2})),
        ("grep", json!({"pattern": "needle", "path": "src/main.rs"})),
        ("grep", json!({"pattern": "needle", "path": "target"})),
        ("grep", json!({"pattern": "no such thing"})),
        ("grep", json!({"pattern": "(", "path": "."})),
        ("grep", json!({"pattern": "a", "path": "../nowhere"})),
    ];
    check(
        project,
        &calls,
        expect![[r#"
            > Search `needle` Search Reads(["$DIR/project"])
            Completed: .github/ci.yml:1: needle: ci
            src/deep/lib.rs:1: needle
            src/deep/page.ts:1: needle
            src/main.rs:3: // needle
            > Search `^// needle$` in src Search Reads(["$DIR/project/src"])
            Completed: src/main.rs:2: // Needle
            src/main.rs:3: // needle
            > Search `needle` Search Reads(["$DIR/project"])
            Completed: src/deep/lib.rs:1: needle
            src/deep/page.ts:1: needle
            (the first 2 lines; there are more, use a narrower pattern or path)
            > Search `needle` in src/main.rs Search Reads(["$DIR/project/src/main.rs"])
            Completed: src/main.rs:3: // needle
            > Search `needle` in target Search Reads(["$DIR/project/target"])
            Completed: target/out.rs:1: needle
            > Search `no such thing` Search Reads(["$DIR/project"])
            Completed: no lines match
            > Search `(` Search Reads(["$DIR/project"])
            Failed: the pattern is not a regular expression for lines: regex parse error:
                (?:()
                ^
            error: unclosed group
            > Search `a` in $DIR/nowhere Search Reads(["$DIR/nowhere"])
            Failed: could not search $DIR/nowhere: it does not exist
        "#]],
    )
    .await;
}

#[tokio::test]
async fn grep_takes_wildcards_in_its_path() {
    let calls = [
        ("grep", json!({"pattern": "needle", "path": "src/**/*.rs"})),
        ("grep", json!({"pattern": "needle", "path": "src/*", "include": "*.ts"})),
        ("grep", json!({"pattern": "needle", "path": "*.rs"})),
        ("grep", json!({"pattern": "needle", "path": "nowhere/*.rs"})),
    ];
    check(
        project,
        &calls,
        expect![[r#"
        > Search `needle` in src Search Reads(["$DIR/project/src"])
        Completed: src/deep/lib.rs:1: needle
        src/main.rs:3: // needle
        > Search `needle` in src Search Reads(["$DIR/project/src"])
        Completed: src/deep/page.ts:1: needle
        > Search `needle` Search Reads(["$DIR/project"])
        Completed: src/deep/lib.rs:1: needle
        src/main.rs:3: // needle
        > Search `needle` in nowhere Search Reads(["$DIR/project/nowhere"])
        Failed: could not search nowhere: it does not exist
    "#]],
    )
    .await;
}

#[tokio::test]
async fn grep_tells_of_files_whose_names_match() {
    let calls = [
        ("grep", json!({"pattern": ".*\\.rs$"})),
        ("grep", json!({"pattern": "^page", "path": "src"})),
        ("grep", json!({"pattern": "^page", "path": "src", "include": "*.rs"})),
    ];
    check(
        project,
        &calls,
        expect![[r#"
            > Search `.*\.rs$` Search Reads(["$DIR/project"])
            Completed: no lines match
            (but the names of 2 files match, which `glob` finds: src/deep/lib.rs, src/main.rs)
            > Search `^page` in src Search Reads(["$DIR/project/src"])
            Completed: no lines match
            (but the name of 1 file matches, which `glob` finds: src/deep/page.ts)
            > Search `^page` in src Search Reads(["$DIR/project/src"])
            Completed: no lines match
        "#]],
    )
    .await;
    let many = |dir: &Path| {
        for n in 0..12 {
            fs::write(dir.join(format!("{n:02}.ini")), "").unwrap();
        }
    };
    check(many, &[("grep", json!({"pattern": "ini"}))], expect![[r#"
        > Search `ini` Search Reads(["$DIR/project"])
        Completed: no lines match
        (but the names of 12 files match, which `glob` finds: 00.ini, 01.ini, 02.ini, 03.ini, 04.ini, 05.ini, 06.ini, 07.ini, 08.ini, 09.ini and 2 more)
    "#]]).await;
}

#[tokio::test]
async fn glob_finds_files() {
    let calls = [
        ("glob", json!({"pattern": "*.rs"})),
        ("glob", json!({"pattern": "src/*"})),
        ("glob", json!({"pattern": "**/*.{ts,yml}"})),
        ("glob", json!({"pattern": "deep/*", "path": "src"})),
        ("glob", json!({"pattern": "*.py"})),
        ("glob", json!({"pattern": "["})),
    ];
    check(
        project,
        &calls,
        expect![[r#"
            > Find `*.rs` Search Reads(["$DIR/project"])
            Completed: src/deep/lib.rs
            src/main.rs
            (2 files)
            > Find `src/*` Search Reads(["$DIR/project"])
            Completed: src/main.rs
            > Find `**/*.{ts,yml}` Search Reads(["$DIR/project"])
            Completed: src/deep/page.ts
            .github/ci.yml
            (2 files)
            > Find `deep/*` in src Search Reads(["$DIR/project/src"])
            Completed: src/deep/page.ts
            src/deep/lib.rs
            (2 files)
            > Find `*.py` Search Reads(["$DIR/project"])
            Completed: no files match
            > Find `[` Search Reads(["$DIR/project"])
            Failed: the pattern is not a glob: unclosed character class; missing ']'
        "#]],
    )
    .await;
}

#[tokio::test]
async fn results_are_limited() {
    let machine = Machine::new(|cwd| {
        for number in 0..150 {
            fs::write(cwd.join(format!("{number}.txt")), format!("{}\n", "x".repeat(1000))).unwrap();
        }
    });
    let said = machine.call("grep", json!({"pattern": "x"})).await;
    assert!(said.ends_with("(the first 100 lines; there are more, use a narrower pattern or path)\n"));
    assert!(said.contains("xxx… (cut, the line has 1000 characters)\n") && said.len() < 50_000);
    let said = machine.call("glob", json!({"pattern": "*"})).await;
    assert!(said.ends_with("(100 of 150 files; use a narrower pattern or path)\n"));
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[tokio::test]
async fn grep_shows_the_requested_output() {
    let setup = |cwd: &Path| {
        fs::write(cwd.join("a"), "1\n2 x\n3\n4\n5\n6\n7 x\n8 x\n9\n").unwrap();
        fs::write(cwd.join("b"), "x\n").unwrap();
    };
    let grep = |more: Value| {
        let mut arguments = json!({"pattern": "x"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ("grep", arguments)
    };
    let calls = [
        grep(json!({"context": 1})),
        grep(json!({"context": 1, "limit": 4})),
        grep(json!({"context": 1, "limit": 6, "path": "a"})),
        grep(json!({"context": 3, "path": "a"})),
        grep(json!({"output": "files"})),
        grep(json!({"output": "files", "limit": 1})),
        grep(json!({"output": "count", "context": 2})),
        grep(json!({"output": "count", "limit": 1})),
        grep(json!({"output": "files", "pattern": "y"})),
    ];
    check(
        setup,
        &calls,
        expect![[r#"
            > Search `x` Search Reads(["$DIR/project"])
            Completed: a-1- 1
            a:2: 2 x
            a-3- 3
            --
            a-6- 6
            a:7: 7 x
            a:8: 8 x
            a-9- 9
            b:1: x
            > Search `x` Search Reads(["$DIR/project"])
            Completed: a-1- 1
            a:2: 2 x
            a-3- 3
            --
            a-6- 6
            (the first 4 lines; there are more, use a narrower pattern or path)
            > Search `x` in a Search Reads(["$DIR/project/a"])
            Completed: a-1- 1
            a:2: 2 x
            a-3- 3
            --
            a-6- 6
            a:7: 7 x
            a:8: 8 x
            (the first 6 lines; there are more, use a narrower pattern or path)
            > Search `x` in a Search Reads(["$DIR/project/a"])
            Completed: a-1- 1
            a:2: 2 x
            a-3- 3
            a-4- 4
            a-5- 5
            a-6- 6
            a:7: 7 x
            a:8: 8 x
            a-9- 9
            > Search `x` Search Reads(["$DIR/project"])
            Completed: a
            b
            > Search `x` Search Reads(["$DIR/project"])
            Completed: a
            (the first 1 files; there are more, use a narrower pattern or path)
            > Search `x` Search Reads(["$DIR/project"])
            Completed: a: 3
            b: 1
            > Search `x` Search Reads(["$DIR/project"])
            Completed: a: 3
            (the first 1 files; there are more, use a narrower pattern or path)
            > Search `y` Search Reads(["$DIR/project"])
            Completed: no lines match
        "#]],
    )
    .await;
}

#[tokio::test]
async fn encodings_are_searched() {
    let setup = |cwd: &Path| {
        let utf16: Vec<u8> = "\u{feff}grün x\r\nblau\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        fs::write(cwd.join("utf16le"), utf16).unwrap();
        let utf16: Vec<u8> = "\u{feff}grün\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        fs::write(cwd.join("utf16be"), utf16).unwrap();
        fs::write(cwd.join("utf8"), "\u{feff}grün\n").unwrap();
        fs::write(cwd.join("latin1"), b"gr\xfcn\n").unwrap();
        fs::write(cwd.join("binary"), b"gr\xfcn\0gr").unwrap();
    };
    let calls =
        [("grep", json!({"pattern": "^gr.*n"})), ("grep", json!({"pattern": "GRÜN", "ignore_case": true}))];
    check(
        setup,
        &calls,
        expect![[r#"
            > Search `^gr.*n` Search Reads(["$DIR/project"])
            Completed: utf16be:1: grün
            utf16le:1: grün x
            utf8:1: grün
            > Search `GRÜN` Search Reads(["$DIR/project"])
            Completed: utf16be:1: grün
            utf16le:1: grün x
            utf8:1: grün
        "#]],
    )
    .await;
}

#[tokio::test]
async fn ignored_files_are_left_out() {
    let setup = |cwd: &Path| {
        let files = [
            (".gitignore", "by-git\n"),
            (".ignore", "by-ignore\n"),
            (".rgignore", "by-rg\n!kept\n"),
            (".git/info/exclude", "by-exclude\n/sub/anchored\n"),
            ("by-git", ""),
            ("by-ignore", ""),
            ("by-rg", ""),
            ("by-exclude", ""),
            ("sub/.gitignore", "kept\nnot-here\n"),
            ("sub/by-exclude", ""),
            ("sub/anchored", ""),
            ("sub/not-here", ""),
            ("sub/kept", ""),
            ("not-here", ""),
        ];
        for (name, text) in files {
            fs::create_dir_all(cwd.join(name).parent().unwrap()).unwrap();
            fs::write(cwd.join(name), text).unwrap();
        }
    };
    for path in [".", "sub"] {
        let machine = Machine::new(setup);
        let said = machine.call("glob", json!({"pattern": "**/[a-z]*", "path": path})).await;
        let mut files: Vec<_> =
            said.lines().skip(1).map(|line| line.trim_start_matches("Completed: ")).collect();
        files.sort_unstable();
        let expected: &[&str] =
            if path == "." { &["(2 files)", "not-here", "sub/kept"] } else { &["sub/kept"] };
        // `.rgignore` has precedence over the others.
        assert_eq!(files, expected);
    }
}

#[tokio::test]
async fn endless_ignore_files_are_bounded() {
    let setup = |cwd: &Path| {
        for dir in ["link", "pipe", "large", "fine"] {
            fs::create_dir(cwd.join(dir)).unwrap();
            fs::write(cwd.join(dir).join("a"), "needle\n").unwrap();
            // Of the same age, so that they are listed by name.
            File::options()
                .append(true)
                .open(cwd.join(dir).join("a"))
                .unwrap()
                .set_modified(std::time::SystemTime::UNIX_EPOCH)
                .unwrap();
        }
        symlink("/dev/zero", cwd.join("link/.gitignore")).unwrap();
        mkfifoat(CWD, cwd.join("pipe/.ignore"), Mode::from_raw_mode(0o600)).unwrap();
        File::create(cwd.join("large/.rgignore")).unwrap().set_len(1 << 40).unwrap();
        symlink("../none", cwd.join("fine/.gitignore")).unwrap();
    };
    let calls = [
        ("grep", json!({"pattern": "needle"})),
        ("glob", json!({"pattern": "a"})),
        ("grep", json!({"pattern": "needle", "path": "link"})),
        ("glob", json!({"pattern": "a", "path": "pipe"})),
        ("grep", json!({"pattern": "needle", "path": "large/a"})),
    ];
    check(
        setup,
        &calls,
        expect![[r#"
            > Search `needle` Search Reads(["$DIR/project"])
            Completed: fine/a:1: needle
            large/a:1: needle
            link/a:1: needle
            pipe/a:1: needle
            (ignore files that could not be read completely: 3; ignored files may be included)
            > Find `a` Search Reads(["$DIR/project"])
            Completed: fine/a
            large/a
            link/a
            pipe/a
            (4 files)
            (ignore files that could not be read completely: 3; ignored files may be included)
            > Search `needle` in link Search Reads(["$DIR/project/link"])
            Completed: link/a:1: needle
            (ignore files that could not be read completely: 1; ignored files may be included)
            > Find `a` in pipe Search Reads(["$DIR/project/pipe"])
            Completed: pipe/a
            (ignore files that could not be read completely: 1; ignored files may be included)
            > Search `needle` in large/a Search Reads(["$DIR/project/large/a"])
            Completed: large/a:1: needle
        "#]],
    )
    .await;
}

#[tokio::test]
async fn links_are_not_followed() {
    let setup = |cwd: &Path| {
        fs::create_dir_all(cwd.join("../outside")).unwrap();
        fs::write(cwd.join("../outside/a"), "needle").unwrap();
        fs::write(cwd.join("b"), "needle").unwrap();
        symlink("../outside", cwd.join("away")).unwrap();
        symlink("../outside/a", cwd.join("file")).unwrap();
        symlink("b", cwd.join("c")).unwrap();
        symlink(".", cwd.join("round")).unwrap();
    };
    check(
        setup,
        &[("grep", json!({"pattern": "needle"})), ("glob", json!({"pattern": "*"}))],
        expect![[r#"
            > Search `needle` Search Reads(["$DIR/project"])
            Completed: b:1: needle
            > Find `*` Search Reads(["$DIR/project"])
            Completed: b
        "#]],
    )
    .await;
}

#[tokio::test]
async fn first_lines_are_deterministic() {
    let machine = Machine::new(|cwd| {
        for dir in 0..30 {
            let dir = cwd.join(format!("d{}", dir * 7 % 30));
            fs::create_dir(&dir).unwrap();
            for file in 0..10 {
                fs::write(dir.join(format!("f{}", file * 3 % 10)), "x\ny\nx\n").unwrap();
            }
        }
    });
    let call = json!({"pattern": "x", "limit": 7});
    let first = machine.call("grep", call.clone()).await;
    assert!(first.ends_with(
        "Completed: d0/f0:1: x\nd0/f0:3: x\nd0/f1:1: x\nd0/f1:3: x\nd0/f2:1: x\nd0/f2:3: x\nd0/f3:1: x\n(the first 7 \
         lines; there are more, use a narrower pattern or path)\n"
    ));
    for _ in 0..50 {
        assert_eq!(machine.call("grep", call.clone()).await, first);
    }
}

struct CutsAtTheFirst<'a>(&'a CancellationToken, &'a AtomicUsize);

impl FileVisitor for CutsAtTheFirst<'_> {
    fn visit_file(&mut self, _: FoundFile) {
        self.1.fetch_add(1, Relaxed);
        self.0.cancel();
    }
}

#[test]
fn walk_stops_when_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..1000 {
        fs::write(dir.path().join(number.to_string()), "").unwrap();
    }
    let (cancel, n_visited) = (CancellationToken::new(), AtomicUsize::new(0));
    let start = dir.path().canonicalize().unwrap();
    let walked = walk_files(&start, ".", &cancel, || CutsAtTheFirst(&cancel, &n_visited));
    assert_eq!(walked.unwrap_err().0, "stopped: the turn was cancelled");
    // Each thread may be in the middle of one.
    assert!(n_visited.load(Relaxed) <= 8);
}

#[tokio::test]
async fn names_are_one_line_each() {
    let setup = |cwd: &Path| {
        fs::create_dir(cwd.join("a\nb")).unwrap();
        fs::write(cwd.join("a\nb/c\u{202e}d"), "needle\n").unwrap();
        fs::create_dir(cwd.join("e\u{202e}f")).unwrap();
    };
    check(
        setup,
        &[
            ("grep", json!({"pattern": "needle"})),
            ("glob", json!({"pattern": "*"})),
            ("grep", json!({"pattern": "needle", "path": "e\u{202e}f"})),
            ("read", json!({"file_path": "gone\u{202e}"})),
        ],
        expect![[r#"
            > Search `needle` Search Reads(["$DIR/project"])
            Completed: a\nb/c\u{202e}d:1: needle
            > Find `*` Search Reads(["$DIR/project"])
            Completed: a\nb/c\u{202e}d
            > Search `needle` in e\u{202e}f Search Reads(["$DIR/project/e\u{202e}f"])
            Completed: no lines match
            > Read gone\u{202e} Read Reads(["$DIR/project/gone\u{202e}"])
            Failed: could not read gone\u{202e}: it does not exist
        "#]],
    )
    .await;
}

#[tokio::test]
async fn glob_names_files_of_this_name_in_other_places() {
    let setup = |cwd: &Path| {
        fs::create_dir_all(cwd.join("src/deep")).unwrap();
        for name in ["src/a.rs", "src/deep/b.rs", "c.rs"] {
            fs::write(cwd.join(name), "").unwrap();
        }
    };
    check(
        setup,
        &[
            ("glob", json!({"pattern": "lib/**/*.rs"})),
            ("glob", json!({"pattern": "lib/c.rs"})),
            ("glob", json!({"pattern": "lib/d.rs"})),
            ("glob", json!({"pattern": "lib/"})),
            ("glob", json!({"pattern": "lib/**"})),
            ("glob", json!({"pattern": "{lib/*.rs,test/*.rs}"})),
            ("glob", json!({"pattern": "src/*.rs"})),
        ],
        expect![[r#"
            > Find `lib/**/*.rs` Search Reads(["$DIR/project"])
            Completed: no files match
            (but 3 files in other places have such names: c.rs, src/a.rs, src/deep/b.rs)
            > Find `lib/c.rs` Search Reads(["$DIR/project"])
            Completed: no files match
            (but 1 file in another place has such a name: c.rs)
            > Find `lib/d.rs` Search Reads(["$DIR/project"])
            Completed: no files match
            > Find `lib/` Search Reads(["$DIR/project"])
            Completed: no files match
            > Find `lib/**` Search Reads(["$DIR/project"])
            Completed: no files match
            > Find `{lib/*.rs,test/*.rs}` Search Reads(["$DIR/project"])
            Completed: no files match
            > Find `src/*.rs` Search Reads(["$DIR/project"])
            Completed: src/a.rs
        "#]],
    )
    .await;
}
