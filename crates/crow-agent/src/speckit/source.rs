//! Where the prompt of a step comes from. What a repository changes of it counts only when the person approved those very
//! bytes.

use std::path::Path;

use crow_speckit::{Facts, Part, PromptKind, PromptSource, SpeckitError, built_in, command_prompt, render};

use crate::speckit::ground::Ground;
use crate::supplies::Approved;

/// The prompt of a step, not rendered yet.
#[derive(Debug, Clone)]
pub(super) struct Source {
    parts: Vec<Part>,
}

impl Source {
    /// Finds the prompt of a step; the other value is what the person should know about it.
    pub(super) fn find(
        ground: &Ground,
        command: crow_speckit::Command,
        approved: &Approved,
    ) -> (Self, Option<String>) {
        let ours =
            || Self { parts: vec![Part { kind: PromptKind::Jinja, text: built_in(command).to_owned() }] };
        let found = match command_prompt(&ground.project, Some(&ground.prompts_dir), command) {
            Ok(found) => found,
            Err(error) => return (ours(), Some(format!("{error}; {command} uses Crow's own prompt."))),
        };
        match unapproved(&found, ground.project.root(), approved) {
            None => (Self { parts: found.parts }, None),
            Some(path) => {
                let why = format!("Nobody approved {path}; {command} uses Crow's own prompt.");
                (ours(), Some(why))
            }
        }
    }

    /// Makes the text of it.
    pub(super) fn render(&self, facts: &Facts) -> Result<String, SpeckitError> {
        self.parts.iter().map(|part| render(&part.text, part.kind, facts)).collect()
    }
}

/// Names a file of the repository in it that nobody approved as it is.
pub(super) fn unapproved(source: &PromptSource, root: &Path, approved: &Approved) -> Option<String> {
    let files = source.files.iter();
    let mut unknown = files.filter(|(path, bytes)| !approved.has(&root.join(path), bytes));
    unknown.next().map(|(path, _)| path.display().to_string())
}
