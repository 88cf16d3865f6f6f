//! What the protected files said before a command, and putting them back.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::NamedTempFile;

use super::aside::{self, is_folder};
use super::reviewed::ReviewedLists;
use super::{NAMES_MAX, WriteGuard, resolve_path};
use crate::open::{self, LinkPolicy, OpenOutcome};
use crate::project::FOLDER;
use crate::{FeatureLock, SpeckitError, SpeckitProject};

/// Files that are kept; a feature has a dozen.
const FILES_MAX: usize = 256;

/// Bytes that are kept, of all files together.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Folders within folders that are looked through.
const DEPTH_MAX: usize = 8;

/// Files of other features that are kept. Further ones are only compared by size and time.
const OTHERS_MAX: usize = 1_024;

/// Bytes that are kept of other features, of all files together.
const OTHERS_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Where the other version of a file goes that is put back, in a folder that git does not see.
pub const SET_ASIDE: &str = "crow/set-aside";

/// How a protected file differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProtectedChangeKind {
    /// It says something else.
    Changed,
    /// It is gone.
    Removed,
    /// It was not there.
    Created,
}

/// A protected file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedChange {
    /// The file.
    pub path: PathBuf,
    /// How it differs.
    pub change: ProtectedChangeKind,
    /// Whether it is as it was again.
    pub is_undone: bool,
}

/// The protected files of a command, as they were.
#[derive(Debug)]
pub struct GuardSnapshot {
    guard: WriteGuard,
    kept: BTreeMap<PathBuf, ProtectedFile>,
    /// The single files that were not there.
    absent: Vec<PathBuf>,
    /// Links, and whatever else is no file.
    others: HashSet<PathBuf>,
    folders: Vec<PathBuf>,
    /// The folders of other features.
    elsewhere: Vec<PathBuf>,
    /// Files of other features beyond what is kept: they can be told to differ, and not be put back.
    unkept: BTreeMap<PathBuf, FileStamp>,
    reviewed: Option<ReviewedLists>,
}

#[derive(Debug)]
pub(super) struct ProtectedFile {
    pub(super) bytes: Vec<u8>,
    pub(super) permissions: Permissions,
}

/// What tells, without reading it, that a file was changed.
type FileStamp = (u64, Option<SystemTime>);

impl GuardSnapshot {
    /// Reads the files that this guard protects. A link to another place is not followed, there or back.
    pub fn capture(guard: &WriteGuard) -> Result<Self, SpeckitError> {
        let (files, folders) = guard.protected_paths();
        let is_itself = |path: &PathBuf| resolve_path(&guard.root, path).is_ok_and(|real| real == *path);
        let folders: Vec<PathBuf> = folders.into_iter().filter(is_itself).collect();
        let files: Vec<PathBuf> = files.into_iter().filter(is_itself).collect();
        let mut found: Vec<PathBuf> = files.clone();
        for folder in &folders {
            walk_folder(folder, DEPTH_MAX, &mut found)?;
        }
        found.sort();
        found.dedup();
        let too_many = |path: &Path| {
            let why = format!(
                "it and those before it are more than {FILES_MAX} files or {BYTES_MAX} bytes to keep"
            );
            SpeckitError::broken(path, why)
        };
        let (mut kept, mut absent, mut others) = (BTreeMap::new(), Vec::new(), HashSet::new());
        let mut left = BYTES_MAX;
        for path in found {
            match read_file(&path, left)? {
                Some(file) if kept.len() < FILES_MAX && file.bytes.len() as u64 <= left => {
                    left -= file.bytes.len() as u64;
                    kept.insert(path, file);
                }
                Some(_) => return Err(too_many(&path)),
                None if files.contains(&path) => absent.push(path),
                None => {
                    others.insert(path);
                }
            }
        }
        let elsewhere: Vec<PathBuf> = guard.other_feature_dirs().into_iter().filter(is_itself).collect();
        let reviewed = guard.reviewed_dir().filter(is_itself).map(ReviewedLists::capture);
        let unkept = BTreeMap::new();
        let mut taken =
            Self { guard: guard.clone(), kept, absent, others, folders, elsewhere, unkept, reviewed };
        taken.capture_other_features();
        Ok(taken)
    }

    /// Takes the files of other features, as far as they are few and small: what cannot be read is left alone.
    fn capture_other_features(&mut self) {
        let mut left = OTHERS_BYTES_MAX;
        let mut n_kept = 0;
        for folder in &self.elsewhere {
            let mut found = Vec::new();
            let _unreadable = walk_folder(folder, DEPTH_MAX, &mut found);
            for path in found {
                let stamp = file_stamp(&path);
                let fits = stamp.is_some_and(|(n_bytes, _)| n_bytes <= left) && n_kept < OTHERS_MAX;
                match (stamp, fits.then(|| read_file(&path, left))) {
                    (None, _) => {
                        self.others.insert(path);
                    }
                    (Some(_), Some(Ok(Some(file)))) if file.bytes.len() as u64 <= left => {
                        left -= file.bytes.len() as u64;
                        n_kept += 1;
                        self.kept.insert(path, file);
                    }
                    (Some(stamp), _) => {
                        self.unkept.insert(path, stamp);
                    }
                }
            }
        }
    }

