//! Trust without a form: the command `/trust`, which shows content before it can be approved, and functions for the
//! same on the command line.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crow_core::{TrustAnswer, TrustLedger, TrustState, TrustSubject, escape_hidden, evaluate_trust};
use tokio::time::timeout;

use super::config::ProjectConfig;
use super::loader::{FileDecision, LoaderState, ProjectConfigLoader};
use super::scan::{self, ProjectConfigFile, RepositoryScan, ScanLocations};
use super::survey::ConfigSurvey;
use super::trust_question::TrustQuestion;
use super::trust_records::{self, TrustRecord, TrustedRepository};
use super::wording::join_items;
use crate::repository_config::RepositoryConfigReader;

/// A disk that does not respond, or an open question, must not block the session.
const LOOK_WAIT_MAX: Duration = Duration::from_secs(2);

/// An action of the `/trust` command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustAction {
    /// Shows the content and its effects.
    Show,
    /// Trusts the shown content until it changes.
    Yes,
    /// Trusts the shown content in this session.
    Session,
    /// Rejects all content until it changes.
    No,
}

const TRUST_HINT: &str = "Read it first. Then type `/trust yes` to use it until it changes, `/trust session` to use \
                          it in this session, or `/trust no` to ignore it until it changes.\n";

impl ProjectConfigLoader {
    /// Runs a `/trust` action and returns its answer.
    pub(crate) async fn run_trust_action(&self, action: TrustAction) -> String {
        if self.is_child {
            return "Only a person can trust a repository, and this session belongs to another agent. Use `crow-cli \
                    trust` in a terminal.\n"
                .to_owned();
        }
        let Ok(mut state) = timeout(LOOK_WAIT_MAX, self.state.lock()).await else {
            return "A question about this repository is open. Answer it first.\n".to_owned();
        };
        let Ok(Some(survey)) = timeout(LOOK_WAIT_MAX, self.run_survey(&mut state)).await else {
            return "The repository could not be read. Try again.\n".to_owned();
        };
        match action {
            TrustAction::Show => render_untrusted(&mut state, &survey),
            TrustAction::Yes => self.trust_shown(&mut state, survey, true).await,
            TrustAction::Session => self.trust_shown(&mut state, survey, false).await,
            TrustAction::No => self.reject_all(&mut state, survey).await,
        }
    }

    /// Trusts the shown content, unless there is content that was not shown.
    async fn trust_shown(
        &self,
        state: &mut LoaderState,
        survey: ConfigSurvey,
        until_changed: bool,
    ) -> String {
        if state.listed_subjects.is_empty() {
            return "Nothing was shown yet. Type /trust and read what it would run.\n".to_owned();
        }
        let untrusted = untrusted_files(&survey, &state.session_answers);
        let unseen = untrusted.iter().filter(|file| !state.listed_subjects.contains(&file.subject));
        let unseen: Vec<String> = unseen.map(|file| escape_hidden(&file.subject.path)).collect();
        if !unseen.is_empty() {
            let unseen = join_items(unseen.iter(), PATHS_SHOWN);
            return format!(
                "Nothing is trusted: {unseen} changed since it was shown. Look again with /trust.\n"
            );
        }
        let subjects: Vec<TrustSubject> = untrusted.iter().map(|file| file.subject.clone()).collect();
        if subjects.is_empty() {
            return "The shown content does not exist any more.\n".to_owned();
        }
        state.listed_subjects.clear();
        let decision = FileDecision { subjects, answer: TrustAnswer::Trust, until_changed };
        self.apply_decision(state, survey, decision).await;
        let duration = if until_changed { "until it changes" } else { "in this session" };
        format!("It is used {duration}.\n")
    }

    async fn reject_all(&self, state: &mut LoaderState, survey: ConfigSurvey) -> String {
        let files = survey.scan.files.iter().filter(|file| file.contribution.needs_approval());
        let subjects: Vec<TrustSubject> = files.map(|file| file.subject.clone()).collect();
        state.listed_subjects.clear();
        if subjects.is_empty() {
            return NOTHING_TO_TRUST.to_owned();
        }
        let decision = FileDecision { subjects, answer: TrustAnswer::Reject, until_changed: true };
        self.apply_decision(state, survey, decision).await;
        "Nothing of this repository is used until it changes.\n".to_owned()
    }
}

/// Paths listed in a message.
const PATHS_SHOWN: usize = 8;

const NOTHING_TO_TRUST: &str = "This repository has nothing that needs trust.\n";

/// Renders the untrusted content, and remembers what was shown.
fn render_untrusted(state: &mut LoaderState, survey: &ConfigSurvey) -> String {
    let untrusted = untrusted_files(survey, &state.session_answers);
    state.listed_subjects = untrusted.iter().map(|file| file.subject.clone()).collect();
    let trusted = survey.scan.files.iter().filter(|file| {
        file.contribution.needs_approval()
            && evaluate_trust(&file.subject, &state.session_answers, &survey.trust.ledger)
                == TrustState::Trusted
    });
    let trusted: Vec<String> = trusted.map(|file| escape_hidden(&file.subject.path)).collect();
    let trusted = match trusted.is_empty() {
        true => String::new(),
        false => {
            let paths = join_items(trusted.iter(), PATHS_SHOWN);
            format!("Trusted and used: {paths}. `/trust no` revokes that.\n")
        }
    };
    match (untrusted.is_empty(), trusted.is_empty()) {
        (true, true) => NOTHING_TO_TRUST.to_owned(),
        (true, false) => trusted,
        (false, _) => {
            let question = TrustQuestion::for_files(&untrusted, |path| survey.trust.approved_text(path));
            format!("{}\n{TRUST_HINT}{trusted}", question.full_text())
        }
    }
}

