//! The agent's end of a connection: SDK requests become [`Incoming`] and the handlers return at once, since the
//! SDK reads nothing while one of them runs.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol as sdk;
use crow_core::{Failure, FailureKind, SessionId};
use futures_util::{SinkExt, StreamExt};
use sdk::v1::schema as wire;
use tokio::sync::mpsc;

use crate::incoming::{Answer, Incoming};
use crate::outbox::{Client, Outbox};
use crate::transport::Lines;
use crate::v1;

/// The connection ended otherwise than by the client closing it.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the client broke: {0}")]
pub struct ServeError(String);

/// Serves one client until it closes its end. `connected` gets the way to tell it things, once.
pub async fn serve<E: From<Incoming> + Send + 'static>(
    lines: Lines,
    version: &'static str,
    incoming: mpsc::Sender<E>,
    connected: impl FnOnce(Client) + Send,
) -> Result<(), ServeError> {
    let outbox = Outbox::new();
    // However this ends, by being dropped as well, nobody waits for the client any longer.
    let _closing = Closing(outbox.clone());
    let transport = counted(lines, outbox.clone());
    let served = agent(version, &incoming)
        .connect_with(transport, async |connection| {
            connected(Client::new(connection.clone(), outbox.clone()));
            // Whoever waits for room or a flush must not outlive the client.
            tokio::select! {
                () = outbox.pump(&connection) => {}
                () = connection.incoming_closed() => {}
            }
            Ok(())
        })
        .await;
    served.map_err(|error| ServeError(error.message))
}

struct Closing(Arc<Outbox>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Gives each update's credit back as its line leaves the SDK.
fn counted(lines: Lines, outbox: Arc<Outbox>) -> impl sdk::ConnectTo<sdk::Agent> + 'static {
    let outgoing = lines.outgoing.with(move |line: String| {
        outbox.on_line(&line);
        std::future::ready(Ok::<_, io::Error>(line))
    });
    sdk::Lines::new(outgoing, lines.incoming.boxed())
}

type Responder<T> = sdk::Responder<T, sdk::V1>;

fn answer<T, W>(
    responder: Responder<W>,
    spell: impl FnOnce(T) -> Result<W, Failure> + Send + 'static,
) -> Answer<T>
where
    T: 'static,
    W: sdk::JsonRpcResponse,
{
    Answer::new(move |result: Result<T, Failure>| {
        let sent = match result.and_then(spell) {
            Ok(response) => responder.respond(response),
            Err(failure) => responder.respond_with_error(v1::error(&failure)),
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "the client is gone; its answer is dropped");
        }
    })
}

fn absolute(cwd: PathBuf) -> Result<PathBuf, Failure> {
    if !cwd.is_absolute() {
        let why = format!("cwd is {}, which is not an absolute path.", cwd.display());
        return Err(Failure::new(FailureKind::InvalidValue, why));
    }
    if !cwd.is_dir() {
        let why = format!("cwd is {}, which is not a folder. Create it or choose another.", cwd.display());
        return Err(Failure::new(FailureKind::InvalidValue, why));
    }
    Ok(cwd)
}

/// Hands a request to the host. When nobody takes it the process is ending, and the dropped answer says so.
async fn pass_on<E: From<Incoming>>(incoming: &mpsc::Sender<E>, what: Incoming) -> Result<(), sdk::Error> {
    if incoming.send(what.into()).await.is_err() {
        tracing::debug!("a request came after the host ended");
    }
    Ok(())
}

fn agent<E: From<Incoming> + Send + 'static>(
    version: &'static str,
    incoming: &mpsc::Sender<E>,
) -> sdk::v1::Builder<
    sdk::Agent,
    impl sdk::HandleDispatchFrom<sdk::Client> + 'static,
    impl sdk::RunWithConnectionTo<sdk::Client> + 'static,
    impl sdk::HandleConnectionClose<sdk::Client> + 'static,
