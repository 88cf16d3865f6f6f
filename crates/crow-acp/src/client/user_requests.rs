//! Questions of an agent to the user of its client. Each waits for its answer on its own task, so that the agent's
//! other messages are handled meanwhile.

use agent_client_protocol as sdk;
use sdk::v1::schema as wire;
use tokio::sync::oneshot;

use super::access::{Responder, log_send_error};
use super::events::ClientEvent;
use super::{AgentEventHandler, HandlerResult};
use crate::form::ElicitationOutcome;
use crate::v1;

impl AgentEventHandler {
    pub(super) async fn on_permission_request(
        &self,
        mut request: wire::RequestPermissionRequest,
        responder: Responder<wire::RequestPermissionResponse>,
    ) -> HandlerResult {
        self.lock_calls().complete_request(&mut request);
        let (session, mut question) = v1::parse_permission_request(request);
        if let Some(name) = &self.agent_name {
            question.name_agent(name);
        }
        let (sender, receiver) = oneshot::channel();
        tokio::spawn(async move {
            let cancellation = responder.cancellation();
            let answer = tokio::select! {
                biased;
                () = cancellation.cancelled() => None,
                answered = receiver => answered.ok(),
            };
            log_send_error(match v1::permission_response(answer) {
                Ok(response) => responder.respond(response),
                Err(error) => responder.respond_with_error(error),
            });
        });
        self.forward_event(ClientEvent::Permission { session, question: Box::new(question), answer: sender })
            .await
    }

    pub(super) async fn on_elicitation(
        &self,
        request: wire::CreateElicitationRequest,
        responder: Responder<wire::CreateElicitationResponse>,
    ) -> HandlerResult {
        let Some(form_request) = v1::parse_form_request(request) else {
            log_send_error(
                responder.respond_with_error(v1::no_user_error("this client asks one question at a time")),
            );
            return Ok(());
        };
        let (session, form) = (form_request.session.clone(), Box::new(form_request.form.clone()));
        let (sender, receiver) = oneshot::channel();
        tokio::spawn(async move {
            let cancellation = responder.cancellation();
            let outcome = tokio::select! {
                biased;
                () = cancellation.cancelled() => ElicitationOutcome::Cancelled,
                answered = receiver => answered.unwrap_or(ElicitationOutcome::Cancelled),
            };
            log_send_error(match v1::to_elicitation_response(form_request, outcome) {
                Ok(response) => responder.respond(response),
                Err(error) => responder.respond_with_error(error),
            });
        });
        self.forward_event(ClientEvent::Form { session, form, answer: sender }).await
    }
}
