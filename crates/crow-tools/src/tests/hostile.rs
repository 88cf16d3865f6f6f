use std::{
    fs::{self, File},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use expect_test::{Expect, expect};
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};

use super::Machine;

fn place(cwd: &Path) {
    fs::create_dir(cwd.join("folder")).unwrap();
    fs::write(cwd.join("file"), "text\n").unwrap();
    fs::write(cwd.join("fixed"), "fixed").unwrap();
    fs::set_permissions(cwd.join("fixed"), fs::Permissions::from_mode(0o400)).unwrap();
    symlink("gone/there", cwd.join("dangling")).unwrap();
    symlink("round", cwd.join("round")).unwrap();
    symlink("file", cwd.join("link")).unwrap();
    mkfifoat(CWD, cwd.join("pipe"), Mode::from_raw_mode(0o600)).unwrap();
}

/// Makes calls of one tool and shows how each ends, without long output.
async fn check(tool: &str, calls: &[Value], expect: Expect) {
    let machine = Machine::new(place);
    let mut said = String::new();
    for arguments in calls {
        let shown: String = arguments.to_string().chars().take(70).collect();
        let all = machine.call(tool, arguments.clone()).await;
        let (_, result) = all.split_once('\n').unwrap();
        let process = format!("/proc/{}/", std::process::id());
        let result: String = result.replace(&process, "/proc/ID/").chars().take(300).collect();
        said += &format!("{shown}\n  {}\n", result.trim_end().replace('\n', "\n  "));
    }
    expect.assert_eq(&said);
    let mut names: Vec<_> =
        fs::read_dir(machine.workspace.cwd()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    // Temporary files are deleted in every case.
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with(".crow-")), "{names:?}");
}

fn paths(more: &Value) -> Vec<Value> {
    let long = "a/".repeat(500_000);
    let paths = [
        "",
        " ",
        ".",
        "..",
        "/",
        "\0",
        "file\0.txt",
        "folder",
        "file/",
        "file/below",
        "pipe",
        "dangling",
        "round",
        "link",
        "fixed",
        "folder/../../project/file",
        "~/file",
        "/dev/zero",
        "/dev/full",
        "/dev/stdin/x",
        "/proc/self/mem",
        "/proc/self/fd/999",
        "/proc/self/root/proc/none",
        &"x".repeat(300),
        &long,
    ];
    let with = |path: &str| {
        let mut arguments = more.clone();
        arguments["file_path"] = path.into();
        arguments
    };
    let mut calls: Vec<Value> = paths.into_iter().map(with).collect();
    calls.extend([
        json!({}),
        json!({"file_path": null}),
        json!({"file_path": 7}),
        json!({"file_path": ["file"]}),
    ]);
    calls
}