> {
    let [hello, new, load, list, prompt, set_mode, set_option, cancel] =
        std::array::from_fn(|_| incoming.clone());
    sdk::Agent
        .v1()
        .name("crow")
        .on_receive_request(
            async move |_: wire::InitializeRequest, responder: Responder<wire::InitializeResponse>, _| {
                responder.respond(v1::initialized(version))?;
                pass_on(&hello, Incoming::Hello).await
            },
            sdk::on_receive_request!(),
        )
        .on_receive_request(
            async move |request, responder, _| new_session(&new, request, responder).await,
            sdk::on_receive_request!(),
        )
        .on_receive_request(
            async move |request, responder, _| load_session(&load, request, responder).await,
            sdk::on_receive_request!(),
        )
        .on_receive_request(
            async move |request, responder, _| list_sessions(&list, request, responder).await,
            sdk::on_receive_request!(),
        )
        .on_receive_request(
            async move |request, responder, _| start_turn(&prompt, request, responder).await,
            sdk::on_receive_request!(),
        )
        .on_receive_request(
            async move |request, responder, _| change_mode(&set_mode, request, responder).await,
            sdk::on_receive_request!(),
        )
        .on_receive_request(
            async move |request, responder, _| change_option(&set_option, request, responder).await,
            sdk::on_receive_request!(),
        )
        .on_receive_notification(
            async move |cancelled: wire::CancelNotification, _| {
                let session = SessionId::new(&*cancelled.session_id.0);
                pass_on(&cancel, Incoming::Cancel { session }).await
            },
            sdk::on_receive_notification!(),
        )
}

async fn new_session<E: From<Incoming>>(
    incoming: &mpsc::Sender<E>,
    request: wire::NewSessionRequest,
    responder: Responder<wire::NewSessionResponse>,
) -> Result<(), sdk::Error> {
    let answer = answer(responder, |opened| Ok(v1::session_opened(&opened)));
    match absolute(request.cwd) {
        Ok(cwd) => pass_on(incoming, Incoming::NewSession { cwd, answer }).await,
        Err(failure) => refuse(answer, failure),
    }
}

async fn load_session<E: From<Incoming>>(
    incoming: &mpsc::Sender<E>,
    request: wire::LoadSessionRequest,
    responder: Responder<wire::LoadSessionResponse>,
) -> Result<(), sdk::Error> {
    let answer = answer(responder, |opened| Ok(v1::session_loaded(&opened)));
    let session = SessionId::new(&*request.session_id.0);
    match absolute(request.cwd) {
        Ok(cwd) => pass_on(incoming, Incoming::LoadSession { session, cwd, answer }).await,
        Err(failure) => refuse(answer, failure),
    }
}

async fn list_sessions<E: From<Incoming>>(
    incoming: &mpsc::Sender<E>,
    request: wire::ListSessionsRequest,
    responder: Responder<wire::ListSessionsResponse>,
) -> Result<(), sdk::Error> {
    let answer = answer(responder, |page| Ok(v1::session_page(page)));
    pass_on(incoming, Incoming::ListSessions { cwd: request.cwd, cursor: request.cursor, answer }).await
}

async fn start_turn<E: From<Incoming>>(
    incoming: &mpsc::Sender<E>,
    request: wire::PromptRequest,
    responder: Responder<wire::PromptResponse>,
) -> Result<(), sdk::Error> {
    let answer = answer(responder, v1::prompt_response);
    let session = SessionId::new(&*request.session_id.0);
    match v1::parts(request.prompt) {
        Ok(parts) => pass_on(incoming, Incoming::Prompt { session, parts, answer }).await,
        Err(failure) => refuse(answer, failure),
    }
}

async fn change_mode<E: From<Incoming>>(
    incoming: &mpsc::Sender<E>,
    request: wire::SetSessionModeRequest,
    responder: Responder<wire::SetSessionModeResponse>,
) -> Result<(), sdk::Error> {
    let answer = answer(responder, |_| Ok(wire::SetSessionModeResponse::new()));
    let session = SessionId::new(&*request.session_id.0);
    let (option, value) = ("mode".to_owned(), request.mode_id.0.to_string());
    pass_on(incoming, Incoming::SetOption { session, option, value, answer }).await
}

async fn change_option<E: From<Incoming>>(
    incoming: &mpsc::Sender<E>,
    request: wire::SetSessionConfigOptionRequest,
    responder: Responder<wire::SetSessionConfigOptionResponse>,
) -> Result<(), sdk::Error> {
    let spell = |options| Ok(wire::SetSessionConfigOptionResponse::new(v1::config_options(&options)));
    let answer = answer(responder, spell);
    let session = SessionId::new(&*request.session_id.0);
    let option = request.config_id.0.to_string();
    match request.value.as_value_id() {
        Some(value) => {
            let value = value.0.to_string();
            pass_on(incoming, Incoming::SetOption { session, option, value, answer }).await
        }
        None => {
            let why = format!("The option {option} takes one of its listed values.");
            refuse(answer, Failure::new(FailureKind::InvalidValue, why))
        }
    }
}

fn refuse<T>(answer: Answer<T>, failure: Failure) -> Result<(), sdk::Error> {
    answer.give(Err(failure));
    Ok(())
}
