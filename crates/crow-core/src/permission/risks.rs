//! What in the words of one command asks even under a rule. Compares words with the table of programs;
//! wherever programs read options in different ways, the dangerous way counts.

use super::programs::{Does, HARMLESS, LONE, ROWS, Row, UNBUNDLED, VALUED, Where};
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
    let program = base(program);
    let rows: Vec<&Row> = ROWS.iter().filter(|row| names(row, program)).collect();
    let command = Command { words, program: unversioned(program), rows: &rows };
    let mut risks: Vec<Risk> = rows.iter().flat_map(|row| command.row(row)).collect();
    if !rows.is_empty() {
        risks.extend(command.unknown());
    }
    risks.extend(scripts::risk(command.program, words));
    risks
}

/// Shows a program's name without its folder.
pub(super) fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Cuts off a version, as in `python3.12`.
fn unversioned(program: &str) -> &str {
    let plain =
        program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-');
    if plain.is_empty() { program } else { plain }
}

fn names(row: &Row, program: &str) -> bool {
    row.programs.split(' ').any(|name| name == program || name == unversioned(program))
}

struct Command<'a> {
    words: &'a [Word],
    program: &'a str,
    rows: &'a [&'a Row],
}

impl Command<'_> {
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

    /// Tells whether nothing but options follows the program, and none that only shows something.
    fn is_bare(&self) -> bool {
        let shows = ["--version", "-V", "-v", "--help", "-h"];
        self.operands().next().is_none() && !self.words.iter().any(|word| shows.contains(&word.text.as_str()))
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

    fn is(&self, word: &str, option: &str, at: usize) -> bool {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        if option == "-" {
            return word == "-";
        }
        if option == "=" {
            return word.contains('=') && !word.starts_with('-');
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
                name.trim_start_matches('-') == long && word.starts_with('-') || joins(word, option)
            }
            None if option.ends_with(['=', ':']) => word.starts_with(option),
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
        let at = self.words.iter().skip(1).position(may_be)? + 1;
        Some(Risk { at, does: Does::Runs, why: "gets words that are not known before it runs" })
    }
}

/// Tells whether a single-dash word has its value joined, as in `-fplugin=x` or `-Bdir`.
fn joins(word: &str, option: &str) -> bool {
    ["-XX", "-agentlib", "-agentpath", "-javaagent"].contains(&option) && word.starts_with(option)
}
