//! A session's data besides its messages, and operations on whole sessions.

use crow_core::{
    CallId, Compaction, ContentHash, ContentPart, MessageId, Prompt, Reply, SessionId, SideRequestUsage,
    TokenUsage, TranscriptEntry,
};
use expect_test::expect;

use super::{Place, begin, named, prompt, put, reply, say, session_in, words};
use crate::{
    MessageRange, NewFileChange, NewSession, PeriodUsage, SearchQuery, StoreError, Timestamp, UndoSnapshot,
};

pub(super) async fn search_is_limited_to_a_session_and_paged(place: Place) {
    let store = place.open().await;
    let (one, other) = (begin(&store, "/p", 1).await, begin(&store, "/p", 1).await);
    for seq in 0..3 {
        say(&store, &one, seq, "feather").await.unwrap();
    }
    say(&store, &other, 0, "feather").await.unwrap();
    let within = |session: &SessionId, offset| SearchQuery {
        session: Some(session.clone()),
        limit: 2,
        offset,
        ..words("feather")
    };
    let n_found = async |query| store.search_messages(query).await.unwrap().len();
    assert_eq!(n_found(words("feather")).await, 4);
    assert_eq!(n_found(within(&other, 0)).await, 1);
    assert_eq!((n_found(within(&one, 0)).await, n_found(within(&one, 2)).await), (2, 1));
}

pub(super) async fn images_are_stored_once(place: Place) {
    let store = place.open().await;
    let image = ContentPart::Image { mime: "image/png".into(), data: "iVBORw0KGgo=".into() };
    let odd = ContentPart::Image { mime: "image/png".into(), data: "not base64".into() };
    let parts = vec![image.clone(), image.clone(), odd];
    let shown = TranscriptEntry::Prompt(Prompt { id: MessageId::from_seq(0), parts });
    let (one, other) = (begin(&store, "/p", 1).await, begin(&store, "/p", 1).await);
    for session in [&one, &other] {
        put(&store, session, 0, &shown).await.unwrap();
    }
    assert_eq!((place.count("blobs"), place.count("blob_uses")), (1, 2));
    assert_eq!(store.load_session(&one).await.unwrap().unwrap().entries, std::slice::from_ref(&shown));
    store.delete_session(&one).await.unwrap();
    assert_eq!(store.load_session(&other).await.unwrap().unwrap().entries, [shown]);
    store.delete_session(&other).await.unwrap();
    assert_eq!(place.count("blobs"), 0);
}

pub(super) async fn messages_are_read_in_pages(place: Place) {
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    for seq in 0..5 {
        say(&store, &session, seq, &format!("word {seq}")).await.unwrap();
    }
    let page = store.load_messages(&session, MessageRange { from: 3, limit: 10 }).await.unwrap();
    assert_eq!(page.iter().map(|message| message.seq).collect::<Vec<_>>(), [3, 4]);
    assert_eq!((&page[0].entry, page[0].created), (&prompt(3, "word 3"), Timestamp(1_003)));
    assert_eq!(store.load_messages(&session, MessageRange { from: 0, limit: 2 }).await.unwrap().len(), 2);
}

pub(super) async fn newest_active_compaction_counts(place: Place) {
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    say(&store, &session, 0, "hello").await.unwrap();
    let writer = store.acquire_session_lease(&session).await.unwrap();
    let first = Compaction {
        at_seq: 9,
        keep_from: 7,
        verbatim_prompts: vec![0, 4],
        summary: Some("It \"began\".".into()),
        pruned: vec![CallId::from_position(8, 0), CallId::from_position(8, 1)],
        tokens_before: 900,
        tokens_after: 90,
        began_ms: 5,
    };
    let cleared = Compaction {
        at_seq: 12,
        keep_from: 12,
        verbatim_prompts: vec![],
        summary: None,
        pruned: vec![],
        ..first
    };
    for compaction in [&first, &cleared] {
        store.record_compaction(&writer, compaction).await.unwrap();
        assert_eq!(store.session_tip(&session).await.unwrap().unwrap().compaction.as_ref(), Some(compaction));
    }
    let in_force = async || store.load_session(&session).await.unwrap().unwrap().compactions;
    assert_eq!(in_force().await, [first.clone(), cleared.clone()]);
    assert_eq!(store.undo_compaction(&writer, Timestamp(6)).await.unwrap(), Some(cleared.clone()));
    assert_eq!(in_force().await, std::slice::from_ref(&first));
    let again = Compaction { began_ms: 7, ..cleared.clone() };
    store.record_compaction(&writer, &again).await.unwrap();
    assert_eq!(in_force().await, [first.clone(), again.clone()]);
    for taken_back in [Some(again), Some(first), None] {
        assert_eq!(store.undo_compaction(&writer, Timestamp(8)).await.unwrap(), taken_back);
    }
    assert_eq!(store.session_tip(&session).await.unwrap().unwrap().compaction, None);
    assert_eq!(place.count("compaction_history"), 3, "what was taken back is still known");
    // A salvage skips generations that cannot be read.
    place.direct("DELETE FROM compaction_history WHERE generation = 1");
    store.record_compaction(&writer, &cleared).await.unwrap();
    assert_eq!(in_force().await, [cleared]);
}

