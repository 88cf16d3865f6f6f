//! Tasks, and the deliveries that wait for their parents.

use crow_core::SessionId;

use super::{Place, begin, delivered, named, prompt, run, say, session_in, words};
use crate::{
    CreatorFilter, ListQuery, NewSession, Store, StoreError, TaskEnd, TaskLease, TaskPlace, TaskRow,
    TaskState, Timestamp,
};

/// Creates a session that another started.
pub(super) async fn child(store: &Store, parent: &SessionId, now: i64) -> SessionId {
    let agent_type = Some("codex".into());
    named(store, NewSession { parent: Some(parent.clone()), agent_type, ..session_in("/p", now) })
        .await
        .unwrap()
}

pub(super) fn end(state: TaskState, delivery: Option<&str>, now: i64) -> TaskEnd {
    let delivery = delivery.map(str::to_owned);
    TaskEnd { state, n_tokens: 40, branch: None, delivery, now: Timestamp(now) }
}

/// Begins a turn of a task.
async fn round(store: &Store, task: &SessionId, now: i64) -> TaskLease {
    let attending = store.acquire_task_lease(task).await.unwrap();
    store.begin_task(&attending, "Count the eggs", Timestamp(now)).await.unwrap();
    attending
}

/// Ends a turn of a task.
async fn done(store: &Store, task: &SessionId, text: &str) {
    let attending = round(store, task, 1).await;
    assert!(store.end_task(&attending, end(TaskState::Completed, Some(text), 2)).await.unwrap());
    store.release_task_lease(attending).await;
}

async fn waiting(store: &Store, parent: &SessionId) -> Vec<String> {
    store.pending_deliveries(parent).await.unwrap().into_iter().map(|delivery| delivery.text).collect()
}

pub(super) async fn task_turns_are_counted(place: Place) {
    let store = place.open().await;
    let parent = begin(&store, "/p", 1).await;
    let (second, task) = (child(&store, &parent, 3).await, child(&store, &parent, 2).await);
    assert_eq!(store.find_task(&task).await.unwrap(), None, "a session is no task yet");
    let attending = round(&store, &task, 5).await;
    assert_eq!(attending.task(), &task);
    let begun = TaskRow {
        task: task.clone(),
        parent: parent.clone(),
        agent_type: Some("codex".into()),
        title: "Count the eggs".into(),
        state: TaskState::Running,
        n_turns: 1,
        n_tokens: 0,
        started: Timestamp(5),
        ended: None,
        branch: None,
        has_place: false,
    };
    let now = async || store.find_task(&task).await.unwrap().unwrap();
    assert_eq!(now().await, begun);
    let branch = Some("crow/otter".to_owned());
    let first = TaskEnd { branch: branch.clone(), ..end(TaskState::Failed, None, 6) };
    assert!(store.end_task(&attending, first.clone()).await.unwrap());
    let ended = TaskRow {
        state: TaskState::Failed,
        n_tokens: 40,
        ended: Some(Timestamp(6)),
        branch: branch.clone(),
        ..begun.clone()
    };
    assert_eq!(now().await, ended);
    assert!(!store.end_task(&attending, first).await.unwrap(), "it has ended");
    assert_eq!(now().await, ended);

    store.begin_task(&attending, "Count again", Timestamp(8)).await.unwrap();
    let title = "Count again".to_owned();
    let again = TaskRow { title, n_turns: 2, n_tokens: 40, started: Timestamp(8), branch, ..begun };
    assert_eq!(now().await, again);
    // The usage that an agent reports may be anything.
    let boast = TaskEnd { n_tokens: u64::MAX, ..end(TaskState::Cancelled, Some("stopped"), 9) };
    assert!(store.end_task(&attending, boast).await.unwrap());
    assert_eq!((now().await.n_tokens, now().await.state), (40 + u64::from(u32::MAX), TaskState::Cancelled));
    assert_eq!(waiting(&store, &parent).await, ["stopped"]);

    done(&store, &second, "second").await;
    let tasks = store.list_tasks(&parent).await.unwrap();
    assert_eq!(tasks.into_iter().map(|row| row.task).collect::<Vec<_>>(), [task.clone(), second]);
    assert_eq!(store.list_tasks(&task).await.unwrap(), []);

    store.set_agent_session(&task, "theirs-7").await.unwrap();
    let row = store.load_session(&task).await.unwrap().unwrap().session;
    assert_eq!(
        (row.agent_session_id.as_deref(), row.title.as_deref()),
        (Some("theirs-7"), Some("Count again"))
    );
}

