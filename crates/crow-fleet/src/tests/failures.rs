//! Failures of the server that pass by themselves.

use serde_json::json;

use crate::streams::is_passing;

#[track_caller]
fn check(code: u64, description: &str, expected: bool) {
    let error = json!({ "code": 400, "err_code": code, "description": description });
    assert_eq!(is_passing(&serde_json::from_value(error).unwrap()), expected);
}

#[test]
fn cluster_that_starts_or_elects_is_waited_for() {
    check(10008, "JetStream system temporarily unavailable", true);
    check(10005, "no suitable peers for placement", true);
    check(10074, "replicas > 1 not supported in non-clustered mode", false);
    check(10047, "insufficient storage resources available", false);
}
