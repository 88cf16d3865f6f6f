//! Statements and values in the format of the server's client.

use std::{collections::HashMap, pin::pin, time::Duration};

use bytes::BytesMut;
use futures_util::TryStreamExt;
use tokio_postgres::{
    Error, Row, Statement,
    types::{IsNull, ToSql, Type, to_sql_checked},
};

use super::{DIALECT, connection::ServerConnection, errors::PostgresError};
use crate::sql::{RowCallback, SqlDialect, SqlError, SqlRow, SqlTransaction, SqlValue};

/// The slowest line over which a large value still arrives in time.
const SENT_BYTES_PER_SECOND: usize = 64 * 1024;

/// The statements of the transaction that a connection is in.
pub(super) struct PostgresTransaction<'a> {
    pub(super) connection: &'a mut ServerConnection,
    pub(super) prepared: &'a mut HashMap<&'static str, Statement>,
    pub(super) name: &'a str,
}

impl PostgresTransaction<'_> {
    fn prepare_statement(&mut self, sql: &'static str) -> Result<Statement, SqlError> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.connection.prepare(sql).map_err(|error| error.into_sql_error(self.name))?;
        self.prepared.insert(sql, statement.clone());
        Ok(statement)
    }

    /// The server's time begins when it has received all values.
    fn answer_limit(&self, values: &[SqlValue<'_>]) -> Duration {
        let sizes = values.iter().map(|value| match value {
            SqlValue::Null | SqlValue::Int(_) => 0,
            SqlValue::Text(text) => text.len(),
            SqlValue::Bytes(bytes) => bytes.len(),
        });
        let seconds = sizes.sum::<usize>() / SENT_BYTES_PER_SECOND;
        self.connection.answer_limit + Duration::from_secs(seconds as u64)
    }
}

impl SqlTransaction for PostgresTransaction<'_> {
    fn execute(&mut self, sql: &'static str, values: &[SqlValue<'_>]) -> Result<u64, SqlError> {
        let (statement, limit) = (self.prepare_statement(sql)?, self.answer_limit(values));
        let result = self.connection.run(limit, async |client| client.execute_raw(&statement, values).await);
        result.map_err(|error| error.into_sql_error(self.name))
    }

    fn query(
        &mut self,
        sql: &'static str,
        values: &[SqlValue<'_>],
        on_row: RowCallback<'_>,
    ) -> Result<(), SqlError> {
        let (statement, limit) = (self.prepare_statement(sql)?, self.answer_limit(values));
        let Self { connection, name, .. } = self;
        let rows = connection.run(limit, async |client| client.query_raw(&statement, values).await);
        let mut rows = pin!(rows.map_err(|error| error.into_sql_error(name))?);
        // The limit is for each row: a long session arrives for as long as rows arrive.
        let mut next_row = || {
            let next = connection.run(limit, async |_| rows.try_next().await);
            next.map_err(|error| error.into_sql_error(name))
        };
        while let Some(row) = next_row()? {
            on_row(&PostgresRow { row, name })?;
        }
        Ok(())
    }

    fn dialect(&self) -> &'static SqlDialect {
        &DIALECT
    }
}

struct PostgresRow<'a> {
    row: Row,
    name: &'a str,
}

impl PostgresRow<'_> {
    fn row_error(&self, error: Error) -> SqlError {
        PostgresError::from(error).into_store_error(self.name).into()
    }
}

impl SqlRow for PostgresRow<'_> {
    fn get_int(&self, index: usize) -> Result<Option<i64>, SqlError> {
        // Counters of a query are narrower than columns.
        match self.row.columns().get(index).map(|column| column.type_()) {
            Some(&Type::INT4) => self.row.try_get::<_, Option<i32>>(index).map(|int| int.map(i64::from)),
            _ => self.row.try_get(index),
        }
        .map_err(|error| self.row_error(error))
    }

    fn get_text(&self, index: usize) -> Result<Option<&str>, SqlError> {
        self.row.try_get(index).map_err(|error| self.row_error(error))
    }

    fn get_bytes(&self, index: usize) -> Result<Option<&[u8]>, SqlError> {
        self.row.try_get(index).map_err(|error| self.row_error(error))
    }
}

impl ToSql for SqlValue<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(int) => int.to_sql(kind, out),
            // The server's texts cannot contain zero bytes.
            Self::Text(text) if text.contains('\0') => text.replace('\0', "\u{fffd}").to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT8 | Type::TEXT | Type::BYTEA)
    }

    to_sql_checked!();
}
