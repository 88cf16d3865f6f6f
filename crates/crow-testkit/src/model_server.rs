//! A scripted model on a real socket: HTTP/1.1 by hand, so that a test can break off anywhere.
//!
//! It runs on its own thread, independent of the test's runtime and paused clock.
#![expect(clippy::panic, reason = "a server that cannot start or a wait without end fails the test")]

mod flow;
mod http;
mod messages;
mod reply_writer;
mod responses;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

use crate::environment::hide_environment;
use crate::recording::Recording;
use crate::{Answer, Script, messages_violations, responses_violations, violations};
use flow::AnswerFlow;
use http::{Connection, Request};
use reply_writer::Api;

/// Long enough for a loaded machine.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// A model server that answers as scripted and rejects what strict providers reject.
#[derive(Debug)]
pub struct ModelServer {
    base_url: String,
    shared: Arc<SharedState>,
    /// Stops the server's thread when dropped.
    _shutdown: oneshot::Sender<()>,
}

#[derive(Debug)]
struct SharedState {
    state: Mutex<ServerState>,
    changed: watch::Sender<()>,
    flow: AnswerFlow,
}

#[derive(Debug, Default)]
struct ServerState {
    answers: std::collections::VecDeque<Answer>,
    /// Answers to requests whose first prompt contains a text; the first match is used.
    prompt_answers: Vec<(String, std::collections::VecDeque<Answer>)>,
    /// A recording to replay instead of a script.
    recording: Option<Recording>,
    /// Answers to requests without tools.
    side_answers: std::collections::VecDeque<Answer>,
    /// Answers to all requests for an address.
    pages: std::collections::BTreeMap<String, Answer>,
    page_heads: Vec<String>,
    requests: Vec<Value>,
    request_heads: Vec<String>,
    is_disconnected: Vec<bool>,
    rejections: Vec<String>,
    /// True if requests are not checked.
    accepts_all: bool,
    n_connections: usize,
}

impl ModelServer {
    /// Starts to serve on a free loopback port.
    pub fn start(script: impl Into<Script>) -> Self {
        Self::start_with_state(ServerState {
            answers: script.into().answers.into(),
            ..ServerState::default()
        })
    }

    /// Replays a recording, a file or all files of a directory, as written by `CROW_RECORD`.
    ///
    /// Each request gets the answer of the first recorded request that is equal and was not used yet: the status, the
    /// bytes in their pieces, and the end, but not the pauses. Any other request is rejected with the difference to the
    /// next recorded one. Not compared are system prompts and the environment, which tells the directory and the date,
    /// and fields that identify a session or user to the provider.
    pub fn replay(recording: &Path) -> Self {
        Self::start_with_state(ServerState {
            recording: Some(Recording::read(recording)),
            ..ServerState::default()
        })
    }

