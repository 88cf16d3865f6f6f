//! The variables that a program inherits.

use std::process::Command;

use crow_core::is_secret_value;

/// Removes these variables from a program's environment, and all that are secret by their name or value.
#[expect(clippy::disallowed_methods, reason = "what the program would inherit can be seen only here")]
pub(crate) fn hide_secrets(names: &[String], command: &mut Command) {
    let is_hidden =
        |name: &str, value: &str| is_secret_value(name, value) || names.iter().any(|hidden| hidden == name);
    for (name, value) in std::env::vars_os() {
        if is_hidden(&name.to_string_lossy(), &value.to_string_lossy()) {
            command.env_remove(name);
        }
    }
}

/// Returns the names of this process's variables that are secret by their name or value.
#[expect(clippy::disallowed_methods, reason = "what a program would inherit can be seen only here")]
pub fn secret_variables() -> Vec<String> {
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.to_string_lossy().into_owned();
        is_secret_value(&name, &value.to_string_lossy()).then_some(name)
    });
    variables.collect()
}
