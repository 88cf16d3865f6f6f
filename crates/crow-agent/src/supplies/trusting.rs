//! Trust as a person gives it without a form: the command `/trust`, which shows before it takes a yes, and what the
//! command line needs for the same.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crow_core::{Ledger, Supply, Trust, Word, trust, visible};
use tokio::time::timeout;

use super::asking::Asking;
use super::found::{self, Found, Places, SupplyFile};
use super::kept::{self, Kept};
use super::stock::{State, Stock};
use super::survey::Survey;
use super::{ReadRepository, Supplies};

/// A disk that does not answer, or a question that is open, holds up nobody who stops the turn meanwhile.
const LOOK_WAIT_MAX: Duration = Duration::from_secs(2);

/// What a person says with `/trust`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustOrder {
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

impl Stock {
    /// Does what a person says about the repository, and tells what came of it.
    pub(crate) async fn trust(&self, order: TrustOrder) -> String {
        if self.is_child {
            return "Only a person trusts a repository: not here, where another agent asks. Use `crow-cli trust` in a \
                    terminal.\n"
                .to_owned();
        }
        let Ok(mut state) = timeout(LOOK_WAIT_MAX, self.state.lock()).await else {
            return "A question about this repository is open. Answer it first.\n".to_owned();
        };
        let Ok(Some(survey)) = timeout(LOOK_WAIT_MAX, self.survey(&mut state)).await else {
            return "The repository could not be read. Try again.\n".to_owned();
        };
        match order {
            TrustOrder::Show => show(&mut state, &survey),
            TrustOrder::Yes => self.use_shown(&mut state, survey, true).await,
            TrustOrder::Session => self.use_shown(&mut state, survey, false).await,
            TrustOrder::No => self.leave_all(&mut state, survey).await,
        }
    }

    /// Uses what was shown, if that is all there is: what came later was seen by nobody.
    async fn use_shown(&self, state: &mut State, survey: Survey, until_changed: bool) -> String {
        if state.shown.is_empty() {
            return "Nothing was shown yet. Type /trust and read what it would run.\n".to_owned();
        }
        let open = open(&survey, &state.said);
        let unseen = open.iter().filter(|file| !state.shown.contains(&file.supply));
        let unseen: Vec<String> = unseen.map(|file| visible(&file.supply.path)).collect();
        if !unseen.is_empty() {
            let unseen = super::listed(unseen.iter(), PATHS_SHOWN);
            return format!(
                "Nothing is trusted: {unseen} changed since it was shown. Look again with /trust.\n"
            );
        }
        let about: Vec<Supply> = open.iter().map(|file| file.supply.clone()).collect();
        if about.is_empty() {
            return "What was shown is not there any more.\n".to_owned();
        }
        state.shown.clear();
        self.decide(state, survey, (about, Word::Yes, until_changed)).await;
        let how_long = if until_changed { "until it changes" } else { "in this session" };
        format!("It is used {how_long}.\n")
    }

    async fn leave_all(&self, state: &mut State, survey: Survey) -> String {
        let files = survey.found.files.iter().filter(|file| file.brings.is_something());
        let about: Vec<Supply> = files.map(|file| file.supply.clone()).collect();
        state.shown.clear();
        if about.is_empty() {
            return NOTHING.to_owned();
        }
        self.decide(state, survey, (about, Word::No, true)).await;
        "Nothing of this repository is used until it changes.\n".to_owned()
    }
}

/// Paths that a message names.
const PATHS_SHOWN: usize = 8;

const NOTHING: &str = "This repository supplies nothing that needs trust.\n";

/// Shows what is not trusted, and remembers what was shown.
fn show(state: &mut State, survey: &Survey) -> String {
    let open = open(survey, &state.said);
    state.shown = open.iter().map(|file| file.supply.clone()).collect();
    let trusted = survey.found.files.iter().filter(|file| {
        file.brings.is_something() && trust(&file.supply, &state.said, &survey.kept.ledger) == Trust::Trusted
    });
    let trusted: Vec<String> = trusted.map(|file| visible(&file.supply.path)).collect();
    let trusted = match trusted.is_empty() {
        true => String::new(),
        false => {
            let paths = super::listed(trusted.iter(), PATHS_SHOWN);
            format!("Trusted and used: {paths}. `/trust no` takes that back.\n")
        }
    };
    match (open.is_empty(), trusted.is_empty()) {
        (true, true) => NOTHING.to_owned(),
        (true, false) => trusted,
        (false, _) => {
            let asking = Asking::about(&open, |path| survey.kept.approved(path));
            format!("{}\n{WAYS}{trusted}", asking.text())
        }
    }
}

