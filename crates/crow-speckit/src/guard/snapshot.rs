//! The content of protected files before a command, and restoring it.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::NamedTempFile;

use super::reviewed_checklists::ReviewedLists;
use super::set_aside::{self, is_real_dir};
use super::{NAMES_MAX, ProtectedPaths, WriteGuard, resolve_path};
use crow_files::{LinkPolicy, OpenOutcome};

use crate::project::SPECIFY_DIR;
use crate::{FeatureLock, SpeckitError, SpeckitProject};

/// The number of saved files; a feature has a dozen.
const FILES_MAX: usize = 256;

/// The total size of saved files.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The depth of nested directories that are searched.
const DEPTH_MAX: usize = 8;

/// The number of saved files of other features. More files are compared only by size and modification time.
const OTHER_FILES_MAX: usize = 1_024;

/// The total size of saved files of other features.
const OTHER_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The directory for replaced versions of restored files, which git ignores.
pub const SET_ASIDE_DIR: &str = "crow/set-aside";

/// The kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProtectedChangeKind {
    /// Its content differs.
    Changed,
    /// It was removed.
    Removed,
    /// It is new.
    Created,
}

/// A protected file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedChange {
    /// The file.
    pub path: PathBuf,
    /// The kind of difference.
    pub kind: ProtectedChangeKind,
    /// Whether the change was reverted.
    pub is_undone: bool,
}

/// The protected files of a command, as they were.
#[derive(Debug)]
pub struct GuardSnapshot {
    guard: WriteGuard,
    saved: BTreeMap<PathBuf, ProtectedFile>,
    /// Single files that did not exist.
    absent: Vec<PathBuf>,
    /// Links and other entries that are not regular files.
    non_files: HashSet<PathBuf>,
    directories: Vec<PathBuf>,
    /// The directories of other features.
    other_features: Vec<PathBuf>,
    /// Files of other features that are not saved: changes are detected but cannot be reverted.
    stamps: BTreeMap<PathBuf, FileStamp>,
    reviewed: Option<ReviewedLists>,
}

#[derive(Debug)]
pub(super) struct ProtectedFile {
    pub(super) bytes: Vec<u8>,
    pub(super) permissions: Permissions,
}

/// Size and modification time, to detect a change without reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    n_bytes: u64,
    modified: Option<SystemTime>,
}

impl GuardSnapshot {
    /// Reads the files that this guard protects. Links out of a directory are not followed.
    pub fn capture(guard: &WriteGuard) -> Result<Self, SpeckitError> {
        let ProtectedPaths { files, directories } = guard.protected_paths();
        let has_no_links =
            |path: &PathBuf| resolve_path(&guard.root, path).is_ok_and(|canonical| canonical == *path);
        let directories: Vec<PathBuf> = directories.into_iter().filter(has_no_links).collect();
        let files: Vec<PathBuf> = files.into_iter().filter(has_no_links).collect();
        let mut paths: Vec<PathBuf> = files.clone();
        for directory in &directories {
            walk_dir(directory, DEPTH_MAX, &mut paths)?;
        }
        paths.sort();
        paths.dedup();
        let limit_error = |path: &Path| {
            let reason = format!(
                "it and those before it are more than {FILES_MAX} files or {BYTES_MAX} bytes to keep"
            );
            SpeckitError::invalid_file(path, reason)
        };
        let (mut saved, mut absent, mut non_files) = (BTreeMap::new(), Vec::new(), HashSet::new());
        let mut n_bytes_left = BYTES_MAX;
        for path in paths {
            match read_file(&path, n_bytes_left)? {
                Some(file) if saved.len() < FILES_MAX && file.bytes.len() as u64 <= n_bytes_left => {
                    n_bytes_left -= file.bytes.len() as u64;
                    saved.insert(path, file);
                }
                Some(_) => return Err(limit_error(&path)),
                None if files.contains(&path) => absent.push(path),
                None => {
                    non_files.insert(path);
                }
            }
        }
        let other_features: Vec<PathBuf> =
            guard.other_feature_dirs().into_iter().filter(has_no_links).collect();
        let reviewed = guard.reviewed_dir().filter(has_no_links).map(ReviewedLists::capture);
        let stamps = BTreeMap::new();
        let mut snapshot = Self {
            guard: guard.clone(),
            saved,
            absent,
            non_files,
            directories,
            other_features,
            stamps,
            reviewed,
        };
        snapshot.capture_other_features();
        Ok(snapshot)
    }

