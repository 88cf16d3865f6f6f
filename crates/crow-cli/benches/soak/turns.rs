//! The work: turns in many sessions of one agent, some at a time.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Agent, ReceivedMessage};
use super::model::{Model, Plan};
use super::options::SoakOptions;
use super::sample::ResourceSample;

/// Turns at the same time.
const N_AT_ONCE: usize = 4;

/// Samples of a run.
const N_SAMPLES: usize = 200;

/// Calls of a turn.
const N_CALLS: usize = 10;

/// Output of the command of a turn: ten thousand make ten gigabytes.
const OUTPUT_BYTES: u64 = 1024 * 1024;

/// Longer than a turn on a busy machine.
const TURN_TIME_MAX: Duration = Duration::from_secs(120);

/// Sessions are compacted often. Permissions are not what is measured.
const CONFIG: &str = "permissions: { mode: auto, sandbox: off }\nmax_compact_tokens: 24000\n";

/// The work that was done, and the samples meanwhile.
pub(crate) struct WorkResult {
    pub(crate) n_turns: u64,
    pub(crate) n_sessions: usize,
    pub(crate) n_calls: u64,
    pub(crate) n_compactions: u64,
    pub(crate) output_bytes: u64,
    pub(crate) samples: Vec<ResourceSample>,
}

/// The requests that the model has seen.
#[derive(Default)]
struct WorkCounters {
    n_replies: AtomicU64,
    n_results: AtomicU64,
    n_whole_outputs: AtomicU64,
    n_summaries: AtomicU64,
}

pub(crate) fn run_turns(options: &SoakOptions) -> WorkResult {
    let (model, counters) = start_model();
    let mut agent = Agent::configured(model.port(), CONFIG);
    fs::write(agent.home().path().join("notes.txt"), "A line of notes, hello.\n".repeat(400)).unwrap();
    agent.hello();
    let sessions: Vec<String> = (0..options.n_sessions).map(|_| agent.new_session()).collect();
    let messages = agent.hear();
    let samples = work(options, &mut agent, &sessions, &messages);
    agent.hang_up();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    WorkResult {
        n_turns: count(&counters.n_replies),
        n_sessions: sessions.len(),
        n_calls: count(&counters.n_results),
        n_compactions: count(&counters.n_summaries),
        output_bytes: count(&counters.n_whole_outputs) * OUTPUT_BYTES,
        samples,
    }
}

fn work(
    options: &SoakOptions,
    agent: &mut Agent,
    sessions: &[String],
    messages: &Receiver<ReceivedMessage>,
) -> Vec<ResourceSample> {
    let (started_at, config_dir) = (Instant::now(), agent.home().path().join(".crow"));
    let sample_interval = (options.n_turns / N_SAMPLES).max(1);
    let (mut samples, mut n_begun, mut n_ended) = (Vec::new(), 0, 0);
    let mut running: HashMap<u64, usize> = HashMap::new();
    while n_ended < options.n_turns {
        while n_begun < options.n_turns && running.len() < N_AT_ONCE.min(sessions.len()) {
            running.insert(agent.prompt(&sessions[n_begun % sessions.len()]), n_begun);
            n_begun += 1;
        }
        let message = messages.recv_timeout(TURN_TIME_MAX).unwrap().message;
        if message["id"].as_u64().and_then(|id| running.remove(&id)).is_none() {
            continue;
        }
        assert_eq!(message["result"]["stopReason"], "end_turn", "{message}");
        n_ended += 1;
        if n_ended % sample_interval == 0 {
            let seconds = started_at.elapsed().as_secs_f64();
            samples.push(ResourceSample::take(agent.pid(), &config_dir, n_ended, seconds));
        }
    }
    samples
}

/// Starts a model that calls tools after each prompt, replies after their results, and sums up when it is asked to.
fn start_model() -> (Model, Arc<WorkCounters>) {
    let counters = Arc::new(WorkCounters::default());
    let model = Model::start();
    let shared = Arc::clone(&counters);
    model.plan(Plan::Chosen(Arc::new(move |request| choose_plan(request, &shared))));
    (model, counters)
}

fn choose_plan(request: &Value, counters: &WorkCounters) -> Plan {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let results: Vec<&Value> =
        messages.iter().rev().take_while(|message| message["role"] == "tool").collect();
    let add = |counter: &AtomicU64, n: usize| counter.fetch_add(n as u64, Ordering::Relaxed);
    if !results.is_empty() {
        let is_whole = |result: &&&Value| result["content"].to_string().contains("of the output is in");
        add(&counters.n_whole_outputs, results.iter().filter(is_whole).count());
        add(&counters.n_results, results.len());
        add(&counters.n_replies, 1);
        return Plan::Words(20);
    }
    // A request for a summary has no tools. It quotes prompts, so its text says nothing about that.
    if request["tools"].as_array().is_some_and(|tools| !tools.is_empty()) {
        return Plan::Calls(calls());
    }
    add(&counters.n_summaries, 1);
    // The answer to the request for a summary, and to the question whether that is complete.
    Plan::Text("COMPLETE")
}

fn calls() -> Vec<(&'static str, Value)> {
    let mut calls = vec![
        ("terminal", json!({"command": format!("yes 0123456789 | head -c {OUTPUT_BYTES}")})),
        ("write", json!({"file_path": "out.txt", "content": "a line\n".repeat(50)})),
        ("glob", json!({"pattern": "*.txt"})),
    ];
    calls.extend(
        (0..4).map(|n| ("read", json!({"file_path": "notes.txt", "offset": 1 + n * 10, "limit": 10}))),
    );
    calls.extend(
        (0..3).map(|n| ("grep", json!({"pattern": format!("hello{}", ".*".repeat(n)), "path": "notes.txt"}))),
    );
    assert_eq!(calls.len(), N_CALLS);
    calls
}
