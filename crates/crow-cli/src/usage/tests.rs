use clap::Parser;
use crow_core::{MessageId, Mode, Reply, ReplyEnd, ThoughtLevel, TokenUsage, TranscriptEntry};
use crow_store::{DatabaseAddress, NewSession, Store, Timestamp};
use expect_test::{Expect, expect};
use tempfile::TempDir;

use crate::cli::{Cli, CliCommand, LazyArgs};
use crate::settings::{Environment, Settings};

/// Noon of 2026-03-10 in a time zone, in a place where a day begins an hour before that of UTC.
const NOW: &str = "2026-03-10T12:00:00+01:00[+01:00]";

/// Shows the usage of the first four replies, at `columns` columns.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]
fn check(line: &str, columns: usize, expect: Expect) {
    let directory = tempfile::tempdir().unwrap();
    let database = DatabaseAddress::File(directory.path().join("crow.db"));
    let Some(CliCommand::Usage(LazyArgs(args))) = Cli::parse_from(line.split(' ')).command else {
        panic!("usage")
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let text = runtime.block_on(async {
        let store = Store::open(&database).await.unwrap();
        store_replies(&store, "/work/crow", "sonnet", &["2026-03-08T22:59:59Z", "2026-03-08T23:00:00Z"])
            .await;
        store_replies(&store, "/work/nest", "a small one", &["2026-03-10T10:00:00Z", "2026-03-10T11:59:00Z"])
            .await;
        let mut out = Vec::new();
        super::run(&args, &settings(&directory), &NOW.parse().unwrap(), Some(columns), &mut out)
            .await
            .unwrap();
        String::from_utf8(out).unwrap()
    });
    expect.assert_eq(&text);
}

/// Settings whose database is in a directory, with a model of one provider.
fn settings(directory: &TempDir) -> Settings {
    let config = "database: crow.db\nproviders:\n  anthropic: { base_url: http://127.0.0.1:1/v1 }\n\
                  models:\n  sonnet: { provider: anthropic, model: sonnet }\n";
    std::fs::write(directory.path().join("config.yaml"), config).unwrap();
    Settings::load(directory.path(), &Environment::new()).unwrap().0
}

/// Stores a session with a reply at each of these times, each larger than the one before.
async fn store_replies(store: &Store, cwd: &str, model: &str, times: &[&str]) {
    let times: Vec<Timestamp> = times
        .iter()
        .map(|time| Timestamp(time.parse::<jiff::Timestamp>().unwrap().as_millisecond()))
        .collect();
    let id = crow_store::invent_name();
    let new = NewSession {
        cwd: cwd.into(),
        model: model.into(),
        mode: Mode::Ask,
        thought_level: ThoughtLevel::Default,
        system_prompt: String::new(),
        parent: None,
        agent_type: None,
        now: times[0],
    };
    store.create_session(&id, new).await.unwrap();
    let lease = store.acquire_session_lease(&id).await.unwrap();
    for (seq, time) in (0..).zip(times) {
        let has_cost = model == "sonnet";
        let usage = TokenUsage {
            cached: 4_000 * seq,
            cost: has_cost.then_some(30_000_000),
            ..TokenUsage::new(5_000 * (seq + 1), 120)
        };
        let reply = TranscriptEntry::Reply(Reply {
            id: MessageId::from_seq(seq),
            thought: String::new(),
            text: "hi".into(),
            calls: Vec::new(),
            end: ReplyEnd::Complete,
            usage: Some(usage),
            provider_state: None,
            fallback_model: None,
        });
        store.append_entry(&lease, seq, &reply, time).await.unwrap();
    }
    store.release_session_lease(lease).await;
}

#[test]
fn usage_is_shown_by_day_provider_model_and_directory() {
    check(
        "crow-cli usage",
        80,
        expect![[r#"
            2026-02-09 to 2026-03-10: 4 requests in 2 sessions, 30k tokens in (26 % cached), 480 out, $0.0600

            DAY         REQUESTS  IN    CACHED  OUT  COST
            2026-03-08  1         5.0k  0 %     120  $0.0300  ██████████
            2026-03-09  1         10k   40 %    120  $0.0300  ███████████████████▉
            2026-03-10  2         15k   26 %    240  -        ██████████████████████████████

            PROVIDER   REQUESTS  IN   CACHED  OUT  COST
            anthropic  2         15k  26 %    240  $0.0600  ████████████████████████████████
            unknown    2         15k  26 %    240  -        ████████████████████████████████

            MODEL        REQUESTS  IN   CACHED  OUT  COST
            a small one  2         15k  26 %    240  -        ██████████████████████████████
            sonnet       2         15k  26 %    240  $0.0600  ██████████████████████████████

            DIRECTORY   REQUESTS  IN   CACHED  OUT  COST
            /work/crow  2         15k  26 %    240  $0.0600  ███████████████████████████████
            /work/nest  2         15k  26 %    240  -        ███████████████████████████████
        "#]],
    );
    check(
        "crow-cli usage --days 2",
        50,
        expect![[r#"
            2026-03-09 to 2026-03-10: 3 requests in 2 sessions, 25k tokens in (32 % cached), 360 out, $0.0300

            DAY         REQUESTS  IN   CACHED  OUT  COST
            2026-03-09  1         10k  40 %    120  $0.0300
            2026-03-10  2         15k  26 %    240  -

            PROVIDER   REQUESTS  IN   CACHED  OUT  COST
            unknown    2         15k  26 %    240  -
            anthropic  1         10k  40 %    120  $0.0300

            MODEL        REQUESTS  IN   CACHED  OUT  COST
            a small one  2         15k  26 %    240  -
            sonnet       1         10k  40 %    120  $0.0300

            DIRECTORY   REQUESTS  IN   CACHED  OUT  COST
            /work/nest  2         15k  26 %    240  -
            /work/crow  1         10k  40 %    120  $0.0300
        "#]],
    );
}

#[test]
fn names_are_shortened_on_a_narrow_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let database = DatabaseAddress::File(directory.path().join("crow.db"));
    let Some(CliCommand::Usage(LazyArgs(args))) = Cli::parse_from(["crow-cli", "usage"]).command else {
        panic!("usage")
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let text = runtime.block_on(async {
        let store = Store::open(&database).await.unwrap();
        let cwd = "/home/me/projects/漢字/a folder with a long name";
        store_replies(&store, cwd, "claude-opus-with-a-long-name-2026", &["2026-03-10T10:00:00Z"]).await;
        let mut out = Vec::new();
        super::run(&args, &settings(&directory), &NOW.parse().unwrap(), Some(60), &mut out).await.unwrap();
        String::from_utf8(out).unwrap()
    });
    expect![[r#"
        2026-02-09 to 2026-03-10: 1 request in 1 session, 5.0k tokens in, 120 out

        DAY         REQUESTS  IN    CACHED  OUT  COST
        2026-03-10  1         5.0k  0 %     120  -     █████████████

        PROVIDER  REQUESTS  IN    CACHED  OUT  COST
        unknown   1         5.0k  0 %     120  -     ███████████████

        MODEL                      REQUESTS  IN    CACHED  OUT  COST
        claude-opus-…ng-name-2026  1         5.0k  0 %     120  -

        DIRECTORY                  REQUESTS  IN    CACHED  OUT  COST
        /home/me/pro… a long name  1         5.0k  0 %     120  -
    "#]]
    .assert_eq(&text);
    assert!(text.lines().skip(1).all(|line| console::measure_text_width(line) <= 60), "{text}");
}

#[test]
fn usage_is_json_and_svg() {
    check(
        "crow-cli usage -j",
        80,
        expect![[r#"
        {"from":"2026-02-09","to":"2026-03-10","total":{"requests":4,"usage":{"input":30000,"output":480,"cached":8000,"cache_written":0,"cost":0.06},"sessions":2},"days":[{"requests":1,"usage":{"input":5000,"output":120,"cached":0,"cache_written":0,"cost":0.03},"date":"2026-03-08"},{"requests":1,"usage":{"input":10000,"output":120,"cached":4000,"cache_written":0,"cost":0.03},"date":"2026-03-09"},{"requests":2,"usage":{"input":15000,"output":240,"cached":4000,"cache_written":0,"cost":null},"date":"2026-03-10"}],"providers":[{"requests":2,"usage":{"input":15000,"output":240,"cached":4000,"cache_written":0,"cost":0.06},"provider":"anthropic"},{"requests":2,"usage":{"input":15000,"output":240,"cached":4000,"cache_written":0,"cost":null},"provider":"unknown"}],"models":[{"requests":2,"usage":{"input":15000,"output":240,"cached":4000,"cache_written":0,"cost":null},"model":"a small one"},{"requests":2,"usage":{"input":15000,"output":240,"cached":4000,"cache_written":0,"cost":0.06},"model":"sonnet"}],"directories":[{"requests":2,"usage":{"input":15000,"output":240,"cached":4000,"cache_written":0,"cost":0.06},"cwd":"/work/crow"},{"requests":2,"usage":{"input":15000,"output":240,"cached":4000,"cache_written":0,"cost":null},"cwd":"/work/nest"}]}
    "#]],
    );
    check(
        "crow-cli usage --days 3 --svg",
        80,
        expect![[r##"
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 268" width="640" height="268" role="img" font-family="sans-serif" font-size="11">
            <title>Tokens by day</title>
            <rect width="100%" height="100%" fill="#ffffff"/>
            <text x="44" y="20" fill="#333333">2026-03-08 to 2026-03-10: 4 requests in 2 sessions, 30k tokens in (26 % cached), 480 out, $0.0600</text>
            <line x1="44" y1="224" x2="596" y2="224" stroke="#999999"/>
            <g><title>2026-03-08: 5.1k tokens</title><rect x="116" y="164" width="40" height="60" fill="#2f6fb2"/><rect x="116" y="224" width="40" height="0" fill="#a9c8e8"/></g>
            <g><title>2026-03-09: 10k tokens</title><rect x="300" y="105" width="40" height="119" fill="#2f6fb2"/><rect x="300" y="177" width="40" height="47" fill="#a9c8e8"/></g>
            <g><title>2026-03-10: 15k tokens</title><rect x="484" y="44" width="40" height="180" fill="#2f6fb2"/><rect x="484" y="177" width="40" height="47" fill="#a9c8e8"/></g>
            <text x="44" y="240" fill="#333333">2026-03-08</text>
            <text x="596" y="240" text-anchor="end" fill="#333333">2026-03-10</text>
            <text x="44" y="256" fill="#333333">largest day: 15k tokens; light: read from the provider's cache</text>
            </svg>
        "##]],
    );
}

#[test]
fn days_without_requests_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let Some(CliCommand::Usage(LazyArgs(args))) = Cli::parse_from(["crow-cli", "usage"]).command else {
        panic!("usage")
    };
    let mut out = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime
        .block_on(super::run(&args, &settings(&directory), &NOW.parse().unwrap(), None, &mut out))
        .unwrap();
    expect![[r#"
        no requests with token counts from 2026-02-09 to 2026-03-10
    "#]]
    .assert_eq(&String::from_utf8(out).unwrap());
}
