//! All that descends from this process, and its end. Works because the warden is a subreaper: whoever loses its
//! parent becomes a child of ours, however it left its group or session.

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

use super::ending::SignalQueue;

/// Between asking and killing what a command left behind: it was left without a word, so nobody waits long for it.
const GRACE: Duration = Duration::from_millis(500);

/// What is not gone by then is stuck in the kernel or beyond our rights, and nobody is kept waiting for it.
const KILLED_WITHIN: Duration = Duration::from_secs(5);

/// Dead children tell of themselves; this is for those that a killed parent just handed to us.
const LOOK_EVERY_MS: u16 = 5;

/// Asks all descendants to end, and ends them when they do not.
pub(super) fn terminate_descendants(signals: &SignalQueue) -> io::Result<()> {
    if reap_children()? == RemainingProcesses::Nobody {
        return Ok(());
    }
    visit_descendants(|pid| {
        send_signal(pid, Signal::SIGTERM);
        send_signal(pid, Signal::SIGCONT);
    })?;
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline {
        if reap_children()? == RemainingProcesses::Nobody {
            return Ok(());
        }
        wait_for_child_event(signals)?;
    }
    kill_descendants(signals)
}

/// Ends all descendants.
pub(super) fn kill_descendants(signals: &SignalQueue) -> io::Result<()> {
    let deadline = Instant::now() + KILLED_WITHIN;
    while reap_children()? == RemainingProcesses::Somebody && Instant::now() < deadline {
        // What stands still starts nothing new. Who forks on and on is caught in one of the rounds, since a round takes
        // less time than a program to start.
        let (mut stopped, mut found) = (BTreeSet::new(), Vec::new());
        let mut has_news = true;
        while has_news && Instant::now() < deadline {
            has_news = false;
            found.clear();
            visit_descendants(|pid| {
                send_signal(pid, Signal::SIGSTOP);
                has_news |= stopped.insert(pid);
                found.push(pid);
            })?;
        }
        found.iter().for_each(|&pid| send_signal(pid, Signal::SIGKILL));
        wait_for_child_event(signals)?;
    }
    Ok(())
}

/// Who is gone already is fine, and who runs as somebody else is beyond us.
fn send_signal(pid: Pid, signal: Signal) {
    let _ = kill(pid, signal);
}

#[derive(Debug, PartialEq, Eq)]
enum RemainingProcesses {
    Nobody,
    Somebody,
}

/// Buries the dead.
fn reap_children() -> io::Result<RemainingProcesses> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return Ok(RemainingProcesses::Somebody),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(Errno::ECHILD) => return Ok(RemainingProcesses::Nobody),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until something happens to a child, or a moment. Whatever we are told now, the end is under way already.
fn wait_for_child_event(signals: &SignalQueue) -> io::Result<()> {
    while signals.next_signal()?.is_some() {}
    match poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], PollTimeout::from(LOOK_EVERY_MS)) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Visits everybody who descends from us, each before its own children are looked for.
fn visit_descendants(mut visit: impl FnMut(Pid)) -> io::Result<()> {
    let mut open = vec![getpid().as_raw()];
    if child_pids(open[0]).is_none() {
        scan_descendants()?.into_iter().for_each(visit);
        return Ok(());
    }
    while let Some(pid) = open.pop() {
        // Who has gone since then has no children any more.
        for child in child_pids(pid).unwrap_or_default() {
            visit(Pid::from_raw(child));
            open.push(child);
        }
    }
    Ok(())
}

/// The children of a process; `None` when it is gone or the kernel keeps no such lists.
fn child_pids(pid: i32) -> Option<Vec<i32>> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).ok()?;
        children.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Some(children)
}

/// Everybody who descends from us, parents first, found among all processes there are.
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
    let mut found = vec![getpid().as_raw()];
    let mut seen = 0;
    while let Some(pid) = found.get(seen) {
        let more = children.remove(pid).unwrap_or_default();
        found.extend(more);
        seen += 1;
    }
    Ok(found.into_iter().skip(1).map(Pid::from_raw).collect())
}

/// Reads the parent out of `pid (name) state parent …`; the name may hold anything.
fn parse_parent_pid(stat: &[u8]) -> Option<i32> {
    let name_ends = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_ends + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_read_whatever_the_name() {
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
