//! The type of a step's rules for writing files. Knows no step and reads nothing.

use std::path::Path;

/// The files that a step may write, and those that it must not change.
#[derive(Debug)]
pub struct WriteRules {
    /// Returns what the step writes instead, if it may not write a path.
    pub refuse: fn(&GuardedPath<'_>) -> Option<&'static str>,
    /// The protected paths, even from a shell.
    pub protected: &'static [ProtectedPath],
    /// Whether new files in protected directories are moved away.
    pub removes_new_files: bool,
    /// Whether the other features of the project are protected.
    pub protects_other_features: bool,
    /// Whether the step adds to checklists that belong to reviewers.
    pub extends_checklists: bool,
}

/// A path that a step must not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtectedPath {
    /// The constitution.
    Constitution,
    /// The directory of page templates.
    Templates,
    /// A file in the feature's directory.
    FeatureFile(&'static str),
    /// A directory in the feature's directory, with every file in it.
    FeatureDirectory(&'static str),
    /// The feature's directory, with every file in it.
    Feature,
}

/// A resolved path that is about to be written.
#[derive(Debug, Clone, Copy)]
pub struct GuardedPath<'a> {
    pub(crate) is_constitution: bool,
    /// The path in the feature's directory, if it is there.
    pub(crate) in_feature: Option<&'a Path>,
}

impl GuardedPath<'_> {
    /// Whether the path is this one of the feature. Ignores case, as some file systems do.
    pub(crate) fn is_page(&self, name: &str) -> bool {
        self.in_feature.is_some_and(|path| is_same_name(path, name))
    }

    /// Whether the path is in the feature's directory of checklists.
    pub(crate) fn is_checklist(&self) -> bool {
        let first = self.in_feature.and_then(|path| path.components().next());
        first.is_some_and(|first| is_same_name(Path::new(first.as_os_str()), "checklists"))
    }
}

fn is_same_name(path: &Path, name: &str) -> bool {
    path.to_str().is_some_and(|path| path.replace('\\', "/").eq_ignore_ascii_case(name))
}

/// The rules of a step that writes pages of its feature.
pub(crate) const FEATURE_PAGES: WriteRules = WriteRules {
    refuse: |target| target.in_feature.is_none().then_some("the feature's directory only"),
    protected: &[ProtectedPath::Constitution],
    removes_new_files: false,
    protects_other_features: true,
    extends_checklists: false,
};

/// The rules of a step that writes nothing.
pub(crate) const NO_FILES: WriteRules = WriteRules {
    refuse: |_| Some("no file"),
    protected: &[ProtectedPath::Constitution, ProtectedPath::Feature],
    ..FEATURE_PAGES
};
