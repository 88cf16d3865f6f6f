//! What an agent asks the person behind its client. Each question waits for its answer on a task of its own, so that the
//! agent is heard meanwhile.

use agent_client_protocol as sdk;
use sdk::v1::schema as wire;
use tokio::sync::oneshot;

use super::events::{ClientEvent, PermissionAnswer};
use super::{Ear, Handled, Responder, reply};
use crate::form::Formed;
use crate::v1;

impl Ear {
    pub(super) async fn question(
        &self,
        request: wire::RequestPermissionRequest,
        responder: Responder<wire::RequestPermissionResponse>,
    ) -> Handled {
        let (session, question) = v1::question(request);
        let (answer, answered) = oneshot::channel();
        tokio::spawn(async move {
            let taken_back = responder.cancellation();
            let answered = tokio::select! {
                biased;
                () = taken_back.cancelled() => return reply(responder.respond(v1::permission_response(None))),
                answered = answered => answered,
            };
            reply(match answered {
                Ok(PermissionAnswer::Chosen(id)) => responder.respond(v1::permission_response(Some(id))),
                Ok(PermissionAnswer::Nobody { why }) => responder.respond_with_error(v1::nobody(&why)),
                Err(_) => responder.respond(v1::permission_response(None)),
            });
        });
        self.pass_on(ClientEvent::Permission { session, question: Box::new(question), answer }).await
    }

    pub(super) async fn form(
        &self,
        request: wire::CreateElicitationRequest,
        responder: Responder<wire::CreateElicitationResponse>,
    ) -> Handled {
        let Some(asked) = v1::asked_form(request) else {
            reply(responder.respond_with_error(v1::nobody("this client asks one question at a time")));
            return Ok(());
        };
        let (session, form) = (asked.session.clone(), Box::new(asked.form.clone()));
        let (answer, answered) = oneshot::channel();
        tokio::spawn(async move {
            let taken_back = responder.cancellation();
            let formed = tokio::select! {
                biased;
                () = taken_back.cancelled() => Formed::Cancelled,
                answered = answered => answered.unwrap_or(Formed::Cancelled),
            };
            reply(match v1::form_response(asked, formed) {
                Ok(response) => responder.respond(response),
                Err(error) => responder.respond_with_error(error),
            });
        });
        self.pass_on(ClientEvent::Form { session, form, answer }).await
    }
}