pub(super) async fn task_needs_a_parent_session(place: Place) {
    let store = place.open().await;
    for unknown in [begin(&store, "/p", 1).await, SessionId::new("unknown")] {
        let attending = store.acquire_task_lease(&unknown).await.unwrap();
        let refused = store.begin_task(&attending, "x", Timestamp(1)).await;
        assert!(matches!(refused, Err(StoreError::NoTask(id)) if id == unknown));
        assert!(!store.end_task(&attending, end(TaskState::Completed, Some("x"), 1)).await.unwrap());
    }
    assert_eq!((place.count("tasks"), place.count("mailbox")), (0, 0));
}

pub(super) async fn delivery_is_claimed_once(place: Place) {
    let (store, other) = (place.open().await, place.open().await);
    let (parent, stranger) = (begin(&store, "/p", 1).await, begin(&store, "/p", 1).await);
    let task = child(&store, &parent, 2).await;
    done(&store, &task, "first").await;
    done(&store, &task, "second").await;
    let mail = other.pending_deliveries(&parent).await.unwrap();
    let ids: Vec<_> = mail.iter().map(|delivery| delivery.id).collect();
    assert_eq!((mail[0].text.as_str(), mail[1].text.as_str()), ("first", "second"));
    assert_eq!((&mail[0].task, mail[0].created), (&task, Timestamp(2)));

    let writer = store.acquire_session_lease(&parent).await.unwrap();
    let entry = prompt(0, "first is done");
    store.append_with_deliveries(&writer, 0, &delivered(&entry, &ids[..1]), Timestamp(3)).await.unwrap();
    assert_eq!(waiting(&store, &parent).await, ["second"]);
    // A waiting delivery together with a delivered one: neither is stored.
    let both = prompt(1, "feathers");
    let refused =
        store.append_with_deliveries(&writer, 1, &delivered(&both, &[ids[1], ids[0]]), Timestamp(3)).await;
    assert!(
        matches!(&refused, Err(StoreError::AlreadyDelivered { session, delivery })
            if *session == parent && *delivery == ids[0]),
        "{refused:?}"
    );
    let taken = store.append_with_deliveries(&writer, 0, &delivered(&both, &ids[1..]), Timestamp(3)).await;
    assert!(matches!(taken, Err(StoreError::ConcurrentWrite { .. })), "{taken:?}");
    let theirs = store.acquire_session_lease(&stranger).await.unwrap();
    let refused = store.append_with_deliveries(&theirs, 0, &delivered(&both, &ids[1..]), Timestamp(3)).await;
    assert!(matches!(refused, Err(StoreError::AlreadyDelivered { .. })), "it waits for another session");

    assert_eq!(waiting(&store, &parent).await, ["second"]);
    let stored = store.load_session(&parent).await.unwrap().unwrap();
    assert_eq!((stored.entries, stored.session.n_messages), (vec![entry], 1));
    assert_eq!(store.search_messages(words("feathers")).await.unwrap(), []);
    store.append_with_deliveries(&writer, 1, &delivered(&both, &ids[1..]), Timestamp(3)).await.unwrap();
    assert_eq!(waiting(&store, &parent).await, [] as [&str; 0]);
}

pub(super) async fn deliveries_of_a_task_are_found_beyond_a_page(place: Place) {
    const PAGE: usize = 500;
    let store = place.open().await;
    let parent = begin(&store, "/p", 1).await;
    let (talker, last) = (child(&store, &parent, 2).await, child(&store, &parent, 2).await);
    for _ in 0..PAGE {
        done(&store, &talker, "again").await;
    }
    done(&store, &last, "at last").await;
    assert!(store.pending_deliveries(&parent).await.unwrap().iter().all(|delivery| delivery.task == talker));
    let ids: Vec<_> =
        store.pending_task_deliveries(&last).await.unwrap().iter().map(|delivery| delivery.id).collect();
    assert_eq!((ids.len(), store.pending_task_deliveries(&talker).await.unwrap().len()), (1, PAGE));

    let writer = store.acquire_session_lease(&parent).await.unwrap();
    store
        .append_with_deliveries(&writer, 0, &delivered(&prompt(0, "told"), &ids), Timestamp(3))
        .await
        .unwrap();
    assert_eq!(store.pending_task_deliveries(&last).await.unwrap(), []);
}

