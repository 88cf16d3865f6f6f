mod concurrent;
mod crash;
mod files;
mod kept;
mod leases;
mod search;
pub(crate) mod server;
mod space;
mod speckit;
mod tasks;

use self::concurrent::{
    config_keeps_the_changes_of_all_processes, fork_has_as_many_messages_as_it_counts,
    stores_write_concurrently,
};
use self::kept::{
    changes_of_the_last_turn_are_listed, child_sessions_are_deleted_with_their_parent,
    draft_outlives_its_process, fork_ends_before_a_prompt, fork_is_independent, images_are_stored_once,
    intact_database_has_no_findings, messages_are_read_in_pages, newest_active_compaction_counts,
    old_sessions_are_pruned, search_is_limited_to_a_session_and_paged, session_trees_are_listed,
    side_requests_count_as_usage, tables_match_their_description, templates_and_tools_are_stored_by_content,
    usage_before_the_creation_of_its_session_counts, usage_counts_each_request_once,
};
use self::leases::{
    session_lease_ends_on_drop, session_lease_is_exclusive, session_lease_of_a_killed_process_is_waited_for,
};
use self::search::{
    additions_about_the_session_are_not_found, chinese_japanese_and_korean_are_found,
    messages_of_an_older_format_are_indexed_again,
};
use self::speckit::{
    spec_kit_events_are_listed, spec_kit_state_is_deleted_with_its_session, spec_kit_state_is_stored,
};
use self::tasks::{
    child_sessions_may_be_hidden, deliveries_of_a_task_are_found_beyond_a_page, delivery_is_claimed_once,
    lost_task_is_reported_once, silent_task_is_kept, task_is_deleted_with_its_session,
    task_lease_is_exclusive, task_needs_a_parent_session, task_turns_are_counted,
    task_with_a_place_is_not_lost,
};
use std::path::{Path, PathBuf};

use crow_core::{
    ContentPart, MessageId, Mode, Prompt, Reply, ReplyEnd, SessionId, ThoughtLevel, TokenUsage,
    TranscriptEntry,
};
use proptest::{
    collection::vec,
    prelude::ProptestConfig,
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::{
    CreatorFilter, DatabaseAddress, DeliveredEntry, DeliveryId, ListQuery, NewSession, SearchQuery,
    SessionCursor, Store, StoreError, Timestamp, row,
};

/// The database of a test: in a directory of its own, or a database of its own on the server of `CROW_TEST_POSTGRES`.
struct Place {
    address: DatabaseAddress,
    directory: TempDir,
    server: Option<server::Database>,
}

impl Place {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        Self { address: DatabaseAddress::File(directory.path().join("crow.db")), directory, server: None }
    }

    /// The other database, if there is a server.
    fn on_server() -> Option<Self> {
        let server = server::Database::new()?;
        let directory = TempDir::new().unwrap();
        let address =
            DatabaseAddress::Server { server: server.address(), local_dir: directory.path().to_path_buf() };
        Some(Self { address, directory, server: Some(server) })
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("crow.db")
    }

    fn at(path: &Path) -> DatabaseAddress {
        DatabaseAddress::File(path.to_path_buf())
    }

    async fn open(&self) -> Store {
        Store::open(&self.address).await.unwrap()
    }

    /// Runs SQL directly on the database.
    fn direct(&self, sql: &str) {
        match &self.server {
            Some(server) => server.direct(sql),
            None => Connection::open(self.file()).unwrap().execute_batch(sql).unwrap(),
        }
    }

    /// Counts rows directly in the database.
    fn count(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        match &self.server {
            Some(server) => server.count(&sql),
            None => Connection::open(self.file()).unwrap().query_row(&sql, [], |row| row.get(0)).unwrap(),
        }
    }
}

