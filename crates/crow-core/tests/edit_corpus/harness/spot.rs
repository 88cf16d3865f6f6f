//! A place in a source with a new text.

use std::ops::Range;

use super::{chance::Chance, mutate, outcome::MARK};

/// Whole lines of a file, and the same with one of them replaced.
pub(crate) struct Spot {
    pub(crate) range: Range<usize>,
    pub(crate) old: String,
    pub(crate) new: String,
    /// The index of the replaced line.
    pub(crate) changed: usize,
    /// The spaces of one indentation step.
    pub(crate) width: usize,
}

impl Spot {
    /// Picks a place of `n_min` to twelve lines. One line is replaced by two, the second a step deeper.
    pub(crate) fn pick(text: &str, n_min: usize, chance: &mut Chance) -> Option<Self> {
        let lines: Vec<&str> = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
        let n_lines = n_min + chance.below(LINES_MAX - n_min + 1);
        let first = chance.below(lines.len().checked_sub(n_lines)? + 1);
        let picked = &lines[first..first + n_lines];
        let solid: Vec<usize> = (0..n_lines).filter(|at| !picked[*at].trim().is_empty()).collect();
        let changed = chance.pick(&solid)?;
        let start: usize = lines[..first].iter().map(|line| line.len()).sum();
        let old = picked.concat();
        let width = step(&old);
        let is_tabbed = old.lines().any(|line| line.trim_start_matches(' ').starts_with('\t'));
        let deeper = if is_tabbed { "\t".to_owned() } else { " ".repeat(width) };
        let line = picked[changed];
        let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        let replaced = format!("{indent}{MARK}(a, b)\n{indent}{deeper}{MARK}.again()\n");
        let new = [&picked[..changed].concat(), replaced.as_str(), &picked[changed + 1..].concat()].concat();
        Some(Self { range: start..start + old.len(), old, new, changed, width })
    }

    /// Returns the file with the new text instead of the old one.
    pub(crate) fn applied(&self, file: &str) -> String {
        [&file[..self.range.start], &self.new, &file[self.range.end..]].concat()
    }

    /// Returns the lines of the old text.
    pub(crate) fn lines(&self) -> Vec<&str> {
        self.old.split_inclusive('\n').collect()
    }

    /// Returns a line that is neither the first nor the last nor blank.
    pub(crate) fn inner_line(&self, chance: &mut Chance) -> Option<usize> {
        let lines = self.lines();
        let inner: Vec<usize> =
            (1..lines.len().max(2) - 1).filter(|at| !lines[*at].trim().is_empty()).collect();
        chance.pick(&inner)
    }

    /// Returns a word of the old text that could be a name.
    pub(crate) fn name(&self, chance: &mut Chance) -> Option<String> {
        chance.pick(&mutate::names(&self.old)).map(str::to_owned)
    }
}

/// Models rarely send more, and a longer text is easier to find.
const LINES_MAX: usize = 12;

fn step(text: &str) -> usize {
    let mut indents = text.lines().map(|line| line.len() - line.trim_start_matches(' ').len());
    if indents.all(|indent| indent.is_multiple_of(4)) { 4 } else { 2 }
}
