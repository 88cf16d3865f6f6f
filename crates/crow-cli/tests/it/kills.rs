//! A short run of `just kill`: processes are killed under load, and nothing is lost.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../../benches/kill/campaign.rs"]
mod campaign;

use serde_json::Value;

/// A kill takes about half a second in a debug build.
const N_KILLS: u64 = 8;

#[track_caller]
fn check(database: &str) {
    let arguments = [&N_KILLS.to_string(), "--database", database, "--json"].map(str::to_owned);
    let output = campaign::run_command(&arguments, env!("CARGO_BIN_EXE_crow-cli").into());
    let report: Value = serde_json::from_str(&output.text).expect("the report is JSON");
    assert_eq!(output.exit_code, 0, "{report:#}");
    assert!(report["n_kills"].as_u64() >= Some(N_KILLS), "{report:#}");
}

#[test]
fn kills_on_sqlite_lose_nothing() {
    check("sqlite");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "says whether servers can be started here")]
fn kills_on_postgres_lose_nothing() {
    if std::env::var_os("CROW_TEST_POSTGRES").is_some() {
        check("postgres");
    }
}
