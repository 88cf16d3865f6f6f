//! Files that belong to other programs, are damaged, or cannot be opened.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use crow_core::{Compaction, SessionId};
use expect_test::{Expect, expect};
use rusqlite::Connection;

use super::{
    Place, begin, delivered, prompt, say,
    tasks::{child, end},
    words,
};
use crate::{
    ForeignFormat, ImportLosses, ImportedSession, Store, StoreError, StoreOptions, TaskPlace, TaskState,
    Timestamp,
    database::Database,
    salvage_database,
    sqlite::{SqliteBackend, SqliteOptions},
};

/// Opens a file that must be rejected, and compares the message and what is left behind.
#[track_caller]
fn check(place: &Place, path: &Path, wanted: &Expect) -> StoreError {
    let before = fingerprint(place.directory.path());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let error = runtime.block_on(Store::open(&Place::at(path))).unwrap_err();
    let directory = place.directory.path().display().to_string();
    wanted.assert_eq(&error.to_string().replace(&directory, "$DIR"));
    assert_eq!(fingerprint(place.directory.path()), before);
    error
}

fn fingerprint(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths.map(|path| (path.clone(), fs::read(path).unwrap_or_default())).collect();
    files.sort();
    files
}

fn foreign(place: &Place, script: &str) -> Connection {
    let connection = Connection::open(place.file()).unwrap();
    connection.execute_batch(script).unwrap();
    connection
}

/// A program that stores one note in each session.
static NOTES: ForeignFormat = ForeignFormat {
    program: "the notebook",
    copy_suffix: "notes",
    recognizes: |connection| connection.table_exists(None, "notes"),
    read_sessions: |database, on_session| {
        let mut statement = database.connection.prepare("SELECT text FROM notes")?;
        let texts = statement.query_map([], |row| row.get::<_, String>(0))?;
        for (number, text) in texts.enumerate() {
            let compaction = Compaction {
                at_seq: 1,
                keep_from: 1,
                verbatim_prompts: Vec::new(),
                summary: Some("noted".to_owned()),
                pruned: Vec::new(),
                tokens_before: 7,
                tokens_after: 0,
                began_ms: 2,
            };
            on_session(ImportedSession {
                id: SessionId::new(format!("note-{number}")),
                parent: None,
                cwd: database.directory.display().to_string(),
                model: "pencil".to_owned(),
                title: None,
                created: Timestamp(1),
                updated: Timestamp(2),
                entries: vec![(prompt(0, &text?), Timestamp(2))],
                compactions: vec![compaction],
            })?;
        }
        Ok(ImportLosses::default())
    },
};

#[tokio::test]
async fn database_in_a_foreign_format_is_imported_only_when_the_format_is_given() {
    let place = Place::new();
    let script = "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('Feed the crows'), ('Sleep')";
    drop(foreign(&place, script));
    let error = Store::open(&place.address).await.unwrap_err();
    assert!(matches!(error, StoreError::OtherProgram { .. }), "{error}");

    let options = StoreOptions::default().with_foreign_formats(std::slice::from_ref(&NOTES));
    let store = options.open(&place.address).await.unwrap();
    let stored = store.load_session(&SessionId::new("note-1")).await.unwrap().unwrap();
    assert_eq!(stored.entries, [prompt(0, "Sleep")]);
    assert_eq!(stored.session.cwd, place.directory.path().display().to_string());
    assert_eq!(stored.compactions[0].summary.as_deref(), Some("noted"));
    let copy = Connection::open(place.directory.path().join("crow.db.notes")).unwrap();
    let n_notes: i64 = copy.query_row("SELECT count(*) FROM notes", [], |row| row.get(0)).unwrap();
    assert_eq!(n_notes, 2);
}

#[test]
fn foreign_database_is_unchanged() {
    let place = Place::new();
    drop(foreign(&place, "CREATE TABLE bookmarks (url TEXT); PRAGMA application_id = 7"));
    let error = check(
        &place,
        &place.file(),
        &expect!["$DIR/crow.db is the database of another program and was left untouched; name another file"],
    );
    assert!(matches!(error, StoreError::OtherProgram { .. }));
}

#[test]
fn text_file_is_unchanged() {
    let place = Place::new();
    fs::write(place.file(), "Dear diary, ".repeat(200)).unwrap();
    let error = check(
        &place,
        &place.file(),
        &expect!["$DIR/crow.db is not a database; move it away or name another file"],
    );
    assert!(matches!(error, StoreError::NotADatabase { .. }));
}

