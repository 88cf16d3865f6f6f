//! Trust as a person gives it without a form: the command `/trust`, which shows before it takes a yes, and what the
//! command line needs for the same.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crow_core::{TrustAnswer, TrustLedger, TrustState, TrustSubject, escape_hidden, evaluate_trust};
use tokio::time::timeout;

use super::asking::TrustQuestion;
use super::found::{self, ProjectConfigFile, RepositoryScan, ScanLocations};
use super::kept::{self, TrustRecord};
use super::stock::{LoaderState, ProjectConfigLoader};
use super::survey::ConfigSurvey;
use super::{ProjectConfig, RepositoryConfigReader};

/// A disk that does not answer, or a question that is open, holds up nobody who stops the turn meanwhile.
const LOOK_WAIT_MAX: Duration = Duration::from_secs(2);

/// What a person says with `/trust`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustAction {
    /// Show what there is, and what it would run.
    Show,
    /// What was shown may be used, until it changes.
    Yes,
    /// What was shown may be used in this session.
    Session,
    /// Nothing may be used, until it changes.
    No,
}

const WAYS: &str = "Read it first. Then `/trust yes` uses it until it changes, `/trust session` in this session, and `/trust no` \
                    leaves it alone until it changes.\n";

impl ProjectConfigLoader {
    /// Does what a person says about the repository, and tells what came of it.
    pub(crate) async fn run_trust_action(&self, order: TrustAction) -> String {
        if self.is_child {
            return "Only a person trusts a repository: not here, where another agent asks. Use `crow-cli trust` in a \
                    terminal.\n"
                .to_owned();
        }
        let Ok(mut state) = timeout(LOOK_WAIT_MAX, self.state.lock()).await else {
            return "A question about this repository is open. Answer it first.\n".to_owned();
        };
        let Ok(Some(survey)) = timeout(LOOK_WAIT_MAX, self.run_survey(&mut state)).await else {
            return "The repository could not be read. Try again.\n".to_owned();
        };
        match order {
            TrustAction::Show => render_untrusted(&mut state, &survey),
            TrustAction::Yes => self.trust_shown(&mut state, survey, true).await,
            TrustAction::Session => self.trust_shown(&mut state, survey, false).await,
            TrustAction::No => self.reject_all(&mut state, survey).await,
        }
    }

    /// Uses what was shown, if that is all there is: what came later was seen by nobody.
    async fn trust_shown(
        &self,
        state: &mut LoaderState,
        survey: ConfigSurvey,
        until_changed: bool,
    ) -> String {
        if state.shown.is_empty() {
            return "Nothing was shown yet. Type /trust and read what it would run.\n".to_owned();
        }
        let open = untrusted_files(&survey, &state.said);
        let unseen = open.iter().filter(|file| !state.shown.contains(&file.supply));
        let unseen: Vec<String> = unseen.map(|file| escape_hidden(&file.supply.path)).collect();
        if !unseen.is_empty() {
            let unseen = super::join_items(unseen.iter(), PATHS_SHOWN);
            return format!(
                "Nothing is trusted: {unseen} changed since it was shown. Look again with /trust.\n"
            );
        }
        let about: Vec<TrustSubject> = open.iter().map(|file| file.supply.clone()).collect();
        if about.is_empty() {
            return "What was shown is not there any more.\n".to_owned();
        }
        state.shown.clear();
        self.apply_decision(state, survey, (about, TrustAnswer::Yes, until_changed)).await;
        let how_long = if until_changed { "until it changes" } else { "in this session" };
        format!("It is used {how_long}.\n")
    }

    async fn reject_all(&self, state: &mut LoaderState, survey: ConfigSurvey) -> String {
        let files = survey.found.files.iter().filter(|file| file.brings.needs_approval());
        let about: Vec<TrustSubject> = files.map(|file| file.supply.clone()).collect();
        state.shown.clear();
        if about.is_empty() {
            return NOTHING.to_owned();
        }
        self.apply_decision(state, survey, (about, TrustAnswer::No, true)).await;
        "Nothing of this repository is used until it changes.\n".to_owned()
    }
}

/// Paths that a message names.
const PATHS_SHOWN: usize = 8;

const NOTHING: &str = "This repository supplies nothing that needs trust.\n";

/// Shows what is not trusted, and remembers what was shown.
fn render_untrusted(state: &mut LoaderState, survey: &ConfigSurvey) -> String {
    let open = untrusted_files(survey, &state.said);
    state.shown = open.iter().map(|file| file.supply.clone()).collect();
    let trusted = survey.found.files.iter().filter(|file| {
        file.brings.needs_approval()
            && evaluate_trust(&file.supply, &state.said, &survey.kept.ledger) == TrustState::Trusted
    });
    let trusted: Vec<String> = trusted.map(|file| escape_hidden(&file.supply.path)).collect();
    let trusted = match trusted.is_empty() {
        true => String::new(),
        false => {
            let paths = super::join_items(trusted.iter(), PATHS_SHOWN);
            format!("Trusted and used: {paths}. `/trust no` takes that back.\n")
        }
    };
    match (open.is_empty(), trusted.is_empty()) {
        (true, true) => NOTHING.to_owned(),
        (true, false) => trusted,
        (false, _) => {
            let asking = TrustQuestion::for_files(&open, |path| survey.kept.approved_text(path));
            format!("{}\n{WAYS}{trusted}", asking.full_text())
        }
    }
}

