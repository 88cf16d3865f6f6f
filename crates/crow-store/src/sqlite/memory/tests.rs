use std::collections::BTreeMap;
use std::sync::Arc;

use crow_core::{ContentPart, MessageId, Mode, Prompt, SessionId, ThoughtLevel, TranscriptEntry};

use super::{MemoryDatabase, lock};
use crate::{DiskFault, DiskWait, NewSession, SimulatedDisk, Store, Timestamp};

/// A disk that is fast and never fails.
struct GoodDisk;

impl SimulatedDisk for GoodDisk {
    fn wait(&self) -> DiskWait<'_> {
        Box::pin(std::future::ready(()))
    }

    fn next_fault(&self, _is_write: bool) -> Option<DiskFault> {
        None
    }
}

fn session_below(parent: Option<&SessionId>) -> NewSession {
    NewSession {
        cwd: "/p".into(),
        model: "m".into(),
        mode: Mode::Ask,
        thought_level: ThoughtLevel::Default,
        system_prompt: "You are a crow.".into(),
        parent: parent.cloned(),
        agent_type: None,
        now: Timestamp(1),
    }
}

/// Stores a session with a message, and a child of it.
async fn use_store(store: &Store) -> [SessionId; 2] {
    let (parent, child) = (store.new_session_id(), store.new_session_id());
    store.create_session(&parent, session_below(None)).await.unwrap();
    store.create_session(&child, session_below(Some(&parent))).await.unwrap();
    let lease = store.acquire_session_lease(&parent).await.unwrap();
    let parts = vec![ContentPart::Text("feathers".into())];
    let entry = TranscriptEntry::Prompt(Prompt { id: MessageId::from_seq(0), parts });
    store.append_entry(&lease, 0, &entry, Timestamp(2)).await.unwrap();
    [parent, child]
}

/// Counts the rows of every table, and those of the tables behind the search.
fn count_rows(database: &MemoryDatabase) -> BTreeMap<String, i64> {
    let shared = lock(&database.shared);
    let select = "SELECT name FROM pragma_table_list WHERE schema = 'main'";
    let mut statement = shared.connection.prepare(select).unwrap();
    let tables: Vec<String> =
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    let count = |table: &String| {
        let sql = format!("SELECT count(*) FROM {table}");
        shared.connection.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    tables.iter().map(|table| (table.clone(), count(table))).collect()
}

#[tokio::test]
async fn cleared_database_is_as_new() {
    let directory = tempfile::tempdir().unwrap();
    let database = MemoryDatabase::create(directory.path().to_owned()).unwrap();
    let rows_of_a_new_one = count_rows(&database);
    let first_run = use_store(&database.open(Arc::new(GoodDisk))).await;
    assert_ne!(count_rows(&database), rows_of_a_new_one);
    database.clear().unwrap();
    assert_eq!(count_rows(&database), rows_of_a_new_one);
    assert_eq!(database.session_ids(), []);
    assert_eq!(use_store(&database.open(Arc::new(GoodDisk))).await, first_run);
}