pub(super) async fn side_requests_count_as_usage(place: Place) {
    let store = place.open().await;
    let (session, copy) = (begin(&store, "/p", 1).await, crate::invent_name());
    let (asked, dear) =
        (TokenUsage::new(5, 1), TokenUsage { cached: 2, cost: Some(u64::MAX - 9), ..TokenUsage::new(7, 3) });
    say(&store, &session, 0, "hello").await.unwrap();
    let writer = store.acquire_session_lease(&session).await.unwrap();
    store.record_side_request(&writer, asked, Timestamp(5)).await.unwrap();
    let mut said = reply(1, "hi");
    if let TranscriptEntry::Reply(said) = &mut said {
        said.usage = Some(TokenUsage { cache_written: 4, cost: Some(9), ..TokenUsage::new(20, 2) });
    }
    store.append_entry(&writer, 1, &said, Timestamp(6)).await.unwrap();
    store.record_side_request(&writer, dear, Timestamp(7)).await.unwrap();
    store.release_session_lease(writer).await;
    assert!(store.fork_session(&session, &copy, None, Timestamp(9)).await.unwrap());
    let bill = TokenUsage { cached: 2, cache_written: 4, cost: Some(u64::MAX), ..TokenUsage::new(32, 6) };
    for session in [&session, &copy] {
        let stored = store.load_session(session).await.unwrap().unwrap();
        assert_eq!(
            stored.side_requests,
            [SideRequestUsage { seq: 1, usage: asked }, SideRequestUsage { seq: 2, usage: dear }]
        );
        assert_eq!(stored.total_usage(), bill);
        store.delete_session(session).await.unwrap();
    }
    assert_eq!(place.count("asides"), 0);
}

