//! PostgreSQL: a server that several machines share. Only this module, with its directory, uses its client.

mod address;
mod connection;
mod errors;
mod lease_holder;
mod lost_connections;
mod statements;

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Statement;

pub use self::address::PostgresAddress;
use self::{
    connection::ServerConnection,
    errors::PostgresError,
    lost_connections::{LostConnections, ServerProcess},
    statements::PostgresTransaction,
};
use crate::{
    StoreError,
    database::index_missing_messages,
    search::{quote_phrase, separate_cjk},
    sql::{DatabaseBackend, LeaseKey, SqlDialect, SyncCallback, TransactionBody, TransactionKind},
};

/// Each migrates the tables from the previous format to its own index in this list.
const MIGRATIONS: [&str; 7] = [
    include_str!("../migrations/postgres/0001_sessions.sql"),
    include_str!("../migrations/postgres/0002_tasks.sql"),
    include_str!("../migrations/postgres/0003_speckit.sql"),
    include_str!("../migrations/postgres/0004_asides.sql"),
    include_str!("../migrations/postgres/0005_templates.sql"),
    include_str!("../migrations/postgres/0006_task_places.sql"),
    include_str!("../migrations/postgres/0007_search_index.sql"),
];
/// The migration to this format removes messages from the search index, which have to be indexed again.
const SEARCH_INDEX_FORMAT: i64 = 7;
/// A server that takes longer is unavailable for a waiting user.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A migration may read all messages; most statements are ended by the server after 60 s.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(600);
/// A connection without an answer for this long is closed, so that no caller waits for a machine that is gone.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// A connection idle for longer is checked before it is used.
const IDLE_CHECK_AFTER: Duration = Duration::from_secs(2);
/// At the start of each connection: our schema next to those of others; the longest wait is for another process's
/// migration. The server notices within a minute that this machine is gone, and releases the leases.
const CONNECTION_SETUP: &str = "SET search_path = crow; SET statement_timeout = '60s'; SET lock_timeout = '10s'; SET client_min_messages = warning;
    SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3";
/// The lock that one migration at a time holds; `CROW` in ASCII.
const MIGRATION_LOCK: &str = "SELECT pg_advisory_xact_lock(1129467735)";

static DIALECT: SqlDialect = SqlDialect {
    index_sql: "INSERT INTO message_search (message_id, words)
            VALUES ($1, to_tsvector('simple', regexp_replace(normalize($2, NFD), '[\\u0300-\\u036f]', '', 'g')))",
    missing_sql: "SELECT id, id, data FROM messages
             WHERE id >= $1 AND role <> 'tool'
               AND NOT EXISTS (SELECT 1 FROM message_search s WHERE s.message_id = messages.id)
             ORDER BY id LIMIT $2",
    search_sql: "SELECT m.seq, m.data, m.input_tokens, m.output_tokens, m.session_id, m.created
             FROM websearch_to_tsquery('simple', regexp_replace(normalize($1, NFD), '[\\u0300-\\u036f]', '', 'g'))
                 AS wanted
             CROSS JOIN LATERAL (
                 SELECT s.message_id, s.words FROM message_search s
                     JOIN messages n ON n.id = s.message_id
                 WHERE s.words @@ wanted AND (CAST($2 AS TEXT) IS NULL OR n.session_id = $2)
                 ORDER BY s.message_id DESC LIMIT 5000) found
             JOIN messages m ON m.id = found.message_id
             ORDER BY ts_rank(found.words, wanted, 1) DESC, m.id DESC LIMIT $3 OFFSET $4",
    tidy_index_sql: None,
    index_text: |text| Cow::Owned(separate_cjk(&words_only(text)).into_owned()),
    search_expression: |words| {
        let quoted = words.iter().map(|word| quote_phrase(&words_only(word)));
        quoted.collect::<Vec<_>>().join(" ")
    },
};

/// Keeps only letters and digits, so that a path or an address is found by its words, as in SQLite.
fn words_only(text: &str) -> String {
    // A combining mark belongs to the letter before it.
    let is_word = |c: &char| c.is_alphanumeric() || matches!(c, '\u{300}'..='\u{36f}');
    text.chars().map(|c| if is_word(&c) { c } else { ' ' }).collect()
}

/// A connection to a server.
pub(crate) struct PostgresBackend {
    connection: ServerConnection,
    prepared: HashMap<&'static str, Statement>,
    name: String,
    last_used: Instant,
    /// The server's process for this connection, if it is known.
    process: Option<ServerProcess>,
    lost: Arc<LostConnections>,
}

impl PostgresAddress {
    /// Connects, and creates the tables if they are missing.
    pub(crate) fn connect(&self) -> Result<PostgresBackend, StoreError> {
        self.connect_within(CONNECT_TIMEOUT)
    }

    fn connect_within(&self, limit: Duration) -> Result<PostgresBackend, StoreError> {
        let name = self.to_string();
        let mut config = self.to_config()?;
        config
            // A name may have a second address.
            .connect_timeout(limit / 2)
            .keepalives_idle(RESPONSE_TIMEOUT)
            .tcp_user_timeout(RESPONSE_TIMEOUT)
            .application_name(lease_holder::own_process_name());
        let tls = address::wants_tls(&config).then(|| tls_config(&name)).transpose()?;
        // The last of several hosts still has its time.
        let n_hosts = config.get_hosts().len().max(config.get_hostaddrs().len()).max(1);
        let limit_of_all = limit * u32::try_from(n_hosts).unwrap_or(1);
        let map_error = |error: PostgresError| error.into_store_error(&name);
        let mut connection = ServerConnection::open(&config, tls, limit_of_all).map_err(map_error)?;
        let set_up = connection.run(limit, async |client| client.batch_execute(CONNECTION_SETUP).await);
        set_up.map_err(map_error)?;
        let format = migrate_schema(&mut connection, &name)?;
        let known_format = MIGRATIONS.len() as i64;
        if format > known_format {
            return Err(StoreError::NewerFormat { database: name, format, known_format });
        }
        self.lost.end_processes(&mut connection);
        let (process, lost) = (ServerProcess::of_connection(&mut connection), self.lost.clone());
        Ok(PostgresBackend {
            connection,
            prepared: HashMap::new(),
            name,
            last_used: Instant::now(),
            process,
            lost,
        })
    }
}

