//! Several processes that use one database at once.

use serde_json::{Value, json};

use super::{Place, begin, prompt, say};
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

pub(super) async fn fork_has_as_many_messages_as_it_counts(place: Place) {
    let store = place.open().await;
    let (session, copy) = (begin(&store, "/p", 1).await, crate::invent_name());
    say(&store, &session, 0, "one").await.unwrap();
    // What another process appends after the fork has begun, as a server shows it to the later statements.
    let append = format!(
        "INSERT INTO messages (session_id, seq, role, data, created)
             SELECT session_id, 1, role, data, created FROM messages WHERE session_id = '{session}';
         UPDATE sessions SET n_messages = 2 WHERE id = '{session}';"
    );
    place.direct(&match place.server {
        None => format!("CREATE TRIGGER append_two AFTER INSERT ON sessions BEGIN {append} END"),
        Some(_) => format!(
            "CREATE FUNCTION append_two() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {append} RETURN NULL; END $$;
             CREATE TRIGGER append_two AFTER INSERT ON sessions FOR EACH ROW EXECUTE FUNCTION append_two()"
        ),
    });
    assert!(store.fork_session(&session, &copy, None, Timestamp(9)).await.unwrap());
    let stored = store.load_session(&copy).await.unwrap().unwrap();
    assert_eq!((stored.session.n_messages, stored.entries), (1, vec![prompt(0, "one")]));
    assert_eq!(store.session_tip(&session).await.unwrap().unwrap().n_messages, 2);
}
