//! The trust in a repository, for the command line.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crow_core::{TrustAnswer, TrustLedger, TrustState, evaluate_trust};

use crate::repository_config::RepositoryConfigReader;
use crate::scan::{self, ProjectConfigFile, RepositoryLocation, RepositoryScan, ScanLocations};
use crate::trust_question::TrustQuestion;
use crate::trust_records::{self, TrustRecord, TrustedRepository};

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
            location: RepositoryLocation::find(cwd),
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
