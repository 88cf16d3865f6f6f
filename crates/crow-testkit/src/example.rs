//! Runs the examples of a crate, which Cargo builds with its tests.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the example is started as any user would")]

use std::path::Path;
use std::process::{Command, Stdio};

use crate::helper_binary::example_path;

/// Runs an example to its end in a directory; returns what it printed and its exit code.
///
/// # Panics
/// If the example is missing or out of date.
#[track_caller]
pub fn run_example(name: &str, args: impl IntoIterator<Item = String>, directory: &Path) -> String {
    let mut command = Command::new(example_path(name));
    command.args(args).current_dir(directory).stdin(Stdio::null());
    let output = command.output().expect("the example starts");
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    format!("{stdout}{stderr}exit {:?}\n", output.status.code())
}
