//! What in the words of one command asks even under a rule. Compares words with the table of programs;
//! wherever programs read options in different ways, the dangerous way counts.

use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

use super::paths::normalize_path;
use super::programs::{
    ENDED, EXEMPT, FED, FED_GIT, GENERIC, HARMLESS, LONE, LOOKS, NAMES_WITH_AT, PASSED, ROWS, RiskEffect,
    RiskRow, RiskScope, UNBUNDLED, VALUED,
};
use super::scripts;
use crate::shell::{KnownExtent, ShellWord};

/// A word that makes a program do more than its rule was written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommandRisk {
    /// Its place among the words; a rule that spells it out covers it.
    pub(super) at: usize,
    /// What it does.
    pub(super) does: RiskEffect,
    /// The same for a person, with the program as subject.
    pub(super) why: &'static str,
}

/// Finds the risks in the words of a command.
pub(super) fn find_risks(words: &[ShellWord]) -> Vec<CommandRisk> {
    let Some(program) = words.first().and_then(ShellWord::known_text) else { return Vec::new() };
    let rows = rows_for_program(program);
    let command = ProgramWords::new(words, program, &rows);
    let mut risks: Vec<CommandRisk> = rows.iter().flat_map(|row| command.row_risks(row)).collect();
    if !rows.is_empty() {
        risks.extend(command.unknown_word_risk());
    }
    risks.extend(command.generic_risks());
    risks.extend(scripts::find_script_risks(command.program, words));
    if let Some((at, module)) = command.python_module() {
        risks.extend(
            self::find_risks(&module).into_iter().map(|risk| CommandRisk { at: risk.at + at, ..risk }),
        );
    }
    risks
}

/// Tells whether a command does what its input says.
pub(super) fn reads_program(words: &[ShellWord]) -> bool {
    let Some(program) = words.first().and_then(ShellWord::known_text) else { return false };
    let rows = rows_for_program(program);
    let command = ProgramWords::new(words, program, &rows);
    if let Some((_, module)) = command.python_module() {
        return reads_program(&module);
    }
    let is_given = |option| {
        let mut words = words.iter().enumerate().skip(1);
        words.any(|(at, word)| command.matches_option(&word.text, option, at))
    };
    let feeds = |row: &&RiskRow| {
        let has = |wanted| row.options.split(' ').any(|option| option == wanted);
        let is_named = |option| has(option) && is_given(option);
        has("0") && (command.is_bare() || is_named("-") || is_named("-s"))
    };
    let is_fed = FED.split(' ').any(|fed| fed == command.program);
    let mut subcommands = command.subcommand_words();
    let mut is_git = || {
        command.program == "git"
            && subcommands.any(|(_, word)| FED_GIT.split(' ').any(|fed| fed == word.text))
    };
    is_fed || rows.iter().any(feeds) || is_git()
}

/// Counts the words a rule covers at the beginning of a command; it need not name options that change nothing.
pub(super) fn count_covered_words(rule: &[String], words: &[ShellWord]) -> Option<usize> {
    let program = words.first().and_then(ShellWord::known_text).map(program_name).unwrap_or_default();
    let passed = PASSED.iter().find(|(name, _)| *name == program).map_or("", |(_, options)| options);
    let is_passed = |word: &&ShellWord| {
        word.known_text().is_some_and(|word| passed.split(' ').any(|option| option == word))
    };
    let mut at = 0;
    for (place, expected) in rule.iter().enumerate() {
        let is_it = |word: &ShellWord| word.known_text() == Some(expected.as_str());
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

fn rows_for_program(program: &str) -> Vec<&'static RiskRow> {
    let program = program_name(program);
    let versionless = Some(strip_version(program)).filter(|name| *name != program);
    let names = [Some(program), versionless].into_iter().flatten();
    let mut places: Vec<usize> = names.filter_map(|name| PLACES.get(name)).flatten().copied().collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().filter_map(|place| ROWS.get(place)).collect()
}

/// Tells whether a word stands for what is already open, above all the input.
pub(super) fn is_input(word: &str) -> bool {
    let path = normalize_path(Path::new(word));
    word == "-" || path.starts_with("/dev") || path.starts_with("/proc")
}

/// Programs of which `-m` names another.
const PYTHONS: &[&str] = &["python", "pypy"];

/// Shows a program's name without its folder.
pub(super) fn program_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Cuts off a version, as in `python3.12`.
pub(super) fn strip_version(program: &str) -> &str {
    let plain =
        program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-');
    if plain.is_empty() { program } else { plain }
}

struct ProgramWords<'a> {
    words: &'a [ShellWord],
    program: &'a str,
    rows: &'a [&'a RiskRow],
    /// Where no word is an option any more.
    end: usize,
}

