//! Which files of a repository supply something, each read once. Blocks; knows no trust.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crow_core::{ContentHash, TrustSubject, escape_hidden, escape_hidden_start};
use crow_speckit::{SpeckitProject, UntrustedFile};
use sha2::{Digest as _, Sha256};

use super::reading::{self, AllowedRoot};
use super::texts::{PromptFile, SKILL_FILE, Skill};
use super::{RepositoryConfig, RepositoryConfigReader, VariableExpansion, join_items};

/// Larger files are for no person to look through.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Bytes of all files together: a question shows them whole.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// Files of one repository; a person looks through each.
const FILES_MAX: usize = 128;

/// Names looked at in one folder.
const NAMES_MAX: usize = 1000;

/// Keys that a warning names.
const KEYS_SHOWN: usize = 8;

/// Characters of a sentence that repeats what a file says.
const PROBLEM_CHARS_MAX: usize = 1000;

/// Where a repository or a person configures Crow.
pub(super) const CONFIG_FOLDER: &str = ".crow";

/// Files that bring servers and rules, from a folder.
const CONFIGS: [&str; 2] = [".crow/config.yaml", ".mcp.json"];

/// Folders of skills, from a folder: ours, and the two that other agents use.
const SKILL_FOLDERS: [&str; 3] = [".crow/skills", ".agents/skills", ".claude/skills"];

/// The folder of prompt files, from a folder.
const PROMPT_FOLDER: &str = ".crow/prompts";

/// A file of a repository with what it brings.
#[derive(Debug)]
pub(super) struct ProjectConfigFile {
    pub(super) supply: TrustSubject,
    pub(super) path: PathBuf,
    /// The bytes that were hashed.
    pub(super) text: String,
    pub(super) brings: FileContribution,
}

/// What a file brings.
#[derive(Debug)]
pub(super) enum FileContribution {
    /// Servers and rules, with their variables as they are written.
    Config(RepositoryConfig),
    Skill(Skill),
    Prompt(PromptFile),
    /// Something of the Spec Kit workflow.
    Workflow(UntrustedFile),
}

impl FileContribution {
    /// Tells whether there is something to approve.
    pub(super) fn needs_approval(&self) -> bool {
        match self {
            Self::Config(config) => !config.is_empty(),
            Self::Skill(_) | Self::Prompt(_) | Self::Workflow(_) => true,
        }
    }
}

/// What a repository brings along, whoever trusts it.
#[derive(Debug)]
pub(super) struct RepositoryScan {
    /// Its root, spelled without links.
    pub(super) repository: PathBuf,
    /// What counts first comes first.
    pub(super) files: Vec<ProjectConfigFile>,
    /// What was left out, a sentence each.
    pub(super) problems: Vec<String>,
}

/// Where to look.
#[derive(Debug, Clone)]
pub(super) struct ScanLocations {
    pub(super) cwd: PathBuf,
    /// The person's configuration, spelled without links: in a home folder it is no repository's.
    pub(super) config_dir: PathBuf,
    pub(super) repositories: Arc<dyn RepositoryConfigReader>,
}

/// Finds the root of the repository that a folder is in; a folder that is in none is one by itself.
pub(crate) fn repository_root(cwd: &Path) -> &Path {
    cwd.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(cwd)
}

/// Reads what the repository around a folder supplies, in the folder itself and in the root.
pub(super) fn scan_repository(places: &ScanLocations) -> RepositoryScan {
    let cwd = crow_tools::resolve_links(&places.cwd);
    let repository = repository_root(&cwd).to_owned();
    let mut folders = vec![cwd];
    folders.extend(Some(repository.clone()).filter(|root| *root != folders[0]));
    let mut looking = RepositoryScanner {
        places,
        n_bytes: 0,
        found: RepositoryScan { repository, files: Vec::new(), problems: Vec::new() },
    };
    for folder in &folders {
        looking.scan_folder(folder);
    }
    looking.scan_workflow(&folders[0]);
    looking.found
}

struct RepositoryScanner<'a> {
    places: &'a ScanLocations,
    n_bytes: usize,
    found: RepositoryScan,
}

