//! The supervisor on systems that cannot support one: it is replaced by the command.

use std::{io, process::ExitCode};

use super::failure::{EXIT_CANNOT_RUN, EXIT_NOT_FOUND, print_error};
use crate::{launch_spec::LaunchSpec, system::foreground::run_in_place};

/// Executes the command in place of this process.
pub(super) fn run_frontend(spec: &LaunchSpec) -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "it is a place where commands start")]
    let result = run_in_place(std::process::Command::new(&spec.program).args(&spec.args));
    result.unwrap_or_else(|error| {
        print_error(&format!("could not start {}: {error}", spec.program));
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        ExitCode::from(if is_missing { EXIT_NOT_FOUND } else { EXIT_CANNOT_RUN })
    })
}
