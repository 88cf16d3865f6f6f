//! The rules of a command's sandbox as a profile for macOS, from the same launch spec as Landlock's rules. Text in, text
//! out: everything is denied, then what a command may do is allowed, then what it must not change is denied again. The
//! last rule that matches decides.

use std::fmt::Write as _;

use crow_core::{Confinement, NetworkAccess, autorun_path_ends, home_autorun_files, hook_manager_files};

use super::repository_parts::PROGRAM_PARTS;
use crate::launch_spec::LaunchSpec;

/// Rights that every program needs: to start others, to signal its own, and to read.
const BASE: &str = "\
(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read*)
(allow file-map-executable)
(allow system-socket (socket-domain AF_UNIX))
(allow ipc-posix-shm*)
(allow ipc-posix-sem)
(allow pseudo-tty)
";

/// Devices that store nothing, and terminals.
const DEVICES: &str = "\
(allow file-write-data file-ioctl
  (literal \"/dev/null\")
  (literal \"/dev/zero\")
  (literal \"/dev/random\")
  (literal \"/dev/urandom\")
  (literal \"/dev/dtracehelper\")
  (literal \"/dev/tty\")
  (literal \"/dev/ptmx\")
  (regex #\"^/dev/ttys[0-9]+$\"))
";

/// Services that answer questions and start nothing: users, notifications, logs, preferences, file events.
const SERVICES: [&str; 10] = [
    "com.apple.FSEvents",
    "com.apple.bsd.dirhelper",
    "com.apple.cfprefsd.agent",
    "com.apple.cfprefsd.daemon",
    "com.apple.diagnosticd",
    "com.apple.logd",
    "com.apple.system.logger",
    "com.apple.system.notification_center",
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.system.opendirectoryd.membership",
];

/// The same for a network: names, routes, and which certificates the user trusts.
const NETWORK_SERVICES: [&str; 5] = [
    "com.apple.SystemConfiguration.DNSConfiguration",
    "com.apple.SystemConfiguration.configd",
    "com.apple.dnssd.service",
    "com.apple.trustd",
    "com.apple.trustd.agent",
];

const NETWORK: &str = "\
(allow system-socket)
(allow network-outbound (remote ip \"*:*\"))
(allow network-inbound (local ip \"*:*\"))
(allow network-bind (local ip \"*:*\"))
(allow network-outbound (remote unix-socket (path-literal \"/private/var/run/mDNSResponder\")))
";

/// Writes the profile of a confined command. The paths of the launch spec are resolved: the system compares real ones.
/// The error is a sentence.
pub(crate) fn render_profile(spec: &LaunchSpec) -> Result<String, String> {
    let mut profile = BASE.to_owned() + DEVICES;
    add_services(&mut profile, &SERVICES);
    if spec.network == NetworkAccess::Allowed {
        profile += NETWORK;
        add_services(&mut profile, &NETWORK_SERVICES);
    }
    let writable: Vec<&String> = match spec.confinement {
        Confinement::ReadOnly | Confinement::Unconfined => Vec::new(),
        Confinement::Project | Confinement::Guarded | Confinement::Offline => {
            spec.roots.iter().chain(&spec.writable).chain(&spec.caches).collect()
        }
    };
    if writable.is_empty() {
        return Ok(profile);
    }
    let places = writable.iter().map(|path| Ok(format!("(subpath {})", quote(path)?)));
    let places = places.collect::<Result<Vec<_>, String>>()?;
    add_rule(&mut profile, "allow file-write*", &places);
    // A project may have sockets of its own. In temporary directories other programs have theirs, such as an ssh agent.
    let roots = &places[..spec.roots.len()];
    if !roots.is_empty() {
        for (operation, end) in [("network-outbound", "remote"), ("network-bind", "local")] {
            let sockets: Vec<String> =
                roots.iter().map(|root| format!("({end} unix-socket {root})")).collect();
            add_rule(&mut profile, &format!("allow {operation}"), &sockets);
        }
    }
    add_denied_writes(&mut profile, spec)?;
    Ok(profile)
}

/// Denies changes of what Git and other programs run later. Unlike mounts, these rules hold for files that do not exist
/// yet, so nothing has to be set aside.
fn add_denied_writes(profile: &mut String, spec: &LaunchSpec) -> Result<(), String> {
    let mut sealed = vec![
        // The directory too: another one could be moved there.
        format!("(regex #\"/{}$\")", fold_case(".git")),
        format!("(regex #\"/{}/({})(/|$)\")", fold_case(".git"), join_alternatives(PROGRAM_PARTS)),
        format!("(regex #\"/({})(/|$)\")", join_alternatives(hook_manager_files().iter().copied())),
    ];
    let home_files = spec.home.iter().flat_map(|home| {
        home_autorun_files().into_iter().map(move |name| format!("{}/{name}", home.trim_end_matches('/')))
    });
    for path in spec.protected.iter().chain(&spec.repositories).cloned().chain(home_files) {
        sealed.push(format!("(subpath {})", quote(&path)?));
    }
    if spec.guards_autorun {
        let ends = autorun_path_ends();
        let regex = format!("(regex #\"/({})(/|$)\")", join_alternatives(ends.iter().map(String::as_str)));
        for root in &spec.roots {
            sealed.push(format!("(require-all (subpath {}) {regex})", quote(root)?));
        }
    }
    add_rule(profile, "deny file-write*", &sealed);
    Ok(())
}

fn add_services(profile: &mut String, names: &[&str]) {
    let names: Vec<String> = names.iter().map(|name| format!("(global-name \"{name}\")")).collect();
    add_rule(profile, "allow mach-lookup", &names);
}

fn add_rule(profile: &mut String, action: &str, filters: &[String]) {
    // Writing to a string does not fail.
    let _ = writeln!(profile, "({action}\n  {})", filters.join("\n  "));
}

/// Writes a path as a string of the profile's language.
fn quote(path: &str) -> Result<String, String> {
    if path.chars().any(char::is_control) {
        return Err(format!("the sandbox cannot have the path {path:?}, which contains a control character"));
    }
    Ok(format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// Writes names as alternatives of a regular expression that ignores case.
fn join_alternatives<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(fold_case).collect::<Vec<_>>().join("|")
}

/// Writes a name as a regular expression that ignores case: the usual file system does. `*` matches any letters.
fn fold_case(name: &str) -> String {
    let mut regex = String::new();
    for letter in name.chars() {
        match letter {
            '*' => regex += "[^/]*",
            'a'..='z' => regex.extend(['[', letter, letter.to_ascii_uppercase(), ']']),
            '/' | '_' | '-' | '0'..='9' => regex.push(letter),
            _ => regex.extend(['\\', letter]),
        }
    }
    regex
}

#[cfg(test)]
mod tests;
