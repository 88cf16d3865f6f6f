//! The directories that a line enters with `cd`. Each `cd` may fail, so a line may be in any of them.

use std::path::{Path, PathBuf};

use super::paths::{is_inside, normalize_path};
use super::policy::EffectivePolicy;
use super::program_names::program_name;
use crate::shell::{ShellWord, SimpleCommand};

/// Each change of directory doubles the possible ones.
const CHANGES_MAX: usize = 6;

/// The extent of a line's directory changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CdScope {
    /// No change.
    Unchanged,
    /// To other roots of the session.
    Root,
    /// To directories below the roots.
    InsideRoots,
    /// Possibly to others.
    Anywhere,
}

/// The directory changes of a line, with every directory that it may be in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CdRoute {
    pub(super) scope: CdScope,
    /// The possible directories, beginning with the first root, since each change may fail. Only that one if the line
    /// may go anywhere.
    pub(super) directories: Vec<PathBuf>,
}

impl CdRoute {
    /// Returns the working directory of the line, if it is known.
    pub(super) fn cwd<'a>(&self, policy: &EffectivePolicy<'a>) -> Option<&'a str> {
        policy.roots.work.first().map(String::as_str).filter(|_| self.scope == CdScope::Unchanged)
    }

    /// Whether Git may find another repository than in the roots themselves.
    pub(super) fn may_change_repository(&self, policy: &EffectivePolicy<'_>) -> bool {
        let is_root = |directory: &Path| policy.roots.work.iter().any(|root| Path::new(root) == directory);
        match self.scope {
            CdScope::Unchanged | CdScope::Root => false,
            CdScope::InsideRoots => self.directories.iter().any(|directory| {
                let directory = policy.files.resolve_links(directory);
                let mut below_root = directory.ancestors().take_while(|directory| !is_root(directory));
                below_root.any(|directory| policy.files.may_be_repository(directory))
            }),
            CdScope::Anywhere => true,
        }
    }
}

/// Determines the directory changes of a line.
pub(super) fn find_cd_route(policy: &EffectivePolicy<'_>, commands: &[&SimpleCommand]) -> CdRoute {
    let Some(cwd) = policy.roots.work.first() else {
        return CdRoute { scope: CdScope::Anywhere, directories: Vec::new() };
    };
    let anywhere = || CdRoute { scope: CdScope::Anywhere, directories: vec![PathBuf::from(cwd)] };
    let mut directories = vec![PathBuf::from(cwd)];
    let (mut scope, mut n_changes) = (CdScope::Unchanged, 0);
    for simple in commands {
        let program =
            simple.words.first().and_then(ShellWord::known_text).map(program_name).unwrap_or_default();
        if !["cd", "pushd", "popd", ".", "source"].contains(&program) {
            continue;
        }
        n_changes += 1;
        let Some(target) = cd_target(simple).filter(|_| n_changes <= CHANGES_MAX) else { return anywhere() };
        let mut reached: Vec<PathBuf> = directories.iter().map(|directory| directory.join(target)).collect();
        for directory in &mut reached {
            scope = scope.max(dir_scope(policy, directory));
            *directory = normalize_path(directory);
        }
        for directory in reached {
            if !directories.contains(&directory) {
                directories.push(directory);
            }
        }
    }
    CdRoute { scope, directories }
}

/// Returns the directory of a plain `cd`.
fn cd_target(simple: &SimpleCommand) -> Option<&str> {
    let [program, rest @ ..] = simple.words.as_slice() else { return None };
    let rest = if rest.first().and_then(ShellWord::known_text) == Some("--") { &rest[1..] } else { rest };
    match rest {
        [directory] if program.text == "cd" => {
            directory.known_text().filter(|directory| !directory.starts_with('-') && !directory.is_empty())
        }
        _ => None,
    }
}

/// A shell resolves `..` by name first and by directory second; both results count.
fn dir_scope(policy: &EffectivePolicy<'_>, directory: &Path) -> CdScope {
    let by_name = normalize_path(directory);
    let scopes = [directory, &by_name].map(|directory| {
        let directory = policy.files.resolve_links(directory);
        let is_root = |root: &String| Path::new(root) == directory;
        match policy.roots.work.iter().position(is_root) {
            Some(0) => CdScope::Unchanged,
            Some(_) => CdScope::Root,
            None if is_inside(&directory.display().to_string(), &policy.roots.work) => CdScope::InsideRoots,
            None => CdScope::Anywhere,
        }
    });
    scopes.into_iter().max().unwrap_or(CdScope::Anywhere)
}