    /// Saves the files of other features within the limits; unreadable files are skipped.
    fn capture_other_features(&mut self) {
        let mut n_bytes_left = OTHER_BYTES_MAX;
        let mut n_saved = 0;
        for directory in &self.other_features {
            let mut paths = Vec::new();
            let _unreadable = walk_dir(directory, DEPTH_MAX, &mut paths);
            for path in paths {
                let stamp = file_stamp(&path);
                let fits =
                    stamp.is_some_and(|stamp| stamp.n_bytes <= n_bytes_left) && n_saved < OTHER_FILES_MAX;
                match (stamp, fits.then(|| read_file(&path, n_bytes_left))) {
                    (None, _) => {
                        self.non_files.insert(path);
                    }
                    (Some(_), Some(Ok(Some(file)))) if file.bytes.len() as u64 <= n_bytes_left => {
                        n_bytes_left -= file.bytes.len() as u64;
                        n_saved += 1;
                        self.saved.insert(path, file);
                    }
                    (Some(stamp), _) => {
                        self.stamps.insert(path, stamp);
                    }
                }
            }
        }
    }

    /// Adopts the current state of every protected file: changes are the user's.
    pub fn adopt_changes(&mut self) {
        for ProtectedChange { path, kind, .. } in self.list_changes() {
            if let Some(stamp) = file_stamp(&path).filter(|_| self.stamps.contains_key(&path)) {
                self.stamps.insert(path, stamp);
                continue;
            }
            match (kind, read_file(&path, BYTES_MAX)) {
                (ProtectedChangeKind::Changed | ProtectedChangeKind::Created, Ok(Some(file)))
                    if file.bytes.len() as u64 <= BYTES_MAX =>
                {
                    self.absent.retain(|absent| *absent != path);
                    self.saved.insert(path, file);
                }
                (ProtectedChangeKind::Removed, _) => {
                    self.saved.remove(&path);
                    self.stamps.remove(&path);
                    self.absent.push(path);
                }
                (ProtectedChangeKind::Created, _) => {
                    self.non_files.insert(path);
                }
                // The replacement cannot be saved; the saved version stays the one to restore.
                (ProtectedChangeKind::Changed, _) => {}
            }
        }
        if let Some(lists) = &mut self.reviewed {
            lists.adopt_changes();
        }
    }

    /// Accepts the current state of a file because Crow itself wrote it.
    pub fn accept_file(&mut self, path: &Path) -> Result<(), SpeckitError> {
        let path = resolve_path(&self.guard.root, path).map_err(|error| SpeckitError::io(path, error))?;
        if !self.saved.contains_key(&path) && !self.absent.contains(&path) {
            return Ok(());
        }
        if let Some(file) = read_file(&path, BYTES_MAX)? {
            self.absent.retain(|absent| *absent != path);
            self.saved.insert(path, file);
        }
        Ok(())
    }

