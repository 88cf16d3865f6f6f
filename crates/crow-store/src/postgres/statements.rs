//! Statements and values in the format of the server's client.

use std::collections::HashMap;

use bytes::BytesMut;
use postgres::{
    Row, Statement, Transaction,
    error::{ErrorPosition, SqlState},
    fallible_iterator::FallibleIterator,
    types::{IsNull, ToSql, Type, to_sql_checked},
};

use super::DIALECT;
use crate::{
    StoreError,
    sql::{RowCallback, SqlDialect, SqlError, SqlRow, SqlTransaction, SqlValue},
};

pub(super) struct PostgresTransaction<'a> {
    pub(super) transaction: Transaction<'a>,
    pub(super) prepared: &'a mut HashMap<&'static str, Statement>,
    pub(super) name: &'a str,
}

impl PostgresTransaction<'_> {
    fn prepare_statement(&mut self, sql: &'static str) -> Result<Statement, SqlError> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.transaction.prepare(sql).map_err(|error| to_sql_error(self.name, &error))?;
        self.prepared.insert(sql, statement.clone());
        Ok(statement)
    }
}

impl SqlTransaction for PostgresTransaction<'_> {
    fn execute(&mut self, sql: &'static str, values: &[SqlValue<'_>]) -> Result<u64, SqlError> {
        let statement = self.prepare_statement(sql)?;
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        let result = self.transaction.execute(&statement, &values);
        result.map_err(|error| to_sql_error(self.name, &error))
    }

    fn query(
        &mut self,
        sql: &'static str,
        values: &[SqlValue<'_>],
        on_row: RowCallback<'_>,
    ) -> Result<(), SqlError> {
        let statement = self.prepare_statement(sql)?;
        let name = self.name;
        let mut rows =
            self.transaction.query_raw(&statement, values).map_err(|error| to_sql_error(name, &error))?;
        while let Some(row) = rows.next().map_err(|error| to_sql_error(name, &error))? {
            on_row(&PostgresRow { row, name })?;
        }
        Ok(())
    }

    fn dialect(&self) -> &'static SqlDialect {
        &DIALECT
    }
}

fn to_sql_error(name: &str, error: &postgres::Error) -> SqlError {
    let is_constraint = error.code().is_some_and(|code| code.code().starts_with("23"));
    let error = from_postgres(name, error);
    if is_constraint { SqlError::Constraint(error) } else { SqlError::Other(error) }
}

struct PostgresRow<'a> {
    row: Row,
    name: &'a str,
}

impl PostgresRow<'_> {
    fn row_error(&self, error: &postgres::Error) -> SqlError {
        from_postgres(self.name, error).into()
    }
}

impl SqlRow for PostgresRow<'_> {
    fn get_int(&self, index: usize) -> Result<Option<i64>, SqlError> {
        // Counters of a query are narrower than columns.
        match self.row.columns().get(index).map(|column| column.type_()) {
            Some(&Type::INT4) => self.row.try_get::<_, Option<i32>>(index).map(|int| int.map(i64::from)),
            _ => self.row.try_get(index),
        }
        .map_err(|error| self.row_error(&error))
    }

    fn get_text(&self, index: usize) -> Result<Option<&str>, SqlError> {
        self.row.try_get(index).map_err(|error| self.row_error(&error))
    }

    fn get_bytes(&self, index: usize) -> Result<Option<&[u8]>, SqlError> {
        self.row.try_get(index).map_err(|error| self.row_error(&error))
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

/// Classifies an error of the server or the connection, without any stored content.
pub(super) fn from_postgres(name: &str, error: &postgres::Error) -> StoreError {
    let database = name.to_owned();
    let Some(db_error) = error.as_db_error() else {
        let reason = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
        return StoreError::Unreachable { database, reason };
    };
    let mut reason = db_error.message().to_owned();
    if let Some(ErrorPosition::Original(position)) = db_error.position() {
        reason.push_str(&format!(" at {position}"));
    }
    let code = db_error.code();
    if *code == SqlState::DISK_FULL {
        StoreError::Full { database }
    } else if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        StoreError::ReadOnly { database }
    } else if [SqlState::LOCK_NOT_AVAILABLE, SqlState::T_R_DEADLOCK_DETECTED].contains(code) {
        StoreError::Locked { database }
    } else if code.code().starts_with("28") || *code == SqlState::UNDEFINED_DATABASE {
        StoreError::AccessDenied { database, reason }
    } else if code.code().starts_with("08") || code.code().starts_with("57P") {
        StoreError::Unreachable { database, reason }
    } else if *code == SqlState::DATA_CORRUPTED || *code == SqlState::INDEX_CORRUPTED {
        StoreError::Damaged { database }
    } else {
        StoreError::Failed { database, reason }
    }
}
