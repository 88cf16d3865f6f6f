//! Finds the prompt of a step. Content of the repository is only used if the user approved exactly these bytes.

use crow_speckit::{
    PromptFacts, PromptKind, PromptPart, PromptSource, SpeckitError, StepDefinition, command_prompt,
    render_prompt,
};

use crate::project_context::ProjectContext;

/// The prompt of a step, before rendering.
#[derive(Debug, Clone)]
pub(crate) struct StepPrompt {
    parts: Vec<PromptPart>,
}

impl StepPrompt {
    /// Finds the prompt of a step; the second value is a note for the user.
    pub(crate) fn find_prompt(
        context: &ProjectContext,
        definition: &StepDefinition,
    ) -> (Self, Option<String>) {
        let built_in = || Self {
            parts: vec![PromptPart { kind: PromptKind::Jinja, text: definition.prompt.to_owned() }],
        };
        let command = definition.command;
        let source = match command_prompt(&context.project, Some(&context.prompts_dir), command) {
            Ok(source) => source,
            Err(error) => return (built_in(), Some(format!("{error}; {command} uses the built-in prompt."))),
        };
        match unapproved_file(&source, context) {
            None => (Self { parts: source.parts }, None),
            Some(path) => {
                let reason = format!("{path} is not approved; {command} uses the built-in prompt.");
                (built_in(), Some(reason))
            }
        }
    }

    /// Renders the prompt.
    pub(crate) fn render_prompt(&self, facts: &PromptFacts) -> Result<String, SpeckitError> {
        self.parts.iter().map(|part| render_prompt(&part.text, part.kind, facts)).collect()
    }
}

/// Returns a file of the repository in the prompt whose content is not approved.
pub(crate) fn unapproved_file(source: &PromptSource, context: &ProjectContext) -> Option<String> {
    let is_approved = |path: &std::path::Path, bytes: &[u8]| {
        context.approvals.is_approved(&context.project.root().join(path), bytes)
    };
    let mut unapproved = source.files.iter().filter(|(path, bytes)| !is_approved(path, bytes));
    unapproved.next().map(|(path, _)| path.display().to_string())
}
