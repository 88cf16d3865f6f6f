mod jobs;

use std::sync::Mutex;

use crow_core::{Arguments, Call, CallId, Content};
use expect_test::expect;
use serde_json::{Value, json};

use super::{Machine, check, show};
use crate::Progress;

fn terminal(command: &str) -> (&'static str, Value) {
    ("terminal", json!({"command": command}))
}

#[tokio::test]
async fn how_commands_end() {
    let calls = [
        terminal("pwd"),
        terminal("true"),
        terminal("echo out; echo err >&2; exit 3"),
        terminal("printf half; kill -15 $$"),
        ("terminal", json!({"command": "echo begun; sleep 1000", "timeout": 1})),
    ];
    check(
        |_| (),
        &calls,
        expect![[r#"
        > `pwd` Execute Runs("pwd")
        Done: $DIR/project
        > `true` Execute Runs("true")
        Done: (no output)
        > `echo out; echo err >&2; exit 3` Execute Runs("echo out; echo err >&2; exit 3")
        Failed: out
        err
        exit code 3
        > `printf half; kill -15 $$` Execute Runs("printf half; kill -15 $$")
        Failed: half
        ended by signal 15
        > `echo begun; sleep 1000` Execute Runs("echo begun; sleep 1000")
        Failed: begun
        stopped: it ran longer than 1 s
    "#]],
    )
    .await;
}

#[tokio::test]
async fn in_another_folder() {
    let setup = |project: &std::path::Path| {
        std::fs::create_dir(project.join("sub dir")).unwrap();
        std::os::unix::fs::symlink("..", project.join("up")).unwrap();
        std::fs::write(project.join("file"), "").unwrap();
    };
    let within = |cwd: &str| ("terminal", json!({"command": "pwd", "cwd": cwd}));
    check(
        setup,
        &[
            within("sub dir"),
            within("."),
            within("up/project"),
            within("up"),
            within("/"),
            within("nowhere"),
            within("file"),
            ("terminal", json!({"command": "sleep 100; true", "dir": "sub dir", "timeout": 0.05})),
        ],
        expect![[r#"
            > `pwd` in sub dir Execute Runs("cd '$DIR/project/sub dir' && pwd")
            Done: $DIR/project/sub dir
            > `pwd` Execute Runs("pwd")
            Done: $DIR/project
            > `pwd` Execute Runs("pwd")
            Done: $DIR/project
            > `pwd` in $DIR Execute Runs("cd $DIR && pwd")
            Done: $DIR
            > `pwd` in / Execute Runs("cd / && pwd")
            Done: /
            > `pwd` in nowhere Execute Runs("cd $DIR/project/nowhere && pwd")
            Failed: could not run the command: `cwd` nowhere cannot be used: there is no such folder
            > `pwd` in file Execute Runs("cd $DIR/project/file && pwd")
            Failed: could not run the command: `cwd` file cannot be used: it is no folder
            > `sleep 100; true` in sub dir Execute Runs("cd '$DIR/project/sub dir' && sleep 100; true")
            Failed: stopped: it ran longer than 0.05 s
        "#]],
    )
    .await;
}

#[tokio::test]
async fn title_is_one_line() {
    check(
        |_| (),
        &[terminal("# count\n# to three\nseq 3")],
        expect![[r##"
        > `# count…` Execute Runs("# count\n# to three\nseq 3")
        Done: 1
        2
        3
    "##]],
    )
    .await;
}

#[tokio::test]
async fn no_input_and_no_secrets() {
    check(|_| (), &[terminal("cat; echo ${CARGO_MANIFEST_DIR-hidden} ${CARGO_PKG_NAME}")], expect![[r#"
        > `cat; echo ${CARGO_MANIFEST_DIR-hidden} ${CARGO_PKG_NAME}` Execute Runs("cat; echo ${CARGO_MANIFEST_DIR-hidden} ${CARGO_PKG_NAME}")
        Done: hidden crow-tools
    "#]]).await;
}

#[tokio::test]
async fn long_output_goes_to_a_file() {
    let machine = Machine::new(|_| ());
    let said = machine.call("terminal", json!({"command": "seq 1 100000"})).await;
    assert!(said.len() < 40_000);
    let (_, path) = said.trim_end().rsplit_once("(all of the output is in $DIR/").unwrap();
    let whole = std::fs::read_to_string(machine.folder.path().join(path.trim_end_matches(')'))).unwrap();
    assert_eq!((whole.lines().count(), whole.lines().last()), (100_000, Some("100000")));
}

#[tokio::test]
async fn cancelled_with_what_it_said() {
    let machine = Machine::new(|_| ());
    let shown = Mutex::new(Vec::new());
    let progress = |progress: Progress| {
        let Progress::Shows(contents) = progress else { panic!("{progress:?}") };
        shown.lock().unwrap().extend(contents);
        machine.cut.cancel();
    };
    let arguments =
        Arguments::Valid(json!({"command": "echo begun; sleep 1000"}).as_object().unwrap().clone());
    let call = Call { id: CallId::at(1, 0), provider_id: "1".into(), name: "terminal".into(), arguments };
    let outcome = machine.tools.run(&call, machine.cx(&progress)).await;
    expect![[r#"
        Failed: begun
        stopped: the turn was cancelled
    "#]]
    .assert_eq(&show(&outcome));
    assert_eq!(*shown.lock().unwrap(), [Content::Text("begun\n".into())]);
    assert_eq!(machine.tools.n_programs(), 0);
}
