//! Skills and prompt files as their texts say them. Knows no folder and no trust.

use std::path::{Path, PathBuf};

use crow_core::{FrontMatter, slash};

/// Characters of a description: every request carries those of skills, and lists of commands show them in a line.
const DESCRIPTION_CHARS_MAX: usize = 1024;

/// What a file of a skill is called.
pub(super) const SKILL_FILE: &str = "SKILL.md";

/// What a prompt file's name ends in.
const PROMPT_ENDING: &str = "md";

/// Instructions for a kind of work, which the model reads when it fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skill {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) hint: Option<String>,
    /// Its file; what it speaks of is in the same folder.
    pub(crate) path: PathBuf,
    /// The folder that may be read with it, spelled without links; `None` when no folder came with it.
    pub(super) folder: Option<PathBuf>,
    pub(super) body: String,
}

/// A text that a command stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptFile {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) hint: Option<String>,
    pub(super) body: String,
}

impl Skill {
    /// Reads a skill; one that no command can be called is none.
    pub(super) fn parse_skill(path: PathBuf, folder: Option<PathBuf>, text: &str) -> Option<Self> {
        let read = FrontMatter::parse(text);
        let folder_name = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let names = [read.get("name"), folder_name];
        let name = names.into_iter().flatten().find(|name| slash::is_command_name(name))?.to_owned();
        let (description, hint) = (read_description(&read), read_hint(&read));
        Some(Self { name, description, hint, body: read.body.to_owned(), path, folder })
    }
}

impl PromptFile {
    /// Reads a prompt file; its name is its file's.
    pub(super) fn parse_prompt_file(path: &Path, text: &str) -> Option<Self> {
        let is_prompt = path.extension().is_some_and(|ending| ending == PROMPT_ENDING);
        let name =
            path.file_stem().and_then(|name| name.to_str()).filter(|name| slash::is_command_name(name));
        let read = FrontMatter::parse(text);
        let (description, hint) = (read_description(&read), read_hint(&read));
        let name = name.filter(|_| is_prompt)?.to_owned();
        Some(Self { name, description, hint, body: read.body.to_owned() })
    }
}

fn read_description(read: &FrontMatter<'_>) -> String {
    let first =
        || read.body.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
    let text = read.get("description").or_else(first).unwrap_or("(no description)");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(DESCRIPTION_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &words[..cut]),
        None => words,
    }
}

fn read_hint(read: &FrontMatter<'_>) -> Option<String> {
    read.get("argument-hint").map(str::to_owned)
}