/// Runs each test on both databases.
macro_rules! on_both {
    ($($name:ident)*) => {
        mod sqlite { $(#[test] fn $name() { super::run(Some(super::Place::new()), super::$name); })* }
        mod postgres { $(#[test] fn $name() { super::run(super::Place::on_server(), super::$name); })* }
    };
}

on_both! {
    stored_session_loads_after_reopening
    session_settings_are_stored
    empty_sessions_are_deleted_in_time
    session_names_can_be_said
    missing_sessions_are_reported
    sessions_are_listed_newest_first_by_page_and_folder
    search_finds_text_of_users_and_models
    search_is_limited_to_a_session_and_paged
    additions_about_the_session_are_not_found
    chinese_japanese_and_korean_are_found
    messages_of_an_older_format_are_indexed_again
    deleted_session_is_gone
    system_prompts_are_stored_once
    images_are_stored_once
    sequence_number_is_used_once
    session_lease_is_exclusive
    session_lease_ends_on_drop
    session_lease_of_a_killed_process_is_waited_for
    stores_write_concurrently
    config_keeps_the_changes_of_all_processes
    fork_has_as_many_messages_as_it_counts
    broken_row_is_reported
    closed_store_is_an_error
    messages_are_read_in_pages
    draft_outlives_its_process
    newest_active_compaction_counts
    fork_is_independent
    fork_ends_before_a_prompt
    side_requests_count_as_usage
    usage_counts_each_request_once
    usage_before_the_creation_of_its_session_counts
    changes_of_the_last_turn_are_listed
    session_trees_are_listed
    old_sessions_are_pruned
    child_sessions_are_deleted_with_their_parent
    intact_database_has_no_findings
    tables_match_their_description
    templates_and_tools_are_stored_by_content
    task_turns_are_counted
    task_needs_a_parent_session
    delivery_is_claimed_once
    deliveries_of_a_task_are_found_beyond_a_page
    task_lease_is_exclusive
    task_with_a_place_is_not_lost
    lost_task_is_reported_once
    task_is_deleted_with_its_session
    silent_task_is_kept
    child_sessions_may_be_hidden
    spec_kit_state_is_stored
    spec_kit_events_are_listed
    spec_kit_state_is_deleted_with_its_session
}

fn run(place: Option<Place>, test: impl AsyncFnOnce(Place)) {
    let Some(place) = place else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(test(place));
}

fn session_in(cwd: &str, now: i64) -> NewSession {
    NewSession {
        cwd: cwd.into(),
        model: "m".into(),
        mode: Mode::Ask,
        thought_level: ThoughtLevel::Default,
        system_prompt: "You are a crow.".into(),
        parent: None,
        agent_type: None,
        now: Timestamp(now),
    }
}

fn prompt(seq: u64, text: &str) -> TranscriptEntry {
    TranscriptEntry::Prompt(Prompt {
        id: MessageId::from_seq(seq),
        parts: vec![ContentPart::Text(text.into())],
    })
}

fn reply(seq: u64, text: &str) -> TranscriptEntry {
    TranscriptEntry::Reply(Reply {
        id: MessageId::from_seq(seq),
        thought: String::new(),
        text: text.into(),
        calls: Vec::new(),
        end: ReplyEnd::Complete,
        usage: Some(TokenUsage::new(3, 4)),
        provider_state: None,
        fallback_model: None,
    })
}

async fn put(
    store: &Store,
    session: &SessionId,
    seq: u64,
    entry: &TranscriptEntry,
) -> Result<(), StoreError> {
    let writer = store.acquire_session_lease(session).await?;
    let done = store.append_entry(&writer, seq, entry, Timestamp(1_000 + seq.cast_signed())).await;
    store.release_session_lease(writer).await;
    done
}

async fn say(store: &Store, session: &SessionId, seq: u64, text: &str) -> Result<(), StoreError> {
    put(store, session, seq, &prompt(seq, text)).await
}

fn delivered<'a>(
    entry: &'a TranscriptEntry,
    deliveries: &'a [DeliveryId],
) -> DeliveredEntry<'a, TranscriptEntry> {
    DeliveredEntry { entry, deliveries }
}

fn words(text: &str) -> SearchQuery {
    SearchQuery { text: text.into(), session: None, limit: 10, offset: 0 }
}

async fn begin(store: &Store, cwd: &str, now: i64) -> SessionId {
    named(store, session_in(cwd, now)).await.unwrap()
}

async fn named(store: &Store, new: NewSession) -> Result<SessionId, StoreError> {
    let id = crate::invent_name();
    store.create_session(&id, new).await.map(|()| id)
}

async fn stored_session_loads_after_reopening(place: Place) {
    let mut runner = TestRunner::new(ProptestConfig { cases: 32, ..ProptestConfig::default() });
    let strategy = vec(row::tests::entries(), 0..12);
    for _ in 0..32 {
        let entries = strategy.new_tree(&mut runner).unwrap().current();
        let store = place.open().await;
        let session = begin(&store, "/p", 1).await;
        let writer = store.acquire_session_lease(&session).await.unwrap();
        for (seq, entry) in entries.iter().enumerate() {
            store.append_entry(&writer, seq as u64, entry, Timestamp(2)).await.unwrap();
        }
        drop(writer);
        store.close().await.unwrap();
        let loaded = place.open().await.load_session(&session).await.unwrap().unwrap();
        assert_eq!(loaded.session.n_messages, entries.len() as u64);
        assert_eq!(loaded.entries, entries);
    }
}

async fn session_settings_are_stored(place: Place) {
    let store = place.open().await;
    let parent = begin(&store, "/p", 1).await;
    let new =
        NewSession { parent: Some(parent.clone()), agent_type: Some("scout".into()), ..session_in("/q", 5) };
    let id = named(&store, new).await.unwrap();
    store.set_title(&id, "Fix the nest").await.unwrap();
    store.set_mode(&id, Mode::AcceptEdits).await.unwrap();
    store.set_model(&id, "other").await.unwrap();
    store.set_thought_level(&id, ThoughtLevel::High).await.unwrap();
    say(&store, &id, 0, "hello").await.unwrap();

    let stored = store.load_session(&id).await.unwrap().unwrap();
    assert_eq!(stored.system_prompt, "You are a crow.");
    let session = stored.session;
    assert_eq!((session.id, session.cwd.as_str(), session.parent), (id, "/q", Some(parent)));
    assert_eq!((session.title.as_deref(), session.model.as_str()), (Some("Fix the nest"), "other"));
    assert_eq!((session.mode, session.thought_level), (Mode::AcceptEdits, ThoughtLevel::High));
    assert_eq!(session.agent_type.as_deref(), Some("scout"));
    assert_eq!((session.created, session.updated, session.n_messages), (Timestamp(5), Timestamp(1_000), 1));
}

async fn empty_sessions_are_deleted_in_time(place: Place) {
    let store = place.open().await;
    let old = begin(&store, "/p", 1).await;
    let spoken_in = begin(&store, "/p", 1).await;
    say(&store, &spoken_in, 0, "hello").await.unwrap();
    let young = begin(&store, "/p", 9).await;
    // A salvaged session may have lost its messages, and its children not.
    let parent = begin(&store, "/p", 1).await;
    let child = NewSession { parent: Some(parent.clone()), ..session_in("/p", 1) };
    let child = named(&store, child).await.unwrap();
    say(&store, &child, 0, "hello").await.unwrap();
    store.delete_empty_sessions(Timestamp(9)).await.unwrap();
    let mut found = Vec::new();
    for id in [&old, &spoken_in, &young, &parent, &child] {
        found.push(store.load_session(id).await.unwrap().is_some());
    }
    assert_eq!(found, [false, true, true, true, true]);
}

async fn session_names_can_be_said(place: Place) {
    let store = place.open().await;
    let id = begin(&store, "/p", 1).await;
    let words: Vec<&str> = id.as_str().split('-').collect();
    assert!(words.len() >= 5 && words.contains(&"of"), "{id}");
    assert!(id.as_str().chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{id}");
}

async fn missing_sessions_are_reported(place: Place) {
    let store = place.open().await;
    let unknown = SessionId::new("unknown");
    assert_eq!(store.load_session(&unknown).await.unwrap(), None);
    assert!(!store.delete_session(&unknown).await.unwrap());
    assert!(matches!(say(&store, &unknown, 0, "x").await, Err(StoreError::NoSession(id)) if id == unknown));
    assert!(matches!(store.set_title(&unknown, "x").await, Err(StoreError::NoSession(_))));
    let taken = begin(&store, "/p", 1).await;
    let again = store.create_session(&taken, session_in("/p", 1)).await;
    assert!(matches!(again, Err(StoreError::NameTaken(id)) if id == taken));
    let orphan = NewSession { parent: Some(unknown), ..session_in("/p", 1) };
    assert!(matches!(named(&store, orphan).await, Err(StoreError::NoSession(_))));
}

async fn sessions_are_listed_newest_first_by_page_and_folder(place: Place) {
    let store = place.open().await;
    let mut ids = Vec::new();
    for (cwd, now) in [("/p", 10), ("/q", 20), ("/p", 30), ("/p", 30), ("/p", 5)] {
        let id = begin(&store, cwd, now).await;
        let writer = store.acquire_session_lease(&id).await.unwrap();
        store.append_entry(&writer, 0, &prompt(0, "hello"), Timestamp(now)).await.unwrap();
        ids.push(id);
    }
    begin(&store, "/p", 40).await;
    say(&store, &ids[0], 1, "the oldest is now the newest").await.unwrap();

    let all = ListQuery { cwd: None, creator: CreatorFilter::User, before: None, limit: 10 };
    let whole = store.list_sessions(all.clone()).await.unwrap();
    let times: Vec<i64> = whole.iter().map(|row| row.updated.0).collect();
    assert_eq!(times, [1_001, 30, 30, 20, 5], "a session in which nothing was said is not listed");
    assert_eq!(whole[0].id, ids[0]);

    let mut paged = Vec::new();
    let mut page = ListQuery { limit: 2, ..all.clone() };
    loop {
        let rows = store.list_sessions(page.clone()).await.unwrap();
        let Some(last) = rows.last() else { break };
        let cursor = SessionCursor::after_session(last);
        assert_eq!(SessionCursor::parse(&cursor.to_string()), Some(cursor.clone()));
        page.before = Some(cursor);
        paged.extend(rows);
    }
    assert_eq!(paged, whole);

    let here = store.list_sessions(ListQuery { cwd: Some("/q".into()), ..all }).await.unwrap();
    assert_eq!(here.iter().map(|row| &row.id).collect::<Vec<_>>(), [&ids[1]]);
}

async fn search_finds_text_of_users_and_models(place: Place) {
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    say(&store, &session, 0, "Where is the *Parser* of \"foo-bar\"?").await.unwrap();
    put(&store, &session, 1, &reply(1, "The parser is here.")).await.unwrap();
    say(&store, &session, 2, "Grüße").await.unwrap();

    let found = async |typed: &str| {
        let mut places: Vec<u64> =
            store.search_messages(words(typed)).await.unwrap().iter().map(|hit| hit.seq).collect();
        places.sort_unstable();
        places
    };
    assert_eq!(found("parser").await, [0, 1]);
    assert_eq!(found("PARSER here").await, [1]);
    assert_eq!(found("\"foo-bar\" AND").await, [] as [u64; 0]);
    assert_eq!(found("\"foo-bar").await, [0]);
    assert_eq!(found("grusse").await, [] as [u64; 0]);
    assert_eq!(found("gruße").await, [2]);
    for odd in ["", "*", "\"", "a:b NEAR( ^x", "' OR 1=1 --", "\0"] {
        found(odd).await;
    }
    let best = store.search_messages(SearchQuery { limit: 1, ..words("parser") }).await.unwrap();
    assert_eq!((best.len(), &best[0].session), (1, &session));
    assert_eq!(best[0].snippet, "The parser is here.");
}

async fn deleted_session_is_gone(place: Place) {
    let store = place.open().await;
    let kept = begin(&store, "/p", 1).await;
    let secret = NewSession { system_prompt: "hush zanzibar".into(), ..session_in("/p", 1) };
    let session = named(&store, secret).await.unwrap();
    let child = NewSession { parent: Some(session.clone()), ..session_in("/p", 1) };
    let child = named(&store, child).await.unwrap();
    say(&store, &session, 0, "the word is zanzibar").await.unwrap();
    say(&store, &child, 0, "zanzibar again").await.unwrap();
    say(&store, &kept, 0, "nothing of it").await.unwrap();

    let writer = store.acquire_session_lease(&session).await.unwrap();
    assert!(matches!(store.delete_session(&session).await, Err(StoreError::Busy { .. })), "it is running");
    store.release_session_lease(writer).await;
    assert!(store.delete_session(&session).await.unwrap());
    assert!(!store.delete_session(&session).await.unwrap());
    assert_eq!(store.load_session(&child).await.unwrap(), None);
    assert!(store.search_messages(words("zanzibar")).await.unwrap().is_empty());
    assert_eq!(store.search_messages(words("nothing")).await.unwrap().len(), 1);
    if place.server.is_none() {
        for entry in std::fs::read_dir(place.directory.path()).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap_or_default();
            assert!(!bytes.windows(8).any(|window| window == b"zanzibar"), "{}", path.display());
        }
    }
}

async fn system_prompts_are_stored_once(place: Place) {
    let store = place.open().await;
    let first = begin(&store, "/p", 1).await;
    begin(&store, "/q", 2).await;
    assert_eq!(place.count("system_prompts"), 1);
    store.set_system_prompt(&first, "Be brief.".to_owned()).await.unwrap();
    assert_eq!(place.count("system_prompts"), 2);
    assert_eq!(store.load_session(&first).await.unwrap().unwrap().system_prompt, "Be brief.");
    store.delete_session(&first).await.unwrap();
    assert_eq!(place.count("system_prompts"), 1);
}

async fn sequence_number_is_used_once(place: Place) {
    let (one, other) = (place.open().await, place.open().await);
    let session = begin(&one, "/p", 1).await;
    say(&one, &session, 0, "first").await.unwrap();
    let clash = say(&other, &session, 0, "also first").await;
    assert!(matches!(clash, Err(StoreError::ConcurrentWrite { session: id, seq: 0 }) if id == session));
    say(&other, &session, 1, "second").await.unwrap();

    let stored = one.load_session(&session).await.unwrap().unwrap();
    assert_eq!(stored.entries, [prompt(0, "first"), prompt(1, "second")]);
    assert_eq!(stored.session.n_messages, 2);
}

async fn broken_row_is_reported(place: Place) {
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    for seq in 0..3 {
        say(&store, &session, seq, "word").await.unwrap();
    }
    let bad_row = async |wanted: u64, wanted_why: &str| {
        let error = store.load_session(&session).await.unwrap_err();
        let StoreError::BadRow { session: id, seq, reason: why } = error else { panic!("{error}") };
        assert_eq!((id, seq, why.as_str()), (session.clone(), wanted, wanted_why));
    };
    place.direct("UPDATE messages SET data = '{' WHERE seq = 2");
    bad_row(2, "EOF while parsing an object at line 1 column 1").await;
    place.direct("DELETE FROM messages WHERE seq = 1");
    bad_row(1, "it is missing").await;
    assert_eq!(store.search_messages(words("word")).await.unwrap().len(), 1);
}

async fn closed_store_is_an_error(place: Place) {
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    store.sync().await.unwrap();
    let clone = store.clone();
    store.close().await.unwrap();
    assert!(matches!(say(&clone, &session, 0, "x").await, Err(StoreError::Closed)));
    assert!(place.open().await.load_session(&session).await.unwrap().is_some());
}
