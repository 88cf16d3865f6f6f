//! The supervisor on systems that cannot support one: it is replaced by the command.

use std::{io, os::unix::process::CommandExt as _, process::ExitCode};

use super::{CODE_CANNOT, CODE_NO_PROGRAM, launch_spec::LaunchSpec, print_error};

/// Executes the command in place of this process.
pub(super) fn run_frontend(orders: &LaunchSpec) -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "it is a place where commands start")]
    let error = std::process::Command::new(&orders.program).args(&orders.args).exec();
    print_error(&format!("could not start {}: {error}", orders.program));
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    ExitCode::from(if is_missing { CODE_NO_PROGRAM } else { CODE_CANNOT })
}