pub(super) async fn task_lease_is_exclusive(place: Place) {
    let (one, other) = (place.open().await, place.open().await);
    let parent = begin(&one, "/p", 1).await;
    let task = child(&one, &parent, 2).await;
    let attending = round(&one, &task, 3).await;
    for store in [&one, &other] {
        let refused = store.acquire_task_lease(&task).await;
        assert!(matches!(&refused, Err(StoreError::Busy { session, .. }) if *session == task), "{refused:?}");
    }
    // The child may write in its session meanwhile, and no process may delete it.
    say(&other, &task, 0, "hello").await.unwrap();
    for session in [&task, &parent] {
        assert!(matches!(other.delete_session(session).await, Err(StoreError::Busy { .. })));
    }
    one.release_task_lease(attending).await;
    let attending = other.acquire_task_lease(&task).await.unwrap();
    other.release_task_lease(attending).await;
    one.acquire_task_lease(&task).await.unwrap();
}

pub(super) async fn lost_task_is_reported_once(place: Place) {
    let (one, other) = (place.open().await, place.open().await);
    let parent = begin(&one, "/p", 1).await;
    let (ended, attended) = (child(&one, &parent, 2).await, child(&one, &parent, 3).await);
    done(&one, &ended, "done").await;
    let attending = round(&one, &attended, 5).await;
    let text_of = |task: &TaskRow| format!("{} was lost after {} rounds", task.title, task.n_turns);
    let lose = async |store: &Store| store.mark_lost_tasks(&parent, Timestamp(9), text_of).await.unwrap();
    assert_eq!((lose(&one).await, lose(&other).await), (vec![], vec![]), "another process drives it");

    let mut abandoned = Vec::new();
    for now in 10..20 {
        let task = child(&one, &parent, now).await;
        let attending = round(&one, &task, now).await;
        one.release_task_lease(attending).await;
        abandoned.push(task);
    }
    let (by_one, by_other) = tokio::join!(lose(&one), lose(&other));
    let mut lost: Vec<SessionId> = by_one.into_iter().chain(by_other).collect();
    lost.sort_by_key(|task| abandoned.iter().position(|other| other == task));
    assert_eq!(lost, abandoned);
    let mut wanted = vec!["done".to_owned()];
    wanted.extend(abandoned.iter().map(|_| "Count the eggs was lost after 1 rounds".to_owned()));
    assert_eq!(waiting(&one, &parent).await, wanted);
    let task = one.find_task(&abandoned[0]).await.unwrap().unwrap();
    assert_eq!((task.state, task.ended), (TaskState::Lost, Some(Timestamp(9))));
    assert_eq!(one.find_task(&attended).await.unwrap().unwrap().state, TaskState::Running);

    // It continues when another process gives it a turn.
    drop(round(&other, &abandoned[0], 30).await);
    assert!(one.end_task(&attending, end(TaskState::Completed, None, 31)).await.unwrap());
    assert_eq!(other.find_task(&attended).await.unwrap().unwrap().state, TaskState::Completed);
}

pub(super) async fn task_with_a_place_is_not_lost(place: Place) {
    let (store, other) = (place.open().await, place.open().await);
    let parent = begin(&store, "/p", 1).await;
    let task = child(&store, &parent, 2).await;
    let far = TaskPlace::new("at the farm: s3cret".to_owned());
    assert!(!store.keep_task_place(&task, far.clone()).await.unwrap(), "it has not begun");
    let attending = round(&store, &task, 3).await;
    assert_eq!((store.task_place(&task).await.unwrap(), format!("{far:?}")), (None, "TaskPlace".to_owned()));
    assert!(store.keep_task_place(&task, far.clone()).await.unwrap());
    store.release_task_lease(attending).await;
    let lose = async || other.mark_lost_tasks(&parent, Timestamp(9), |_| "lost".to_owned()).await.unwrap();
    assert_eq!(lose().await, []);
    let row = other.find_task(&task).await.unwrap().unwrap();
    assert!(row.has_place && !format!("{row:?}").contains("s3cret"));

    let attending = other.acquire_task_lease(&task).await.unwrap();
    assert_eq!(other.task_place(&task).await.unwrap(), Some(far.clone()));
    for is_first in [true, false] {
        let ended = other.end_task(&attending, end(TaskState::Completed, Some("done"), 10)).await.unwrap();
        assert_eq!(ended, is_first);
    }
    assert_eq!((waiting(&other, &parent).await, place.count("task_places")), (vec!["done".to_owned()], 0));
    assert!(!other.keep_task_place(&task, far.clone()).await.unwrap(), "it has ended");

    // What was cancelled is not taken up again.
    other.begin_task(&attending, "Count again", Timestamp(11)).await.unwrap();
    assert!(other.keep_task_place(&task, far).await.unwrap());
    other.forget_task_place(&task).await.unwrap();
    other.release_task_lease(attending).await;
    assert_eq!(lose().await, [task]);
}

