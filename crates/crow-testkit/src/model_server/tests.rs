use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use expect_test::expect;

use super::ModelServer;

const GOOD: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;

fn connect(server: &ModelServer) -> TcpStream {
    let address = server.base_url().strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap();
    TcpStream::connect(address).unwrap()
}

fn post(stream: &mut TcpStream, body: &str) {
    let length = body.len();
    write!(stream, "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
}

fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(end.as_bytes()) && stream.read(&mut byte).unwrap() > 0 {
        seen.extend(byte);
    }
    String::from_utf8(seen).unwrap()
}

#[test]
fn connection_carries_several_answers() {
    let server = ModelServer::start("text \"Hello\"\nstatus 500 {}");
    let mut stream = connect(&server);
    post(&mut stream, GOOD);
    let answer = read_until(&mut stream, "0\r\n\r\n");
    assert!(answer.contains(r#""content":"Hello""#) && answer.contains("data: [DONE]"), "{answer}");
    post(&mut stream, GOOD);
    assert!(read_until(&mut stream, "{}").starts_with("HTTP/1.1 500"));
    assert_eq!((server.requests().len(), server.n_connections()), (2, 1));
    assert!(server.rejections().is_empty());
}

#[test]
fn invalid_request_is_rejected() {
    let server = ModelServer::start("text \"Hello\"");
    let mut stream = connect(&server);
    post(&mut stream, r#"{"model":"m","messages":[]}"#);
    assert!(read_until(&mut stream, "}}").starts_with("HTTP/1.1 400"));
    assert_eq!(server.rejections(), ["request 0: `messages` is missing or empty"]);
}

#[test]
fn request_without_an_answer_left_is_rejected() {
    let server = ModelServer::start("");
    let mut stream = connect(&server);
    post(&mut stream, GOOD);
    assert!(read_until(&mut stream, "}}").starts_with("HTTP/1.1 400"));
    assert_eq!(server.rejections(), ["request 0: the script has no answer left"]);
}

#[tokio::test]
async fn held_answer_ends_by_release_or_disconnect() {
    let server = ModelServer::start("text \"a\" | hold | text \"b\"\nhold");
    let mut stream = connect(&server);
    post(&mut stream, GOOD);
    assert!(read_until(&mut stream, "\"a\"").ends_with("\"a\""));
    server.release();
    assert!(read_until(&mut stream, "0\r\n\r\n").contains("\"b\""));
    post(&mut stream, GOOD);
    server.wait_for_requests(2).await;
    drop(stream);
    server.wait_for_disconnect(1).await;
}

#[test]
fn messages_api_has_the_providers_format() {
    let script = r#"thought "h" | thought "m" | text "Hi" | call read {"p": 1} | usage 10 2 | cache 6 3"#;
    let server = ModelServer::start(script);
    let mut stream = connect(&server);
    let body = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#;
    let length = body.len();
    write!(stream, "POST /v1/messages HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    let answer = read_until(&mut stream, "0\r\n\r\n");
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: ")).collect::<Vec<_>>().join("\n");
    expect![[r#"
        {"type":"message_start","message":{"id":"msg_0","type":"message","role":"assistant","model":"scripted","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"cache_creation_input_tokens":3,"cache_read_input_tokens":6,"output_tokens":1}}}
        {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
        {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h"}}
        {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}
        {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"scripted-08ba5b07b55ebd0e"}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}
        {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hi"}}
        {"type":"content_block_stop","index":1}
        {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_0_0","name":"read","input":{}}}
        {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}
        {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"p"}}
        {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\":1}"}}
        {"type":"content_block_stop","index":2}
        {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":2}}
        {"type":"message_stop"}"#]].assert_eq(&data);
    assert!(server.rejections().is_empty(), "{:?}", server.rejections());
}

#[test]
fn invalid_request_of_another_api_is_rejected() {
    let server = ModelServer::start("text \"Hello\"");
    let mut stream = connect(&server);
    write!(stream, "POST /v1/messages HTTP/1.1\r\nContent-Length: {}\r\n\r\n{GOOD}", GOOD.len()).unwrap();
    assert!(read_until(&mut stream, "}}").starts_with("HTTP/1.1 400"));
    assert_eq!(server.rejections(), ["request 0: `max_tokens` is missing"]);
}

#[test]
fn path_selects_the_api() {
    let server = ModelServer::start(
        "thought \"hm\" | text \"Hello\" | call read {} | usage 3 2\ntext \"no\" | finish length",
    );
    let mut stream = connect(&server);
    let body = r#"{"model":"m","input":"hi"}"#;
    let mut ask = |body: &str, until: &str| {
        let length = body.len();
        write!(stream, "POST /v1/responses HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        let answer = read_until(&mut stream, until);
        let lines = answer.lines().filter_map(|line| line.strip_prefix("event: ").map(str::to_owned));
        lines.collect::<Vec<_>>().join("\n").replace("response.", "")
    };
    expect_test::expect![[r#"
        created
        in_progress
        output_item.added
        reasoning_summary_part.added
        reasoning_summary_text.delta
        reasoning_summary_text.done
        reasoning_summary_part.done
        output_item.done
        output_item.added
        content_part.added
        output_text.delta
        output_text.done
        content_part.done
        output_item.done
        output_item.added
        function_call_arguments.delta
        function_call_arguments.delta
        function_call_arguments.done
        output_item.done
        completed"#]]
    .assert_eq(&ask(body, "0\r\n\r\n"));
    assert!(ask(body, "0\r\n\r\n").ends_with("incomplete"));
    assert_eq!(ask(r#"{"model":"m","messages":[]}"#, "}}"), "");
    let refused = ["unknown parameter `messages`", "`input` is missing or empty"];
    assert_eq!(server.rejections(), refused.map(|why| format!("request 2: {why}")));
}
