//! Finds out what of the sandbox works here, by closing a real one around a short-lived process. Settings of the
//! kernel are read only to say what to change.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    time::Duration,
};

use crow_core::{Confinement, PartialSandbox, SandboxSupport};
use nix::{
    sys::wait::{WaitStatus, waitpid},
    unistd::{ForkResult, fork, geteuid, pipe2},
};
use tokio_util::sync::CancellationToken;

use super::{calls, cell::CommandSandbox, files, repositories::RepositorySurvey};
use crate::{
    CommandSpec, ExitReason, FilterLimits, ProcessGroups, run_filter,
    warden::{PROBE, WORD, orders::LaunchSpec},
};

/// It takes milliseconds; a machine that needs longer is not to be waited for.
const TIME_MAX: Duration = Duration::from_secs(10);

/// A report is a line.
const REPORT_BYTES_MAX: usize = 4096;

/// What a report begins with: a sandbox with its own mount name space works, one without works, none does.
const WHOLE: &str = "namespace";
const WITHOUT: &str = "no namespace: ";
const NOTHING: &str = "nothing: ";

/// A kernel setting that forbids what a mount name space needs.
struct KernelRestriction {
    setting: &'static str,
    value: &'static str,
    cure: &'static str,
    /// Root needs no user name space.
    is_for_root: bool,
}

const HINDRANCES: [KernelRestriction; 4] = [
    KernelRestriction {
        setting: "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        value: "1",
        cure: "AppArmor restricts user name spaces; give crow-cli a profile with `userns,`, or allow them to all \
               programs with `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`",
        is_for_root: false,
    },
    KernelRestriction {
        setting: "/proc/sys/kernel/unprivileged_userns_clone",
        value: "0",
        cure: "user name spaces are switched off; `sudo sysctl -w kernel.unprivileged_userns_clone=1` allows them",
        is_for_root: false,
    },
    KernelRestriction {
        setting: "/proc/sys/user/max_user_namespaces",
        value: "0",
        cure: "user name spaces are switched off; `sudo sysctl -w user.max_user_namespaces=10000` allows them",
        is_for_root: false,
    },
    KernelRestriction {
        setting: "/proc/sys/user/max_mnt_namespaces",
        value: "0",
        cure: "mount name spaces are switched off; `sudo sysctl -w user.max_mnt_namespaces=10000` allows them",
        is_for_root: true,
    },
];

/// Finds out how well commands can be held here, with `program` as the warden.
pub(crate) async fn probe_sandbox(program: String) -> SandboxSupport {
    let none = |reason: String| SandboxSupport::None { reason };
    let version = match files::landlock_version() {
        Ok(version) => version,
        Err(why) => return none(why),
    };
    if !calls::is_supported_arch() {
        return none("on this processor a command cannot be kept from sockets and mounts".into());
    }
    let command = CommandSpec {
        program,
        args: vec![WORD.into(), PROBE.into()],
        cwd: "/".into(),
        env: Vec::new(),
        env_removed: Vec::new(),
    };
    let bounds =
        FilterLimits { timeout: TIME_MAX, stdout_bytes: REPORT_BYTES_MAX, stderr_bytes: REPORT_BYTES_MAX };
    let tried =
        run_filter(&ProcessGroups::new(), command, Vec::new(), bounds, &CancellationToken::new()).await;
    let report = match tried {
        Ok(tried) if tried.ended == ExitReason::Exited(0) => tried.stdout.text,
        Ok(tried) => {
            return none(format!("trying it failed ({:?}) {}", tried.ended, tried.stderr.text.trim()));
        }
        Err(error) => return none(format!("trying it failed: {error}")),
    };
    parse_probe_report(report.trim(), version)
}

/// Reads a report, with what the version of Landlock adds to it.
fn parse_probe_report(report: &str, version: i64) -> SandboxSupport {
    let signals_open = version < files::VERSION_WHOLE;
    if report == WHOLE {
        return match signals_open {
            true => SandboxSupport::Partial(PartialSandbox { no_namespace: None, signals_open }),
            false => SandboxSupport::Full,
        };
    }
    match report.strip_prefix(WITHOUT) {
        // Without a name space of its own nothing else keeps a command from emptying files.
        Some(_) if version < files::VERSION_TRUNCATION => SandboxSupport::None {
            reason: "Linux older than 6.2 needs mount name spaces for it, and there are none".into(),
        },
        Some(why) => SandboxSupport::Partial(PartialSandbox {
            no_namespace: Some(explain_no_namespace(why)),
            signals_open,
        }),
        None => SandboxSupport::None { reason: report.strip_prefix(NOTHING).unwrap_or(report).to_owned() },
    }
}

