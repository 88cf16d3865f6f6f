//! Tables with uncertain columns and values of any type.

use std::collections::HashSet;

use rusqlite::{Connection, Row, types::ValueRef};

/// The columns that a table has; none if there is no such table.
#[derive(Debug)]
pub(super) struct TableColumns {
    names: HashSet<String>,
}

impl TableColumns {
    pub(super) fn for_table(connection: &Connection, table: &str) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let names = statement.query_map([table], |row| Ok(column_text(row, 0)))?;
        Ok(Self { names: names.collect::<Result<_, _>>()? })
    }

    pub(super) fn contains_all(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.names.contains(*name))
    }

    /// A column in a query, or its default if it is missing.
    pub(super) fn column_or(&self, name: &'static str, default: &'static str) -> &'static str {
        if self.names.contains(name) { name } else { default }
    }
}

/// An expression for a time in milliseconds since 1970. The first layout stored the machine's local time.
pub(super) fn millis_sql(column: &str) -> String {
    format!("CAST(round(unixepoch({column}, 'utc', 'subsec') * 1000) AS INTEGER)")
}

/// Reads a column as text, whatever its type.
pub(super) fn column_text(row: &Row<'_>, index: usize) -> String {
    match row.get_ref(index) {
        Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Ok(ValueRef::Integer(number)) => number.to_string(),
        Ok(ValueRef::Real(number)) => number.to_string(),
        Ok(ValueRef::Null) | Err(_) => String::new(),
    }
}

/// Reads a column as an integer, if it is one.
pub(super) fn column_int(row: &Row<'_>, index: usize) -> Option<i64> {
    match row.get_ref(index).ok()? {
        ValueRef::Integer(number) => Some(number),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok()?.trim().parse().ok(),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    }
}
