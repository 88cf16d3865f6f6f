//! The death of the process at every point of a write, and a disk that fills up at every page.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crow_core::{
    CallId, Compaction, SessionId, ToolAccess, ToolArguments, ToolCall, ToolCallInfo, ToolKind, ToolResult,
    Transcript, TranscriptEntry,
};
use rusqlite::Connection;

use super::{
    Place, begin, delivered, prompt, reply, session_in,
    tasks::{child, end},
};
use crate::{
    DeliveryId, NewFileChange, NewSession, SessionLease, Store, StoreError, TaskLease, TaskState, Timestamp,
    UndoSnapshot,
    database::Database,
    sqlite::{SqliteBackend, SqliteOptions},
};

/// Bytes of one page in the log, with its header.
const FRAME: usize = 24 + 4096;

/// The steps that a session of some turns stores.
fn steps() -> Vec<Step> {
    let call = |seq, index| ToolCall {
        id: CallId::from_position(seq, index),
        provider_id: format!("c{index}"),
        name: "read".into(),
        arguments: ToolArguments::Valid(serde_json::Map::new()),
    };
    let result = |seq, index| TranscriptEntry::Result {
        call: CallId::from_position(seq, index),
        info: ToolCallInfo {
            title: "Read a".into(),
            kind: ToolKind::Read,
            locations: Vec::new(),
            access: ToolAccess::Nothing,
        },
        result: ToolResult::success("x".repeat(9_000)),
    };
    let mut steps = Vec::new();
    for turn in 0..3 {
        let seq = turn * 5;
        let TranscriptEntry::Reply(mut asking) = reply(seq + 1, "Let me look.") else { unreachable!() };
        asking.calls = vec![call(seq + 1, 0), call(seq + 1, 1)];
        steps.push(Step::Begin);
        steps.push(Step::Post);
        steps.push(Step::Deliver(prompt(seq, "Look at a, please: your task is done.")));
        steps.push(Step::Append(TranscriptEntry::Reply(asking)));
        steps.push(Step::Change);
        steps.push(Step::Append(result(seq + 1, 1)));
        steps.push(Step::Append(result(seq + 1, 0)));
        steps.push(Step::Append(reply(seq + 4, "It is long.")));
        steps.push(Step::Compact(seq + 5));
    }
    steps
}

enum Step {
    Append(TranscriptEntry),
    Change,
    Compact(u64),
    /// A turn of a task begins.
    Begin,
    /// It ends.
    Post,
    /// Its end is delivered.
    Deliver(TranscriptEntry),
}

/// The progress of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Reached {
    n_entries: u64,
    n_compactions: usize,
    n_rounds: u32,
    n_waiting: usize,
}

impl Step {
    async fn store(
        &self,
        store: &Store,
        writer: &SessionLease,
        task: &TaskLease,
        reached: &mut Reached,
    ) -> Result<(), StoreError> {
        let Reached { n_entries, n_compactions, n_rounds, n_waiting } = reached;
        match self {
            Self::Append(entry) => {
                store.append_entry(writer, *n_entries, entry, Timestamp(1)).await?;
                *n_entries += 1;
            }
            Self::Begin => {
                store.begin_task(task, "Look", Timestamp(1)).await?;
                *n_rounds += 1;
            }
            Self::Post => {
                let text = "z".repeat(6_000);
                assert!(store.end_task(task, end(TaskState::Completed, Some(&text), 1)).await?);
                *n_waiting += 1;
            }
            Self::Deliver(entry) => {
                let mail = store.pending_deliveries(writer.session()).await?;
                let ids: Vec<DeliveryId> = mail.iter().map(|delivery| delivery.id).collect();
                store
                    .append_with_deliveries(writer, *n_entries, &delivered(entry, &ids), Timestamp(1))
                    .await?;
                *n_entries += 1;
                *n_waiting -= ids.len();
            }
            Self::Change => {
                let before = UndoSnapshot::Content { bytes: vec![7; 10_000], mode: None };
                let (turn, call) = (*n_entries, CallId::from_position(*n_entries, 0));
                let change = NewFileChange { turn, call, path: "/p/a".into(), before, after: None };
                store.record_change(writer, change, Timestamp(1)).await?;
            }
            Self::Compact(at) => {
                let compaction = Compaction {
                    at_seq: *at,
                    keep_from: *at,
                    verbatim_prompts: vec![0],
                    summary: Some("y".repeat(5_000)),
                    pruned: Vec::new(),
                    tokens_before: 9,
                    tokens_after: 1,
                    began_ms: 0,
                };
                store.record_compaction(writer, &compaction).await?;
                *n_compactions += 1;
            }
        }
        Ok(())
    }
}

