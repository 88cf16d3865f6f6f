//! The source files of the cases.

use std::{fs, path::Path};

use super::chance::Chance;

/// A source file.
pub(crate) struct Source {
    /// The path from the root directory.
    pub(crate) name: String,
    /// The text, with plain line endings.
    pub(crate) text: String,
}

const EXTENSIONS: [&str; 25] = [
    "bash", "c", "cc", "cpp", "css", "go", "h", "html", "java", "jinja2", "js", "json", "jsx", "md", "mjs",
    "py", "rb", "rs", "sh", "sql", "toml", "ts", "tsx", "yaml", "yml",
];

/// Larger files make no better cases, only slower ones.
const BYTES_MAX: usize = 200_000;

/// Directories with generated files.
const LEFT_OUT: [&str; 2] = ["target", "node_modules"];

/// Reads the sources under a directory, at most `n_max`, spread evenly.
pub(crate) fn read_folder(root: &Path, n_max: usize) -> Vec<Source> {
    let mut names = Vec::new();
    list(root, "", &mut names);
    names.sort_by_cached_key(|name| (Chance::of(name).below(usize::MAX), name.clone()));
    let sources = names.into_iter().filter_map(|name| {
        let text = fs::read_to_string(root.join(&name)).ok()?.replace("\r\n", "\n");
        let is_wanted =
            text.len() <= BYTES_MAX && text.lines().count() > 3 && !text.contains(['\0', '\r', '\u{feff}']);
        is_wanted.then_some(Source { name, text })
    });
    sources.take(n_max).collect()
}

fn list(folder: &Path, prefix: &str, names: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Ok(kind) = entry.file_type() else { continue };
        if name.starts_with('.') || LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        let path = format!("{prefix}{name}");
        if kind.is_dir() {
            list(&entry.path(), &format!("{path}/"), names);
        } else if kind.is_file() && path.rsplit_once('.').is_some_and(|(_, end)| EXTENSIONS.contains(&end)) {
            names.push(path);
        }
    }
}
