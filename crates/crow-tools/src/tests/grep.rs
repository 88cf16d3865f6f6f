use std::{fs, path::Path};

use expect_test::expect;
use serde_json::json;

use super::check;

#[tokio::test]
async fn file_with_a_late_zero_byte_is_reported() {
    let setup = |cwd: &Path| {
        let lines = "line\n".repeat(20_000);
        fs::write(cwd.join("early.bin"), "needle\n\0needle\n").unwrap();
        fs::write(cwd.join("late.log"), format!("needle\n{lines}\0\nneedle\n")).unwrap();
        fs::create_dir(cwd.join("more")).unwrap();
        for name in ["a.log", "b.log"] {
            fs::write(cwd.join("more").join(name), format!("{lines}\0\nneedle\n")).unwrap();
        }
    };
    let calls = [
        ("grep", json!({"pattern": "needle", "path": "late.log"})),
        ("grep", json!({"pattern": "needle", "path": "late.log", "output": "files"})),
        ("grep", json!({"pattern": "needle", "path": "more", "output": "count"})),
        ("grep", json!({"pattern": "needle", "path": "early.bin"})),
    ];
    check(
        setup,
        &calls,
        expect![[r#"
            > Search `needle` in late.log Search Reads(["$DIR/project/late.log"])
            Completed: late.log:1: needle
            (late.log has a zero byte and was searched only in part)
            > Search `needle` in late.log Search Reads(["$DIR/project/late.log"])
            Completed: late.log
            > Search `needle` in more Search Reads(["$DIR/project/more"])
            Completed: no lines match
            (2 files have a zero byte and were searched only in part: more/a.log, more/b.log)
            > Search `needle` in early.bin Search Reads(["$DIR/project/early.bin"])
            Completed: no lines match
        "#]],
    )
    .await;
}

#[tokio::test]
async fn include_may_be_relative_to_the_working_folder() {
    let setup = |cwd: &Path| {
        fs::create_dir_all(cwd.join("src/deep")).unwrap();
        fs::create_dir_all(cwd.join("src/src")).unwrap();
        for name in ["src/a.rs", "src/b.ts", "src/deep/c.rs", "src/src/d.rs"] {
            fs::write(cwd.join(name), "needle\n").unwrap();
        }
    };
    let grep =
        |path: &str, include: &str| ("grep", json!({"pattern": "needle", "path": path, "include": include}));
    let calls = [
        grep("src", "src/**/*.rs"),
        grep("src", "deep/*.rs"),
        grep("src/deep/c.rs", "src/**/*.rs"),
        grep("src/deep/c.rs", "lib/**/*.rs"),
        grep("src/*", "src/deep/*"),
        grep("src", "./src/*.ts"),
    ];
    check(
        setup,
        &calls,
        expect![[r#"
            > Search `needle` in src Search Reads(["$DIR/project/src"])
            Completed: src/a.rs:1: needle
            src/deep/c.rs:1: needle
            src/src/d.rs:1: needle
            > Search `needle` in src Search Reads(["$DIR/project/src"])
            Completed: src/deep/c.rs:1: needle
            > Search `needle` in src/deep/c.rs Search Reads(["$DIR/project/src/deep/c.rs"])
            Completed: src/deep/c.rs:1: needle
            > Search `needle` in src/deep/c.rs Search Reads(["$DIR/project/src/deep/c.rs"])
            Completed: no lines match
            > Search `needle` in src Search Reads(["$DIR/project/src"])
            Completed: src/deep/c.rs:1: needle
            > Search `needle` in src Search Reads(["$DIR/project/src"])
            Completed: src/b.ts:1: needle
        "#]],
    )
    .await;
}