/// Migrates the tables to the newest format, and returns the format. An error ends the connection, and so the
/// transaction.
fn migrate_schema(connection: &mut ServerConnection, name: &str) -> Result<i64, StoreError> {
    let map_error = |error: PostgresError| error.into_store_error(name);
    connection.run_batch("BEGIN").map_err(map_error)?;
    let format = migrate_tables(connection).map_err(map_error)?;
    if (1..SEARCH_INDEX_FORMAT).contains(&format) {
        let answer_limit = std::mem::replace(&mut connection.answer_limit, MIGRATION_TIMEOUT);
        index_missing_messages(&mut PostgresTransaction { connection, prepared: &mut HashMap::new(), name })?;
        connection.answer_limit = answer_limit;
    }
    connection.run_batch("COMMIT").map_err(map_error)?;
    Ok(format.max(MIGRATIONS.len() as i64))
}

/// Runs the migrations that are missing, and returns the format before.
fn migrate_tables(connection: &mut ServerConnection) -> Result<i64, PostgresError> {
    connection.run_batch(MIGRATION_LOCK)?;
    // Two processes that create a schema at once both find that there is none: only one may.
    connection.run_batch(
        "CREATE SCHEMA IF NOT EXISTS crow; CREATE TABLE IF NOT EXISTS format (version BIGINT NOT NULL)",
    )?;
    let format = connection.query_opt("SELECT max(version) FROM format", &[])?;
    let format: i64 = format.and_then(|row| row.get::<_, Option<i64>>(0)).unwrap_or_default();
    for (index, script) in MIGRATIONS.iter().enumerate().skip(usize::try_from(format).unwrap_or(usize::MAX)) {
        connection.run(MIGRATION_TIMEOUT, async |client| client.batch_execute(script).await)?;
        let version = index as i64 + 1;
        connection.query_opt("INSERT INTO format (version) VALUES ($1)", &[&version])?;
    }
    Ok(format)
}

/// Trusts the system's certificates, or the well-known ones if it has none.
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
        reason: format!("could not set up encryption: {error}"),
    })?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

impl DatabaseBackend for PostgresBackend {
    fn run_transaction(
        &mut self,
        kind: TransactionKind,
        work: TransactionBody<'_>,
    ) -> Result<(), StoreError> {
        let Self { connection, prepared, name, .. } = self;
        let begin = match kind {
            TransactionKind::Read => "START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            TransactionKind::Write => "BEGIN",
        };
        connection.run_batch(begin).map_err(|error| error.into_store_error(name))?;
        if let Err(error) = work(&mut PostgresTransaction { connection, prepared, name }) {
            // The end of a lost connection rolls it back.
            if let Err(error) = connection.run_batch("ROLLBACK") {
                tracing::debug!(%error, "could not roll back");
            }
            return Err(error.into());
        }
        connection.run_batch("COMMIT").map_err(|error| error.into_store_error(name))
    }

    fn acquire_lease(&mut self, key: &LeaseKey) -> Result<(), StoreError> {
        let holder = lease_holder::acquire_lock(&mut self.connection, key.lock_id());
        match holder.map_err(|error| error.into_store_error(&self.name))? {
            None => Ok(()),
            Some(holder) => Err(key.busy_error(holder)),
        }
    }

    fn release_lease(&mut self, key: &LeaseKey) {
        // A broken connection has released it already.
        if let Err(error) = self.connection.query_opt("SELECT pg_advisory_unlock($1)", &[&key.lock_id()]) {
            tracing::debug!(%error, "could not release a lease");
        }
    }

    fn sync(&mut self, on_synced: SyncCallback) {
        // The server flushes each commit before it answers.
        if let Some(on_synced) = on_synced {
            on_synced(Ok(()));
        }
    }

    fn purge_deleted(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn reclaim_space(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn check_integrity(&mut self) -> Result<Vec<String>, StoreError> {
        let answered = self.connection.run_batch("SELECT 1");
        answered.map(|()| Vec::new()).map_err(|error| error.into_store_error(&self.name))
    }

    fn is_lost(&mut self) -> bool {
        let idle = self.last_used.elapsed();
        self.last_used = Instant::now();
        self.connection.is_lost()
            || (idle > IDLE_CHECK_AFTER && self.connection.check(CONNECT_TIMEOUT).is_err())
    }

    fn abandon(self: Box<Self>) {
        self.lost.remember(self.process);
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        let Self { mut connection, name, .. } = *self;
        // The server notices the end of a connection with a delay.
        let unlock = "SELECT pg_advisory_unlock_all()";
        if let Err(error) = connection.run(CONNECT_TIMEOUT, async |client| client.batch_execute(unlock).await)
        {
            tracing::debug!(%error, "could not release leases");
        }
        connection.close(CONNECT_TIMEOUT).map_err(|error| error.into_store_error(&name))
    }
}
