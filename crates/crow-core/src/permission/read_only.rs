//! Whether a line only reads what may be read freely: then it needs no rule and no question, in any mode. Strict: a
//! program outside the reader table does not only read.

use super::cd_route::CdScope;
use super::command_evaluation::{CommandEvaluation, risky_assignment};
use super::file_lists::{FIND_FLAGS, FIND_VALUED};
use super::harmless;
use super::key_patterns::{selects_keys, selects_tracked_keys};
use super::paths::{WordTarget, is_inside, is_key_path, is_readable, is_secret};
use super::policy::DirectoryLink;
use super::program_names::program_name;
use super::protected_names::may_name_any_key;
use super::reader_words::{ParsedWords, is_one_word, parse_words};
use super::readers::{READERS, ReaderOperands, ReaderProgram};
use super::risks::find_risks;
use crate::shell::{KnownExtent, RedirectDirection, ShellWord, SimpleCommand, WordPiece, WrapperEffect};

/// Wrappers without an effect of their own.
pub(super) const WRAPPERS: &[&str] =
    &["time", "timeout", "nice", "env", "command", "stdbuf", "eval", "sh", "bash", "dash"];

/// Builtins without effect outside the shell, for any words.
const BUILTINS: &[&str] = &["true", "false", ":", "exit", "break", "continue", "return", "cd", "shift"];

/// Options of Git itself that change nothing.
const GIT_OPTIONS: &[&str] = &["--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"];

/// Words that make `git branch`, `git tag` and `git config` list.
const LIST_OPTIONS: &[&str] = &[
    "-l",
    "--list",
    "--get",
    "--get-all",
    "--get-regexp",
    "--contains",
    "--no-contains",
    "--merged",
    "--no-merged",
    "--points-at",
    "--show-current",
];

