//! A long day of one agent: `cargo bench -p crow-cli --bench soak --profile simulation -- [--turns N]`; see
//! `docs/dev/soak.md`.
#![expect(clippy::print_stdout, reason = "a program for developers that reports")]
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "it starts the agent as an editor does")]

#[path = "soak.rs"]
mod soak;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` only checks that this builds and starts.
    if arguments.iter().any(|argument| argument == "--test") {
        return ExitCode::SUCCESS;
    }
    let output = soak::run_command(&arguments);
    println!("{}", output.text);
    ExitCode::from(output.exit_code)
}
