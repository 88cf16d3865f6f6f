//! A connection to a server: each wait for an answer has a limit, and dropping it waits for nothing.

use std::{
    future::Future,
    pin::{Pin, pin},
    time::Duration,
};

use rustls::ClientConfig;
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};
use tokio_postgres::{Client, Config, Error, NoTls, Statement, types::ToSql};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::errors::PostgresError;

/// The server ends a statement itself after 60 s, so without an answer for this long there is none to come.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(75);

/// The part of a connection that reads and writes its socket.
type SocketDriver = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

pub(super) struct ServerConnection {
    client: Client,
    /// `None` after its end.
    driver: Option<SocketDriver>,
    runtime: ConnectionRuntime,
    /// The longest wait for an answer.
    pub(super) answer_limit: Duration,
    is_silent: bool,
}

/// A runtime that ends without waiting for its threads: one of them may be resolving a name.
struct ConnectionRuntime(Option<Runtime>);

impl ConnectionRuntime {
    fn new() -> Result<Self, PostgresError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.map(|runtime| Self(Some(runtime))).map_err(PostgresError::Runtime)
    }

    /// Runs a future for as long as a limit.
    fn wait_for<T, E: Into<PostgresError>>(
        &self,
        limit: Duration,
        future: impl Future<Output = Result<T, E>>,
    ) -> Result<T, PostgresError> {
        let no_answer = || PostgresError::NoAnswer(limit);
        let Some(runtime) = &self.0 else { return Err(no_answer()) };
        let waited = runtime.block_on(async { timeout(limit, future).await });
        waited.map_err(|_| no_answer())?.map_err(Into::into)
    }
}

impl Drop for ConnectionRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl ServerConnection {
    /// Connects, with encryption if it is given. The limit is for all of it, from the name to the last answer.
    pub(super) fn open(
        config: &Config,
        tls: Option<ClientConfig>,
        limit: Duration,
    ) -> Result<Self, PostgresError> {
        let runtime = ConnectionRuntime::new()?;
        let (client, driver) = runtime.wait_for(limit, async {
            let (client, driver): (_, SocketDriver) = match tls {
                Some(tls) => {
                    let (client, driver) = config.connect(MakeRustlsConnect::new(tls)).await?;
                    (client, Box::pin(driver))
                }
                None => {
                    let (client, driver) = config.connect(NoTls).await?;
                    (client, Box::pin(driver))
                }
            };
            Ok::<_, Error>((client, driver))
        })?;
        Ok(Self { client, driver: Some(driver), runtime, answer_limit: ANSWER_TIMEOUT, is_silent: false })
    }

    /// Runs one operation. A connection without an answer in time is lost: what comes later could belong to anything.
    pub(super) fn run<T>(
        &mut self,
        limit: Duration,
        operation: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, PostgresError> {
        if self.is_silent {
            return Err(PostgresError::NoAnswer(limit));
        }
        let Self { client, driver, runtime, .. } = self;
        let result = runtime.wait_for(limit, run_with_driver(driver, operation(client)));
        self.is_silent = matches!(result, Err(PostgresError::NoAnswer(_)));
        result
    }

    /// Runs statements without parameters.
    pub(super) fn run_batch(&mut self, sql: &str) -> Result<(), PostgresError> {
        self.run(self.answer_limit, async |client| client.batch_execute(sql).await)
    }

    /// Queries at most one row.
    pub(super) fn query_opt(
        &mut self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<tokio_postgres::Row>, PostgresError> {
        self.run(self.answer_limit, async |client| client.query_opt(sql, values).await)
    }

    /// Prepares a statement.
    pub(super) fn prepare(&mut self, sql: &str) -> Result<Statement, PostgresError> {
        self.run(self.answer_limit, async |client| client.prepare(sql).await)
    }

    /// Checks that the server answers.
    pub(super) fn check(&mut self, limit: Duration) -> Result<(), PostgresError> {
        self.run(limit, async |client| client.check_connection().await)
    }

    /// Whether no more answers will come.
    pub(super) fn is_lost(&self) -> bool {
        self.is_silent || self.client.is_closed()
    }

    /// Closes it, and waits for its end.
    pub(super) fn close(self, limit: Duration) -> Result<(), PostgresError> {
        let Self { client, driver, runtime, .. } = self;
        drop(client);
        driver.map_or(Ok(()), |driver| runtime.wait_for(limit, driver))
    }
}

/// Runs an operation, and the connection's driver meanwhile.
async fn run_with_driver<T>(
    driver: &mut Option<SocketDriver>,
    operation: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let mut operation = pin!(operation);
    let Some(running) = driver else { return operation.await };
    let ended = tokio::select! {
        biased;
        ended = running => ended,
        result = &mut operation => return result,
    };
    // The operation learns of the end only then.
    *driver = None;
    match (operation.await, ended) {
        // The reason is with the driver. An answer may have come before it.
        (Err(error), Err(reason)) if error.is_closed() => Err(reason),
        (result, _) => result,
    }
}
