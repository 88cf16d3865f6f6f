//! What an agent asks the person behind its client. Each question waits for its answer on a task of its own, so that the
//! agent is heard meanwhile.

use agent_client_protocol as sdk;
use sdk::v1::schema as wire;
use tokio::sync::oneshot;

use super::events::{ClientEvent, PermissionAnswer};
use super::{AgentEventHandler, HandlerResult, Responder, log_send_error};
use crate::form::ElicitationOutcome;
use crate::v1;

impl AgentEventHandler {
    pub(super) async fn on_permission_request(
        &self,
        request: wire::RequestPermissionRequest,
        responder: Responder<wire::RequestPermissionResponse>,
    ) -> HandlerResult {
        let (session, question) = v1::parse_permission_request(request);
        let (answer, answered) = oneshot::channel();
        tokio::spawn(async move {
            let taken_back = responder.cancellation();
            let answered = tokio::select! {
                biased;
                () = taken_back.cancelled() => return log_send_error(responder.respond(v1::permission_response(None))),
                answered = answered => answered,
            };
            log_send_error(match answered {
                Ok(PermissionAnswer::Chosen(id)) => responder.respond(v1::permission_response(Some(id))),
                Ok(PermissionAnswer::Nobody { why }) => responder.respond_with_error(v1::no_user_error(&why)),
                Err(_) => responder.respond(v1::permission_response(None)),
            });
        });
        self.forward_event(ClientEvent::Permission { session, question: Box::new(question), answer }).await
    }

    pub(super) async fn on_elicitation(
        &self,
        request: wire::CreateElicitationRequest,
        responder: Responder<wire::CreateElicitationResponse>,
    ) -> HandlerResult {
        let Some(asked) = v1::parse_form_request(request) else {
            log_send_error(
                responder.respond_with_error(v1::no_user_error("this client asks one question at a time")),
            );
            return Ok(());
        };
        let (session, form) = (asked.session.clone(), Box::new(asked.form.clone()));
        let (answer, answered) = oneshot::channel();
        tokio::spawn(async move {
            let taken_back = responder.cancellation();
            let formed = tokio::select! {
                biased;
                () = taken_back.cancelled() => ElicitationOutcome::Cancelled,
                answered = answered => answered.unwrap_or(ElicitationOutcome::Cancelled),
            };
            log_send_error(match v1::to_elicitation_response(asked, formed) {
                Ok(response) => responder.respond(response),
                Err(error) => responder.respond_with_error(error),
            });
        });
        self.forward_event(ClientEvent::Form { session, form, answer }).await
    }
}
