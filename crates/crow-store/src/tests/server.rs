//! A database for one test on the server that the environment specifies.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use postgres::{Client, Config, NoTls};

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
        database.on(None, |client| client.batch_execute(&format!("CREATE DATABASE {}", database.name)));
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
        self.on(Some(&self.name), |client| client.batch_execute(&format!("SET search_path = crow; {sql}")));
    }

    pub(super) fn count(&self, sql: &str) -> i64 {
        self.on(Some(&self.name), |client| {
            client.batch_execute("SET search_path = crow")?;
            client.query_one(sql, &[]).map(|row| row.get(0))
        })
    }

    /// The client blocks, which no runtime permits on its threads.
    fn on<T: Send>(
        &self,
        name: Option<&str>,
        work: impl FnOnce(&mut Client) -> Result<T, postgres::Error> + Send,
    ) -> T {
        let mut config: Config = self.uri.parse().unwrap();
        if let Some(name) = name {
            config.dbname(name);
        }
        thread::scope(|scope| {
            scope.spawn(|| work(&mut config.connect(NoTls).unwrap()).unwrap()).join().unwrap()
        })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.on(None, |client| client.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", self.name)));
    }
}
