//! What in the words of one command asks even under a rule. Compares words with the table of programs;
//! wherever programs read options in different ways, the dangerous way counts.

use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

use super::paths::plain;
use super::programs::{
    Does, ENDED, EXEMPT, FED, FED_GIT, GENERIC, HARMLESS, LONE, LOOKS, NAMES_WITH_AT, PASSED, ROWS, Row,
    UNBUNDLED, VALUED, Where,
};
use super::scripts;
use crate::shell::{Extent, Word};

/// A word that makes a program do more than its rule was written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Risk {
    /// Its place among the words; a rule that spells it out covers it.
    pub(super) at: usize,
    /// What it does.
    pub(super) does: Does,
    /// The same for a person, with the program as subject.
    pub(super) why: &'static str,
}

/// Finds the risks in the words of a command.
pub(super) fn risks(words: &[Word]) -> Vec<Risk> {
    let Some(program) = words.first().and_then(Word::whole) else { return Vec::new() };
    let rows = rows(program);
    let command = Command::new(words, program, &rows);
    let mut risks: Vec<Risk> = rows.iter().flat_map(|row| command.row(row)).collect();
    if !rows.is_empty() {
        risks.extend(command.unknown());
    }
    risks.extend(command.generic());
    risks.extend(scripts::risks(command.program, words));
    if let Some((at, module)) = command.module() {
        risks.extend(self::risks(&module).into_iter().map(|risk| Risk { at: risk.at + at, ..risk }));
    }
    risks
}

/// Tells whether a command does what its input says.
pub(super) fn reads_program(words: &[Word]) -> bool {
    let Some(program) = words.first().and_then(Word::whole) else { return false };
    let rows = rows(program);
    let command = Command::new(words, program, &rows);
    if let Some((_, module)) = command.module() {
        return reads_program(&module);
    }
    let is_given = |option| {
        let mut words = words.iter().enumerate().skip(1);
        words.any(|(at, word)| command.is(&word.text, option, at))
    };
    let feeds = |row: &&Row| {
        let has = |wanted| row.options.split(' ').any(|option| option == wanted);
        let is_named = |option| has(option) && is_given(option);
        has("0") && (command.is_bare() || is_named("-") || is_named("-s"))
    };
    let is_fed = FED.split(' ').any(|fed| fed == command.program);
    let mut subcommands = command.subcommands();
    let mut is_git = || {
        command.program == "git"
            && subcommands.any(|(_, word)| FED_GIT.split(' ').any(|fed| fed == word.text))
    };
    is_fed || rows.iter().any(feeds) || is_git()
}

/// Counts the words a rule covers at the beginning of a command; it need not name options that change nothing.
pub(super) fn covered(rule: &[String], words: &[Word]) -> Option<usize> {
    let program = words.first().and_then(Word::whole).map(base).unwrap_or_default();
    let passed = PASSED.iter().find(|(name, _)| *name == program).map_or("", |(_, options)| options);
    let is_passed =
        |word: &&Word| word.whole().is_some_and(|word| passed.split(' ').any(|option| option == word));
    let mut at = 0;
    for (place, expected) in rule.iter().enumerate() {
        let is_it = |word: &Word| word.whole() == Some(expected.as_str());
        if place == 1 && !words.get(at).is_some_and(is_it) {
            at += words.iter().skip(at).take_while(is_passed).count();
        }
        words.get(at).filter(|word| is_it(word))?;
        at += 1;
    }
    Some(at)
}

/// The places of each program's rows in the table.
static PLACES: LazyLock<HashMap<&'static str, Vec<usize>>> = LazyLock::new(|| {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, row) in ROWS.iter().enumerate() {
        row.programs.split(' ').for_each(|program| places.entry(program).or_default().push(place));
    }
    places
});

fn rows(program: &str) -> Vec<&'static Row> {
    let program = base(program);
    let versionless = Some(unversioned(program)).filter(|name| *name != program);
    let names = [Some(program), versionless].into_iter().flatten();
    let mut places: Vec<usize> = names.filter_map(|name| PLACES.get(name)).flatten().copied().collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().filter_map(|place| ROWS.get(place)).collect()
}

/// Tells whether a word stands for what is already open, above all the input.
pub(super) fn is_input(word: &str) -> bool {
    let path = plain(Path::new(word));
    word == "-" || path.starts_with("/dev") || path.starts_with("/proc")
}

/// Programs of which `-m` names another.
const PYTHONS: &[&str] = &["python", "pypy"];

