//! Measures the speed and memory of the agent against what is promised, beside the floor or another build:
//! `cargo bench -p crow-cli --bench agent [-- --json] [--program PROGRAM] [--against PROGRAM] [--rounds N]`.
//!
//! Drives the real binary over pipes and plays the model on threads of this process, so that both ends share a clock.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "it starts the agent as an editor does")]

#[path = "../common/client.rs"]
#[expect(dead_code, reason = "the other benchmark needs more of it")]
mod client;
mod figures;
mod floor;
mod measure;
#[path = "../common/model.rs"]
#[expect(dead_code, reason = "the other benchmark needs more of it")]
mod model;
mod raw_client;

use std::io;

use crate::client::AgentProgram;
use crate::figures::merge_round;
use crate::model::Model;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|argument| argument == floor::WORD) {
        return floor::serve();
    }
    // `cargo test --benches` only checks that this builds and starts.
    if arguments.iter().any(|argument| argument == "--test") {
        return Ok(());
    }
    let value_of = |name: &str| arguments.iter().skip_while(|argument| *argument != name).nth(1);
    let n_rounds = value_of("--rounds").map_or(1, |n| n.parse().unwrap());
    let program = value_of("--program").map_or_else(AgentProgram::built, AgentProgram::crow);
    let other = value_of("--against").map(AgentProgram::crow);
    let model = Model::start();
    let (mut figures, mut others) = (Vec::new(), Vec::new());
    for _ in 0..n_rounds {
        merge_round(&mut figures, measure::measure_basics(&program, &model));
        merge_round(&mut figures, measure::measure_sessions(&program, &model));
        match &other {
            Some(other) => {
                merge_round(&mut others, measure::measure_basics(other, &model));
                merge_round(&mut others, measure::measure_sessions(other, &model));
            }
            None => {
                let floor = AgentProgram { path: std::env::current_exe()?, argument: floor::WORD };
                merge_round(&mut others, measure::measure_basics(&floor, &model));
            }
        }
    }
    let other_name = if other.is_some() { "other" } else { "floor" };
    if arguments.iter().any(|argument| argument == "--json") {
        figures::print_json(&figures, other_name, &others);
    } else {
        figures::print_table(&figures, other_name, &others);
    }
    Ok(())
}
