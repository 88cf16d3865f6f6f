//! The words of a command that ask even under a rule. Compares words with the risk table; if programs parse options
//! differently, the dangerous way counts.

use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

use super::paths::normalize_path;
use super::program_names::{program_name, strip_version};
use super::risk_table::{
    CommandRisk, DISPLAY_OPTIONS, DOUBLE_DASH_PROGRAMS, EXEMPT_OPTIONS, GENERIC_OPTIONS, HARMLESS_OPTIONS,
    IGNORED_OPTIONS, INPUT_GIT_SUBCOMMANDS, INPUT_PROGRAMS, NAMES_WITH_AT, ROWS, RiskEffect, RiskRow,
    RiskScope, UNBUNDLED_PROGRAMS, VALUED_LETTERS, VALUELESS,
};
use super::scripts;
use crate::shell::{KnownExtent, ShellWord, SimpleCommand};

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
            self::find_risks(&module)
                .into_iter()
                .map(|risk| CommandRisk { word_index: risk.word_index + at, ..risk }),
        );
    }
    risks
}

/// Whether a command runs the program text in its input.
pub(super) fn reads_program(words: &[ShellWord]) -> bool {
    let Some(program) = words.first().and_then(ShellWord::known_text) else { return false };
    let rows = rows_for_program(program);
    let command = ProgramWords::new(words, program, &rows);
    if let Some((_, module)) = command.python_module() {
        return reads_program(&module);
    }
    let has_option = |option| {
        let mut words = words.iter().enumerate().skip(1);
        words.any(|(at, word)| command.matches_option(&word.text, option, at))
    };
    let reads_input = |row: &&RiskRow| {
        let has = |wanted| row.options.split(' ').any(|option| option == wanted);
        let is_named = |option| has(option) && has_option(option);
        has("0") && (command.is_bare() || is_named("-") || is_named("-s"))
    };
    let reads_commands = INPUT_PROGRAMS.split(' ').any(|fed| fed == command.program);
    let mut subcommands = command.subcommand_words();
    let mut is_git_input = || {
        command.program == "git"
            && subcommands.any(|(_, word)| INPUT_GIT_SUBCOMMANDS.split(' ').any(|fed| fed == word.text))
    };
    reads_commands || rows.iter().any(reads_input) || is_git_input()
}

/// Returns the scripts in a command, if it is an interpreter that gets one.
pub(super) fn program_texts(simple: &SimpleCommand) -> Vec<&str> {
    let words = &simple.words;
    let Some(program) = words.first().and_then(ShellWord::known_text) else { return Vec::new() };
    if !scripts::is_interpreter(program) {
        return Vec::new();
    }
    let is_text = |word: &&ShellWord| word.known_text().is_some_and(|text| !text.starts_with("--"));
    let runs_text = find_risks(words).iter().any(|risk| risk.effect == RiskEffect::Runs);
    let texts = words.iter().skip(1).filter(|_| runs_text).filter(is_text).map(|word| word.text.as_str());
    let documents = simple.documents.iter().map(String::as_str).filter(|_| reads_program(words));
    texts.chain(documents).collect()
}

/// Counts the leading words that a rule covers; it may omit harmless options.
pub(super) fn count_covered_words(rule: &[String], words: &[ShellWord]) -> Option<usize> {
    let program = words.first().and_then(ShellWord::known_text).map(program_name).unwrap_or_default();
    let ignored_options =
        IGNORED_OPTIONS.iter().find(|(name, _)| *name == program).map_or("", |(_, options)| options);
    let is_ignored = |word: &&ShellWord| {
        word.known_text().is_some_and(|word| ignored_options.split(' ').any(|option| option == word))
    };
    let mut at = 0;
    for (place, expected) in rule.iter().enumerate() {
        let matches_word = |word: &ShellWord| word.known_text() == Some(expected.as_str());
        if place == 1 && !words.get(at).is_some_and(matches_word) {
            at += words.iter().skip(at).take_while(is_ignored).count();
        }
        words.get(at).filter(|word| matches_word(word))?;
        at += 1;
    }
    Some(at)
}

/// The row indices of each program in the table.
static PROGRAM_ROWS: LazyLock<HashMap<&'static str, Vec<usize>>> = LazyLock::new(|| {
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
    let mut places: Vec<usize> = names.filter_map(|name| PROGRAM_ROWS.get(name)).flatten().copied().collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().filter_map(|place| ROWS.get(place)).collect()
}