    /// Takes every protected file as it is now: what differs is the person's.
    pub fn adopt_changes(&mut self) {
        for ProtectedChange { path, change, .. } in self.list_changes() {
            if let Some(stamp) = file_stamp(&path).filter(|_| self.unkept.contains_key(&path)) {
                self.unkept.insert(path, stamp);
                continue;
            }
            match (change, read_file(&path, BYTES_MAX)) {
                (ProtectedChangeKind::Changed | ProtectedChangeKind::Created, Ok(Some(file)))
                    if file.bytes.len() as u64 <= BYTES_MAX =>
                {
                    self.absent.retain(|absent| *absent != path);
                    self.kept.insert(path, file);
                }
                (ProtectedChangeKind::Removed, _) => {
                    self.kept.remove(&path);
                    self.unkept.remove(&path);
                    self.absent.push(path);
                }
                (ProtectedChangeKind::Created, _) => {
                    self.others.insert(path);
                }
                // What took its place cannot be kept; the file that was there is still the one to put back.
                (ProtectedChangeKind::Changed, _) => {}
            }
        }
        if let Some(lists) = &mut self.reviewed {
            lists.adopt_changes();
        }
    }

    /// Says that a file is to be as it is now, because Crow itself wrote it.
    pub fn accept_file(&mut self, path: &Path) -> Result<(), SpeckitError> {
        let path = resolve_path(&self.guard.root, path).map_err(|error| SpeckitError::io(path, error))?;
        if !self.kept.contains_key(&path) && !self.absent.contains(&path) {
            return Ok(());
        }
        if let Some(file) = read_file(&path, BYTES_MAX)? {
            self.absent.retain(|absent| *absent != path);
            self.kept.insert(path, file);
        }
        Ok(())
    }

    /// The files that differ from what they were; one that can no longer be read does.
    pub fn list_changes(&self) -> Vec<ProtectedChange> {
        let mut touched = Vec::new();
        for (path, kept) in &self.kept {
            let change = match read_file(path, kept.bytes.len() as u64) {
                Ok(Some(now)) if now.bytes == kept.bytes => continue,
                Ok(None) if fs::symlink_metadata(path).is_err() => ProtectedChangeKind::Removed,
                Ok(_) | Err(_) => ProtectedChangeKind::Changed,
            };
            touched.push(ProtectedChange { path: path.clone(), change, is_undone: false });
        }
        for (path, taken) in &self.unkept {
            let change = match file_stamp(path) {
                Some(now) if now == *taken => continue,
                Some(_) => ProtectedChangeKind::Changed,
                None => ProtectedChangeKind::Removed,
            };
            touched.push(ProtectedChange { path: path.clone(), change, is_undone: false });
        }
        let mut found: Vec<PathBuf> =
            self.absent.iter().filter(|path| fs::symlink_metadata(path).is_ok()).cloned().collect();
        for folder in self.folders.iter().chain(&self.elsewhere) {
            // A folder that was made unreadable must not keep the other files from being put back.
            let _unreadable = walk_folder(folder, DEPTH_MAX, &mut found);
        }
        found.retain(|path| {
            !self.kept.contains_key(path) && !self.unkept.contains_key(path) && !self.others.contains(path)
        });
        let created = |path| ProtectedChange { path, change: ProtectedChangeKind::Created, is_undone: false };
        touched.extend(found.into_iter().map(created));
        touched.sort_by(|a, b| a.path.cmp(&b.path));
        touched.dedup();
        touched
    }

    /// Puts every protected file back as it was, as far as the disk lets it, and says which differed. What took its place is
    /// set aside. What is new is set aside where only reviewers make files; elsewhere it may be a person's and stays, unless
    /// it stands where the folder of a protected file was.
    pub fn restore_files(&mut self) -> Vec<ProtectedChange> {
        let mut touched = self.list_changes();
        // Another session implements that feature meanwhile.
        touched.retain(|touched| !self.is_being_implemented(&touched.path));
        for ProtectedChange { path, change, is_undone } in &mut touched {
            let removes_new = self.guard.removes_new_files() && self.other_feature_dir(path).is_none();
            let done = match (change, self.kept.get(path)) {
                (ProtectedChangeKind::Changed | ProtectedChangeKind::Removed, Some(kept)) => {
                    self.restore_file(path, kept)
                }
                (ProtectedChangeKind::Created, _) if removes_new || self.blocks_protected_file(path) => {
                    self.set_aside(path)
                }
                (ProtectedChangeKind::Created, _)
                | (ProtectedChangeKind::Changed | ProtectedChangeKind::Removed, None) => continue,
            };
            *is_undone = done.is_ok();
        }
        if let Some(mut lists) = self.reviewed.take() {
            touched.extend(lists.restore_lists(|path, kept| self.restore_file(path, kept)));
            self.reviewed = Some(lists);
        }
        touched
    }

