//! Which files of a repository supply something, each read once. Blocks; knows no trust.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crow_core::{ContentHash, Supply, visible, visible_start};
use crow_speckit::{Project, Supplied};
use sha2::{Digest as _, Sha256};

use super::reading::{self, Inside};
use super::texts::{PromptFile, SKILL_FILE, Skill};
use super::{ReadRepository, RepositoryConfig, Variables, listed};

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
pub(super) struct SupplyFile {
    pub(super) supply: Supply,
    pub(super) path: PathBuf,
    /// The bytes that were hashed.
    pub(super) text: String,
    pub(super) brings: Brings,
}

/// What a file brings.
#[derive(Debug)]
pub(super) enum Brings {
    /// Servers and rules, with their variables as they are written.
    Config(RepositoryConfig),
    Skill(Skill),
    Prompt(PromptFile),
    /// Something of the Spec Kit workflow.
    Workflow(Supplied),
}

impl Brings {
    /// Tells whether there is something to approve.
    pub(super) fn is_something(&self) -> bool {
        match self {
            Self::Config(config) => !config.is_empty(),
            Self::Skill(_) | Self::Prompt(_) | Self::Workflow(_) => true,
        }
    }
}

/// What a repository brings along, whoever trusts it.
#[derive(Debug)]
pub(super) struct Found {
    /// Its root, spelled without links.
    pub(super) repository: PathBuf,
    /// What counts first comes first.
    pub(super) files: Vec<SupplyFile>,
    /// What was left out, a sentence each.
    pub(super) problems: Vec<String>,
}

/// Where to look.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) cwd: PathBuf,
    /// The person's configuration, spelled without links: in a home folder it is no repository's.
    pub(super) config_dir: PathBuf,
    pub(super) repositories: Arc<dyn ReadRepository>,
}

/// Finds the root of the repository that a folder is in; a folder that is in none is one by itself.
pub(crate) fn root(cwd: &Path) -> &Path {
    cwd.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(cwd)
}

/// Reads what the repository around a folder supplies, in the folder itself and in the root.
pub(super) fn look(places: &Places) -> Found {
    let cwd = crow_tools::resolve(&places.cwd);
    let repository = root(&cwd).to_owned();
    let mut folders = vec![cwd];
    folders.extend(Some(repository.clone()).filter(|root| *root != folders[0]));
    let mut looking =
        Looking { places, n_bytes: 0, found: Found { repository, files: Vec::new(), problems: Vec::new() } };
    for folder in &folders {
        looking.folder(folder);
    }
    looking.workflow(&folders[0]);
    looking.found
}

struct Looking<'a> {
    places: &'a Places,
    n_bytes: usize,
    found: Found,
}

impl Looking<'_> {
    fn folder(&mut self, folder: &Path) {
        let is_own = crow_tools::resolve(&folder.join(CONFIG_FOLDER)) == self.places.config_dir;
        let is_looked_at = |place: &str| !(is_own && place.starts_with(CONFIG_FOLDER));
        for config in CONFIGS.into_iter().filter(|place| is_looked_at(place)) {
            self.file(folder.join(config), |places, path, text| {
                Some(Brings::Config(places.repositories.read(path, text, Variables::AsWritten)))
            });
        }
        for skills in SKILL_FOLDERS.into_iter().filter(|place| is_looked_at(place)) {
            for name in self.names(&folder.join(skills)) {
                let with_it = self.skill_folder(&folder.join(skills).join(&name));
                self.file(folder.join(skills).join(name).join(SKILL_FILE), |_, path, text| {
                    Skill::read(path.to_owned(), with_it, text).map(Brings::Skill)
                });
            }
        }
        if is_looked_at(PROMPT_FOLDER) {
            for name in self.names(&folder.join(PROMPT_FOLDER)) {
                if name.ends_with(".md") {
                    self.file(folder.join(PROMPT_FOLDER).join(name), |_, path, text| {
                        PromptFile::read(path, text).map(Brings::Prompt)
                    });
                }
            }
        }
    }

    /// Looks for what changes the Spec Kit workflow, in the project around a folder. What lies outside of the repository is
    /// nobody's to approve.
    fn workflow(&mut self, cwd: &Path) {
        let found = Project::find(cwd, None).ok().flatten();
        for supplied in found.iter().flat_map(crow_speckit::supplied) {
            let path = supplied.path.clone();
            self.file(path, |_, _, _| Some(Brings::Workflow(supplied)));
        }
    }

    /// Follows a skill's folder to where it is now, once: a link that is laid out later leads nowhere. A folder that is
    /// not among the repository's skills holds more than a skill speaks of, so it is not to be read freely.
    fn skill_folder(&self, folder: &Path) -> Option<PathBuf> {
        let resolved = crow_tools::resolve(folder);
        let above = resolved.parent()?;
        let mut inside = above.ancestors().take_while(|folder| folder.starts_with(&self.found.repository));
        let is_among = inside.any(|folder| SKILL_FOLDERS.iter().any(|skills| folder.ends_with(skills)));
        is_among.then_some(resolved)
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        reading::names(folder, Inside::Folder(&self.found.repository), NAMES_MAX)
    }

    fn file(&mut self, path: PathBuf, read: impl FnOnce(&Places, &Path, &str) -> Option<Brings>) {
        let repository = &self.found.repository;
        let shown = path.strip_prefix(repository).unwrap_or(&path).display().to_string();
        let text = match reading::text(&path, Inside::Folder(repository), FILE_BYTES_MAX) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(why) => return self.leave_out(&shown, &why.to_string()),
        };
        self.n_bytes += text.len();
        if self.found.files.len() >= FILES_MAX || self.n_bytes > BYTES_MAX {
            return self
                .leave_out(&shown, "there are too many files of its kind, or they are too large together");
        }
        let Some(brings) = read(self.places, &path, &text) else {
            return self
                .leave_out(&shown, "no command can be called so; use letters, digits, `-`, `_` and `.`");
        };
        if let Brings::Config(config) = &brings {
            if !config.refused.is_empty() {
                let keys = listed(config.refused.iter(), KEYS_SHOWN);
                let problem = format!(
                    "{} sets what a repository cannot set, so that is left out: {}.",
                    visible(&shown),
                    visible(&keys)
                );
                self.found.problems.push(problem);
            }
            let problems = config.problems.iter();
            self.found
                .problems
                .extend(problems.map(|problem| visible_start(problem, PROBLEM_CHARS_MAX) + "."));
        }
        let supply = Supply { path: shown, hash: hash(text.as_bytes()) };
        self.found.files.push(SupplyFile { supply, path, text, brings });
    }

    fn leave_out(&mut self, shown: &str, why: &str) {
        self.found.problems.push(format!("{} of the repository is left out: {why}.", visible(shown)));
    }
}

/// Hashes a content.
pub(crate) fn hash(bytes: &[u8]) -> ContentHash {
    ContentHash::new(Sha256::digest(bytes).into())
}
