//! The restrictions that the system enforces on a command: writes elsewhere, the network, and ways around them. Knows
//! no command and no approval; the caller specifies where a command may write.

#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(target_os = "linux")]
mod command_sandbox;
#[cfg(target_os = "linux")]
mod directory_walk;
#[cfg(target_os = "linux")]
mod file_kinds;
#[cfg(target_os = "linux")]
mod git_targets;
#[cfg(target_os = "linux")]
mod landlock_rules;
#[cfg(target_os = "linux")]
mod mount_view;
#[cfg(target_os = "linux")]
mod path_trace;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod probe_program;
#[cfg(target_os = "linux")]
mod repositories;
#[cfg(target_os = "linux")]
mod repository_names;
#[cfg(any(target_os = "linux", target_os = "macos", test))]
mod repository_parts;
#[cfg(any(target_os = "macos", test))]
mod seatbelt_profile;
#[cfg(target_os = "linux")]
mod set_aside;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(target_os = "linux")]
mod syscalls;
#[cfg(target_os = "linux")]
mod temporary_dirs;
#[cfg(target_os = "linux")]
mod user_config;

#[cfg_attr(target_os = "linux", path = "sandbox/probe.rs")]
#[cfg_attr(target_os = "macos", path = "sandbox/seatbelt.rs")]
#[cfg_attr(not(any(target_os = "linux", target_os = "macos")), path = "sandbox/elsewhere.rs")]
pub(crate) mod probe;

#[cfg(target_os = "linux")]
pub(crate) use self::{command_sandbox::CommandSandbox, repositories::RepositorySurvey};
