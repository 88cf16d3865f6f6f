//! What became of a case. Knows the place by how the case was made, never by how an edit finds it.

use std::{collections::BTreeMap, fmt::Write as _, ops::Range};

use crow_core::edit::{self, EditMatcher, EditOccurrences, EditRefusal};

use super::kinds::Kind;

/// A word that no source has, this one included; every new text has it.
pub(crate) const MARK: &str = concat!("crow_was", "_here");

/// An edit to try.
pub(crate) struct Case {
    pub(crate) file: String,
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) occurrences: EditOccurrences,
    pub(crate) truth: Truth,
}

/// Where the old text was taken from.
pub(crate) enum Truth {
    /// From this range; nothing else may change. `ideal` is what the file should be then, where that is clear.
    At { range: Range<usize>, ideal: Option<String> },
    /// From several places: the file should be this then.
    Each { ideal: String },
    /// From nowhere in this file, or from no single place.
    Nowhere,
}

/// How a case ended.
pub(crate) enum Verdict {
    /// At the right place.
    Landed(EditMatcher),
    /// Not at all.
    Refused(EditRefusal),
    /// Somewhere else, or with more or less than was to be changed.
    Wrong(EditMatcher),
    /// At the right place, but the text that came of it is not the one it should be.
    Off(EditMatcher),
}

/// Tries a case.
pub(crate) fn judge(case: &Case) -> Verdict {
    let edited = match edit::apply_edit(&case.file, &case.old, &case.new, case.occurrences) {
        Ok(edited) => edited,
        Err(refusal) => return Verdict::Refused(refusal),
    };
    match &case.truth {
        Truth::Nowhere => Verdict::Wrong(edited.matcher),
        Truth::Each { ideal } if *ideal == edited.text => Verdict::Landed(edited.matcher),
        Truth::Each { .. } => Verdict::Wrong(edited.matcher),
        Truth::At { range, .. } if !is_within(&case.file, range, &edited.text) => {
            Verdict::Wrong(edited.matcher)
        }
        Truth::At { ideal: Some(ideal), .. } if *ideal != edited.text => Verdict::Off(edited.matcher),
        Truth::At { .. } => Verdict::Landed(edited.matcher),
    }
}

/// Tells whether all that changed lies in a range of the file.
fn is_within(file: &str, range: &Range<usize>, text: &str) -> bool {
    let (before, after) = (&file[..range.start], &file[range.end..]);
    let Some(rest) = text.strip_prefix(before) else { return false };
    rest.strip_suffix(after)
        .is_some_and(|changed| changed.matches(MARK).count() == text.matches(MARK).count())
}

/// How the cases of one kind ended.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) n_exact: usize,
    pub(crate) n_loose: usize,
    pub(crate) n_ambiguous: usize,
    pub(crate) n_refused: usize,
    /// No case could be made: the file has nothing of the kind, or what came of it is in the file to the letter.
    pub(crate) n_left_out: usize,
    /// What went wrong, in full.
    pub(crate) wrong: Vec<String>,
    /// What landed and does not read as it should.
    pub(crate) off: Vec<String>,
    matchers: BTreeMap<EditMatcher, usize>,
}

impl Tally {
    pub(crate) fn add(&mut self, name: &str, case: &Case, verdict: &Verdict) {
        let told =
            |matcher: EditMatcher| format!("{name}, {matcher}\nold {:?}\nnew {:?}", case.old, case.new);
        match verdict {
            Verdict::Landed(matcher) => {
                *self.matchers.entry(*matcher).or_default() += 1;
                if *matcher == EditMatcher::Exact { self.n_exact += 1 } else { self.n_loose += 1 }
            }
            Verdict::Refused(EditRefusal::Ambiguous { .. }) => self.n_ambiguous += 1,
            Verdict::Refused(_) => self.n_refused += 1,
            Verdict::Wrong(matcher) => self.wrong.push(told(*matcher)),
            Verdict::Off(matcher) => self.off.push(told(*matcher)),
        }
    }

    pub(crate) fn n_landed(&self) -> usize {
        self.n_exact + self.n_loose + self.off.len()
    }

    pub(crate) fn n_cases(&self) -> usize {
        self.n_landed() + self.n_ambiguous + self.n_refused + self.wrong.len()
    }
}

/// Shows how the cases of each kind ended.
pub(crate) fn table(tallies: &[(Kind, Tally)]) -> String {
    let mut out =
        format!("{:<30} {}\n", "kind", "  cases   exact   loose  ambig.  refused   wrong     off  matchers");
    let mut row = |name: &str, n: [usize; 7], matchers: &str| {
        let [cases, exact, loose, ambiguous, refused, wrong, off] = n;
        let _ = writeln!(
            out,
            "{name:<30} {cases:>7} {exact:>7} {loose:>7} {ambiguous:>7} {refused:>8} {wrong:>7} {off:>7}  {matchers}"
        );
    };
    let numbers = |tally: &Tally| {
        let (wrong, off) = (tally.wrong.len(), tally.off.len());
        [tally.n_cases(), tally.n_exact, tally.n_loose, tally.n_ambiguous, tally.n_refused, wrong, off]
    };
    let mut sums = [0; 7];
    for (kind, tally) in tallies {
        let matchers: Vec<String> =
            tally.matchers.iter().map(|(matcher, n)| format!("{matcher:?} {n}")).collect();
        row(kind.name, numbers(tally), &matchers.join(", "));
        sums.iter_mut().zip(numbers(tally)).for_each(|(sum, n)| *sum += n);
    }
    row("all", sums, "");
    out
}