/// What is not used for want of trust: refused or never looked at.
fn open<'a>(survey: &'a Survey, said: &Ledger) -> Vec<&'a SupplyFile> {
    let is_open = |file: &&SupplyFile| {
        file.brings.is_something() && trust(&file.supply, said, &survey.kept.ledger) != Trust::Trusted
    };
    survey.found.files.iter().filter(is_open).collect()
}

/// What a repository supplies, read once, with what a person said about it, for the command line. Blocks.
#[derive(Debug)]
pub struct RepositoryTrust {
    found: Found,
    kept: Kept,
    config_dir: PathBuf,
}

/// One file that a repository supplies something with.
#[derive(Debug)]
pub struct SuppliedFile {
    /// Its path from the repository's root.
    pub path: String,
    /// The SHA-256 of its content.
    pub sha256: String,
    /// What was said about this content.
    pub trust: Trust,
}

impl RepositoryTrust {
    /// Looks at the repository around a folder; the other side is why what was trusted cannot be read.
    pub fn look(cwd: &Path, config_dir: &Path, repositories: Arc<dyn ReadRepository>) -> (Self, Vec<String>) {
        let places =
            Places { cwd: cwd.to_owned(), config_dir: crow_tools::resolve(config_dir), repositories };
        let mut found = found::look(&places);
        found.files.retain(|file| file.brings.is_something());
        let mut problems = std::mem::take(&mut found.problems);
        let kept = kept::read(&places.config_dir, &found.repository).unwrap_or_else(|problem| {
            problems.push(problem);
            Kept::default()
        });
        (Self { found, kept, config_dir: places.config_dir }, problems)
    }

    /// The repository's root.
    pub fn repository(&self) -> &Path {
        &self.found.repository
    }

    /// The files that supply something.
    pub fn files(&self) -> Vec<SuppliedFile> {
        let files = self.found.files.iter().map(|file| SuppliedFile {
            path: file.supply.path.clone(),
            sha256: file.supply.hash.to_string(),
            trust: trust(&file.supply, &Ledger::default(), &self.kept.ledger),
        });
        files.collect()
    }

    /// What would run of what is not trusted, and its contents; nothing where all is.
    pub fn text(&self) -> Option<String> {
        let open = self.open();
        (!open.is_empty()).then(|| Asking::about(&open, |path| self.kept.approved(path)).text())
    }

    /// Trusts everything as it was read, until it changes.
    pub fn trust(&self) -> io::Result<()> {
        let open = self.open().into_iter();
        kept::keep(&self.config_dir, &self.found.repository, open, Word::Yes)
    }

    fn open(&self) -> Vec<&SupplyFile> {
        let is_open =
            |file: &&SupplyFile| trust(&file.supply, &Ledger::default(), &self.kept.ledger) != Trust::Trusted;
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
    kept::list(&crow_tools::resolve(config_dir))
}

/// Forgets everything that was said about a repository; tells whether there was something. Blocks.
pub fn forget_trust(config_dir: &Path, repository: &Path) -> io::Result<bool> {
    kept::forget(&crow_tools::resolve(config_dir), repository)
}

/// Finds the root of the repository around a folder.
pub fn repository_of(folder: &Path) -> PathBuf {
    found::root(&crow_tools::resolve(folder)).to_owned()
}

impl Supplies {
    /// Says that something is not used.
    pub(super) fn unused(summary: &str, is_child: bool) -> String {
        let what = format!("This repository supplies {summary}, which is not used: you have not trusted it.");
        match is_child {
            true => format!("{what} A child agent asks nobody; use `crow-cli trust` in a terminal."),
            false => {
                format!("{what} Type /trust to see what it would run, or use `crow-cli trust` in a terminal.")
            }
        }
    }
}
