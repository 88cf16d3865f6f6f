//! Idle editors: agents with an open session and nothing to do. What they do not do in a minute they do not do in a day;
//! a day itself passes in the simulation, in virtual time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::client::Agent;
use super::model::Model;
use super::process_tree::descriptors_and_threads;

/// The resources that all idle agents together used.
#[derive(Debug, Default)]
pub(crate) struct IdleResult {
    pub(crate) n_editors: usize,
    pub(crate) seconds: u64,
    pub(crate) cpu_ms: u64,
    /// The number of times that a thread was woken up.
    pub(crate) n_wakeups: u64,
    pub(crate) resident_growth_kb: i64,
    pub(crate) descriptor_growth: i64,
}

#[derive(Debug, Default)]
struct IdleUsage {
    /// Processor time in nanoseconds and wake-ups, by thread. A thread that ends takes its numbers with it.
    threads: BTreeMap<String, (u64, u64)>,
    resident_kb: i64,
    n_descriptors: i64,
}

pub(crate) fn measure_idle_editors(n_editors: usize, time: Duration) -> IdleResult {
    let model = Model::start();
    let mut agents: Vec<Agent> = (0..n_editors).map(|_| Agent::start(model.port())).collect();
    for agent in &mut agents {
        agent.hello();
        agent.new_session();
        agent.settle();
    }
    let before: Vec<IdleUsage> = agents.iter().map(measure).collect();
    std::thread::sleep(time);
    let after = agents.iter().map(measure);
    let mut result = IdleResult { n_editors, seconds: time.as_secs(), ..IdleResult::default() };
    for (before, after) in before.into_iter().zip(after) {
        for (thread, (cpu_ns, n_wakeups)) in after.threads {
            let (cpu_ns_before, n_wakeups_before) = before.threads.get(&thread).copied().unwrap_or_default();
            result.cpu_ms += (cpu_ns - cpu_ns_before) / 1_000_000;
            result.n_wakeups += n_wakeups - n_wakeups_before;
        }
        result.resident_growth_kb += after.resident_kb - before.resident_kb;
        result.descriptor_growth += after.n_descriptors - before.n_descriptors;
    }
    result
}

fn measure(agent: &Agent) -> IdleUsage {
    let tasks = fs::read_dir(format!("/proc/{}/task", agent.pid())).into_iter().flatten().flatten();
    IdleUsage {
        threads: tasks.filter_map(|task| measure_thread(&task.path())).collect(),
        resident_kb: agent.resident_kb().cast_signed(),
        n_descriptors: descriptors_and_threads(agent.pid()).0 as i64,
    }
}

/// Returns `None` if the thread has ended meanwhile.
fn measure_thread(directory: &Path) -> Option<(String, (u64, u64))> {
    let times = fs::read_to_string(directory.join("schedstat")).ok()?;
    let status = fs::read_to_string(directory.join("status")).ok()?;
    let switches = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    let usage = (times.split(' ').next()?.parse().ok()?, switches.trim().parse().ok()?);
    Some((directory.file_name()?.to_string_lossy().into_owned(), usage))
}
