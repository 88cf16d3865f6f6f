#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use clap::Parser;
use crow_core::{ContentPart, MessageId, Mode, Prompt, ThoughtLevel, TranscriptEntry};
use crow_store::{CreatorFilter, NewSession};
use expect_test::{Expect, expect};

use super::*;
use crate::cli::{Cli, CliCommand};

const DAY: i64 = 86_400_000;

async fn session(store: &Store, name: &str, day: i64) {
    let new = NewSession {
        cwd: "/work".to_owned(),
        model: "sonnet".to_owned(),
        mode: Mode::Ask,
        thought_level: ThoughtLevel::Default,
        system_prompt: String::new(),
        parent: None,
        agent_type: None,
        now: Timestamp(day * DAY),
    };
    let id = SessionId::new(name);
    store.create_session(&id, new).await.unwrap();
    let writer = store.acquire_session_lease(&id).await.unwrap();
    let entry = TranscriptEntry::Prompt(Prompt {
        id: MessageId::from_seq(0),
        parts: vec![ContentPart::Text(name.repeat(4000))],
    });
    store.append_entry(&writer, 0, &entry, Timestamp(day * DAY)).await.unwrap();
    store.set_title(&id, &format!("of day {day}")).await.unwrap();
    store.release_session_lease(writer).await;
}

/// Removes sizes and process IDs, which vary.
fn without_numbers(text: &str) -> String {
    let mut shown = String::new();
    for piece in text.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let number = piece.trim_end_matches(|c: char| !c.is_ascii_digit());
        shown += if number.len() < 3 { number } else { "N" };
        shown += &piece[number.len()..];
    }
    shown
}

