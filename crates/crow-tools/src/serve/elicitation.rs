//! Asks the client's user for permission, in either way of the protocol: a request while the call waits, or a result
//! that the client answers by calling again.

use std::{collections::BTreeMap, time::Duration};

use rmcp::{
    RoleServer,
    model::{
        CallToolResponse, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationSchema, InputRequest, InputRequiredResult, InputResponses, ProtocolVersion,
    },
    service::RequestContext,
};

use super::convert;

/// A user may take their time; a client that lost the request must not block the call forever.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// The key of the only question.
const QUESTION: &str = "permission";

/// The context of a call, and the client's answers to questions of an earlier attempt.
pub(super) struct PermissionElicitation<'a> {
    pub(super) context: &'a RequestContext<RoleServer>,
    pub(super) answers: InputResponses,
}

impl PermissionElicitation<'_> {
    /// Requests permission; `Err` is the response to send instead of the call's result.
    pub(super) async fn request_permission(&self, title: &str, reason: &str) -> Result<(), CallToolResponse> {
        let rejected = |reason: &str| convert::error_result(&format!("not run: {reason}")).into();
        if !self.can_elicit() {
            return Err(rejected(&format!(
                "it needs permission ({reason}), and this client cannot be asked for it"
            )));
        }
        let question = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: format!("Crow requests permission: {title}. Reason: {reason}. Accept to allow it once."),
            requested_schema: ElicitationSchema::new(BTreeMap::new()),
        };
        let answer = match self.answers.get(QUESTION) {
            Some(answer) => serde_json::from_value::<ElicitResult>(answer.clone()).ok(),
            None if self.answers_by_retry() => {
                let question = InputRequest::Elicitation(ElicitRequest::new(question));
                let questions = BTreeMap::from([(QUESTION.to_owned(), question)]);
                return Err(CallToolResponse::InputRequired(InputRequiredResult::from_input_requests(
                    questions,
                )));
            }
            None => {
                let peer = &self.context.peer;
                let request = peer.create_elicitation_with_timeout(question, Some(ANSWER_TIMEOUT));
                match self.context.ct.run_until_cancelled(request).await {
                    Some(Ok(answer)) => Some(answer),
                    Some(Err(error)) => {
                        return Err(rejected(&format!(
                            "it needs permission, and requesting it failed ({error})"
                        )));
                    }
                    None => return Err(rejected("the call was cancelled")),
                }
            }
        };
        match answer {
            Some(answer) if answer.action == ElicitationAction::Accept => Ok(()),
            Some(_) | None => Err(rejected("the user rejected it")),
        }
    }

    /// Whether the client supports form elicitation; a client without a kind does.
    fn can_elicit(&self) -> bool {
        let capabilities = self.context.client_capabilities();
        let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation);
        elicitation.is_some_and(|capability| capability.form.is_some() || capability.url.is_none())
    }

    /// Whether the client's protocol version requires questions as results.
    fn answers_by_retry(&self) -> bool {
        let version = self.context.protocol_version();
        // Versions are dates.
        version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
    }
}
