//! Runs many tasks on workers while workers and servers are killed: `cargo bench -p crow-cli --bench fleet --profile dev --
//! [TASKS]`; see `docs/dev/fleet.md`.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "it starts workers as an administrator does")]

mod killer;
#[path = "../common/model.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod model;
mod options;
mod report;
mod tasks;
mod world;

use std::process::ExitCode;
use std::time::Instant;

use killer::Killer;
use options::{FleetOptions, USAGE};
use report::FleetReport;
use world::FleetWorld;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` only checks that this builds and starts.
    if arguments.iter().any(|argument| argument == "--test") {
        return ExitCode::SUCCESS;
    }
    let Some(options) = FleetOptions::parse(&arguments) else {
        println!("{USAGE}");
        return ExitCode::from(2);
    };
    let Some(world) = FleetWorld::start(&options) else {
        println!("CROW_TEST_NATS must be the path of nats-server");
        return ExitCode::from(2);
    };
    let began = Instant::now();
    let killer = Killer::start(&options, world);
    let results = tasks::run_tasks(&options, killer.farm());
    let took = began.elapsed();
    let (world, kills) = killer.finish();
    let report = FleetReport::new(&options, &results, &world, kills, took);
    println!("{}", if options.is_json { report.to_json().to_string() } else { report.to_string() });
    ExitCode::from(u8::from(!report.has_passed()))
}
