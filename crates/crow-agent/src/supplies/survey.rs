//! All there is to use at one moment, and who trusts it: the person's own, the repository's, and what was said to it.
//! Blocks; asks nobody.

use std::path::{Path, PathBuf};

use crow_core::{Ledger, Trust, trust};

use super::found::{self, Brings, Found, Places, SupplyFile};
use super::kept::{self, Kept};
use super::reading::{self, Inside};
use super::texts::{PromptFile, SKILL_FILE, Skill};
use super::{Supplies, Variables, first_of_each};
use crate::kit::KitSettings;

/// The person's own files; far more than anyone has.
const OWN_MAX: usize = 500;

/// Names that a notice shows.
const KEYS_SHOWN: usize = 8;

/// Larger texts are none that a model should read at once.
const OWN_BYTES_MAX: u64 = 1024 * 1024;

/// What there is to use.
#[derive(Debug)]
pub(super) struct Survey {
    skills: Vec<Skill>,
    prompts: Vec<PromptFile>,
    pub(super) found: Found,
    pub(super) kept: Kept,
    /// What the person should know, a sentence each.
    pub(super) problems: Vec<String>,
    places: Places,
}

impl Survey {
    /// Looks at the person's files, at those of the repository around a folder, and at what was said to them.
    pub(super) fn take(settings: &KitSettings, cwd: &Path) -> Self {
        let places = Places {
            cwd: cwd.to_owned(),
            config_dir: settings.config_dir.clone(),
            repositories: settings.repositories.clone(),
        };
        let mut problems = Vec::new();
        let mut skills = own_skills(&settings.config_dir.join("skills"), &mut problems);
        if let Some(folder) = &settings.skills_dir {
            skills.extend(own_skills(folder, &mut problems));
        }
        let prompts = own_prompts(&settings.prompts_dir, &mut problems);
        let mut found = found::look(&places);
        problems.append(&mut found.problems);
        let kept = if found.files.is_empty() {
            Kept::default()
        } else {
            kept::read(&settings.config_dir, &found.repository).unwrap_or_else(|problem| {
                problems.push(problem);
                Kept::default()
            })
        };
        Self { skills, prompts, found, kept, problems, places }
    }

    /// Takes out what somebody has to be asked about.
    pub(super) fn unknown(&self, session: &Ledger) -> Vec<&SupplyFile> {
        let is_unknown = |file: &&SupplyFile| {
            file.brings.is_something() && trust(&file.supply, session, &self.kept.ledger) == Trust::Unknown
        };
        self.found.files.iter().filter(is_unknown).collect()
    }

    /// Adds what may be used to what is configured; of each name the person's own counts, then the nearer.
    pub(super) fn into_supplies(self, session: &Ledger, mut supplies: Supplies) -> (Supplies, Vec<String>) {
        let Self { skills, prompts, found, kept, mut problems, places } = self;
        supplies.skills.extend(skills);
        supplies.prompts.extend(prompts);
        for file in found.files {
            if trust(&file.supply, session, &kept.ledger) != Trust::Trusted {
                continue;
            }
            match file.brings {
                Brings::Config(shown) => {
                    let listed = Variables::Listed(&shown.variables);
                    let config = places.repositories.read(&file.path, &file.text, listed);
                    if !shown.keys.is_empty() {
                        let keys: Vec<String> = shown.keys.iter().cloned().collect();
                        let keys = super::listed(keys.iter(), KEYS_SHOWN);
                        problems.push(format!(
                            "{} names {keys}, which no repository gets: variables that hold keys stay empty in it. Name the \
                             server in your own configuration where it needs one.",
                            file.supply.path
                        ));
                    }
                    supplies.servers.extend(config.servers);
                    supplies.rules.allow.extend(config.rules.allow);
                    supplies.rules.deny.extend(config.rules.deny);
                    supplies.hooks.extend(config.hooks);
                    problems.extend(config.problems.iter().map(|problem| format!("{problem}.")));
                }
                Brings::Skill(skill) => supplies.skills.push(skill),
                Brings::Prompt(prompt) => supplies.prompts.push(prompt),
                Brings::Workflow(supplied) => supplies.approved.add(file.path, file.supply.hash, supplied),
            }
        }
        first_of_each(&mut supplies.servers, |server| server.name.clone());
        first_of_each(&mut supplies.skills, |skill| skill.name.clone());
        first_of_each(&mut supplies.prompts, |prompt| prompt.name.clone());
        (supplies, problems)
    }
}

/// The skills that a session in this folder may use before anybody is asked.
pub(crate) fn known_skills(settings: &KitSettings, cwd: &Path) -> Vec<Skill> {
    let survey = Survey::take(settings, cwd);
    survey.into_supplies(&Ledger::default(), Supplies::default()).0.skills
}

fn own_skills(folder: &Path, problems: &mut Vec<String>) -> Vec<Skill> {
    let names = reading::names(folder, Inside::Anywhere, OWN_MAX);
    let files = names.into_iter().map(|name| folder.join(name).join(SKILL_FILE));
    let read = |path: PathBuf| {
        let text = own(&path, problems)?;
        let folder = path.parent().map(crow_tools::resolve);
        Skill::read(path, folder, &text)
    };
    files.filter_map(read).collect()
}

fn own_prompts(folder: &Path, problems: &mut Vec<String>) -> Vec<PromptFile> {
    let names = reading::names(folder, Inside::Anywhere, OWN_MAX);
    let files = names.into_iter().map(|name| folder.join(name));
    let files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect();
    files.iter().filter_map(|path| PromptFile::read(path, &own(path, problems)?)).collect()
}

fn own(path: &Path, problems: &mut Vec<String>) -> Option<String> {
    match reading::text(path, Inside::Anywhere, OWN_BYTES_MAX) {
        Ok(text) => text,
        Err(why) => {
            problems.push(format!("{} is left out: {why}.", path.display()));
            None
        }
    }
}
