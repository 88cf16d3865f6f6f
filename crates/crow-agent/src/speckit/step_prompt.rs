//! Finds the prompt of a step. Content of the repository is only used if the user approved exactly these bytes.

use std::path::Path;

use crow_speckit::{
    PromptFacts, PromptKind, PromptPart, PromptSource, SpeckitError, StepDefinition, command_prompt,
    render_prompt,
};

use crate::project_config::ApprovedFiles;
use crate::speckit::project_context::ProjectContext;

/// The prompt of a step, before rendering.
#[derive(Debug, Clone)]
pub(super) struct StepPrompt {
    parts: Vec<PromptPart>,
}

impl StepPrompt {
    /// Finds the prompt of a step; the second value is a note for the user.
    pub(super) fn find_prompt(
        context: &ProjectContext,
        definition: &StepDefinition,
        approved: &ApprovedFiles,
    ) -> (Self, Option<String>) {
        let built_in = || Self {
            parts: vec![PromptPart { kind: PromptKind::Jinja, text: definition.prompt.to_owned() }],
        };
        let command = definition.command;
        let source = match command_prompt(&context.project, Some(&context.prompts_dir), command) {
            Ok(source) => source,
            Err(error) => return (built_in(), Some(format!("{error}; {command} uses the built-in prompt."))),
        };
        match unapproved_file(&source, context.project.root(), approved) {
            None => (Self { parts: source.parts }, None),
            Some(path) => {
                let reason = format!("{path} is not approved; {command} uses the built-in prompt.");
                (built_in(), Some(reason))
            }
        }
    }

    /// Renders the prompt.
    pub(super) fn render_prompt(&self, facts: &PromptFacts) -> Result<String, SpeckitError> {
        self.parts.iter().map(|part| render_prompt(&part.text, part.kind, facts)).collect()
    }
}

/// Returns a file of the repository in the prompt whose content is not approved.
pub(super) fn unapproved_file(
    source: &PromptSource,
    root: &Path,
    approved: &ApprovedFiles,
) -> Option<String> {
    let files = source.files.iter();
    let mut unapproved = files.filter(|(path, bytes)| !approved.is_approved(&root.join(path), bytes));
    unapproved.next().map(|(path, _)| path.display().to_string())
}