    /// Lists the files that differ or can no longer be read.
    pub fn list_changes(&self) -> Vec<ProtectedChange> {
        let mut changes = Vec::new();
        for (path, saved) in &self.saved {
            let kind = match read_file(path, saved.bytes.len() as u64) {
                Ok(Some(current)) if current.bytes == saved.bytes => continue,
                Ok(None) if fs::symlink_metadata(path).is_err() => ProtectedChangeKind::Removed,
                Ok(_) | Err(_) => ProtectedChangeKind::Changed,
            };
            changes.push(ProtectedChange { path: path.clone(), kind, is_undone: false });
        }
        for (path, stamp) in &self.stamps {
            let kind = match file_stamp(path) {
                Some(current) if current == *stamp => continue,
                Some(_) => ProtectedChangeKind::Changed,
                None => ProtectedChangeKind::Removed,
            };
            changes.push(ProtectedChange { path: path.clone(), kind, is_undone: false });
        }
        let mut paths: Vec<PathBuf> =
            self.absent.iter().filter(|path| fs::symlink_metadata(path).is_ok()).cloned().collect();
        for directory in self.directories.iter().chain(&self.other_features) {
            // An unreadable directory must not prevent restoring the other files.
            let _unreadable = walk_dir(directory, DEPTH_MAX, &mut paths);
        }
        paths.retain(|path| {
            !self.saved.contains_key(path)
                && !self.stamps.contains_key(path)
                && !self.non_files.contains(path)
        });
        let created = |path| ProtectedChange { path, kind: ProtectedChangeKind::Created, is_undone: false };
        changes.extend(paths.into_iter().map(created));
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes.dedup();
        changes
    }

    /// Restores every protected file as far as possible and returns the differences. The replaced versions are set
    /// aside. New files are set aside in directories that belong to reviewers only, or if they block the directory of a
    /// protected file; elsewhere they may be the user's and stay.
    pub fn restore_files(&mut self) -> Vec<ProtectedChange> {
        let mut changes = self.list_changes();
        // Another session is implementing that feature.
        changes.retain(|change| !self.is_being_implemented(&change.path));
        for ProtectedChange { path, kind, is_undone } in &mut changes {
            let sets_new_aside = self.guard.removes_new_files() && self.other_feature_dir(path).is_none();
            let result = match (kind, self.saved.get(path)) {
                (ProtectedChangeKind::Changed | ProtectedChangeKind::Removed, Some(saved)) => {
                    self.restore_file(path, saved)
                }
                (ProtectedChangeKind::Created, _) if sets_new_aside || self.blocks_protected_file(path) => {
                    self.set_aside(path)
                }
                (ProtectedChangeKind::Created, _)
                | (ProtectedChangeKind::Changed | ProtectedChangeKind::Removed, None) => continue,
            };
            *is_undone = result.is_ok();
        }
        if let Some(mut lists) = self.reviewed.take() {
            changes.extend(lists.restore_lists(|path, saved| self.restore_file(path, saved)));
            self.reviewed = Some(lists);
        }
        changes
    }

    /// Returns the directory of the other feature that a file belongs to.
    fn other_feature_dir(&self, path: &Path) -> Option<&PathBuf> {
        self.other_features.iter().find(|directory| path.starts_with(directory))
    }

    fn is_being_implemented(&self, path: &Path) -> bool {
        self.other_feature_dir(path)
            .is_some_and(|dir| FeatureLock::is_held(&SpeckitProject::from_root(&self.guard.root), dir))
    }

    fn blocks_protected_file(&self, path: &Path) -> bool {
        !is_real_dir(path) && self.saved.keys().any(|saved| saved.starts_with(path))
    }

    /// Moves what is at a path to the set-aside directory: it may be the user's work.
    fn set_aside(&self, path: &Path) -> io::Result<()> {
        let directory = path.parent().ok_or(ErrorKind::InvalidInput)?;
        if resolve_path(&self.guard.root, directory)? != directory {
            return Err(io::Error::other("its directory is a link now"));
        }
        let aside_dir = set_aside::ensure_set_aside_dir(&SpeckitProject::from_root(&self.guard.root))
            .map_err(io::Error::other)?;
        let relative = self.guard.feature_dir.as_ref().and_then(|feature| path.strip_prefix(feature).ok());
        let relative = relative.or_else(|| path.strip_prefix(&self.guard.root).ok()).unwrap_or(path);
        set_aside::move_aside(path, &aside_dir, relative)
    }

