//! What the kernel says of a process and all below it.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

/// Longer than any end may take.
const GONE_WAIT_MAX: Duration = Duration::from_secs(20);

/// Finds all processes below one.
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

/// Keeps those whose command line holds a text.
pub(crate) fn that_say(pids: &[u32], text: &str) -> Vec<u32> {
    let says = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(text))
    };
    pids.iter().copied().filter(says).collect()
}

/// Waits until all of them have ended; tells when the last did.
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

/// The memory that belongs to a process, with its share of what several use, in KB.
pub(crate) fn pss_kb(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("Pss:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// How many descriptors and threads a process has.
pub(crate) fn descriptors_and_threads(pid: u32) -> (usize, usize) {
    let n_in = |folder: &str| fs::read_dir(format!("/proc/{pid}/{folder}")).unwrap().count();
    (n_in("fd"), n_in("task"))
}

/// The state of a process and its parent.
fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, also brackets.
    let mut fields = text[text.rfind(')')? + 1..].split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