impl<'a> ProgramWords<'a> {
    fn new(words: &'a [ShellWord], program: &'a str, rows: &'a [&'a RiskRow]) -> Self {
        let program = strip_version(program_name(program));
        // After an option it may be a value.
        let ends = |at: &usize| {
            words[*at].known_text() == Some("--") && (*at == 1 || !words[at - 1].text.starts_with('-'))
        };
        let end = (1..words.len()).find(ends).filter(|_| ENDED.contains(&program));
        Self { words, program, rows, end: end.unwrap_or(words.len()) }
    }

    fn row_risks(&self, row: &RiskRow) -> Vec<CommandRisk> {
        let places = match row.place {
            RiskScope::Anywhere => 1..self.words.len(),
            RiskScope::InFront => 1..self.subcommand_words().last().map_or(self.words.len(), |(at, _)| at),
            RiskScope::With(name) if self.subcommand_words().any(|(_, word)| word.text == name) => {
                1..self.words.len()
            }
            RiskScope::With(_) => return Vec::new(),
            RiskScope::Subcommand => {
                let ends = self.subcommand_words().map(|(at, _)| at);
                ends.clone().min().unwrap_or(0)..ends.max().map_or(0, |last| last + 1)
            }
        };
        let risk = |at| CommandRisk { at, does: row.does, why: row.why };
        let mut risks = Vec::new();
        for option in row.options.split(' ').filter(|option| !option.is_empty()) {
            match option {
                "0" if self.is_bare() => risks.push(risk(self.words.len())),
                "0" => {}
                "*" => risks.extend(self.operand_words().next().map(|(at, _)| risk(at))),
                "#2" => risks.extend(self.operand_words().nth(1).map(|(at, _)| risk(at))),
                _ => {
                    let found =
                        places.clone().filter(|&at| self.matches_option(&self.words[at].text, option, at));
                    risks.extend(found.map(risk));
                }
            }
        }
        risks
    }

    /// Finds what most programs read the same way: options that name a program or a place, and files with more words.
    fn generic_risks(&self) -> Vec<CommandRisk> {
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
                risks.extend(of_option.map(|(_, does, why)| CommandRisk { at, does: *does, why }));
            }
            if word.text.starts_with('@') && word.text.len() > 1 && !takes_names {
                risks.push(CommandRisk { at, does: RiskEffect::Runs, why: "takes its words from a file" });
            }
        }
        risks
    }

    /// Tells whether nothing but options follows the program, and none that only shows something.
    fn is_bare(&self) -> bool {
        let shows = ["--version", "-V", "-v", "--help", "-h"];
        self.operand_words().next().is_none()
            && self.python_module().is_none()
            && !self.words.iter().any(|word| shows.contains(&word.text.as_str()))
    }

    /// Shows what may be the subcommand: the first operand, and while it may be an option's value, the next.
    fn subcommand_words(&self) -> impl Iterator<Item = (usize, &ShellWord)> + Clone {
        let is_value = |at: usize| {
            let before = self.words[at - 1].text.as_str();
            at > 1 && before.starts_with('-') && !before.contains('=') && !LONE.contains(&before)
        };
        let n_values = self.operand_words().take_while(|(at, _)| is_value(*at)).count();
        self.operand_words().take(n_values + 1)
    }

    fn operand_words(&self) -> impl Iterator<Item = (usize, &ShellWord)> + Clone {
        let is_operand = |word: &ShellWord| word.text == "-" || !word.text.starts_with('-');
        self.words.iter().enumerate().skip(1).filter(move |(_, word)| is_operand(word))
    }

    /// Finds the module that `python -m` runs, with its words and their place.
    fn python_module(&self) -> Option<(usize, Vec<ShellWord>)> {
        if !PYTHONS.contains(&self.program) {
            return None;
        }
        let flags = |letter| "bBdEhiIOPqsSuvx".contains(letter);
        let is_it = |word: &ShellWord| {
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
        (!PYTHONS.contains(&strip_version(program_name(&name.text)))).then_some((at, words))
    }

    fn matches_option(&self, word: &str, option: &str, at: usize) -> bool {
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
            return self.matches_long_option(name, word, option);
        }
        match option.strip_prefix('-') {
            Some(letter) if letter.len() == 1 => self.has_letter(word, letter, at),
            // Single-dash words: some programs take them with two dashes, and joined to a value by any letter.
            Some(long) => {
                let name = name.trim_start_matches('-');
                // A test of this language takes the options of its tool so.
                let name = name.strip_prefix("test.").filter(|_| self.program == "go").unwrap_or(name);
                name == long && word.starts_with('-') || has_joined_value(word, option)
            }
            None if option.ends_with(['=', ':', '/']) || option == "~" => word.starts_with(option),
            None => word == option,
        }
    }

    fn matches_long_option(&self, name: &str, word: &str, option: &str) -> bool {
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
    fn unknown_word_risk(&self) -> Option<CommandRisk> {
        let has_options = self.rows.iter().any(|row| row.options.contains('-'));
        let may_be = |word: &ShellWord| {
            let is_open =
                word.extent >= KnownExtent::Begins && word.text.starts_with('-') && !word.text.contains('=');
            has_options && (word.may_be_option() || is_open)
        };
        let at = self.words[..self.end].iter().skip(1).position(may_be)? + 1;
        Some(CommandRisk { at, does: RiskEffect::Runs, why: "gets words that are not known before it runs" })
    }
}

/// Tells whether a single-dash word has its value joined, as in `-fplugin=x` or `-Bdir`.
fn has_joined_value(word: &str, option: &str) -> bool {
    const JOINED: &[&str] =
        &["-XX", "-agentlib", "-agentpath", "-javaagent", "-Wl,", "-Wa,", "-Wp,", "-Xlinker", "-Xassembler"];
    JOINED.contains(&option) && word.starts_with(option)
}
