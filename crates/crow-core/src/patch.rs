//! Patches in the format of `apply_patch`: parses one and plans its changes. Knows no files, encodings or tools.
//!
//! The format is the one that OpenAI's models were trained on: `*** Begin Patch`, then sections `*** Add File: PATH`,
//! `*** Delete File: PATH` and `*** Update File: PATH`, then `*** End Patch`. A line of a hunk begins with a space, `+` or
//! `-`. [`edit`](crate::edit) finds the lines.

mod parse;
mod plan;
mod shell;
mod wrapper;

use crate::edit::PatchHunk;

pub use plan::{PatchRefusal, PlannedFile, plan_patch};
pub use shell::{ShellPatch, shell_patch};

/// More files are a task for a program.
pub const PATCH_FILES_MAX: usize = 100;

/// A patch: changes of files, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedPatch {
    pub sections: Vec<PatchSection>,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchSection {
    /// Creates a file.
    Add { path: String, text: String },
    /// Deletes a file.
    Delete { path: String },
    /// Changes a file, moves it, or both.
    Update { path: String, target: Option<String>, hunks: Vec<PatchHunk> },
}

/// The reason why a text is no patch, with the next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error(
        "there is no `*** Begin Patch`; a patch is: `*** Begin Patch`, a line such as `*** Update File: PATH`, hunks whose \
         lines begin with a space, `+` or `-`, then `*** End Patch`"
    )]
    NoBegin,
    #[error("it does not end with `*** End Patch` and may be incomplete; send all of it again")]
    NoEnd,
    #[error(
        "it changes no file; begin with `*** Add File: PATH`, `*** Update File: PATH` or `*** Delete File: PATH`"
    )]
    NoFiles,
    #[error(
        "line {line} (`{text}`) belongs to no file; begin with `*** Add File: PATH`, `*** Update File: PATH` or \
         `*** Delete File: PATH`"
    )]
    UnexpectedLine { line: usize, text: String },
    #[error("line {line} (`{text}`) does not begin with `+`, as each line of an added file does")]
    AddedLine { line: usize, text: String },
    #[error("line {line} has no path")]
    NoPath { line: usize },
    #[error("`*** Update File: {path}` has no lines to change")]
    NoHunks { path: String },
    #[error("it changes more than {PATCH_FILES_MAX} files; send several patches")]
    TooManyFiles,
}

impl ParsedPatch {
    /// Parses a patch, also with what models write around it: a code fence, a here-document, JSON.
    pub fn parse(text: &str) -> Result<Self, PatchError> {
        parse::parse_body(&wrapper::unwrap_patch(text))
    }

    /// The paths of all files that the patch reads or writes, each once.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = Vec::new();
        for section in &self.sections {
            let (path, target) = match section {
                PatchSection::Add { path, .. } | PatchSection::Delete { path } => (path, None),
                PatchSection::Update { path, target, .. } => (path, target.as_ref()),
            };
            for path in [Some(path), target].into_iter().flatten() {
                if !paths.contains(&path.as_str()) {
                    paths.push(path);
                }
            }
        }
        paths
    }

    /// Returns the patch with other paths.
    #[must_use]
    pub fn with_paths(self, mut convert: impl FnMut(&str) -> String) -> Self {
        let sections = self.sections.into_iter().map(|section| match section {
            PatchSection::Add { path, text } => PatchSection::Add { path: convert(&path), text },
            PatchSection::Delete { path } => PatchSection::Delete { path: convert(&path) },
            PatchSection::Update { path, target, hunks } => PatchSection::Update {
                path: convert(&path),
                target: target.map(|target| convert(&target)),
                hunks,
            },
        });
        Self { sections: sections.collect() }
    }
}

#[cfg(test)]
mod tests;
