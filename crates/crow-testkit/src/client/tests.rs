use std::path::Path;

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{FakeClient, ResponseFault};

const HELLO: &str = r#"
    hear
    say {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}
    hear
    say {"jsonrpc":"2.0","id":2,"result":{"sessionId":"quiet-crow"}}
"#;

/// Runs an agent that sends and receives lines; returns the client's log and responses.
fn play(agent: &str, capabilities: Value, prepare: impl FnOnce(&mut FakeClient, &Path)) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let lines = HELLO.lines().chain(agent.lines()).map(str::trim).filter(|line| !line.is_empty());
        let home = directory.path().display().to_string();
        let script = lines.map(|line| match line.split_once(' ') {
            Some((_, said)) => format!("printf '%s\\n' '{}'\n", said.replace("$HOME", &home)),
            None => format!("IFS= read -r line; printf '%s\\n' \"$line\" >> {home}/heard\n"),
        });
        let script = script.collect::<String>() + "cat > /dev/null";
        let mut client = FakeClient::start_command(sh(&script), directory.path());
        client.initialize(capabilities).await.unwrap();
        let session = client.new_session(directory.path()).await;
        prepare(&mut client, directory.path());
        let id = client.prompt(&session, "go").await;
        client.response_to(id).await.unwrap();
        for left in client.editor.unreleased() {
            client.add_to_log(format!("unreleased {left}"));
        }
        let heard = std::fs::read_to_string(directory.path().join("heard")).unwrap();
        let answers = heard.lines().filter(|line| !line.contains("\"method\""));
        let log = client.log() + &answers.map(|line| format!("{line}\n")).collect::<String>();
        assert!(client.close_stdin().await.success());
        log.replace(&home, "$HOME")
    })
}

#[expect(clippy::disallowed_methods, reason = "a shell plays the agent")]
fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(script);
    command
}

#[track_caller]
fn check(agent: &str, capabilities: Value, prepare: impl FnOnce(&mut FakeClient, &Path), told: &Expect) {
    told.assert_eq(&play(agent, capabilities, prepare));
}

