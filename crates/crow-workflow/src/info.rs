//! Answers `/speckit` with the state of the workflow, and runs its small actions.

use crow_speckit::{
    Feature, LayerStrategy, SpeckitAction, SpeckitError, WorkflowCommand, list_features, write_pointer,
};

use crate::blocking::run_blocking;
use crate::exit::WorkflowExit;
use crate::port::WorkflowPort;
use crate::project_context::ProjectContext;
use crate::report;

/// Runs the action; returns its answer.
pub(crate) async fn run_info_command(
    port: &mut impl WorkflowPort,
    action: SpeckitAction,
) -> Result<String, WorkflowExit> {
    let context = ProjectContext::find_project(port).await?;
    if let SpeckitAction::Use(selector) = action {
        return switch_feature(port, context, selector).await;
    }
    run_blocking(move || match action {
        SpeckitAction::Status => render_status(&context),
        SpeckitAction::Init => init_project(&context),
        SpeckitAction::Templates => list_templates(&context),
        SpeckitAction::Doctor => run_doctor(&context),
        SpeckitAction::Use(_) | SpeckitAction::Unknown(_) => Ok(USAGE.to_owned()),
    })
    .await
    .map_err(WorkflowExit::Refused)
}

const USAGE: &str = "`/speckit` shows the state of the workflow. `/speckit use 002` switches to another feature, \
                     `/speckit init` prepares the project, `/speckit templates` shows where each template comes \
                     from, `/speckit doctor` shows problems.\n";

fn render_status(context: &ProjectContext) -> Result<String, SpeckitError> {
    let project = &context.project;
    let mut features = list_features(project, &context.config.specs_root)?;
    let current = context.find_feature(None);
    if let Ok((current_feature, _)) = &current
        && current_feature.dir.is_dir()
        && !features.iter().any(|feature| {
            crow_files::resolve_links(&feature.dir) == crow_files::resolve_links(&current_feature.dir)
        })
    {
        features.push(current_feature.clone());
    }
    if features.is_empty() {
        return Ok(format!(
            "No feature yet in {}. Start with {} or {}.\n",
            project.root().display(),
            WorkflowCommand::Constitution,
            WorkflowCommand::Specify
        ));
    }
    let is_current =
        |feature: &Feature| current.as_ref().is_ok_and(|(current, _)| current.dir == feature.dir);
    let mut text = String::new();
    for feature in &features {
        let symbol = if is_current(feature) { "▸" } else { "·" };
        text.push_str(&format!("- {symbol} `{}`: {}\n", feature.name, report::feature_progress(feature)?));
    }
    match &current {
        Ok((feature, origin)) => {
            for note in report::origin_notes(context, feature, *origin) {
                text.push_str(&format!("\n{note}\n"));
            }
            if let Some(next) = report::next_step(feature) {
                text.push_str(&format!("\nNext: `{next}`\n"));
            }
        }
        Err(error) => text.push_str(&format!("\nNo feature is selected: {error}.\n")),
    }
    Ok(text)
}

/// Switches the session and the project to another feature.
async fn switch_feature(
    port: &mut impl WorkflowPort,
    context: ProjectContext,
    selector: String,
) -> Result<String, WorkflowExit> {
    let owned_context = context.clone();
    let result = run_blocking(move || {
        let (feature, _) = owned_context.find_feature(Some(&selector))?;
        if !feature.dir.is_dir() {
            let reason =
                format!("there is no directory {}", owned_context.project.display_path(&feature.dir));
            return Err(SpeckitError::Invalid(reason));
        }
        if !owned_context.config.variables.no_persist {
            write_pointer(&owned_context.project, &feature.dir)?;
        }
        let text = format!(
            "Switched to `{}`: {}\n",
            owned_context.project.display_path(&feature.dir),
            report::feature_progress(&feature)?
        );
        Ok((feature, text))
    })
    .await;
    let (feature, text) = result.map_err(WorkflowExit::Refused)?;
    context.bind_feature(port, Some(&feature), None).await?;
    Ok(text)
}

fn init_project(context: &ProjectContext) -> Result<String, SpeckitError> {
    let created = crow_speckit::init_project(&context.project, &|name: &str| context.find_page(name))?;
    if created.is_empty() {
        return Ok("The project is prepared already.\n".to_owned());
    }
    let lines = created.iter().map(|path| format!("- `{}`\n", context.project.display_path(path)));
    let lines: String = lines.collect();
    Ok(format!("Created:\n{lines}\nFill in the constitution with {}.\n", WorkflowCommand::Constitution))
}

fn list_templates(context: &ProjectContext) -> Result<String, SpeckitError> {
    let templates_dir = context.prompts_dir.join("speckit");
    let mut text = "Page templates:\n".to_owned();
    for name in crow_speckit::page_names() {
        let layers = crow_speckit::page_layers(&context.project, Some(&templates_dir), name);
        text.push_str(&format!("- {name}: {}\n", render_layers(layers)));
    }
    text.push_str("\nPrompts:\n");
    for command in WorkflowCommand::ALL {
        let layers = crow_speckit::prompt_layers(&context.project, Some(&context.prompts_dir), command);
        text.push_str(&format!("- {command}: {}\n", render_layers(layers)));
    }
    Ok(text)
}

fn render_layers(layers: Result<Vec<crow_speckit::LayerInfo>, SpeckitError>) -> String {
    match layers {
        Ok(layers) => {
            let used = layers.iter().filter(|layer| layer.is_used).map(|layer| match layer.strategy {
                LayerStrategy::Replace => layer.origin.to_string(),
                strategy @ (LayerStrategy::Prepend | LayerStrategy::Append | LayerStrategy::Wrap) => {
                    format!("{} ({})", layer.origin, strategy.as_str())
                }
            });
            used.collect::<Vec<_>>().join(" over ")
        }
        Err(error) => format!("cannot be used: {error}"),
    }
}

fn run_doctor(context: &ProjectContext) -> Result<String, SpeckitError> {
    let project = &context.project;
    let mut problems: Vec<String> = Vec::new();
    if !project.is_initialized() {
        problems.push("there is no .specify/ yet; the first step creates what it needs".to_owned());
    }
    if let Err(error) = context.find_feature(None) {
        problems.push(error.to_string());
    }
    if let Err(error) = crow_speckit::SpeckitHooks::read(project) {
        problems.push(format!("no hook is run: {error}"));
    }
    match crow_speckit::list_extension_commands(project) {
        Ok(commands) => problems.extend(commands.problems),
        Err(error) => problems.push(error.to_string()),
    }
    for name in crow_speckit::page_names() {
        if let Err(error) = context.find_page(name) {
            problems.push(error.to_string());
        }
    }
    for command in WorkflowCommand::ALL {
        if let Err(error) = crow_speckit::command_prompt(project, Some(&context.prompts_dir), command) {
            problems.push(error.to_string());
        }
    }
    match crow_speckit::resolve_specs_root(project, &context.config.specs_root) {
        Ok(root) => problems.push(format!("new features go to {}", project.display_path(&root))),
        Err(error) => problems.push(error.to_string()),
    }
    Ok(problems.iter().map(|line| format!("- {line}\n")).collect())
}
