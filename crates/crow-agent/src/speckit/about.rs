//! What `/speckit` tells about the workflow, and the little it does.

use crow_core::Failure;
use crow_speckit::{
    Feature, LayerStrategy, SpeckitAction, SpeckitError, WorkflowCommand, list_features, write_pointer,
};

use crate::run_turn::TurnCx;
use crate::speckit::ground::ProjectContext;
use crate::speckit::record::run_blocking;
use crate::speckit::report;

/// Does what was asked; the text says what came of it, the other side why nothing did.
pub(super) async fn run_info_command(
    cx: &TurnCx<'_>,
    asked: SpeckitAction,
) -> Result<Result<String, String>, Failure> {
    let ground = match ProjectContext::find_project(cx).await? {
        Ok(ground) => ground,
        Err(why) => return Ok(Err(why)),
    };
    if let SpeckitAction::Use(named) = asked {
        return switch_feature(cx, ground, named).await;
    }
    Ok(run_blocking(move || match asked {
        SpeckitAction::Status => render_status(&ground),
        SpeckitAction::Init => init_project(&ground),
        SpeckitAction::Templates => list_templates(&ground),
        SpeckitAction::Doctor => run_doctor(&ground),
        SpeckitAction::Use(_) | SpeckitAction::Unknown(_) => Ok(USAGE.to_owned()),
    })
    .await)
}

const USAGE: &str = "`/speckit` shows where the workflow stands. `/speckit use 002` goes on with another feature, `/speckit init` \
                     prepares the project, `/speckit templates` shows where each template comes from, `/speckit doctor` \
                     what is odd.\n";

fn render_status(ground: &ProjectContext) -> Result<String, SpeckitError> {
    let project = &ground.project;
    let mut all = list_features(project, &ground.settings.specs_root)?;
    let current = ground.find_feature(None);
    if let Ok((elsewhere, _)) = &current
        && elsewhere.dir.is_dir()
        && !all.iter().any(|feature| {
            crow_tools::resolve_links(&feature.dir) == crow_tools::resolve_links(&elsewhere.dir)
        })
    {
        all.push(elsewhere.clone());
    }
    if all.is_empty() {
        return Ok(format!(
            "No feature yet in {}. Begin with {} or {}.\n",
            project.root().display(),
            WorkflowCommand::Constitution,
            WorkflowCommand::Specify
        ));
    }
    let is_current =
        |feature: &Feature| current.as_ref().is_ok_and(|(current, _)| current.dir == feature.dir);
    let mut text = String::new();
    for feature in &all {
        let mark = if is_current(feature) { "▸" } else { "·" };
        text.push_str(&format!("- {mark} `{}`: {}\n", feature.name, report::feature_progress(feature)?));
    }
    match &current {
        Ok((feature, origin)) => {
            for note in report::origin_notes(ground, feature, *origin) {
                text.push_str(&format!("\n{note}\n"));
            }
            if let Some(next) = report::next_step(feature) {
                text.push_str(&format!("\nNext: `{next}`\n"));
            }
        }
        Err(error) => text.push_str(&format!("\nNo feature is chosen: {error}.\n")),
    }
    Ok(text)
}

/// Goes on with another feature, in this session and in the project.
async fn switch_feature(
    cx: &TurnCx<'_>,
    ground: ProjectContext,
    named: String,
) -> Result<Result<String, String>, Failure> {
    let on = ground.clone();
    let taken = run_blocking(move || {
        let (feature, _) = on.find_feature(Some(&named))?;
        if !feature.dir.is_dir() {
            let why = format!("there is no folder {}", on.project.display_path(&feature.dir));
            return Err(SpeckitError::Invalid(why));
        }
        if !on.settings.variables.no_persist {
            write_pointer(&on.project, &feature.dir)?;
        }
        let text = format!(
            "Now at `{}`: {}\n",
            on.project.display_path(&feature.dir),
            report::feature_progress(&feature)?
        );
        Ok((feature, text))
    })
    .await;
    match taken {
        Ok((feature, text)) => {
            ground.bind_feature(cx, Some(&feature), None).await?;
            Ok(Ok(text))
        }
        Err(why) => Ok(Err(why)),
    }
}

fn init_project(ground: &ProjectContext) -> Result<String, SpeckitError> {
    let made = crow_speckit::init_project(&ground.project, &|name: &str| ground.find_page(name))?;
    if made.is_empty() {
        return Ok("The project is prepared already.\n".to_owned());
    }
    let lines = made.iter().map(|path| format!("- `{}`\n", ground.project.display_path(path)));
    let lines: String = lines.collect();
    Ok(format!("Made:\n{lines}\nFill the ground rules with {}.\n", WorkflowCommand::Constitution))
}

fn list_templates(ground: &ProjectContext) -> Result<String, SpeckitError> {
    let own = ground.prompts_dir.join("speckit");
    let mut text = "Page templates:\n".to_owned();
    for name in crow_speckit::page_names() {
        let layers = crow_speckit::page_layers(&ground.project, Some(&own), name);
        text.push_str(&format!("- {name}: {}\n", render_layers(layers)));
    }
    text.push_str("\nPrompts:\n");
    for command in WorkflowCommand::ALL {
        let layers = crow_speckit::prompt_layers(&ground.project, Some(&ground.prompts_dir), command);
        text.push_str(&format!("- {command}: {}\n", render_layers(layers)));
    }
    Ok(text)
}

fn render_layers(layers: Result<Vec<crow_speckit::LayerInfo>, SpeckitError>) -> String {
    match layers {
        Ok(layers) => {
            let used = layers.iter().filter(|layer| layer.is_used).map(|layer| match layer.strategy {
                LayerStrategy::Replace => layer.place.to_string(),
                strategy @ (LayerStrategy::Prepend | LayerStrategy::Append | LayerStrategy::Wrap) => {
                    format!("{} ({})", layer.place, strategy.as_str())
                }
            });
            used.collect::<Vec<_>>().join(" over ")
        }
        Err(error) => format!("cannot be used: {error}"),
    }
}

fn run_doctor(ground: &ProjectContext) -> Result<String, SpeckitError> {
    let project = &ground.project;
    let mut odd: Vec<String> = Vec::new();
    if !project.is_initialized() {
        odd.push("there is no .specify/ yet; the first step makes what it needs".to_owned());
    }
    if let Err(error) = ground.find_feature(None) {
        odd.push(error.to_string());
    }
    if let Err(error) = crow_speckit::SpeckitHooks::read(project) {
        odd.push(format!("no hook is run: {error}"));
    }
    match crow_speckit::list_extension_commands(project) {
        Ok(commands) => odd.extend(commands.problems),
        Err(error) => odd.push(error.to_string()),
    }
    for name in crow_speckit::page_names() {
        if let Err(error) = ground.find_page(name) {
            odd.push(error.to_string());
        }
    }
    for command in WorkflowCommand::ALL {
        if let Err(error) = crow_speckit::command_prompt(project, Some(&ground.prompts_dir), command) {
            odd.push(error.to_string());
        }
    }
    match crow_speckit::resolve_specs_root(project, &ground.settings.specs_root) {
        Ok(root) => odd.push(format!("new features go to {}", project.display_path(&root))),
        Err(error) => odd.push(error.to_string()),
    }
    Ok(odd.iter().map(|line| format!("- {line}\n")).collect())
}
