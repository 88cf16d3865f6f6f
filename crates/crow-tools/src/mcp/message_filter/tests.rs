use super::*;

/// Filters these bytes in pieces of `n_at_once` bytes.
fn passed(said: &[u8], n_at_once: usize) -> (String, Option<String>) {
    let (mut filter, mut out) = (MessageFilter::default(), Vec::new());
    said.chunks(n_at_once).for_each(|piece| filter.feed(piece, &mut out));
    (String::from_utf8(out).unwrap(), filter.end_reason().map(str::to_owned))
}

#[track_caller]
fn check(said: &str, expected: &str) {
    for n_at_once in [1, 7, 1024 * 1024] {
        let (out, end) = passed(said.as_bytes(), n_at_once);
        assert_eq!((out.as_str(), end), (expected, None), "{n_at_once} bytes at once");
    }
}

fn refused(id: &str, reason: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32603,\"message\":\"{reason}\"}}}}\n")
}

#[test]
fn readable_messages_pass() {
    for said in [
        "one\n\ntwo\n",
        "{\"id\":1,\"result\":{}}\n",
        "{\"method\":\"ping\",\"id\":3}\n{\"broken\n",
        "{\"id\":1,\"result\":{\"text\":\"[[[[{{{{\\\"\"}}\n",
    ] {
        check(said, said);
    }
    let list = format!("{{\"id\":1,\"result\":[{}]}}\n", vec!["{}"; 40_000].join(","));
    check(&list, &list);
    let long = format!("{{\"id\":4,\"result\":\"{}\"}}\n", "v".repeat(LINE_BYTES_MAX - 30));
    assert_eq!(passed(long.as_bytes(), 64 * 1024).0, long);
}

#[test]
fn unreadable_response_becomes_an_error_response() {
    let long = format!("{{\"id\":4,\"result\":\"{}\"}}\ntwo\n", "v".repeat(LINE_BYTES_MAX));
    let expected = refused("4", "its answer is longer than 16 MB") + "two\n";
    assert_eq!(passed(long.as_bytes(), 64 * 1024).0, expected);
    let deep = format!("{{\"id\":\"a b\",\"result\":{}{}}}\ntwo\n", "[".repeat(5000), "]".repeat(5000));
    check(&deep, &(refused("\"a b\"", "its answer is nested more than 120 levels deep") + "two\n"));
    let many = format!("{{\"id\":5,\"result\":[{}]}}\ntwo\n", vec!["{\"a\":1,\"b\":2}"; 100_000].join(","));
    assert_eq!(
        passed(many.as_bytes(), 64 * 1024).0,
        refused("5", "its answer has more than 100000 values") + "two\n"
    );
    let cancel = "{\"id\":6,\"result\":{\"a\"\ntwo\n";
    assert!(passed(cancel.as_bytes(), 3).0.starts_with("{\"jsonrpc\":\"2.0\",\"id\":6,\"error\":"));
    assert!(passed(cancel.as_bytes(), 3).0.ends_with("\ntwo\n"));
    let surrogate = "{\"id\":6,\"result\":\"\\ud800\"}\n";
    assert!(passed(surrogate.as_bytes(), 3).0.contains("its answer is not valid JSON"));
    let id_last = "{\"result\":\"\\ud800\",\"id\":7}\n";
    assert!(passed(id_last.as_bytes(), 3).0.contains("\"id\":7"), "{:?}", passed(id_last.as_bytes(), 3));
}

/// The error response does not wait for the end of the line, which may never come.
#[test]
fn endless_response_becomes_an_error_response() {
    let endless = format!("{{\"id\":4,\"result\":\"{}", "v".repeat(LINE_BYTES_MAX));
    assert_eq!(
        passed(endless.as_bytes(), 64 * 1024),
        (refused("4", "its answer is longer than 16 MB"), None)
    );
    let deep = format!("{{\"id\":4,\"result\":{}", "[".repeat(5000));
    check(&deep, &refused("4", "its answer is nested more than 120 levels deep"));
}

#[test]
fn endless_message_without_an_id_ends_the_connection() {
    let (mut filter, mut out) = (MessageFilter::default(), Vec::new());
    let piece = vec![b'v'; 1024 * 1024];
    let n_pieces = (0..100).take_while(|_| {
        filter.feed(&piece, &mut out);
        filter.end_reason().is_none()
    });
    assert_eq!(n_pieces.count(), 80);
    assert_eq!((filter.end_reason(), out.len()), (Some("its answer is longer than 16 MB"), 0));
}

#[test]
fn response_id_is_found_in_head_or_tail() {
    let id = |head: &str| id_in_head(head.as_bytes()).map(|id| id.to_string());
    assert_eq!(id(r#"{"jsonrpc":"2.0","id":17,"result":{"content":[{"ty"#).as_deref(), Some("17"));
    assert_eq!(id(r#"{"id" : "a b", "jsonrpc":"2.0","result":{"#).as_deref(), Some("\"a b\""));
    for none in [
        r#"{"jsonrpc":"2.0","result":{"id":3,"#,
        r#"{"id":3,"method":"x","params":"#,
        "vvvvvvvv",
        r#"{"id":{},"#,
        "",
    ] {
        assert_eq!(id(none), None, "{none}");
    }
}
