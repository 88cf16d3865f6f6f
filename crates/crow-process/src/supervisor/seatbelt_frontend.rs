//! The supervisor on macOS: it is replaced by the command, in a sandbox of the system.

use std::{
    io,
    process::{Command, ExitCode},
};

use crow_core::Confinement;

use super::failure::{EXIT_CANNOT_RUN, EXIT_NOT_FOUND, print_error};
use crate::{
    environment::hide_secrets, launch_spec::LaunchSpec, sandbox::probe::confined_command,
    system::foreground::run_in_place,
};

/// Executes the command in place of this process.
pub(super) fn run_frontend(spec: &LaunchSpec) -> ExitCode {
    let command = match spec.confinement {
        Confinement::Unconfined => {
            #[expect(clippy::disallowed_methods, reason = "it is a place where commands start")]
            let mut command = Command::new(&spec.program);
            command.args(&spec.args);
            Ok(command)
        }
        Confinement::ReadOnly | Confinement::Project | Confinement::Guarded | Confinement::Offline => {
            confined_command(spec)
        }
    };
    let mut command = match command {
        Ok(command) => command,
        Err(reason) => {
            print_error(&format!("could not confine {}, so it did not run: {reason}", spec.program));
            return ExitCode::from(EXIT_CANNOT_RUN);
        }
    };
    if let Some(hidden) = &spec.hidden_variables {
        hide_secrets(hidden, &mut command);
    }
    run_in_place(&mut command).unwrap_or_else(|error| {
        print_error(&format!("could not start {}: {error}", spec.program));
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        ExitCode::from(if is_missing { EXIT_NOT_FOUND } else { EXIT_CANNOT_RUN })
    })
}
