//! Duration of a cancel, by the depth of the tree's leaf and by what the leaf is doing.

use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::agent::DEAF;
use crate::client::{Agent, ReceivedMessage};
use crate::model::{Model, Plan};
use crate::{agent_server, tree};

/// State of the leaf when the cancel arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaf {
    Model,
    Command,
    Permission,
    Deaf,
}

/// Measurements per case; the worst counts.
const ROUNDS: usize = 3;

/// Timeout for the leaf to start.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Marks the command lines of all processes of the leaf.
const MARK: &str = "86399";

const READY: &str = "ready.txt";

/// Prompts of the children, from the root down.
const PROMPTS: [&str; 3] = ["the first level", "the second level", "the third level"];

/// Durations since the cancel, and since the end of the root.
struct CancelTimes {
    answered: Duration,
    over: Option<Duration>,
    n_kept: usize,
    gone: Option<Duration>,
}

/// Prints the table.
pub(crate) fn measure(model: &Model) {
    println!("\ncancel, worst of {ROUNDS}");
    println!(
        "| the leaf | depth | answered | its work is gone | processes kept | end of the root -> all gone |"
    );
    println!("|---|---|---|---|---|---|");
    for (leaf, does) in [
        (Leaf::Model, "waits for its model"),
        (Leaf::Command, "runs a command that ignores SIGTERM"),
        (Leaf::Permission, "waits for permission"),
        (Leaf::Deaf, "is an agent that ignores cancel, SIGTERM and the end of its input"),
    ] {
        for depth in 1..=PROMPTS.len() {
            let times: Vec<CancelTimes> = (0..ROUNDS).map(|_| once(model, leaf, depth)).collect();
            let shown = |time: Option<Duration>| {
                time.map_or("never".to_owned(), |time| format!("{:.0} ms", time.as_secs_f64() * 1e3))
            };
            let worst = |of: fn(&CancelTimes) -> Option<Duration>| {
                shown(
                    times
                        .iter()
                        .map(|times| of(times).unwrap_or(Duration::MAX))
                        .max()
                        .filter(|time| *time < Duration::MAX),
                )
            };
            let n_kept = times.iter().map(|times| times.n_kept).max().unwrap_or(0);
            let (answered, over, gone) =
                (worst(|times| Some(times.answered)), worst(|times| times.over), worst(|times| times.gone));
            println!("| {does} | {depth} | {answered} | {over} | {n_kept} | {gone} |");
        }
    }
}

fn once(model: &Model, leaf: Leaf, depth: usize) -> CancelTimes {
    model.forget();
    plan(model, leaf, depth);
    let mode = if leaf == Leaf::Permission { "ask" } else { "auto" };
    let deaf = agent_server(DEAF, &[&model.port().to_string(), MARK, DEAF]);
    let config =
        format!("agents: {{ max_depth: {depth} }}\npermissions: {{ mode: {mode} }}\nagent_servers:\n{deaf}");
    let mut agent = Agent::configured(model.port(), &config);
    agent.hello();
    let session = agent.new_session();
    let said = agent.hear();
    let prompt = agent.prompt(&session);
    until_at_work(model, leaf, depth, &said, agent.home().path());
    let marked = tree::that_say(&tree::below(agent.pid()), MARK);
    assert_eq!(marked.is_empty(), matches!(leaf, Leaf::Model | Leaf::Permission), "{leaf:?}");
    let sent = Instant::now();
    agent.cancel(&session);
    let answer = loop {
        let heard = said.recv_timeout(WAIT_MAX).unwrap();
        if heard.message["id"] == prompt && heard.message.get("method").is_none() {
            break heard;
        }
    };
    assert_eq!(answer.message["result"]["stopReason"], "cancelled", "{}", answer.message);
    let over = match leaf {
        Leaf::Model => Some(model.hung_up()),
        Leaf::Permission => Some(answer.at),
        Leaf::Command | Leaf::Deaf => tree::gone(&marked),
    };
    let kept = tree::below(agent.pid());
    let end = Instant::now();
    agent.hang_up();
    CancelTimes {
        answered: answer.at - sent,
        over: over.map(|at| at.saturating_duration_since(sent)),
        n_kept: kept.len(),
        gone: tree::gone(&kept).map(|at| at - end),
    }
}

/// Plans a task from each level to the next, and the leaf's action at the last one.
fn plan(model: &Model, leaf: Leaf, depth: usize) {
    for level in 0..depth {
        let is_last = level + 1 == depth;
        let agent = if is_last && leaf == Leaf::Deaf { DEAF } else { "crow" };
        let gives = Plan::Calls(vec![("task", json!({"prompt": PROMPTS[level], "agent": agent}))]);
        match level {
            0 => model.plan(gives),
            _ => model.answer_to(PROMPTS[level - 1], gives),
        }
    }
    let command = match leaf {
        Leaf::Command => format!("trap '' TERM INT HUP; echo > {READY}; sleep {MARK}; sleep {MARK}"),
        Leaf::Permission => "python3 -c 0".to_owned(),
        Leaf::Model | Leaf::Deaf => return model.answer_to(PROMPTS[depth - 1], Plan::Hold),
    };
    model.answer_to(PROMPTS[depth - 1], Plan::Calls(vec![("terminal", json!({"command": command}))]));
}

fn until_at_work(model: &Model, leaf: Leaf, depth: usize, said: &Receiver<ReceivedMessage>, home: &Path) {
    let late = Instant::now() + WAIT_MAX;
    let wait = |is_so: &dyn Fn() -> bool| {
        while !is_so() {
            assert!(
                Instant::now() < late,
                "the leaf has not started: {leaf:?} at {depth}, {} begun",
                model.begun().len()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    match leaf {
        Leaf::Model | Leaf::Deaf => wait(&|| model.begun().len() == depth),
        Leaf::Command => wait(&|| home.join(READY).exists()),
        Leaf::Permission => {
            while said.recv_timeout(WAIT_MAX).unwrap().message["method"] != "session/request_permission" {}
        }
    }
    // The model's first output must have arrived.
    std::thread::sleep(Duration::from_millis(100));
}
