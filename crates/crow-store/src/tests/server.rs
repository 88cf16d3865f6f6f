//! A database for one test on the server that the environment specifies.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use tokio::runtime::Runtime;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use crate::PostgresAddress;

static N_MADE: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Database {
    uri: String,
    name: String,
}

impl Database {
    /// Creates one, if there is a server.
    pub(crate) fn new() -> Option<Self> {
        #[expect(clippy::disallowed_methods, reason = "says where tests find a server")]
        let uri = std::env::var("CROW_TEST_POSTGRES");
        let uri = uri.ok()?;
        let name = format!("crow_{}_{}", std::process::id(), N_MADE.fetch_add(1, Ordering::Relaxed));
        let database = Self { uri, name };
        database.run(None, &format!("CREATE DATABASE {}", database.name));
        Some(database)
    }

    pub(crate) fn uri(&self) -> String {
        // The server is one of this machine: postgres:///NAME?host=DIRECTORY&user=USER.
        let uri = self.uri.replacen(":///postgres", &format!(":///{}", self.name), 1);
        assert_ne!(uri, self.uri, "CROW_TEST_POSTGRES is not postgres:///postgres?…");
        uri
    }

    pub(super) fn address(&self) -> PostgresAddress {
        PostgresAddress::parse(&self.uri()).unwrap()
    }

    pub(super) fn direct(&self, sql: &str) {
        self.run(Some(&self.name), &format!("SET search_path = crow; {sql}"));
    }

    pub(super) fn count(&self, sql: &str) -> i64 {
        let messages = self.run(Some(&self.name), &format!("SET search_path = crow; {sql}"));
        let mut counts = messages.iter().filter_map(|message| {
            let SimpleQueryMessage::Row(row) = message else { return None };
            row.get(0)?.parse().ok()
        });
        counts.next().unwrap()
    }

    /// Acquires an advisory lock under the name of a program, for as long as the connection exists.
    pub(super) fn lock(&self, program: &str, lock_id: i64) -> LockingConnection {
        let mut config: Config = self.uri().parse().unwrap();
        config.application_name(program);
        let lock = async {
            let (client, driver) = config.connect(NoTls).await.unwrap();
            tokio::spawn(driver);
            client.batch_execute(&format!("SELECT pg_advisory_lock({lock_id})")).await.unwrap();
            client
        };
        let connect = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let client = runtime.block_on(lock);
            LockingConnection { _client: client, runtime: Some(runtime) }
        };
        thread::scope(|scope| scope.spawn(connect).join().unwrap())
    }

    /// It blocks, which no runtime permits on its threads.
    fn run(&self, name: Option<&str>, sql: &str) -> Vec<SimpleQueryMessage> {
        let mut config: Config = self.uri.parse().unwrap();
        if let Some(name) = name {
            config.dbname(name);
        }
        let work = async {
            let (client, driver) = config.connect(NoTls).await.unwrap();
            tokio::spawn(driver);
            client.simple_query(sql).await.unwrap()
        };
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(work)
        };
        thread::scope(|scope| scope.spawn(run).join().unwrap())
    }
}

pub(super) struct LockingConnection {
    _client: Client,
    runtime: Option<Runtime>,
}

impl Drop for LockingConnection {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.run(None, &format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}