#[test]
fn paths_that_cannot_be_a_database() {
    let place = Place::new();
    fs::write(place.file(), "x").unwrap();
    let below = check(
        &place,
        &place.file().join("crow.db"),
        &expect![
            "the database $DIR/crow.db/crow.db cannot be opened (Not a directory (os error 20)); check the path and its permissions"
        ],
    );
    assert!(matches!(below, StoreError::CannotOpen { .. }));
    let directory = check(
        &place,
        place.directory.path(),
        &expect![
            "the database $DIR cannot be opened (it is a directory); check the path and its permissions"
        ],
    );
    assert!(matches!(directory, StoreError::CannotOpen { .. }));
}

#[tokio::test]
async fn newer_format_is_rejected() {
    let place = Place::new();
    place.open().await.close().await.unwrap();
    foreign(&place, "PRAGMA user_version = 99");
    let error = Store::open(&place.address).await.unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { format: 99, known_format: 9, .. }), "{error}");
    let error = salvage_database(&place.file()).unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { format: 99, .. }), "{error}");
}

#[tokio::test]
async fn damage_is_distinguished_from_other_errors() {
    let place = Place::new();
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    for seq in 0..50 {
        say(&store, &session, seq, &"word ".repeat(200)).await.unwrap();
    }
    store.close().await.unwrap();
    let mut bytes = fs::read(place.file()).unwrap();
    // All but the first page, which contains the application ID.
    bytes[4096..].fill(0xAA);
    fs::write(place.file(), bytes).unwrap();

    let result = match Store::open(&place.address).await {
        Ok(store) => store.load_session(&session).await.map(|_| ()),
        Err(error) => Err(error),
    };
    assert!(matches!(result, Err(StoreError::Damaged { .. })), "{result:?}");
}

#[tokio::test]
async fn salvage_copies_what_can_be_read() {
    let place = Place::new();
    let store = place.open().await;
    let mut sessions = Vec::new();
    for _ in 0..40 {
        let session = begin(&store, "/p", 1).await;
        for seq in 0..10 {
            say(&store, &session, seq, &format!("{seq} {}", "word ".repeat(300))).await.unwrap();
        }
        sessions.push(session);
    }
    store.close().await.unwrap();
    let mut bytes = fs::read(place.file()).unwrap();
    let n_pages = bytes.len() / 4096;
    // A piece in the middle, where the messages are.
    bytes[n_pages / 2 * 4096..(n_pages / 2 + 4) * 4096].fill(0xAA);
    fs::write(place.file(), bytes).unwrap();

    let salvaged = salvage_database(&place.file()).unwrap();
    assert_eq!(salvaged.n_sessions, 40);
    assert!((300..400).contains(&salvaged.n_messages), "{salvaged:?}");
    assert!(salvaged.damaged.exists());
    let store = place.open().await;
    assert_eq!(store.check_integrity().await.unwrap(), [] as [String; 0]);
    let mut n_found = 0;
    for session in &sessions {
        let stored = store.load_session(session).await.unwrap().unwrap();
        assert_eq!(stored.session.n_messages, stored.entries.len() as u64);
        n_found += stored.entries.len() as u64;
    }
    assert_eq!(n_found, salvaged.n_messages);
    assert_eq!(store.search_messages(words("word")).await.unwrap().len(), 10);
    say(
        &store,
        &sessions[0],
        store.load_session(&sessions[0]).await.unwrap().unwrap().entries.len() as u64,
        "on",
    )
    .await
    .unwrap();
}

#[tokio::test]
async fn salvage_requeues_a_lost_delivery() {
    let place = Place::new();
    let store = place.open().await;
    let (parent, orphan) = (begin(&store, "/p", 1).await, begin(&store, "/p", 1).await);
    let (task, lost) = (child(&store, &parent, 2).await, child(&store, &orphan, 2).await);
    let writer = store.acquire_session_lease(&parent).await.unwrap();
    for task in [&task, &lost] {
        let attending = store.acquire_task_lease(task).await.unwrap();
        for text in ["kept", "lost", "waits"] {
            store.begin_task(&attending, "Look", Timestamp(3)).await.unwrap();
            assert!(store.end_task(&attending, end(TaskState::Completed, Some(text), 4)).await.unwrap());
        }
        store.begin_task(&attending, "Look", Timestamp(4)).await.unwrap();
        assert!(store.keep_task_place(task, TaskPlace::new("far".to_owned())).await.unwrap());
    }
    let mail = store.pending_deliveries(&parent).await.unwrap();
    for (seq, delivery) in [(0, Some(&mail[0])), (1, None), (2, Some(&mail[1]))] {
        let ids: Vec<_> = delivery.iter().map(|delivery| delivery.id).collect();
        let entry = prompt(seq, "hello");
        store.append_with_deliveries(&writer, seq, &delivered(&entry, &ids), Timestamp(5)).await.unwrap();
    }
    drop(writer);
    store.close().await.unwrap();
    let damage = format!("DELETE FROM messages WHERE seq = 1; DELETE FROM sessions WHERE id = '{orphan}'");
    foreign(&place, &format!("PRAGMA foreign_keys = OFF; {damage}"));

    let salvaged = salvage_database(&place.file()).unwrap();
    assert_eq!((salvaged.n_sessions, salvaged.n_messages), (3, 1));
    let store = place.open().await;
    let mail = store.pending_deliveries(&parent).await.unwrap();
    assert_eq!(mail.iter().map(|delivery| delivery.text.as_str()).collect::<Vec<_>>(), ["lost", "waits"]);
    assert_eq!(store.find_task(&task).await.unwrap().unwrap().n_turns, 4);
    assert_eq!(store.task_place(&task).await.unwrap(), Some(TaskPlace::new("far".to_owned())));
    assert_eq!(store.find_task(&lost).await.unwrap(), None, "it was not given");
    assert_eq!(store.check_integrity().await.unwrap(), [] as [String; 0]);
}

