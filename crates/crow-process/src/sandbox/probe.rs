//! Finds out which parts of the sandbox work here, by applying a real one to a short-lived process. Kernel settings
//! are read only to word the advice.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
};

use crow_core::{Confinement, PartialSandbox, SandboxSupport};
use nix::{
    sys::wait::{WaitStatus, waitpid},
    unistd::{ForkResult, fork, geteuid, pipe2},
};

use super::{
    command_sandbox::CommandSandbox,
    landlock_rules,
    probe_program::{REPORT_BYTES_MAX, run_probe},
    repositories::RepositorySurvey,
    syscalls,
};
use crate::launch_spec::LaunchSpec;

/// The beginning of a report: the sandbox works with its own mount namespace, without one, or not at all.
const REPORT_NAMESPACE: &str = "namespace";
const REPORT_NO_NAMESPACE: &str = "no namespace: ";
const REPORT_UNAVAILABLE: &str = "nothing: ";

/// A kernel setting that forbids what a mount namespace needs.
struct KernelRestriction {
    setting: &'static str,
    value: &'static str,
    remedy: &'static str,
    /// Root needs no user namespace.
    applies_to_root: bool,
}

const KERNEL_RESTRICTIONS: [KernelRestriction; 4] = [
    KernelRestriction {
        setting: "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        value: "1",
        remedy: "AppArmor restricts user namespaces; give crow-cli a profile with `userns,`, or allow them to all \
               programs with `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`",
        applies_to_root: false,
    },
    KernelRestriction {
        setting: "/proc/sys/kernel/unprivileged_userns_clone",
        value: "0",
        remedy: "user namespaces are disabled; `sudo sysctl -w kernel.unprivileged_userns_clone=1` enables them",
        applies_to_root: false,
    },
    KernelRestriction {
        setting: "/proc/sys/user/max_user_namespaces",
        value: "0",
        remedy: "user namespaces are disabled; `sudo sysctl -w user.max_user_namespaces=10000` enables them",
        applies_to_root: false,
    },
    KernelRestriction {
        setting: "/proc/sys/user/max_mnt_namespaces",
        value: "0",
        remedy: "mount namespaces are disabled; `sudo sysctl -w user.max_mnt_namespaces=10000` enables them",
        applies_to_root: true,
    },
];

/// Returns how well commands can be confined here, with `program` as the supervisor.
pub(crate) async fn probe_sandbox(program: String) -> SandboxSupport {
    let unavailable = |reason: String| SandboxSupport::Unavailable { reason };
    let version = match landlock_rules::landlock_version() {
        Ok(version) => version,
        Err(reason) => return unavailable(reason),
    };
    if !syscalls::is_supported_arch() {
        return unavailable("the sandbox cannot block sockets and mounts on this processor".into());
    }
    let report = match run_probe(program).await {
        Ok(report) => report,
        Err(reason) => return unavailable(reason),
    };
    parse_probe_report(report.trim(), version)
}

/// Parses a report, combined with the version of Landlock.
fn parse_probe_report(report: &str, version: i64) -> SandboxSupport {
    let signals_unconfined = version < landlock_rules::VERSION_FULL;
    if report == REPORT_NAMESPACE {
        return match signals_unconfined {
            true => SandboxSupport::Partial(PartialSandbox { namespace_problem: None, signals_unconfined }),
            false => SandboxSupport::Full,
        };
    }
    match report.strip_prefix(REPORT_NO_NAMESPACE) {
        // Without a mount namespace nothing else keeps a command from truncating files.
        Some(_) if version < landlock_rules::VERSION_TRUNCATION => SandboxSupport::Unavailable {
            reason: "Linux older than 6.2 needs mount namespaces for it, and they are not available".into(),
        },
        Some(reason) => SandboxSupport::Partial(PartialSandbox {
            namespace_problem: Some(explain_no_namespace(reason)),
            signals_unconfined,
        }),
        None => SandboxSupport::Unavailable {
            reason: report.strip_prefix(REPORT_UNAVAILABLE).unwrap_or(report).to_owned(),
        },
    }
}

/// Parses a report from elsewhere: the reason why nothing works there, `None` if something does.
pub(crate) fn cannot_hold(report: &str) -> Option<&str> {
    let report = report.trim();
    let works = report == REPORT_NAMESPACE || report.starts_with(REPORT_NO_NAMESPACE);
    (!works).then(|| report.strip_prefix(REPORT_UNAVAILABLE).unwrap_or(report))
}

/// Explains why there is no mount namespace, and what to do.
fn explain_no_namespace(reason: &str) -> String {
    let is_root = geteuid().is_root();
    let restriction = KERNEL_RESTRICTIONS.iter().find(|restriction| {
        let value = fs::read_to_string(restriction.setting);
        (restriction.applies_to_root || !is_root) && value.is_ok_and(|text| text.trim() == restriction.value)
    });
    match restriction {
        Some(restriction) => restriction.remedy.to_owned(),
        None if is_root => {
            format!("{reason}; root needs CAP_SYS_ADMIN for it, which most containers do not give")
        }
        None => reason.to_owned(),
    }
}

/// Probes the sandbox in children of this process; returns what to print.
pub(crate) fn probe_report() -> String {
    let Err(namespace_problem) = probe_in_child(true) else { return REPORT_NAMESPACE.to_owned() };
    match probe_in_child(false) {
        Ok(()) => format!("{REPORT_NO_NAMESPACE}{namespace_problem}"),
        Err(reason) => format!("{REPORT_UNAVAILABLE}{reason}"),
    }
}

/// Confines a child as a command would be.
fn probe_in_child(has_namespace: bool) -> Result<(), String> {
    let describe = |error: &dyn std::fmt::Display| error.to_string();
    let (reader, writer) = pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(|error| describe(&error))?;
    #[expect(unsafe_code, reason = "a name space is for the whole life of a process")]
    // SAFETY: the helper program has one thread, so the copy has every lock free and may do anything.
    match unsafe { fork() }.map_err(|error| describe(&error))? {
        ForkResult::Child => {
            drop(reader);
            let result = enter_sandbox(has_namespace);
            if let Err(reason) = &result {
                // The exit code says it too.
                let _ = File::from(writer).write_all(reason.as_bytes());
            }
            std::process::exit(i32::from(result.is_err()));
        }
        ForkResult::Parent { child } => {
            drop(writer);
            let mut reason = String::new();
            let read_result = File::from(reader).take(REPORT_BYTES_MAX as u64).read_to_string(&mut reason);
            match (waitpid(child, None), read_result) {
                (Ok(WaitStatus::Exited(_, 0)), Ok(_)) => Ok(()),
                (Ok(_), Ok(1..)) => Err(reason.replace('\n', " ")),
                (status, _) => Err(format!("the probe process ended ({status:?})")),
            }
        }
    }
}

fn enter_sandbox(has_namespace: bool) -> Result<(), String> {
    let spec = LaunchSpec { confinement: Confinement::Project, has_namespace, ..LaunchSpec::default() };
    let sandbox = CommandSandbox::build(&spec, &RepositorySurvey::default())?;
    sandbox.restrict_self().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_report_and_landlock_version_give_the_support() {
        let shown = |report: &str, version: i64| match parse_probe_report(report, version) {
            SandboxSupport::Full => "full".to_owned(),
            SandboxSupport::Partial(PartialSandbox { namespace_problem, signals_unconfined }) => {
                format!("no namespace {}, signals {signals_unconfined}", namespace_problem.is_some())
            }
            SandboxSupport::Unavailable { reason } => format!("none: {reason}"),
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