    fn start_with_state(state: ServerState) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        });
        let Ok((address, listener)) = listener else { panic!("no free port on the loopback") };
        let shared = Arc::new(SharedState {
            state: Mutex::new(state),
            changed: watch::Sender::new(()),
            flow: AnswerFlow::default(),
        });
        let (shutdown_sender, shutdown) = oneshot::channel();
        let thread_shared = Arc::clone(&shared);
        std::thread::spawn(move || run_server(listener, &thread_shared, shutdown));
        Self { base_url: format!("http://{address}/v1"), shared, _shutdown: shutdown_sender }
    }

    /// The base URL for a provider's configuration.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Adds answers after the remaining ones.
    pub fn add_answers(&self, script: impl Into<Script>) {
        self.shared.lock().answers.extend(script.into().answers);
    }

    /// Replaces the remaining answers.
    pub fn replace_answers(&self, script: impl Into<Script>) {
        self.shared.lock().answers = script.into().answers.into();
    }

    /// Adds answers for conversations whose first prompt contains `text`.
    pub fn add_answers_for(&self, text: &str, script: impl Into<Script>) {
        let answers = script.into().answers;
        let mut state = self.shared.lock();
        match state.prompt_answers.iter_mut().find(|(known_text, _)| known_text == text) {
            Some((_, queue)) => queue.extend(answers),
            None => state.prompt_answers.push((text.to_owned(), answers.into())),
        }
    }

    /// Sets the answers to requests without tools, used in turn, over and over.
    pub fn set_side_answers(&self, script: impl Into<Script>) {
        self.shared.lock().side_answers = script.into().answers.into();
    }

    /// Accepts every request from now on, and counts none as rejected: agents of others send what only their own providers
    /// accept, and ask them for more than the script foresees.
    pub fn accept_all_requests(&self) {
        self.shared.lock().accepts_all = true;
    }

    /// Sets the answer to every request for an address, which begins with `/` and may have a query.
    pub fn serve_at(&self, address: &str, answer: Answer) {
        self.shared.lock().pages.insert(address.to_owned(), answer);
    }

    /// The heads of the requests that were answered as set by [`ModelServer::serve_at`].
    pub fn page_heads(&self) -> Vec<String> {
        self.shared.lock().page_heads.clone()
    }

    /// The number of requests so far.
    pub fn n_requests(&self) -> usize {
        self.shared.lock().requests.len()
    }

    /// The bodies of the requests so far, without the environment that the first prompt of a session tells.
    pub fn requests(&self) -> Vec<Value> {
        let mut requests = self.full_requests();
        requests.iter_mut().for_each(hide_environment);
        requests
    }

    /// The bodies of the requests so far.
    pub fn full_requests(&self) -> Vec<Value> {
        self.shared.lock().requests.clone()
    }

    /// The request lines and headers of the requests so far.
    pub fn request_heads(&self) -> Vec<String> {
        self.shared.lock().request_heads.clone()
    }

    /// The rejected requests so far, with reasons; empty at the end of a good test.
    pub fn rejections(&self) -> Vec<String> {
        self.shared.lock().rejections.clone()
    }

    /// The number of connections so far.
    pub fn n_connections(&self) -> usize {
        self.shared.lock().n_connections
    }

    /// Continues one `hold`, now or when it is reached.
    pub fn release(&self) {
        self.shared.flow.releases.add_permits(1);
    }

    /// Sends a message when this many bytes of answers have been sent; replaces an earlier request for one.
    pub fn notify_after_bytes(&self, n_bytes: u64, sender: SyncSender<()>) {
        self.shared.flow.notify_after(n_bytes, sender);
    }

    /// Waits until `n` requests have arrived.
    pub async fn wait_for_requests(&self, n: usize) {
        self.wait_until(&format!("request {n}"), |state| state.requests.len() >= n).await;
    }

    /// Waits until the client of request `n`, from 0, has disconnected.
    pub async fn wait_for_disconnect(&self, n: usize) {
        self.wait_until(&format!("the end of request {n}"), |state| {
            state.is_disconnected.get(n) == Some(&true)
        })
        .await;
    }

    async fn wait_until(&self, description: &str, condition: impl Fn(&ServerState) -> bool) {
        let mut changes = self.shared.changed.subscribe();
        let (timeout_sender, timed_out) = oneshot::channel::<()>();
        // A thread's clock, because the test's may be paused or jump.
        std::thread::spawn(move || {
            std::thread::sleep(WAIT_MAX);
            drop(timeout_sender);
        });
        let changed = changes.wait_for(|()| condition(&self.shared.lock()));
        tokio::select! {
            _ = changed => {}
            _ = timed_out => panic!("waited in vain for {description}"),
        }
    }
}

impl ServerState {
    /// Checks a request; returns the problems, or the answer if there are none.
    fn evaluate(&mut self, api: Api, path: &str, request: &Value) -> (Vec<String>, Option<Answer>) {
        if let Some(recording) = &mut self.recording {
            return match recording.take_answer(path, request) {
                Ok(answer) => (Vec::new(), Some(answer)),
                Err(reason) => (vec![reason], None),
            };
        }
        let problems = match api {
            _ if self.accepts_all => Vec::new(),
            Api::Chat => violations(request),
            Api::Messages => messages_violations(request),
            Api::Responses => responses_violations(request),
        };
        if !problems.is_empty() {
            return (problems, None);
        }
        match self.next_answer(request) {
            Some(answer) => (problems, Some(answer)),
            None if self.accepts_all => (problems, None),
            None => (vec!["the script has no answer left".to_owned()], None),
        }
    }

