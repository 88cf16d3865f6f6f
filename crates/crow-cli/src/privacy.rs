//! Keeps the configuration directory private to the user. Earlier versions, other programs or a permissive umask may
//! have exposed it.

use std::path::{Path, PathBuf};

use crow_files::{FileExposure, file_exposure, make_private};
use crow_store::DatabaseAddress;

use crate::{
    log,
    settings::{ENV_FILE, Settings},
};

/// A path that other users can read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExposedPath {
    pub(crate) path: PathBuf,
    pub(crate) exposure: FileExposure,
}

/// Lists the paths that should be private, the directory first: it protects everything inside.
fn private_paths(settings: &Settings) -> Vec<PathBuf> {
    let log = log::default_log_file(&settings.dir);
    let directories = [Some(settings.dir.as_path()), log.parent()].into_iter().flatten().map(Path::to_owned);
    let directories: Vec<PathBuf> = directories.filter(|path| path.is_dir()).collect();
    let database = match &settings.database {
        DatabaseAddress::File(database) => Some(database.clone()),
        DatabaseAddress::Server { .. } => None,
    };
    let files = [Some(settings.dir.join(ENV_FILE)), database, Some(log)].into_iter().flatten();
    directories.into_iter().chain(files.filter(|path| path.is_file())).collect()
}

/// Lists the paths that other users can read.
pub(crate) fn find_exposed(settings: &Settings) -> Vec<ExposedPath> {
    let user = crow_process::effective_uid();
    let exposed = private_paths(settings)
        .into_iter()
        .map(|path| ExposedPath { exposure: file_exposure(&path, user), path });
    exposed.filter(|exposed| exposed.exposure != FileExposure::Private).collect()
}

/// Makes the user's own paths private. Returns a warning about what was exposed.
pub(crate) fn make_all_private(settings: &Settings) -> Option<String> {
    let user = crow_process::effective_uid();
    let (mut fixed, mut remaining) = (Vec::new(), Vec::new());
    for ExposedPath { path, exposure } in find_exposed(settings) {
        let shown_path = path.display();
        match exposure {
            FileExposure::Private => {}
            FileExposure::GroupOrOthers => match make_private(&path, user) {
                Ok(()) => fixed.push(shown_path.to_string()),
                Err(error) => remaining.push(format!("{shown_path} ({error})")),
            },
            FileExposure::GroupOrOthersByLink | FileExposure::ForeignOwner | FileExposure::Shared => {
                remaining.push(format!("{shown_path} ({})", describe_exposure(exposure)));
            }
        }
    }
    let list_clause =
        |what: &str, paths: &[String]| (!paths.is_empty()).then(|| format!("{what}: {}", paths.join(", ")));
    let fixed = list_clause("other users could read these paths, which are private now", &fixed);
    let remaining = list_clause("other users can read these paths, which Crow leaves unchanged", &remaining);
    let clauses: Vec<String> = fixed.into_iter().chain(remaining).collect();
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// Describes who can read a path.
pub(crate) fn describe_exposure(exposure: FileExposure) -> &'static str {
    match exposure {
        FileExposure::Private => "only you can read it",
        FileExposure::GroupOrOthers => "other users can read it",
        FileExposure::GroupOrOthersByLink => "it is a link to something that other users can read",
        FileExposure::ForeignOwner => "it belongs to another user",
        FileExposure::Shared => "it is a directory shared by all users",
    }
}
