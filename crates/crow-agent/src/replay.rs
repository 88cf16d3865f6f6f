//! What a client saw, told again from what is stored.

use crow_core::{Call, Compaction, CompactionStage, Content, Entry, Facets, Part, Prints, Status, Update};

use crate::compact;
use crate::open::{CRASHED, Lives};
use crate::speckit;
use crate::supplies::is_added;

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

/// Tells a compaction.
pub(crate) fn compaction(by: &Compaction, window: u64) -> [Update; 3] {
    let id = compact::id(by.at, by.tokens_before);
    let stage = CompactionStage::Done { summary: by.summary.clone() };
    [
        compact::begun(id.clone()),
        Update::Compaction { id, stage, text: compact::sentence(by) },
        Update::Usage { used: by.tokens_after, size: window, spent: None },
    ]
}

/// Tells whether an entry is the result of a call.
pub(crate) fn is_result(entry: &Entry, call: &Call) -> bool {
    matches!(entry, Entry::Result { call: of, .. } if *of == call.id)
}

/// Tells one entry as its updates; `calls` are those of the latest reply.
pub(crate) fn updates<'a>(entry: &'a Entry, calls: &mut &'a [Call], window: u64) -> Vec<Update> {
    match entry {
        Entry::Prompt(prompt) => {
            let message = prompt.id.clone();
            let update = |part: &Part| match speckit::reported(part) {
                Some(text) => Some(Update::Text { message: message.clone(), text: text.to_owned() }),
                None if is_added(part) => None,
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
            updates.extend(reply.usage.map(|usage| Update::Usage {
                used: usage.total(),
                size: window,
                spent: None,
            }));
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
