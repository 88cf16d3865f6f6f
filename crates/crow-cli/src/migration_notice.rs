//! Reports that a command imported a database of the Python version. Opens no database itself.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crow_import::PYTHON_FORMAT;
use crow_store::DatabaseAddress;

/// The copies of Python databases that existed before the database was opened. Reports new ones on stderr when dropped.
#[derive(Debug)]
pub(crate) struct MigrationNotice {
    database: Option<PathBuf>,
    existing: Vec<PathBuf>,
}

impl MigrationNotice {
    /// Lists the copies next to a database.
    pub(crate) fn for_database(database: &DatabaseAddress) -> Self {
        let path = match database {
            DatabaseAddress::File(path) => Some(path.clone()),
            DatabaseAddress::Server { .. } => None,
        };
        Self { existing: path.as_deref().map(list_copies).unwrap_or_default(), database: path }
    }

    /// Reports the copies that are new.
    fn report_new(&self, err: &mut impl Write) {
        let Some(path) = &self.database else { return };
        for copy in list_copies(path).into_iter().filter(|copy| !self.existing.contains(copy)) {
            // A closed stderr is not an error.
            let _ = writeln!(
                err,
                "note: the sessions of the Python version were imported into {}; the old database is kept as {}, \
                 including anything that could not be read",
                path.display(),
                copy.display()
            );
        }
    }
}

impl Drop for MigrationNotice {
    fn drop(&mut self) {
        self.report_new(&mut io::stderr());
    }
}

/// Lists `NAME.python`, `NAME.python-2` and so on.
fn list_copies(path: &Path) -> Vec<PathBuf> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
    else {
        return Vec::new();
    };
    let is_copy = |entry: &fs::DirEntry| {
        let entry = entry.file_name();
        let rest = entry.to_str().and_then(|entry| {
            entry.strip_prefix(name)?.strip_prefix('.')?.strip_prefix(PYTHON_FORMAT.copy_suffix)
        });
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.strip_prefix('-').is_some_and(|number| number.parse::<u32>().is_ok())
        })
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(is_copy).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imported_database_is_reported_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("crow.db");
        fs::write(&path, include_bytes!("init/python/tests/python.db")).unwrap();
        let database = DatabaseAddress::File(path);
        let mut said = Vec::new();
        for _ in 0..2 {
            let copies = MigrationNotice::for_database(&database);
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let store = crate::database::store_options().open(&database).await.unwrap();
                store.close().await.unwrap();
            });
            copies.report_new(&mut said);
        }
        let said = String::from_utf8(said).unwrap().replace(&directory.path().display().to_string(), "~");
        expect_test::expect![[r#"
            note: the sessions of the Python version were imported into ~/crow.db; the old database is kept as ~/crow.db.python, including anything that could not be read
        "#]]
        .assert_eq(&said);
    }
}
