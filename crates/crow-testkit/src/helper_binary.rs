//! Finds the helper binaries of this crate in the target directory of the running test.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

/// Builds the helper binaries.
const HELPER_BUILD: &str = "cargo test --workspace --no-run --test fake_agent";

/// Builds the examples of all crates.
const EXAMPLE_BUILD: &str = "cargo build --workspace --examples";

/// Returns the path of a helper binary.
///
/// # Panics
/// If the binary is missing, or older than one of its source files.
#[track_caller]
pub(crate) fn helper_path(name: &str) -> String {
    binary_path(name, HELPER_BUILD)
}

/// Returns the path of an example.
///
/// # Panics
/// If it is missing, or older than one of its source files.
#[track_caller]
pub(crate) fn example_path(name: &str) -> String {
    binary_path(&format!("examples/{name}"), EXAMPLE_BUILD)
}

#[track_caller]
fn binary_path(name: &str, build_command: &str) -> String {
    let test = std::env::current_exe().expect("the test's own path is known");
    let directory = test.parent().expect("the test is in a directory");
    let directory = if directory.ends_with("deps") { directory.parent() } else { Some(directory) };
    let binary = directory.expect("the target directory").join(name);
    let Some(built) = modification_time(&binary) else {
        panic!("{} is missing: run `{build_command}`", binary.display());
    };
    // Cargo writes the sources of a binary into a file next to it.
    let sources = fs::read_to_string(binary.with_extension("d")).unwrap_or_default();
    let sources = sources.split_once(": ").map_or("", |(_, sources)| sources.trim()).replace("\\ ", "\0");
    for source in sources.split(' ').map(|source| source.replace('\0', " ")) {
        if modification_time(Path::new(&source)).is_some_and(|changed| changed > built) {
            panic!("{} is older than {source}: run `{build_command}`", binary.display());
        }
    }
    binary.display().to_string()
}

fn modification_time(path: &Path) -> Option<std::time::SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}
