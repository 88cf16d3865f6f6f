//! Measures many children and the duration of a cancel: `cargo bench -p crow-cli --bench children [-- fifty|thousand|cancel] [N]`.
//!
//! Uses the real binary with real children: Crow itself, and this program as another agent.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "it starts the agent as an editor does")]

mod agent;
mod cancel;
#[path = "../common/client.rs"]
#[expect(dead_code, reason = "the other benchmark needs more of it")]
mod client;
mod crowd;
#[path = "../common/model.rs"]
#[expect(dead_code, reason = "the other benchmark needs more of it")]
mod model;
#[path = "../common/process_tree.rs"]
mod tree;

use crate::crowd::CrowdPlan;
use crate::model::Model;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == agent::WORD) {
        return agent::serve(&words[1..]);
    }
    // `cargo test --benches` only checks that this builds and starts.
    if words.iter().any(|word| word == "--test") {
        return;
    }
    let names = ["fifty", "thousand", "cancel"];
    let wants = |name: &str| {
        !words.iter().any(|word| names.contains(&word.as_str())) || words.iter().any(|word| word == name)
    };
    let n = words.iter().find_map(|word| word.parse().ok());
    let model = Model::start();
    if wants("fifty") {
        crowd::measure(&model, &CrowdPlan { agent: "crow", n_children: n.unwrap_or(50), n_chunks: 300 });
    }
    if wants("thousand") {
        crowd::measure(&model, &CrowdPlan { agent: "small", n_children: n.unwrap_or(1_000), n_chunks: 100 });
    }
    if wants("cancel") {
        cancel::measure(&model);
    }
}

/// Returns the configuration entry of this program as an agent.
fn agent_server(name: &str, words: &[&str]) -> String {
    // Signals that a shell ignores stay ignored in the program it executes.
    let start = r#"trap '' TERM INT HUP; exec "$0" "$@""#;
    let exe = std::env::current_exe().unwrap();
    let own = [exe.to_str().unwrap(), agent::WORD];
    let shell: &[&str] = if words.contains(&agent::DEAF) { &["sh", "-c", start] } else { &[] };
    let command: Vec<&str> = shell.iter().chain(&own).chain(words).copied().collect();
    format!("  {name}: {{ command: {} }}\n", serde_json::to_string(&command).unwrap())
}