impl CommandEvaluation<'_> {
    /// Whether the line only reads, inside the roots and nothing protected.
    pub(super) fn only_reads(&self, commands: &[SimpleCommand]) -> bool {
        let evaluation = Self { may_change_directory: true, ..self.clone() };
        !commands.is_empty() && commands.iter().all(|simple| evaluation.command_only_reads(simple))
    }

    pub(super) fn command_only_reads(&self, simple: &SimpleCommand) -> bool {
        if risky_assignment(simple).is_some() {
            return false;
        }
        let is_free_redirection = |redirection: &crate::shell::Redirection| match redirection.direction {
            RedirectDirection::In => self.is_free_file(&redirection.target, true),
            RedirectDirection::Out => self.resolver.resolve_word(&redirection.target) == WordTarget::Device,
        };
        if !simple.redirections.iter().all(is_free_redirection) {
            return false;
        }
        let Some(program) = simple.words.first() else { return true };
        let Some(program) = program.known_text().and_then(plain_name) else { return false };
        if let Some(inner) = &simple.inner {
            let is_plain = WRAPPERS.contains(&program)
                && inner.effect == WrapperEffect::Transparent
                && !reads_startup_files(simple);
            let reads = || inner.commands.iter().all(|command| self.command_only_reads(command));
            return (is_plain && reads()) || self.reads_found(program, simple);
        }
        let words = &simple.words[1..];
        match program {
            _ if BUILTINS.contains(&program) => {
                self.reason_for_leaving(simple).is_none()
                    && words.iter().all(|word| program == "cd" || word.known_text().is_some())
            }
            "echo" => words.iter().all(|word| self.is_free_text(word)),
            "printf" | "set" => {
                harmless::needs_no_rule(simple) && words.iter().all(|word| self.is_free_text(word))
            }
            "wait" => harmless::needs_no_rule(simple),
            "tee" => {
                let mut files = words.iter().filter(|word| !word.text.starts_with('-'));
                harmless::needs_no_rule(simple)
                    && files.all(|word| self.resolver.resolve_word(word) == WordTarget::Device)
            }
            "test" | "[" => self.is_free_test(words),
            "[[" => harmless::needs_no_rule(simple) && self.is_free_test(words),
            "tar" | "gtar" | "bsdtar" => self.lists_archive(words),
            "command" => {
                words.len() == 2
                    && ["-v", "-V"].contains(&words[0].text.as_str())
                    && words[1].known_text().is_some()
            }
            "find" | "gfind" => self.is_free_find(words, false),
            _ => self.is_reader(program, simple),
        }
    }

    /// Whether `tar` lists an archive.
    fn lists_archive(&self, words: &[ShellWord]) -> bool {
        let [mode, files @ ..] = words else { return false };
        let letters = mode.text.trim_start_matches('-');
        let is_listing = mode.known_text().is_some()
            && letters.contains('t')
            && letters.ends_with('f')
            && letters.chars().all(|letter| "tvzjJf".contains(letter));
        // A colon names another machine.
        let is_plain = |word: &ShellWord| {
            word.known_text().is_some_and(|text| !text.starts_with('-') && !text.contains(':'))
        };
        let archive = files.first();
        is_listing
            && files.iter().all(is_plain)
            && archive.is_some_and(|archive| self.is_free_file(archive, true))
    }

    /// Whether `find` only lists files that may be read freely; `reads` if their content is shown.
    pub(super) fn is_free_find(&self, words: &[ShellWord], reads: bool) -> bool {
        let n_starts = words.iter().take_while(|word| !word.text.starts_with(['-', '(', '!', ','])).count();
        let (search_roots, tests) = words.split_at(n_starts);
        let mut tests = tests.iter();
        while let Some(test) = tests.next() {
            let Some(name) = test.known_text() else { return false };
            match name {
                _ if FIND_FLAGS.contains(&name) => {}
                _ if FIND_VALUED.contains(&name) && tests.next().is_some_and(is_one_word) => {}
                _ => return false,
            }
        }
        let here = [ShellWord::from_text(".")];
        let search_roots = if search_roots.is_empty() { &here } else { search_roots };
        search_roots.iter().all(|word| !may_be_option(word) && self.is_free_file(word, reads))
    }

    /// Whether the reader table contains a command with all its options, and its operands are free to read.
    pub(super) fn is_reader(&self, program: &str, simple: &SimpleCommand) -> bool {
        let words = &simple.words[1..];
        if program == "git" {
            // The configuration of another repository may name programs.
            let is_other = !self.may_change_directory && self.cd_route.scope >= CdScope::InsideRoots
                || self.cd_route.may_change_repository(self.policy);
            // A value may name a file, as in `-L 1,5:FILE`.
            let names_key = |word: &ShellWord| {
                let readings = self.variables.word_readings(word);
                readings.iter().any(|word| word.text.split([':', '=', ',', ')']).any(is_key_path))
            };
            if is_other || words.iter().any(names_key) {
                return false;
            }
        }
        // It reads its arguments from such a file.
        let names_arguments = |word: &ShellWord| {
            self.variables.word_readings(word).iter().any(|reading| reading.text.starts_with('@'))
        };
        if program == "strings" && words.iter().any(names_arguments) {
            return false;
        }
        if ["sed", "gsed", "awk", "gawk", "mawk", "nawk", "jq"].contains(&program) && !only_prints(simple) {
            return false;
        }
        READERS.iter().filter(|reader| reader.names.split_whitespace().any(|name| name == program)).any(
            |reader| {
                let words = match reader.subcommands {
                    "" => Some(words),
                    names => names.split_whitespace().find_map(|name| after_subcommand(words, name)),
                };
                words.is_some_and(|words| self.fits_reader(reader, words))
            },
        )
    }

    fn fits_reader(&self, reader: &ReaderProgram, words: &[ShellWord]) -> bool {
        let is_help = matches!(words, [word] if word.known_text() == Some("--help"));
        if is_help && reader.subcommands.is_empty() && reader.operands != ReaderOperands::OptionRequired {
            return true;
        }
        let Some(ParsedWords { operands, has_pattern, filters }) = parse_words(reader, words) else {
            return false;
        };
        if filters.iter().flat_map(|filter| self.variables.word_readings(filter)).any(|it| selects_keys(&it))
        {
            return false;
        }
        let are_certain = match reader.is_always_harmless {
            true => !operands.iter().any(|word| self.reads_as_option(word)),
            false => operands.iter().all(|word| !may_be_option(word)),
        };
        let are_free =
            |words: &[&ShellWord], reads: bool| words.iter().all(|word| self.is_free_file(word, reads));
        let are_found = |words: &[&ShellWord]| {
            let is_git = reader.names == "git";
            are_free(words, true) && (!is_git || words.iter().all(|word| self.is_free_revision(word)))
        };
        are_certain
            && match reader.operands {
                ReaderOperands::None => operands.is_empty(),
                ReaderOperands::OptionRequired => operands.is_empty() && !words.is_empty(),
                ReaderOperands::OneName => {
                    operands.len() == 1 && operands[0].known_text().is_some_and(|name| name.contains('.'))
                }
                ReaderOperands::Text => operands.iter().all(|word| self.is_free_text(word)),
                ReaderOperands::Files => are_free(&operands, true),
                ReaderOperands::Names => are_free(&operands, false),
                ReaderOperands::OneFile => operands.len() <= 1 && are_free(&operands, true),
                ReaderOperands::Format => {
                    operands.iter().all(|word| word.text.starts_with('+') && word.known_text().is_some())
                }
                ReaderOperands::Revisions => operands.iter().all(|word| self.is_free_revision(word)),
                ReaderOperands::TextWithListOption => {
                    let is_listed = words.iter().any(|word| {
                        LIST_OPTIONS
                            .contains(&word.text.split_once('=').map_or(word.text.as_str(), |(name, _)| name))
                    });
                    operands.is_empty()
                        || (is_listed && operands.iter().all(|word| word.known_text().is_some()))
                }
                ReaderOperands::PatternThenFiles => match operands.split_first() {
                    _ if has_pattern => are_found(&operands),
                    Some((pattern, files)) => is_one_word(pattern) && are_found(files),
                    None => false,
                },
            }
    }

    /// Whether a word names files that may be read freely; `reads` if their content is shown.
    pub(super) fn is_free_file(&self, word: &ShellWord, reads: bool) -> bool {
        self.variables.word_readings(word).iter().all(|word| match word.known_text() {
            Some("-") => true,
            Some(_) => self.word_targets(word).iter().all(|target| match target {
                WordTarget::Device => true,
                WordTarget::Path(path) => self.is_free_path(path, reads),
                WordTarget::Unknown(_) => false,
            }),
            None => self.is_free_pattern(word, reads),
        })
    }

    /// Whether the matches of a pattern may be read freely: it begins in a free directory, and its unknown part can
    /// be no key and does not leave that directory.
    fn is_free_pattern(&self, word: &ShellWord, reads: bool) -> bool {
        let is_glob = |piece: &WordPiece| matches!(piece, WordPiece::Glob | WordPiece::Known(_));
        let known = word.pieces.iter().filter_map(|piece| match piece {
            WordPiece::Known(text) => Some(text.as_str()),
            WordPiece::Glob | WordPiece::Variable(_) | WordPiece::Unknown(_) => None,
        });
        let known: String = known.collect::<Vec<_>>().join("*");
        let (directory, start) = match word.text.rfind('/') {
            Some(end) => word.text.split_at(end + 1),
            None => (".", word.text.as_str()),
        };
        let directory = ShellWord::from_text(directory);
        let leaves = known.split('/').any(|name| name == "..") || (reads && known.contains('/'));
        word.extent == KnownExtent::Prefix
            && word.pieces.iter().all(is_glob)
            && !leaves
            && !(reads && may_name_any_key(word))
            && self.is_free_file(&directory, reads)
            && self.has_free_links(&directory, start, word, reads)
    }

    /// Whether the links among the matches of a pattern lead to free files.
    fn has_free_links(&self, directory: &ShellWord, start: &str, pattern: &ShellWord, reads: bool) -> bool {
        let is_deeper = |piece: &WordPiece| matches!(piece, WordPiece::Known(text) if text.contains('/'));
        let end = match pattern.pieces.last() {
            // The end of a longer path is not that of a name in this directory.
            Some(WordPiece::Known(text)) if !pattern.pieces.iter().any(is_deeper) => text.as_str(),
            Some(WordPiece::Known(_) | WordPiece::Glob | WordPiece::Variable(_) | WordPiece::Unknown(_))
            | None => "",
        };
        self.word_targets(directory).iter().all(|target| match target {
            WordTarget::Path(path) => {
                let is_match =
                    |link: &&DirectoryLink| link.name.starts_with(start) && link.name.ends_with(end);
                let is_free =
                    |link: &DirectoryLink| self.is_free_path(&link.target.display().to_string(), reads);
                let links = self.links_in(path);
                links.is_some_and(|links| links.iter().filter(is_match).all(is_free))
            }
            WordTarget::Device | WordTarget::Unknown(_) => false,
        })
    }

    /// Whether a path may be read freely; `reads` if its content is shown.
    fn is_free_path(&self, path: &str, reads: bool) -> bool {
        let roots = self.policy.roots;
        match reads {
            true => is_readable(path, roots),
            false => is_inside(path, &roots.work) && !is_secret(path, roots),
        }
    }

    /// Whether a text is free, including its matches among file names.
    pub(super) fn is_free_text(&self, word: &ShellWord) -> bool {
        let readings = self.variables.word_readings(word);
        let mut found = readings.iter().filter(|reading| reading.pieces.contains(&WordPiece::Glob));
        let finds = word.pieces.contains(&WordPiece::Glob);
        let is_home = word.extent == KnownExtent::Home || word.text.starts_with("~/");
        if finds || is_home {
            self.is_free_file(word, false)
        } else {
            found.all(|reading| self.is_free_file(reading, false))
        }
    }

    /// Whether an argument of Git names no key, and no file outside.
    fn is_free_revision(&self, word: &ShellWord) -> bool {
        self.variables.word_readings(word).iter().all(|word| match word.known_text() {
            Some(text) => {
                // `HEAD:FILE` and `:(top)FILE` also name files.
                let names_key = std::iter::once(text).chain(text.split([':', ')'])).any(is_key_path)
                    || selects_tracked_keys(text);
                let is_path = text.starts_with(['/', '~']) || text.split('/').any(|name| name == "..");
                !names_key && (!is_path || self.is_free_file(word, true))
            }
            None => self.is_free_pattern(word, true),
        })
    }
}