/// Whether a word names an open file, such as stdin.
pub(super) fn is_input(word: &str) -> bool {
    let path = normalize_path(Path::new(word));
    word == "-" || path.starts_with("/dev") || path.starts_with("/proc")
}

/// Programs with `-m MODULE`.
const PYTHONS: &[&str] = &["python", "pypy"];

struct ProgramWords<'a> {
    words: &'a [ShellWord],
    program: &'a str,
    rows: &'a [&'a RiskRow],
    /// The index after which no word is an option.
    options_end: usize,
}

impl<'a> ProgramWords<'a> {
    fn new(words: &'a [ShellWord], program: &'a str, rows: &'a [&'a RiskRow]) -> Self {
        let program = strip_version(program_name(program));
        // After an option it may be a value.
        let ends = |at: &usize| {
            words[*at].known_text() == Some("--") && (*at == 1 || !words[at - 1].text.starts_with('-'))
        };
        let end = (1..words.len()).find(ends).filter(|_| DOUBLE_DASH_PROGRAMS.contains(&program));
        Self { words, program, rows, options_end: end.unwrap_or(words.len()) }
    }

    fn row_risks(&self, row: &RiskRow) -> Vec<CommandRisk> {
        let places = match row.scope {
            RiskScope::Anywhere => 1..self.words.len(),
            RiskScope::BeforeOperands => {
                1..self.subcommand_words().last().map_or(self.words.len(), |(at, _)| at)
            }
            RiskScope::WithSubcommand(name) if self.subcommand_words().any(|(_, word)| word.text == name) => {
                1..self.words.len()
            }
            RiskScope::WithSubcommand(_) => return Vec::new(),
            RiskScope::Subcommand => {
                let ends = self.subcommand_words().map(|(at, _)| at);
                ends.clone().min().unwrap_or(0)..ends.max().map_or(0, |last| last + 1)
            }
        };
        let risk = |at| CommandRisk { word_index: at, effect: row.effect, reason: row.reason };
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

    /// Finds risks that most programs share: options that name a program or a path, and files of arguments.
    fn generic_risks(&self) -> Vec<CommandRisk> {
        let is_exempt = |name: &str| {
            let of_program = EXEMPT_OPTIONS.iter().filter(|(program, _)| *program == self.program);
            of_program.flat_map(|(_, names)| names.split(' ')).any(|other| other == name)
                || DISPLAY_OPTIONS.split_whitespace().any(|other| other == name)
        };
        let takes_names = NAMES_WITH_AT.split(' ').any(|name| name == self.program);
        let mut risks = Vec::new();
        for (at, word) in self.words.iter().enumerate().skip(1) {
            let name = word.text.split_once('=').map_or(word.text.as_str(), |(name, _)| name);
            if name.starts_with("--") {
                let of_option = GENERIC_OPTIONS.iter().find(|(start, ..)| name.starts_with(start));
                let of_option = of_option.filter(|_| !is_exempt(name));
                risks.extend(of_option.map(|(_, does, reason)| CommandRisk {
                    word_index: at,
                    effect: *does,
                    reason,
                }));
            }
            if word.text.starts_with('@') && word.text.len() > 1 && !takes_names {
                risks.push(CommandRisk {
                    word_index: at,
                    effect: RiskEffect::Runs,
                    reason: "reads arguments from a file",
                });
            }
        }
        risks
    }

    /// Whether only options follow the program, and none that only shows information.
    fn is_bare(&self) -> bool {
        let info_options = ["--version", "-V", "-v", "--help", "-h"];
        self.operand_words().next().is_none()
            && self.python_module().is_none()
            && !self.words.iter().any(|word| info_options.contains(&word.text.as_str()))
    }

    /// Returns the possible subcommands: the first operand and, while it may be an option's value, the next.
    fn subcommand_words(&self) -> impl Iterator<Item = (usize, &ShellWord)> + Clone {
        let is_value = |at: usize| {
            let before = self.words[at - 1].text.as_str();
            at > 1 && before.starts_with('-') && !before.contains('=') && !VALUELESS.contains(&before)
        };
        let n_values = self.operand_words().take_while(|(at, _)| is_value(*at)).count();
        self.operand_words().take(n_values + 1)
    }

    fn operand_words(&self) -> impl Iterator<Item = (usize, &ShellWord)> + Clone {
        let is_operand = |word: &ShellWord| word.text == "-" || !word.text.starts_with('-');
        self.words.iter().enumerate().skip(1).filter(move |(_, word)| is_operand(word))
    }

    /// Returns the module that `python -m` runs, with its words and their index.
    fn python_module(&self) -> Option<(usize, Vec<ShellWord>)> {
        if !PYTHONS.contains(&self.program) {
            return None;
        }
        let flags = |letter| "bBdEhiIOPqsSuvx".contains(letter);
        let has_module_option = |word: &ShellWord| {
            word.text
                .strip_prefix('-')
                .is_some_and(|bundle| bundle.trim_start_matches(flags).starts_with('m'))
        };
        // A preceding value may look like an operand.
        let at = self.words.iter().skip(1).position(has_module_option)? + 1;
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
        // The module is no interpreter itself, so the recursion ends.
        (!PYTHONS.contains(&strip_version(program_name(&name.text)))).then_some((at, words))
    }

    fn matches_option(&self, word: &str, option: &str, at: usize) -> bool {
        if option.starts_with('-') && option.len() > 1 && at > self.options_end {
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
            // Single-dash words: some programs accept them with two dashes, and with a joined value.
            Some(long) => {
                let name = name.trim_start_matches('-');
                // A Go test accepts options of the go tool with this prefix.
                let name = name.strip_prefix("test.").filter(|_| self.program == "go").unwrap_or(name);
                name == long && word.starts_with('-') || has_joined_value(word, option)
            }
            None if option.ends_with(['=', ':', '/']) || option == "~" => word.starts_with(option),
            None => word == option,
        }
    }

    fn matches_long_option(&self, name: &str, word: &str, option: &str) -> bool {
        let harmless = HARMLESS_OPTIONS.iter().find(|(program, _)| *program == self.program);
        let is_other = harmless.is_some_and(|(_, options)| options.split(' ').any(|other| other == name));
        match option.strip_suffix('=') {
            Some(option) => name == option && word.contains('='),
            // An abbreviation is also an option.
            None => name == option || (name.len() > "--".len() && option.starts_with(name) && !is_other),
        }
    }

    /// Finds a letter in a bundle of one-letter options.
    fn has_letter(&self, word: &str, letter: &str, at: usize) -> bool {
        if UNBUNDLED_PROGRAMS.contains(&self.program) {
            let rest = word.strip_prefix('-').and_then(|bundle| bundle.strip_prefix(letter));
            return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('=') || letter == "B");
        }
        // The traditional syntax of `tar` has no dash.
        let is_old = at == 1 && self.program.ends_with("tar") && !word.starts_with('-');
        let bundle = match word.strip_prefix('-') {
            Some(bundle) if !bundle.starts_with('-') => bundle,
            None if is_old => word,
            _ => return false,
        };
        let valued = VALUED_LETTERS
            .iter()
            .find(|(program, _)| *program == self.program)
            .map_or("", |(_, letters)| letters);
        let end = bundle.find(|other: char| valued.contains(other)).map_or(bundle.len(), |end| end + 1);
        bundle.find(letter).is_some_and(|place| place < end || is_old)
    }

    /// A word unknown before the command runs may become any option.
    fn unknown_word_risk(&self) -> Option<CommandRisk> {
        let has_options = self.rows.iter().any(|row| row.options.contains('-'));
        let may_be = |word: &ShellWord| {
            let is_open =
                word.extent >= KnownExtent::Prefix && word.text.starts_with('-') && !word.text.contains('=');
            has_options && (word.may_be_option() || is_open)
        };
        let at = self.words[..self.options_end].iter().skip(1).position(may_be)? + 1;
        Some(CommandRisk {
            word_index: at,
            effect: RiskEffect::Runs,
            reason: "gets words that are unknown before it runs",
        })
    }
}

/// Whether a single-dash word has a joined value, as in `-fplugin=x` or `-Bdir`.
fn has_joined_value(word: &str, option: &str) -> bool {
    const JOINED: &[&str] =
        &["-XX", "-agentlib", "-agentpath", "-javaagent", "-Wl,", "-Wa,", "-Wp,", "-Xlinker", "-Xassembler"];
    JOINED.contains(&option) && word.starts_with(option)
}
