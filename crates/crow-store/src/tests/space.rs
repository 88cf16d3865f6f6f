//! The space of deleted sessions in a file.

use std::fs;

use crow_core::SessionId;
use rusqlite::Connection;

use super::{Place, begin, say};
use crate::Store;

/// Creates a session with much text.
async fn fill_session(store: &Store, n_messages: u64) -> SessionId {
    let session = begin(store, "/p", 1).await;
    for seq in 0..n_messages {
        say(store, &session, seq, &"word ".repeat(2_000)).await.unwrap();
    }
    session
}

fn count_free_pages(place: &Place) -> i64 {
    let connection = Connection::open(place.file()).unwrap();
    connection.query_row("PRAGMA freelist_count", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn file_is_rewritten_only_if_much_of_it_is_free() {
    let place = Place::new();
    let store = place.open().await;
    let (small, large) = (fill_session(&store, 4).await, fill_session(&store, 40).await);
    assert_eq!(store.prune_sessions(vec![small]).await.unwrap(), 1);
    assert!(count_free_pages(&place) > 0, "the rest of the file is left alone");
    let size = fs::metadata(place.file()).unwrap().len();
    assert_eq!(store.prune_sessions(vec![large]).await.unwrap(), 1);
    assert_eq!(count_free_pages(&place), 0);
    assert!(fs::metadata(place.file()).unwrap().len() < size);
}

#[tokio::test]
async fn file_is_not_rewritten_while_a_session_is_worked_on() {
    let place = Place::new();
    let (store, other) = (place.open().await, place.open().await);
    let (large, busy) = (fill_session(&store, 40).await, fill_session(&store, 1).await);
    let writer = other.acquire_session_lease(&busy).await.unwrap();
    assert_eq!(store.prune_sessions(vec![large]).await.unwrap(), 1);
    assert!(count_free_pages(&place) > 0, "the holder could not write meanwhile");
    // A killed process leaves the file of its lease.
    fs::write(place.directory.path().join("crow.db-writers/0000000000000001"), "process 1").unwrap();
    other.release_session_lease(writer).await;
    assert_eq!(store.prune_sessions(Vec::new()).await.unwrap(), 0);
    assert_eq!(count_free_pages(&place), 0);
}