#[test]
fn task_lease_survives_a_broken_connection() {
    run(Place::on_server(), async |place| {
        let store = place.open().await;
        let parent = begin(&store, "/p", 1).await;
        let (task, released) = (child(&store, &parent, 2).await, child(&store, &parent, 3).await);
        let (attending, dropped) = (round(&store, &task, 4).await, round(&store, &released, 4).await);
        place.direct(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
        let broken = store.find_task(&task).await;
        assert!(matches!(broken, Err(StoreError::Unreachable { .. })), "{broken:?}");
        drop(dropped);
        let lost = store.mark_lost_tasks(&parent, Timestamp(5), |_| "lost".into()).await.unwrap();
        assert_eq!(lost, [released]);
        assert!(store.end_task(&attending, end(TaskState::Completed, None, 6)).await.unwrap());
    });
}

pub(super) async fn task_is_deleted_with_its_session(place: Place) {
    let store = place.open().await;
    let parent = begin(&store, "/p", 1).await;
    let (one, other) = (child(&store, &parent, 2).await, child(&store, &parent, 3).await);
    say(&store, &parent, 0, "hello").await.unwrap();
    done(&store, &one, "one").await;
    done(&store, &other, "other").await;
    let grandchild = child(&store, &one, 4).await;
    done(&store, &grandchild, "below").await;

    let copy = SessionId::new("copy");
    assert!(store.fork_session(&parent, &copy, None, Timestamp(9)).await.unwrap());
    assert_eq!(
        (store.pending_deliveries(&copy).await.unwrap(), store.list_tasks(&copy).await.unwrap()),
        (vec![], vec![])
    );
    assert!(store.delete_session(&other).await.unwrap());
    assert_eq!(waiting(&store, &parent).await, ["one"]);
    // All of one tree, given more than once.
    assert_eq!(store.prune_sessions(vec![parent.clone(), one, copy]).await.unwrap(), 2);
    assert_eq!((place.count("tasks"), place.count("mailbox"), place.count("sessions")), (0, 0, 0));
}

pub(super) async fn silent_task_is_kept(place: Place) {
    let store = place.open().await;
    let parent = begin(&store, "/p", 1).await;
    say(&store, &parent, 0, "hello").await.unwrap();
    let (task, never_begun) = (child(&store, &parent, 2).await, child(&store, &parent, 2).await);
    done(&store, &task, "it broke").await;
    store.delete_empty_sessions(Timestamp(9)).await.unwrap();
    assert_eq!(waiting(&store, &parent).await, ["it broke"]);
    assert_eq!(store.load_session(&never_begun).await.unwrap(), None);
}

pub(super) async fn child_sessions_may_be_hidden(place: Place) {
    let store = place.open().await;
    let parent = begin(&store, "/p", 1).await;
    let task = child(&store, &parent, 2).await;
    for session in [&parent, &task] {
        say(&store, session, 0, "hello").await.unwrap();
    }
    let listed = async |begun_by| {
        let rows = store
            .list_sessions(ListQuery { cwd: None, creator: begun_by, before: None, limit: 9 })
            .await
            .unwrap();
        let mut ids: Vec<SessionId> = rows.into_iter().map(|row| row.id).collect();
        ids.sort_by_key(|id| *id != parent);
        ids
    };
    assert_eq!(listed(CreatorFilter::Any).await, [parent.clone(), task]);
    assert_eq!(listed(CreatorFilter::User).await, std::slice::from_ref(&parent));
    assert_eq!(store.search_messages(words("hello")).await.unwrap().len(), 2);
}
