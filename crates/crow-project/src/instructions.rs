//! Reads AGENTS.md files: instructions of the user and the project. Where a directory has none, the file of another agent
//! is read. They are text for the model and grant no permission, so they need no trust. Blocks.

use std::fmt::Display;
use std::path::Path;

use crow_core::escape_hidden;
use crow_files::{AllowedRoot, read_bounded_text};

use crate::scan::RepositoryLocation;

/// The name of the files.
pub const INSTRUCTIONS_FILE: &str = "AGENTS.md";

/// The files of other agents, which are read in a directory without [`INSTRUCTIONS_FILE`]: the first that exists.
const OTHER_FILES: [&str; 3] = ["CLAUDE.md", "GEMINI.md", ".cursorrules"];

/// Size of one file; larger files are not read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Total size of all files; more is truncated, since every request contains them.
const BYTES_MAX: usize = 64 * 1024;

/// The instructions for a working directory.
#[derive(Debug, Default)]
pub(crate) struct ProjectInstructions {
    pub(crate) text: String,
    /// The files of other agents among them, by their names.
    pub(crate) other_files: Vec<String>,
}

/// Reads the files: the user's own, then from the repository's root down to the working directory, the nearest one last
/// so that it takes precedence.
pub(crate) fn read_instructions(location: &RepositoryLocation, config_dir: &Path) -> ProjectInstructions {
    let user_file =
        read_bounded_text(&config_dir.join(INSTRUCTIONS_FILE), AllowedRoot::Anywhere, FILE_BYTES_MAX);
    let RepositoryLocation { cwd, root } = location;
    let mut directories: Vec<&Path> =
        cwd.ancestors().take_while(|directory| directory.starts_with(root)).collect();
    directories.reverse();
    let mut texts: Vec<String> = log_unreadable(user_file).into_iter().collect();
    let mut other_files = Vec::new();
    for directory in directories {
        let names = std::iter::once(INSTRUCTIONS_FILE).chain(OTHER_FILES);
        let mut files =
            names.filter_map(|name| Some((name, read_project_file(&directory.join(name), root)?)));
        let Some((name, text)) = files.next() else { continue };
        if name != INSTRUCTIONS_FILE {
            let file = directory.strip_prefix(root).unwrap_or(directory).join(name);
            other_files.push(escape_hidden(&file.to_string_lossy()));
        }
        texts.push(text);
    }
    let mut text = texts.join("\n\n");
    if text.len() > BYTES_MAX {
        text.truncate(text.floor_char_boundary(BYTES_MAX));
        text.push_str("\n… cut");
    }
    ProjectInstructions { text, other_files }
}

/// Reads a file of the repository; `None` if it may not be read.
fn read_project_file(path: &Path, root: &Path) -> Option<String> {
    // A link could expose any file of the repository to the model, keys among them.
    let file = crow_files::resolve_present(path)?;
    let is_instructions = file.extension().is_some_and(|extension| extension == "md")
        || OTHER_FILES.iter().any(|name| file.file_name().is_some_and(|file_name| file_name == *name));
    if !is_instructions || crow_core::is_key_path(&file.to_string_lossy()) {
        return None;
    }
    log_unreadable(read_bounded_text(&file, AllowedRoot::Folder(root), FILE_BYTES_MAX))
}

fn log_unreadable<E: Display>(result: Result<Option<String>, E>) -> Option<String> {
    result
        .inspect_err(|reason| tracing::info!(%reason, "a file with instructions was skipped"))
        .ok()
        .flatten()
}

#[cfg(test)]
mod tests;
