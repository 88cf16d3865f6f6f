//! Runs the commands of a project's extensions: the model does the work, with the session's permissions. Only content
//! that the user approved, byte for byte, is used.

use crow_core::{SpeckitPart, TurnEnd};
use crow_speckit::{
    ExtensionCommand, PromptFacts, PromptPart, SpeckitError, extension_prompt, list_extension_commands,
    render_prompt,
};

use crate::blocking::run_blocking;
use crate::exit::WorkflowExit;
use crate::parts::hidden_part;
use crate::port::WorkflowPort;
use crate::project_context::ProjectContext;
use crate::prompt::unapproved_file;

/// Runs a command of an extension.
pub(crate) async fn run_extension_command(
    port: &mut impl WorkflowPort,
    name: &str,
    arguments: String,
) -> Result<TurnEnd, WorkflowExit> {
    let context = ProjectContext::find_project(port).await?;
    let prompt = find_extension_prompt(&context, name, arguments).await.map_err(WorkflowExit::Refused)?;
    let text = format!("The command /{name} stands for this:\n\n{prompt}");
    port.append_user_prompt(Some(hidden_part(SpeckitPart::Command, text))).await?;
    Ok(port.run_turn(None, None).await?.end)
}

/// Returns the prompt of an extension's command.
pub(crate) async fn find_extension_prompt(
    context: &ProjectContext,
    name: &str,
    args: String,
) -> Result<String, String> {
    let (context, name) = (context.clone(), name.to_owned());
    run_blocking(move || {
        let project = &context.project;
        let commands = list_extension_commands(project)?.commands;
        let Some(command) = commands.iter().find(|command| command.name == name) else {
            return Err(SpeckitError::Invalid(unknown_command(&name, &commands)));
        };
        let source = extension_prompt(project, command)?;
        if let Some(path) = unapproved_file(&source, &context) {
            return Err(SpeckitError::Invalid(format!("{path} is not approved")));
        }
        let facts = PromptFacts { args, ..PromptFacts::default() };
        source.parts.iter().map(|PromptPart { text, kind, .. }| render_prompt(text, *kind, &facts)).collect()
    })
    .await
}

fn unknown_command(name: &str, commands: &[ExtensionCommand]) -> String {
    if commands.is_empty() {
        return format!("there is no command /{name}: no extension of this project is enabled");
    }
    let names: Vec<String> = commands.iter().map(|command| format!("/{}", command.name)).collect();
    format!("there is no command /{name}; the extensions have {}", names.join(", "))
}