/// Reads a report from somewhere else: why nothing works there, `None` when something does.
pub(crate) fn cannot_hold(report: &str) -> Option<&str> {
    let report = report.trim();
    let works = report == WHOLE || report.starts_with(WITHOUT);
    (!works).then(|| report.strip_prefix(NOTHING).unwrap_or(report))
}

/// Says why there is no mount name space, and what to do.
fn explain_no_namespace(why: &str) -> String {
    let is_root = geteuid().is_root();
    let found = HINDRANCES.iter().find(|hindrance| {
        let set = fs::read_to_string(hindrance.setting);
        (hindrance.is_for_root || !is_root) && set.is_ok_and(|text| text.trim() == hindrance.value)
    });
    match found {
        Some(hindrance) => hindrance.cure.to_owned(),
        None if is_root => {
            format!("{why}; root needs CAP_SYS_ADMIN for it, which most containers do not give")
        }
        None => why.to_owned(),
    }
}

/// Tries the sandbox in children of this process; returns what to print.
pub(crate) fn probe_report() -> String {
    let Err(no_namespace) = probe_in_child(true) else { return WHOLE.to_owned() };
    match probe_in_child(false) {
        Ok(()) => format!("{WITHOUT}{no_namespace}"),
        Err(why) => format!("{NOTHING}{why}"),
    }
}

/// Shuts a child in as a command would be.
fn probe_in_child(has_namespace: bool) -> Result<(), String> {
    let broken = |error: &dyn std::fmt::Display| error.to_string();
    let (read, write) = pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(|error| broken(&error))?;
    #[expect(unsafe_code, reason = "a name space is for the whole life of a process")]
    // SAFETY: the helper program has one thread, so the copy has every lock free and may do anything.
    match unsafe { fork() }.map_err(|error| broken(&error))? {
        ForkResult::Child => {
            drop(read);
            let closed = enter_sandbox(has_namespace);
            if let Err(why) = &closed {
                // The exit code says it too.
                let _ = File::from(write).write_all(why.as_bytes());
            }
            std::process::exit(i32::from(closed.is_err()));
        }
        ForkResult::Parent { child } => {
            drop(write);
            let mut why = String::new();
            let told = File::from(read).take(REPORT_BYTES_MAX as u64).read_to_string(&mut why);
            match (waitpid(child, None), told) {
                (Ok(WaitStatus::Exited(_, 0)), Ok(_)) => Ok(()),
                (Ok(_), Ok(1..)) => Err(why.replace('\n', " ")),
                (status, _) => Err(format!("the process that tried it ended ({status:?})")),
            }
        }
    }
}

fn enter_sandbox(has_namespace: bool) -> Result<(), String> {
    let orders = LaunchSpec { confinement: Confinement::Project, has_namespace, ..LaunchSpec::default() };
    let cell = CommandSandbox::build(&orders, &RepositorySurvey::default())?;
    cell.restrict_self().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_and_the_version_of_landlock_say_what_works() {
        let shown = |report: &str, version: i64| match parse_probe_report(report, version) {
            SandboxSupport::Full => "full".to_owned(),
            SandboxSupport::Partial(PartialSandbox { no_namespace, signals_open }) => {
                format!("no namespace {}, signals {signals_open}", no_namespace.is_some())
            }
            SandboxSupport::None { reason } => format!("none: {reason}"),
        };
        assert_eq!(shown("namespace", 6), "full");
        assert_eq!(shown("namespace", 1), "no namespace false, signals true");
        assert_eq!(shown("no namespace: EPERM", 6), "no namespace true, signals false");
        assert_eq!(shown("no namespace: EPERM", 3), "no namespace true, signals true");
        assert!(shown("no namespace: EPERM", 2).starts_with("none: Linux older than 6.2"));
        assert_eq!(shown("nothing: x failed", 6), "none: x failed");
        assert_eq!(shown("", 6), "none: ");
    }
}
