//! The names by which Git recognizes a repository, and those of the parts that make it execute programs.

use std::{ffi::OsStr, path::Path};

pub(super) use super::repository_parts::PROGRAM_PARTS;

use super::path_trace::path_exists;

/// Some file systems ignore case.
pub(super) fn is_git_name(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// The names in a directory by which Git recognizes a repository, and those of its relevant parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct MarkerNames(u16);

/// Without these a directory is no repository, unless the third replaces the first two.
pub(super) const MARKERS: [&str; 4] = ["objects", "refs", "commondir", "HEAD"];

impl MarkerNames {
    fn name_bit(name: &OsStr) -> u16 {
        let all = || MARKERS.iter().chain(&PROGRAM_PARTS);
        all().position(|known| name == *known).map_or(0, |bit| 1 << bit)
    }

    pub(super) fn insert_name(&mut self, name: &OsStr) {
        self.0 |= Self::name_bit(name);
    }

    pub(super) fn contains(self, name: &str) -> bool {
        // One of them is in both lists.
        self.0 & Self::name_bit(name.as_ref()) != 0
    }

    /// Checks for each by name, where a directory cannot be listed or may be huge.
    pub(super) fn probe_folder(directory: &Path) -> Self {
        let mut markers = Self::default();
        let all = MARKERS.iter().chain(&PROGRAM_PARTS);
        all.filter(|name| path_exists(&directory.join(name)))
            .for_each(|name| markers.insert_name(name.as_ref()));
        markers
    }

    /// Whether the directory could be a repository if its `HEAD` is valid.
    pub(super) fn has_repository_shape(self) -> bool {
        self.contains("HEAD")
            && (self.contains("commondir") || (self.contains("objects") && self.contains("refs")))
    }
}
