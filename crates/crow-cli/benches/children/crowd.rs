//! Many children at once: their start, their resources, and whether their parent still responds.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Agent;
use crate::model::{Model, Plan};
use crate::{agent_server, tree};

/// The work of a parent's children.
pub(crate) struct CrowdPlan {
    pub(crate) agent: &'static str,
    pub(crate) n_children: usize,
    pub(crate) n_chunks: usize,
}

/// Interval of the requests to the parent meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Longer than the slowest machine needs.
const WAIT_MAX: Duration = Duration::from_secs(120);

const PROMPT: &str = "the work of a child";

/// Starts all children, then lets all of them send at once.
pub(crate) fn measure(model: &Model, crowd: &CrowdPlan) {
    let &CrowdPlan { agent: name, n_children, n_chunks } = crowd;
    let (mut agent, session) = parent(model, crowd);
    let (fds_before, _) = tree::descriptors_and_threads(agent.pid());
    let said = agent.hear();
    let began = Instant::now();
    let prompt = agent.prompt(&session);
    println!("\n{n_children} children, agent {name}, {n_chunks} chunks each");
    let mut opened: Option<Instant> = None;
    let mut waits = Vec::new();
    let (mut asked, mut mode) = (None::<(u64, Instant)>, "auto");
    let (ended, answer) = loop {
        assert!(began.elapsed() < WAIT_MAX, "{} of {n_children} have begun", model.begun().len());
        if opened.is_none() && model.begun().len() >= n_children {
            row("the root answers while they begin", &waits_of(&mut waits));
            resources(&agent, fds_before, n_children);
            opened = Some(Instant::now());
            model.open_gate();
        }
        if asked.is_none_or(|(_, at)| at.elapsed() > WAIT_MAX) {
            mode = if mode == "auto" { "accept-edits" } else { "auto" };
            asked = Some((agent.set_mode(&session, mode), Instant::now()));
        }
        let Ok(heard) = said.recv_timeout(ASK_EVERY) else { continue };
        if heard.message["id"] == prompt {
            break (heard.at, heard.message);
        }
        if let Some((_, at)) = asked.take_if(|(id, _)| heard.message["id"] == *id) {
            waits.push(heard.at - at);
            std::thread::sleep(ASK_EVERY);
        }
    };
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(opened.is_some(), "only {} have begun", model.begun().len());
    row("the root answers while they speak", &waits_of(&mut waits));
    let begun = model.begun();
    let since = |at: Instant| format!("{:.2} s", (at - began).as_secs_f64());
    row("the first has begun", &since(*begun.first().unwrap()));
    row("the last has begun", &since(*begun.last().unwrap()));
    let took = model.last().arrived - opened.unwrap_or(began);
    row("from the first word to the end of all", &format!("{:.2} s", took.as_secs_f64()));
    row("chunks/s", &format!("{:.0}", (n_children * n_chunks) as f64 / took.as_secs_f64()));
    row("the whole turn", &since(ended));
    check_results(model, n_children);
    let below = tree::below(agent.pid());
    let hung_up = Instant::now();
    agent.hang_up();
    let gone = tree::gone(&below)
        .map_or("not gone".to_owned(), |at| format!("{:.2} s", (at - hung_up).as_secs_f64()));
    row("end of the root -> all are gone", &gone);
    cancel_midway(model, crowd);
}

/// Starts the parent and plans its children's work.
fn parent(model: &Model, &CrowdPlan { agent: name, n_children, n_chunks }: &CrowdPlan) -> (Agent, String) {
    model.forget();
    let call = ("task", json!({"prompt": PROMPT, "agent": name}));
    model.plan(Plan::Calls(vec![call; n_children]));
    model.answer_to(PROMPT, Plan::Gated(n_chunks));
    let small = agent_server("small", &[&model.port().to_string(), &n_chunks.to_string()]);
    let limits = format!("agents: {{ max_children: {n_children} }}\npermissions: {{ mode: auto }}\n");
    let mut agent = Agent::configured(model.port(), &format!("{limits}agent_servers:\n{small}"));
    agent.hello();
    let session = agent.new_session();
    (agent, session)
}

/// Cancels while some children are running and others are still starting.
fn cancel_midway(model: &Model, crowd: &CrowdPlan) {
    let (mut agent, session) = parent(model, crowd);
    let said = agent.hear();
    let prompt = agent.prompt(&session);
    while model.begun().len() < crowd.n_children / 4 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Instant::now();
    agent.cancel(&session);
    let answered =
        std::iter::from_fn(|| said.recv_timeout(WAIT_MAX).ok()).find(|said| said.message["id"] == prompt);
    let took = answered.map_or("never".to_owned(), |said| format!("{:.2} s", (said.at - sent).as_secs_f64()));
    row("cancel when a quarter has begun -> answered", &took);
    row("  processes left then", &tree::below(agent.pid()).len().to_string());
}

fn resources(agent: &Agent, fds_before: usize, n_children: usize) {
    let below = tree::below(agent.pid());
    let (fds, threads) = tree::descriptors_and_threads(agent.pid());
    let pss: u64 = below.iter().map(|pid| tree::pss_kb(*pid)).sum();
    let each = (fds.saturating_sub(fds_before)) as f64 / n_children as f64;
    row("memory of the root, resident", &format!("{:.1} MB", agent.resident_kb() as f64 / 1e3));
    row("memory of the others, PSS", &format!("{:.0} MB", pss as f64 / 1e3));
    row("  of it a child", &format!("{:.2} MB", pss as f64 / 1e3 / n_children as f64));
    row("processes", &below.len().to_string());
    row("descriptors of the root", &format!("{fds} ({each:.1} a child)"));
    row("threads of the root", &threads.to_string());
}

/// Checks that the model received the result of each child.
fn check_results(model: &Model, n_children: usize) {
    let request: Value = serde_json::from_str(&model.last_body()).unwrap();
    let results = request["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    let texts: Vec<String> = results.map(|message| message["content"].to_string()).collect();
    let n_done = texts.iter().filter(|text| text.contains("is done")).count();
    row("children that are done", &format!("{n_done} of {n_children}"));
    if let Some(other) = texts.iter().find(|text| !text.contains("is done")) {
        println!("{other}");
    }
}

fn waits_of(waits: &mut Vec<Duration>) -> String {
    let mut waits = std::mem::take(waits);
    waits.sort_unstable();
    let ms = |at: usize| waits.get(at).map_or(0.0, |wait| wait.as_secs_f64() * 1e3);
    format!(
        "median {:.1} ms, worst {:.1} ms ({})",
        ms(waits.len() / 2),
        ms(waits.len().saturating_sub(1)),
        waits.len()
    )
}

fn row(name: &str, value: &str) {
    println!("  {name:<42} {value}");
}
