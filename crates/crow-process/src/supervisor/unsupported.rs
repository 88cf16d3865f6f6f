//! The supervisor on systems that cannot support one: it is replaced by the command.

use std::{io, os::unix::process::CommandExt as _, process::ExitCode};

use super::failure::{EXIT_CANNOT_RUN, EXIT_NOT_FOUND, print_error};
use crate::launch_spec::LaunchSpec;

/// Executes the command in place of this process.
pub(super) fn run_frontend(spec: &LaunchSpec) -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "it is a place where commands start")]
    let error = std::process::Command::new(&spec.program).args(&spec.args).exec();
    print_error(&format!("could not start {}: {error}", spec.program));
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    ExitCode::from(if is_missing { EXIT_NOT_FOUND } else { EXIT_CANNOT_RUN })
}