    fn next_answer(&mut self, request: &Value) -> Option<Answer> {
        let prompt = first_prompt(request).unwrap_or_default();
        if let Some((_, answers)) = self.prompt_answers.iter_mut().find(|(text, _)| prompt.contains(&**text))
        {
            return answers.pop_front();
        }
        if request.get("tools").is_some() || self.side_answers.is_empty() {
            return self.answers.pop_front();
        }
        let answer = self.side_answers.pop_front()?;
        self.side_answers.push_back(answer.clone());
        Some(answer)
    }
}

/// Returns the text of the first user message.
fn first_prompt(request: &Value) -> Option<String> {
    let messages = request.get("messages").or(request.get("input"))?.as_array()?;
    let mut content = messages.iter().find(|message| message["role"] == "user")?.get("content")?.clone();
    hide_environment(&mut content);
    Some(content.as_str().map_or_else(|| content.to_string(), str::to_owned))
}

impl SharedState {
    fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update<T>(&self, change: impl FnOnce(&mut ServerState) -> T) -> T {
        let value = change(&mut self.lock());
        self.changed.send_replace(());
        value
    }

    /// Returns the answer set for an address and records the request.
    fn take_page(&self, request: &Request) -> Option<Answer> {
        let page = self.lock().pages.get(request.address()).cloned()?;
        self.update(|state| state.page_heads.push(request.head.clone()));
        Some(page)
    }

    /// Records a request; returns its index and answer.
    fn accept_request(&self, api: Api, request: Request) -> (usize, Answer) {
        let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        self.update(|state| {
            let (problems, answer) = state.evaluate(api, request.target().1, &body);
            let index = state.requests.len();
            let answer = answer.unwrap_or_else(|| reply_writer::rejection(&problems));
            state.rejections.extend(problems.into_iter().map(|reason| format!("request {index}: {reason}")));
            state.requests.push(body);
            state.request_heads.push(request.head);
            state.is_disconnected.push(false);
            (index, answer)
        })
    }
}

fn run_server(listener: std::net::TcpListener, shared: &Arc<SharedState>, shutdown: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let Ok(runtime) = runtime else { panic!("no runtime for the model server") };
    runtime.block_on(async {
        let Ok(listener) = TcpListener::from_std(listener) else { panic!("the listener is broken") };
        let accept = async {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_connection(stream, Arc::clone(shared)));
            }
        };
        tokio::select! {
            () = accept => {}
            _ = shutdown => {}
        }
    });
}

async fn serve_connection(stream: TcpStream, shared: Arc<SharedState>) {
    shared.update(|state| state.n_connections += 1);
    let mut request_indexes = Vec::new();
    let mut connection = Connection::new(stream);
    while let Ok(Some(request)) = connection.read_request().await {
        let is_replay = shared.lock().recording.is_some();
        let api = match (shared.take_page(&request), request.target()) {
            (Some(page), _) => Err(page),
            // The recording determines the answer.
            (None, ("POST", _)) if is_replay => Ok(Api::Chat),
            (None, ("POST", "/v1/chat/completions")) => Ok(Api::Chat),
            (None, ("POST", "/v1/messages")) => Ok(Api::Messages),
            (None, ("POST", "/v1/responses")) => Ok(Api::Responses),
            (None, (_, "/v1/models")) => Err(reply_writer::models_answer()),
            (None, (method, path)) => {
                Err(reply_writer::status_answer(404, &format!("no {method} {path} here")))
            }
        };
        let (api, index, answer) = match api {
            Ok(api) => {
                let (index, answer) = shared.accept_request(api, request);
                request_indexes.push(index);
                (api, index, answer)
            }
            Err(answer) => (Api::Chat, 0, answer),
        };
        let context = reply_writer::ReplyContext { api, request_index: index };
        if reply_writer::send_answer(&answer, context, &mut connection, &shared.flow).await.is_err() {
            break;
        }
    }
    drop(connection);
    shared.update(|state| request_indexes.into_iter().for_each(|index| state.is_disconnected[index] = true));
}
