//! What the protected files said before a command, and putting them back.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::NamedTempFile;

use super::aside::{self, is_folder};
use super::reviewed::ReviewedLists;
use super::{Guard, NAMES_MAX, resolved};
use crate::open::{self, Links, Opened};
use crate::project::FOLDER;
use crate::{Hold, Project, SpeckitError};

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
pub enum Change {
    /// It says something else.
    Changed,
    /// It is gone.
    Removed,
    /// It was not there.
    Created,
}

/// A protected file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The file.
    pub path: PathBuf,
    /// How it differs.
    pub change: Change,
    /// Whether it is as it was again.
    pub is_undone: bool,
}

/// The protected files of a command, as they were.
#[derive(Debug)]
pub struct Snapshot {
    guard: Guard,
    kept: BTreeMap<PathBuf, Kept>,
    /// The single files that were not there.
    absent: Vec<PathBuf>,
    /// Links, and whatever else is no file.
    others: HashSet<PathBuf>,
    folders: Vec<PathBuf>,
    /// The folders of other features.
    elsewhere: Vec<PathBuf>,
    /// Files of other features beyond what is kept: they can be told to differ, and not be put back.
    unkept: BTreeMap<PathBuf, Stamp>,
    reviewed: Option<ReviewedLists>,
}

#[derive(Debug)]
pub(super) struct Kept {
    pub(super) bytes: Vec<u8>,
    pub(super) permissions: Permissions,
}

/// What tells, without reading it, that a file was changed.
type Stamp = (u64, Option<SystemTime>);

