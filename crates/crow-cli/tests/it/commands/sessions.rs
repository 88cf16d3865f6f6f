//! Sessions that a user or a script lists, copies, exports and deletes.

use std::path::Path;

use crow_core::{ContentPart, MessageId, Mode, Prompt, SessionId, ThoughtLevel, TranscriptEntry};
use crow_store::{DatabaseAddress, NewSession, Store, Timestamp};
use crow_testkit::client::FakeClient;
use expect_test::expect;
use serde_json::{Value, json};

use super::{Ran, Stage};

/// Runs a command with the session names as `$1`, `$2` …, newest first, and masks them in its output.
#[track_caller]
fn check(stage: &Stage, args: &str, told: &expect_test::Expect) {
    let sessions = stage.sessions();
    let numbered = || sessions.iter().enumerate().map(|(index, id)| (format!("$S{}", index + 1), id));
    let args = numbered().fold(args.to_owned(), |args, (name, id)| args.replace(&name, id));
    let Ran { code, stdout, stderr } = stage.crow(&args);
    let shown = format!("{}{stderr}", Ran { code, stdout, stderr: String::new() }.told());
    told.assert_eq(&numbered().fold(shown, |shown, (name, id)| shown.replace(id, &name)));
}

/// Creates a session with messages.
fn spoken(script: &str) -> Stage {
    let stage = Stage::new(&format!("text \"I see.\"\n{script}"));
    assert_eq!(stage.crow("crow run 'remember this'").code, Some(0));
    stage
}

#[test]
fn fork_continues_and_the_original_stays() {
    let stage = spoken("text \"Yes.\"");
    let original = stage.sessions();
    assert_eq!(stage.crow(&format!("crow run -s {} --fork 'and?'", original[0])).code, Some(0));
    assert_eq!(stage.told(), ["remember this", "I see.", "and?"]);
    assert_eq!(stage.sessions().len(), 2);
    check(
        &stage,
        "crow inspect -s $S1 -m; crow inspect -s $S2 -m; crow inspect -s $S1 | grep 'copy of'",
        &expect![[r#"
            exit 0
            user msg-0
              [added by Crow: environment]
              remember this

            assistant msg-1
              I see.

            user msg-2
              and?

            assistant msg-3
              Yes.

            user msg-0
              [added by Crow: environment]
              remember this

            assistant msg-1
              I see.

            copy of    $S2
        "#]],
    );
    check(
        &stage,
        "crow run --fork hi",
        &expect![[r#"
        exit 2
        error: the following required arguments were not provided:
          --session <ID>

        Usage: crow-cli run --session <ID> --fork <PROMPT>

        For more information, try '--help'.
    "#]],
    );
    check(
        &stage,
        "crow run -s unknown --fork hi",
        &expect![[r#"
        exit 4
        error: there is no session unknown; `crow-cli inspect` lists the sessions
    "#]],
    );
}

#[test]
fn export_is_one_document() {
    let stage = spoken("");
    let ran = stage.crow(&format!("crow inspect -s {} --export json", stage.sessions()[0]));
    let document: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    assert_eq!(document["messages"][0]["text"], "[added by Crow: environment]\nremember this");
    assert!(document["session"]["system_prompt"].as_str().is_some_and(|text| text.contains("Crow")));
    check(
        &stage,
        "crow inspect --export json",
        &expect![[r#"
            exit 2
            error: the following required arguments were not provided:
              --session <ID>

            Usage: crow-cli inspect --session <ID> --export <FORMAT>

            For more information, try '--help'.
        "#]],
    );
    check(
        &stage,
        "crow inspect -s $S1x --export md",
        &expect![[r#"
        exit 4
        error: there is no session $S1x
        hint: did you mean $S1?
    "#]],
    );
}

#[test]
fn delete_does_nothing_without_a_confirmation() {
    let stage = spoken("");
    check(
        &stage,
        "crow sessions delete $S1 > /dev/null",
        &expect![[r#"
        exit 5
        error: there is no terminal to ask for confirmation, so nothing was deleted
        hint: confirm with -y
    "#]],
    );
    check(
        &stage,
        "crow sessions prune --older-than 0h > /dev/null",
        &expect![[r#"
        exit 5
        error: there is no terminal to ask for confirmation, so nothing was deleted
        hint: confirm with -y
    "#]],
    );
    check(
        &stage,
        "crow sessions prune --older-than soon",
        &expect![[r#"
        exit 2
        error: invalid value 'soon' for '--older-than <AGE>': expected a number of hours, days or weeks, such as 6h, 30d or 12w

        For more information, try '--help'.
    "#]],
    );
    assert_eq!(stage.sessions().len(), 1);
    check(
        &stage,
        "crow sessions delete $S1 -y -j | tr -d '0123456789'",
        &expect![[r#"
        exit 0
        {"deleted":["$S1"],"would_delete":[],"at_work":[],"freed_bytes":}
    "#]],
    );
    assert_eq!(stage.sessions().len(), 0);
    check(
        &stage,
        "crow sessions list",
        &expect![[r#"
        exit 0
        no sessions yet
    "#]],
    );
}

/// Stores a child session with messages.
async fn store_child(stage: &Stage, parent: &str) {
    let address = DatabaseAddress::File(stage.world.home().join(".crow/crow.db"));
    let store = Store::open(&address).await.expect("the store is opened");
    let (child, now) = (SessionId::new("child"), Timestamp(1));
    let new = NewSession {
        cwd: stage.world.project().display().to_string(),
        model: "m".into(),
        mode: Mode::Ask,
        thought_level: ThoughtLevel::Default,
        system_prompt: String::new(),
        parent: Some(SessionId::new(parent)),
        agent_type: None,
        now,
    };
    store.create_session(&child, new).await.expect("a child is made");
    let writer = store.acquire_session_lease(&child).await.expect("no other writer");
    let parts = vec![ContentPart::Text("look".into())];
    let entry = TranscriptEntry::Prompt(Prompt { id: MessageId::from_seq(0), parts });
    store.append_entry(&writer, 0, &entry, now).await.expect("it is stored");
    store.close().await.expect("it is closed");
}

#[test]
fn children_of_a_session_are_listed_on_request() {
    let stage = spoken("");
    let parent = stage.sessions().remove(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let shown = runtime.expect("a runtime can be made").block_on(async {
        store_child(&stage, &parent).await;
        let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
        let mut client = FakeClient::start(binary, &stage.world.home()).await;
        let listed = client.request("session/list", json!({})).await.expect("sessions are listed");
        assert!(client.close_stdin().await.success(), "the agent ends well");
        listed["sessions"].clone()
    });
    let ids = |listed: &Value, key: &str| -> Vec<String> {
        let rows = listed.as_array().expect("a list").iter();
        rows.map(|row| row[key].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(
        ids(&shown, "sessionId"),
        std::slice::from_ref(&parent),
        "an editor shows what a person began"
    );
    assert_eq!(stage.sessions(), std::slice::from_ref(&parent));
    let all: Value = serde_json::from_str(&stage.crow("crow sessions list --all -j").stdout).expect("JSON");
    assert_eq!(ids(&all["sessions"], "id"), [parent, "child".to_owned()]);
}
