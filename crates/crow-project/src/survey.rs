//! Collects all configuration of a user and a repository, with the decisions about it. Blocks. Must not ask the user.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crow_core::{
    HookConfig, PermissionRules, TrustAnswer, TrustLedger, TrustState, TrustSubject, evaluate_trust,
};

use crate::config::ProjectConfig;
use crate::instructions::{self, INSTRUCTIONS_FILE, ProjectInstructions};
use crate::repository_config::{RepositoryConfigReader, VariableExpansion};
use crate::scan::{
    self, FileContribution, ProjectConfigFile, RepositoryLocation, RepositoryScan, ScanLocations,
};
use crate::skill_files::{PromptFile, SKILL_FILE, Skill};
use crate::trust_question::TrustQuestion;
use crate::trust_records::{self, TrustRecord};
use crate::wording::join_items;
use crow_files::AllowedRoot;

/// The user's own files; far more than any user has.
const OWN_MAX: usize = 500;

/// Names in a notice.
const KEYS_SHOWN: usize = 8;

/// Larger texts are too much for a model at once.
const OWN_BYTES_MAX: u64 = 1024 * 1024;

/// The places of the configuration, and what the user configured.
#[derive(Debug, Clone)]
pub struct ConfigSources {
    /// The configuration directory, without links.
    pub config_dir: PathBuf,
    /// Directory of the user's own prompts.
    pub prompts_dir: PathBuf,
    /// Directory of skills in addition to those in the configuration directory.
    pub skills_dir: Option<PathBuf>,
    /// Configured permission rules.
    pub rules: PermissionRules,
    /// The user's hooks, in their order.
    pub hooks: Vec<HookConfig>,
    /// Parses the configuration files of repositories.
    pub repositories: Arc<dyn RepositoryConfigReader>,
}

/// The result of a survey.
#[derive(Debug)]
pub struct ConfigSurvey {
    skills: Vec<Skill>,
    prompts: Vec<PromptFile>,
    instructions: String,
    pub(crate) scan: RepositoryScan,
    pub(crate) trust: TrustRecord,
    /// Problems for the user, one sentence each.
    pub(crate) problems: Vec<String>,
    locations: ScanLocations,
}

impl ConfigSurvey {
    /// Reads the user's files, those of the repository around a directory, and the decisions about them.
    pub fn take_survey(config: &ConfigSources, cwd: &Path) -> Self {
        let locations = ScanLocations {
            location: RepositoryLocation::find(cwd),
            config_dir: config.config_dir.clone(),
            repositories: config.repositories.clone(),
        };
        let mut problems = Vec::new();
        let mut skills = own_skills(&config.config_dir.join("skills"), &mut problems);
        if let Some(directory) = &config.skills_dir {
            skills.extend(own_skills(directory, &mut problems));
        }
        let prompts = own_prompts(&config.prompts_dir, &mut problems);
        let ProjectInstructions { text: instructions, other_files } =
            instructions::read_instructions(&locations.location, &config.config_dir);
        if !other_files.is_empty() {
            let files = join_items(other_files.iter(), KEYS_SHOWN);
            problems.push(format!(
                "Instructions are read from {files}, because there is no {INSTRUCTIONS_FILE}."
            ));
        }
        let mut scan = scan::scan_repository(&locations);
        problems.append(&mut scan.problems);
        let trust = if scan.files.is_empty() {
            TrustRecord::default()
        } else {
            trust_records::read_trust(&config.config_dir, &scan.repository).unwrap_or_else(|problem| {
                problems.push(problem);
                TrustRecord::default()
            })
        };
        Self { skills, prompts, instructions, scan, trust, problems, locations }
    }

    /// Returns the files about which the user must be asked.
    pub fn undecided_files(&self, session: &TrustLedger) -> Vec<&ProjectConfigFile> {
        let is_undecided = |file: &&ProjectConfigFile| {
            file.contribution.needs_approval()
                && evaluate_trust(&file.subject, session, &self.trust.ledger) == TrustState::Unknown
        };
        self.scan.files.iter().filter(is_undecided).collect()
    }

    /// Returns the files about which the user can decide.
    pub fn files(&self) -> impl Iterator<Item = &ProjectConfigFile> {
        self.scan.files.iter().filter(|file| file.contribution.needs_approval())
    }

    /// Returns the files that are not trusted: rejected or undecided.
    pub fn untrusted_files(&self, session: &TrustLedger) -> Vec<&ProjectConfigFile> {
        self.files().filter(|file| !self.is_trusted(file, session)).collect()
    }

    /// Returns the files that are trusted.
    pub fn trusted_files(&self, session: &TrustLedger) -> Vec<&ProjectConfigFile> {
        self.files().filter(|file| self.is_trusted(file, session)).collect()
    }

