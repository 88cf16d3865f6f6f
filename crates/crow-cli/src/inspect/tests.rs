#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use clap::Parser;
use crow_core::{
    CallId, Compaction, ContentPart, MessageId, Mode, Prompt, Reply, ReplyEnd, SessionId, ThoughtLevel,
    TokenUsage, ToolAccess, ToolArguments, ToolCall, ToolCallContent, ToolCallInfo, ToolKind, ToolResult,
    TranscriptEntry,
};
use crow_store::{DatabaseAddress, NewSession, SessionLease, Store, TaskEnd, TaskState, Timestamp};
use expect_test::{Expect, expect};

use crate::cli::{Cli, CliCommand, LazyArgs};

const HOUR: i64 = 3_600_000;

/// Inspects a store with two sessions, one of them empty; `$A` and `$B` are their names.
#[track_caller]
fn check(line: &str, expect: Expect) {
    check_in(line, two_sessions, expect);
}

/// Inspects a store with a session `$A` that started `$B`, which started `$C`, and its copy `$D`.
#[track_caller]
fn check_tree(line: &str, expect: Expect) {
    check_in(line, session_family, expect);
}

#[track_caller]
fn check_in(line: &str, fill: impl AsyncFnOnce(&Store) -> Vec<SessionId>, expect: Expect) {
    let directory = tempfile::tempdir().unwrap();
    let db = DatabaseAddress::File(directory.path().join("crow.db"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let text = runtime.block_on(async {
        let store = Store::open(&db).await.unwrap();
        let names = fill(&store).await;
        let names = || names.iter().zip(["$A", "$B", "$C", "$D"]);
        let line = names().fold(line.to_owned(), |line, (id, name)| line.replace(name, id.as_str()));
        let Some(CliCommand::Inspect(LazyArgs(args))) = Cli::parse_from(line.split(' ')).command else {
            panic!("inspect")
        };
        let mut out = Vec::new();
        if let Err(error) = super::run(&args, &db, Timestamp(41 * HOUR), &mut out).await {
            out.extend(format!("{error:?}\n").bytes());
        }
        // Names are random, and so are their column widths.
        let text = String::from_utf8(out).unwrap();
        let mut text = names().fold(text, |text, (id, name)| text.replace(id.as_str(), name));
        while text.contains("   ") {
            text = text.replace("   ", "  ");
        }
        text
    });
    expect.assert_eq(&text);
}

async fn two_sessions(store: &Store) -> Vec<SessionId> {
    let first = session(store, "/work/a", None, HOUR).await;
    append_entries(store, &first, &entries()).await;
    store.set_title(&first, "List the files").await.unwrap();
    vec![first, session(store, "/work/b", None, 40 * HOUR).await]
}

async fn session_family(store: &Store) -> Vec<SessionId> {
    let first = session(store, "/work/a", None, HOUR).await;
    let writer = append_entries(store, &first, &change()).await;
    let compaction = Compaction {
        at_seq: 2,
        keep_from: 1,
        verbatim_prompts: vec![0],
        summary: Some("A change\nwas wanted.".to_owned()),
        pruned: vec![CallId::from_position(1, 0)],
        tokens_before: 900,
        tokens_after: 300,
        began_ms: 3 * HOUR,
    };
    store.record_compaction(&writer, &compaction).await.unwrap();
    store.set_title(&first, "Change `it`\u{1b}[2J").await.unwrap();
    let child = session(store, "/work/a", Some(&first), 4 * HOUR).await;
    append_entries(store, &child, &entries()).await;
    store.set_agent_session(&child, "theirs-7\u{1b}[2J").await.unwrap();
    let task = store.acquire_task_lease(&child).await.unwrap();
    for (n_tokens, branch) in [(1, None), (1_233, Some("crow/lister".to_owned()))] {
        store.begin_task(&task, "List", Timestamp(4 * HOUR)).await.unwrap();
        let delivery = Some("done".to_owned());
        let end =
            TaskEnd { state: TaskState::Completed, n_tokens, branch, delivery, now: Timestamp(5 * HOUR) };
        assert!(store.end_task(&task, end).await.unwrap());
    }
    let grandchild = session(store, "/work/a", Some(&child), 5 * HOUR).await;
    let task = store.acquire_task_lease(&grandchild).await.unwrap();
    store.begin_task(&task, "Look", Timestamp(5 * HOUR)).await.unwrap();
    // The leaked lease lasts as long as the store is open.
    std::mem::forget(task);
    let copy = crow_store::invent_name();
    store.fork_session(&first, &copy, None, Timestamp(6 * HOUR)).await.unwrap();
    vec![first, child, grandchild, copy]
}

async fn append_entries(store: &Store, id: &SessionId, entries: &[TranscriptEntry]) -> SessionLease {
    let writer = store.acquire_session_lease(id).await.unwrap();
    for (seq, entry) in entries.iter().enumerate() {
        store.append_entry(&writer, seq as u64, entry, Timestamp(2 * HOUR)).await.unwrap();
    }
    writer
}

async fn session(store: &Store, cwd: &str, parent: Option<&SessionId>, now: i64) -> SessionId {
    let new = NewSession {
        cwd: cwd.to_owned(),
        model: "sonnet".to_owned(),
        mode: Mode::Ask,
        thought_level: ThoughtLevel::Default,
        system_prompt: String::new(),
        parent: parent.cloned(),
        agent_type: parent.map(|_| "codex".to_owned()),
        now: Timestamp(now),
    };
    let id = crow_store::invent_name();
    store.create_session(&id, new).await.unwrap();
    id
}

fn entries() -> [TranscriptEntry; 3] {
    let call = ToolCall {
        id: CallId::from_position(1, 0),
        provider_id: "x".to_owned(),
        name: "terminal".to_owned(),
        arguments: ToolArguments::Valid(serde_json::from_str(r#"{"command":"ls"}"#).unwrap()),
    };
    [
        TranscriptEntry::Prompt(Prompt {
            id: MessageId::from_seq(0),
            parts: vec![ContentPart::Text("list the files".to_owned())],
        }),
        TranscriptEntry::Reply(Reply {
            id: MessageId::from_seq(1),
            thought: "hm".to_owned(),
            text: "I look.".to_owned(),
            calls: vec![call],
            end: ReplyEnd::Complete,
            usage: None,
            provider_state: None,
            fallback_model: None,
        }),
        TranscriptEntry::Result {
            call: CallId::from_position(1, 0),
            info: ToolCallInfo {
                title: "ls".to_owned(),
                kind: ToolKind::Execute,
                locations: Vec::new(),
                access: ToolAccess::Runs("ls".to_owned()),
            },
            result: ToolResult::success("a.txt\n\u{1b}[31mb.txt"),
        },
    ]
}

/// A prompt with an image, and a reply whose call changed a file.
fn change() -> [TranscriptEntry; 3] {
    let image = ContentPart::Image { mime: "image/png".to_owned(), data: "iVBORw==".to_owned() };
    let arguments = r#"{"file_path":"/work/a/x"}"#;
    let call = ToolCall {
        id: CallId::from_position(1, 0),
        provider_id: "x".to_owned(),
        name: "edit".to_owned(),
        arguments: ToolArguments::Valid(serde_json::from_str(arguments).unwrap()),
    };
    let diff = ToolCallContent::Diff {
        path: "/work/a/x".to_owned(),
        old: Some("one\ntwo\n".to_owned()),
        new: "one\n2\u{9b}2J\n".to_owned(),
    };
    [
        TranscriptEntry::Prompt(Prompt {
            id: MessageId::from_seq(0),
            parts: vec![ContentPart::Text("change it\nlike\u{1b}[2J this".to_owned()), image],
        }),
        TranscriptEntry::Reply(Reply {
            id: MessageId::from_seq(1),
            thought: "how?".to_owned(),
            text: "I change it.".to_owned(),
            calls: vec![call],
            end: ReplyEnd::OutputLimit,
            usage: Some(TokenUsage { cost: Some(12_300_000), ..TokenUsage::new(7, 3) }),
            provider_state: None,
            fallback_model: None,
        }),
        TranscriptEntry::Result {
            call: CallId::from_position(1, 0),
            info: ToolCallInfo {
                title: "Edit x".to_owned(),
                kind: ToolKind::Edit,
                locations: Vec::new(),
                access: ToolAccess::Nothing,
            },
            result: ToolResult { for_client: vec![diff], ..ToolResult::success("changed; see ```x```") },
        },
    ]
}

#[test]
fn trees_show_children_below_their_parents() {
    check_tree(
        "crow-cli inspect --tree",
        expect![[r#"
            SESSION  UPDATED  MESSAGES  MODEL  TITLE  TASK  COPY OF
            $D  yesterday  3  sonnet  Change `it` [2J  $A
            $A  yesterday  3  sonnet  Change `it` [2J
            └ $B  yesterday  3  sonnet  List  codex: done, 2 turns, 1234 tokens
              └ $C  yesterday  0  sonnet  Look  codex: running, 1 turn, 0 tokens
        "#]],
    );
    check_tree(
        "crow-cli inspect -s $B --tree",
        expect![[r#"
            SESSION  UPDATED  MESSAGES  MODEL  TITLE  TASK  COPY OF
            $B  yesterday  3  sonnet  List  codex: done, 2 turns, 1234 tokens
            └ $C  yesterday  0  sonnet  Look  codex: running, 1 turn, 0 tokens
        "#]],
    );
    check_tree(
        "crow-cli inspect -s $B --tree -j",
        expect![[r#"
            {"sessions":[{"id":"$B","title":"List","cwd":"/work/a","model":"sonnet","mode":"ask","thought_level":"default","messages":3,"created":"1970-01-01T04:00:00Z","updated":"1970-01-01T04:00:00Z","parent":"$A","agent_type":"codex","agent_session_id":"theirs-7\u001b[2J","forked_from":null,"session_id":"$B","model_identifier":"sonnet","message_count":3,"created_at":"1970-01-01T04:00:00Z","task":{"state":"done","rounds":2,"tokens":1234,"started":"1970-01-01T04:00:00Z","ended":"1970-01-01T05:00:00Z","branch":"crow/lister"},"children":[{"id":"$C","title":"Look","cwd":"/work/a","model":"sonnet","mode":"ask","thought_level":"default","messages":0,"created":"1970-01-01T05:00:00Z","updated":"1970-01-01T05:00:00Z","parent":"$B","agent_type":"codex","agent_session_id":null,"forked_from":null,"session_id":"$C","model_identifier":"sonnet","message_count":0,"created_at":"1970-01-01T05:00:00Z","task":{"state":"running","rounds":1,"tokens":0,"started":"1970-01-01T05:00:00Z","ended":null,"branch":null},"children":[]}]}]}
        "#]],
    );
    check_tree(
        "crow-cli inspect -l 1 --tree",
        expect![[r#"
            SESSION  UPDATED  MESSAGES  MODEL  TITLE  TASK  COPY OF
            $D  yesterday  3  sonnet  Change `it` [2J  $A
        "#]],
    );
}

#[test]
fn session_shows_its_compactions_and_its_origin() {
    check_tree(
        "crow-cli inspect -s $D",
        expect![[r#"
            session  $D
            title  Change `it` [2J
            directory  /work/a
            model  sonnet
            mode  ask
            messages  3
            created  yesterday
            updated  yesterday
            tokens  7 input, 3 output
            cost  $0.0123
            copy of  $A
            compacted  before msg-2, 900 to 300 tokens; the model sees msg-1 and later
        "#]],
    );
    check_tree(
        "crow-cli inspect -s $A -j",
        expect![[r#"
            {"session":{"id":"$A","title":"Change `it`\u001b[2J","cwd":"/work/a","model":"sonnet","mode":"ask","thought_level":"default","messages":3,"created":"1970-01-01T01:00:00Z","updated":"1970-01-01T02:00:00Z","parent":null,"agent_type":"crow-cli","agent_session_id":null,"forked_from":null,"session_id":"$A","model_identifier":"sonnet","message_count":3,"created_at":"1970-01-01T01:00:00Z"},"task":null,"compactions":[{"at":2,"keep_from":1,"said":[0],"summary":"A change\nwas wanted.","pruned":["call-1-0"],"tokens_before":900,"tokens_after":300}],"usage":{"input":7,"output":3,"cached":0,"cache_written":0,"cost":0.0123}}
        "#]],
    );
}

#[test]
fn task_without_a_lease_is_lost() {
    let fill = async |store: &Store| {
        let parent = session(store, "/work/a", None, HOUR).await;
        let child = session(store, "/work/a", Some(&parent), HOUR).await;
        let task = store.acquire_task_lease(&child).await.unwrap();
        store.begin_task(&task, "Look", Timestamp(2 * HOUR)).await.unwrap();
        store.release_task_lease(task).await;
        vec![parent, child]
    };
    check_in(
        "crow-cli inspect -s $A --tree",
        fill,
        expect![[r#"
            SESSION  UPDATED  MESSAGES  MODEL  TITLE  TASK  COPY OF
            $A  yesterday  0  sonnet  -
            └ $B  yesterday  0  sonnet  Look  codex: lost, 1 turn, 0 tokens
        "#]],
    );
    check_in(
        "crow-cli inspect -s $B",
        fill,
        expect![[r#"
            session  $B
            title  Look
            directory  /work/a
            model  sonnet
            mode  ask
            messages  0
            created  yesterday
            updated  yesterday
            child of  $A
            agent  codex
            task  lost, 1 turn, 0 tokens
        "#]],
    );
}

#[test]
fn task_shows_its_agent_and_its_state() {
    check_tree(
        "crow-cli inspect -s $B",
        expect![[r#"
            session  $B
            title  List
            directory  /work/a
            model  sonnet
            mode  ask
            messages  3
            created  yesterday
            updated  yesterday
            child of  $A
            agent  codex
            agent session  theirs-7 [2J
            task  done, 2 turns, 1234 tokens
            branch  crow/lister
        "#]],
    );
    check_tree(
        "crow-cli inspect -s $B -j",
        expect![[r#"
            {"session":{"id":"$B","title":"List","cwd":"/work/a","model":"sonnet","mode":"ask","thought_level":"default","messages":3,"created":"1970-01-01T04:00:00Z","updated":"1970-01-01T04:00:00Z","parent":"$A","agent_type":"codex","agent_session_id":"theirs-7\u001b[2J","forked_from":null,"session_id":"$B","model_identifier":"sonnet","message_count":3,"created_at":"1970-01-01T04:00:00Z"},"task":{"state":"done","rounds":2,"tokens":1234,"started":"1970-01-01T04:00:00Z","ended":"1970-01-01T05:00:00Z","branch":"crow/lister"},"compactions":[],"usage":{"input":0,"output":0,"cached":0,"cache_written":0,"cost":null}}
        "#]],
    );
}

#[test]
fn child_sessions_are_listed_on_request() {
    check_tree(
        "crow-cli inspect",
        expect![[r#"
            SESSION  UPDATED  MESSAGES  MODEL  TITLE  DIRECTORY
            $D  yesterday  3  sonnet  Change `it` [2J  /work/a
            $A  yesterday  3  sonnet  Change `it` [2J  /work/a
        "#]],
    );
    check_tree(
        "crow-cli inspect --all",
        expect![[r#"
            SESSION  UPDATED  MESSAGES  MODEL  TITLE  DIRECTORY
            $D  yesterday  3  sonnet  Change `it` [2J  /work/a
            $B  yesterday  3  sonnet  List  /work/a
            $A  yesterday  3  sonnet  Change `it` [2J  /work/a
        "#]],
    );
}

#[test]
fn export_writes_markdown() {
    check_tree(
        "crow-cli inspect -s $A --export md",
        expect![[r##"
            # Change `it` [2J

            - session: $A
            - directory: /work/a
            - model: sonnet
            - mode: ask
            - created: 1970-01-01 01:00 UTC
            - last message: 1970-01-01 02:00 UTC
            - cost: $0.0123

            ## user, 1970-01-01 02:00 UTC

            change it
            like [2J this
            [image image/png]

            ## assistant, 1970-01-01 02:00 UTC

            > how?

            I change it.

            call-1-0 calls edit

            ```json
            {
              "file_path": "/work/a/x"
            }
            ```

            (truncated at the output limit)

            ---

            Compacted before msg-2, 900 to 300 tokens; the model sees msg-1 and later.
            > A change
            > was wanted.

            ---

            ### call-1-0: Edit x (completed)

            ````text
            changed; see ```x```
            ````

            ```diff
            --- /work/a/x
            +++ /work/a/x
            @@ -1,2 +1,2 @@
             one
            -two
            +2 2J
            ```
        "##]],
    );
}

#[test]
fn export_writes_json_with_everything() {
    check_tree(
        "crow-cli inspect -s $A --export json",
        expect![[r#"
            {"session":{"id":"$A","title":"Change `it`\u001b[2J","cwd":"/work/a","model":"sonnet","mode":"ask","thought_level":"default","messages":3,"created":"1970-01-01T01:00:00Z","updated":"1970-01-01T02:00:00Z","parent":null,"agent_type":"crow-cli","agent_session_id":null,"forked_from":null,"session_id":"$A","model_identifier":"sonnet","message_count":3,"created_at":"1970-01-01T01:00:00Z","system_prompt":""},"messages":[{"role":"user","id":"msg-0","text":"change it\nlike\u001b[2J this\n[image image/png]","seq":0,"created":"1970-01-01T02:00:00Z","parts":[{"type":"text","text":"change it\nlike\u001b[2J this"},{"type":"image","mime":"image/png","data":"iVBORw=="}]},{"role":"assistant","id":"msg-1","thought":"how?","text":"I change it.","calls":[{"id":"call-1-0","name":"edit","arguments":{"file_path":"/work/a/x"}}],"seq":1,"created":"1970-01-01T02:00:00Z","ended":"truncated at the output limit","usage":{"input":7,"output":3,"cached":0,"cache_written":0,"cost":0.0123},"answered_by":null},{"role":"tool","call":"call-1-0","title":"Edit x","status":"completed","text":"changed; see ```x```","seq":2,"created":"1970-01-01T02:00:00Z","locations":[],"parts":[{"type":"text","text":"changed; see ```x```"}],"shown":[{"type":"diff","path":"/work/a/x","old":"one\ntwo\n","new":"one\n2\u009b2J\n"}],"plan":null}],"compactions":[{"at":2,"keep_from":1,"said":[0],"summary":"A change\nwas wanted.","pruned":["call-1-0"],"tokens_before":900,"tokens_after":300}],"usage":{"input":7,"output":3,"cached":0,"cache_written":0,"cost":0.0123}}
        "#]],
    );
}

#[test]
fn messages_are_paged() {
    check(
        "crow-cli inspect -s $A -m -l 1 --before 2",
        expect![[r#"
            (1 earlier message; --before 1 shows them)

            assistant msg-1
              I look.
              call-1-0 terminal {"command":"ls"}

        "#]],
    );
    check(
        "crow-cli inspect -s $A -m -l 1 --before 1 -j",
        expect![[r#"
            {"session":{"id":"$A","title":"List the files","cwd":"/work/a","model":"sonnet","mode":"ask","thought_level":"default","messages":3,"created":"1970-01-01T01:00:00Z","updated":"1970-01-01T02:00:00Z","parent":null,"agent_type":"crow-cli","agent_session_id":null,"forked_from":null,"session_id":"$A","model_identifier":"sonnet","message_count":3,"created_at":"1970-01-01T01:00:00Z"},"messages":[{"role":"user","id":"msg-0","text":"list the files","seq":0,"created":"1970-01-01T02:00:00Z","created_at":"1970-01-01T02:00:00Z","data":{"role":"user","content":"list the files"}}],"earlier":0}
        "#]],
    );
}

#[test]
fn mistyped_name_gets_a_suggestion() {
    check_tree(
        "crow-cli inspect -s $Ax",
        expect![[r#"
            CliError { code: NoSession, message: Some("there is no session $Ax"), hint: Some("did you mean $A?"), kind: None }
        "#]],
    );
    check_tree(
        "crow-cli inspect -s missing --search it",
        expect![[r#"
            CliError { code: NoSession, message: Some("there is no session missing"), hint: Some("`crow-cli inspect` lists the sessions"), kind: None }
        "#]],
    );
}

#[test]
fn search_can_be_limited_to_a_session() {
    check_tree(
        "crow-cli inspect --search files",
        expect![[r#"
        SESSION  MESSAGE  TEXT
        $B  msg-0  list the files
    "#]],
    );
    check_tree(
        "crow-cli inspect -s $A --search files",
        expect![[r#"
            no matches
        "#]],
    );
}

#[test]
fn sessions_are_listed_newest_first() {
    check(
        "crow-cli inspect",
        expect![[r#"
            SESSION  UPDATED  MESSAGES  MODEL  TITLE  DIRECTORY
            $A  yesterday  3  sonnet  List the files  /work/a
        "#]],
    );
    check(
        "crow-cli inspect -l 1 -j",
        expect![[r#"
            {"sessions":[{"id":"$A","title":"List the files","cwd":"/work/a","model":"sonnet","mode":"ask","thought_level":"default","messages":3,"created":"1970-01-01T01:00:00Z","updated":"1970-01-01T02:00:00Z","parent":null,"agent_type":"crow-cli","agent_session_id":null,"forked_from":null,"session_id":"$A","model_identifier":"sonnet","message_count":3,"created_at":"1970-01-01T01:00:00Z"}]}
        "#]],
    );
}

#[test]
fn session_is_shown() {
    check(
        "crow-cli inspect -s $A",
        expect![[r#"
            session  $A
            title  List the files
            directory  /work/a
            model  sonnet
            mode  ask
            messages  3
            created  yesterday
            updated  yesterday
        "#]],
    );
    check(
        "crow-cli inspect -s missing",
        expect![[r#"
            CliError { code: NoSession, message: Some("there is no session missing"), hint: Some("`crow-cli inspect` lists the sessions"), kind: None }
        "#]],
    );
}

#[test]
fn messages_are_shown_without_control_characters() {
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
            (2 earlier messages; --before 2 shows them)

            tool call-1-0: ls (completed)
              a.txt
              [31mb.txt

        "#]],
    );
    check(
        "crow-cli inspect -s $A -m -j",
        expect![[r#"
            {"session":{"id":"$A","title":"List the files","cwd":"/work/a","model":"sonnet","mode":"ask","thought_level":"default","messages":3,"created":"1970-01-01T01:00:00Z","updated":"1970-01-01T02:00:00Z","parent":null,"agent_type":"crow-cli","agent_session_id":null,"forked_from":null,"session_id":"$A","model_identifier":"sonnet","message_count":3,"created_at":"1970-01-01T01:00:00Z"},"messages":[{"role":"user","id":"msg-0","text":"list the files","seq":0,"created":"1970-01-01T02:00:00Z","created_at":"1970-01-01T02:00:00Z","data":{"role":"user","content":"list the files"}},{"role":"assistant","id":"msg-1","thought":"hm","text":"I look.","calls":[{"id":"call-1-0","name":"terminal","arguments":{"command":"ls"}}],"seq":1,"created":"1970-01-01T02:00:00Z","created_at":"1970-01-01T02:00:00Z","data":{"role":"assistant","content":"I look.","reasoning_content":"hm","tool_calls":[{"id":"call-1-0","type":"function","function":{"name":"terminal","arguments":"{\"command\":\"ls\"}"}}]}},{"role":"tool","call":"call-1-0","title":"ls","status":"completed","text":"a.txt\n\u001b[31mb.txt","seq":2,"created":"1970-01-01T02:00:00Z","id":"msg-2","created_at":"1970-01-01T02:00:00Z","data":{"role":"tool","tool_call_id":"call-1-0","content":"a.txt\n\u001b[31mb.txt"}}],"earlier":0}
        "#]],
    );
}

#[test]
fn search_finds_messages() {
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
            {"hits":[{"session":"$A","seq":0,"role":"user","created":"1970-01-01T02:00:00Z","snippet":"list the files"}]}
        "#]],
    );
    check(
        "crow-cli inspect --search nothing",
        expect![[r#"
            no matches
        "#]],
    );
}

#[test]
fn missing_store_counts_as_empty_and_is_not_created() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("crow.db");
    let db = DatabaseAddress::File(file.clone());
    let Some(CliCommand::Inspect(LazyArgs(args))) = Cli::parse_from(["crow-cli", "inspect"]).command else {
        panic!("inspect")
    };
    let mut out = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(super::run(&args, &db, Timestamp(0), &mut out)).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "no sessions yet\n");
    assert!(!file.exists());
}
