//! Search in texts that are written without spaces.

use crow_core::{ContentPart, CrowPart, MessageId, Prompt, TranscriptEntry};

use super::{Place, begin, put, say, words};
use crate::Store;

const TEXTS: [&str; 4] = ["这个数据库很好", "用SQLite数据库。", "カラスが鳴く", "데이터베이스를 연다"];

/// Returns the sequence numbers of the messages found, in order.
async fn find_places(store: &Store, typed: &str) -> Vec<u64> {
    let mut places: Vec<u64> =
        store.search_messages(words(typed)).await.unwrap().iter().map(|hit| hit.seq).collect();
    places.sort_unstable();
    places
}

pub(super) async fn chinese_japanese_and_korean_are_found(place: Place) {
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    for (seq, text) in (0..).zip(TEXTS) {
        say(&store, &session, seq, text).await.unwrap();
    }
    assert_eq!(find_places(&store, "数据库").await, [0, 1]);
    assert_eq!(find_places(&store, "sqlite数据库").await, [1]);
    assert_eq!(find_places(&store, "很好 数据").await, [0]);
    assert_eq!(find_places(&store, "据数").await, [] as [u64; 0]);
    assert_eq!(find_places(&store, "カラス").await, [2]);
    assert_eq!(find_places(&store, "が鳴").await, [2]);
    assert_eq!(find_places(&store, "데이터").await, [3]);
    let page = TEXTS[0].repeat(2_000);
    assert_eq!(find_places(&store, &page).await, [] as [u64; 0]);
    let hits = store.search_messages(words("SQLite数据库")).await.unwrap();
    assert_eq!(hits[0].snippet, TEXTS[1]);
}

pub(super) async fn additions_about_the_session_are_not_found(place: Place) {
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    let part = |kind, text: &str| ContentPart::FromCrow { kind, text: text.to_owned() };
    let parts = vec![
        part(CrowPart::Environment, "docker is installed"),
        part(CrowPart::LinkedFile("/p/a".to_owned()), "linked"),
        ContentPart::Text("typed".to_owned()),
    ];
    let entry = TranscriptEntry::Prompt(Prompt { id: MessageId::from_seq(0), parts });
    put(&store, &session, 0, &entry).await.unwrap();
    assert_eq!(find_places(&store, "docker").await, [] as [u64; 0]);
    assert_eq!((find_places(&store, "linked").await, find_places(&store, "typed").await), (vec![0], vec![0]));
}

pub(super) async fn messages_of_an_older_format_are_indexed_again(place: Place) {
    let store = place.open().await;
    let session = begin(&store, "/p", 1).await;
    for (seq, text) in (0..).zip(TEXTS.into_iter().chain(["caw"])) {
        say(&store, &session, seq, text).await.unwrap();
    }
    store.close().await.unwrap();
    // The rows of the older format; a message without such characters keeps its row, which says "croak" here.
    place.direct(match place.server {
        None => {
            "DELETE FROM message_search;
             INSERT INTO message_search (rowid, text)
                 SELECT id, CASE seq WHEN 4 THEN 'croak' ELSE '这个数据库很好' END FROM messages;
             PRAGMA user_version = 8"
        }
        Some(_) => {
            "UPDATE message_search SET words = to_tsvector('simple',
                 CASE seq WHEN 4 THEN 'croak' ELSE '这个数据库很好' END)
             FROM messages WHERE messages.id = message_id;
             DELETE FROM format WHERE version >= 7"
        }
    });
    let store = place.open().await;
    assert_eq!(find_places(&store, "数据库").await, [0, 1]);
    assert_eq!(find_places(&store, "カラス").await, [2]);
    assert_eq!(find_places(&store, "데이터").await, [3]);
    assert_eq!(find_places(&store, "croak").await, [4]);
    assert_eq!(place.count("message_search"), 5);
}
