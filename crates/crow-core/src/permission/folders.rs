//! Where a line goes with `cd`. Each may fail, so a line is in any of the folders that it could have reached.

use std::path::{Path, PathBuf};

use super::EffectivePolicy;
use super::paths::{is_inside, normalize_path};
use super::risks::program_name;
use crate::shell::{ShellWord, SimpleCommand};

/// Each change of folder doubles the places where the next one may begin.
const CHANGES_MAX: usize = 6;

/// Where a line goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CdScope {
    /// Nowhere but to where it is.
    Stays,
    /// To other folders of the session themselves.
    ToRoots,
    /// To folders below them.
    Inside,
    /// Perhaps to others.
    Anywhere,
}

/// Where a line goes, and every folder that it may be in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CdRoute {
    pub(super) way: CdScope,
    /// Each change of folder may fail, so the first is where it begins. Only that one if it may go anywhere.
    pub(super) places: Vec<PathBuf>,
}

impl CdRoute {
    /// Returns where the paths of the line begin, if that is known.
    pub(super) fn cwd<'a>(&self, law: &EffectivePolicy<'a>) -> Option<&'a str> {
        law.roots.work.first().map(String::as_str).filter(|_| self.way == CdScope::Stays)
    }
}

/// Finds out where a line goes.
pub(super) fn find_cd_route(law: &EffectivePolicy<'_>, commands: &[&SimpleCommand]) -> CdRoute {
    let Some(cwd) = law.roots.work.first() else {
        return CdRoute { way: CdScope::Anywhere, places: Vec::new() };
    };
    let anywhere = || CdRoute { way: CdScope::Anywhere, places: vec![PathBuf::from(cwd)] };
    let mut places = vec![PathBuf::from(cwd)];
    let (mut way, mut n_changes) = (CdScope::Stays, 0);
    for simple in commands {
        let program =
            simple.words.first().and_then(ShellWord::known_text).map(program_name).unwrap_or_default();
        if !["cd", "pushd", "popd", ".", "source"].contains(&program) {
            continue;
        }
        n_changes += 1;
        let Some(folder) = cd_folder(simple).filter(|_| n_changes <= CHANGES_MAX) else { return anywhere() };
        let mut reached: Vec<PathBuf> = places.iter().map(|place| place.join(folder)).collect();
        for place in &mut reached {
            way = way.max(folder_scope(law, place));
            *place = normalize_path(place);
        }
        for place in reached {
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    CdRoute { way, places }
}

/// The folder of a `cd` that plainly names one.
fn cd_folder(simple: &SimpleCommand) -> Option<&str> {
    let [program, rest @ ..] = simple.words.as_slice() else { return None };
    let rest = if rest.first().and_then(ShellWord::known_text) == Some("--") { &rest[1..] } else { rest };
    match rest {
        [folder] if program.text == "cd" => {
            folder.known_text().filter(|folder| !folder.starts_with('-') && !folder.is_empty())
        }
        _ => None,
    }
}

/// A shell takes `..` back by the names and falls back on the folders themselves; both must be fine.
fn folder_scope(law: &EffectivePolicy<'_>, folder: &Path) -> CdScope {
    let by_name = normalize_path(folder);
    let ways = [(law.resolve)(folder), (law.resolve)(&by_name)].map(|folder| {
        let is_root = |root: &String| Path::new(root) == folder;
        match law.roots.work.iter().position(is_root) {
            Some(0) => CdScope::Stays,
            Some(_) => CdScope::ToRoots,
            None if is_inside(&folder.display().to_string(), &law.roots.work) => CdScope::Inside,
            None => CdScope::Anywhere,
        }
    });
    ways.into_iter().max().unwrap_or(CdScope::Anywhere)
}
