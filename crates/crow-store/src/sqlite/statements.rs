//! Statements of SQLite: parameters, rows, and what its SQL says differently.

use std::path::Path;

use rusqlite::{
    Connection, ErrorCode, Row, ToSql,
    types::{ToSqlOutput, ValueRef},
};

use super::errors::{display_path, from_sqlite};
use crate::{
    StoreError,
    search::{quote_phrase, separate_cjk},
    sql::{RowCallback, SqlDialect, SqlError, SqlRow, SqlTransaction, SqlValue},
};

/// The names of placeholders.
const PLACEHOLDERS: [&str; 13] =
    ["$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12", "$13"];

pub(super) static DIALECT: SqlDialect = SqlDialect {
    index_sql: "INSERT INTO message_search (rowid, text) VALUES ($1, $2)",
    missing_sql: "SELECT id, id, data FROM messages
             WHERE id >= $1 AND role <> 'tool' AND NOT EXISTS (SELECT 1 FROM message_search s WHERE s.rowid = messages.id)
             ORDER BY id LIMIT $2",
    // Ranking a word that is in every message takes too long, so only the newest are ranked.
    search_sql: "SELECT m.seq, m.data, m.input_tokens, m.output_tokens, m.session_id, m.created
             FROM (SELECT s.rowid AS id, s.rank AS weight
                   FROM message_search s JOIN messages m ON m.id = s.rowid
                   WHERE s.message_search MATCH $1 AND ($2 IS NULL OR m.session_id = $2)
                   ORDER BY s.rowid DESC LIMIT 5000) found
             JOIN messages m ON m.id = found.id
             ORDER BY found.weight LIMIT $3 OFFSET $4",
    // The index only marks words as deleted; merging drops them.
    tidy_index_sql: Some("INSERT INTO message_search (message_search) VALUES ('optimize')"),
    index_text: separate_cjk,
    search_expression: |words| words.iter().map(|word| quote_phrase(word)).collect::<Vec<_>>().join(" "),
};

/// The statements of one transaction.
pub(super) struct SqliteTransaction<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
}

impl SqliteTransaction<'_> {
    fn to_sql_error(&self, error: &rusqlite::Error) -> SqlError {
        let is_constraint = error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation);
        let error = from_sqlite(self.path, error);
        if is_constraint { SqlError::Constraint(error) } else { SqlError::Other(error) }
    }

    fn prepare_statement(
        &self,
        sql: &str,
        values: &[SqlValue<'_>],
    ) -> rusqlite::Result<rusqlite::CachedStatement<'_>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        for (value, name) in values.iter().zip(PLACEHOLDERS) {
            if let Some(index) = statement.parameter_index(name)? {
                statement.raw_bind_parameter(index, value)?;
            }
        }
        Ok(statement)
    }
}

impl SqlTransaction for SqliteTransaction<'_> {
    fn execute(&mut self, sql: &'static str, values: &[SqlValue<'_>]) -> Result<u64, SqlError> {
        let result = self.prepare_statement(sql, values).and_then(|mut statement| statement.raw_execute());
        result.map(|n_rows| n_rows as u64).map_err(|error| self.to_sql_error(&error))
    }

    fn query(
        &mut self,
        sql: &'static str,
        values: &[SqlValue<'_>],
        on_row: RowCallback<'_>,
    ) -> Result<(), SqlError> {
        let mut statement = self.prepare_statement(sql, values).map_err(|error| self.to_sql_error(&error))?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|error| self.to_sql_error(&error))? {
            on_row(&SqliteRow { row, path: self.path })?;
        }
        Ok(())
    }

    fn dialect(&self) -> &'static SqlDialect {
        &DIALECT
    }
}

struct SqliteRow<'a> {
    row: &'a Row<'a>,
    path: &'a Path,
}

impl SqliteRow<'_> {
    fn read_value<'r, T>(
        &'r self,
        index: usize,
        read: impl FnOnce(ValueRef<'r>) -> rusqlite::types::FromSqlResult<T>,
    ) -> Result<T, SqlError> {
        let to_error = |reason: String| StoreError::Failed { database: display_path(self.path), reason };
        let value = self.row.get_ref(index).map_err(|error| to_error(error.to_string()))?;
        Ok(read(value).map_err(|error| to_error(error.to_string()))?)
    }
}

impl SqlRow for SqliteRow<'_> {
    fn get_int(&self, index: usize) -> Result<Option<i64>, SqlError> {
        self.read_value(index, |value| value.as_i64_or_null())
    }

    fn get_text(&self, index: usize) -> Result<Option<&str>, SqlError> {
        self.read_value(index, |value| value.as_str_or_null())
    }

    fn get_bytes(&self, index: usize) -> Result<Option<&[u8]>, SqlError> {
        self.read_value(index, |value| value.as_blob_or_null())
    }
}

impl ToSql for SqlValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Self::Null => ValueRef::Null,
            Self::Int(int) => ValueRef::Integer(int),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
