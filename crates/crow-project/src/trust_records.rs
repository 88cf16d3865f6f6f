//! Stores the user's decisions about content of a repository in a file of the configuration directory that only the
//! user can read, with the approved content, so that changes can be shown. Blocks.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use crow_core::{ContentHash, TrustAnswer, TrustLedger, TrustSubject};
use serde::{Deserialize, Serialize};

use crate::project_records::ProjectRecords;
use crate::scan::ProjectConfigFile;
use crow_files::hash_content;

/// The subdirectory of the configuration directory.
const FOLDER: &str = "trust";

/// Far larger than [`ENTRIES_MAX`] entries of usual files.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Decisions stored for one path: those of a few branches.
const ANSWERS_MAX: usize = 8;

/// Decisions stored for one repository; the oldest are dropped, and asked again.
const ENTRIES_MAX: usize = 1024;

/// The file of one repository.
#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustRecordFile {
    repository: String,
    /// The newest is last.
    entries: Vec<TrustRecordEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct TrustRecordEntry {
    path: String,
    sha256: String,
    word: String,
    /// The content, for the newest approval of each path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// The stored decisions about one repository.
#[derive(Debug, Default)]
pub(crate) struct TrustRecord {
    pub(crate) ledger: TrustLedger,
    file: TrustRecordFile,
}

impl TrustRecord {
    /// Returns the content that was approved last at a path.
    pub(crate) fn approved_text(&self, path: &str) -> Option<&str> {
        let mut entries = self.file.entries.iter().rev();
        entries.find(|entry| entry.path == path && entry.text.is_some())?.text.as_deref()
    }
}

fn trust_records(config_dir: &Path) -> ProjectRecords<'_> {
    ProjectRecords { config_dir, directory: FOLDER, file_bytes_max: FILE_BYTES_MAX }
}

/// Reads the decisions about a repository, or returns why they are invalid.
pub(crate) fn read_trust(config_dir: &Path, repository: &Path) -> Result<TrustRecord, String> {
    let records = trust_records(config_dir);
    let describe_error = |reason: &str| {
        let path = records.path(repository);
        format!(
            "The trust decisions about this repository could not be read, so nothing of it is trusted: {}: {reason}.",
            path.display()
        )
    };
    let file: Option<TrustRecordFile> = records.read(repository).map_err(|reason| describe_error(&reason))?;
    let Some(file) = file else { return Ok(TrustRecord::default()) };
    if file.repository != repository_key(repository) {
        return Err(describe_error("it is about another repository"));
    }
    let mut ledger = TrustLedger::default();
    for entry in &file.entries {
        let answer = TrustAnswer::parse(&entry.word)
            .ok_or_else(|| describe_error("an answer in it is neither yes nor no"))?;
        let sha256 =
            ContentHash::parse(&entry.sha256).ok_or_else(|| describe_error("a hash in it is not valid"))?;
        if entry.text.as_ref().is_some_and(|text| hash_content(text.as_bytes()) != sha256) {
            return Err(describe_error("a content in it does not match its hash"));
        }
        ledger.record_answer(TrustSubject { path: entry.path.clone(), hash: sha256 }, answer);
    }
    Ok(TrustRecord { ledger, file })
}

/// Stores a decision about files.
pub(crate) fn store_decision<'a>(
    config_dir: &Path,
    repository: &Path,
    files: impl Iterator<Item = &'a ProjectConfigFile>,
    answer: TrustAnswer,
) -> io::Result<()> {
    // Another process may have stored a decision meanwhile. An invalid record is replaced.
    let mut file = read_trust(config_dir, repository).map(|record| record.file).unwrap_or_default();
    file.repository = repository_key(repository);
    for ProjectConfigFile { subject, text, .. } in files {
        let sha256 = subject.hash.to_string();
        file.entries.retain(|entry| entry.path != subject.path || entry.sha256 != sha256);
        let is_yes = answer == TrustAnswer::Trust;
        if is_yes {
            let older_entries = file.entries.iter_mut().filter(|entry| entry.path == subject.path);
            older_entries.for_each(|entry| entry.text = None);
        }
        file.entries.push(TrustRecordEntry {
            path: subject.path.clone(),
            sha256,
            word: answer.as_str().to_owned(),
            text: is_yes.then(|| text.clone()),
        });
        forget_oldest(&mut file.entries, &subject.path);
    }
    let n_excess = file.entries.len().saturating_sub(ENTRIES_MAX);
    file.entries.drain(..n_excess);
    trust_records(config_dir).write(repository, &file)
}

/// A repository with stored decisions.
#[derive(Debug, PartialEq, Eq)]
pub struct TrustedRepository {
    /// Its root.
    pub repository: String,
    /// Paths with trusted content.
    pub trusted: Vec<String>,
    /// Paths with rejected content.
    pub rejected: Vec<String>,
}

/// Lists the stored decisions, sorted by the repositories' paths.
pub(crate) fn list_trust(config_dir: &Path) -> Vec<Result<TrustedRepository, String>> {
    let files = trust_records(config_dir).list(|file: &TrustRecordFile| &file.repository).into_iter();
    let repositories = files.map(|file| {
        let record = file?;
        let paths_with_answer = |answer: TrustAnswer| {
            let entries = record.entries.iter().filter(|entry| entry.word == answer.as_str());
            let paths: BTreeSet<String> = entries.map(|entry| entry.path.clone()).collect();
            paths.into_iter().collect()
        };
        let (trusted, rejected) =
            (paths_with_answer(TrustAnswer::Trust), paths_with_answer(TrustAnswer::Reject));
        Ok(TrustedRepository { repository: record.repository, trusted, rejected })
    });
    let mut repositories: Vec<_> = repositories.collect();
    repositories
        .sort_by_key(|entry| entry.as_ref().map(|listed| listed.repository.clone()).map_err(Clone::clone));
    repositories
}

/// Removes the decisions about a repository; returns whether there were any.
pub(crate) fn forget_trust(config_dir: &Path, repository: &Path) -> io::Result<bool> {
    trust_records(config_dir).remove(repository)
}

fn forget_oldest(entries: &mut Vec<TrustRecordEntry>, path: &str) {
    let n_answers = entries.iter().filter(|entry| entry.path == path).count();
    let mut n_excess = n_answers.saturating_sub(ANSWERS_MAX);
    entries.retain(|entry| {
        let is_excess = n_excess > 0 && entry.path == path;
        n_excess -= usize::from(is_excess);
        !is_excess
    });
}

fn repository_key(repository: &Path) -> String {
    repository.display().to_string()
}
