//! Measures the speed and memory targets on this machine: `cargo bench -p crow-cli`.
//!
//! Drives the real binary over pipes and plays the model on threads of this process, so that both ends share a clock.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "it starts the agent as an editor does")]

#[path = "../common/client.rs"]
#[expect(dead_code, reason = "the other benchmark needs more of it")]
mod client;
#[path = "../common/model.rs"]
#[expect(dead_code, reason = "the other benchmark needs more of it")]
mod model;

use std::time::{Duration, Instant};

use crate::client::Agent;
use crate::model::{Model, Plan};

const STARTS: usize = 30;
const TURNS: usize = 400;
const CHUNKS: usize = 20_000;
const STREAMS: usize = 5;
const SESSIONS: usize = 50;
const CHUNKS_EACH: usize = 2_000;

fn main() {
    // `cargo test --benches` only checks that this builds and starts.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let model = Model::start();
    println!("{:<44} {:>12} {:>12} {:>12}", "", "min", "median", "promise");
    starts(&model);
    turns(&model);
    streams(&model);
    cancels(&model);
    crowd(&model);
}

fn starts(model: &Model) {
    let (mut hello, mut cpu, mut new, mut idle) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let began = Instant::now();
        let mut agent = Agent::start(model.port());
        agent.hello();
        hello.push(began.elapsed());
        cpu.push(agent.cpu());
        let began = Instant::now();
        agent.new_session();
        new.push(began.elapsed());
        agent.settle();
        idle.push(agent.resident_kb());
    }
    row("spawn -> initialize answered", &mut hello, "10 ms");
    row("  CPU until then", &mut cpu, "3 ms");
    row("session/new", &mut new, "3 ms");
    idle.sort_unstable();
    println!("{:<44} {:>9} KB {:>9} KB {:>12}", "idle, resident", idle[0], idle[idle.len() / 2], "12 MB");
}

fn turns(model: &Model) {
    let mut agent = Agent::start(model.port());
    agent.hello();
    let session = agent.new_session();
    let (mut out, mut back, mut tool) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..TURNS {
        model.plan(Plan::Words(3));
        let sent = Instant::now();
        agent.prompt(&session);
        let first = agent.first_update();
        agent.end_of_turn();
        let asked = model.last();
        if turn > 0 {
            out.push(asked.arrived - sent);
            back.push(first - asked.first_byte);
        }
    }
    let early = median(&out[..20]);
    let late = median(&out[out.len() - 20..]);
    row("prompt -> request at the model", &mut out, "1 ms");
    row("first byte -> first chunk", &mut back, "0.3 ms");
    println!(
        "{:<44} {:>25.2} {:>12}",
        format!("turn {TURNS} against the first 20, request out"),
        late / early,
        "1.0x"
    );
    for _ in 0..50 {
        model.plan(Plan::ReadThenWords);
        agent.prompt(&session);
        agent.end_of_turn();
        let requests = model.last_two();
        tool.push(requests.1.arrived - requests.0.first_byte);
    }
    row("a turn with one read, reply -> next request", &mut tool, "0.8 ms");
    agent.hang_up();
    let mut loads = Vec::new();
    let n_messages = TURNS * 2 + 50 * 4;
    for _ in 0..10 {
        let mut agent = Agent::at(model.port(), agent.home());
        agent.hello();
        agent.new_session();
        let began = Instant::now();
        agent.load(&session);
        loads.push(began.elapsed() / n_messages as u32);
    }
    row("session/load, a message", &mut loads, "25 µs");
}

fn streams(model: &Model) {
    let mut agent = Agent::start(model.port());
    agent.hello();
    let session = agent.new_session();
    let (mut wall, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..STREAMS {
        model.plan(Plan::Words(CHUNKS));
        let before = agent.cpu();
        agent.prompt(&session);
        agent.end_of_turn();
        let took = model.last().first_byte.elapsed();
        wall.push(took);
        cpu.push((agent.cpu() - before) / CHUNKS as u32);
    }
    let best = wall.iter().min().copied().unwrap_or_default();
    println!(
        "{:<44} {:>25.0} {:>12}",
        format!("{CHUNKS} chunks through one session, chunks/s"),
        CHUNKS as f64 / best.as_secs_f64(),
        "160000"
    );
    row("  CPU a chunk", &mut cpu, "2.8 µs");
}

fn cancels(model: &Model) {
    let mut agent = Agent::start(model.port());
    agent.hello();
    let session = agent.new_session();
    let mut gone = Vec::new();
    for _ in 0..30 {
        model.plan(Plan::Hold);
        agent.prompt(&session);
        agent.first_update();
        let sent = Instant::now();
        agent.cancel(&session);
        agent.end_of_turn();
        gone.push(model.hung_up() - sent);
    }
    row("cancel -> connection to the model gone", &mut gone, "0.4 ms");
}

fn crowd(model: &Model) {
    let mut agent = Agent::start(model.port());
    agent.hello();
    let sessions: Vec<String> = (0..SESSIONS).map(|_| agent.new_session()).collect();
    for _ in 0..SESSIONS {
        model.plan(Plan::Words(CHUNKS_EACH));
    }
    let began = Instant::now();
    for session in &sessions {
        agent.prompt(session);
    }
    for _ in 0..SESSIONS {
        agent.end_of_turn();
    }
    let rate = (SESSIONS * CHUNKS_EACH) as f64 / began.elapsed().as_secs_f64();
    println!("{:<44} {:>25.0} {:>12}", format!("{SESSIONS} sessions at once, chunks/s"), rate, "100000");
    println!("{:<44} {:>22} KB {:>12}", "  peak, resident", agent.peak_kb(), "40 MB");
}

fn row(name: &str, times: &mut [Duration], promise: &str) {
    times.sort_unstable();
    let shown = |time: Duration| format!("{:.1} µs", time.as_secs_f64() * 1e6);
    println!("{name:<44} {:>12} {:>12} {promise:>12}", shown(times[0]), shown(times[times.len() / 2]));
}

fn median(times: &[Duration]) -> f64 {
    let mut times: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
