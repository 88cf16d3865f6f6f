//! The agent's end of a connection: SDK requests become [`IncomingRequest`]s, and handlers return at once, because
//! the SDK reads nothing while one of them runs.

mod request_handler;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::task::Poll;

use agent_client_protocol as sdk;
use crow_core::SessionId;
use futures_util::{SinkExt, StreamExt, stream};
use sdk::v1::schema as wire;
use tokio::sync::mpsc;

use crate::capabilities::SharedCapabilities;
use crate::connected_client::Client;
use crate::handshake::HandshakeGate;
use crate::incoming::{AgentInfo, IncomingRequest};
use crate::outbox::Outbox;
use crate::server::request_handler::RequestHandler;
use crate::transport::LineTransport;
use crate::v1;

/// The connection ended in another way than by the client closing it.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the client broke: {0}")]
pub struct ServeError(String);

/// Serves one client until it disconnects and the lines queued for it have left, which takes as long as the client
/// takes to read them; a caller that does not wait drops this future.
///
/// `connected` gets the client handle, once. Its result is dropped as soon as the client has closed its end, before
/// those lines have left.
pub async fn serve_client<E: From<IncomingRequest> + Send + 'static, G: Send>(
    lines: LineTransport,
    agent_info: AgentInfo,
    incoming: mpsc::Sender<E>,
    connected: impl FnOnce(Client) -> G + Send,
) -> Result<(), ServeError> {
    let capabilities = SharedCapabilities::default();
    let outbox = Outbox::new(capabilities.clone());
    // However this ends, also by being dropped, no task waits for the client any longer.
    let _closing = CloseOnDrop(outbox.clone());
    let transport = wrap_transport(lines, outbox.clone());
    let handler = RequestHandler {
        incoming,
        agent_info: Arc::new(agent_info),
        capabilities,
        n_prompts: Arc::default(),
        outbox: outbox.clone(),
    };
    let result = build_agent(&handler)
        .connect_with(transport, async |connection| {
            let close_guard = connected(Client::new(connection.clone(), outbox.clone()));
            tokio::select! {
                biased;
                () = outbox.pump_updates(&connection) => {}
                () = connection.incoming_closed() => {}
            }
            // A task that waits for capacity or a flush must not outlive the client, nor wait for what it reads.
            outbox.close();
            drop(close_guard);
            Ok(())
        })
        .await;
    match result {
        // A write may notice that the client left before the end of the input is read.
        Err(_) if outbox.is_gone() => Ok(()),
        result => result.map_err(|error| ServeError(error.message)),
    }
}

struct CloseOnDrop(Arc<Outbox>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Returns each update's credit as its line leaves the SDK, rewords the SDK's own errors, and holds back what a
/// client sends before its `initialize` is answered.
fn wrap_transport(lines: LineTransport, outbox: Arc<Outbox>) -> impl sdk::ConnectTo<sdk::Agent> + 'static {
    let (outbox_at_end, outbox_at_failure) = (outbox.clone(), outbox.clone());
    let end_of_input = stream::poll_fn(move |_| {
        outbox_at_end.on_gone();
        Poll::Ready(None)
    });
    let gate = Arc::new(HandshakeGate::new());
    let incoming = gate.clone().hold_back(lines.incoming);
    let outgoing = lines.outgoing.sink_map_err(move |error| {
        outbox_at_failure.on_gone();
        error
    });
    let outgoing = outgoing.with(move |line: String| {
        gate.on_outgoing(&line);
        let line = if outbox.on_line(&line) { line } else { v1::with_failure_kind(line) };
        std::future::ready(Ok::<_, io::Error>(line))
    });
    sdk::Lines::new(outgoing, incoming.chain(end_of_input).boxed())
}

/// Adds one handler for each method.
macro_rules! requests {
    ($builder:expr, $door:expr, $($method:ident),+ $(,)?) => {
        $builder$(.on_receive_request(
            {
                let door = $door.clone();
                async move |request, responder, _| door.$method(request, responder).await
            },
            sdk::on_receive_request!(),
        ))+
    };
}

fn build_agent<E: From<IncomingRequest> + Send + 'static>(
    handler: &RequestHandler<E>,
) -> sdk::v1::Builder<
    sdk::Agent,
    impl sdk::HandleDispatchFrom<sdk::Client> + 'static,
    impl sdk::RunWithConnectionTo<sdk::Client> + 'static,
    impl sdk::HandleConnectionClose<sdk::Client> + 'static,
> {
    let cancel_handler = handler.clone();
    requests!(
        sdk::Agent.v1().name("crow"),
        handler,
        initialize,
        sign_in,
        sign_out,
        new_session,
        load_session,
        resume_session,
        fork_session,
        list_sessions,
        list_prompts,
        close_session,
        delete_session,
        start_prompt,
        steer_turn,
        set_mode,
        set_model,
        set_option,
    )
    .on_receive_notification(
        async move |cancelled: wire::CancelNotification, _| {
            let session = SessionId::new(&*cancelled.session_id.0);
            cancel_handler.forward_request(IncomingRequest::Cancel { session }).await
        },
        sdk::on_receive_notification!(),
    )
}
