//! Trust without a form: the command `/trust`, which shows content before it can be approved.

use crow_core::{TrustAction, TrustAnswer};
use tokio::time::timeout;

use super::{FileDecision, LOOK_WAIT_MAX, LoaderState, ProjectConfigLoader};
use crate::config_host::ConfigHost;
use crate::survey::ConfigSurvey;

impl<H: ConfigHost> ProjectConfigLoader<H> {
    /// Runs a `/trust` action and returns its answer.
    pub async fn run_trust_action(&self, action: TrustAction) -> String {
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
            TrustAction::Show => state.trust.render_untrusted(&survey),
            TrustAction::Yes => self.trust_shown(&mut state, survey, true).await,
            TrustAction::Session => self.trust_shown(&mut state, survey, false).await,
            TrustAction::No => match state.trust.take_all(&survey) {
                Ok(subjects) => {
                    let decision =
                        FileDecision { subjects, answer: TrustAnswer::Reject, until_changed: true };
                    self.apply_decision(&mut state, survey, decision).await;
                    "Nothing of this repository is used until it changes.\n".to_owned()
                }
                Err(reason) => reason,
            },
        }
    }

    /// Trusts the shown content, unless there is content that was not shown.
    async fn trust_shown(
        &self,
        state: &mut LoaderState,
        survey: ConfigSurvey,
        until_changed: bool,
    ) -> String {
        match state.trust.take_shown(&survey) {
            Ok(subjects) => {
                let decision = FileDecision { subjects, answer: TrustAnswer::Trust, until_changed };
                self.apply_decision(state, survey, decision).await;
                let duration = if until_changed { "until it changes" } else { "in this session" };
                format!("It is used {duration}.\n")
            }
            Err(reason) => reason,
        }
    }
}
