//! What the system itself refuses a command: writing elsewhere, the network, ways out. Knows no command and nobody
//! who approves one; it is told where a command may write.

#[cfg(target_os = "linux")]
mod aside;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(target_os = "linux")]
mod cell;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod marks;
#[cfg(target_os = "linux")]
mod person;
#[cfg(target_os = "linux")]
mod repositories;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(target_os = "linux")]
mod targets;
#[cfg(target_os = "linux")]
mod trace;
#[cfg(target_os = "linux")]
mod view;
#[cfg(target_os = "linux")]
mod walk;

#[cfg_attr(target_os = "linux", path = "sandbox/probe.rs")]
#[cfg_attr(not(target_os = "linux"), path = "sandbox/elsewhere.rs")]
pub(crate) mod probe;

#[cfg(target_os = "linux")]
pub(crate) use self::{cell::CommandSandbox, repositories::RepositorySurvey};
