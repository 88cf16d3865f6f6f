//! Finds the files of a repository that need trust, and reads each one once. Blocks. Must not know what is trusted.

use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crow_core::{TrustSubject, escape_hidden, escape_hidden_start};
use crow_speckit::{SpeckitProject, UntrustedFile};

use crate::repository_config::{RepositoryConfig, RepositoryConfigReader, VariableExpansion};
use crate::skill_files::{PromptFile, SKILL_FILE, Skill};
use crate::wording::join_items;
use crow_files::AllowedRoot;

/// Larger files cannot be reviewed.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Total size of all files: a question shows them in full.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// Files of one repository; a user reviews each of them.
const FILES_MAX: usize = 128;

/// Names read in one directory.
const NAMES_MAX: usize = 1000;

/// Keys listed in a warning.
const KEYS_SHOWN: usize = 8;

/// Characters of a message with content of a file.
const PROBLEM_CHARS_MAX: usize = 1000;

/// The configuration directory of a repository or a home directory.
pub(crate) const CONFIG_DIRECTORY: &str = ".crow";

/// Configuration files, relative to a directory.
const CONFIGS: [&str; 2] = [".crow/config.yaml", ".mcp.json"];

/// Skill directories, relative to a directory: Crow's, and the two of other agents.
const SKILL_DIRECTORIES: [&str; 3] = [".crow/skills", ".agents/skills", ".claude/skills"];

/// The directory of prompt files, relative to a directory.
const PROMPT_DIRECTORY: &str = ".crow/prompts";

/// A file of a repository with its content.
#[derive(Debug)]
pub struct ProjectConfigFile {
    pub subject: TrustSubject,
    pub(crate) path: PathBuf,
    /// The hashed bytes.
    pub(crate) text: String,
    pub(crate) contribution: FileContribution,
}

/// The content of a file.
#[derive(Debug)]
pub(crate) enum FileContribution {
    /// Servers and rules, with unexpanded variables.
    Config(RepositoryConfig),
    Skill(Skill),
    Prompt(PromptFile),
    /// A file of the Spec Kit workflow.
    Workflow(UntrustedFile),
}

impl FileContribution {
    /// Whether there is anything to approve.
    pub(crate) fn needs_approval(&self) -> bool {
        match self {
            Self::Config(config) => !config.is_empty(),
            Self::Skill(_) | Self::Prompt(_) | Self::Workflow(_) => true,
        }
    }
}

/// The content of a repository, trusted or not.
#[derive(Debug)]
pub(crate) struct RepositoryScan {
    /// Its root, without links.
    pub(crate) repository: PathBuf,
    /// In order of precedence.
    pub(crate) files: Vec<ProjectConfigFile>,
    /// Problems and skipped files, one sentence each.
    pub(crate) problems: Vec<String>,
}

/// The directories to scan.
#[derive(Debug, Clone)]
pub(crate) struct ScanLocations {
    pub(crate) location: RepositoryLocation,
    /// The user's configuration directory, without links: in a home directory it is not part of a repository.
    pub(crate) config_dir: PathBuf,
    pub(crate) repositories: Arc<dyn RepositoryConfigReader>,
}

/// A working directory and the root of the repository around it, without links.
#[derive(Debug, Clone)]
pub(crate) struct RepositoryLocation {
    pub(crate) cwd: PathBuf,
    pub(crate) root: PathBuf,
}

impl RepositoryLocation {
    pub(crate) fn find(cwd: &Path) -> Self {
        let cwd = crow_files::resolve_links(cwd);
        let root = repository_root(&cwd).to_owned();
        Self { cwd, root }
    }
}

/// Returns the root of the repository around a directory; without a repository, the directory itself.
pub fn repository_root(cwd: &Path) -> &Path {
    cwd.ancestors().find(|directory| directory.join(".git").exists()).unwrap_or(cwd)
}

/// Reads the content of the repository around a directory, in the directory itself and in the root.
pub(crate) fn scan_repository(locations: &ScanLocations) -> RepositoryScan {
    let RepositoryLocation { cwd, root } = &locations.location;
    let repository = root.clone();
    let directories = iter::once(cwd).chain(Some(root).filter(|root| *root != cwd));
    let mut scanner = RepositoryScanner {
        locations,
        n_bytes: 0,
        scan: RepositoryScan { repository, files: Vec::new(), problems: Vec::new() },
    };
    for directory in directories {
        scanner.scan_folder(directory);
    }
    scanner.scan_workflow(cwd);
    scanner.scan
}

struct RepositoryScanner<'a> {
    locations: &'a ScanLocations,
    n_bytes: usize,
    scan: RepositoryScan,
}