/// Returns the files that are not trusted: rejected or undecided.
fn untrusted_files<'a>(
    survey: &'a ConfigSurvey,
    session_answers: &TrustLedger,
) -> Vec<&'a ProjectConfigFile> {
    let is_untrusted = |file: &&ProjectConfigFile| {
        file.contribution.needs_approval()
            && evaluate_trust(&file.subject, session_answers, &survey.trust.ledger) != TrustState::Trusted
    };
    survey.scan.files.iter().filter(is_untrusted).collect()
}

/// The content of a repository, read once, with the decisions about it, for the command line. Blocks.
#[derive(Debug)]
pub struct RepositoryTrust {
    scan: RepositoryScan,
    trust: TrustRecord,
    config_dir: PathBuf,
}

/// One file of a repository, with the decision about it.
#[derive(Debug)]
pub struct RepositoryFileTrust {
    /// Its path from the repository's root.
    pub path: String,
    /// The SHA-256 of its content.
    pub sha256: String,
    /// The decision about this content.
    pub trust: TrustState,
}

impl RepositoryTrust {
    /// Scans the repository around a directory; also returns problems, such as decisions that cannot be read.
    pub fn scan_repository(
        cwd: &Path,
        config_dir: &Path,
        repositories: Arc<dyn RepositoryConfigReader>,
    ) -> (Self, Vec<String>) {
        let locations = ScanLocations {
            cwd: cwd.to_owned(),
            config_dir: crow_files::resolve_links(config_dir),
            repositories,
        };
        let mut scan = scan::scan_repository(&locations);
        scan.files.retain(|file| file.contribution.needs_approval());
        let mut problems = std::mem::take(&mut scan.problems);
        let trust =
            trust_records::read_trust(&locations.config_dir, &scan.repository).unwrap_or_else(|problem| {
                problems.push(problem);
                TrustRecord::default()
            });
        (Self { scan, trust, config_dir: locations.config_dir }, problems)
    }

    /// The repository's root.
    pub fn repository(&self) -> &Path {
        &self.scan.repository
    }

    /// Returns the files that need trust.
    pub fn list_files(&self) -> Vec<RepositoryFileTrust> {
        let files = self.scan.files.iter().map(|file| RepositoryFileTrust {
            path: file.subject.path.clone(),
            sha256: file.subject.hash.to_string(),
            trust: evaluate_trust(&file.subject, &TrustLedger::default(), &self.trust.ledger),
        });
        files.collect()
    }

    /// Describes the effects and contents of untrusted files; `None` if all are trusted.
    pub fn untrusted_text(&self) -> Option<String> {
        let untrusted = self.untrusted_files();
        (!untrusted.is_empty())
            .then(|| TrustQuestion::for_files(&untrusted, |path| self.trust.approved_text(path)).full_text())
    }

    /// Trusts all files with the content that was read, until it changes.
    pub fn trust_all(&self) -> io::Result<()> {
        let untrusted = self.untrusted_files().into_iter();
        trust_records::store_decision(&self.config_dir, &self.scan.repository, untrusted, TrustAnswer::Trust)
    }

    fn untrusted_files(&self) -> Vec<&ProjectConfigFile> {
        let is_untrusted = |file: &&ProjectConfigFile| {
            evaluate_trust(&file.subject, &TrustLedger::default(), &self.trust.ledger) != TrustState::Trusted
        };
        self.scan.files.iter().filter(is_untrusted).collect()
    }
}

/// Lists the repositories with stored decisions, sorted by path; an unreadable record is an error in the list. Blocks.
pub fn list_trust(config_dir: &Path) -> Vec<Result<TrustedRepository, String>> {
    trust_records::list_trust(&crow_files::resolve_links(config_dir))
}

/// Removes all decisions about a repository; returns whether there were any. Blocks.
pub fn forget_trust(config_dir: &Path, repository: &Path) -> io::Result<bool> {
    trust_records::forget_trust(&crow_files::resolve_links(config_dir), repository)
}

/// Finds the root of the repository around a directory.
pub fn find_repository_root(directory: &Path) -> PathBuf {
    scan::repository_root(&crow_files::resolve_links(directory)).to_owned()
}

impl ProjectConfig {
    /// Returns the notice that content is not used.
    pub(super) fn unused_notice(summary: &str, is_child: bool) -> String {
        let notice = format!("This repository has {summary}, not used because you have not trusted it.");
        match is_child {
            true => format!("{notice} A child agent cannot ask you; use `crow-cli trust` in a terminal."),
            false => {
                format!(
                    "{notice} Type /trust to see what it would run, or use `crow-cli trust` in a terminal."
                )
            }
        }
    }
}
