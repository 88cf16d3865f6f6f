//! The leases of sessions.

use std::{any::Any, fs};

use crow_core::SessionId;

use super::{Place, begin, say};
use crate::{LeaseHolder, StoreError, sql::LeaseKey};

pub(super) async fn session_lease_is_exclusive(place: Place) {
    let (one, other) = (place.open().await, place.open().await);
    let (session, another) = (begin(&one, "/p", 1).await, begin(&one, "/p", 1).await);
    let writer = one.acquire_session_lease(&session).await.unwrap();
    let refused = other.acquire_session_lease(&session).await.unwrap_err();
    assert!(refused.to_string().contains(" is in use for another client of this process; "), "{refused}");
    assert!(matches!(refused, StoreError::Busy { session: id, .. } if id == session));
    assert!(other.acquire_session_lease(&another).await.is_ok(), "another session is free");
    one.release_session_lease(writer).await;
    other.acquire_session_lease(&session).await.unwrap();
}

pub(super) async fn session_lease_ends_on_drop(place: Place) {
    let (one, other) = (place.open().await, place.open().await);
    let session = begin(&one, "/p", 1).await;
    let writer = one.acquire_session_lease(&session).await.unwrap();
    // The end of a process releases its lease.
    one.close().await.unwrap();
    drop(writer);
    say(&other, &session, 0, "mine").await.unwrap();
}

/// Holds the lease of a session as a process does, until the value is dropped.
fn hold_lease(place: &Place, session: &SessionId, pid: u32) -> Box<dyn Any> {
    let lock_id = LeaseKey::Session(session.clone()).lock_id();
    match &place.server {
        Some(server) => Box::new(server.lock(&format!("crow process {pid}"), lock_id)),
        None => {
            let directory = place.directory.path().join("crow.db-writers");
            fs::create_dir_all(&directory).unwrap();
            let path = directory.join(format!("{:016x}", lock_id.cast_unsigned()));
            fs::write(&path, format!("process {pid}")).unwrap();
            let file = fs::File::open(&path).unwrap();
            file.lock().unwrap();
            Box::new(file)
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "it ends at once and has no output")]
fn pid_of_ended_process() -> u32 {
    let mut process = std::process::Command::new("true").spawn().unwrap();
    process.wait().unwrap();
    process.id()
}

pub(super) async fn session_lease_of_a_killed_process_is_waited_for(place: Place) {
    let (store, other) = (place.open().await, place.open().await);
    let (session, another) = (begin(&store, "/p", 1).await, begin(&store, "/p", 2).await);
    let _held = hold_lease(&place, &another, 1);
    let refused = store.acquire_session_lease(&another).await.unwrap_err();
    let StoreError::Busy { holder: LeaseHolder::OtherProcess { pid, .. }, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!(pid, Some(1));
    // As a child that has not run its program yet, or a server that has not noticed.
    let held = hold_lease(&place, &session, pid_of_ended_process());
    let release_later = async {
        for _ in 0..20 {
            other.session_tip(&session).await.unwrap();
        }
        drop(held);
    };
    let (acquired, ()) = tokio::join!(store.acquire_session_lease(&session), release_later);
    acquired.unwrap();
}
