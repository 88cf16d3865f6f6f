use clap::Parser;
use crow_core::{
    CallId, ContentPart, Failure, FailureKind, MessageId, Mode, Prompt, Reply, ReplyEnd, ThoughtLevel,
    TokenUsage, ToolArguments, ToolCall, TranscriptEntry,
};
use crow_store::{DatabaseAddress, NewSession, Store, Timestamp};
use expect_test::expect;

use crate::{
    cli::{Cli, CliCommand, LazyArgs},
    settings::Environment,
};

const KEY: &str = "sk-0123456789abcdef";

/// A prompt and a broken reply with a call, all of which contain words that a report must not have.
fn entries() -> [TranscriptEntry; 2] {
    let prompt =
        Prompt { id: MessageId::from_seq(0), parts: vec![ContentPart::Text("private prompt".into())] };
    let call = ToolCall {
        id: CallId::from_position(1, 0),
        provider_id: "c".into(),
        name: "terminal".into(),
        arguments: ToolArguments::Valid([("command".into(), "private command".into())].into_iter().collect()),
    };
    let reply = Reply {
        id: MessageId::from_seq(1),
        thought: "private thought".into(),
        text: "private text".into(),
        calls: vec![call],
        end: ReplyEnd::Failed(Failure::new(FailureKind::Connection, "private failure")),
        usage: Some(TokenUsage { cached: 3, ..TokenUsage::new(7, 2) }),
        provider_state: None,
        fallback_model: None,
    };
    [TranscriptEntry::Prompt(prompt), TranscriptEntry::Reply(reply)]
}

#[test]
fn report_has_no_key_prompt_or_reply() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join(".crow");
    std::fs::create_dir_all(dir.join("logs")).unwrap();
    let config = "providers:\n  local: { base_url: 'http://127.0.0.1:9/v1', api_key: '${LOCAL_KEY}' }\nmodels:\n  \
                  small: { provider: local, model: tiny }\n";
    std::fs::write(dir.join("config.yaml"), config).unwrap();
    let line = format!("INFO could not reach {}/.crow with {KEY}\x1b[2J\n", home.path().display());
    std::fs::write(dir.join("logs/crow-cli.log"), line.repeat(1000)).unwrap();
    let variables = [("HOME", home.path().to_str().unwrap()), ("LOCAL_KEY", KEY)];
    let env = Environment::from(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let report = runtime.block_on(async {
        let store = Store::open(&DatabaseAddress::File(dir.join("crow.db"))).await.unwrap();
        let id = crow_store::invent_name();
        let new = NewSession {
            cwd: "/work".into(),
            model: "small".into(),
            mode: Mode::Ask,
            thought_level: ThoughtLevel::Default,
            system_prompt: "private system prompt".into(),
            parent: None,
            agent_type: None,
            now: Timestamp(1_000),
        };
        store.create_session(&id, new).await.unwrap();
        let lease = store.acquire_session_lease(&id).await.unwrap();
        for (seq, entry) in (0..).zip(entries()) {
            store
                .append_entry(&lease, seq, &entry, Timestamp(2_000 + 5_000 * seq.cast_signed()))
                .await
                .unwrap();
        }
        store.release_session_lease(lease).await;
        let command = Cli::parse_from(["crow-cli", "report", "--offline", "-s", id.as_str()]).command;
        let Some(CliCommand::Report(LazyArgs(args))) = command else { panic!("{command:?}") };
        let mut out = Vec::new();
        super::run(&args, &dir, &env, home.path().to_owned(), &mut out).await.unwrap();
        String::from_utf8(out).unwrap()
    });
    for secret in ["private", KEY, "\x1b", home.path().to_str().unwrap()] {
        assert!(!report.contains(secret), "{secret}: {report}");
    }
    let n_lines = report.matches("INFO could not reach ~/.crow with [secret]").count();
    assert!((100..1000).contains(&n_lines), "{n_lines} lines of the log");
    let (before, _) = report.split_once("## Log").unwrap();
    let (_, sections) = before.split_once("## Settings").unwrap();
    expect![[r#"


        ```text
        mode ask, sandbox unapproved, network allowed
        terminals of the client if it has some, shell bash
        0 MCP servers, 0 agents, 0 allow rules, 0 deny rules
        model small: tiny by chat, window 128000
        ```

        ## Session

        ```text
        2 messages, model small, mode ask, crow-cli
            0      0 s  prompt of 1 parts
            1      5 s  reply of 15 bytes of thought and 12 of text, calls terminal, 7 tokens in (3 cached), 2 out, failed: connection
        ```

    "#]].assert_eq(sections);
}
