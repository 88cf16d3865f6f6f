use expect_test::{Expect, expect};

use super::Contract;

/// Replays lines of the client (`>`) and the agent (`<`); returns the violation in the last one.
#[track_caller]
fn check(lines: &str, wanted: &Expect) {
    let mut contract = Contract::default();
    let mut told = String::from("fine\n");
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        assert_eq!(told, "fine\n", "before {line}");
        let (side, line) = line.split_once(' ').unwrap();
        match side {
            ">" => contract.record_client_line(line),
            _ => told = contract.check_agent_line(line).err().map_or("fine\n".into(), |reason| reason + "\n"),
        }
    }
    for method in contract.unanswered() {
        told += &format!("no answer to {method}\n");
    }
    wanted.assert_eq(&told);
}

const OPEN: &str = r#"
    > {"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}
    < {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}
    < {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"Read"}}}
"#;

#[test]
fn valid_lines_pass() {
    check(
        &format!(
            r#"{OPEN}
            < {{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","rawOutput":{{"any":[1]}},"_meta":{{"ours":{{"x":1}}}}}}}}}}
            < {{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{"toolCallId":"c"}},"options":[{{"optionId":"a","name":"A","kind":"allow_once"}}]}}}}
            < {{"jsonrpc":"2.0","method":"$/cancel_request","params":{{"requestId":"q"}}}}
            < {{"jsonrpc":"2.0","method":"_ours/news","params":[1]}}
            > {{"jsonrpc":"2.0","id":2,"method":"_ours/do"}}
            < {{"jsonrpc":"2.0","id":2,"result":7}}
            > nonsense
            < {{"jsonrpc":"2.0","id":null,"error":{{"code":-32700,"message":"Parse error"}}}}"#
        ),
        &expect![[r#"
            fine
        "#]],
    );
}

#[test]
fn invalid_updates_are_reported() {
    let update = |fields: &str| {
        let params = format!(r#"{{"sessionId":"s","update":{{"sessionUpdate":{fields}}}}}"#);
        format!(r#"{OPEN} < {{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#)
    };
    check(
        &update(r#""agent_message_chunk","content":{"type":"text","text":7}"#),
        &expect![[r#"
        it is no SessionNotification: at "/update/content/text": it is not of type "string"; at "/update/content": Unevaluated properties are not allowed ('type', 'text' were unexpected)
    "#]],
    );
    check(
        &update(r#""agent_message_chunk","content":{"type":"text"}"#),
        &expect![[r#"
        it is no SessionNotification: at "/update/content": "text" is a required property; at "/update/content": Unevaluated properties are not allowed ('type' was unexpected)
    "#]],
    );
    check(
        &update(r#""agent_message_chunk","content":{"type":"text","text":"x"},"msgId":"1""#),
        &expect![[r#"
            it is no SessionNotification: at "/update": Unevaluated properties are not allowed ('msgId' was unexpected)
        "#]],
    );
    check(
        &update(r#""smell","rose":true"#),
        &expect![[r#"
        it is no SessionNotification: at "/update": it is not valid under any of the schemas listed in the 'oneOf' keyword
    "#]],
    );
    check(
        &update(r#""tool_call_update","toolCallId":"c","status":"cancelled""#),
        &expect![[r#"
        it is no SessionNotification: at "/update/status": it is not valid under any of the schemas listed in the 'oneOf' keyword; at "/update/status": it is not of type "null"
    "#]],
    );
    check(
        &update(r#""tool_call_update","toolCallId":"d","status":"failed""#),
        &expect![[r#"
        call d was not announced
    "#]],
    );
    check(
        &update(r#""tool_call_update","toolCallId":"c","content":[{"type":"diff","path":"a"}]"#),
        &expect![[r#"
            it is no SessionNotification: at "/update/content/0": Unevaluated properties are not allowed ('type', 'path' were unexpected); at "/update/content/0": "newText" is a required property
        "#]],
    );
}

#[test]
fn invalid_responses_are_reported() {
    check(
        &format!(r#"{OPEN} < {{"jsonrpc":"2.0","id":1,"result":{{"sessionId":"s"}}}}"#),
        &expect![[r#"
            there is no open request for the response to 1
        "#]],
    );
    let prompt = r#"> {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{}}"#;
    let answer = |fields: &str| format!("{OPEN}{prompt}\n< {{\"jsonrpc\":\"2.0\",{fields}}}");
    check(
        &answer(r#""id":"2","result":{"stopReason":"end_turn"}"#),
        &expect![[r#"
        there is no open request for the response to "2"
        no answer to session/prompt
    "#]],
    );
    check(
        &answer(r#""id":2,"result":{"stopReason":"error"}"#),
        &expect![[r#"
        it is no PromptResponse: at "/stopReason": it is not valid under any of the schemas listed in the 'oneOf' keyword
    "#]],
    );
    check(
        &answer(r#""id":2,"result":{}"#),
        &expect![[r#"
        it is no PromptResponse: at "": "stopReason" is a required property
    "#]],
    );
    check(
        &answer(r#""id":2,"error":{"code":"x","message":"y"}"#),
        &expect![[r#"
        it is no Error: at "/code": it is not of type "integer"
    "#]],
    );
    check(
        &answer(r#""id":2,"error":{"code":1,"message":"y","kind":"z"}"#),
        &expect![[r#"
        it is no Error: at "": Unevaluated properties are not allowed ('kind' was unexpected)
    "#]],
    );
    check(
        &answer(r#""id":2"#),
        &expect![[r#"
        an answer is a result or an error
    "#]],
    );
    check(
        &answer(r#""id":null,"error":{"code":-32700,"message":"y"}"#),
        &expect![[r#"
        there is no open request for the response to null
        no answer to session/prompt
    "#]],
    );
    check(
        &format!("{OPEN}{prompt}"),
        &expect![[r#"
        fine
        no answer to session/prompt
    "#]],
    );
}

#[test]
fn invalid_requests_are_reported() {
    let request = |fields: &str| format!("{OPEN}< {{\"jsonrpc\":\"2.0\",{fields}}}");
    check(
        &request(r#""id":1,"method":"fs/read_text_file","params":{"sessionId":"s"}"#),
        &expect![[r#"
        it is no ReadTextFileRequest: at "": "path" is a required property
    "#]],
    );
    check(
        &request(r#""id":1,"method":"fs/read_text_file","params":{"sessionId":"t","path":"/a"}"#),
        &expect![[r#"
            the client has no session t
        "#]],
    );
    check(
        &request(r#""id":1,"method":"fs/delete","params":{}"#),
        &expect![[r#"
        the protocol knows no Request of fs/delete
    "#]],
    );
    check(
        &request(r#""method":"$/cancel_request","params":{"requestId":9}"#),
        &expect![[r#"
        it cancels 9, which it never asked
    "#]],
    );
    check(
        &request(r#""method":"session/landed","params":{}"#),
        &expect![[r#"
        the protocol knows no Notification of session/landed
    "#]],
    );
    check(
        &request(r#""params":{}"#),
        &expect![[r#"
        it has neither `method` nor `id`
    "#]],
    );
    check(
        &request(r#""method":"_x","extra":1"#),
        &expect![[r#"
        JSON-RPC knows no field `extra`
    "#]],
    );
    check(
        &format!("{}\n{}", request(r#""id":1,"method":"_a""#), r#"< {"jsonrpc":"2.0","id":1,"method":"_b"}"#),
        &expect![[r#"
            request 1 is there twice
        "#]],
    );
}

#[test]
fn lines_that_are_not_messages_are_reported() {
    check(
        "< 42",
        &expect![[r#"
        it is no object
    "#]],
    );
    check(
        "< hello",
        &expect![[r#"
        expected value at line 1 column 1
    "#]],
    );
    check(
        r#"< {"id":1,"method":"_a"}"#,
        &expect![[r#"
        it is no JSON-RPC 2.0
    "#]],
    );
}
