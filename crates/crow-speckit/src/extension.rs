//! What installed extensions add: commands, and the settings that conditions of hooks ask for. Runs nothing.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::confined;
use crate::registry::{self, EXTENSIONS, InstalledPackage};
use crate::{SpeckitError, SpeckitProject, sanitize_text};

/// What an extension says of itself.
pub(crate) const MANIFEST: &str = "extension.yml";

/// An extension has a handful of commands; each is a line in a client's menu.
const COMMANDS_MAX: usize = 64;

/// A line of a menu.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// A command of an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionCommand {
    /// Its name, such as `speckit.git.commit`.
    pub name: String,
    /// The extension's id.
    pub extension: String,
    /// What it is for, in a line.
    pub description: String,
    /// Its file, from the project's root.
    pub file: PathBuf,
}

/// The commands of all extensions that count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtensionCommands {
    /// Those that can be used.
    pub commands: Vec<ExtensionCommand>,
    /// Why others cannot, a sentence each.
    pub problems: Vec<String>,
}

/// Lists the commands of enabled extensions; what is wrong with one of them does not hide the others.
pub fn list_extension_commands(project: &SpeckitProject) -> Result<ExtensionCommands, SpeckitError> {
    let mut all = ExtensionCommands::default();
    for extension in registry::list_extensions(project)? {
        match read_commands(project, &extension) {
            Ok(commands) => {
                for command in commands {
                    if all.commands.iter().all(|other| other.name != command.name) {
                        all.commands.push(command);
                    }
                }
            }
            Err(error) => all.problems.push(error.to_string()),
        }
    }
    Ok(all)
}

fn read_commands(
    project: &SpeckitProject,
    extension: &InstalledPackage,
) -> Result<Vec<ExtensionCommand>, SpeckitError> {
    let path = extension.folder.join(MANIFEST);
    let Some(text) = confined::read_specify_file(project, &path)? else { return Ok(Vec::new()) };
    let manifest = confined::parse_yaml(&path, &text)?;
    let broken = |why: String| SpeckitError::broken(&path, why);
    let Some(listed) = manifest.pointer("/provides/commands") else { return Ok(Vec::new()) };
    let listed = listed.as_array().ok_or_else(|| broken("its commands are not a list".to_owned()))?;
    if listed.len() > COMMANDS_MAX {
        return Err(broken(format!("it has more than {COMMANDS_MAX} commands")));
    }
    let mut commands = Vec::new();
    for entry in listed {
        let word = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let (name, file) = (word("name"), word("file"));
        let of_extension = name.strip_prefix("speckit.").and_then(|rest| rest.split_once('.'));
        if !of_extension.is_some_and(|(id, name)| id == extension.id && confined::is_name(name)) {
            let want = format!("speckit.{}.NAME", extension.id);
            return Err(broken(format!("the command {name:?} is not named {want}")));
        }
        if !confined::is_below(file) {
            return Err(broken(format!("the file {file:?} of {name} leads out of the extension")));
        }
        commands.push(ExtensionCommand {
            name: name.to_owned(),
            extension: extension.id.clone(),
            description: menu_line(word("description")),
            file: project.relative_path(&extension.folder.join(file)),
        });
    }
    Ok(commands)
}

/// Makes words of a stranger fit into a line.
pub(crate) fn menu_line(words: &str) -> String {
    let words = words.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    sanitize_text(&words.collect::<Vec<_>>().join(" ")).chars().take(DESCRIPTION_CHARS_MAX).collect()
}

/// The files that its settings stand in, the weakest first.
pub(crate) fn settings_files(id: &str) -> [String; 3] {
    [MANIFEST.to_owned(), format!("{id}-config.yml"), "local-config.yml".to_owned()]
}

/// The settings of an extension: its defaults, then the project's, then those of this machine. What cannot be read says
/// nothing, as in the real tool.
pub(crate) fn extension_settings(project: &SpeckitProject, id: &str) -> Map<String, Value> {
    let folder = project.specify_path(EXTENSIONS).join(id);
    let read = |file: &str| {
        let path = folder.join(file);
        let text = confined::read_specify_file(project, &path).ok().flatten()?;
        confined::parse_yaml(&path, &text).ok()
    };
    let [manifest, shared, local] = settings_files(id).map(|file| read(&file));
    let defaults = manifest.and_then(|manifest| manifest.pointer("/config/defaults").cloned());
    let mut settings = Map::new();
    for layer in [defaults, shared, local] {
        if let Some(Value::Object(layer)) = layer {
            merge_settings(&mut settings, layer);
        }
    }
    settings
}

fn merge_settings(below: &mut Map<String, Value>, above: Map<String, Value>) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => merge_settings(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