/// Loads a session and checks that a provider would accept its history; returns how far it and its task came.
async fn reached(store: &Store, session: &SessionId) -> Option<Reached> {
    let stored = store.load_session(session).await.unwrap()?;
    assert_eq!(stored.session.n_messages, stored.entries.len() as u64);
    let mut transcript = Transcript::new(stored.system_prompt);
    let n_entries = stored.entries.len() as u64;
    stored.entries.into_iter().for_each(|entry| transcript.push(entry).unwrap());
    let (tasks, n_waiting) =
        (store.list_tasks(session).await.unwrap(), store.pending_deliveries(session).await.unwrap().len());
    let n_rounds = tasks.first().map_or(0, |task| task.n_turns);
    Some(Reached { n_entries, n_compactions: stored.compactions.len(), n_rounds, n_waiting })
}

fn log_of(database: &Path) -> PathBuf {
    database.with_extension("db-wal")
}

#[tokio::test]
async fn crash_at_any_byte_keeps_earlier_writes() {
    let place = Place::new();
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    let writer = store.acquire_session_lease(&session).await.unwrap();
    let task = store.acquire_task_lease(&child(&store, &session, 1).await).await.unwrap();
    let log_len = || usize::try_from(fs::metadata(log_of(&place.file())).unwrap().len()).unwrap();
    // The length of the log once the session came so far.
    let mut so_far = Reached::default();
    let mut points = vec![(log_len(), so_far)];
    for step in steps() {
        step.store(&store, &writer, &task, &mut so_far).await.unwrap();
        points.push((log_len(), so_far));
    }
    let (database, log) = (fs::read(place.file()).unwrap(), fs::read(log_of(&place.file())).unwrap());

    let start = points[0].0;
    let ends =
        (start..log.len()).step_by(FRAME).flat_map(|whole| [whole, whole + FRAME / 2, whole + FRAME - 1]);
    let mut n_cut = 0;
    for end in ends.filter(|&end| end <= log.len()) {
        let broken = Place::new();
        fs::write(broken.file(), &database).unwrap();
        fs::write(log_of(&broken.file()), &log[..end]).unwrap();
        let &(_, so_far) = points.iter().rfind(|(len, _)| *len <= end).unwrap();
        let found = reached(&broken.open().await, &session).await;
        assert_eq!(found, Some(so_far), "the log ended after {end} bytes");
        n_cut += 1;
    }
    assert!(n_cut > 100, "{n_cut}");
}

#[tokio::test]
async fn full_disk_at_any_page_keeps_earlier_writes() {
    let mut n_failed = 0;
    for n_more_pages in 0.. {
        let place = Place::new();
        place.open().await.close().await.unwrap();
        let n_pages: u32 = Connection::open(place.file())
            .unwrap()
            .query_row("PRAGMA page_count", [], |row| row.get(0))
            .unwrap();
        let file = place.file();
        let limited = move || {
            let database = SqliteBackend::open(&file, SqliteOptions::default())?;
            database.connection().pragma_update(None, "max_page_count", n_pages + n_more_pages).unwrap();
            Ok(Database::new(database))
        };
        let store = Store::start(&place.address, limited).unwrap();
        let session = crate::invent_name();
        let task = SessionId::new("child");
        let child = NewSession { parent: Some(session.clone()), ..session_in("/p", 1) };
        if store.create_session(&session, session_in("/p", 1)).await.is_err()
            || store.create_session(&task, child).await.is_err()
        {
            continue;
        }
        let writer = store.acquire_session_lease(&session).await.unwrap();
        let task = store.acquire_task_lease(&task).await.unwrap();
        let (mut so_far, mut error) = (Reached::default(), None);
        for step in steps() {
            error = step.store(&store, &writer, &task, &mut so_far).await.err();
            if error.is_some() {
                break;
            }
        }
        store.release_session_lease(writer).await;
        store.close().await.unwrap();
        let store = place.open().await;
        assert_eq!(reached(&store, &session).await, Some(so_far));
        let Some(error) = error else { break };
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
        n_failed += 1;
    }
    assert!(n_failed > 10, "{n_failed}");
}
