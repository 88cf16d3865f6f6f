//! The Spec Kit state of sessions.

use crow_core::{ContentHash, SessionId};

use super::{Place, begin, run, say};
use crate::{SpeckitEvent, SpeckitRow, Store, StoreError, Timestamp, salvage_database};

fn row(command: &str) -> SpeckitRow {
    SpeckitRow {
        project_root: "/p".into(),
        feature_dir: Some("specs/001-nests".into()),
        last_command: Some(command.into()),
        updated: Timestamp(5),
    }
}

fn event(ts: i64) -> SpeckitEvent {
    SpeckitEvent {
        ts: Timestamp(ts),
        command: "plan".into(),
        args_sha: Some(ContentHash::new([8; 32])),
        outcome: "done".into(),
        files: vec!["specs/001-nests/plan.md".into(), "a \"quoted\" name, é".into()],
    }
}

/// Stores a session's state and events in one go.
async fn work(store: &Store, session: &SessionId, row: SpeckitRow, events: Vec<SpeckitEvent>) {
    let writer = store.acquire_session_lease(session).await.unwrap();
    store.set_speckit_state(&writer, row).await.unwrap();
    for event in events {
        store.log_speckit_event(&writer, event).await.unwrap();
    }
    store.release_session_lease(writer).await;
}

pub(super) async fn spec_kit_state_is_stored(place: Place) {
    let store = place.open().await;
    let (session, other) = (begin(&store, "/p", 1).await, begin(&store, "/p", 1).await);
    assert_eq!(store.speckit_state(&session).await.unwrap(), None);
    work(&store, &session, row("specify"), vec![]).await;
    assert_eq!(store.speckit_state(&session).await.unwrap(), Some(row("specify")));

    let elsewhere = SpeckitRow {
        project_root: "/q".into(),
        feature_dir: None,
        last_command: None,
        updated: Timestamp(9),
    };
    work(&store, &session, elsewhere.clone(), vec![]).await;
    store.close().await.unwrap();
    let store = place.open().await;
    assert_eq!(store.speckit_state(&session).await.unwrap(), Some(elsewhere));
    assert_eq!(store.speckit_state(&other).await.unwrap(), None);

    let unknown = SessionId::new("unknown");
    let writer = store.acquire_session_lease(&unknown).await.unwrap();
    for refused in
        [store.set_speckit_state(&writer, row("x")).await, store.log_speckit_event(&writer, event(1)).await]
    {
        assert!(matches!(&refused, Err(StoreError::NoSession(id)) if *id == unknown), "{refused:?}");
    }
}

pub(super) async fn spec_kit_events_are_listed(place: Place) {
    let store = place.open().await;
    let (session, other) = (begin(&store, "/p", 1).await, begin(&store, "/p", 1).await);
    let busy =
        SpeckitEvent { args_sha: None, files: (0..300).map(|n| format!("src/{n}.rs")).collect(), ..event(2) };
    work(&store, &session, row("plan"), vec![event(1), busy.clone()]).await;
    work(&store, &other, row("plan"), vec![event(3)]).await;
    let files = busy.files[..SpeckitEvent::FILES_MAX].to_vec();
    let wanted = [SpeckitEvent { files, ..busy }, event(1)];
    assert_eq!(store.speckit_events(&session, 10).await.unwrap(), wanted);
    assert_eq!(store.speckit_events(&session, 1).await.unwrap(), wanted[..1]);

    // A value that another program wrote there is no reason to fail.
    place.direct("UPDATE speckit_event SET files = 'nonsense', args_sha = 'nonsense'");
    let found = store.speckit_events(&other, 10).await.unwrap();
    assert_eq!(found, [SpeckitEvent { args_sha: None, files: vec![], ..event(3) }]);

    const KEPT: i64 = 1_000;
    work(&store, &session, row("plan"), (10..12 + KEPT).map(event).collect()).await;
    assert_eq!(place.count(&format!("speckit_event WHERE session_id = '{session}'")), KEPT);
    assert_eq!(place.count("speckit_event WHERE ts < 12"), 1, "the other session keeps its own");
    assert_eq!(store.speckit_events(&session, 1).await.unwrap()[0].ts, Timestamp(11 + KEPT));
}

pub(super) async fn spec_kit_state_is_deleted_with_its_session(place: Place) {
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    say(&store, &session, 0, "hello").await.unwrap();
    work(&store, &session, row("plan"), vec![event(1)]).await;
    let copy = SessionId::new("copy");
    assert!(store.fork_session(&session, &copy, None, Timestamp(9)).await.unwrap());
    assert_eq!(store.speckit_state(&copy).await.unwrap(), Some(row("plan")));
    assert_eq!(store.speckit_events(&copy, 10).await.unwrap(), []);
    work(&store, &copy, row("tasks"), vec![]).await;
    assert_eq!(store.speckit_state(&session).await.unwrap(), Some(row("plan")));

    assert!(store.delete_session(&session).await.unwrap());
    assert_eq!((place.count("speckit_session"), place.count("speckit_event")), (1, 0));
    assert!(store.delete_session(&copy).await.unwrap());
    assert_eq!(place.count("speckit_session"), 0);
}

#[tokio::test]
async fn salvage_copies_spec_kit_state() {
    let place = Place::new();
    let store = place.open().await;
    let (session, lost) = (begin(&store, "/p", 1).await, begin(&store, "/p", 1).await);
    for session in [&session, &lost] {
        work(&store, session, row("plan"), vec![event(1), event(2)]).await;
    }
    store.close().await.unwrap();
    place.direct(&format!("PRAGMA foreign_keys = OFF; DELETE FROM sessions WHERE id = '{lost}'"));

    salvage_database(&place.file()).unwrap();
    let store = place.open().await;
    assert_eq!(store.speckit_state(&session).await.unwrap(), Some(row("plan")));
    assert_eq!(store.speckit_events(&session, 10).await.unwrap(), [event(2), event(1)]);
    assert_eq!((place.count("speckit_session"), place.count("speckit_event")), (1, 2));
}

#[test]
fn server_with_an_older_format_is_migrated() {
    run(Place::on_server(), async |place| {
        let store = place.open().await;
        let session = begin(&store, "/p", 1).await;
        store.close().await.unwrap();
        place.direct(
            "DROP TABLE speckit_session, speckit_event, asides, task_places;
             ALTER TABLE messages DROP COLUMN turn;
             ALTER TABLE sessions DROP COLUMN tools_id, DROP COLUMN prompt_id;
             DROP TABLE tool_definitions, prompts;
             ALTER TABLE sessions RENAME COLUMN system_prompt_id TO prompt_id;
             ALTER TABLE system_prompts RENAME TO prompts;
             ALTER INDEX system_prompts_by_hash RENAME TO prompts_by_hash;
             DELETE FROM format WHERE version >= 3",
        );
        let store = place.open().await;
        work(&store, &session, row("plan"), vec![]).await;
        assert_eq!(store.speckit_state(&session).await.unwrap(), Some(row("plan")));
    });
}