impl RepositoryScanner<'_> {
    fn scan_folder(&mut self, folder: &Path) {
        let is_own = crow_tools::resolve_links(&folder.join(CONFIG_FOLDER)) == self.places.config_dir;
        let is_looked_at = |place: &str| !(is_own && place.starts_with(CONFIG_FOLDER));
        for config in CONFIGS.into_iter().filter(|place| is_looked_at(place)) {
            self.scan_file(folder.join(config), |places, path, text| {
                Some(FileContribution::Config(places.repositories.read_config(
                    path,
                    text,
                    VariableExpansion::AsWritten,
                )))
            });
        }
        for skills in SKILL_FOLDERS.into_iter().filter(|place| is_looked_at(place)) {
            for name in self.list_names(&folder.join(skills)) {
                let with_it = self.skill_folder(&folder.join(skills).join(&name));
                self.scan_file(folder.join(skills).join(name).join(SKILL_FILE), |_, path, text| {
                    Skill::parse_skill(path.to_owned(), with_it, text).map(FileContribution::Skill)
                });
            }
        }
        if is_looked_at(PROMPT_FOLDER) {
            for name in self.list_names(&folder.join(PROMPT_FOLDER)) {
                if name.ends_with(".md") {
                    self.scan_file(folder.join(PROMPT_FOLDER).join(name), |_, path, text| {
                        PromptFile::parse_prompt_file(path, text).map(FileContribution::Prompt)
                    });
                }
            }
        }
    }

    /// Looks for what changes the Spec Kit workflow, in the project around a folder. What lies outside of the repository is
    /// nobody's to approve.
    fn scan_workflow(&mut self, cwd: &Path) {
        let found = SpeckitProject::find_project(cwd, None).ok().flatten();
        for supplied in found.iter().flat_map(crow_speckit::list_untrusted_files) {
            let path = supplied.path.clone();
            self.scan_file(path, |_, _, _| Some(FileContribution::Workflow(supplied)));
        }
    }

    /// Follows a skill's folder to where it is now, once: a link that is laid out later leads nowhere. A folder that is
    /// not among the repository's skills holds more than a skill speaks of, so it is not to be read freely.
    fn skill_folder(&self, folder: &Path) -> Option<PathBuf> {
        let resolved = crow_tools::resolve_links(folder);
        let above = resolved.parent()?;
        let mut inside = above.ancestors().take_while(|folder| folder.starts_with(&self.found.repository));
        let is_among = inside.any(|folder| SKILL_FOLDERS.iter().any(|skills| folder.ends_with(skills)));
        is_among.then_some(resolved)
    }

    fn list_names(&self, folder: &Path) -> Vec<String> {
        reading::list_names(folder, AllowedRoot::Folder(&self.found.repository), NAMES_MAX)
    }

    fn scan_file(
        &mut self,
        path: PathBuf,
        read: impl FnOnce(&ScanLocations, &Path, &str) -> Option<FileContribution>,
    ) {
        let repository = &self.found.repository;
        let shown = path.strip_prefix(repository).unwrap_or(&path).display().to_string();
        let text = match reading::read_bounded_text(&path, AllowedRoot::Folder(repository), FILE_BYTES_MAX) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(why) => return self.report_skipped(&shown, &why.to_string()),
        };
        self.n_bytes += text.len();
        if self.found.files.len() >= FILES_MAX || self.n_bytes > BYTES_MAX {
            return self.report_skipped(
                &shown,
                "there are too many files of its kind, or they are too large together",
            );
        }
        let Some(brings) = read(self.places, &path, &text) else {
            return self.report_skipped(
                &shown,
                "no command can be called so; use letters, digits, `-`, `_` and `.`",
            );
        };
        if let FileContribution::Config(config) = &brings {
            if !config.refused.is_empty() {
                let keys = join_items(config.refused.iter(), KEYS_SHOWN);
                let problem = format!(
                    "{} sets what a repository cannot set, so that is left out: {}.",
                    escape_hidden(&shown),
                    escape_hidden(&keys)
                );
                self.found.problems.push(problem);
            }
            let problems = config.problems.iter();
            self.found
                .problems
                .extend(problems.map(|problem| escape_hidden_start(problem, PROBLEM_CHARS_MAX) + "."));
        }
        let supply = TrustSubject { path: shown, hash: hash_content(text.as_bytes()) };
        self.found.files.push(ProjectConfigFile { supply, path, text, brings });
    }

    fn report_skipped(&mut self, shown: &str, why: &str) {
        self.found.problems.push(format!("{} of the repository is left out: {why}.", escape_hidden(shown)));
    }
}

/// Hashes a content.
pub(crate) fn hash_content(bytes: &[u8]) -> ContentHash {
    ContentHash::new(Sha256::digest(bytes).into())
}
