//! Reads a process tree from /proc.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

/// Longer than any exit may take.
const GONE_WAIT_MAX: Duration = Duration::from_secs(20);

/// Returns all descendants of a process.
pub(crate) fn below(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        if let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok())
            && let Some((_, parent)) = stat(pid)
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut waiting = vec![root];
    while let Some(pid) = waiting.pop() {
        let these = children.remove(&pid).unwrap_or_default();
        found.extend(&these);
        waiting.extend(these);
    }
    found
}

/// Filters processes by a text in their command line.
pub(crate) fn that_say(pids: &[u32], text: &str) -> Vec<u32> {
    let says = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(text))
    };
    pids.iter().copied().filter(says).collect()
}

/// Waits until all of them have exited; returns when the last one did.
pub(crate) fn gone(pids: &[u32]) -> Option<Instant> {
    let late = Instant::now() + GONE_WAIT_MAX;
    while pids.iter().any(|pid| stat(*pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))) {
        if Instant::now() > late {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Some(Instant::now())
}

/// Returns a process's proportional set size in KB.
pub(crate) fn pss_kb(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("Pss:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Counts a process's descriptors and threads.
pub(crate) fn descriptors_and_threads(pid: u32) -> (usize, usize) {
    let n_in = |directory: &str| fs::read_dir(format!("/proc/{pid}/{directory}")).unwrap().count();
    (n_in("fd"), n_in("task"))
}

/// Returns the state and the parent of a process.
fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain brackets.
    let mut fields = text[text.rfind(')')? + 1..].split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
