//! Trust without a form: the command `/trust`, which shows content before it can be approved.

use std::time::Duration;

use crow_core::{TrustAction, TrustAnswer, TrustSubject, escape_hidden};
use crow_project::{ConfigSurvey, join_items};
use tokio::time::timeout;

use super::{FileDecision, LoaderState, ProjectConfigLoader};

/// A disk that does not respond, or an open question, must not block the session.
const LOOK_WAIT_MAX: Duration = Duration::from_secs(2);

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
        let untrusted = survey.untrusted_files(&state.session_answers);
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
        let files = survey.files();
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
    let untrusted = survey.untrusted_files(&state.session_answers);
    state.listed_subjects = untrusted.iter().map(|file| file.subject.clone()).collect();
    let trusted: Vec<String> = survey
        .trusted_files(&state.session_answers)
        .iter()
        .map(|file| escape_hidden(&file.subject.path))
        .collect();
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
            let question = survey.trust_question(&untrusted);
            format!("{}\n{TRUST_HINT}{trusted}", question.full_text())
        }
    }
}
