use std::{
    fs::{self, File},
    path::Path,
    time::{Duration, SystemTime},
};

use expect_test::expect;
use serde_json::json;

use super::{Machine, check};

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
async fn grep_the_project() {
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
            Done: .github/ci.yml:1: needle: ci
            src/deep/lib.rs:1: needle
            src/deep/page.ts:1: needle
            src/main.rs:3: // needle
            > Search `^// needle$` in src Search Reads(["$DIR/project/src"])
            Done: src/main.rs:2: // Needle
            src/main.rs:3: // needle
            > Search `needle` Search Reads(["$DIR/project"])
            Done: src/deep/lib.rs:1: needle
            src/deep/page.ts:1: needle
            (the first 2 lines; there are more, use a narrower pattern or path)
            > Search `needle` in src/main.rs Search Reads(["$DIR/project/src/main.rs"])
            Done: src/main.rs:3: // needle
            > Search `needle` in target Search Reads(["$DIR/project/target"])
            Done: target/out.rs:1: needle
            > Search `no such thing` Search Reads(["$DIR/project"])
            Done: no lines match
            > Search `(` Search Reads(["$DIR/project"])
            Failed: the pattern is not a regular expression for lines: regex parse error:
                (?:()
                ^
            error: unclosed group
            > Search `a` in $DIR/nowhere Search Reads(["$DIR/nowhere"])
            Failed: could not search $DIR/nowhere: No such file or directory (os error 2)
        "#]],
    )
    .await;
}

#[tokio::test]
async fn glob_the_project() {
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
        Done: src/deep/lib.rs
        src/main.rs
        > Find `src/*` Search Reads(["$DIR/project"])
        Done: src/main.rs
        > Find `**/*.{ts,yml}` Search Reads(["$DIR/project"])
        Done: src/deep/page.ts
        .github/ci.yml
        > Find `deep/*` in src Search Reads(["$DIR/project/src"])
        Done: src/deep/page.ts
        src/deep/lib.rs
        > Find `*.py` Search Reads(["$DIR/project"])
        Done: no files match
        > Find `[` Search Reads(["$DIR/project"])
        Failed: the pattern is not a glob: error parsing glob '[': unclosed character class; missing ']'
    "#]],
    )
    .await;
}

#[tokio::test]
async fn many_are_cut() {
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

#[test]
fn a_walk_stops_when_it_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let cut = tokio_util::sync::CancellationToken::new();
    let mut n_visited = 0;
    let walked = crate::walk::walk(folder.path(), ".", &cut, |_| {
        n_visited += 1;
        cut.cancel();
        crate::walk::Walk::On
    });
    assert_eq!((n_visited, walked.unwrap_err().0.as_str()), (1, "stopped: the turn was cancelled"));
}
