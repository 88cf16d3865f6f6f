//! The sandbox of macOS: a profile that the system's `sandbox-exec` applies to a program. Whether it works is found out by
//! applying one.

use std::{
    fs, io,
    path::Path,
    process::{Command, Stdio},
};

use crow_core::{Confinement, SandboxSupport};

use super::{probe_program::run_probe, seatbelt_profile::render_profile};
use crate::launch_spec::LaunchSpec;

/// The system's program that starts another one in a sandbox.
const SANDBOX_PROGRAM: &str = "/usr/bin/sandbox-exec";

/// The beginning of a report.
const REPORT_WORKS: &str = "profile";
const REPORT_UNAVAILABLE: &str = "nothing: ";

/// Returns how well commands can be confined here, with `program` as the supervisor.
pub(crate) async fn probe_sandbox(program: String) -> SandboxSupport {
    let reason = match run_probe(program).await {
        Ok(report) => match cannot_hold(&report) {
            None => return SandboxSupport::Full,
            Some(reason) => reason.to_owned(),
        },
        Err(reason) => reason,
    };
    SandboxSupport::Unavailable { reason }
}

/// Parses a report from elsewhere: the reason why nothing works there, `None` if it does.
pub(crate) fn cannot_hold(report: &str) -> Option<&str> {
    let report = report.trim();
    (report != REPORT_WORKS).then(|| report.strip_prefix(REPORT_UNAVAILABLE).unwrap_or(report))
}

/// Probes the sandbox with a program of its own; returns what to print.
pub(crate) fn probe_report() -> String {
    match probe_profile() {
        Ok(()) => REPORT_WORKS.to_owned(),
        Err(reason) => format!("{REPORT_UNAVAILABLE}{}", reason.replace('\n', " ")),
    }
}

/// Returns the command that starts a program under the rules of a launch spec, or the reason why there is none.
pub(crate) fn confined_command(spec: &LaunchSpec) -> Result<Command, String> {
    let profile = render_profile(&resolve_paths(spec))?;
    #[expect(clippy::disallowed_methods, reason = "it is a place where commands start")]
    let mut command = Command::new(SANDBOX_PROGRAM);
    command.args(["-p", &profile]).arg(&spec.program).args(&spec.args);
    Ok(command)
}

/// The system compares real paths: `/tmp` is a link here. A missing path cannot be written to; one that is protected is
/// compared as it would be if it existed.
fn resolve_paths(spec: &LaunchSpec) -> LaunchSpec {
    // The letters of a path have their case on the disk; a missing path keeps those it was given with.
    let real = |path: &String| {
        let path = Path::new(path);
        let real = fs::canonicalize(path).unwrap_or_else(|_| crow_files::resolve_links(path));
        real.to_str().map(str::to_owned)
    };
    let existing = |paths: &[String]| {
        let paths = paths.iter().filter(|path| Path::new(path.as_str()).exists());
        paths.filter_map(real).collect::<Vec<_>>()
    };
    let all = |paths: &[String]| paths.iter().filter_map(real).collect::<Vec<_>>();
    LaunchSpec {
        roots: existing(&spec.roots),
        writable: existing(&spec.writable),
        caches: existing(&spec.caches),
        protected: all(&spec.protected),
        repositories: repository_parts(&all(&spec.repositories)),
        home: spec.home.as_ref().and_then(real),
        ..spec.clone()
    }
}

/// Repositories outside the roots may be written to if they are in another writable place, except these parts.
fn repository_parts(repositories: &[String]) -> Vec<String> {
    let parts = |repository: &String| {
        super::repository_parts::PROGRAM_PARTS.map(|part| format!("{repository}/{part}"))
    };
    repositories.iter().flat_map(parts).collect()
}

/// Whether a confined program can write where it may and cannot where it may not.
fn probe_profile() -> Result<(), String> {
    let describe = |error: io::Error| error.to_string();
    let dir = tempfile::tempdir().map_err(describe)?;
    let (inside, outside) = (dir.path().join("inside"), dir.path().join("outside"));
    for place in [&inside, &outside] {
        fs::create_dir(place).map_err(describe)?;
    }
    let script = "echo > \"$1/inside/file\"; (echo > \"$1/outside/file\"); mkdir \"$1/inside/.git\"; exit 0";
    let to_text = |path: &Path| path.to_str().map(str::to_owned).ok_or("the temporary directory is not text");
    let spec = LaunchSpec {
        confinement: Confinement::Project,
        roots: vec![to_text(&inside)?],
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into(), "sh".into(), to_text(dir.path())?],
        ..LaunchSpec::default()
    };
    let mut command = confined_command(&spec)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).current_dir("/");
    let output = command.output().map_err(|error| format!("{SANDBOX_PROGRAM} did not start: {error}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || !inside.join("file").exists() {
        return Err(format!("the profile was rejected: {}", stderr.trim()));
    }
    if outside.join("file").exists() || inside.join(".git").exists() {
        return Err("the profile had no effect".into());
    }
    Ok(())
}