#[test]
fn unsaved_buffers_precede_files() {
    check(
        r#"
        hear
        say {"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"sessionId":"quiet-crow","path":"$HOME/a","line":2,"limit":1}}
        hear
        say {"jsonrpc":"2.0","id":2,"method":"fs/write_text_file","params":{"sessionId":"quiet-crow","path":"$HOME/a","content":"new\n"}}
        hear
        say {"jsonrpc":"2.0","id":3,"method":"fs/read_text_file","params":{"sessionId":"quiet-crow","path":"$HOME/a"}}
        hear
        say {"jsonrpc":"2.0","id":4,"method":"fs/read_text_file","params":{"sessionId":"quiet-crow","path":"$HOME/b"}}
        hear
        say {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}
        "#,
        json!({"fs": {"readTextFile": true, "writeTextFile": true}}),
        |client, home| {
            std::fs::write(home.join("a"), "disk\n").unwrap();
            client.editor.buffers.insert(home.join("a"), "one\ntwo\nthree\n".into());
        },
        &expect![[r#"
            > fs read $HOME/a from 2 limit 1
            > fs write $HOME/a
            > fs read $HOME/a
            > fs read $HOME/b ! Resource not found
            {"jsonrpc":"2.0","id":1,"result":{"content":"two\n"}}
            {"jsonrpc":"2.0","id":2,"result":{}}
            {"jsonrpc":"2.0","id":3,"result":{"content":"new\n"}}
            {"jsonrpc":"2.0","id":4,"error":{"code":-32002,"message":"Resource not found","data":{"uri":"$HOME/b"}}}
        "#]],
    );
}

#[test]
fn terminals_are_processes() {
    check(
        r#"
        hear
        say {"jsonrpc":"2.0","id":1,"method":"terminal/create","params":{"sessionId":"quiet-crow","command":"sh","args":["-c","pwd; echo $X >&2; printf 1234567"],"env":[{"name":"X","value":"y"}],"cwd":"$HOME","outputByteLimit":10}}
        hear
        say {"jsonrpc":"2.0","id":2,"method":"terminal/wait_for_exit","params":{"sessionId":"quiet-crow","terminalId":"term-1"}}
        hear
        say {"jsonrpc":"2.0","id":3,"method":"terminal/output","params":{"sessionId":"quiet-crow","terminalId":"term-1"}}
        hear
        say {"jsonrpc":"2.0","id":4,"method":"terminal/release","params":{"sessionId":"quiet-crow","terminalId":"term-1"}}
        hear
        say {"jsonrpc":"2.0","id":5,"method":"terminal/output","params":{"sessionId":"quiet-crow","terminalId":"term-1"}}
        hear
        say {"jsonrpc":"2.0","id":6,"method":"terminal/create","params":{"sessionId":"quiet-crow","command":"tail","args":["-f","/dev/null"]}}
        hear
        say {"jsonrpc":"2.0","id":7,"method":"terminal/kill","params":{"sessionId":"quiet-crow","terminalId":"term-2"}}
        hear
        say {"jsonrpc":"2.0","id":8,"method":"terminal/wait_for_exit","params":{"sessionId":"quiet-crow","terminalId":"term-2"}}
        hear
        say {"jsonrpc":"2.0","id":9,"method":"terminal/create","params":{"sessionId":"quiet-crow","command":"/no/such"}}
        hear
        say {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}
        "#,
        json!({"terminal": true}),
        |_, _| {},
        &expect![[r#"
            > terminal create term-1: sh -c pwd; echo $X >&2; printf 1234567
            ~ terminal output term-1
            > terminal release term-1
            > terminal output term-1 ! there is no terminal term-1
            > terminal create term-2: tail -f /dev/null
            > terminal kill term-2
            > terminal create /no/such ! No such file or directory (os error 2)
            unreleased term-2: tail -f /dev/null
            {"jsonrpc":"2.0","id":1,"result":{"terminalId":"term-1"}}
            {"jsonrpc":"2.0","id":2,"result":{"exitCode":0,"signal":null}}
            {"jsonrpc":"2.0","id":3,"result":{"output":"\ny\n1234567","truncated":true,"exitStatus":{"exitCode":0,"signal":null}}}
            {"jsonrpc":"2.0","id":4,"result":{}}
            {"jsonrpc":"2.0","id":5,"error":{"code":-32002,"message":"there is no terminal term-1"}}
            {"jsonrpc":"2.0","id":6,"result":{"terminalId":"term-2"}}
            {"jsonrpc":"2.0","id":7,"result":{}}
            {"jsonrpc":"2.0","id":8,"result":{"exitCode":null,"signal":"SIGKILL"}}
            {"jsonrpc":"2.0","id":9,"error":{"code":-32603,"message":"No such file or directory (os error 2)"}}
        "#]],
    );
}

#[test]
fn cancelled_wait_is_answered() {
    check(
        r#"
        hear
        say {"jsonrpc":"2.0","id":1,"method":"terminal/create","params":{"sessionId":"quiet-crow","command":"tail","args":["-f","/dev/null"]}}
        hear
        say {"jsonrpc":"2.0","id":2,"method":"terminal/wait_for_exit","params":{"sessionId":"quiet-crow","terminalId":"term-1"}}
        say {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}
        hear
        say {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}
        "#,
        json!({"terminal": true}),
        |_, _| {},
        &expect![[r#"
            > terminal create term-1: tail -f /dev/null
            unreleased term-1: tail -f /dev/null
            {"jsonrpc":"2.0","id":1,"result":{"terminalId":"term-1"}}
            {"jsonrpc":"2.0","id":2,"error":{"code":-32800,"message":"Request cancelled"}}
        "#]],
    );
}

#[test]
fn faulty_responses() {
    let read = |id: u32| {
        format!(
            "say {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"fs/read_text_file\",\"params\":{{\"sessionId\":\"quiet-crow\",\"path\":\"$HOME/a\"}}}}\n"
        )
    };
    check(
        &format!(
            "hear\n{}hear\n{}hear\n{}hear\nhear\n{}{}hear\nhear\n{}{}",
            read(1),
            read(2),
            read(3),
            read(4),
            read(5),
            read(6),
            r#"say {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#
        ),
        json!({"fs": {"readTextFile": true}}),
        |client, home| {
            std::fs::write(home.join("a"), "x").unwrap();
            for odd in [ResponseFault::Error, ResponseFault::Null, ResponseFault::Twice, ResponseFault::Late]
            {
                client.editor.fail_next("fs/read_text_file", odd);
            }
        },
        &expect![[r#"
            > fs/read_text_file -> error
            > fs/read_text_file -> null
            > fs read $HOME/a -> twice
            > fs read $HOME/a -> late
            > fs read $HOME/a
            > fs read $HOME/a
            {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the editor broke"}}
            {"jsonrpc":"2.0","id":2,"result":null}
            {"jsonrpc":"2.0","id":3,"result":{"content":"x"}}
            {"jsonrpc":"2.0","id":3,"result":{"content":"x"}}
            {"jsonrpc":"2.0","id":4,"result":{"content":"x"}}
            {"jsonrpc":"2.0","id":5,"result":{"content":"x"}}
        "#]],
    );
}

#[test]
#[should_panic(expected = "the agent calls fs/read_text_file, which this client never offered")]
fn undeclared_capability_is_not_called() {
    let agent = r#"
        hear
        say {"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"sessionId":"quiet-crow","path":"/a"}}
        "#;
    play(agent, json!({"fs": {"readTextFile": false, "writeTextFile": true}}), |_, _| {});
}

#[test]
fn forms_are_filled_in() {
    check(
        r#"
        hear
        say {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"form","sessionId":"quiet-crow","message":"Which nest?","requestedSchema":{"type":"object","properties":{"answer":{"type":"string","title":"Answer","oneOf":[{"const":"oak","title":"oak","description":"Old."},{"const":"elm","title":"elm"}]},"other":{"type":"string","maxLength":2000}}}}}
        hear
        say {"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"mode":"form","sessionId":"quiet-crow","message":"And?","requestedSchema":{"type":"object","properties":{"answer":{"type":"string","oneOf":[{"const":"oak","title":"oak"}]},"other":{"type":"string"}}}}}
        hear
        say {"jsonrpc":"2.0","id":3,"method":"elicitation/create","params":{"mode":"form","sessionId":"quiet-crow","message":"And?","requestedSchema":{"type":"object","properties":{"answer":{"type":"string","oneOf":[{"const":"oak","title":"oak"}]}},"required":["answer"]}}}
        hear
        say {"jsonrpc":"2.0","id":4,"method":"elicitation/create","params":{"mode":"form","sessionId":"quiet-crow","message":"Well?","requestedSchema":{"type":"object","properties":{"other":{"type":"string"}},"required":["other"]}}}
        say {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":4}}
        say {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}
        "#,
        json!({"elicitation": {"form": {}}}),
        |client, _| client.form_answers.extend(["elm", "a beech", "declined", "silence"].map(String::from)),
        &expect![[r#"
            ? form Which nest? [oak, elm] -> elm
            ? form And? [oak] -> a beech
            ? form And? [oak] -> declined
            ? form Well? [] -> silence
            < takes its question back
            {"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"answer":"elm"}}}
            {"jsonrpc":"2.0","id":2,"result":{"action":"accept","content":{"other":"a beech"}}}
            {"jsonrpc":"2.0","id":3,"result":{"action":"decline"}}
        "#]],
    );
}

#[test]
#[should_panic(expected = "the agent calls elicitation/create, which this client never offered")]
fn form_is_sent_to_a_client_with_forms() {
    let agent = r#"
        hear
        say {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"form","sessionId":"quiet-crow","message":"?","requestedSchema":{"type":"object"}}}
        "#;
    play(agent, json!({"elicitation": {"url": {}}}), |_, _| {});
}

#[test]
#[should_panic(expected = "the agent sends notice without /session/notices")]
fn undeclared_update_is_not_sent() {
    let agent = r#"
        hear
        say {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"quiet-crow","update":{"sessionUpdate":"notice","severity":"info","title":"x"}}}
        "#;
    play(agent, json!({"session": {"compaction": {}}}), |_, _| {});
}

#[test]
#[should_panic(expected = "the agent shows terminal term-1, which is not there")]
fn unknown_terminal_is_not_shown() {
    let agent = r#"
        hear
        say {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"quiet-crow","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"x","content":[{"type":"terminal","terminalId":"term-1"}]}}}
        "#;
    play(agent, json!({"terminal": true}), |_, _| {});
}

#[test]
#[should_panic(expected = "the agent broke the protocol: it is no PromptResponse")]
fn invalid_line_fails_the_test() {
    play(r#"say {"jsonrpc":"2.0","id":3,"result":{"stopReason":"tired"}}"#, json!({}), |_, _| {});
}
