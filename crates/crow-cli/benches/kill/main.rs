//! Kills real processes under load: `cargo bench -p crow-cli --bench kill --profile dev -- [KILLS]`; see
//! `docs/dev/kills.md`.
#![expect(clippy::print_stdout, reason = "a program for developers that reports")]

#[path = "campaign.rs"]
mod campaign;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` only checks that this builds and starts.
    if arguments.iter().any(|argument| argument == "--test") {
        return ExitCode::SUCCESS;
    }
    let output = campaign::run_command(&arguments, env!("CARGO_BIN_EXE_crow-cli").into());
    println!("{}", output.text);
    ExitCode::from(output.exit_code)
}
