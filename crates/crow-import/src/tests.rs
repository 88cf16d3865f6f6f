//! Databases of the Python version, opened by the store.

use std::path::PathBuf;
use std::time::Duration;

use crow_core::{ContentPart, MessageId, Prompt, SessionId, TranscriptEntry};
use crow_store::{DatabaseAddress, SearchQuery, Store, StoreError, StoreOptions, Timestamp};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::PYTHON_FORMAT;

/// A lock is not released in this time.
const SOON: Duration = Duration::from_millis(50);

/// A directory with a database of the Python version.
struct OldHome {
    directory: TempDir,
}

impl OldHome {
    /// Creates the database and returns the connection to it.
    fn new(script: &str) -> (Self, Connection) {
        let home = Self { directory: TempDir::new().unwrap() };
        let connection = Connection::open(home.path("crow.db")).unwrap();
        connection.execute_batch(script).unwrap();
        (home, connection)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    async fn open(&self) -> Result<Store, StoreError> {
        self.open_with(options()).await
    }

    async fn open_with(&self, options: StoreOptions) -> Result<Store, StoreError> {
        options.open(&DatabaseAddress::File(self.path("crow.db"))).await
    }
}

fn options() -> StoreOptions {
    StoreOptions::default().with_foreign_formats(std::slice::from_ref(&PYTHON_FORMAT))
}

fn prompt(seq: u64, text: &str) -> TranscriptEntry {
    let parts = vec![ContentPart::Text(text.to_owned())];
    TranscriptEntry::Prompt(Prompt { id: MessageId::from_seq(seq), parts })
}

#[tokio::test]
async fn python_database_is_imported() {
    for is_logged in [false, true] {
        let (home, old) = OldHome::new(include_str!("database/tests/0.1.48.sql"));
        if is_logged {
            old.execute_batch("PRAGMA journal_mode = WAL").unwrap();
        }
        old.execute_batch(
            r#"CREATE VIRTUAL TABLE words USING fts5 (text);
            INSERT INTO agents VALUES ('otter-1', 'otter', 1, 1, NULL, '/p', NULL, NULL, 'You are Crow', '[]', NULL,
                '{}', 'qwen3', 'active', '2026-01-02T03:00:00+00:00');
            INSERT INTO messages VALUES (1, 'otter-1', 1, '2026-01-02T03:00:01+00:00',
                '{"role": "user", "content": "Where is the nest?"}', 'user', NULL, NULL, NULL);
            INSERT INTO messages VALUES (2, 'otter-1', 1, '2026-01-02T03:00:02+00:00',
                '{"role": "assistant", "content": "In the oak."}', 'assistant', 3, 4, 7);"#,
        )
        .unwrap();
        let before = Connection::open(home.path("crow.db")).unwrap();
        let store = home.open().await.unwrap();
        drop((old, before));
        let otter = SessionId::new("otter");
        let stored = store.load_session(&otter).await.unwrap().unwrap();
        assert_eq!(stored.entries[0], prompt(0, "Where is the nest?"));
        assert_eq!((stored.entries.len(), stored.session.n_messages), (2, 2));
        assert_eq!((stored.session.cwd.as_str(), stored.session.model.as_str()), ("/p", "qwen3"));
        let query = SearchQuery { text: "nest".to_owned(), session: None, limit: 10, offset: 0 };
        assert_eq!(store.search_messages(query).await.unwrap()[0].session, otter);
        let lease = store.acquire_session_lease(&otter).await.unwrap();
        store.append_entry(&lease, 2, &prompt(2, "Thanks!"), Timestamp(1)).await.unwrap();
        assert_eq!(store.check_integrity().await.unwrap(), [] as [String; 0]);

        let copy = Connection::open(home.path("crow.db.python")).unwrap();
        let n_old: i64 = copy.query_row("SELECT count(*) FROM agents", [], |row| row.get(0)).unwrap();
        assert_eq!(n_old, 1);
    }
}

#[tokio::test]
async fn python_database_in_use_is_unchanged() {
    let (home, old) = OldHome::new(include_str!("database/tests/0.1.22.sql"));
    old.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = home.open_with(options().with_lock_timeout(SOON)).await.unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    old.execute_batch("ROLLBACK").unwrap();
    home.open().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn python_database_is_imported_once() {
    let (home, old) = OldHome::new(include_str!("database/tests/0.1.22.sql"));
    drop(old);
    let home = std::sync::Arc::new(home);
    let opening = || {
        let home = home.clone();
        tokio::spawn(async move { home.open().await.map(drop) })
    };
    for opened in [opening(), opening(), opening(), opening()] {
        opened.await.unwrap().unwrap();
    }
    assert!(home.path("crow.db.python").exists());
    assert!(!home.path("crow.db.python-2").exists());
}
