//! A short run of `just soak`. It is too short to say whether something grows.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the agent is started as an editor does")]

#[path = "../../benches/soak/soak.rs"]
mod work;

use serde_json::{Value, json};

#[test]
fn soak_does_its_work_and_reports() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let out = directory.path().display().to_string();
    let arguments =
        ["--turns", "40", "--sessions", "4", "--editors", "2", "--idle", "1", "--json", "--out", &out];
    let output = work::run_command(&arguments.map(str::to_owned));
    let report: Value = serde_json::from_str(&output.text).expect("the report is JSON");
    assert_eq!(output.exit_code == 0, report["passed"] == true, "{report:#}");
    assert_eq!([&report["n_turns"], &report["n_calls"]], [&json!(40), &json!(400)], "{report:#}");
    assert_eq!(report["idle"]["descriptor_growth"], 0, "{report:#}");
    assert_eq!(report["output_bytes"], 40 * 1024 * 1024, "{report:#}");
    let samples = std::fs::read_to_string(directory.path().join("soak.csv")).expect("it was written");
    assert_eq!(samples.lines().count(), 41, "{samples}");
}