    /// Returns the folder of the other feature that a file belongs to.
    fn other_feature_dir(&self, path: &Path) -> Option<&PathBuf> {
        self.elsewhere.iter().find(|folder| path.starts_with(folder))
    }

    fn is_being_implemented(&self, path: &Path) -> bool {
        self.other_feature_dir(path)
            .is_some_and(|dir| FeatureLock::is_held(&SpeckitProject::from_root(&self.guard.root), dir))
    }

    fn blocks_protected_file(&self, path: &Path) -> bool {
        !is_folder(path) && self.kept.keys().any(|kept| kept.starts_with(path))
    }

    /// Keeps what is at a path now, whatever it is, and leaves nothing there: it may be a person's work of this very moment.
    fn set_aside(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().ok_or(ErrorKind::InvalidInput)?;
        if resolve_path(&self.guard.root, folder)? != folder {
            return Err(io::Error::other("its folder has become a link"));
        }
        let to = aside::ensure_aside_folder(&SpeckitProject::from_root(&self.guard.root))
            .map_err(io::Error::other)?;
        let within = self.guard.feature.as_ref().and_then(|feature| path.strip_prefix(feature).ok());
        let within = within.or_else(|| path.strip_prefix(&self.guard.root).ok()).unwrap_or(path);
        aside::move_aside(path, &to, within)
    }

    fn restore_file(&self, path: &Path, kept: &ProtectedFile) -> io::Result<()> {
        let folder = path.parent().ok_or(ErrorKind::InvalidInput)?;
        self.create_folder(folder)?;
        // Written before the other version goes, so that a full disk costs neither.
        let staged = stage_file(folder, kept)?;
        self.set_aside(path)?;
        staged.persist_noclobber(path).map(drop).map_err(|error| error.error)
    }

    /// Makes the folder of a protected file anew where it is gone, or something else is in its place.
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        let base = match &self.guard.feature {
            Some(feature) if folder.starts_with(feature) => feature.clone(),
            Some(_) | None if self.other_feature_dir(folder).is_some() => self.guard.root.clone(),
            Some(_) | None => self.guard.root.join(FOLDER),
        };
        if !is_folder(&base) || resolve_path(&self.guard.root, &base)? != base {
            return Err(io::Error::other("the folder around it is gone, or has become a link"));
        }
        let mut at = base.clone();
        for part in folder.strip_prefix(&base).map_err(io::Error::other)? {
            at.push(part);
            if !is_folder(&at) {
                self.set_aside(&at)?;
                fs::create_dir(&at)?;
            }
        }
        Ok(())
    }
}

fn stage_file(folder: &Path, kept: &ProtectedFile) -> io::Result<NamedTempFile> {
    let mut staged = tempfile::Builder::new().prefix(".crow-").tempfile_in(folder)?;
    staged.write_all(&kept.bytes)?;
    staged.as_file().set_permissions(kept.permissions.clone())?;
    staged.as_file().sync_all()?;
    Ok(staged)
}

/// Returns the size and the time of a file; `None` for what is no file.
fn file_stamp(path: &Path) -> Option<FileStamp> {
    let found = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((found.len(), found.modified().ok()))
}

/// Reads a file up to one byte more than the limit; `None` if there is none. A link is none: nothing is followed.
pub(super) fn read_file(path: &Path, limit: u64) -> Result<Option<ProtectedFile>, SpeckitError> {
    let failed = |error| SpeckitError::io(path, error);
    let (file, found) = match open::open_file(path, LinkPolicy::Refused).map_err(failed)? {
        OpenOutcome::File(file, found) => (file, found),
        OpenOutcome::Missing | OpenOutcome::Other => return Ok(None),
    };
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(ProtectedFile { bytes, permissions: found.permissions() }))
}

/// Adds what is in a folder, links too, but follows none; what is no folder itself.
pub(super) fn walk_folder(
    folder: &Path,
    depth: usize,
    places: &mut Vec<PathBuf>,
) -> Result<(), SpeckitError> {
    let failed = |error| SpeckitError::io(folder, error);
    match fs::symlink_metadata(folder) {
        Ok(found) if !found.is_dir() => {
            places.push(folder.to_owned());
            return Ok(());
        }
        Ok(_) => {}
        Err(error) if open::is_missing(&error) => return Ok(()),
        Err(error) => return Err(failed(error)),
    }
    let names = match fs::read_dir(folder) {
        Ok(names) => names,
        Err(error) if open::is_missing(&error) => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    for name in names {
        let name = name.map_err(failed)?;
        if places.len() >= NAMES_MAX {
            return Ok(());
        }
        if !name.file_type().map_err(failed)?.is_dir() {
            places.push(name.path());
        } else if depth > 0 {
            walk_folder(&name.path(), depth - 1, places)?;
        }
    }
    Ok(())
}
