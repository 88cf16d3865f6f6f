//! `shell`: the program that runs commands.

use std::path::{Path, PathBuf};

use crow_files::is_program;
use crow_tools::Shell;

use super::{
    super::{ConfigError, Environment, file::ConfigField},
    loader::ConfigLoader,
};

/// The shell that models write for.
const PREFERRED: &str = "bash";

impl ConfigLoader<'_> {
    pub(super) fn read_shell(&self, field: &ConfigField) -> Result<Option<Shell>, ConfigError> {
        let Some(scalar) = self.read_scalar("shell", &field.node)? else { return Ok(None) };
        let name = scalar.expand(self.merged_env).text;
        if name.is_empty() {
            return Ok(None);
        }
        let invalid = |problem: String| self.error_at(field.line, format!("shell: {problem}"));
        let program = match Path::new(&name).is_absolute() {
            true => Some(PathBuf::from(&name)).filter(|path| is_program(path)),
            false => find_program(&name, self.merged_env),
        };
        let Some(program) = program.as_deref().and_then(Path::to_str) else {
            return Err(invalid("program not found; expected bash, sh or dash, or the path of one".into()));
        };
        let expected =
            "expected bash, sh or dash, or the path of one: commands of other shells cannot be evaluated";
        Shell::new(name.as_str(), program).map(Some).ok_or_else(|| invalid(expected.into()))
    }
}

/// Returns bash if it exists, else `sh`.
pub(crate) fn default_shell(env: &Environment) -> Shell {
    let found = find_program(PREFERRED, env);
    found.as_deref().and_then(Path::to_str).and_then(|path| Shell::new(PREFERRED, path)).unwrap_or_default()
}

/// Finds a program by name, as the configuration's environment has it.
fn find_program(name: &str, env: &Environment) -> Option<PathBuf> {
    crow_process::find_program(name, env.get("PATH").map_or("", String::as_str))
}
