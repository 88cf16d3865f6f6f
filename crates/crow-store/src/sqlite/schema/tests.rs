use expect_test::expect_file;
use rusqlite::Connection;

use super::{NEWEST_TABLES, run_migrations};

/// Returns the statements that make the tables of a database. Virtual tables make their own helper tables.
fn dump_tables(connection: &Connection) -> String {
    let sql = "SELECT sql FROM sqlite_schema
               WHERE sql IS NOT NULL AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow')
               ORDER BY rowid";
    let mut statement = connection.prepare(sql).unwrap();
    let statements = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    statements.map(|statement| statement.unwrap() + ";\n").collect()
}

#[test]
fn new_database_has_the_tables_of_all_migrations() {
    let migrated = Connection::open_in_memory().unwrap();
    run_migrations(&migrated, 0).unwrap();
    let tables = dump_tables(&migrated);
    let head =
        "-- The tables after all migrations. UPDATE_EXPECT=1 and the tests of this crate write this file.\n";
    expect_file!["../../../migrations/sqlite/newest_tables.sql"].assert_eq(&format!("{head}{tables}"));
    let new = Connection::open_in_memory().unwrap();
    new.execute_batch(NEWEST_TABLES).unwrap();
    assert_eq!(dump_tables(&new), tables);
}