#[tokio::test]
async fn full_disk_loses_nothing_stored() {
    let place = Place::new();
    let file = place.file();
    let limited = move || {
        let database = SqliteBackend::open(&file, SqliteOptions::default())?;
        database.connection().pragma_update(None, "max_page_count", 80).unwrap();
        Ok(Database::new(database))
    };
    let store = Store::start(&place.address, limited).unwrap();
    let session = begin(&store, "/p", 1).await;
    let mut n_stored = 0;
    let error = loop {
        match say(&store, &session, n_stored, &format!("{n_stored} {}", "filler ".repeat(300))).await {
            Ok(()) => n_stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(n_stored > 0);
    for reader in [store, place.open().await] {
        let stored = reader.load_session(&session).await.unwrap().unwrap();
        assert_eq!((stored.entries.len() as u64, stored.session.n_messages), (n_stored, n_stored));
    }
    // With space again, the session continues where it was.
    say(&place.open().await, &session, n_stored, "more").await.unwrap();
}

#[tokio::test]
async fn lock_timeout_is_an_error() {
    let place = Place::new();
    let file = place.file();
    let impatient = move || {
        let database = SqliteBackend::open(&file, SqliteOptions::default())?;
        database.connection().busy_timeout(Duration::from_millis(1)).unwrap();
        Ok(Database::new(database))
    };
    let store = Store::start(&place.address, impatient).unwrap();
    let session = begin(&store, "/p", 1).await;
    let holder = foreign(&place, "BEGIN IMMEDIATE");
    let error = say(&store, &session, 0, "x").await.unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(store.load_session(&session).await.unwrap().is_some());
    holder.execute_batch("ROLLBACK").unwrap();
    say(&store, &session, 0, "x").await.unwrap();
}

#[tokio::test]
async fn failed_opening_answers_all_that_waited_for_it() {
    let place = Place::new();
    let (permit, permits) = std::sync::mpsc::channel();
    let n_openings = AtomicU32::new(0);
    let unreachable = move || {
        // It has no permit after the first.
        let _ = permits.recv();
        let reason = format!("attempt {}", n_openings.fetch_add(1, Ordering::Relaxed));
        Err(StoreError::Unreachable { database: "the nest".into(), reason })
    };
    let store = Store::start(&place.address, unreachable).unwrap();
    let load = async || store.wait_until_open().await.unwrap_err().to_string();
    let permit_one = async move { permit.send(()).unwrap() };
    let (one, other, third, ()) = tokio::join!(load(), load(), load(), permit_one);
    assert!([&one, &other, &third].iter().all(|error| error.contains("attempt 0")), "{one} {other} {third}");
    let later = load().await;
    assert!(later.contains("attempt 1"), "{later}");
}

#[cfg(unix)]
#[tokio::test]
async fn database_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let place = Place::new();
    let directory = place.directory.path().join("data/a folder?#%");
    let file = directory.join("crow.db");
    let store = Store::open(&Place::at(&file)).await.unwrap();
    let session = begin(&store, "/p", 1).await;
    say(&store, &session, 0, "hello").await.unwrap();
    assert_eq!((mode(&directory), mode(directory.parent().unwrap())), (0o700, 0o700));
    let (writers, files): (Vec<PathBuf>, Vec<PathBuf>) =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).partition(|path| path.is_dir());
    assert_eq!(files.iter().map(|path| mode(path)).collect::<Vec<_>>(), [0o600; 3]);
    assert_eq!(writers.iter().map(|path| mode(path)).collect::<Vec<_>>(), [0o700]);
    store.close().await.unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    Store::open(&Place::at(&file)).await.unwrap();
    assert_eq!(mode(&file), 0o600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn database_may_be_created_concurrently() {
    for _ in 0..20 {
        let place = Place::new();
        let openings: Vec<_> = (0..8)
            .map(|_| {
                let file = place.file();
                tokio::spawn(
                    async move { begin(&Store::open(&Place::at(&file)).await.unwrap(), "/p", 1).await },
                )
            })
            .collect();
        for opening in openings {
            opening.await.unwrap();
        }
    }
}

/// Makes a database of format 2 with a session.
fn make_old_database(place: &Place) -> Connection {
    foreign(
        place,
        &format!(
            "{} {} PRAGMA application_id = 0x43524f57; PRAGMA user_version = 2; PRAGMA journal_mode = WAL;
             INSERT INTO prompts VALUES (1, 0, 'You are a crow.');
             INSERT INTO sessions (id, cwd, model, mode, prompt_id, n_messages, created, updated)
                 VALUES ('old-owl', '/p', 'm', 'ask', 1, 1, 1, 1);
             INSERT INTO messages (session_id, seq, role, data, created) VALUES ('old-owl', 0, 'user',
                 '{{\"role\":\"user\",\"id\":\"msg-0\",\"content\":[{{\"type\":\"text\",\"text\":\"caw\"}}]}}', 1);
             INSERT INTO message_search (rowid, text) VALUES (1, 'caw');",
            include_str!("../../migrations/sqlite/0001_sessions.sql"),
            include_str!("../../migrations/sqlite/0002_thought_level.sql"),
        ),
    )
}

#[tokio::test]
async fn older_format_is_backed_up_and_migrated() {
    let place = Place::new();
    let old = make_old_database(&place);
    let session = SessionId::new("old-owl");
    let store = place.open().await;
    say(&store, &session, 1, "more").await.unwrap();
    assert_eq!(
        store.load_session(&session).await.unwrap().unwrap().entries,
        [prompt(0, "caw"), prompt(1, "more")]
    );
    assert_eq!(store.search_messages(words("caw")).await.unwrap().len(), 1);
    assert_eq!(place.count("messages WHERE turn = seq + 1"), 2);
    assert_eq!(place.count("sessions WHERE agent_type = 'crow-cli'"), 1);
    store.delete_session(&session).await.unwrap();
    assert!(store.search_messages(words("caw")).await.unwrap().is_empty());
    drop(old);

    let backup = Connection::open(place.directory.path().join("crow.db.format-2")).unwrap();
    let read = |sql| backup.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!((read("PRAGMA user_version"), read("SELECT count(*) FROM messages")), (2, 1));
}

#[tokio::test]
async fn older_format_is_salvaged() {
    let place = Place::new();
    drop(make_old_database(&place));
    let salvaged = salvage_database(&place.file()).unwrap();
    assert_eq!((salvaged.n_sessions, salvaged.n_messages), (1, 1));
    assert!(!place.directory.path().join("crow.db.older").exists());
    let store = place.open().await;
    let stored = store.load_session(&SessionId::new("old-owl")).await.unwrap().unwrap();
    assert_eq!(stored.entries, [prompt(0, "caw")]);
    assert_eq!(store.search_messages(words("caw")).await.unwrap().len(), 1);
}

#[cfg(unix)]
#[tokio::test]
async fn link_to_a_database_is_followed() {
    let place = Place::new();
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    let link = place.directory.path().join("elsewhere.db");
    std::os::unix::fs::symlink(place.file(), &link).unwrap();
    let other = Store::open(&Place::at(&link)).await.unwrap();
    let writer = store.acquire_session_lease(&session).await.unwrap();
    let refused = other.acquire_session_lease(&session).await;
    assert!(matches!(refused, Err(StoreError::Busy { .. })), "{refused:?}");
    store.release_session_lease(writer).await;
    other.acquire_session_lease(&session).await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn lease_file_links_are_not_followed() {
    let place = Place::new();
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    say(&store, &session, 0, "hello").await.unwrap();
    let victim = place.directory.path().join("victim");
    fs::write(&victim, "mine").unwrap();
    for directory in ["crow.db-writers", "crow.db-drafts"] {
        let directory = place.directory.path().join(directory);
        fs::create_dir_all(&directory).unwrap();
        let name = format!("{:016x}", crate::hashing::short_hash(session.as_str()).cast_unsigned());
        std::os::unix::fs::symlink(&victim, directory.join(name)).unwrap();
    }
    assert!(store.acquire_session_lease(&session).await.is_err());
    fs::remove_dir_all(place.directory.path().join("crow.db-writers")).unwrap();
    let writer = store.acquire_session_lease(&session).await.unwrap();
    let mut draft = store.begin_draft(&writer, 1);
    draft.push_text("words");
    draft.flush();
    assert_eq!(store.read_draft(&session, 1).await, None);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
}
