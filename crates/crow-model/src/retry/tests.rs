use std::time::Duration;

use crow_core::{Failure, FailureKind};
use expect_test::expect;

use super::{
    FailedAttempt, FailureCause, next_retry_delay, parse_http_date, parse_retry_after, retry_notice,
};

fn tried(cause: FailureCause) -> FailedAttempt {
    FailedAttempt { failure: Failure::new(FailureKind::Connection, "no"), cause }
}

fn status(code: u16) -> FailureCause {
    FailureCause::Status { code, retry_after: None }
}

fn asked(seconds: u64) -> FailureCause {
    FailureCause::Status { code: 429, retry_after: Some(Duration::from_secs(seconds)) }
}

#[test]
fn retryable_causes() {
    let rows = [
        ("unreachable", FailureCause::Unreachable),
        ("silent", FailureCause::TimedOut),
        ("broke off", FailureCause::Disconnected),
        ("final", FailureCause::Permanent),
        ("400", status(400)),
        ("408", status(408)),
        ("409", status(409)),
        ("429", status(429)),
        ("429, asks 7 s", asked(7)),
        ("429, asks an hour", asked(3600)),
        ("500", status(500)),
    ];
    let mut table = String::new();
    for (name, cause) in rows {
        let tried = tried(cause);
        let waits = [1, 2, 3, 4]
            .map(|n_failed| next_retry_delay(n_failed, 3, &tried, 1.0).map(|wait| wait.as_secs_f64()));
        let waits = waits.map(|wait| wait.map_or("-".to_owned(), |wait| wait.to_string()));
        table.push_str(&format!("{name}: {}\n", waits.join(" ")));
    }
    expect![[r#"
        unreachable: 0.5 1 2 -
        silent: 0.5 1 2 -
        broke off: 0.5 1 2 -
        final: - - - -
        400: - - - -
        408: 0.5 1 2 -
        409: 0.5 1 2 -
        429: 0.5 1 2 -
        429, asks 7 s: 7 7 7 -
        429, asks an hour: - - - -
        500: 0.5 1 2 -
    "#]]
    .assert_eq(&table);
}

#[test]
fn delays_are_bounded_and_jitter_is_at_most_half() {
    let tried = tried(FailureCause::TimedOut);
    assert_eq!(next_retry_delay(1, 9, &tried, 0.0), Some(Duration::from_millis(250)));
    assert_eq!(next_retry_delay(60, u32::MAX, &tried, 1.0), Some(Duration::from_secs(30)));
    assert_eq!(next_retry_delay(1, 0, &tried, 0.0), None);
}

#[test]
fn retry_has_a_notice() {
    let tell = |cause, wait_ms| retry_notice(&tried(cause), Duration::from_millis(wait_ms), 1, 3);
    assert_eq!(tell(status(429), 2000), "the provider is busy (429); trying again in 2 s (1 of 3)");
    assert_eq!(tell(status(503), 300), "the provider is failing (503); trying again in 1 s (1 of 3)");
    assert_eq!(
        tell(FailureCause::Disconnected, 1200),
        "the response broke off; trying again in 2 s (1 of 3)"
    );
}

#[test]
fn retry_after_header() {
    let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
    let rows = [
        (parse_retry_after(Some("1500"), Some("9"), None), Some(1.5)),
        (parse_retry_after(None, Some("9"), None), Some(9.0)),
        (parse_retry_after(None, Some(" 0.5 "), None), Some(0.5)),
        (parse_retry_after(None, Some("Sun, 06 Nov 1994 08:50:07 GMT"), date), Some(30.0)),
        (parse_retry_after(None, Some("Sun, 06 Nov 1994 08:49:07 GMT"), date), Some(0.0)),
        (parse_retry_after(None, Some("Sun, 06 Nov 1994 08:50:07 GMT"), None), None),
        (parse_retry_after(None, Some("-1"), date), None),
        (parse_retry_after(Some("soon"), None, date), None),
        (parse_retry_after(None, None, date), None),
    ];
    for (place, (found, expected)) in rows.into_iter().enumerate() {
        assert_eq!(found.map(|wait| wait.as_secs_f64()), expected, "row {place}");
    }
    assert_eq!(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
    assert_eq!(parse_http_date("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
    assert_eq!(parse_http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    assert_eq!(parse_http_date("Thu, 01 Jan 1970 9223372036854775807:00:00 GMT"), None);
}
