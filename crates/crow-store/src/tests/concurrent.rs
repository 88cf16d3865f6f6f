//! Several processes that use one database at once.

use serde_json::{Value, json};

use super::{Place, begin, prompt};
use crate::{Store, Timestamp};

pub(super) async fn stores_write_concurrently(place: Place) {
    const N_EACH: u64 = 100;
    // Each of them may find that there are no tables yet.
    let (one, other, _third, _fourth) = tokio::join!(place.open(), place.open(), place.open(), place.open());
    let write = |store: Store| async move {
        let session = begin(&store, "/p", 1).await;
        let writer = store.acquire_session_lease(&session).await.unwrap();
        for seq in 0..N_EACH {
            store.append_entry(&writer, seq, &prompt(seq, "word"), Timestamp(2)).await.unwrap();
        }
        session
    };
    let (a, b) = tokio::join!(tokio::spawn(write(one.clone())), tokio::spawn(write(other.clone())));
    for (reader, session) in [(&other, a.unwrap()), (&one, b.unwrap())] {
        assert_eq!(reader.load_session(&session).await.unwrap().unwrap().entries.len() as u64, N_EACH);
    }
}

pub(super) async fn config_keeps_the_changes_of_all_processes(place: Place) {
    const N_ROUNDS: u64 = 50;
    let (one, other) = tokio::join!(place.open(), place.open());
    let session = begin(&one, "/p", 1).await;
    for round in 0..N_ROUNDS {
        let (a, b) = tokio::join!(
            one.set_config(&session, "a", Some(json!(round))),
            other.set_config(&session, "b", Some(json!(round))),
        );
        a.and(b).unwrap();
        let config = one.session_tip(&session).await.unwrap().unwrap().config;
        let config: Value = serde_json::from_str(&config).unwrap();
        assert_eq!(config, json!({ "a": round, "b": round }));
    }
}
