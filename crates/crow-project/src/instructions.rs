//! Reads AGENTS.md files: instructions of the user and the project. They are text for the model and grant no
//! permission, so they need no trust. Blocks.

use std::path::Path;

use crow_files::{AllowedRoot, read_bounded_text};

use crate::scan::repository_root;

/// The name of the files.
pub const INSTRUCTIONS_FILE: &str = "AGENTS.md";

/// Size of one file; larger files are not read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Total size of all files; more is truncated, since every request contains them.
const BYTES_MAX: usize = 64 * 1024;

/// Reads the files: the user's own, then from the repository's root down to `cwd`, the nearest one last so that it
/// takes precedence.
pub(crate) fn read_instructions(cwd: &Path, config_dir: &Path) -> String {
    let user_file =
        read_bounded_text(&config_dir.join(INSTRUCTIONS_FILE), AllowedRoot::Anywhere, FILE_BYTES_MAX);
    let cwd = crow_files::resolve_links(cwd);
    let root = repository_root(&cwd);
    let mut directories: Vec<&Path> =
        cwd.ancestors().take_while(|directory| directory.starts_with(root)).collect();
    directories.reverse();
    let files =
        directories.iter().map(|directory| crow_files::resolve_links(&directory.join(INSTRUCTIONS_FILE)));
    // A link could expose any file of the repository to the model, keys among them.
    let files = files.filter(|file| {
        file.extension().is_some_and(|extension| extension == "md")
            && !crow_core::is_key_path(&file.to_string_lossy())
    });
    let project = files.map(|file| read_bounded_text(&file, AllowedRoot::Folder(root), FILE_BYTES_MAX));
    let texts = std::iter::once(user_file).chain(project).filter_map(|result| {
        result.inspect_err(|reason| tracing::info!(%reason, "an AGENTS.md was skipped")).ok().flatten()
    });
    let mut content = texts.collect::<Vec<_>>().join("\n\n");
    if content.len() > BYTES_MAX {
        content.truncate(content.floor_char_boundary(BYTES_MAX));
        content.push_str("\n… cut");
    }
    content
}

#[cfg(test)]
mod tests;
