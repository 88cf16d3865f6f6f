//! The warden where the system has no means for one: it steps aside and becomes the command.

use std::{io, os::unix::process::CommandExt as _, process::ExitCode};

use super::{CODE_CANNOT, CODE_NO_PROGRAM, orders::LaunchSpec, print_error};

/// Becomes the command.
pub(super) fn run_frontend(orders: &LaunchSpec) -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "it is a place where commands start")]
    let error = std::process::Command::new(&orders.program).args(&orders.args).exec();
    print_error(&format!("could not start {}: {error}", orders.program));
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    ExitCode::from(if is_missing { CODE_NO_PROGRAM } else { CODE_CANNOT })
}