    fn is_trusted(&self, file: &ProjectConfigFile, session: &TrustLedger) -> bool {
        evaluate_trust(&file.subject, session, &self.trust.ledger) == TrustState::Trusted
    }

    /// Creates the question about files.
    pub fn trust_question(&self, files: &[&ProjectConfigFile]) -> TrustQuestion {
        TrustQuestion::for_files(files, |path| self.trust.approved_text(path))
    }

    /// Stores a decision about files until they change.
    pub fn store_decision(
        &self,
        config_dir: &Path,
        subjects: &[TrustSubject],
        answer: TrustAnswer,
    ) -> io::Result<()> {
        let files = self.scan.files.iter().filter(|file| subjects.contains(&file.subject));
        trust_records::store_decision(config_dir, &self.scan.repository, files, answer)
    }

    /// Adds what may be used to the configuration; of equal names the user's own takes precedence, then the nearer.
    pub fn into_project_config(
        self,
        session: &TrustLedger,
        mut project_config: ProjectConfig,
    ) -> (ProjectConfig, Vec<String>) {
        let Self { skills, prompts, instructions, scan, trust, mut problems, locations } = self;
        project_config.instructions = Some(instructions.into());
        project_config.skills.extend(skills);
        project_config.prompts.extend(prompts);
        for file in scan.files {
            if evaluate_trust(&file.subject, session, &trust.ledger) != TrustState::Trusted {
                continue;
            }
            match file.contribution {
                FileContribution::Config(shown_config) => {
                    let expansion = VariableExpansion::Only(&shown_config.variables);
                    let config = locations.repositories.read_config(&file.path, &file.text, expansion);
                    if !shown_config.secret_variables.is_empty() {
                        let keys: Vec<String> = shown_config.secret_variables.iter().cloned().collect();
                        let keys = join_items(keys.iter(), KEYS_SHOWN);
                        problems.push(format!(
                            "{} refers to {keys}, which a repository does not get: variables that hold keys are \
                             empty in it. Add the server to your own configuration if it needs one.",
                            file.subject.path
                        ));
                    }
                    project_config.servers.extend(config.servers);
                    project_config.rules.allow.extend(config.rules.allow);
                    project_config.rules.deny.extend(config.rules.deny);
                    project_config.hooks.extend(config.hooks);
                    problems.extend(config.problems.iter().map(|problem| format!("{problem}.")));
                }
                FileContribution::Skill(skill) => project_config.skills.push(skill),
                FileContribution::Prompt(prompt) => project_config.prompts.push(prompt),
                FileContribution::Workflow(workflow_file) => {
                    project_config.approved.add_file(file.path, file.subject.hash, workflow_file);
                }
            }
        }
        dedup_by_name(&mut project_config.servers, |server| server.name.clone());
        dedup_by_name(&mut project_config.skills, |skill| skill.name.clone());
        dedup_by_name(&mut project_config.prompts, |prompt| prompt.name.clone());
        (project_config, problems)
    }
}

/// Returns the skills that a session in this directory may use without a question.
pub fn known_skills(config: &ConfigSources, cwd: &Path) -> Vec<Skill> {
    let survey = ConfigSurvey::take_survey(config, cwd);
    survey.into_project_config(&TrustLedger::default(), ProjectConfig::default()).0.skills
}

fn own_skills(directory: &Path, problems: &mut Vec<String>) -> Vec<Skill> {
    let names = crow_files::list_names(directory, AllowedRoot::Anywhere, OWN_MAX);
    let files = names.into_iter().map(|name| directory.join(name).join(SKILL_FILE));
    let read_skill = |path: PathBuf| {
        let text = read_own_file(&path, problems)?;
        let directory = path.parent().map(crow_files::resolve_links);
        Skill::parse_skill(path, directory, &text)
    };
    files.filter_map(read_skill).collect()
}

fn own_prompts(directory: &Path, problems: &mut Vec<String>) -> Vec<PromptFile> {
    let names = crow_files::list_names(directory, AllowedRoot::Anywhere, OWN_MAX);
    let files = names.into_iter().map(|name| directory.join(name));
    let files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    files
        .iter()
        .filter_map(|path| PromptFile::parse_prompt_file(path, &read_own_file(path, problems)?))
        .collect()
}

fn read_own_file(path: &Path, problems: &mut Vec<String>) -> Option<String> {
    match crow_files::read_bounded_text(path, AllowedRoot::Anywhere, OWN_BYTES_MAX) {
        Ok(text) => text,
        Err(reason) => {
            problems.push(format!("{} is ignored: {reason}.", path.display()));
            None
        }
    }
}

/// Keeps the first item of each name.
fn dedup_by_name<T>(items: &mut Vec<T>, name: impl Fn(&T) -> String) {
    let mut names = std::collections::BTreeSet::new();
    items.retain(|item| names.insert(name(item)));
}
