//! A lock so that only one session, in any process, implements a feature. Knows no sessions.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::{Feature, SpeckitError, SpeckitProject, init::ensure_crow_dir, project::follow_links};

/// The length of the feature's name in the lock's file name, which every file system allows.
const NAME_BYTES_MAX: usize = 200;

/// The exclusive right to implement a feature, released when this is dropped or the process ends.
#[derive(Debug)]
pub struct FeatureLock {
    /// `None` on a file system without locks.
    _file: Option<File>,
}

impl FeatureLock {
    /// Whether a session holds the lock.
    pub(crate) fn is_held(project: &SpeckitProject, dir: &Path) -> bool {
        let path = lock_path(project, &Feature::from_dir(dir.to_owned()));
        let is_file = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file());
        let file = is_file.then(|| File::options().append(true).open(&path).ok()).flatten();
        file.is_some_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }

    /// Acquires the lock, or returns an error if another session holds it.
    pub fn acquire(project: &SpeckitProject, feature: &Feature) -> Result<Self, SpeckitError> {
        ensure_crow_dir(project)?;
        let path = lock_path(project, feature);
        let io_error = |error| SpeckitError::io(&path, error);
        let file = open_lock_file(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: Some(file) }),
            Err(TryLockError::WouldBlock) => Err(SpeckitError::Invalid(format!(
                "another session is implementing {}; wait until it is done, or stop it there",
                project.display_path(&feature.dir)
            ))),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                Ok(Self { _file: None })
            }
            Err(TryLockError::Error(error)) => Err(io_error(error)),
        }
    }
}

fn lock_path(project: &SpeckitProject, feature: &Feature) -> PathBuf {
    // A link to a feature is the same feature.
    let dir = follow_links(&feature.dir).unwrap_or_else(|| feature.dir.clone());
    let name = Feature::from_dir(dir).name;
    let name = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
    project.specify_path(&format!("crow/implement-{name}.lock"))
}

/// Opens the lock file. Opening anything but a regular file might block.
fn open_lock_file(path: &Path) -> Result<File, SpeckitError> {
    let io_error = |error: io::Error| SpeckitError::io(path, error);
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            return Err(SpeckitError::invalid_file(path, "it is not a file; move it away"));
        }
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(io_error(error)),
        Ok(_) | Err(_) => {}
    }
    File::options().create(true).append(true).open(path).map_err(io_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{fixture_project, mask_project_root};

    #[test]
    fn lock_is_exclusive() {
        let (_folder, project) = fixture_project(&[("specs/001-a/spec.md", ""), ("specs/002-b/spec.md", "")]);
        let feature = |dir: &str| Feature::from_dir(project.resolve_path(dir));
        let hold = FeatureLock::acquire(&project, &feature("specs/001-a")).unwrap();
        let told = FeatureLock::acquire(&project, &feature("specs/001-a")).unwrap_err().to_string();
        assert_eq!(
            told,
            "another session is implementing specs/001-a; wait until it is done, or stop it there"
        );
        FeatureLock::acquire(&project, &feature("specs/002-b")).unwrap();
        drop(hold);
        FeatureLock::acquire(&project, &feature("specs/001-a")).unwrap();
        let long = "x".repeat(255);
        FeatureLock::acquire(&project, &feature(&long)).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn link_to_a_feature_shares_its_lock() {
        let (_folder, project) = fixture_project(&[("specs/001-a/spec.md", "")]);
        std::os::unix::fs::symlink("001-a", project.resolve_path("specs/002-b")).unwrap();
        let _hold =
            FeatureLock::acquire(&project, &Feature::from_dir(project.resolve_path("specs/001-a"))).unwrap();
        let told = FeatureLock::acquire(&project, &Feature::from_dir(project.resolve_path("specs/002-b")))
            .unwrap_err()
            .to_string();
        assert!(told.starts_with("another session is implementing specs/002-b;"), "{told}");
    }

    #[test]
    #[cfg(unix)]
    fn lock_path_that_is_not_a_file_is_untouched() {
        let (_folder, project) = fixture_project(&[("outside", "")]);
        fs::create_dir(project.specify_path("crow")).unwrap();
        let lock = project.specify_path("crow/implement-001-a.lock");
        std::os::unix::fs::symlink(project.root().join("made"), &lock).unwrap();
        let told = FeatureLock::acquire(&project, &Feature::from_dir(project.resolve_path("specs/001-a")))
            .unwrap_err()
            .to_string();
        assert_eq!(
            mask_project_root(&project, &told),
            "$DIR/.specify/crow/implement-001-a.lock cannot be used: it is not a file; move it away"
        );
        assert!(!project.root().join("made").exists());
    }
}
