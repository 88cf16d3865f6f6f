//! PostgreSQL: a server that several machines share. Only this module, with its folder, knows its client.

mod address;
mod statements;

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use postgres::{Client, IsolationLevel, NoTls, Statement};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

pub use self::address::PostgresAddress;
use self::statements::{PostgresTransaction, from_postgres};
use crate::{
    LeaseHolder, StoreError,
    search::quote_word,
    sql::{DatabaseBackend, LeaseKey, SqlDialect, SyncCallback, TransactionBody, TransactionKind},
};

/// Each brings the tables from the format before it to its own place in this list.
const MIGRATIONS: [&str; 5] = [
    include_str!("../migrations/postgres/0001_sessions.sql"),
    include_str!("../migrations/postgres/0002_tasks.sql"),
    include_str!("../migrations/postgres/0003_speckit.sql"),
    include_str!("../migrations/postgres/0004_asides.sql"),
    include_str!("../migrations/postgres/0005_templates.sql"),
];
/// A server that takes longer is not there for a person who waits.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// A connection without an answer for that long is given up, so that nobody waits for a machine that is gone.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// A connection that was silent for longer is asked whether it still stands before it is used.
const TRUSTED: Duration = Duration::from_secs(2);
/// Ours beside the tables of others, each time the connection begins; the longest wait is for another's migration.
const BEGIN: &str = "CREATE SCHEMA IF NOT EXISTS crow; SET search_path = crow;
     SET statement_timeout = '60s'; SET lock_timeout = '10s'; SET client_min_messages = warning";
/// The lock that one migration at a time holds; `CROW` in letters.
const MIGRATING: &str = "SELECT pg_advisory_xact_lock(1129467735)";

static DIALECT: SqlDialect = SqlDialect {
    index: "INSERT INTO message_search (message_id, words)
            VALUES ($1, to_tsvector('simple', regexp_replace(normalize($2, NFD), '[\\u0300-\\u036f]', '', 'g')))",
    search: "SELECT m.seq, m.data, m.input_tokens, m.output_tokens, m.session_id, m.created
             FROM websearch_to_tsquery('simple', regexp_replace(normalize($1, NFD), '[\\u0300-\\u036f]', '', 'g'))
                 AS wanted
             CROSS JOIN LATERAL (
                 SELECT s.message_id, s.words FROM message_search s
                     JOIN messages n ON n.id = s.message_id
                 WHERE s.words @@ wanted AND (CAST($2 AS TEXT) IS NULL OR n.session_id = $2)
                 ORDER BY s.message_id DESC LIMIT 5000) found
             JOIN messages m ON m.id = found.message_id
             ORDER BY ts_rank(found.words, wanted, 1) DESC, m.id DESC LIMIT $3 OFFSET $4",
    tidy_index: None,
    indexed: |text| Cow::Owned(words_only(text)),
    expression: |words| {
        let quoted = words.iter().map(|word| quote_word(words_only(word).trim()));
        quoted.collect::<Vec<_>>().join(" ")
    },
};

/// Leaves letters and digits, so that a path or an address is found by its words, as it is in the other database.
fn words_only(text: &str) -> String {
    // A mark belongs to the letter before it.
    let is_word = |c: &char| c.is_alphanumeric() || matches!(c, '\u{300}'..='\u{36f}');
    text.chars().map(|c| if is_word(&c) { c } else { ' ' }).collect()
}

/// A connection to a server.
pub(crate) struct PostgresBackend {
    client: Client,
    prepared: HashMap<&'static str, Statement>,
    name: String,
    used: Instant,
}

impl PostgresAddress {
    /// Connects, and makes the tables where they are missing.
    pub(crate) fn connect(&self) -> Result<PostgresBackend, StoreError> {
        let name = self.to_string();
        let mut config = self.to_config()?;
        config
            .connect_timeout(CONNECT_MAX)
            .keepalives_idle(SILENCE_MAX)
            .tcp_user_timeout(SILENCE_MAX)
            .application_name(&format!("crow process {}", std::process::id()));
        let broken = |error: &postgres::Error| from_postgres(&name, error);
        let connected = match address::wants_tls(&config) {
            true => config.connect(MakeRustlsConnect::new(tls_config(&name)?)),
            false => config.connect(NoTls),
        };
        let mut client = connected.map_err(|error| broken(&error))?;
        client.batch_execute(BEGIN).map_err(|error| broken(&error))?;
        let found = migrate_schema(&mut client).map_err(|error| broken(&error))?;
        let known = MIGRATIONS.len() as i64;
        if found > known {
            return Err(StoreError::Newer { database: name, found, known });
        }
        Ok(PostgresBackend { client, prepared: HashMap::new(), name, used: Instant::now() })
    }
}

