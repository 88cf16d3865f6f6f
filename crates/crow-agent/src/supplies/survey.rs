//! All there is to use at one moment, and who trusts it: the person's own, the repository's, and what was said to it.
//! Blocks; asks nobody.

use std::path::{Path, PathBuf};

use crow_core::{TrustLedger, TrustState, evaluate_trust};

use super::found::{self, FileContribution, ProjectConfigFile, RepositoryScan, ScanLocations};
use super::kept::{self, TrustRecord};
use super::reading::{self, AllowedRoot};
use super::texts::{PromptFile, SKILL_FILE, Skill};
use super::{ProjectConfig, VariableExpansion, dedup_by_name};
use crate::kit::AgentConfig;

/// The person's own files; far more than anyone has.
const OWN_MAX: usize = 500;

/// Names that a notice shows.
const KEYS_SHOWN: usize = 8;

/// Larger texts are none that a model should read at once.
const OWN_BYTES_MAX: u64 = 1024 * 1024;

/// What there is to use.
#[derive(Debug)]
pub(super) struct ConfigSurvey {
    skills: Vec<Skill>,
    prompts: Vec<PromptFile>,
    pub(super) found: RepositoryScan,
    pub(super) kept: TrustRecord,
    /// What the person should know, a sentence each.
    pub(super) problems: Vec<String>,
    places: ScanLocations,
}

impl ConfigSurvey {
    /// Looks at the person's files, at those of the repository around a folder, and at what was said to them.
    pub(super) fn take_survey(settings: &AgentConfig, cwd: &Path) -> Self {
        let places = ScanLocations {
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
        let mut found = found::scan_repository(&places);
        problems.append(&mut found.problems);
        let kept = if found.files.is_empty() {
            TrustRecord::default()
        } else {
            kept::read_trust(&settings.config_dir, &found.repository).unwrap_or_else(|problem| {
                problems.push(problem);
                TrustRecord::default()
            })
        };
        Self { skills, prompts, found, kept, problems, places }
    }

    /// Takes out what somebody has to be asked about.
    pub(super) fn undecided_files(&self, session: &TrustLedger) -> Vec<&ProjectConfigFile> {
        let is_unknown = |file: &&ProjectConfigFile| {
            file.brings.needs_approval()
                && evaluate_trust(&file.supply, session, &self.kept.ledger) == TrustState::Unknown
        };
        self.found.files.iter().filter(is_unknown).collect()
    }

    /// Adds what may be used to what is configured; of each name the person's own counts, then the nearer.
    pub(super) fn into_project_config(
        self,
        session: &TrustLedger,
        mut supplies: ProjectConfig,
    ) -> (ProjectConfig, Vec<String>) {
        let Self { skills, prompts, found, kept, mut problems, places } = self;
        supplies.skills.extend(skills);
        supplies.prompts.extend(prompts);
        for file in found.files {
            if evaluate_trust(&file.supply, session, &kept.ledger) != TrustState::Trusted {
                continue;
            }
            match file.brings {
                FileContribution::Config(shown) => {
                    let listed = VariableExpansion::Listed(&shown.variables);
                    let config = places.repositories.read_config(&file.path, &file.text, listed);
                    if !shown.keys.is_empty() {
                        let keys: Vec<String> = shown.keys.iter().cloned().collect();
                        let keys = super::join_items(keys.iter(), KEYS_SHOWN);
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
                FileContribution::Skill(skill) => supplies.skills.push(skill),
                FileContribution::Prompt(prompt) => supplies.prompts.push(prompt),
                FileContribution::Workflow(supplied) => {
                    supplies.approved.add_file(file.path, file.supply.hash, supplied);
                }
            }
        }
        dedup_by_name(&mut supplies.servers, |server| server.name.clone());
        dedup_by_name(&mut supplies.skills, |skill| skill.name.clone());
        dedup_by_name(&mut supplies.prompts, |prompt| prompt.name.clone());
        (supplies, problems)
    }
}

/// The skills that a session in this folder may use before anybody is asked.
pub(crate) fn known_skills(settings: &AgentConfig, cwd: &Path) -> Vec<Skill> {
    let survey = ConfigSurvey::take_survey(settings, cwd);
    survey.into_project_config(&TrustLedger::default(), ProjectConfig::default()).0.skills
}

fn own_skills(folder: &Path, problems: &mut Vec<String>) -> Vec<Skill> {
    let names = reading::list_names(folder, AllowedRoot::Anywhere, OWN_MAX);
    let files = names.into_iter().map(|name| folder.join(name).join(SKILL_FILE));
    let read = |path: PathBuf| {
        let text = read_own_file(&path, problems)?;
        let folder = path.parent().map(crow_tools::resolve_links);
        Skill::parse_skill(path, folder, &text)
    };
    files.filter_map(read).collect()
}

fn own_prompts(folder: &Path, problems: &mut Vec<String>) -> Vec<PromptFile> {
    let names = reading::list_names(folder, AllowedRoot::Anywhere, OWN_MAX);
    let files = names.into_iter().map(|name| folder.join(name));
    let files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect();
    files
        .iter()
        .filter_map(|path| PromptFile::parse_prompt_file(path, &read_own_file(path, problems)?))
        .collect()
}

fn read_own_file(path: &Path, problems: &mut Vec<String>) -> Option<String> {
    match reading::read_bounded_text(path, AllowedRoot::Anywhere, OWN_BYTES_MAX) {
        Ok(text) => text,
        Err(why) => {
            problems.push(format!("{} is left out: {why}.", path.display()));
            None
        }
    }
}
