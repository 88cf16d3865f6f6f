//! Follows a path link by link: each of them decides what is found at its end.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs,
    path::{Component, Path, PathBuf},
};

/// As many as the kernel follows.
const LINKS_MAX: usize = 40;

/// A path followed to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathTrace {
    /// The links on the way, each without links above it.
    pub(super) links: Vec<PathBuf>,
    pub(super) end: TraceEnd,
}

/// The end of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TraceEnd {
    Found(PathBuf),
    Missing {
        /// The first missing component.
        first_missing: PathBuf,
        /// The path that was looked for, at or below it.
        full_path: PathBuf,
    },
}

/// Follows an absolute path.
pub(super) fn trace_path(path: &Path) -> PathTrace {
    let mut links = Vec::new();
    let mut remaining: VecDeque<OsString> = component_names(path).collect();
    let mut current = PathBuf::from("/");
    while let Some(name) = remaining.pop_front() {
        if name == ".." {
            current.pop();
            continue;
        }
        let next = current.join(&name);
        let Ok(metadata) = next.symlink_metadata() else {
            let full_path = remaining.iter().fold(next.clone(), |path, name| path.join(name));
            return PathTrace { links, end: TraceEnd::Missing { first_missing: next, full_path } };
        };
        if !metadata.is_symlink() {
            current = next;
            continue;
        }
        let target = fs::read_link(&next).ok().filter(|_| links.len() < LINKS_MAX);
        links.push(next.clone());
        let Some(target) = target else {
            return PathTrace {
                links,
                end: TraceEnd::Missing { first_missing: next.clone(), full_path: next },
            };
        };
        if target.is_absolute() {
            current = PathBuf::from("/");
        }
        for name in component_names(&target).collect::<Vec<_>>().into_iter().rev() {
            remaining.push_front(name);
        }
    }
    PathTrace { links, end: TraceEnd::Found(current) }
}

/// Whether there is something at a path, a link included.
pub(super) fn path_exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn component_names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn path_is_followed_link_by_link() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        fs::create_dir_all(dir.join("a/b")).unwrap();
        symlink("a/../a", dir.join("one")).unwrap();
        symlink(dir.join("one/b"), dir.join("two")).unwrap();
        symlink("loop", dir.join("loop")).unwrap();
        let shown = |path: &str| {
            let short = |path: &Path| path.strip_prefix(&dir).unwrap().display().to_string();
            let PathTrace { links, end } = trace_path(&dir.join(path));
            let links: Vec<_> = links.iter().map(|link| short(link)).collect();
            match end {
                TraceEnd::Found(end) => format!("{links:?} {}", short(&end)),
                TraceEnd::Missing { first_missing: first, full_path: wanted } => {
                    format!("{} of {links:?} without {} {}", links.len(), short(&first), short(&wanted))
                }
            }
        };
        assert_eq!(shown("a/./b"), "[] a/b");
        assert_eq!(shown("two/../b"), r#"["two", "one"] a/b"#);
        assert_eq!(shown("two/c/d"), r#"2 of ["two", "one"] without a/b/c a/b/c/d"#);
        assert!(shown("loop").starts_with("41 of"));
    }
}
