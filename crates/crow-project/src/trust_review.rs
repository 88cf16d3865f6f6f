//! The output and the decisions of the command `/trust`, and the answers that are not stored.

use std::collections::BTreeSet;

use crow_core::{TrustAnswer, TrustLedger, TrustSubject, escape_hidden};

use crate::scan::ProjectConfigFile;
use crate::survey::ConfigSurvey;
use crate::wording::join_items;

/// Paths listed in a message.
const PATHS_SHOWN: usize = 8;

const NOTHING_TO_TRUST: &str = "This repository has nothing that needs trust.\n";

const TRUST_HINT: &str = "Read it first. Then type `/trust yes` to use it until it changes, `/trust session` to use \
                          it in this session, or `/trust no` to ignore it until it changes.\n";

/// The unstored answers about a repository, and what was shown of it. Only shown content can be trusted.
#[derive(Debug, Default)]
pub struct TrustReview {
    answers: TrustLedger,
    /// The files that were shown last.
    shown: BTreeSet<TrustSubject>,
}

impl TrustReview {
    /// Returns the answers.
    pub fn answers(&self) -> &TrustLedger {
        &self.answers
    }

    /// Records an answer about files.
    pub fn record_answers(&mut self, subjects: &[TrustSubject], answer: TrustAnswer) {
        subjects.iter().for_each(|subject| self.answers.record_answer(subject.clone(), answer));
    }

    /// Renders the untrusted content, and remembers what was shown.
    pub fn render_untrusted(&mut self, survey: &ConfigSurvey) -> String {
        let untrusted = survey.untrusted_files(&self.answers);
        self.shown = subjects(&untrusted).into_iter().collect();
        let trusted = survey.trusted_files(&self.answers);
        let trusted = match trusted.is_empty() {
            true => String::new(),
            false => format!("Trusted and used: {}. `/trust no` revokes that.\n", join_paths(&trusted)),
        };
        match (untrusted.is_empty(), trusted.is_empty()) {
            (true, true) => NOTHING_TO_TRUST.to_owned(),
            (true, false) => trusted,
            (false, _) => {
                let question = survey.trust_question(&untrusted);
                format!("{}\n{TRUST_HINT}{trusted}", question.full_text())
            }
        }
    }

    /// Returns the files to trust, which are those that were shown; the error says why there are none.
    pub fn take_shown(&mut self, survey: &ConfigSurvey) -> Result<Vec<TrustSubject>, String> {
        if self.shown.is_empty() {
            return Err("Nothing was shown yet. Type /trust and read what it would run.\n".to_owned());
        }
        let mut untrusted = survey.untrusted_files(&self.answers);
        let shown = subjects(&untrusted);
        untrusted.retain(|file| !self.shown.contains(&file.subject));
        if !untrusted.is_empty() {
            let unseen = join_paths(&untrusted);
            return Err(format!(
                "Nothing is trusted: {unseen} changed since it was shown. Look again with /trust.\n"
            ));
        }
        if shown.is_empty() {
            return Err("The shown content does not exist any more.\n".to_owned());
        }
        self.shown.clear();
        Ok(shown)
    }

    /// Returns all files, to reject them; the error says why there are none.
    pub fn take_all(&mut self, survey: &ConfigSurvey) -> Result<Vec<TrustSubject>, String> {
        self.shown.clear();
        let all = subjects(&survey.files().collect::<Vec<_>>());
        if all.is_empty() { Err(NOTHING_TO_TRUST.to_owned()) } else { Ok(all) }
    }
}

fn subjects(files: &[&ProjectConfigFile]) -> Vec<TrustSubject> {
    files.iter().map(|file| file.subject.clone()).collect()
}

fn join_paths(files: &[&ProjectConfigFile]) -> String {
    let paths: Vec<String> = files.iter().map(|file| escape_hidden(&file.subject.path)).collect();
    join_items(paths.iter(), PATHS_SHOWN)
}
