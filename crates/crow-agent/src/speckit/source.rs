//! Where the prompt of a step comes from. What a repository changes of it counts only when the person approved those very
//! bytes.

use std::path::Path;

use crow_speckit::{
    PromptFacts, PromptKind, PromptPart, PromptSource, SpeckitError, built_in_prompt, command_prompt,
    render_prompt,
};

use crate::speckit::ground::ProjectContext;
use crate::supplies::ApprovedFiles;

/// The prompt of a step, not rendered yet.
#[derive(Debug, Clone)]
pub(super) struct StepPrompt {
    parts: Vec<PromptPart>,
}

impl StepPrompt {
    /// Finds the prompt of a step; the other value is what the person should know about it.
    pub(super) fn find_prompt(
        ground: &ProjectContext,
        command: crow_speckit::WorkflowCommand,
        approved: &ApprovedFiles,
    ) -> (Self, Option<String>) {
        let ours = || Self {
            parts: vec![PromptPart { kind: PromptKind::Jinja, text: built_in_prompt(command).to_owned() }],
        };
        let found = match command_prompt(&ground.project, Some(&ground.prompts_dir), command) {
            Ok(found) => found,
            Err(error) => return (ours(), Some(format!("{error}; {command} uses Crow's own prompt."))),
        };
        match unapproved_file(&found, ground.project.root(), approved) {
            None => (Self { parts: found.parts }, None),
            Some(path) => {
                let why = format!("Nobody approved {path}; {command} uses Crow's own prompt.");
                (ours(), Some(why))
            }
        }
    }

    /// Makes the text of it.
    pub(super) fn render_prompt(&self, facts: &PromptFacts) -> Result<String, SpeckitError> {
        self.parts.iter().map(|part| render_prompt(&part.text, part.kind, facts)).collect()
    }
}

/// Names a file of the repository in it that nobody approved as it is.
pub(super) fn unapproved_file(
    source: &PromptSource,
    root: &Path,
    approved: &ApprovedFiles,
) -> Option<String> {
    let files = source.files.iter();
    let mut unknown = files.filter(|(path, bytes)| !approved.is_approved(&root.join(path), bytes));
    unknown.next().map(|(path, _)| path.display().to_string())
}