/// Returns the words after a subcommand of Git or another program, skipping harmless options.
fn after_subcommand<'a>(words: &'a [ShellWord], names: &str) -> Option<&'a [ShellWord]> {
    let n_options = words.iter().take_while(|word| GIT_OPTIONS.contains(&word.text.as_str())).count();
    let mut words = &words[n_options..];
    for name in names.split('+') {
        let (first, rest) = words.split_first()?;
        if first.known_text()? != name {
            return None;
        }
        words = rest;
    }
    Some(words)
}

/// Whether a shell reads startup files before its commands.
pub(super) fn reads_startup_files(simple: &SimpleCommand) -> bool {
    let program = simple.words.first().map(|word| program_name(&word.text)).unwrap_or_default();
    let is_option = |word: &&ShellWord| word.text.starts_with('-');
    let mut options = simple.words.iter().skip(1).take_while(is_option);
    ["sh", "bash", "dash"].contains(&program)
        && options.any(|word| {
            word.text == "--login" || !word.text.starts_with("--") && word.text.contains(['l', 'i'])
        })
}

/// Whether the script of a command only prints.
fn only_prints(simple: &SimpleCommand) -> bool {
    let risky_words =
        ["ARGV", "ENVIRON", "import", "include", "getline", "input_filename", "@load", "@include"];
    let has_risky_word = |word: &ShellWord| risky_words.iter().any(|odd| word.text.contains(odd));
    find_risks(&simple.words).is_empty() && !simple.words.iter().any(has_risky_word)
}

/// Returns a program's name if it alone determines the program.
pub(super) fn plain_name(program: &str) -> Option<&str> {
    let name = program_name(program);
    let directory = &program[..program.len() - name.len()];
    ["", "/bin/", "/usr/bin/"].contains(&directory).then_some(name)
}

/// Whether a word is an option, or may become one.
fn may_be_option(word: &ShellWord) -> bool {
    word.text.starts_with('-') && word.text != "-" || word.may_be_option()
}