/// What is not used for want of trust: refused or never looked at.
fn untrusted_files<'a>(survey: &'a ConfigSurvey, said: &TrustLedger) -> Vec<&'a ProjectConfigFile> {
    let is_open = |file: &&ProjectConfigFile| {
        file.brings.needs_approval()
            && evaluate_trust(&file.supply, said, &survey.kept.ledger) != TrustState::Trusted
    };
    survey.found.files.iter().filter(is_open).collect()
}

/// What a repository supplies, read once, with what a person said about it, for the command line. Blocks.
#[derive(Debug)]
pub struct RepositoryTrust {
    found: RepositoryScan,
    kept: TrustRecord,
    config_dir: PathBuf,
}

/// One file that a repository supplies something with.
#[derive(Debug)]
pub struct RepositoryFileTrust {
    /// Its path from the repository's root.
    pub path: String,
    /// The SHA-256 of its content.
    pub sha256: String,
    /// What was said about this content.
    pub trust: TrustState,
}

impl RepositoryTrust {
    /// Looks at the repository around a folder; the other side is why what was trusted cannot be read.
    pub fn scan_repository(
        cwd: &Path,
        config_dir: &Path,
        repositories: Arc<dyn RepositoryConfigReader>,
    ) -> (Self, Vec<String>) {
        let places = ScanLocations {
            cwd: cwd.to_owned(),
            config_dir: crow_tools::resolve_links(config_dir),
            repositories,
        };
        let mut found = found::scan_repository(&places);
        found.files.retain(|file| file.brings.needs_approval());
        let mut problems = std::mem::take(&mut found.problems);
        let kept = kept::read_trust(&places.config_dir, &found.repository).unwrap_or_else(|problem| {
            problems.push(problem);
            TrustRecord::default()
        });
        (Self { found, kept, config_dir: places.config_dir }, problems)
    }

    /// The repository's root.
    pub fn repository(&self) -> &Path {
        &self.found.repository
    }

    /// The files that supply something.
    pub fn list_files(&self) -> Vec<RepositoryFileTrust> {
        let files = self.found.files.iter().map(|file| RepositoryFileTrust {
            path: file.supply.path.clone(),
            sha256: file.supply.hash.to_string(),
            trust: evaluate_trust(&file.supply, &TrustLedger::default(), &self.kept.ledger),
        });
        files.collect()
    }

    /// What would run of what is not trusted, and its contents; nothing where all is.
    pub fn untrusted_text(&self) -> Option<String> {
        let open = self.untrusted_files();
        (!open.is_empty())
            .then(|| TrustQuestion::for_files(&open, |path| self.kept.approved_text(path)).full_text())
    }

    /// Trusts everything as it was read, until it changes.
    pub fn trust_all(&self) -> io::Result<()> {
        let open = self.untrusted_files().into_iter();
        kept::store_decision(&self.config_dir, &self.found.repository, open, TrustAnswer::Yes)
    }

    fn untrusted_files(&self) -> Vec<&ProjectConfigFile> {
        let is_open = |file: &&ProjectConfigFile| {
            evaluate_trust(&file.supply, &TrustLedger::default(), &self.kept.ledger) != TrustState::Trusted
        };
        self.found.files.iter().filter(is_open).collect()
    }
}

/// A repository about which something was said.
#[derive(Debug, PartialEq, Eq)]
pub struct TrustedRepository {
    /// Its root.
    pub repository: String,
    /// Paths with a content that is trusted.
    pub trusted: Vec<String>,
    /// Paths with a content that is never to be used.
    pub refused: Vec<String>,
}

/// Lists the repositories about which something was said, by their paths; what cannot be read is said instead. Blocks.
pub fn list_trust(config_dir: &Path) -> Vec<Result<TrustedRepository, String>> {
    kept::list_trust(&crow_tools::resolve_links(config_dir))
}

/// Forgets everything that was said about a repository; tells whether there was something. Blocks.
pub fn forget_trust(config_dir: &Path, repository: &Path) -> io::Result<bool> {
    kept::forget_trust(&crow_tools::resolve_links(config_dir), repository)
}

/// Finds the root of the repository around a folder.
pub fn find_repository_root(folder: &Path) -> PathBuf {
    found::repository_root(&crow_tools::resolve_links(folder)).to_owned()
}

impl ProjectConfig {
    /// Says that something is not used.
    pub(super) fn unused_notice(summary: &str, is_child: bool) -> String {
        let what = format!("This repository supplies {summary}, which is not used: you have not trusted it.");
        match is_child {
            true => format!("{what} A child agent asks nobody; use `crow-cli trust` in a terminal."),
            false => {
                format!("{what} Type /trust to see what it would run, or use `crow-cli trust` in a terminal.")
            }
        }
    }
}