pub(super) async fn usage_counts_each_request_once(place: Place) {
    const PERIOD: i64 = crate::USAGE_PERIOD_MS;
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    let replied = |seq, cost, fallback_model: Option<&str>| {
        let TranscriptEntry::Reply(said) = reply(seq, "hi") else { unreachable!() };
        let usage = Some(TokenUsage { cached: 5, cost: Some(cost), ..TokenUsage::new(20, 2) });
        TranscriptEntry::Reply(Reply { usage, fallback_model: fallback_model.map(str::to_owned), ..said })
    };
    let writer = store.acquire_session_lease(&session).await.unwrap();
    let entries = [
        (prompt(0, "hello"), 2),
        (replied(1, 7, None), PERIOD - 1),
        (replied(2, 1, None), PERIOD),
        (replied(3, 2, Some("spare")), PERIOD + 1),
    ];
    for (seq, (entry, at)) in (0..).zip(entries) {
        store.append_entry(&writer, seq, &entry, Timestamp(at)).await.unwrap();
    }
    store.record_side_request(&writer, TokenUsage::new(3, 1), Timestamp(PERIOD + 2)).await.unwrap();
    store.release_session_lease(writer).await;
    let copy = crate::invent_name();
    assert!(store.fork_session(&session, &copy, None, Timestamp(PERIOD + 3)).await.unwrap());
    let show = |periods: Vec<PeriodUsage>| {
        let lines = periods.into_iter().map(|period| {
            let PeriodUsage { cwd, model, start, n_requests, usage, session: of } = period;
            assert_eq!(of, session);
            let TokenUsage { input, output, cached, cost, .. } = usage;
            format!("{cwd} {model} {} {n_requests}: {input} {output} {cached} {cost:?}\n", start.0 / PERIOD)
        });
        lines.collect::<String>()
    };
    expect![[r#"
        /p m 0 1: 20 2 5 Some(7)
        /p m 1 2: 23 3 5 Some(1)
        /p spare 1 1: 20 2 5 Some(2)
    "#]]
    .assert_eq(&show(store.usage_since(Timestamp(0)).await.unwrap()));
    assert_eq!(store.usage_since(Timestamp(PERIOD + 2)).await.unwrap().len(), 1);
}

/// The clock may have been ahead when the session began.
pub(super) async fn usage_before_the_creation_of_its_session_counts(place: Place) {
    let store = place.open().await;
    let (session, copy) = (begin(&store, "/p", 9_000).await, crate::invent_name());
    say(&store, &session, 0, "hello").await.unwrap();
    put(&store, &session, 1, &reply(1, "hi")).await.unwrap();
    let writer = store.acquire_session_lease(&session).await.unwrap();
    store.record_side_request(&writer, TokenUsage::new(5, 1), Timestamp(1_002)).await.unwrap();
    store.release_session_lease(writer).await;
    assert!(store.fork_session(&session, &copy, None, Timestamp(9_001)).await.unwrap());
    let periods = store.usage_since(Timestamp(0)).await.unwrap();
    let totals: Vec<_> = periods.iter().map(|period| (&period.session, period.n_requests)).collect();
    assert_eq!(totals, [(&session, 2)]);
}

pub(super) async fn fork_is_independent(place: Place) {
    let store = place.open().await;
    let (session, copy) = (begin(&store, "/p", 1).await, crate::invent_name());
    store.set_title(&session, "Nest").await.unwrap();
    say(&store, &session, 0, "feather").await.unwrap();
    put(&store, &session, 1, &reply(1, "found")).await.unwrap();
    assert!(!store.fork_session(&SessionId::new("unknown"), &copy, None, Timestamp(9)).await.unwrap());
    assert!(store.fork_session(&session, &copy, None, Timestamp(9)).await.unwrap());
    let again = store.fork_session(&session, &copy, None, Timestamp(9)).await;
    assert!(matches!(again, Err(StoreError::NameTaken(id)) if id == copy));
    say(&store, &copy, 2, "only here").await.unwrap();
    store.delete_session(&session).await.unwrap();

    let stored = store.load_session(&copy).await.unwrap().unwrap();
    assert_eq!(stored.entries, [prompt(0, "feather"), reply(1, "found"), prompt(2, "only here")]);
    assert_eq!((stored.session.title.as_deref(), stored.session.forked_from), (Some("Nest"), Some(session)));
    assert_eq!(stored.system_prompt, "You are a crow.");
    assert_eq!(store.search_messages(words("feather")).await.unwrap()[0].session, copy);
}

pub(super) async fn fork_ends_before_a_prompt(place: Place) {
    let store = place.open().await;
    let (session, copy) = (begin(&store, "/p", 1).await, crate::invent_name());
    for (seq, text) in [(0, "one"), (2, "two")] {
        say(&store, &session, seq, text).await.unwrap();
        put(&store, &session, seq + 1, &reply(seq + 1, "done")).await.unwrap();
        let writer = store.acquire_session_lease(&session).await.unwrap();
        let call = CallId::from_position(seq + 1, 0);
        let content = UndoSnapshot::Content { bytes: text.into(), mode: None };
        let change =
            NewFileChange { turn: seq, call, path: format!("/p/{text}"), before: content, after: None };
        store.record_change(&writer, change, Timestamp(3)).await.unwrap();
        store.release_session_lease(writer).await;
    }
    let counted = async |session: &SessionId| -> Vec<_> {
        let prompts = store.list_prompts(session, 9).await.unwrap().into_iter();
        prompts.map(|prompt| (prompt.entry, prompt.n_undoable_turns, prompt.n_undoable_files)).collect()
    };
    assert_eq!(counted(&session).await, [(prompt(2, "two"), 1, 1), (prompt(0, "one"), 2, 2)]);
    for other in [1, 4] {
        assert!(!store.fork_session(&session, &copy, Some(other), Timestamp(9)).await.unwrap());
    }
    assert!(store.fork_session(&session, &copy, Some(2), Timestamp(9)).await.unwrap());
    let stored = store.load_session(&copy).await.unwrap().unwrap();
    assert_eq!((stored.session.n_messages, stored.entries), (2, vec![prompt(0, "one"), reply(1, "done")]));
    assert_eq!(counted(&copy).await, [(prompt(0, "one"), 1, 1)]);
    let changes = store.last_changes(&copy).await.unwrap();
    assert_eq!(changes[0].before, UndoSnapshot::Content { bytes: "one".into(), mode: None });
    say(&store, &copy, 2, "another two").await.unwrap();
}

pub(super) async fn changes_of_the_last_turn_are_listed(place: Place) {
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    let writer = store.acquire_session_lease(&session).await.unwrap();
    let after = |text: &str| Some(crow_files::hash_content(text.as_bytes()));
    let change = |turn, path: &str, before, after: Option<ContentHash>| NewFileChange {
        turn,
        call: CallId::from_position(turn + 1, 0),
        path: path.into(),
        before,
        after,
    };
    let content = |text: &str| UndoSnapshot::Content { bytes: text.into(), mode: Some(0o644) };
    let keep = async |change| store.record_change(&writer, change, Timestamp(3)).await.unwrap();
    keep(change(0, "/p/a", UndoSnapshot::Missing, after("one"))).await;
    let second = keep(change(4, "/p/a", content("one"), after("two"))).await;
    let third = keep(change(4, "/p/b", UndoSnapshot::TooLarge, None)).await;
    store.set_change_after(&writer, second, after("2")).await.unwrap();

    let last = async || {
        let changes = store.last_changes(&session).await.unwrap();
        changes.into_iter().map(|change| (change.turn, change.path, change.before, change.after)).collect()
    };
    let wanted: Vec<(u64, String, UndoSnapshot, Option<ContentHash>)> = vec![
        (4, "/p/a".into(), content("one"), after("2")),
        (4, "/p/b".into(), UndoSnapshot::TooLarge, None),
    ];
    let now: Vec<_> = last().await;
    assert_eq!(now, wanted);
    store.mark_changes_undone(&writer, vec![second, third], Timestamp(9)).await.unwrap();
    let now: Vec<_> = last().await;
    assert_eq!(now, [(0, "/p/a".into(), UndoSnapshot::Missing, after("one"))]);
    store.release_session_lease(writer).await;
    store.delete_session(&session).await.unwrap();
    assert_eq!((place.count("file_changes"), place.count("blobs")), (0, 0));
}

pub(super) async fn session_trees_are_listed(place: Place) {
    let store = place.open().await;
    let root = begin(&store, "/p", 1).await;
    let child_of = async |parent: &SessionId, now| {
        let new = NewSession { parent: Some(parent.clone()), ..session_in("/p", now) };
        named(&store, new).await.unwrap()
    };
    let (second, first) = (child_of(&root, 3).await, child_of(&root, 2).await);
    let grandchild = child_of(&first, 4).await;
    begin(&store, "/p", 5).await;
    let family = store.session_tree(&root).await.unwrap();
    let ids: Vec<&SessionId> = family.iter().map(|row| &row.id).collect();
    assert_eq!(ids, [&root, &first, &second, &grandchild]);
    place.direct(&format!("UPDATE sessions SET parent_session_id = '{grandchild}' WHERE id = '{root}'"));
    assert_eq!(store.session_tree(&root).await.unwrap().len(), 4, "a circle ends");
}

pub(super) async fn child_sessions_are_deleted_with_their_parent(place: Place) {
    let store = place.open().await;
    let parent = begin(&store, "/p", 1).await;
    let child =
        named(&store, NewSession { parent: Some(parent.clone()), ..session_in("/p", 2) }).await.unwrap();
    say(&store, &child, 0, "hello").await.unwrap();
    let writer = store.acquire_session_lease(&child).await.unwrap();
    let mut draft = store.begin_draft(&writer, 1);
    draft.push_text("words");
    draft.flush();
    assert!(
        matches!(store.delete_session(&parent).await, Err(StoreError::Busy { .. })),
        "its child is running"
    );
    store.release_session_lease(writer).await;
    assert!(store.delete_session(&parent).await.unwrap());
    assert_eq!((store.load_session(&child).await.unwrap(), store.read_draft(&child, 1).await), (None, None));
}

pub(super) async fn old_sessions_are_pruned(place: Place) {
    let store = place.open().await;
    let (old, young) = (begin(&store, "/p", 10).await, begin(&store, "/p", 2_000).await);
    let old_too = begin(&store, "/p", 20).await;
    let found = store.sessions_older_than(Timestamp(1_000)).await.unwrap();
    let ids: Vec<SessionId> = found.into_iter().map(|row| row.id).collect();
    assert_eq!(ids, [old, old_too]);
    assert_eq!(store.prune_sessions(ids).await.unwrap(), 2);
    assert!(store.load_session(&young).await.unwrap().is_some());
    assert_eq!(place.count("sessions"), 1);
}

pub(super) async fn intact_database_has_no_findings(place: Place) {
    let store = place.open().await;
    say(&store, &begin(&store, "/p", 1).await, 0, "hello").await.unwrap();
    assert_eq!(store.check_integrity().await.unwrap(), [] as [String; 0]);
}

pub(super) async fn draft_outlives_its_process(place: Place) {
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    say(&store, &session, 0, "hello").await.unwrap();
    let writer = store.acquire_session_lease(&session).await.unwrap();
    let mut draft = store.begin_draft(&writer, 1);
    for (thought, text) in [("Hm", ""), (". ", "Well"), ("", ", yes — 🦀")] {
        draft.push_thought(thought);
        draft.push_text(text);
        draft.flush();
    }
    draft.push_text("never shown");
    let (other, unknown) = (place.open().await, SessionId::new("unknown"));
    let read = other.read_draft(&session, 1).await.unwrap();
    assert_eq!(
        (read.thought.as_str(), read.text.as_str(), read.id),
        ("Hm. ", "Well, yes — 🦀", MessageId::from_seq(1))
    );
    assert_eq!((other.read_draft(&session, 2).await, other.read_draft(&unknown, 1).await), (None, None));
    draft.discard();
    assert_eq!(other.read_draft(&session, 1).await, None);

    let mut draft = store.begin_draft(&writer, 1);
    draft.push_text("Well");
    draft.flush();
    store.release_session_lease(writer).await;
    store.delete_session(&session).await.unwrap();
    assert_eq!(other.read_draft(&session, 1).await, None);
}

pub(super) async fn tables_match_their_description(place: Place) {
    place.open().await.close().await.unwrap();
    for line in crate::TABLES.lines().take_while(|line| !line.is_empty()) {
        let (table, columns) = line.trim_end_matches(')').split_once(" (").unwrap();
        assert_eq!(place.count(&format!("(SELECT {columns} FROM {table}) told")), 0, "{table}");
    }
}

/// Templates and tools are stored once however many sessions have them, and are deleted with the last of these.
pub(super) async fn templates_and_tools_are_stored_by_content(place: Place) {
    let store = place.open().await;
    let sessions = [SessionId::new("one"), SessionId::new("two")];
    for session in &sessions {
        store.create_session(session, session_in("/p", 1)).await.unwrap();
        store.set_prompt_template(session, "{{ workspace }}".into()).await.unwrap();
        store.set_tool_definitions(session, "[]".into()).await.unwrap();
    }
    let child = SessionId::new("child");
    let new = NewSession { parent: Some(sessions[0].clone()), ..session_in("/p", 1) };
    store.create_session(&child, new).await.unwrap();
    let types = |wanted: &str| place.count(&format!("sessions WHERE agent_type = '{wanted}'"));
    assert_eq!((place.count("prompts"), place.count("tool_definitions")), (1, 1));
    assert_eq!((types("crow-cli"), types("crow-child")), (2, 1));
    store.set_tool_definitions(&sessions[1], "[1]".into()).await.unwrap();
    assert_eq!(place.count("tool_definitions"), 2);
    for seq in 0..3 {
        say(&store, &sessions[1], seq, "hello").await.unwrap();
    }
    let turns = place.count("messages WHERE turn = seq + 1");
    assert_eq!(turns, 3);
    store.delete_session(&sessions[0]).await.unwrap();
    assert_eq!((place.count("prompts"), place.count("tool_definitions")), (1, 1));
    store.delete_session(&sessions[1]).await.unwrap();
    assert_eq!((place.count("prompts"), place.count("tool_definitions")), (0, 0));
}