/// Shows a program's name without its folder.
pub(super) fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Cuts off a version, as in `python3.12`.
pub(super) fn unversioned(program: &str) -> &str {
    let plain =
        program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-');
    if plain.is_empty() { program } else { plain }
}

struct Command<'a> {
    words: &'a [Word],
    program: &'a str,
    rows: &'a [&'a Row],
    /// Where no word is an option any more.
    end: usize,
}

impl<'a> Command<'a> {
    fn new(words: &'a [Word], program: &'a str, rows: &'a [&'a Row]) -> Self {
        let program = unversioned(base(program));
        // After an option it may be a value.
        let ends = |at: &usize| {
            words[*at].whole() == Some("--") && (*at == 1 || !words[at - 1].text.starts_with('-'))
        };
        let end = (1..words.len()).find(ends).filter(|_| ENDED.contains(&program));
        Self { words, program, rows, end: end.unwrap_or(words.len()) }
    }

    fn row(&self, row: &Row) -> Vec<Risk> {
        let places = match row.place {
            Where::Anywhere => 1..self.words.len(),
            Where::InFront => 1..self.subcommands().last().map_or(self.words.len(), |(at, _)| at),
            Where::With(name) if self.subcommands().any(|(_, word)| word.text == name) => 1..self.words.len(),
            Where::With(_) => return Vec::new(),
            Where::Subcommand => {
                let ends = self.subcommands().map(|(at, _)| at);
                ends.clone().min().unwrap_or(0)..ends.max().map_or(0, |last| last + 1)
            }
        };
        let risk = |at| Risk { at, does: row.does, why: row.why };
        let mut risks = Vec::new();
        for option in row.options.split(' ').filter(|option| !option.is_empty()) {
            match option {
                "0" if self.is_bare() => risks.push(risk(self.words.len())),
                "0" => {}
                "*" => risks.extend(self.operands().next().map(|(at, _)| risk(at))),
                "#2" => risks.extend(self.operands().nth(1).map(|(at, _)| risk(at))),
                _ => {
                    let found = places.clone().filter(|&at| self.is(&self.words[at].text, option, at));
                    risks.extend(found.map(risk));
                }
            }
        }
        risks
    }

    /// Finds what most programs read the same way: options that name a program or a place, and files with more words.
    fn generic(&self) -> Vec<Risk> {
        let is_exempt = |name: &str| {
            let of_program = EXEMPT.iter().filter(|(program, _)| *program == self.program);
            of_program.flat_map(|(_, names)| names.split(' ')).any(|other| other == name)
                || LOOKS.split_whitespace().any(|other| other == name)
        };
        let takes_names = NAMES_WITH_AT.split(' ').any(|name| name == self.program);
        let mut risks = Vec::new();
        for (at, word) in self.words.iter().enumerate().skip(1) {
            let name = word.text.split_once('=').map_or(word.text.as_str(), |(name, _)| name);
            if name.starts_with("--") {
                let of_option = GENERIC.iter().find(|(start, ..)| name.starts_with(start));
                let of_option = of_option.filter(|_| !is_exempt(name));
                risks.extend(of_option.map(|(_, does, why)| Risk { at, does: *does, why }));
            }
            if word.text.starts_with('@') && word.text.len() > 1 && !takes_names {
                risks.push(Risk { at, does: Does::Runs, why: "takes its words from a file" });
            }
        }
        risks
    }

    /// Tells whether nothing but options follows the program, and none that only shows something.
    fn is_bare(&self) -> bool {
        let shows = ["--version", "-V", "-v", "--help", "-h"];
        self.operands().next().is_none()
            && self.module().is_none()
            && !self.words.iter().any(|word| shows.contains(&word.text.as_str()))
    }

    /// Shows what may be the subcommand: the first operand, and while it may be an option's value, the next.
    fn subcommands(&self) -> impl Iterator<Item = (usize, &Word)> + Clone {
        let is_value = |at: usize| {
            let before = self.words[at - 1].text.as_str();
            at > 1 && before.starts_with('-') && !before.contains('=') && !LONE.contains(&before)
        };
        let n_values = self.operands().take_while(|(at, _)| is_value(*at)).count();
        self.operands().take(n_values + 1)
    }

    fn operands(&self) -> impl Iterator<Item = (usize, &Word)> + Clone {
        let is_operand = |word: &Word| word.text == "-" || !word.text.starts_with('-');
        self.words.iter().enumerate().skip(1).filter(move |(_, word)| is_operand(word))
    }

    /// Finds the module that `python -m` runs, with its words and their place.
    fn module(&self) -> Option<(usize, Vec<Word>)> {
        if !PYTHONS.contains(&self.program) {
            return None;
        }
        let flags = |letter| "bBdEhiIOPqsSuvx".contains(letter);
        let is_it = |word: &Word| {
            word.text
                .strip_prefix('-')
                .is_some_and(|bundle| bundle.trim_start_matches(flags).starts_with('m'))
        };
        // A value in front of it may look like an operand.
        let at = self.words.iter().skip(1).position(is_it)? + 1;
        let (_, joined) = self.words[at].text.split_once('m')?;
        let (at, mut words) = if joined.is_empty() {
            (at + 1, self.words.get(at + 1..)?.to_vec())
        } else {
            (at, self.words[at..].to_vec())
        };
        let name = words.first_mut()?;
        if !joined.is_empty() {
            name.text = joined.to_owned();
        }
        // It is no module itself, so this comes to an end.
        (!PYTHONS.contains(&unversioned(base(&name.text)))).then_some((at, words))
    }

    fn is(&self, word: &str, option: &str, at: usize) -> bool {
        if option.starts_with('-') && option.len() > 1 && at > self.end {
            return false;
        }
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        if option == "-" {
            return is_input(word);
        }
        if option == "=" {
            return word.contains('=') && !word.starts_with('-');
        }
        if option == "|" {
            return word.starts_with('|');
        }
        if option == "+" {
            return word.starts_with('+');
        }
        if option.starts_with("--") {
            return self.is_long(name, word, option);
        }
        match option.strip_prefix('-') {
            Some(letter) if letter.len() == 1 => self.has_letter(word, letter, at),
            // Single-dash words: some programs take them with two dashes, and joined to a value by any letter.
            Some(long) => {
                let name = name.trim_start_matches('-');
                // A test of this language takes the options of its tool so.
                let name = name.strip_prefix("test.").filter(|_| self.program == "go").unwrap_or(name);
                name == long && word.starts_with('-') || joins(word, option)
            }
            None if option.ends_with(['=', ':', '/']) || option == "~" => word.starts_with(option),
            None => word == option,
        }
    }

    fn is_long(&self, name: &str, word: &str, option: &str) -> bool {
        let harmless = HARMLESS.iter().find(|(program, _)| *program == self.program);
        let is_other = harmless.is_some_and(|(_, options)| options.split(' ').any(|other| other == name));
        match option.strip_suffix('=') {
            Some(option) => name == option && word.contains('='),
            // An abbreviation is an option as well.
            None => name == option || (name.len() > "--".len() && option.starts_with(name) && !is_other),
        }
    }

    /// Looks for a letter in a bundle of one-letter options.
    fn has_letter(&self, word: &str, letter: &str, at: usize) -> bool {
        if UNBUNDLED.contains(&self.program) {
            let rest = word.strip_prefix('-').and_then(|bundle| bundle.strip_prefix(letter));
            return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('=') || letter == "B");
        }
        // The oldest way to call `tar` has no dash.
        let is_old = at == 1 && self.program.ends_with("tar") && !word.starts_with('-');
        let bundle = match word.strip_prefix('-') {
            Some(bundle) if !bundle.starts_with('-') => bundle,
            None if is_old => word,
            _ => return false,
        };
        let valued =
            VALUED.iter().find(|(program, _)| *program == self.program).map_or("", |(_, letters)| letters);
        let end = bundle.find(|other: char| valued.contains(other)).map_or(bundle.len(), |end| end + 1);
        bundle.find(letter).is_some_and(|place| place < end || is_old)
    }

    /// What is not known before it runs may become any of the options.
    fn unknown(&self) -> Option<Risk> {
        let has_options = self.rows.iter().any(|row| row.options.contains('-'));
        let may_be = |word: &Word| {
            let is_open =
                word.extent >= Extent::Begins && word.text.starts_with('-') && !word.text.contains('=');
            has_options && (word.may_be_option() || is_open)
        };
        let at = self.words[..self.end].iter().skip(1).position(may_be)? + 1;
        Some(Risk { at, does: Does::Runs, why: "gets words that are not known before it runs" })
    }
}

/// Tells whether a single-dash word has its value joined, as in `-fplugin=x` or `-Bdir`.
fn joins(word: &str, option: &str) -> bool {
    const JOINED: &[&str] =
        &["-XX", "-agentlib", "-agentpath", "-javaagent", "-Wl,", "-Wa,", "-Wp,", "-Xlinker", "-Xassembler"];
    JOINED.contains(&option) && word.starts_with(option)
}
