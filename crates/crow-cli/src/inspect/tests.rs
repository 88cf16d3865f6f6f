#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use clap::Parser;
use crow_core::{
    Arguments, Call, CallId, Ended, Entry, Facets, MessageId, Mode, Outcome, Part, Prompt, Reply,
    ThoughtLevel, ToolKind, Touch,
};
use crow_store::{Address, NewSession, Store, Timestamp};
use expect_test::{Expect, expect};

use crate::cli::{Cli, Command};

const HOUR: i64 = 3_600_000;

/// Inspects a store with two sessions; `$A` and `$B` stand for their names.
#[track_caller]
fn check(line: &str, expect: Expect) {
    let folder = tempfile::tempdir().unwrap();
    let db = Address::File(folder.path().join("crow.db"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let text = runtime.block_on(async {
        let store = Store::open(&db).await.unwrap();
        let first = session(&store, "/work/a", HOUR).await;
        let writer = store.begin_writing(&first).await.unwrap();
        for (seq, entry) in entries().iter().enumerate() {
            store.append(&writer, seq as u64, entry, Timestamp(2 * HOUR)).await.unwrap();
        }
        store.set_title(&first, "List the files").await.unwrap();
        let other = session(&store, "/work/b", 40 * HOUR).await;
        let names = |text: &str| text.replace("$A", first.as_str()).replace("$B", other.as_str());
        let Command::Inspect(args) = Cli::parse_from(names(line).split(' ')).command else {
            panic!("inspect")
        };
        let mut out = Vec::new();
        if let Err(exit) = super::run(&args, &db, Timestamp(41 * HOUR), &mut out).await {
            out.extend(format!("{exit:?}\n").bytes());
        }
        // Names are made by chance and so are the widths of their columns.
        let mut text =
            String::from_utf8(out).unwrap().replace(first.as_str(), "$A").replace(other.as_str(), "$B");
        while text.contains("   ") {
            text = text.replace("   ", "  ");
        }
        text
    });
    expect.assert_eq(&text);
}

async fn session(store: &Store, cwd: &str, now: i64) -> crow_core::SessionId {
    let new = NewSession {
        cwd: cwd.to_owned(),
        model: "sonnet".to_owned(),
        mode: Mode::Ask,
        thought_level: ThoughtLevel::Default,
        system_prompt: String::new(),
        parent: None,
        agent_type: None,
        now: Timestamp(now),
    };
    let id = crow_store::invent_name();
    store.create_session(&id, new).await.unwrap();
    id
}

fn entries() -> [Entry; 3] {
    let call = Call {
        id: CallId::at(1, 0),
        provider_id: "x".to_owned(),
        name: "terminal".to_owned(),
        arguments: Arguments::Valid(serde_json::from_str(r#"{"command":"ls"}"#).unwrap()),
    };
    [
        Entry::Prompt(Prompt { id: MessageId::at(0), parts: vec![Part::Text("list the files".to_owned())] }),
        Entry::Reply(Reply {
            id: MessageId::at(1),
            thought: "hm".to_owned(),
            text: "I look.".to_owned(),
            calls: vec![call],
            ended: Ended::Normally,
            usage: None,
        }),
        Entry::Result {
            call: CallId::at(1, 0),
            facets: Facets {
                title: "ls".to_owned(),
                kind: ToolKind::Execute,
                locations: Vec::new(),
                touch: Touch::Runs("ls".to_owned()),
            },
            outcome: Outcome::done("a.txt\n\u{1b}[31mb.txt"),
        },
    ]
}

#[test]
fn sessions_are_listed_newest_first() {
    check(
        "crow-cli inspect",
        expect![[r#"
            SESSION  UPDATED  MESSAGES  MODEL  TITLE  FOLDER
            $A  yesterday  3  sonnet  List the files  /work/a
        "#]],
    );
    check(
        "crow-cli inspect -l 1 -j",
        expect![[r#"
            {"sessions":[{"id":"$A","title":"List the files","cwd":"/work/a","model":"sonnet","mode":"ask","messages":3,"created":"1970-01-01T01:00:00Z","updated":"1970-01-01T02:00:00Z","parent":null}]}
        "#]],
    );
}

#[test]
fn a_session_is_shown() {
    check(
        "crow-cli inspect -s $A",
        expect![[r#"
            session  $A
            title  List the files
            folder  /work/a
            model  sonnet
            mode  ask
            messages  3
            created  yesterday
            updated  yesterday
        "#]],
    );
    check(
        "crow-cli inspect -s nobody",
        expect![[r#"
        Exit { code: NoSession, message: Some("there is no session nobody"), hint: Some("`crow-cli inspect` lists the sessions") }
    "#]],
    );
}

#[test]
fn messages_are_shown_without_moving_the_cursor() {
    check(
        "crow-cli inspect -s $A -m",
        expect![[r#"
            user msg-0
              list the files

            assistant msg-1
              I look.
              call-1-0 terminal {"command":"ls"}

            tool call-1-0: ls (completed)
              a.txt
              [31mb.txt

        "#]],
    );
    check(
        "crow-cli inspect -s $A -m -l 1",
        expect![[r#"
            tool call-1-0: ls (completed)
              a.txt
              [31mb.txt

        "#]],
    );
    check(
        "crow-cli inspect -s $A -m -j",
        expect![[r#"
            {"session":{"id":"$A","title":"List the files","cwd":"/work/a","model":"sonnet","mode":"ask","messages":3,"created":"1970-01-01T01:00:00Z","updated":"1970-01-01T02:00:00Z","parent":null},"messages":[{"role":"user","id":"msg-0","text":"list the files"},{"role":"assistant","id":"msg-1","thought":"hm","text":"I look.","calls":[{"id":"call-1-0","name":"terminal","arguments":{"command":"ls"}}]},{"role":"tool","call":"call-1-0","title":"ls","status":"completed","text":"a.txt\n\u001b[31mb.txt"}]}
        "#]],
    );
}

#[test]
fn messages_are_found() {
    check(
        "crow-cli inspect --search files",
        expect![[r#"
            SESSION  MESSAGE  TEXT
            $A  msg-0  list the files
        "#]],
    );
    check(
        "crow-cli inspect --search files -j",
        expect![[r#"
        {"hits":[{"session":"$A","seq":0,"snippet":"list the files"}]}
    "#]],
    );
    check(
        "crow-cli inspect --search nothing",
        expect![[r#"
        nothing found
    "#]],
    );
}

#[test]
fn a_store_that_is_not_there_is_empty_and_stays_away() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crow.db");
    let db = Address::File(file.clone());
    let Command::Inspect(args) = Cli::parse_from(["crow-cli", "inspect"]).command else { panic!("inspect") };
    let mut out = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(super::run(&args, &db, Timestamp(0), &mut out)).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "no sessions yet\n");
    assert!(!file.exists());
}
