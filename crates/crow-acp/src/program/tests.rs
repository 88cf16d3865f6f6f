use expect_test::{Expect, expect};

use super::*;

/// Shows what is read of an agent with this output.
async fn check(printed: &str, expected: &Expect) {
    let (mut stdout, stray, mut babble) =
        (BufReader::new(printed.as_bytes()), OnceLock::new(), StrayOutput::default());
    let mut shown = String::new();
    while let Some(read) = read_message(&mut stdout, &stray, &mut babble).await {
        match read {
            Ok(line) => shown += &format!("{line}\n"),
            Err(error) => {
                shown += &format!("! {:?}: {error}\n", error.kind());
                break;
            }
        }
    }
    shown += &format!("{:?}\n", stray.get());
    expected.assert_eq(&shown);
}

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":0,"result":{}}"#;

#[tokio::test]
async fn program_without_a_protocol_is_an_error() {
    let lines: String = (1..100).map(|n| format!("noise {n}\n\n")).collect();
    check(
        &lines,
        &expect![[r#"
            ! InvalidData: it printed 20 lines, none of which is a message of the protocol; the first: noise 1; noise 2; noise 3
            Some("noise 1")
        "#]],
    )
    .await;
    let log = "{\"level\":\"info\"}\n".repeat(40);
    check(
        &log,
        &expect![[r#"
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            {"level":"info"}
            ! InvalidData: it printed 20 lines, none of which is a message of the protocol; the first: {"level":"info"}; {"level":"info"}; {"level":"info"}
            Some("{\"level\":\"info\"}")
        "#]],
    )
    .await;
    let endless = "jsonrpc".to_owned() + &"a".repeat(3 * 1024 * 1024);
    let (mut stdout, stray, mut babble) =
        (BufReader::new(endless.as_bytes()), OnceLock::new(), StrayOutput::default());
    let read = read_message(&mut stdout, &stray, &mut babble).await.unwrap().unwrap_err();
    assert!(
        read.to_string()
            .starts_with("it printed 1048576 bytes that are not a message of the protocol: jsonrpcaaa"),
        "{read}"
    );
}

#[tokio::test]
async fn banner_is_skipped() {
    let banner = "Welcome\n".repeat(18);
    let asks = r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#;
    check(
        &format!("{banner}{asks}\n{ANSWER}\n{}{ANSWER}", "said too much\n".repeat(500)),
        &expect![[r#"
            {"jsonrpc":"2.0","id":1,"method":"x"}
            {"jsonrpc":"2.0","id":0,"result":{}}
            {"jsonrpc":"2.0","id":0,"result":{}}
            Some("Welcome")
        "#]],
    )
    .await;
    // A request to us is not an answer.
    check(
        &format!("{banner}{asks}\none more\n{ANSWER}"),
        &expect![[r#"
            {"jsonrpc":"2.0","id":1,"method":"x"}
            ! InvalidData: it printed 20 lines, none of which answers `initialize`; the first: Welcome; Welcome; Welcome
            Some("Welcome")
        "#]],
    )
    .await;
}

/// Programs of other protocols send notifications and requests as well: before the first answer they count like any
/// other line.
#[tokio::test]
async fn greeting_without_a_line_break_is_skipped() {
    check(
        &format!("Welcome: {ANSWER}\nlater: {ANSWER}\n"),
        &expect![[r#"
        {"jsonrpc":"2.0","id":0,"result":{}}
        Some("later: {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}")
    "#]],
    )
    .await;
    check(
        &format!("\u{1b}[1m{{\"a\": {{\"user\"}}, {ANSWER}\n{ANSWER}\n"),
        &expect![[r#"
        {"jsonrpc":"2.0","id":0,"result":{}}
        {"jsonrpc":"2.0","id":0,"result":{}}
        None
    "#]],
    )
    .await;
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#;
    check(
        &format!("$ {request}\nWelcome: {{\"result\":\n"),
        &expect![[r#"
        Some("$ {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}")
    "#]],
    )
    .await;
}

#[tokio::test]
async fn messages_without_an_answer_are_an_error() {
    let notice = r#"{"jsonrpc":"2.0","method":"window/logMessage","params":{}}"#;
    let asks = r#"{"jsonrpc":"2.0","id":7,"method":"x"}"#;
    for line in [notice, asks, "{ no JSON"] {
        let printed = format!("{line}\n").repeat(40);
        let (mut stdout, stray, mut babble) =
            (BufReader::new(printed.as_bytes()), OnceLock::new(), StrayOutput::default());
        for _ in 0..STRAY_LINES_MAX {
            assert_eq!(read_message(&mut stdout, &stray, &mut babble).await.unwrap().unwrap(), line);
        }
        let error = read_message(&mut stdout, &stray, &mut babble).await.unwrap().unwrap_err().to_string();
        let expected = format!(
            "it printed 20 lines, none of which answers `initialize`; the first: {line}; {line}; {line}"
        );
        assert_eq!(error, expected);
        assert_eq!(stray.get(), None);
    }
    // After the answer there may be any number.
    let printed = format!("{ANSWER}\n{}", format!("{notice}\n").repeat(100));
    let (mut stdout, stray, mut babble) =
        (BufReader::new(printed.as_bytes()), OnceLock::new(), StrayOutput::default());
    let mut n_read = 0;
    while let Some(read) = read_message(&mut stdout, &stray, &mut babble).await {
        read.unwrap();
        n_read += 1;
    }
    assert_eq!(n_read, 101);
}