impl Snapshot {
    /// Reads the files that this guard protects. A link to another place is not followed, there or back.
    pub fn take(guard: &Guard) -> Result<Self, SpeckitError> {
        let (files, folders) = guard.protected();
        let is_itself = |path: &PathBuf| resolved(&guard.root, path).is_ok_and(|real| real == *path);
        let folders: Vec<PathBuf> = folders.into_iter().filter(is_itself).collect();
        let files: Vec<PathBuf> = files.into_iter().filter(is_itself).collect();
        let mut found: Vec<PathBuf> = files.clone();
        for folder in &folders {
            walk(folder, DEPTH_MAX, &mut found)?;
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
            match read(&path, left)? {
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
        let elsewhere: Vec<PathBuf> = guard.other_features().into_iter().filter(is_itself).collect();
        let reviewed = guard.reviewed().filter(is_itself).map(ReviewedLists::take);
        let unkept = BTreeMap::new();
        let mut taken =
            Self { guard: guard.clone(), kept, absent, others, folders, elsewhere, unkept, reviewed };
        taken.take_elsewhere();
        Ok(taken)
    }

    /// Takes the files of other features, as far as they are few and small: what cannot be read is left alone.
    fn take_elsewhere(&mut self) {
        let mut left = OTHERS_BYTES_MAX;
        let mut n_kept = 0;
        for folder in &self.elsewhere {
            let mut found = Vec::new();
            let _unreadable = walk(folder, DEPTH_MAX, &mut found);
            for path in found {
                let stamp = stamp(&path);
                let fits = stamp.is_some_and(|(n_bytes, _)| n_bytes <= left) && n_kept < OTHERS_MAX;
                match (stamp, fits.then(|| read(&path, left))) {
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
    pub fn adopt(&mut self) {
        for Touched { path, change, .. } in self.changed() {
            if let Some(stamp) = stamp(&path).filter(|_| self.unkept.contains_key(&path)) {
                self.unkept.insert(path, stamp);
                continue;
            }
            match (change, read(&path, BYTES_MAX)) {
                (Change::Changed | Change::Created, Ok(Some(file)))
                    if file.bytes.len() as u64 <= BYTES_MAX =>
                {
                    self.absent.retain(|absent| *absent != path);
                    self.kept.insert(path, file);
                }
                (Change::Removed, _) => {
                    self.kept.remove(&path);
                    self.unkept.remove(&path);
                    self.absent.push(path);
                }
                (Change::Created, _) => {
                    self.others.insert(path);
                }
                // What took its place cannot be kept; the file that was there is still the one to put back.
                (Change::Changed, _) => {}
            }
        }
        if let Some(lists) = &mut self.reviewed {
            lists.adopt();
        }
    }

    /// Says that a file is to be as it is now, because Crow itself wrote it.
    pub fn accept(&mut self, path: &Path) -> Result<(), SpeckitError> {
        let path = resolved(&self.guard.root, path).map_err(|error| SpeckitError::io(path, error))?;
        if !self.kept.contains_key(&path) && !self.absent.contains(&path) {
            return Ok(());
        }
        if let Some(file) = read(&path, BYTES_MAX)? {
            self.absent.retain(|absent| *absent != path);
            self.kept.insert(path, file);
        }
        Ok(())
    }

    /// The files that differ from what they were; one that can no longer be read does.
    pub fn changed(&self) -> Vec<Touched> {
        let mut touched = Vec::new();
        for (path, kept) in &self.kept {
            let change = match read(path, kept.bytes.len() as u64) {
                Ok(Some(now)) if now.bytes == kept.bytes => continue,
                Ok(None) if fs::symlink_metadata(path).is_err() => Change::Removed,
                Ok(_) | Err(_) => Change::Changed,
            };
            touched.push(Touched { path: path.clone(), change, is_undone: false });
        }
        for (path, taken) in &self.unkept {
            let change = match stamp(path) {
                Some(now) if now == *taken => continue,
                Some(_) => Change::Changed,
                None => Change::Removed,
            };
            touched.push(Touched { path: path.clone(), change, is_undone: false });
        }
        let mut found: Vec<PathBuf> =
            self.absent.iter().filter(|path| fs::symlink_metadata(path).is_ok()).cloned().collect();
        for folder in self.folders.iter().chain(&self.elsewhere) {
            // A folder that was made unreadable must not keep the other files from being put back.
            let _unreadable = walk(folder, DEPTH_MAX, &mut found);
        }
        found.retain(|path| {
            !self.kept.contains_key(path) && !self.unkept.contains_key(path) && !self.others.contains(path)
        });
        let created = |path| Touched { path, change: Change::Created, is_undone: false };
        touched.extend(found.into_iter().map(created));
        touched.sort_by(|a, b| a.path.cmp(&b.path));
        touched.dedup();
        touched
    }

    /// Puts every protected file back as it was, as far as the disk lets it, and says which differed. What took its place is
    /// set aside. What is new is set aside where only reviewers make files; elsewhere it may be a person's and stays, unless
    /// it stands where the folder of a protected file was.
    pub fn restore(&mut self) -> Vec<Touched> {
        let mut touched = self.changed();
        // Another session implements that feature meanwhile.
        touched.retain(|touched| !self.is_implemented(&touched.path));
        for Touched { path, change, is_undone } in &mut touched {
            let removes_new = self.guard.removes_new() && self.elsewhere_of(path).is_none();
            let done = match (change, self.kept.get(path)) {
                (Change::Changed | Change::Removed, Some(kept)) => self.put_back(path, kept),
                (Change::Created, _) if removes_new || self.is_in_the_way(path) => self.set_aside(path),
                (Change::Created, _) | (Change::Changed | Change::Removed, None) => continue,
            };
            *is_undone = done.is_ok();
        }
        if let Some(mut lists) = self.reviewed.take() {
            touched.extend(lists.restore(|path, kept| self.put_back(path, kept)));
            self.reviewed = Some(lists);
        }
        touched
    }

    /// Returns the folder of the other feature that a file belongs to.
    fn elsewhere_of(&self, path: &Path) -> Option<&PathBuf> {
        self.elsewhere.iter().find(|folder| path.starts_with(folder))
    }

    fn is_implemented(&self, path: &Path) -> bool {
        self.elsewhere_of(path).is_some_and(|dir| Hold::is_taken(&Project::at(&self.guard.root), dir))
    }

    fn is_in_the_way(&self, path: &Path) -> bool {
        !is_folder(path) && self.kept.keys().any(|kept| kept.starts_with(path))
    }

    /// Keeps what is at a path now, whatever it is, and leaves nothing there: it may be a person's work of this very moment.
    fn set_aside(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().ok_or(ErrorKind::InvalidInput)?;
        if resolved(&self.guard.root, folder)? != folder {
            return Err(io::Error::other("its folder has become a link"));
        }
        let to = aside::folder(&Project::at(&self.guard.root)).map_err(io::Error::other)?;
        let within = self.guard.feature.as_ref().and_then(|feature| path.strip_prefix(feature).ok());
        let within = within.or_else(|| path.strip_prefix(&self.guard.root).ok()).unwrap_or(path);
        aside::put(path, &to, within)
    }

    fn put_back(&self, path: &Path, kept: &Kept) -> io::Result<()> {
        let folder = path.parent().ok_or(ErrorKind::InvalidInput)?;
        self.make_folder(folder)?;
        // Written before the other version goes, so that a full disk costs neither.
        let staged = stage(folder, kept)?;
        self.set_aside(path)?;
        staged.persist_noclobber(path).map(drop).map_err(|error| error.error)
    }

    /// Makes the folder of a protected file anew where it is gone, or something else is in its place.
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        let base = match &self.guard.feature {
            Some(feature) if folder.starts_with(feature) => feature.clone(),
            Some(_) | None if self.elsewhere_of(folder).is_some() => self.guard.root.clone(),
            Some(_) | None => self.guard.root.join(FOLDER),
        };
        if !is_folder(&base) || resolved(&self.guard.root, &base)? != base {
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

fn stage(folder: &Path, kept: &Kept) -> io::Result<NamedTempFile> {
    let mut staged = tempfile::Builder::new().prefix(".crow-").tempfile_in(folder)?;
    staged.write_all(&kept.bytes)?;
    staged.as_file().set_permissions(kept.permissions.clone())?;
    staged.as_file().sync_all()?;
    Ok(staged)
}

/// Returns the size and the time of a file; `None` for what is no file.
fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((found.len(), found.modified().ok()))
}

/// Reads a file up to one byte more than the limit; `None` if there is none. A link is none: nothing is followed.
pub(super) fn read(path: &Path, limit: u64) -> Result<Option<Kept>, SpeckitError> {
    let failed = |error| SpeckitError::io(path, error);
    let (file, found) = match open::open(path, Links::Refused).map_err(failed)? {
        Opened::File(file, found) => (file, found),
        Opened::Missing | Opened::Other => return Ok(None),
    };
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(Kept { bytes, permissions: found.permissions() }))
}

/// Adds what is in a folder, links too, but follows none; what is no folder itself.
pub(super) fn walk(folder: &Path, depth: usize, places: &mut Vec<PathBuf>) -> Result<(), SpeckitError> {
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
            walk(&name.path(), depth - 1, places)?;
        }
    }
    Ok(())
}
