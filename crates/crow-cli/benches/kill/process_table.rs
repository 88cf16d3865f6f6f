//! The processes of one round: those whose working directory is in the round's home. Names prove nothing, and groups and
//! sessions can be left.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::scene::WAITING_PROGRAM;
use super::schedule::VictimKind;

/// `PF_FORKNOEXEC` of the kernel.
const FORKED_WITHOUT_EXEC: u64 = 0x40;

/// The promise is one second; a loaded machine may need longer, and a process that is left stays forever.
const GONE_WITHIN: Duration = Duration::from_secs(20);

/// There is no event for the end of another program's processes.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Lists the processes whose working directory is in a directory.
pub(crate) fn processes_in(directory: &Path) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_in(*pid, directory)).collect()
}

fn is_in(pid: i32, directory: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(directory))
}

/// Returns what a process is; `None` if it has ended or is none of the session's own, such as a `git` that looks at the
/// project.
pub(crate) fn kind_of(pid: i32, agent: i32, program: &Path) -> Option<VictimKind> {
    if pid == agent {
        return Some(VictimKind::Agent);
    }
    let words = command_line(pid);
    if fs::read_link(format!("/proc/{pid}/exe")).ok()? != program {
        return words.contains(WAITING_PROGRAM).then_some(VictimKind::Command);
    }
    if words.contains("sandbox-exec") {
        return Some(VictimKind::Supervisor);
    }
    // Before it executes its program, each child process looks like its parent.
    (words.contains(" acp") && has_executed(pid)?).then_some(VictimKind::Child)
}

/// Whether a process has executed a program since it was forked.
fn has_executed(pid: i32) -> Option<bool> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, the second field, may contain anything.
    let fields = text.get(text.rfind(')')? + 1..)?;
    let flags: u64 = fields.split_whitespace().nth(6)?.parse().ok()?;
    Some(flags & FORKED_WITHOUT_EXEC == 0)
}

fn command_line(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

/// Waits until no process is in a directory; returns how long that took, or those that are left.
pub(crate) fn wait_until_gone(directory: &Path) -> Result<Duration, Vec<String>> {
    let started_at = Instant::now();
    loop {
        let pids = processes_in(directory);
        if pids.is_empty() {
            return Ok(started_at.elapsed());
        }
        if started_at.elapsed() > GONE_WITHIN {
            return Err(pids.into_iter().map(|pid| format!("{pid} {}", command_line(pid))).collect());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
