//! Where a line goes with `cd`. Each may fail, so a line is in any of the folders that it could have reached.

use std::path::{Path, PathBuf};

use super::Law;
use super::paths::{is_inside, plain};
use super::risks::base;
use crate::shell::{Simple, Word};

/// Each change of folder doubles the places where the next one may begin.
const CHANGES_MAX: usize = 6;

/// Where a line goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
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
pub(super) struct Route {
    pub(super) way: Way,
    /// Each change of folder may fail, so the first is where it begins. Only that one if it may go anywhere.
    pub(super) places: Vec<PathBuf>,
}

impl Route {
    /// Returns where the paths of the line begin, if that is known.
    pub(super) fn cwd<'a>(&self, law: &Law<'a>) -> Option<&'a str> {
        law.roots.work.first().map(String::as_str).filter(|_| self.way == Way::Stays)
    }
}

/// Finds out where a line goes.
pub(super) fn route(law: &Law<'_>, commands: &[&Simple]) -> Route {
    let Some(cwd) = law.roots.work.first() else { return Route { way: Way::Anywhere, places: Vec::new() } };
    let anywhere = || Route { way: Way::Anywhere, places: vec![PathBuf::from(cwd)] };
    let mut places = vec![PathBuf::from(cwd)];
    let (mut way, mut n_changes) = (Way::Stays, 0);
    for simple in commands {
        let program = simple.words.first().and_then(Word::whole).map(base).unwrap_or_default();
        if !["cd", "pushd", "popd", ".", "source"].contains(&program) {
            continue;
        }
        n_changes += 1;
        let Some(folder) = folder(simple).filter(|_| n_changes <= CHANGES_MAX) else { return anywhere() };
        let mut reached: Vec<PathBuf> = places.iter().map(|place| place.join(folder)).collect();
        for place in &mut reached {
            way = way.max(one(law, place));
            *place = plain(place);
        }
        for place in reached {
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    Route { way, places }
}

/// The folder of a `cd` that plainly names one.
fn folder(simple: &Simple) -> Option<&str> {
    let [program, rest @ ..] = simple.words.as_slice() else { return None };
    let rest = if rest.first().and_then(Word::whole) == Some("--") { &rest[1..] } else { rest };
    match rest {
        [folder] if program.text == "cd" => {
            folder.whole().filter(|folder| !folder.starts_with('-') && !folder.is_empty())
        }
        _ => None,
    }
}

/// A shell takes `..` back by the names and falls back on the folders themselves; both must be fine.
fn one(law: &Law<'_>, folder: &Path) -> Way {
    let by_name = plain(folder);
    let ways = [(law.resolve)(folder), (law.resolve)(&by_name)].map(|folder| {
        let is_root = |root: &String| Path::new(root) == folder;
        match law.roots.work.iter().position(is_root) {
            Some(0) => Way::Stays,
            Some(_) => Way::ToRoots,
            None if is_inside(&folder.display().to_string(), &law.roots.work) => Way::Inside,
            None => Way::Anywhere,
        }
    });
    ways.into_iter().max().unwrap_or(Way::Anywhere)
}