/// Brings the tables to the newest format, and tells which they have.
fn migrate_schema(client: &mut Client) -> Result<i64, postgres::Error> {
    let mut step = client.transaction()?;
    step.batch_execute(MIGRATING)?;
    step.batch_execute("CREATE TABLE IF NOT EXISTS format (version BIGINT NOT NULL)")?;
    let found = step.query_opt("SELECT max(version) FROM format", &[])?;
    let found: i64 = found.and_then(|row| row.get::<_, Option<i64>>(0)).unwrap_or_default();
    for (place, script) in MIGRATIONS.iter().enumerate().skip(usize::try_from(found).unwrap_or(usize::MAX)) {
        step.batch_execute(script)?;
        step.execute("INSERT INTO format (version) VALUES ($1)", &[&(place as i64 + 1)])?;
    }
    step.commit()?;
    Ok(found.max(MIGRATIONS.len() as i64))
}

/// Trusts the certificates that the system trusts, or well-known ones where it has none.
fn tls_config(name: &str) -> Result<ClientConfig, StoreError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| StoreError::Unreachable {
        database: name.to_owned(),
        why: format!("no encryption could be set up: {error}"),
    })?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

impl PostgresBackend {
    fn to_store_error(&self, error: &postgres::Error) -> StoreError {
        from_postgres(&self.name, error)
    }

    /// Says which process has a right, as far as the server knows.
    fn find_holder(&mut self, key: i64) -> LeaseHolder {
        let who = "SELECT a.application_name, a.client_addr::text,
                 a.application_name = current_setting('application_name')
                 AND a.client_addr IS NOT DISTINCT FROM inet_client_addr()
             FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
             WHERE l.locktype = 'advisory' AND l.granted AND l.database = (
                 SELECT oid FROM pg_database WHERE datname = current_database())
               AND ((l.classid::bigint << 32) | l.objid::bigint) = $1";
        let found = self.client.query_opt(who, &[&key]).ok().flatten();
        let named = found.and_then(|row| {
            let (program, from): (Option<String>, Option<String>) =
                (row.try_get(0).ok()?, row.try_get(1).ok()?);
            if row.try_get(2).ok()? {
                return Some(LeaseHolder::Ourselves);
            }
            let from = from.map(|from| format!(" at {from}")).unwrap_or_default();
            Some(LeaseHolder::Other(format!("{}{from}", program?)))
        });
        named.unwrap_or_else(|| LeaseHolder::Other("which one is not known".into()))
    }
}

impl DatabaseBackend for PostgresBackend {
    fn run_transaction(
        &mut self,
        kind: TransactionKind,
        work: TransactionBody<'_>,
    ) -> Result<(), StoreError> {
        let Self { client, prepared, name, .. } = self;
        let begin = match kind {
            TransactionKind::Reads => client
                .build_transaction()
                .read_only(true)
                .isolation_level(IsolationLevel::RepeatableRead)
                .start(),
            TransactionKind::Writes => client.transaction(),
        };
        let transaction = begin.map_err(|error| from_postgres(name, &error))?;
        let mut statements = PostgresTransaction { transaction, prepared, name };
        work(&mut statements)?;
        let PostgresTransaction { transaction, name, .. } = statements;
        transaction.commit().map_err(|error| from_postgres(name, &error))
    }

    fn acquire_lease(&mut self, right: &LeaseKey) -> Result<(), StoreError> {
        let key = right.lock_id();
        let took = self.client.query_one("SELECT pg_try_advisory_lock($1)", &[&key]);
        match took.map(|row| row.get(0)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(right.busy_error(self.find_holder(key))),
            Err(error) => Err(self.to_store_error(&error)),
        }
    }

    fn release_lease(&mut self, right: &LeaseKey) {
        // A connection that broke has given it back by itself.
        if let Err(error) = self.client.execute("SELECT pg_advisory_unlock($1)", &[&right.lock_id()]) {
            tracing::debug!(%error, "could not give a right back");
        }
    }

    fn sync(&mut self, done: SyncCallback) {
        // The server flushes each commit before it answers.
        if let Some(done) = done {
            done(Ok(()));
        }
    }

    fn purge_deleted(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn reclaim_space(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn check_integrity(&mut self) -> Result<Vec<String>, StoreError> {
        self.client.simple_query("SELECT 1").map(|_| Vec::new()).map_err(|error| self.to_store_error(&error))
    }

    fn is_lost(&mut self) -> bool {
        let idle = self.used.elapsed();
        self.used = Instant::now();
        self.client.is_closed() || (idle > TRUSTED && self.client.is_valid(CONNECT_MAX).is_err())
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        let Self { mut client, name, .. } = *self;
        // The server takes a moment to see that a connection is gone.
        if let Err(error) = client.batch_execute("SELECT pg_advisory_unlock_all()") {
            tracing::debug!(%error, "could not give rights back");
        }
        client.close().map_err(|error| from_postgres(&name, &error))
    }
}
