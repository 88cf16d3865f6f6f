//! Benchmarks of a large database: `cargo bench -p crow-store`. 100,000 messages in SQLite, and in PostgreSQL too if
//! `CROW_TEST_POSTGRES` specifies a server.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]

use std::time::{Duration, Instant};

use crow_core::{
    ContentPart, MessageId, Mode, Prompt, Reply, ReplyEnd, SessionId, ThoughtLevel, TokenUsage,
    TranscriptEntry,
};
use crow_store::{
    CreatorFilter, DatabaseAddress, ListQuery, MessageRange, NewSession, PostgresAddress, SearchQuery, Store,
    Timestamp, invent_name,
};

const SESSIONS: u64 = 2_450;
const MESSAGES: u64 = 40;
const LONG: u64 = 2_000;
const ROUNDS: usize = 30;
/// A few hundred words, as people and models use them.
const WORDS: [&str; 8] = ["parser", "river", "error", "compile", "branch", "review", "cache", "socket"];

fn main() {
    // `cargo test --benches` only checks that this builds and starts.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure("SQLite", &DatabaseAddress::File(directory.path().join("crow.db"))));
    #[expect(clippy::disallowed_methods, reason = "says where a server is")]
    if let Ok(uri) = std::env::var("CROW_TEST_POSTGRES") {
        let server = PostgresAddress::parse(&uri).unwrap();
        let local = directory.path().to_path_buf();
        runtime.block_on(measure("PostgreSQL", &DatabaseAddress::Server { server, local_dir: local }));
    }
}

async fn measure(name: &str, address: &DatabaseAddress) {
    let store = Store::open(address).await.unwrap();
    let began = Instant::now();
    for number in 0..SESSIONS {
        fill(&store, number, MESSAGES).await;
    }
    let long = fill(&store, SESSIONS, LONG).await;
    let each = began.elapsed() / u32::try_from(SESSIONS * MESSAGES + LONG).unwrap();
    println!("{name}: {} messages, {each:?} to store one", SESSIONS * MESSAGES + LONG);
    println!("{:<44} {:>12} {:>12} {:>12}", "", "min", "median", "promise");
    let list = ListQuery { cwd: None, creator: CreatorFilter::User, before: None, limit: 50 };
    row("list, a page of 50", "50 ms", async || drop(store.list_sessions(list.clone()).await.unwrap())).await;
    row("load, 2,000 messages", "100 ms", async || drop(store.load_session(&long).await.unwrap().unwrap()))
        .await;
    let page = MessageRange { from: LONG - 50, limit: 50 };
    row("the last 50 messages of them", "", async || drop(store.load_messages(&long, page).await.unwrap()))
        .await;
    for (what, text) in [("a word", "river"), ("two words", "river cache"), ("a rare word", "zanzibar1234")] {
        let query = SearchQuery { text: text.into(), session: None, limit: 20, offset: 0 };
        let name = format!("search, {what}");
        row(&name, "50 ms", async || drop(store.search_messages(query.clone()).await.unwrap())).await;
    }
    row("open", "", async || drop(Store::open(address).await.unwrap())).await;
}

async fn fill(store: &Store, number: u64, n_messages: u64) -> SessionId {
    let id = invent_name();
    let new = NewSession {
        cwd: format!("/work/{}", number % 20),
        model: "m".into(),
        mode: Mode::Ask,
        thought_level: ThoughtLevel::Default,
        system_prompt: "You are a crow.".into(),
        parent: None,
        agent_type: None,
        now: Timestamp(i64::try_from(number).unwrap()),
    };
    store.create_session(&id, new).await.unwrap();
    let writer = store.acquire_session_lease(&id).await.unwrap();
    for seq in 0..n_messages {
        let entry = entry(number, seq);
        store.append_entry(&writer, seq, &entry, Timestamp(i64::try_from(number).unwrap())).await.unwrap();
    }
    store.release_session_lease(writer).await;
    id
}

fn entry(number: u64, seq: u64) -> TranscriptEntry {
    let word = |n: u64| WORDS[usize::try_from((number * 7 + seq * 3 + n * n) % 8).unwrap()];
    let mut text: String = (0..60).map(|n| format!("{} ", word(n))).collect();
    text.push_str(&format!("zanzibar{number}"));
    match seq % 2 {
        0 => TranscriptEntry::Prompt(Prompt {
            id: MessageId::from_seq(seq),
            parts: vec![ContentPart::Text(text)],
        }),
        _ => TranscriptEntry::Reply(Reply {
            id: MessageId::from_seq(seq),
            thought: String::new(),
            text,
            calls: Vec::new(),
            end: ReplyEnd::Complete,
            usage: Some(TokenUsage::new(100, 10)),
            provider_state: None,
            fallback_model: None,
        }),
    }
}

async fn row(name: &str, promise: &str, mut work: impl AsyncFnMut()) {
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        work().await;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    println!("{name:<44} {:>9.2} ms {:>9.2} ms {promise:>12}", ms(times[0]), ms(times[ROUNDS / 2]));
}