/// Runs a command on day 100 in a store with sessions of days 10, 50 and 99, of which that of day 50 is busy; compares
/// the output and the remaining sessions.
#[track_caller]
fn check(line: &str, said: ConfirmAnswer, expect: Expect) {
    let directory = tempfile::tempdir().unwrap();
    let db = DatabaseAddress::File(directory.path().join("crow.db"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let text = runtime.block_on(async {
        let store = Store::open(&db).await.unwrap();
        for (name, day) in [("old", 10), ("busy", 50), ("young", 99)] {
            session(&store, name, day).await;
        }
        // The last connection to close moves the log into the file.
        store.close().await.unwrap();
        let store = Store::open(&db).await.unwrap();
        let _writer = store.acquire_session_lease(&SessionId::new("busy")).await.unwrap();
        let Some(CliCommand::Sessions { command }) = Cli::parse_from(line.split(' ')).command else {
            panic!("sessions")
        };
        let mut out = Vec::new();
        let question = std::cell::RefCell::new(String::new());
        let ask = |asked: &str| {
            *question.borrow_mut() = format!("? {asked}\n");
            Ok(said)
        };
        let done = run(&command, &db, Timestamp(100 * DAY), ask, &mut out).await;
        let mut text = question.into_inner() + &String::from_utf8(out).unwrap();
        if let Err(error) = done {
            text += &format!("{error:?}\n");
        }
        let query = crow_store::ListQuery { cwd: None, creator: CreatorFilter::User, before: None, limit: 9 };
        for row in store.list_sessions(query).await.unwrap() {
            text += &format!("left: {}\n", row.id);
        }
        text
    });
    expect.assert_eq(&without_numbers(&text));
}

#[test]
fn prune_deletes_old_sessions_and_skips_busy_ones() {
    check(
        "crow-cli sessions prune --older-than 30d",
        ConfirmAnswer::Yes,
        expect![[r#"
            ? Delete these 2 sessions and the sessions they started?
            SESSION  UPDATED      MESSAGES  MODEL   TITLE      DIRECTORY
            old      90 days ago  1         sonnet  of day 10  /work
            busy     50 days ago  1         sonnet  of day 50  /work
            skipped busy, which is running in another process
            deleted 1 session with 1 message
            left: young
            left: busy
        "#]],
    );
    check(
        "crow-cli sessions prune --older-than 8w -y",
        ConfirmAnswer::Unavailable,
        expect![[r#"
            SESSION  UPDATED      MESSAGES  MODEL   TITLE      DIRECTORY
            old      90 days ago  1         sonnet  of day 10  /work
            deleted 1 session with 1 message
            left: young
            left: busy
        "#]],
    );
    check(
        "crow-cli sessions prune --older-than 8w -y -j",
        ConfirmAnswer::Unavailable,
        expect![[r#"
            {"deleted":["old"],"would_delete":[],"at_work":[],"freed_bytes":0}
            left: young
            left: busy
        "#]],
    );
}

#[test]
fn deletion_requires_confirmation() {
    check(
        "crow-cli sessions prune --older-than 30d",
        ConfirmAnswer::No,
        expect![[r#"
            ? Delete these 2 sessions and the sessions they started?
            SESSION  UPDATED      MESSAGES  MODEL   TITLE      DIRECTORY
            old      90 days ago  1         sonnet  of day 10  /work
            busy     50 days ago  1         sonnet  of day 50  /work
            CliError { code: Failed, message: Some("nothing was deleted"), hint: None, kind: None }
            left: young
            left: busy
            left: old
        "#]],
    );
    check(
        "crow-cli sessions prune --older-than 30d -j",
        ConfirmAnswer::Unavailable,
        expect![[r#"
            CliError { code: Denied, message: Some("there is no terminal to ask for confirmation, so nothing was deleted"), hint: Some("confirm with -y"), kind: None }
            left: young
            left: busy
            left: old
        "#]],
    );
}

#[test]
fn dry_run_and_unknown_sessions_are_reported() {
    check(
        "crow-cli sessions prune --older-than 30d --dry-run",
        ConfirmAnswer::Yes,
        expect![[r#"
            SESSION  UPDATED      MESSAGES  MODEL   TITLE      DIRECTORY
            old      90 days ago  1         sonnet  of day 10  /work
            busy     50 days ago  1         sonnet  of day 50  /work
            would delete 2 sessions with 2 messages
            left: young
            left: busy
            left: old
        "#]],
    );
    check(
        "crow-cli sessions prune --older-than 30d --dry-run -j",
        ConfirmAnswer::Yes,
        expect![[r#"
        {"deleted":[],"would_delete":["old","busy"],"at_work":[],"freed_bytes":null}
        left: young
        left: busy
        left: old
    "#]],
    );
    check(
        "crow-cli sessions prune --older-than 200d",
        ConfirmAnswer::Yes,
        expect![[r#"
        no session is that old; nothing was deleted
        left: young
        left: busy
        left: old
    "#]],
    );
    check(
        "crow-cli sessions prune --older-than 200d -j",
        ConfirmAnswer::Yes,
        expect![[r#"
        {"deleted":[],"would_delete":[],"at_work":[],"freed_bytes":null}
        left: young
        left: busy
        left: old
    "#]],
    );
}

#[test]
fn delete_removes_all_given_sessions_or_none() {
    check(
        "crow-cli sessions delete old",
        ConfirmAnswer::Yes,
        expect![[r#"
            ? Delete this session and the sessions it started?
            SESSION  UPDATED      MESSAGES  MODEL   TITLE      DIRECTORY
            old      90 days ago  1         sonnet  of day 10  /work
            deleted 1 session with 1 message
            left: young
            left: busy
        "#]],
    );
    check(
        "crow-cli sessions delete old old young -y",
        ConfirmAnswer::Unavailable,
        expect![[r#"
            SESSION  UPDATED      MESSAGES  MODEL   TITLE      DIRECTORY
            old      90 days ago  1         sonnet  of day 10  /work
            young    yesterday    1         sonnet  of day 99  /work
            deleted 2 sessions with 2 messages
            left: busy
        "#]],
    );
    check(
        "crow-cli sessions delete old busy -y",
        ConfirmAnswer::Unavailable,
        expect![[r#"
            SESSION  UPDATED      MESSAGES  MODEL   TITLE      DIRECTORY
            old      90 days ago  1         sonnet  of day 10  /work
            busy     50 days ago  1         sonnet  of day 50  /work
            CliError { code: Failed, message: Some("session busy is in use for another client of this process; wait until its turn has ended, or stop it there"), hint: None, kind: None }
            left: young
            left: busy
            left: old
        "#]],
    );
    check(
        "crow-cli sessions delete old yong -y",
        ConfirmAnswer::Unavailable,
        expect![[r#"
            CliError { code: NoSession, message: Some("there is no session yong"), hint: Some("did you mean young?"), kind: None }
            left: young
            left: busy
            left: old
        "#]],
    );
}

#[test]
fn list_prints_the_same_as_inspect() {
    check(
        "crow-cli sessions list -l 1",
        ConfirmAnswer::Unavailable,
        expect![[r#"
            SESSION  UPDATED    MESSAGES  MODEL   TITLE      DIRECTORY
            young    yesterday  1         sonnet  of day 99  /work
            left: young
            left: busy
            left: old
        "#]],
    );
}
