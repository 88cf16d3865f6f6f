//! What `/speckit` tells about the workflow, and the little it does.

use crow_core::Failure;
use crow_speckit::{About, Command, Feature, SpeckitError, Strategy, features, write_pointer};

use crate::run_turn::TurnCx;
use crate::speckit::ground::Ground;
use crate::speckit::record::off;
use crate::speckit::report;

/// Does what was asked; the text says what came of it, the other side why nothing did.
pub(super) async fn tell(cx: &TurnCx<'_>, asked: About) -> Result<Result<String, String>, Failure> {
    let ground = match Ground::find(cx).await? {
        Ok(ground) => ground,
        Err(why) => return Ok(Err(why)),
    };
    if let About::Use(named) = asked {
        return take(cx, ground, named).await;
    }
    Ok(off(move || match asked {
        About::Status => status(&ground),
        About::Init => init(&ground),
        About::Templates => templates(&ground),
        About::Doctor => doctor(&ground),
        About::Use(_) | About::Unknown(_) => Ok(USAGE.to_owned()),
    })
    .await)
}

const USAGE: &str = "`/speckit` shows where the workflow stands. `/speckit use 002` goes on with another feature, `/speckit init` \
                     prepares the project, `/speckit templates` shows where each template comes from, `/speckit doctor` \
                     what is odd.\n";

fn status(ground: &Ground) -> Result<String, SpeckitError> {
    let project = &ground.project;
    let mut all = features(project, &ground.settings.specs_root)?;
    let current = ground.feature(None);
    if let Ok((elsewhere, _)) = &current
        && elsewhere.dir.is_dir()
        && !all.iter().any(|feature| crow_tools::resolve(&feature.dir) == crow_tools::resolve(&elsewhere.dir))
    {
        all.push(elsewhere.clone());
    }
    if all.is_empty() {
        return Ok(format!(
            "No feature yet in {}. Begin with {} or {}.\n",
            project.root().display(),
            Command::Constitution,
            Command::Specify
        ));
    }
    let is_current =
        |feature: &Feature| current.as_ref().is_ok_and(|(current, _)| current.dir == feature.dir);
    let mut text = String::new();
    for feature in &all {
        let mark = if is_current(feature) { "▸" } else { "·" };
        text.push_str(&format!("- {mark} `{}`: {}\n", feature.name, report::stands(feature)?));
    }
    match &current {
        Ok((feature, origin)) => {
            for note in report::on_origin(ground, feature, *origin) {
                text.push_str(&format!("\n{note}\n"));
            }
            if let Some(next) = report::next_of(feature) {
                text.push_str(&format!("\nNext: `{next}`\n"));
            }
        }
        Err(error) => text.push_str(&format!("\nNo feature is chosen: {error}.\n")),
    }
    Ok(text)
}

/// Goes on with another feature, in this session and in the project.
async fn take(cx: &TurnCx<'_>, ground: Ground, named: String) -> Result<Result<String, String>, Failure> {
    let on = ground.clone();
    let taken = off(move || {
        let (feature, _) = on.feature(Some(&named))?;
        if !feature.dir.is_dir() {
            let why = format!("there is no folder {}", on.project.shown(&feature.dir));
            return Err(SpeckitError::Invalid(why));
        }
        if !on.settings.variables.no_persist {
            write_pointer(&on.project, &feature.dir)?;
        }
        let text = format!("Now at `{}`: {}\n", on.project.shown(&feature.dir), report::stands(&feature)?);
        Ok((feature, text))
    })
    .await;
    match taken {
        Ok((feature, text)) => {
            ground.bind(cx, Some(&feature), None).await?;
            Ok(Ok(text))
        }
        Err(why) => Ok(Err(why)),
    }
}

fn init(ground: &Ground) -> Result<String, SpeckitError> {
    let made = crow_speckit::init(&ground.project, &|name: &str| ground.page(name))?;
    if made.is_empty() {
        return Ok("The project is prepared already.\n".to_owned());
    }
    let lines = made.iter().map(|path| format!("- `{}`\n", ground.project.shown(path)));
    let lines: String = lines.collect();
    Ok(format!("Made:\n{lines}\nFill the ground rules with {}.\n", Command::Constitution))
}

fn templates(ground: &Ground) -> Result<String, SpeckitError> {
    let own = ground.prompts_dir.join("speckit");
    let mut text = "Page templates:\n".to_owned();
    for name in crow_speckit::page_names() {
        let layers = crow_speckit::layers(&ground.project, Some(&own), name);
        text.push_str(&format!("- {name}: {}\n", layered(layers)));
    }
    text.push_str("\nPrompts:\n");
    for command in Command::ALL {
        let layers = crow_speckit::prompt_layers(&ground.project, Some(&ground.prompts_dir), command);
        text.push_str(&format!("- {command}: {}\n", layered(layers)));
    }
    Ok(text)
}

fn layered(layers: Result<Vec<crow_speckit::Layer>, SpeckitError>) -> String {
    match layers {
        Ok(layers) => {
            let used = layers.iter().filter(|layer| layer.is_used).map(|layer| match layer.strategy {
                Strategy::Replace => layer.place.to_string(),
                strategy @ (Strategy::Prepend | Strategy::Append | Strategy::Wrap) => {
                    format!("{} ({})", layer.place, strategy.as_str())
                }
            });
            used.collect::<Vec<_>>().join(" over ")
        }
        Err(error) => format!("cannot be used: {error}"),
    }
}

fn doctor(ground: &Ground) -> Result<String, SpeckitError> {
    let project = &ground.project;
    let mut odd: Vec<String> = Vec::new();
    if !project.is_begun() {
        odd.push("there is no .specify/ yet; the first step makes what it needs".to_owned());
    }
    if let Err(error) = ground.feature(None) {
        odd.push(error.to_string());
    }
    if let Err(error) = crow_speckit::Hooks::read(project) {
        odd.push(format!("no hook is run: {error}"));
    }
    match crow_speckit::extension_commands(project) {
        Ok(commands) => odd.extend(commands.problems),
        Err(error) => odd.push(error.to_string()),
    }
    for name in crow_speckit::page_names() {
        if let Err(error) = ground.page(name) {
            odd.push(error.to_string());
        }
    }
    for command in Command::ALL {
        if let Err(error) = crow_speckit::command_prompt(project, Some(&ground.prompts_dir), command) {
            odd.push(error.to_string());
        }
    }
    match crow_speckit::specs_root(project, &ground.settings.specs_root) {
        Ok(root) => odd.push(format!("new features go to {}", project.shown(&root))),
        Err(error) => odd.push(error.to_string()),
    }
    Ok(odd.iter().map(|line| format!("- {line}\n")).collect())
}