#[tokio::test]
async fn read_survives_hostile_paths() {
    check("read", &paths(&json!({})), expect![[r#"
        {"file_path":""}
          Failed: could not read .: it is a directory; list it with `glob`
        {"file_path":" "}
          Failed: could not read  : it does not exist
        {"file_path":"."}
          Failed: could not read .: it is a directory; list it with `glob`
        {"file_path":".."}
          Failed: could not read $DIR: it is a directory; list it with `glob`
        {"file_path":"/"}
          Failed: could not read /: it is a directory; list it with `glob`
        {"file_path":"\u0000"}
          Failed: could not use the path ` `: a path cannot contain a zero byte
        {"file_path":"file\u0000.txt"}
          Failed: could not use the path `file .txt`: a path cannot contain a zero byte
        {"file_path":"folder"}
          Failed: could not read folder: it is a directory; list it with `glob`
        {"file_path":"file/"}
          Completed:      1	text
        {"file_path":"file/below"}
          Failed: could not read file/below: it does not exist
        {"file_path":"pipe"}
          Failed: could not read pipe: it is a device or a pipe, not a file
        {"file_path":"dangling"}
          Failed: could not read dangling: it does not exist
        {"file_path":"round"}
          Failed: could not read round: a link in its path is circular or was created just now
        {"file_path":"link"}
          Completed:      1	text
        {"file_path":"fixed"}
          Completed:      1	fixed
        {"file_path":"folder/../../project/file"}
          Completed:      1	text
        {"file_path":"~/file"}
          Failed: could not read ~/file: it does not exist
        {"file_path":"/dev/zero"}
          Failed: could not read /dev/zero: it is a device or a pipe, not a file
        {"file_path":"/dev/full"}
          Failed: could not read /dev/full: it is a device or a pipe, not a file
        {"file_path":"/dev/stdin/x"}
          Failed: could not read /dev/stdin/x: it does not exist
        {"file_path":"/proc/self/mem"}
          Failed: could not read /proc/self/mem: Input/output error (os error 5)
        {"file_path":"/proc/self/fd/999"}
          Failed: could not read /proc/self/fd/999: it does not exist
        {"file_path":"/proc/self/root/proc/none"}
          Failed: could not read /proc/self/root/proc/none: it does not exist
        {"file_path":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          Failed: could not read xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        {"file_path":"a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/
          Failed: could not use the path `a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a…`: it is longer than any path
        {}
          Failed: `read` was not run: `file_path` is missing; it must be a string
        {"file_path":null}
          Failed: `read` was not run: `file_path` must be a string, not null
        {"file_path":7}
          Failed: could not read 7: it does not exist
        {"file_path":["file"]}
          Failed: `read` was not run: `file_path` must be a string, not the array ["file"]
    "#]]).await;
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[tokio::test]
async fn write_survives_hostile_paths() {
    // The root directory, devices and the like are unchanged; files are created in the project.
    let mut calls = paths(&json!({"content": "new\n"}));
    // It leads elsewhere on each machine.
    calls.retain(|call| call["file_path"] != "/dev/stdin/x");
    check("write", &calls, expect![[r#"
        {"content":"new\n","file_path":""}
          Failed: could not write .: it is a directory
        {"content":"new\n","file_path":" "}
          Completed: created  : 1 line
          client: Diff { path: "$DIR/project/ ", old: None, new: "new\n" }
        {"content":"new\n","file_path":"."}
          Failed: could not write .: it is a directory
        {"content":"new\n","file_path":".."}
          Failed: could not write $DIR: it is a directory
        {"content":"new\n","file_path":"/"}
          Failed: could not write /: it is a directory
        {"content":"new\n","file_path":"\u0000"}
          Failed: could not use the path ` `: a path cannot contain a zero byte
        {"content":"new\n","file_path":"file\u0000.txt"}
          Failed: could not use the path `file .txt`: a path cannot contain a zero byte
        {"content":"new\n","file_path":"folder"}
          Failed: could not write folder: it is a directory
        {"content":"new\n","file_path":"file/"}
          Failed: could not write file: it was not read in this session; nothing was changed, and these are its lines:
               1	text
          (change a part of it, append to it, or write it again to replace all of these lines)
        {"content":"new\n","file_path":"file/below"}
          Failed: could not write file/below: the directory $DIR/project/file could not be created: Not a directory (os error 20)
        {"content":"new\n","file_path":"pipe"}
          Failed: could not write pipe: it is a device or a pipe, not a file
        {"content":"new\n","file_path":"dangling"}
          Completed: created dangling: 1 line
          client: Diff { path: "$DIR/project/dangling", old: None, new: "new\n" }
        {"content":"new\n","file_path":"round"}
          Failed: could not write round: a link in its path is circular or was created just now
        {"content":"new\n","file_path":"link"}
          Completed: replaced link: 1 line before, 1 line now
          client: Diff { path: "$DIR/project/link", old: Some("text\n"), new: "new\n" }
        {"content":"new\n","file_path":"fixed"}
          Failed: could not write fixed: it was not read in this session; nothing was changed, and these are its lines:
               1	fixed
          (change a part of it, append to it, or write it again to replace all of these lines)
        {"content":"new\n","file_path":"folder/../../project/file"}
          Completed: file already has this content; nothing was changed
        {"content":"new\n","file_path":"~/file"}
          Completed: created ~/file: 1 line
          client: Diff { path: "$DIR/project/~/file", old: None, new: "new\n" }
        {"content":"new\n","file_path":"/dev/zero"}
          Failed: could not write /dev/zero: it is a device or a pipe, not a file
        {"content":"new\n","file_path":"/dev/full"}
          Failed: could not write /dev/full: it is a device or a pipe, not a file
        {"content":"new\n","file_path":"/proc/self/mem"}
          Failed: could not write /proc/self/mem: Input/output error (os error 5)
        {"content":"new\n","file_path":"/proc/self/fd/999"}
          Failed: could not write /proc/self/fd/999: No such file or directory (os error 2)
        {"content":"new\n","file_path":"/proc/self/root/proc/none"}
          Failed: could not write /proc/self/root/proc/none: No such file or directory (os error 2)
        {"content":"new\n","file_path":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          Failed: could not write xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        {"content":"new\n","file_path":"a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/
          Failed: could not use the path `a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a…`: it is longer than any path
        {}
          Failed: `write` was not run: `file_path` is missing; it must be a string; `content` is missing; it must be a string
        {"file_path":null}
          Failed: `write` was not run: `file_path` must be a string, not null; `content` is missing; it must be a string
        {"file_path":7}
          Failed: `write` was not run: `content` is missing; it must be a string
        {"file_path":["file"]}
          Failed: `write` was not run: `file_path` must be a string, not the array ["file"]; `content` is missing; it must be a string
    "#]]).await;
}

#[tokio::test]
async fn read_survives_hostile_ranges() {
    let page = |offset: Value, limit: Value| json!({"file_path": "file", "offset": offset, "limit": limit});
    let calls = [
        page(json!(0), json!(1)),
        page(json!(-1), json!(1)),
        page(json!(1), json!(0)),
        page(json!(1.5), json!(1)),
        page(json!(1e300), json!(1)),
        page(json!(u64::MAX), json!(1)),
        page(json!(1), json!(u64::MAX)),
        page(json!("1"), json!("two")),
        page(json!(null), json!(null)),
        page(json!(true), json!({})),
    ];
    check("read", &calls, expect![[r#"
        {"file_path":"file","offset":0,"limit":1}
          Completed:      1	text
        {"file_path":"file","offset":-1,"limit":1}
          Failed: `read` was not run: `offset` must be at least 1, not -1
        {"file_path":"file","offset":1,"limit":0}
          Completed:      1	text
        {"file_path":"file","offset":1.5,"limit":1}
          Failed: `read` was not run: `offset` must be an integer, not the number 1.5
        {"file_path":"file","offset":1e+300,"limit":1}
          Failed: `read` was not run: `offset` must be an integer, not the number 1e+300
        {"file_path":"file","offset":18446744073709551615,"limit":1}
          Failed: could not read file from line 18446744073709551615: it has 1 lines
        {"file_path":"file","offset":1,"limit":18446744073709551615}
          Completed:      1	text
        {"file_path":"file","offset":"1","limit":"two"}
          Failed: `read` was not run: `limit` must be an integer, not the string "two"
        {"file_path":"file","offset":null,"limit":null}
          Completed:      1	text
        {"file_path":"file","offset":true,"limit":{}}
          Failed: `read` was not run: `offset` must be an integer, not true; `limit` must be an integer, not the object {}
    "#]]).await;
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[tokio::test]
async fn grep_survives_hostile_patterns() {
    let deep = "(".repeat(5000) + &")".repeat(5000);
    let calls = [
        json!({"pattern": ""}),
        json!({"pattern": "\0"}),
        json!({"pattern": "\n"}),
        json!({"pattern": "te\nxt"}),
        json!({"pattern": "(?:a+)+$"}),
        json!({"pattern": "(((x{1000}){1000}){1000})"}),
        json!({"pattern": deep}),
        json!({"pattern": "x".repeat(10_000_000)}),
        json!({"pattern": "[a-"}),
        json!({"pattern": "\\1"}),
        json!({"pattern": ".", "limit": 0}),
        json!({"pattern": ".", "limit": -1}),
        json!({"pattern": ".", "limit": 1e9}),
        json!({"pattern": ".", "context": 1000}),
        json!({"pattern": ".", "context": -1}),
        json!({"pattern": ".", "output": "all"}),
        json!({"pattern": ".", "include": "["}),
        json!({"pattern": ".", "include": "{a,".repeat(10_000)}),
        json!({"pattern": ".", "include": "**/".repeat(3000)}),
        json!({"pattern": ["."]}),
        json!({"pattern": ".", "path": "pipe"}),
        json!({"pattern": ".", "path": "/dev/zero"}),
        json!({"pattern": ".", "path": "/dev/stdin/x"}),
        json!({"pattern": ".", "path": "/proc/self/mem"}),
        json!({"pattern": ".", "path": "round"}),
        json!({"pattern": ".", "path": "dangling"}),
        json!({"pattern": ".", "path": "file\0"}),
        json!({"pattern": ".", "path": "a/".repeat(500_000)}),
        json!({"pattern": ".", "path": 5}),
        json!({"pattern": ".", "path": "link"}),
    ];
    check("grep", &calls, expect![[r#"
        {"pattern":""}
          Completed: file:1: text
          fixed:1: fixed
        {"pattern":"\u0000"}
          Completed: no lines match
        {"pattern":"\n"}
          Failed: the pattern is not a regular expression for lines: the literal "\n" is not allowed in a regex
        {"pattern":"te\nxt"}
          Failed: the pattern is not a regular expression for lines: the literal "\n" is not allowed in a regex
        {"pattern":"(?:a+)+$"}
          Completed: no lines match
        {"pattern":"(((x{1000}){1000}){1000})"}
          Failed: the pattern is not a regular expression for lines: compiled regex exceeds size limit of 16777216
        {"pattern":"((((((((((((((((((((((((((((((((((((((((((((((((((((((((((
          Failed: the pattern is not a regular expression for lines: regex parse error:
              (?:(((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((
        {"pattern":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          Failed: the pattern is too long (10000000 bytes, the limit is 16384)
        {"pattern":"[a-"}
          Failed: the pattern is not a regular expression for lines: regex parse error:
              (?:[a-)
                  ^^^
          error: invalid character class range, the start must be <= the end
        {"pattern":"\\1"}
          Failed: the pattern is not a regular expression for lines: regex parse error:
              (?:\1)
                 ^^
          error: backreferences are not supported
        {"pattern":".","limit":0}
          Completed: file:1: text
          (the first 1 lines; there are more, use a narrower pattern or path)
        {"pattern":".","limit":-1}
          Failed: `grep` was not run: `limit` must be at least 1, not -1
        {"pattern":".","limit":1000000000.0}
          Completed: file:1: text
          fixed:1: fixed
        {"pattern":".","context":1000}
          Completed: file:1: text
          fixed:1: fixed
        {"pattern":".","context":-1}
          Failed: `grep` was not run: `context` must be at least 0, not -1
        {"pattern":".","output":"all"}
          Failed: `grep` was not run: `output` must be one of "lines", "files", "count", not the string "all"
        {"pattern":".","include":"["}
          Failed: the pattern is not a glob: unclosed character class; missing ']'
        {"pattern":".","include":"{a,{a,{a,{a,{a,{a,{a,{a,{a,{a,{a,{a,{a,{a,{a
          Failed: the pattern is too long (30000 bytes, the limit is 4096)
        {"pattern":".","include":"**/**/**/**/**/**/**/**/**/**/**/**/**/**/**
          Failed: the pattern is too long (9000 bytes, the limit is 4096)
        {"pattern":["."]}
          Failed: `grep` was not run: `pattern` must be a string, not the array ["."]
        {"pattern":".","path":"pipe"}
          Failed: could not search pipe: it is a device or a pipe, not a file
        {"pattern":".","path":"/dev/zero"}
          Failed: could not search /dev/zero: it is a device or a pipe, not a file
        {"pattern":".","path":"/dev/stdin/x"}
          Failed: could not search /dev/stdin/x: it does not exist
        {"pattern":".","path":"/proc/self/mem"}
          Completed: no lines match
          (1 file could not be searched)
        {"pattern":".","path":"round"}
          Failed: could not search round: a link in its path is circular or was created just now
        {"pattern":".","path":"dangling"}
          Failed: could not search dangling: it does not exist
        {"pattern":".","path":"file\u0000"}
          Failed: could not use the path `file `: a path cannot contain a zero byte
        {"pattern":".","path":"a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a
          Failed: could not use the path `a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a…`: it is longer than any path
        {"pattern":".","path":5}
          Failed: could not search 5: it does not exist
        {"pattern":".","path":"link"}
          Completed: link:1: text
    "#]]).await;
}

#[tokio::test]
async fn glob_survives_hostile_patterns() {
    let calls = [
        json!({"pattern": ""}),
        json!({"pattern": "\0"}),
        json!({"pattern": "*".repeat(1000)}),
        json!({"pattern": "*".repeat(10_000_000)}),
        json!({"pattern": "{".repeat(1000)}),
        json!({"pattern": "../../**"}),
        json!({"pattern": "/etc/*"}),
        json!({"pattern": "***/file"}),
        json!({"pattern": 1}),
        json!({"pattern": "*", "path": "file"}),
        json!({"pattern": "*", "path": "pipe"}),
        json!({"pattern": "*", "path": "\0"}),
        json!({"pattern": "*", "path": "nowhere"}),
    ];
    check(
        "glob",
        &calls,
        expect![[r#"
            {"pattern":""}
              Completed: no files match
            {"pattern":"\u0000"}
              Completed: no files match
            {"pattern":"**********************************************************
              Failed: the pattern has more than 128 wildcards
            {"pattern":"**********************************************************
              Failed: the pattern is too long (10000000 bytes, the limit is 4096)
            {"pattern":"{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{
              Failed: the pattern has more than 8 levels of nested braces
            {"pattern":"../../**"}
              Completed: no files match
            {"pattern":"/etc/*"}
              Completed: no files match
            {"pattern":"***/file"}
              Completed: no files match
              (but 1 file in another place has such a name: file)
            {"pattern":1}
              Completed: no files match
            {"pattern":"*","path":"file"}
              Completed: file
            {"pattern":"*","path":"pipe"}
              Failed: could not search pipe: it is a device or a pipe, not a file
            {"pattern":"*","path":"\u0000"}
              Failed: could not use the path ` `: a path cannot contain a zero byte
            {"pattern":"*","path":"nowhere"}
              Failed: could not search nowhere: it does not exist
        "#]],
    )
    .await;
}

#[tokio::test]
async fn todo_survives_hostile_plans() {
    let entry = |content: &str| json!({"content": content, "status": "pending"});
    let calls = [
        json!({"entries": []}),
        json!({"entries": vec![entry("x"); 201]}),
        json!({"entries": [entry("x"), entry(&"x".repeat(1001))]}),
        json!({"entries": [entry("")]}),
        json!({"entries": "x"}),
        json!({"entries": [7]}),
        json!({"entries": [{"content": 7, "status": "pending"}]}),
        json!({"entries": null}),
        json!({}),
    ];
    check(
        "todo",
        &calls,
        expect![[r#"
            {"entries":[]}
              Completed: the plan has 0 steps, 0 completed
              plan: []
            {"entries":[{"content":"x","status":"pending"},{"content":"x","status"
              Failed: the plan has more than 200 steps; merge some of them
            {"entries":[{"content":"x","status":"pending"},{"content":"xxxxxxxxxxx
              Failed: step 2 of the plan is longer than 1000 characters; shorten it
            {"entries":[{"content":"","status":"pending"}]}
              Completed: the plan has 1 steps, 0 completed
              plan: [PlanEntry { text: "", status: Pending, priority: Medium, meta: None }]
            {"entries":"x"}
              Failed: `todo` was not run: `entries` must be an array, not the string "x"
            {"entries":[7]}
              Failed: `todo` was not run: `entries[0]` must be an object, not the number 7
            {"entries":[{"content":7,"status":"pending"}]}
              Completed: the plan has 1 steps, 0 completed
              plan: [PlanEntry { text: "7", status: Pending, priority: Medium, meta: None }]
            {"entries":null}
              Failed: `todo` was not run: `entries` must be an array, not null
            {}
              Failed: `todo` was not run: `entries` is missing; it must be an array
        "#]],
    )
    .await;
}

#[tokio::test]
async fn file_that_changes_during_a_read_is_shown_once() {
    let machine = Machine::new(|cwd| fs::write(cwd.join("a"), "").unwrap());
    let is_over = Arc::new(AtomicBool::new(false));
    let (path, stop) = (machine.path("a"), Arc::clone(&is_over));
    let writer = std::thread::spawn(move || {
        let file = File::options().write(true).open(path).unwrap();
        for number in (0..).take_while(|_| !stop.load(Relaxed)) {
            file.set_len(number % 3 * 20_000_000).unwrap();
        }
    });
    for _ in 0..300 {
        let said = machine.call("read", json!({"file_path": "a"})).await;
        let (_, result) = said.split_once('\n').unwrap();
        let ends = [
            "Completed: (a is empty)",
            "Failed: could not read a: it is a binary file",
            "Failed: could not read a: it is too large",
        ];
        assert!(ends.iter().any(|end| result.starts_with(end)), "{result}");
        let found = machine.call("grep", json!({"pattern": "x", "path": "a"})).await;
        assert!(found.ends_with("Completed: no lines match\n"), "{found}");
    }
    is_over.store(true, Relaxed);
    writer.join().unwrap();
}
