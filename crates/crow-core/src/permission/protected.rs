//! Finds what a line names of the places that are protected in every mode.

use super::command::{Court, Why, described, is_fed, outputs};
use super::denials::SHELLS;
use super::folders::Way;
use super::names::{may_name_folder, may_name_git, may_name_secret};
use super::paths::{Place, Target, is_protected, is_secret, may_begin_protected};
use super::programs::Does;
use super::risks::{Risk, base, risks};
use super::scripts::program_texts;
use super::variables::Variables;
use super::written::{Written, changes_files, may_change, values, written};
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
        if self.feeds_changes() {
            let mut words = self.all.iter().flat_map(|simple| &simple.words);
            let mut documents = self.all.iter().flat_map(|simple| &simple.documents);
            let name = words.find_map(|word| self.spelled_in(word));
            let name = name.or_else(|| documents.find_map(|text| named_roughly(self.law, text)));
            if let Some(name) = name {
                return Some(format!("it names {name}, which is protected, and may change what it names"));
            }
        }
        let texts = self.all.iter().flat_map(|simple| program_texts(simple));
        if let Some(name) = texts.filter_map(|text| named_roughly(self.law, text)).next() {
            return Some(format!("it runs a program that names {name}, which is protected"));
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

    /// Whether a command changes files, or runs what it reads, and another one tells it which.
    fn feeds_changes(&self) -> bool {
        let is_told = |simple: &Simple| {
            let program = simple.words.first().and_then(Word::whole).map(base).unwrap_or_default();
            let mut inner = simple.inner.iter().flat_map(|inner| &inner.commands);
            match program {
                "xargs" | "find" | "gfind" | "fd" | "fdfind" => inner.any(changes),
                "parallel" | "flock" | "watch" | "strace" | "ltrace" | "entr" | "unbuffer" | "chronic"
                | "script" => {
                    let mut words =
                        simple.words.iter().skip(1).filter_map(Word::whole).flat_map(str::split_whitespace);
                    words.any(|word| changes_files(base(word)))
                }
                _ => SHELLS.contains(&program) && is_fed(simple, false),
            }
        };
        self.all.iter().any(|simple| is_told(simple))
    }

    /// Finds a protected name in a word, also where the word is a text that names it.
    fn spelled_in(&self, word: &Word) -> Why {
        match word.whole() {
            Some(text) => named_roughly(self.law, text),
            None => self.is_guarded(word, Access::Changes).then(|| described(word)),
        }
    }

    /// Whether a word names what is protected, or may name it.
    fn is_guarded(&self, word: &Word, access: Access) -> bool {
        // From a folder that nobody knows these may be a repository's own.
        let is_lost = self.route.way == Way::Anywhere && self.route.places.len() == 1;
        let of_git = |word: &Word| {
            let first = word.text.split('/').find(|name| !["", ".", ".."].contains(name)).unwrap_or_default();
            is_lost && access == Access::Changes && GIT_INSIDE.contains(&first)
        };
        let is_it = |word: &Word| of_git(word) || is_guarded(word, access, &self.place, self.law.roots);
        self.variables.readings(word).iter().any(is_it)
    }
}

/// What in a repository's own folder has Git run programs.
const GIT_INSIDE: &[&str] = &["config", "config.worktree", "hooks", "modules", "worktrees", "commondir"];

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
        Target::At(path) | Target::Unknown(path) => {
            is_secret(&path, roots) || (changes && is_protected(&path, roots))
        }
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
    program.is_some_and(changes_files) || may_change(simple) || risks(&simple.words).iter().any(writes)
}
