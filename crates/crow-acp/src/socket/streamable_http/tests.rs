//! Which stream each message of the agent goes to.

use expect_test::{Expect, expect};

use super::{
    message_head::MessageHead,
    route_table::{RouteTable, StreamScope},
};

/// Each line is an event: `get SESSION` opens a stream, `> MESSAGE` is a POST, `< MESSAGE` comes from the agent and is
/// shown with its stream.
#[track_caller]
fn check(events: &str, expected: &Expect) {
    let mut routes = RouteTable::default();
    let mut shown = String::new();
    for event in events.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (kind, text) = event.split_once(' ').unwrap();
        match kind {
            "get" => assert!(routes.add_session(text)),
            ">" => routes.record_request(&MessageHead::parse(text).unwrap()),
            _ => {
                let stream = match routes.route_message(&MessageHead::parse(text).unwrap()) {
                    StreamScope::Connection => "connection".to_owned(),
                    StreamScope::Session(session) => session,
                };
                shown.push_str(&format!("{stream}: {text}\n"));
            }
        }
    }
    expected.assert_eq(&shown);
}

#[test]
fn new_session_has_its_stream_after_its_answer() {
    check(
        r#"
        > {"id":1,"method":"session/new","params":{"cwd":"/"}}
        < {"method":"session/update","params":{"sessionId":"s"}}
        < {"id":1,"result":{"sessionId":"s"}}
        < {"method":"session/update","params":{"sessionId":"s","update":1}}
        > {"id":"2","method":"session/prompt","params":{"sessionId":"s"}}
        < {"id":7,"method":"session/request_permission","params":{"sessionId":"s"}}
        > {"id":7,"result":{}}
        < {"method":"session/update","params":{"sessionId":"child"}}
        < {"method":"_other","params":[1]}
        < {"id":"2","result":{"stopReason":"end_turn"}}
        < {"id":2,"result":{}}
        "#,
        &expect![[r#"
            connection: {"method":"session/update","params":{"sessionId":"s"}}
            connection: {"id":1,"result":{"sessionId":"s"}}
            s: {"method":"session/update","params":{"sessionId":"s","update":1}}
            s: {"id":7,"method":"session/request_permission","params":{"sessionId":"s"}}
            connection: {"method":"session/update","params":{"sessionId":"child"}}
            connection: {"method":"_other","params":[1]}
            s: {"id":"2","result":{"stopReason":"end_turn"}}
            connection: {"id":2,"result":{}}
        "#]],
    );
}

#[test]
fn loaded_session_keeps_the_order_of_its_messages() {
    // With its stream opened first, as the draft says, and without, as the Python SDK does.
    check(
        r#"
        get a
        > {"id":1,"method":"session/load","params":{"sessionId":"a"}}
        < {"method":"session/update","params":{"sessionId":"a"}}
        < {"id":1,"result":{}}
        > {"id":2,"method":"session/load","params":{"sessionId":"b"}}
        < {"method":"session/update","params":{"sessionId":"b","update":1}}
        get b
        < {"method":"session/update","params":{"sessionId":"b","update":2}}
        < {"id":2,"result":null}
        < {"method":"session/update","params":{"sessionId":"b","update":3}}
        "#,
        &expect![[r#"
            a: {"method":"session/update","params":{"sessionId":"a"}}
            a: {"id":1,"result":{}}
            connection: {"method":"session/update","params":{"sessionId":"b","update":1}}
            connection: {"method":"session/update","params":{"sessionId":"b","update":2}}
            connection: {"id":2,"result":null}
            b: {"method":"session/update","params":{"sessionId":"b","update":3}}
        "#]],
    );
}

#[test]
fn message_heads_have_what_routing_needs() {
    let long = "x".repeat(2000);
    let mut shown = String::new();
    for text in [
        r#" {"id":1.0,"method":"a\nb","params":{"sessionId":"\u0041"}}"#,
        r#"{"id":null,"method":"m","params":{"sessionId":1}}"#,
        r#"{"result":{"sessionId":"s","x":[{}]},"id":"i"}"#,
        &format!(r#"{{"id":"{long}","method":"m","params":{{"sessionId":"{long}"}}}}"#),
        r#"{"id":1,"id":2}"#,
        r#"{"id":1"#,
        r#"[{"id":1}]"#,
        "3",
        "",
    ] {
        let head = match MessageHead::parse(text) {
            Ok(MessageHead { id, method, session, result_session }) => {
                format!("{id:?} {method:?} {session:?} {result_session:?}")
            }
            Err(error) => format!("{error:?}"),
        };
        shown.push_str(&format!("{head}\n"));
    }
    expect![[r#"
        Some("1.0") Some("a\nb") Some("A") None
        None Some("m") None None
        Some("\"i\"") None None Some("s")
        None Some("m") None None
        Json
        Json
        Batch
        NotAnObject
        NotAnObject
    "#]]
    .assert_eq(&shown);
}

#[test]
fn cookies_are_kept_by_name() {
    let mut cookies = super::cookies::CookieStore::default();
    let mut shown = vec![format!("{:?}", cookies.header())];
    for values in [&["a=1; Path=/; HttpOnly", "b = 2"][..], &["a=3", "none", "=x"], &[&"c=".repeat(3000)]] {
        let mut headers = http::HeaderMap::new();
        for value in values {
            headers.append("set-cookie", value.parse().unwrap());
        }
        cookies.store(&headers);
        shown.push(cookies.header().unwrap().to_str().unwrap().to_owned());
    }
    for n in 0..100 {
        let mut headers = http::HeaderMap::new();
        headers.insert("set-cookie", format!("n{n}=1").parse().unwrap());
        cookies.store(&headers);
    }
    shown.push(cookies.header().unwrap().to_str().unwrap().matches('=').count().to_string());
    expect![[r#"
        None
        a=1; b=2
        b=2; a=3
        b=2; a=3
        32"#]]
    .assert_eq(&shown.join("\n"));
}