impl RepositoryScanner<'_> {
    fn scan_folder(&mut self, directory: &Path) {
        let is_user_config =
            crow_files::resolve_links(&directory.join(CONFIG_DIRECTORY)) == self.locations.config_dir;
        let is_scanned =
            |relative_path: &str| !(is_user_config && relative_path.starts_with(CONFIG_DIRECTORY));
        for config in CONFIGS.into_iter().filter(|relative_path| is_scanned(relative_path)) {
            self.scan_file(directory.join(config), |locations, path, text| {
                Some(FileContribution::Config(locations.repositories.read_config(
                    path,
                    text,
                    VariableExpansion::AsWritten,
                )))
            });
        }
        for skills in SKILL_DIRECTORIES.into_iter().filter(|relative_path| is_scanned(relative_path)) {
            for name in self.list_names(&directory.join(skills)) {
                let skill_directory = self.skill_folder(&directory.join(skills).join(&name));
                self.scan_file(directory.join(skills).join(name).join(SKILL_FILE), |_, path, text| {
                    Skill::parse_skill(path.to_owned(), skill_directory, text).map(FileContribution::Skill)
                });
            }
        }
        if is_scanned(PROMPT_DIRECTORY) {
            for name in self.list_names(&directory.join(PROMPT_DIRECTORY)) {
                if name.ends_with(".md") {
                    self.scan_file(directory.join(PROMPT_DIRECTORY).join(name), |_, path, text| {
                        PromptFile::parse_prompt_file(path, text).map(FileContribution::Prompt)
                    });
                }
            }
        }
    }

    /// Scans the Spec Kit files of the project around a directory. Files outside of the repository cannot be approved.
    fn scan_workflow(&mut self, cwd: &Path) {
        let project = SpeckitProject::find_project(cwd, None).ok().flatten();
        for file in project.iter().flat_map(crow_speckit::list_untrusted_files) {
            let path = file.path.clone();
            self.scan_file(path, |_, _, _| Some(FileContribution::Workflow(file)));
        }
    }

    /// Resolves a skill's directory once, so that a link created later has no effect. A directory outside of the
    /// repository's skill directories is not readable without permission, since it has more than the skill.
    fn skill_folder(&self, directory: &Path) -> Option<PathBuf> {
        let resolved = crow_files::resolve_links(directory);
        let parent = resolved.parent()?;
        let mut ancestors =
            parent.ancestors().take_while(|directory| directory.starts_with(&self.scan.repository));
        let is_in_skills =
            ancestors.any(|directory| SKILL_DIRECTORIES.iter().any(|skills| directory.ends_with(skills)));
        is_in_skills.then_some(resolved)
    }

    fn list_names(&self, directory: &Path) -> Vec<String> {
        crow_files::list_names(directory, AllowedRoot::Folder(&self.scan.repository), NAMES_MAX)
    }

    fn scan_file(
        &mut self,
        path: PathBuf,
        parse: impl FnOnce(&ScanLocations, &Path, &str) -> Option<FileContribution>,
    ) {
        let repository = &self.scan.repository;
        let display_path = path.strip_prefix(repository).unwrap_or(&path).display().to_string();
        let text = match crow_files::read_bounded_text(&path, AllowedRoot::Folder(repository), FILE_BYTES_MAX)
        {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(reason) => return self.report_skipped(&display_path, &reason.to_string()),
        };
        self.n_bytes += text.len();
        if self.scan.files.len() >= FILES_MAX || self.n_bytes > BYTES_MAX {
            return self.report_skipped(
                &display_path,
                "there are too many such files, or they are too large in total",
            );
        }
        let Some(contribution) = parse(self.locations, &path, &text) else {
            return self.report_skipped(
                &display_path,
                "the name is not valid for a command; use letters, digits, `-`, `_` and `.`",
            );
        };
        if let FileContribution::Config(config) = &contribution {
            if !config.rejected_keys.is_empty() {
                let keys = join_items(config.rejected_keys.iter(), KEYS_SHOWN);
                let problem = format!(
                    "{} sets keys that a repository cannot set, which are ignored: {}.",
                    escape_hidden(&display_path),
                    escape_hidden(&keys)
                );
                self.scan.problems.push(problem);
            }
            let problems = config.problems.iter();
            self.scan
                .problems
                .extend(problems.map(|problem| escape_hidden_start(problem, PROBLEM_CHARS_MAX) + "."));
        }
        let subject = TrustSubject { path: display_path, hash: crow_files::hash_content(text.as_bytes()) };
        self.scan.files.push(ProjectConfigFile { subject, path, text, contribution });
    }

    fn report_skipped(&mut self, display_path: &str, reason: &str) {
        self.scan
            .problems
            .push(format!("{} of the repository is ignored: {reason}.", escape_hidden(display_path)));
    }
}
