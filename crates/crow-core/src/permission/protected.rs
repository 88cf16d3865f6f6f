//! Finds what a line names of the places that are protected in every mode.

use super::command::{Court, Why, described, outputs};
use super::names::{may_name_folder, may_name_git, may_name_secret};
use super::paths::{Place, Target, is_git, is_secret, may_begin_protected};
use super::programs::Does;
use super::risks::{Risk, base, risks};
use super::variables::Variables;
use super::written::{Written, changes_files, values, written};
use super::{Law, Roots, harmless};
use crate::shell::{self, Direction, Simple, Word};

/// What is done to what a word names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Reads,
    Changes,
}

impl Court<'_> {
    /// Finds what always asks: writing to a protected place, and, unless all is free, naming a key.
    pub(super) fn protected(&self, is_free: bool) -> Why {
        for word in self.all.iter().flat_map(|simple| outputs(simple)) {
            if self.is_guarded(word, Access::Changes) {
                return Some(format!("it writes to {}, which is protected", described(word)));
            }
            if !self.variables.readings(word).iter().all(Word::has_known_part) {
                return Some("it writes to a file whose name is not known".to_owned());
            }
        }
        for Written { certain, possible } in self.all.iter().map(|simple| written(simple)) {
            let mut words = certain.iter().chain(&possible);
            if let Some(word) = words.find(|word| self.is_guarded(word, Access::Changes)) {
                return Some(format!("it changes {}, which is protected", described(word)));
            }
        }
        let named = self.all.iter().find_map(|simple| self.named(simple, is_free));
        let named = named.map(|text| format!("it names {text}, which is protected"));
        named.or_else(|| self.set().map(|text| format!("it changes files by a variable that is {text}")))
    }

    /// Finds a protected place in a variable of a line that changes what is not known.
    fn set(&self) -> Why {
        let mut values =
            self.all.iter().flat_map(|simple| &simple.assignments).map(|assignment| &assignment.value);
        let value = values.find(|value| self.is_guarded(value, Access::Changes))?;
        let is_open = |word: &Word| word.whole().is_none();
        let changes = |simple: &&Simple| {
            outputs(simple).into_iter().any(is_open) || (changes(simple) && simple.words.iter().any(is_open))
        };
        self.all.iter().any(changes).then(|| value.text.clone())
    }

    /// Finds a protected place in the words of a command.
    fn named(&self, simple: &Simple, is_free: bool) -> Option<String> {
        let goes = goes(simple);
        let access = if goes || changes(simple) { Access::Changes } else { Access::Reads };
        if is_free && access == Access::Reads {
            return None;
        }
        let has_plain_words = harmless::needs_no_rule(simple) && !goes;
        let n_words = if has_plain_words { 0 } else { simple.words.len() };
        let inputs = simple.redirections.iter().filter(|redirection| redirection.direction == Direction::In);
        let words = simple.words.iter().take(n_words).skip(1);
        let mut words = words.chain(inputs.map(|redirection| &redirection.target)).flat_map(values);
        words.find(|word| self.is_guarded(word, access)).map(|word| word.text)
    }

    /// Whether a word names what is protected, or may name it.
    fn is_guarded(&self, word: &Word, access: Access) -> bool {
        self.variables.readings(word).iter().any(|word| is_guarded(word, access, &self.place, self.law.roots))
    }
}

/// Whether one reading of a word names what is protected, or may name it.
fn is_guarded(word: &Word, access: Access, place: &Place<'_>, roots: &Roots) -> bool {
    let changes = access == Access::Changes;
    if !word.rest.is_empty() {
        return may_name_secret(word, roots)
            || may_begin_protected(word, place, roots)
            || (changes && (may_name_git(word) || may_name_folder(word, &roots.repository)));
    }
    match place.target(word) {
        Target::Nowhere => false,
        Target::At(path) | Target::Unknown(path) => is_secret(&path, roots) || (changes && is_git(&path)),
    }
}

/// Finds what a line that was not understood seems to name of what is protected.
pub(super) fn named_roughly(law: &Law<'_>, line: &str) -> Why {
    let Some(words) = shell::rough_words(line) else {
        return Some("what is too long to look through".into());
    };
    let cwd = law.roots.work.first().map(String::as_str);
    let place = Place { cwd, resolve: law.resolve };
    let variables = Variables::collect(&[], cwd);
    let is_named = |word: &Word| {
        let readings = variables.readings(word);
        readings.iter().any(|word| is_guarded(word, Access::Changes, &place, law.roots))
    };
    words.iter().find(|word| is_named(word)).map(described)
}

/// Tells whether a command goes to the folder it names.
fn goes(simple: &Simple) -> bool {
    let program = simple.words.first().and_then(Word::whole).map(base);
    program.is_some_and(|program| ["cd", "pushd"].contains(&program))
}

/// Tells whether a command changes the files it is given.
fn changes(simple: &Simple) -> bool {
    let program = simple.words.first().and_then(Word::whole).map(base);
    let writes = |risk: &Risk| risk.does == Does::Writes;
    program.is_some_and(changes_files) || risks(&simple.words).iter().any(writes)
}
