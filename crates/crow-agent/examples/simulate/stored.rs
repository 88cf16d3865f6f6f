//! Checks what the run has left in the database.

use std::collections::BTreeMap;
use std::sync::Arc;

use crow_core::{CallId, ContentPart, SessionId, Transcript, TranscriptEntry};
use crow_store::{LoadedSession, Store, TaskState};

use crate::process::Machine;
use crate::world::World;

/// The tools whose results are reports of tasks, and not looks at them.
const REPORTING_TOOLS: [&str; 2] = ["task", "task_send"];

/// Checks the stored histories and mailboxes after a process without faults has continued every session.
pub(crate) async fn check_stored_sessions(machine: &Machine<'_>, world: &Arc<World>) {
    let store = machine.database.open(world.clone());
    for session in machine.database.session_ids() {
        match store.load_session(&session).await {
            Ok(Some(stored)) => {
                check_deliveries(&store, world, &session, &stored).await;
                check_history(world, &session, stored);
            }
            // Its process was killed before it stored the session.
            Ok(None) => {}
            Err(error) => world.add_violation(format!("{session} cannot be read: {error}")),
        }
    }
}

fn check_history(world: &World, session: &SessionId, stored: LoadedSession) {
    let mut transcript = Transcript::new(stored.system_prompt);
    for entry in stored.entries {
        if let Err(error) = transcript.push(entry) {
            return world.add_violation(format!("the history of {session} is not valid: {error}"));
        }
    }
    if !transcript.open_calls().is_empty() {
        world.add_violation(format!("{session} has open calls: {:?}", transcript.open_calls()));
    }
}

async fn check_deliveries(store: &Store, world: &World, session: &SessionId, stored: &LoadedSession) {
    match store.pending_deliveries(session).await {
        Ok(deliveries) if deliveries.is_empty() => {}
        deliveries => world.add_violation(format!("the mailbox of {session} is not empty: {deliveries:?}")),
    }
    for (words, n_times) in count_reported_words(world, stored) {
        if n_times > 1 {
            world.add_violation(format!("{session} was told {n_times} times what a child said: {words}"));
        }
    }
    match store.list_tasks(session).await {
        Ok(tasks) => {
            for task in tasks.iter().filter(|task| task.state == TaskState::Running) {
                world.add_violation(format!("the task {} of {session} never ends", task.task));
            }
        }
        Err(error) => world.add_violation(format!("the tasks of {session} cannot be read: {error}")),
    }
}

/// Counts how often the model was told each word of a child.
fn count_reported_words(world: &World, stored: &LoadedSession) -> BTreeMap<String, u64> {
    let child_words = world.child_words();
    let mut names: BTreeMap<CallId, &str> = BTreeMap::new();
    let mut n_told = BTreeMap::new();
    for entry in &stored.entries {
        let parts: &[ContentPart] = match entry {
            TranscriptEntry::Reply(reply) => {
                names.extend(reply.calls.iter().map(|call| (call.id, call.name.as_str())));
                &[]
            }
            TranscriptEntry::Prompt(prompt) => &prompt.parts,
            TranscriptEntry::Result { call, result, .. } => match names.get(call) {
                Some(name) if REPORTING_TOOLS.contains(name) => &result.for_model,
                Some(_) | None => &[],
            },
        };
        for part in parts {
            let ContentPart::Text(text) = part else { continue };
            for word in text.split(|char: char| !char.is_alphanumeric()) {
                if child_words.contains(word) {
                    *n_told.entry(word.to_owned()).or_default() += 1;
                }
            }
        }
    }
    n_told
}
