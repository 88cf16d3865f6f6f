//! Clients with some capabilities only: the agent requests nothing else.

use std::fs;

use serde_json::{Value, json};

use super::{Stage, check, text};

const READ: &str = "> fs read";
const WRITE: &str = "> fs write";
const TERMINAL: &str = "> terminal create";

/// A turn that reads, edits, writes and runs a command.
const TURN: &str = r#"
    call read {"file_path":"c.txt"}
    call read {"file_path":"a.txt"}
    call edit {"file_path":"a.txt","old_string":"two","new_string":"three"}
    call write {"file_path":"new/b.txt","content":"apples\n"}
    call terminal {"command":"cat a.txt new/b.txt; echo $((6 * 7))"}
    text "Done."
"#;

/// Runs the turn; the client must get these requests and no other.
#[track_caller]
fn check_client(capabilities: Value, used: &[&str]) {
    check(async {
        let mut stage = Stage::configured(capabilities, "permissions: { mode: auto }").await;
        stage.world.write_file("a.txt", "one\ntwo\n");
        stage.world.write_file("c.txt", "saved\n");
        let project = stage.world.project();
        stage.client.editor.buffers.insert(project.join("c.txt"), "not saved\n".to_owned());
        let session = stage.client.new_session(&project).await;
        stage.turn(&session, text("do all"), TURN).await;
        let log = stage.client.log();
        for what in [READ, WRITE, TERMINAL] {
            assert_eq!(log.contains(what), used.contains(&what), "{what}:\n{log}");
        }
        assert_eq!(log.matches(" completed").count(), 5, "all calls are done:\n{log}");
        let disk = |name: &str| fs::read_to_string(project.join(name)).expect("the file is there");
        assert_eq!(disk("a.txt"), "one\nthree\n");
        assert_eq!(disk("new/b.txt"), "apples\n");
        assert_eq!(disk("c.txt"), "saved\n", "only the user saves");
        let asked = stage.asked();
        assert!(asked.contains("one\\nthree\\napples\\n42\\n"), "the command ran: {asked}");
        assert_eq!(
            asked.contains("not saved"),
            used.contains(&READ),
            "what is in the editor counts: {asked}"
        );
        assert_eq!(stage.client.editor.unreleased(), Vec::<String>::new(), "terminals are released");
        assert!(stage.client.close_stdin().await.success());
    });
}

#[test]
fn client_without_capabilities() {
    check_client(json!({}), &[]);
}

#[test]
fn client_with_reading() {
    check_client(json!({"fs": {"readTextFile": true}}), &[READ]);
}

#[test]
fn client_with_writing() {
    check_client(json!({"fs": {"readTextFile": false, "writeTextFile": true}}), &[WRITE]);
}

#[test]
fn client_with_terminals() {
    check_client(json!({"terminal": true}), &[TERMINAL]);
}

#[test]
fn client_with_all_capabilities() {
    check_client(
        json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true}),
        &[READ, WRITE, TERMINAL],
    );
}

#[test]
fn client_with_streamed_output() {
    check_client(json!({"_meta": {"terminal_output": true}}), &[]);
}

#[test]
fn client_with_odd_values_for_false() {
    check_client(
        json!({"fs": {}, "terminal": false, "session": null, "elicitation": {}, "_meta": {"terminal_output": false}}),
        &[],
    );
}
