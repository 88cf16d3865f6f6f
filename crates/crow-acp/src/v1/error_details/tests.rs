use expect_test::{Expect, expect};

use super::with_failure_kind;

#[track_caller]
fn check(line: &str, expected: &Expect) {
    expected.assert_eq(&with_failure_kind(line.to_owned()));
}

#[test]
fn request_content_is_not_repeated() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params","data":{"error":"missing field `cwd`","json":{"secret":1}}}}"#,
        &expect![[
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params","data":{"kind":"invalid_value","details":"the parameters do not fit the method: missing field `cwd`"}}}"#
        ]],
    );
}

#[test]
fn invalid_json_gets_an_explanation() {
    check(
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
        &expect![[
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error","data":{"kind":"invalid_value","details":"the line is not JSON; send one JSON-RPC message per line"}}}"#
        ]],
    );
}

#[test]
fn own_errors_and_quotations_are_unchanged() {
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m","data":{"kind":"store","details":"d"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"quoted":"\"error\":{"}}"#,
        "not json \"error\":{",
    ] {
        assert_eq!(with_failure_kind(line.to_owned()), line);
    }
}
