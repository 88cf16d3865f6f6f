//! The outcome of a case. Knows the right place from the construction of the case, not from the matchers.

use std::{collections::BTreeMap, fmt::Write as _, ops::Range};

use crow_core::edit::{self, EditMatcher, EditOccurrences, EditRefusal};

use super::kinds::Kind;

/// A word that occurs in no source, including this one; every new text contains it.
pub(crate) const MARK: &str = concat!("crow_was", "_here");

/// An edit to try.
pub(crate) struct Case {
    pub(crate) file: String,
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) occurrences: EditOccurrences,
    pub(crate) truth: Truth,
}

/// The origin of the old text.
pub(crate) enum Truth {
    /// This range; nothing else may change. `ideal` is the expected file, if it is unambiguous.
    At { range: Range<usize>, ideal: Option<String> },
    /// Several places, with the expected file.
    Each { ideal: String },
    /// None in this file, or no unique place.
    Nowhere,
}

/// The outcome of a case.
pub(crate) enum Outcome {
    /// Applied at the right place.
    Applied(EditMatcher),
    /// Refused.
    Refused(EditRefusal),
    /// Applied elsewhere, or to another range.
    Wrong(EditMatcher),
    /// Applied at the right place, with another text than expected.
    OtherText(EditMatcher),
}

/// Runs a case.
pub(crate) fn run_case(case: &Case) -> Outcome {
    let edited = match edit::apply_edit(&case.file, &case.old, &case.new, case.occurrences) {
        Ok(edited) => edited,
        Err(refusal) => return Outcome::Refused(refusal),
    };
    match &case.truth {
        Truth::Nowhere => Outcome::Wrong(edited.matcher),
        Truth::Each { ideal } if *ideal == edited.text => Outcome::Applied(edited.matcher),
        Truth::Each { .. } => Outcome::Wrong(edited.matcher),
        Truth::At { range, .. } if !is_within(&case.file, range, &edited.text) => {
            Outcome::Wrong(edited.matcher)
        }
        Truth::At { ideal: Some(ideal), .. } if *ideal != edited.text => Outcome::OtherText(edited.matcher),
        Truth::At { .. } => Outcome::Applied(edited.matcher),
    }
}

/// Whether all changes are in a range of the file.
fn is_within(file: &str, range: &Range<usize>, text: &str) -> bool {
    let (before, after) = (&file[..range.start], &file[range.end..]);
    let Some(rest) = text.strip_prefix(before) else { return false };
    rest.strip_suffix(after)
        .is_some_and(|changed| changed.matches(MARK).count() == text.matches(MARK).count())
}

/// The outcomes of the cases of one kind.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) n_exact: usize,
    pub(crate) n_loose: usize,
    pub(crate) n_ambiguous: usize,
    /// The edits that were refused for another reason than several places.
    pub(crate) refused: Vec<String>,
    /// Cases that could not be built: the file has nothing of the kind, or contains the result exactly.
    pub(crate) n_left_out: usize,
    /// The wrong outcomes, in full.
    pub(crate) wrong: Vec<String>,
    /// The applied edits with another text than expected.
    pub(crate) off: Vec<String>,
    matchers: BTreeMap<EditMatcher, usize>,
}

impl Tally {
    pub(crate) fn add(&mut self, name: &str, case: &Case, verdict: &Outcome) {
        let told =
            |matcher: EditMatcher| format!("{name}, {matcher}\nold {:?}\nnew {:?}", case.old, case.new);
        match verdict {
            Outcome::Applied(matcher) => {
                *self.matchers.entry(*matcher).or_default() += 1;
                if *matcher == EditMatcher::Exact { self.n_exact += 1 } else { self.n_loose += 1 }
            }
            Outcome::Refused(EditRefusal::Ambiguous { .. }) => self.n_ambiguous += 1,
            Outcome::Refused(refusal) => {
                self.refused.push(format!("{name}, {refusal:?}\nold {:?}\nnew {:?}", case.old, case.new));
            }
            Outcome::Wrong(matcher) => self.wrong.push(told(*matcher)),
            Outcome::OtherText(matcher) => self.off.push(told(*matcher)),
        }
    }

    pub(crate) fn n_landed(&self) -> usize {
        self.n_exact + self.n_loose + self.off.len()
    }

    pub(crate) fn n_cases(&self) -> usize {
        self.n_landed() + self.n_ambiguous + self.refused.len() + self.wrong.len()
    }
}

/// Renders the outcomes by kind.
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
        [tally.n_cases(), tally.n_exact, tally.n_loose, tally.n_ambiguous, tally.refused.len(), wrong, off]
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