    fn restore_file(&self, path: &Path, saved: &ProtectedFile) -> io::Result<()> {
        let directory = path.parent().ok_or(ErrorKind::InvalidInput)?;
        self.create_parent_dirs(directory)?;
        // Written before the other version is moved, so that a full disk loses neither.
        let staged = stage_file(directory, saved)?;
        self.set_aside(path)?;
        staged.persist_noclobber(path).map(drop).map_err(|error| error.error)
    }

    /// Recreates the directory of a protected file if it is missing or was replaced.
    fn create_parent_dirs(&self, directory: &Path) -> io::Result<()> {
        let base = match &self.guard.feature_dir {
            Some(feature) if directory.starts_with(feature) => feature.clone(),
            Some(_) | None if self.other_feature_dir(directory).is_some() => self.guard.root.clone(),
            Some(_) | None => self.guard.root.join(SPECIFY_DIR),
        };
        if !is_real_dir(&base) || resolve_path(&self.guard.root, &base)? != base {
            return Err(io::Error::other("its parent directory is missing or is a link now"));
        }
        let mut current = base.clone();
        for part in directory.strip_prefix(&base).map_err(io::Error::other)? {
            current.push(part);
            if !is_real_dir(&current) {
                self.set_aside(&current)?;
                fs::create_dir(&current)?;
            }
        }
        Ok(())
    }
}

fn stage_file(directory: &Path, saved: &ProtectedFile) -> io::Result<NamedTempFile> {
    let mut staged = tempfile::Builder::new().prefix(".crow-").tempfile_in(directory)?;
    staged.write_all(&saved.bytes)?;
    staged.as_file().set_permissions(saved.permissions.clone())?;
    staged.as_file().sync_all()?;
    Ok(staged)
}

/// Returns the size and modification time of a file; `None` if it is not a regular file.
fn file_stamp(path: &Path) -> Option<FileStamp> {
    let metadata = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(FileStamp { n_bytes: metadata.len(), modified: metadata.modified().ok() })
}

/// Reads a file up to one byte more than the limit; `None` if it does not exist or is a link.
pub(super) fn read_file(path: &Path, limit: u64) -> Result<Option<ProtectedFile>, SpeckitError> {
    let io_error = |error| SpeckitError::io(path, error);
    let (file, metadata) = match crow_files::open_guarded(path, LinkPolicy::Reject).map_err(io_error)? {
        OpenOutcome::File(file, metadata) => (file, metadata),
        OpenOutcome::Missing | OpenOutcome::Other => return Ok(None),
    };
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(io_error)?;
    Ok(Some(ProtectedFile { bytes, permissions: metadata.permissions() }))
}

/// Adds the files and links in a directory without following links; adds the path itself if it is not a directory.
pub(super) fn walk_dir(directory: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> Result<(), SpeckitError> {
    let io_error = |error| SpeckitError::io(directory, error);
    match fs::symlink_metadata(directory) {
        Ok(metadata) if !metadata.is_dir() => {
            paths.push(directory.to_owned());
            return Ok(());
        }
        Ok(_) => {}
        Err(error) if crow_files::is_missing(&error) => return Ok(()),
        Err(error) => return Err(io_error(error)),
    }
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if crow_files::is_missing(&error) => return Ok(()),
        Err(error) => return Err(io_error(error)),
    };
    for entry in entries {
        let entry = entry.map_err(io_error)?;
        if paths.len() >= NAMES_MAX {
            return Ok(());
        }
        if !entry.file_type().map_err(io_error)?.is_dir() {
            paths.push(entry.path());
        } else if depth > 0 {
            walk_dir(&entry.path(), depth - 1, paths)?;
        }
    }
    Ok(())
}
