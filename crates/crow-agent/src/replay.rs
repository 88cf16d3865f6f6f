//! What a client saw, told again from what is stored.

use crow_core::{
    Call, Compaction, CompactionStage, Content, Entry, Facets, Part, Prints, Status, Update, Usage,
};
use crow_store::Aside;

use crate::compact;
use crate::open::{CRASHED, Lives};
use crate::session::Opening;
use crate::speckit;

/// Tells a call without a result.
pub(crate) fn open_call(call: &Call, facets: Facets, lives: Lives) -> Update {
    let (status, content) = match lives {
        Lives::Here => (Status::Running, Vec::new()),
        Lives::Nowhere => (Status::Failed, vec![Content::Text(CRASHED.to_owned())]),
    };
    Update::Call {
        call: call.id,
        name: call.name.clone(),
        facets,
        arguments: call.arguments.object(),
        status,
        content,
        prints: Prints::Nothing,
    }
}

/// What a session had taken at each of its messages.
pub(crate) struct Bill<'a> {
    window: u64,
    compactions: &'a [Compaction],
    /// What was not asked yet.
    asides: &'a [Aside],
    so_far: Usage,
}

impl<'a> Bill<'a> {
    /// Begins with the first message.
    pub(crate) fn new(window: u64, opening: &'a Opening) -> Self {
        let Opening { compactions, asides, .. } = opening;
        Self { window, compactions, asides, so_far: Usage::default() }
    }

    /// Tells what there was to tell at the message in a place.
    pub(crate) fn at(&mut self, seq: u64, entry: &Entry) -> Option<Update> {
        let usage = entry.usage()?;
        self.asides_before(seq);
        self.so_far = self.so_far.and(usage);
        Some(self.told(usage.context()?, false))
    }

    /// Tells the compactions that were made before the message in a place.
    pub(crate) fn compacted(&mut self, seq: u64) -> Vec<Update> {
        let compactions = self.compactions;
        let here = compactions.iter().filter(|by| by.at == seq);
        here.flat_map(|by| self.compaction(by)).collect()
    }

    fn compaction(&mut self, by: &Compaction) -> [Update; 3] {
        self.asides_before(by.at);
        let id = compact::id(by.at, by.tokens_before);
        let stage = CompactionStage::Done { summary: by.summary.clone() };
        [
            compact::begun(id.clone()),
            Update::Compaction { id, stage, text: compact::sentence(by) },
            self.guess(by.tokens_after),
        ]
    }

    /// Tells how full the context is where nobody has counted it.
    pub(crate) fn guess(&self, used: u64) -> Update {
        self.told(used, true)
    }

    fn told(&self, used: u64, is_guess: bool) -> Update {
        Update::Usage { used, size: self.window, spent: None, cost: self.so_far.cost, is_guess }
    }

    fn asides_before(&mut self, seq: u64) {
        while let [aside, rest @ ..] = self.asides
            && aside.seq <= seq
        {
            self.so_far = self.so_far.and(aside.usage);
            self.asides = rest;
        }
    }
}

/// Tells whether an entry is the result of a call.
pub(crate) fn is_result(entry: &Entry, call: &Call) -> bool {
    matches!(entry, Entry::Result { call: of, .. } if *of == call.id)
}

/// Tells one entry as its updates; `calls` are those of the latest reply.
pub(crate) fn updates<'a>(entry: &'a Entry, calls: &mut &'a [Call]) -> Vec<Update> {
    match entry {
        Entry::Prompt(prompt) => {
            let message = prompt.id.clone();
            let update = |part: &Part| match speckit::reported(part) {
                Some(text) => Some(Update::Text { message: message.clone(), text: text.to_owned() }),
                None if part.added().is_some() => None,
                None => Some(Update::Prompt { message: message.clone(), part: part.clone() }),
            };
            prompt.parts.iter().filter_map(update).collect()
        }
        Entry::Reply(reply) => {
            *calls = &reply.calls;
            let mut updates = Vec::new();
            let message = || reply.id.clone();
            if !reply.thought.is_empty() {
                updates.push(Update::Thought { message: message(), text: reply.thought.clone() });
            }
            if !reply.text.is_empty() {
                updates.push(Update::Text { message: message(), text: reply.text.clone() });
            }
            updates
        }
        Entry::Result { call: id, facets, outcome } => {
            let call = calls.iter().find(|call| call.id == *id);
            let mut updates = vec![Update::Call {
                call: *id,
                name: call.map(|call| call.name.clone()).unwrap_or_default(),
                facets: facets.clone(),
                arguments: call.map(|call| call.arguments.object()).unwrap_or_default(),
                status: outcome.status,
                content: outcome.for_client.clone(),
                prints: Prints::Nothing,
            }];
            updates.extend(outcome.plan.clone().map(Update::Plan));
            updates
        }
    }
}
