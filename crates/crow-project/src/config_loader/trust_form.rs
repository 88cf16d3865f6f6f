//! Asks whether content of a repository may be used, only in a form: a client may answer permission requests
//! automatically.

use crow_acp::{Client, ElicitationChoice, ElicitationForm, ElicitationOutcome, FormSubject};
use crow_core::SessionId;
use tokio_util::sync::CancellationToken;

use crate::trust_question::TrustQuestion;

/// Size of a text that a dialog can show; a longer one is shown in the session or on the command line.
const FORM_BYTES_MAX: usize = 32 * 1024;

/// The answers; the first and the last reject, since a client that fills in forms automatically takes one of these.
const NOT_NOW: &str = "Not in this session";
const THIS_SESSION: &str = "Use in this session";
const UNTIL_CHANGED: &str = "Use until it changes";
const NEVER: &str = "Never, until it changes";

/// The user's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TrustDecision {
    /// Use it until it changes, or in this session only.
    Use {
        until_changed: bool,
    },
    Reject {
        until_changed: bool,
    },
    /// The question was closed, or the turn cancelled.
    Closed,
    /// The client cannot show the form.
    NotAsked,
}

/// Asks in a form, if the client supports forms and the text is short enough.
pub(super) async fn ask_user(
    question: &TrustQuestion,
    client: &Client,
    session: &SessionId,
    cancel: &CancellationToken,
) -> TrustDecision {
    let message = question.full_text();
    if message.len() > FORM_BYTES_MAX {
        return TrustDecision::NotAsked;
    }
    let options = [
        (NOT_NOW, "The next session asks again."),
        (THIS_SESSION, ""),
        (UNTIL_CHANGED, "For exactly this content in this repository."),
        (NEVER, "This content is not asked about again."),
    ];
    let choice = |(label, meaning): (&str, &str)| ElicitationChoice {
        label: label.into(),
        description: meaning.into(),
    };
    let options = options.into_iter().map(choice).collect();
    let form = ElicitationForm { message, options, free_text: false, subject: FormSubject::Trust };
    match client.elicit_form(session, &form, cancel).await {
        ElicitationOutcome::Accepted(label) => match label.as_str() {
            THIS_SESSION => TrustDecision::Use { until_changed: false },
            UNTIL_CHANGED => TrustDecision::Use { until_changed: true },
            NEVER => TrustDecision::Reject { until_changed: true },
            _ => TrustDecision::Reject { until_changed: false },
        },
        ElicitationOutcome::Declined => TrustDecision::Reject { until_changed: false },
        ElicitationOutcome::Cancelled => TrustDecision::Closed,
        ElicitationOutcome::Unavailable { reason } => {
            tracing::info!(%reason, "the user could not be asked about a repository");
            TrustDecision::NotAsked
        }
    }
}
