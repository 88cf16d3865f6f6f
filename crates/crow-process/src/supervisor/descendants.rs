//! All descendants of this process, and their end. The supervisor is a subreaper: a process that loses its parent
//! becomes a child of ours, however it left its group or session.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::fd::AsFd as _,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, getpid},
};

use super::exit::SignalQueue;

/// Between SIGTERM and SIGKILL for processes that a command left behind.
const GRACE: Duration = Duration::from_millis(500);

/// A process that is not gone by then is stuck in the kernel or beyond our rights, and the caller is not kept
/// waiting.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Dead children are reported by SIGCHLD; this is for those that a killed parent just passed to us.
const POLL_INTERVAL_MS: u16 = 5;

/// Sends SIGTERM to all descendants, and kills those that remain.
pub(super) fn terminate_descendants(signals: &SignalQueue) -> io::Result<()> {
    if reap_children()? == RemainingProcesses::Ended {
        return Ok(());
    }
    visit_descendants(|pid| {
        send_signal(pid, Signal::SIGTERM);
        send_signal(pid, Signal::SIGCONT);
    })?;
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline {
        if reap_children()? == RemainingProcesses::Ended {
            return Ok(());
        }
        wait_for_child_event(signals)?;
    }
    kill_descendants(signals)
}

/// Kills all descendants.
pub(super) fn kill_descendants(signals: &SignalQueue) -> io::Result<()> {
    let deadline = Instant::now() + KILL_TIMEOUT;
    while reap_children()? == RemainingProcesses::Alive && Instant::now() < deadline {
        // Stopped processes start nothing new. One that keeps forking is caught in one of the rounds, because a round
        // takes less time than a program needs to start.
        let (mut stopped, mut pids) = (BTreeSet::new(), Vec::new());
        let mut has_new_processes = true;
        while has_new_processes && Instant::now() < deadline {
            has_new_processes = false;
            pids.clear();
            visit_descendants(|pid| {
                send_signal(pid, Signal::SIGSTOP);
                has_new_processes |= stopped.insert(pid);
                pids.push(pid);
            })?;
        }
        pids.iter().for_each(|&pid| send_signal(pid, Signal::SIGKILL));
        wait_for_child_event(signals)?;
    }
    Ok(())
}

/// A process that is gone already is fine; one of another user is beyond our rights.
fn send_signal(pid: Pid, signal: Signal) {
    let _ = kill(pid, signal);
}

#[derive(Debug, PartialEq, Eq)]
enum RemainingProcesses {
    Ended,
    Alive,
}

/// Reaps children.
fn reap_children() -> io::Result<RemainingProcesses> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return Ok(RemainingProcesses::Alive),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(Errno::ECHILD) => return Ok(RemainingProcesses::Ended),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits for an event of a child, or a moment. Signals no longer matter: the end has begun.
fn wait_for_child_event(signals: &SignalQueue) -> io::Result<()> {
    while signals.next_signal()?.is_some() {}
    match poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], PollTimeout::from(POLL_INTERVAL_MS)) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Visits all descendants, each before its own children are looked up.
fn visit_descendants(mut visit: impl FnMut(Pid)) -> io::Result<()> {
    let mut pending = vec![getpid().as_raw()];
    if child_pids(pending[0]).is_none() {
        scan_descendants()?.into_iter().for_each(visit);
        return Ok(());
    }
    while let Some(pid) = pending.pop() {
        // A process that ended since then has no children any more.
        for child in child_pids(pid).unwrap_or_default() {
            visit(Pid::from_raw(child));
            pending.push(child);
        }
    }
    Ok(())
}

/// The children of a process; `None` if it is gone or the kernel has no such lists.
fn child_pids(pid: i32) -> Option<Vec<i32>> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).ok()?;
        children.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Some(children)
}

/// All descendants, parents first, found among all processes.
fn scan_descendants() -> io::Result<Vec<Pid>> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        if let Some(parent) = parse_parent_pid(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut pids = vec![getpid().as_raw()];
    let mut n_visited = 0;
    while let Some(pid) = pids.get(n_visited) {
        let more = children.remove(pid).unwrap_or_default();
        pids.extend(more);
        n_visited += 1;
    }
    Ok(pids.into_iter().skip(1).map(Pid::from_raw).collect())
}

/// Parses the parent pid out of `pid (name) state parent …`; the name may contain anything.
fn parse_parent_pid(stat: &[u8]) -> Option<i32> {
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_pid_is_parsed_for_any_name() {
        for (stat, parent) in [
            ("12 (sh) S 34 12 12", Some(34)),
            ("12 (a) b) (c)) R 5 1", Some(5)),
            ("12 (sh)", None),
            ("", None),
        ] {
            assert_eq!(parse_parent_pid(stat.as_bytes()), parent, "{stat}");
        }
    }
}
