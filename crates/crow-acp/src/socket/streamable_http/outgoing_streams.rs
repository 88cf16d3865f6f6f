//! The event streams of a connection: a queue each, which one client request at a time reads.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::{Mutex, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    super::queue::{LineReceiver, LineSender, byte_budget, line_queue},
    message_head::MessageHead,
    route_table::{RouteTable, StreamScope},
};

/// A stream with its lines.
struct OutgoingStream {
    /// `None` once nothing more comes.
    lines: Option<LineSender>,
    receiver: Arc<Mutex<LineReceiver>>,
    /// Drops the TCP connection that reads it.
    reader: CancellationToken,
}

impl OutgoingStream {
    fn new(budget: &Arc<Semaphore>) -> Self {
        let (lines, receiver) = line_queue(budget.clone());
        let receiver = Arc::new(Mutex::new(receiver));
        Self { lines: Some(lines), receiver, reader: CancellationToken::new() }
    }
}

/// The streams of a connection. Their lines share one budget of bytes.
pub(super) struct OutgoingStreams {
    routes: RouteTable,
    budget: Arc<Semaphore>,
    connection: OutgoingStream,
    sessions: HashMap<String, OutgoingStream>,
    /// Receives the answer to `initialize`, which has this ID: it is the answer to its POST.
    initialize: Option<(String, oneshot::Sender<String>)>,
    is_finished: bool,
}

/// The destination of a line.
pub(super) enum LineTarget {
    Queue(LineSender, String),
    /// It was the answer to `initialize`.
    Delivered,
    /// Nothing is sent any more.
    Finished,
}

impl OutgoingStreams {
    pub(super) fn new(initialize_id: String, answer: oneshot::Sender<String>) -> Self {
        let budget = byte_budget();
        Self {
            routes: RouteTable::default(),
            connection: OutgoingStream::new(&budget),
            budget,
            sessions: HashMap::new(),
            initialize: Some((initialize_id, answer)),
            is_finished: false,
        }
    }

    pub(super) fn record_request(&mut self, head: &MessageHead) {
        self.routes.record_request(head);
    }

    /// Returns the queue of a line of the agent.
    pub(super) fn target_line(&mut self, line: String) -> LineTarget {
        // What is no message goes where the client sees it first.
        let scope = match MessageHead::parse(&line) {
            Ok(head) if head.method.is_none() && self.is_initialize_answer(&head) => {
                self.routes.route_message(&head);
                // A client that is gone gets no answer.
                let _ = self.initialize.take().map(|(_, answer)| answer.send(line));
                return LineTarget::Delivered;
            }
            Ok(head) => self.routes.route_message(&head),
            Err(_) => StreamScope::Connection,
        };
        match &self.stream_mut(&scope).lines {
            Some(lines) => LineTarget::Queue(lines.clone(), line),
            None => LineTarget::Finished,
        }
    }

    fn is_initialize_answer(&self, head: &MessageHead) -> bool {
        self.initialize.as_ref().is_some_and(|(id, _)| head.id.as_ref() == Some(id))
    }

    fn stream_mut(&mut self, scope: &StreamScope) -> &mut OutgoingStream {
        match scope {
            StreamScope::Connection => &mut self.connection,
            StreamScope::Session(session) => {
                let Self { sessions, budget, is_finished, .. } = self;
                sessions.entry(session.clone()).or_insert_with(|| {
                    let mut stream = OutgoingStream::new(budget);
                    if *is_finished {
                        stream.lines = None;
                    }
                    stream
                })
            }
        }
    }

    /// Gives a stream to a new reader; an earlier one, which may be half open, is dropped. `None` if the client has too
    /// many sessions.
    pub(super) fn open_stream(
        &mut self,
        scope: &StreamScope,
        reader: CancellationToken,
    ) -> Option<Arc<Mutex<LineReceiver>>> {
        if let StreamScope::Session(session) = scope
            && !self.routes.add_session(session)
        {
            return None;
        }
        let stream = self.stream_mut(scope);
        std::mem::replace(&mut stream.reader, reader).cancel();
        Some(stream.receiver.clone())
    }

    /// Ends the streams after their queued lines.
    pub(super) fn finish(&mut self) {
        self.is_finished = true;
        self.initialize = None;
        self.streams_mut().for_each(|stream| stream.lines = None);
    }

    /// Drops all readers.
    pub(super) fn drop_readers(&mut self) {
        self.streams_mut().for_each(|stream| stream.reader.cancel());
    }

    fn streams_mut(&mut self) -> impl Iterator<Item = &mut OutgoingStream> {
        self.sessions.values_mut().chain([&mut self.connection])
    }
}
