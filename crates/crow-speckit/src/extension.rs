//! The additions of installed extensions: commands, and the settings that hook conditions read. Runs nothing.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::confined_files;
use crate::registry::{self, EXTENSIONS_DIR, InstalledPackage};
use crate::{SpeckitError, SpeckitProject, sanitize_text};

/// The manifest of an extension.
pub(crate) const MANIFEST: &str = "extension.yml";

/// An extension has a few commands; each is a line in a client's menu.
const COMMANDS_MAX: usize = 64;

/// The length of a menu line.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// A command of an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionCommand {
    /// Its name, such as `speckit.git.commit`.
    pub name: String,
    /// The extension's id.
    pub extension: String,
    /// A one-line description.
    pub description: String,
    /// Its file, relative to the project's root.
    pub file: PathBuf,
}

/// The commands of all active extensions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtensionCommands {
    /// The usable commands.
    pub commands: Vec<ExtensionCommand>,
    /// Why others are unusable, one message each.
    pub problems: Vec<String>,
}

/// Lists the commands of enabled extensions; a problem with one extension does not hide the others.
pub fn list_extension_commands(project: &SpeckitProject) -> Result<ExtensionCommands, SpeckitError> {
    let mut result = ExtensionCommands::default();
    for extension in registry::list_extensions(project)? {
        match read_commands(project, &extension) {
            Ok(commands) => {
                for command in commands {
                    if result.commands.iter().all(|other| other.name != command.name) {
                        result.commands.push(command);
                    }
                }
            }
            Err(error) => result.problems.push(error.to_string()),
        }
    }
    Ok(result)
}

fn read_commands(
    project: &SpeckitProject,
    extension: &InstalledPackage,
) -> Result<Vec<ExtensionCommand>, SpeckitError> {
    let path = extension.directory.join(MANIFEST);
    let Some(text) = confined_files::read_specify_file(project, &path)? else { return Ok(Vec::new()) };
    let manifest = confined_files::parse_yaml(&path, &text)?;
    let manifest_error = |reason: String| SpeckitError::invalid_file(&path, reason);
    let Some(entries) = manifest.pointer("/provides/commands") else { return Ok(Vec::new()) };
    let entries =
        entries.as_array().ok_or_else(|| manifest_error("its commands are not a list".to_owned()))?;
    if entries.len() > COMMANDS_MAX {
        return Err(manifest_error(format!("it has more than {COMMANDS_MAX} commands")));
    }
    let mut commands = Vec::new();
    for entry in entries {
        let text_field = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let (name, file) = (text_field("name"), text_field("file"));
        let qualified_name = name.strip_prefix("speckit.").and_then(|rest| rest.split_once('.'));
        if !qualified_name.is_some_and(|(id, name)| id == extension.id && confined_files::is_name(name)) {
            let expected = format!("speckit.{}.NAME", extension.id);
            return Err(manifest_error(format!("the command {name:?} is not named {expected}")));
        }
        if !confined_files::is_below(file) {
            return Err(manifest_error(format!("the file {file:?} of {name} leads out of the extension")));
        }
        commands.push(ExtensionCommand {
            name: name.to_owned(),
            extension: extension.id.clone(),
            description: menu_line(text_field("description")),
            file: project.relative_path(&extension.directory.join(file)),
        });
    }
    Ok(commands)
}

/// Makes untrusted text fit on one line.
pub(crate) fn menu_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    sanitize_text(&words.collect::<Vec<_>>().join(" ")).chars().take(DESCRIPTION_CHARS_MAX).collect()
}

/// The files with an extension's settings, lowest precedence first.
pub(crate) fn settings_files(id: &str) -> [String; 3] {
    [MANIFEST.to_owned(), format!("{id}-config.yml"), "local-config.yml".to_owned()]
}

/// Returns the settings of an extension: its defaults, then the project's, then the local ones. Unreadable files are
/// ignored, as in the real tool.
pub(crate) fn extension_settings(project: &SpeckitProject, id: &str) -> Map<String, Value> {
    let directory = project.specify_path(EXTENSIONS_DIR).join(id);
    let parse_file = |file: &str| {
        let path = directory.join(file);
        let text = confined_files::read_specify_file(project, &path).ok().flatten()?;
        confined_files::parse_yaml(&path, &text).ok()
    };
    let [manifest, shared, local] = settings_files(id).map(|file| parse_file(&file));
    let defaults = manifest.and_then(|manifest| manifest.pointer("/config/defaults").cloned());
    let mut settings = Map::new();
    for layer in [defaults, shared, local] {
        if let Some(Value::Object(layer)) = layer {
            merge_settings(&mut settings, layer);
        }
    }
    settings
}

fn merge_settings(base: &mut Map<String, Value>, overrides: Map<String, Value>) {
    for (key, value) in overrides {
        match (base.get_mut(&key), value) {
            (Some(Value::Object(base)), Value::Object(overrides)) => merge_settings(base, overrides),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
