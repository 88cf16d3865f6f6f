//! Parses skills and prompt files. Must not know directories or trust.

use std::path::{Path, PathBuf};

use crow_core::{FrontMatter, slash};

/// Characters of a description: every request contains those of skills, and lists of commands show them in a line.
const DESCRIPTION_CHARS_MAX: usize = 1024;

/// File name of a skill.
pub(crate) const SKILL_FILE: &str = "SKILL.md";

/// File extension of a prompt file.
const PROMPT_EXTENSION: &str = "md";

/// Instructions for a kind of work, which the model reads when they apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    pub description: String,
    pub hint: Option<String>,
    /// Its file; the files it refers to are in the same directory.
    pub path: PathBuf,
    /// The directory that may be read with it, without links; `None` if there is none.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) body: String,
}

/// A text behind a slash command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptFile {
    pub name: String,
    pub description: String,
    pub hint: Option<String>,
    pub(crate) body: String,
}

impl Skill {
    /// Parses a skill; `None` if its name is not valid for a command.
    pub(crate) fn parse_skill(path: PathBuf, directory: Option<PathBuf>, text: &str) -> Option<Self> {
        let front_matter = FrontMatter::parse(text);
        let directory_name = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let names = [front_matter.get("name"), directory_name];
        let name = names.into_iter().flatten().find(|name| slash::is_command_name(name))?.to_owned();
        let (description, hint) = (read_description(&front_matter), read_hint(&front_matter));
        Some(Self { name, description, hint, body: front_matter.body.to_owned(), path, directory })
    }
}

impl PromptFile {
    /// Parses a prompt file; the file name is its name.
    pub(crate) fn parse_prompt_file(path: &Path, text: &str) -> Option<Self> {
        let is_prompt = path.extension().is_some_and(|extension| extension == PROMPT_EXTENSION);
        let name =
            path.file_stem().and_then(|name| name.to_str()).filter(|name| slash::is_command_name(name));
        let front_matter = FrontMatter::parse(text);
        let (description, hint) = (read_description(&front_matter), read_hint(&front_matter));
        let name = name.filter(|_| is_prompt)?.to_owned();
        Some(Self { name, description, hint, body: front_matter.body.to_owned() })
    }
}

fn read_description(front_matter: &FrontMatter<'_>) -> String {
    let first = || {
        front_matter
            .body
            .lines()
            .map(|line| line.trim_start_matches('#').trim())
            .find(|line| !line.is_empty())
    };
    let text = front_matter.get("description").or_else(first).unwrap_or("(no description)");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(DESCRIPTION_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

fn read_hint(front_matter: &FrontMatter<'_>) -> Option<String> {
    front_matter.get("argument-hint").map(str::to_owned)
}
