//! The commands that `accept-edits` allows: edits of project files, builds, tests and linters. Strict: a command
//! unknown to the tables is neither.

use super::autorun::is_autorun;
use super::build_programs::{ANYTHING, BuildProgram, DEPLOY_WORDS, RUNNERS, SCRIPTS, find_build_program};
use super::cd_route::CdScope;
use super::command_evaluation::{CommandEvaluation, risky_assignment};
use super::file_writes::may_change;
use super::harmless;
use super::paths::{WordTarget, is_git_head, is_inside, is_protected};
use super::program_names::program_name;
use super::read_only::{WRAPPERS, plain_name, reads_startup_files};
use super::risks::find_risks;
use super::written_files::word_values;
use crate::shell::{RedirectDirection, ShellWord, SimpleCommand, WrapperEffect};

/// The maximum effect of a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CommandEffect {
    /// Reads inside the roots.
    Reads,
    /// Changes files inside the roots that it names.
    Edits,
    /// Runs the project's own code, as builds and tests do.
    Builds,
}

/// Programs that create, copy, move and link files, with their harmless short and long options.
const EDIT_PROGRAMS: &[(&str, &str, &[&str])] = &[
    ("mkdir", "pv", &["--parents", "--verbose"]),
    ("touch", "acm", &["--no-create"]),
    ("cp", "aprRfnuvi", &["--recursive", "--archive", "--force", "--no-clobber", "--update", "--verbose"]),
    ("mv", "fnuvi", &["--force", "--no-clobber", "--update", "--verbose"]),
    ("ln", "sfnv", &["--symbolic", "--force", "--verbose"]),
];

/// Files that would run automatically in a directory of the right name.
const AUTORUN_FILES: &[&str] = &[
    "config.toml",
    "config",
    "config.json",
    "init.el",
    "autostart/x",
    "systemd/x",
    "git/x",
    "fish/x",
    "nvim/x",
    "zsh/x",
    "direnv/x",
    "environment.d/x",
    "launchagents/x",
];

impl CommandEvaluation<'_> {
    /// Returns the maximum effect of a line, if the tables know all of it.
    pub(super) fn max_effect(&self, commands: &[SimpleCommand]) -> Option<CommandEffect> {
        let effects = commands.iter().map(|simple| self.command_effect(simple));
        effects.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    fn command_effect(&self, simple: &SimpleCommand) -> Option<CommandEffect> {
        if self.command_only_reads(simple) {
            return Some(CommandEffect::Reads);
        }
        if self.cd_route.scope == CdScope::Anywhere || risky_assignment(simple).is_some() {
            return None;
        }
        let mut redirection_effect = CommandEffect::Reads;
        for redirection in &simple.redirections {
            match redirection.direction {
                RedirectDirection::In if self.is_free_file(&redirection.target, true) => {}
                RedirectDirection::Out if self.may_edit(&redirection.target) => {
                    redirection_effect = CommandEffect::Edits;
                }
                RedirectDirection::In | RedirectDirection::Out => return None,
            }
        }
        if simple.redirections.is_empty() {
            return self.effect_beyond_reading(simple);
        }
        let bare = SimpleCommand { redirections: Vec::new(), ..simple.clone() };
        if self.command_only_reads(&bare) {
            return Some(redirection_effect);
        }
        self.effect_beyond_reading(&bare).map(|effect| effect.max(redirection_effect))
    }

    /// Returns the effect of a command that has no redirections and is not read-only.
    fn effect_beyond_reading(&self, simple: &SimpleCommand) -> Option<CommandEffect> {
        let program = simple.words.first().and_then(ShellWord::known_text)?;
        if let Some(inner) = &simple.inner {
            let is_plain = inner.effect == WrapperEffect::Transparent && !reads_startup_files(simple);
            let is_known = plain_name(program).is_some_and(|name| WRAPPERS.contains(&name));
            return (is_plain && is_known).then(|| self.max_effect(&inner.commands)).flatten();
        }
        let name = plain_name(program).unwrap_or_default();
        if name == "tee" {
            let files = simple.words.iter().skip(1).filter(|word| !word.text.starts_with('-'));
            let is_edit =
                harmless::needs_no_rule(simple) && files.into_iter().all(|word| self.may_edit(word));
            return is_edit.then_some(CommandEffect::Edits);
        }
        if self.only_edits(name, &simple.words) {
            return Some(CommandEffect::Edits);
        }
        self.only_builds(&simple.words).then_some(CommandEffect::Builds)
    }

    /// Whether a word names a file that an edit may change.
    fn may_edit(&self, word: &ShellWord) -> bool {
        self.all_targets(word, |path| self.may_edit_path(path))
    }

    fn may_edit_path(&self, path: &str) -> bool {
        is_inside(path, &self.policy.roots.work)
            && !is_protected(path, self.policy.roots, self.policy.files)
            && !is_git_head(path)
            && !is_autorun(path)
    }

    /// Whether a command that a rule allows may write to the target of a word: an edit of the project may, or a rule
    /// or a grant allows it.
    pub(super) fn may_output(&self, word: &ShellWord) -> bool {
        self.all_targets(word, |path| self.may_edit_path(path) || may_change(self.policy, self.grants, path))
    }

    /// Whether a predicate holds for all targets of a word, and all are known.
    fn all_targets(&self, word: &ShellWord, holds: impl Fn(&str) -> bool) -> bool {
        let readings = self.variables.word_readings(word);
        let mut targets = readings.iter().flat_map(|word| self.word_targets(word));
        targets.all(|target| match target {
            WordTarget::Device => true,
            WordTarget::Path(path) => holds(&path),
            WordTarget::Unknown(_) => false,
        })
    }

    /// Whether a command only creates, copies, moves or links files inside the roots that it names.
    fn only_edits(&self, program: &str, words: &[ShellWord]) -> bool {
        if program == "sed" {
            return self.edits_in_place(words);
        }
        let Some((_, flags, long)) = EDIT_PROGRAMS.iter().find(|(name, ..)| *name == program) else {
            return false;
        };
        let n_options = words.iter().skip(1).take_while(|word| word.text.starts_with('-')).count();
        let (options, operands) = words[1..].split_at(n_options);
        let is_known = |word: &ShellWord| {
            let letters = word.text.trim_start_matches('-');
            word.known_text().is_some_and(|text| {
                text == "--"
                    || long.contains(&text)
                    || (!text.starts_with("--") && letters.chars().all(|letter| flags.contains(letter)))
            })
        };
        // Options after operands count as well.
        let is_option = |word: &ShellWord| word.text.starts_with('-') || self.reads_as_option(word);
        if !options.iter().all(is_known) || operands.iter().any(is_option) {
            return false;
        }
        let Some((last, sources)) = operands.split_last() else { return false };
        match program {
            "mkdir" | "touch" => operands.iter().all(|word| self.may_edit(word)),
            _ if sources.is_empty() => false,
            _ => {
                self.is_free_destination(last)
                    && sources.iter().all(|source| self.may_place(program, source, last))
            }
        }
    }

    /// Whether `sed -i` only replaces text in named files.
    fn edits_in_place(&self, words: &[ShellWord]) -> bool {
        let is_option =
            |word: &&ShellWord| ["-i", "-E", "-r", "-n", "-s", "-z", "-e"].contains(&word.text.as_str());
        let n_options = words.iter().skip(1).take_while(is_option).count();
        let (options, operands) = words[1..].split_at(n_options);
        let is_in_place = options.iter().any(|word| word.text == "-i");
        let has_risk = find_risks(words)
            .iter()
            .any(|risk| words.get(risk.word_index).is_none_or(|word| word.text != "-i"));
        let Some((script, files)) = operands.split_first() else { return false };
        if script.known_text() == Some("") {
            // On macOS it is the suffix of a copy, and the script follows.
            let at = 1 + n_options;
            return self.edits_in_place(&[&words[..at], &words[at + 1..]].concat());
        }
        is_in_place
            && !has_risk
            && script.known_text().is_some()
            && !files.is_empty()
            && files.iter().all(|file| {
                !file.text.starts_with('-')
                    && !self.reads_as_option(file)
                    && self.may_edit(file)
                    && self.is_free_file(file, true)
            })
    }

    /// Whether a destination is free, even if it is a directory that other programs look for by name.
    fn is_free_destination(&self, word: &ShellWord) -> bool {
        self.all_targets(word, |path| {
            self.may_edit_path(path)
                && !AUTORUN_FILES.iter().any(|file| is_autorun(&format!("{path}/{file}")))
        })
    }

    /// Whether a program may put a source at a destination.
    fn may_place(&self, program: &str, source: &ShellWord, last: &ShellWord) -> bool {
        let (sources, places) = (self.variables.word_readings(source), self.variables.word_readings(last));
        let ([source], [last]) = (sources.as_slice(), places.as_slice()) else { return false };
        let (Some(from), Some(to)) = (source.known_text(), last.known_text()) else { return false };
        let name = from.rsplit('/').next().unwrap_or(from);
        // The directory's content would be copied under unknown names.
        if ["", ".", ".."].contains(&name) {
            return false;
        }
        let destination = ShellWord::from_text(format!("{}/{name}", to.trim_end_matches('/')));
        let is_free = self.is_free_destination(&destination);
        match program {
            "ln" => {
                let link_dir = to.rfind('/').map_or("", |end| &to[..=end]);
                let target_prefix = format!("{to}/");
                let is_linked =
                    |start: &str| self.is_free_destination(&ShellWord::from_text(format!("{start}{from}")));
                let are_linked = if from.starts_with('/') {
                    is_linked("")
                } else {
                    ["", link_dir, &target_prefix].into_iter().all(is_linked)
                };
                is_free && are_linked
            }
            "mv" => is_free && self.may_edit(source),
            _ => is_free && self.is_free_file(source, true),
        }
    }

    /// Whether a command is a build, a test, a linter or a formatter of the table, without arguments that lead
    /// outside.
    fn only_builds(&self, words: &[ShellWord]) -> bool {
        let Some(words) =
            words.iter().map(|word| word.known_text().map(|_| word.clone())).collect::<Option<Vec<_>>>()
        else {
            return false;
        };
        self.is_build(&words)
    }

    fn is_build(&self, words: &[ShellWord]) -> bool {
        let Some((program, rest)) = words.split_first() else { return false };
        let texts: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
        let is_own = ["./gradlew", "./mvnw"].contains(&program.text.as_str());
        let name = if is_own { Some(program_name(&program.text)) } else { plain_name(&program.text) };
        let Some(name) = name else { return false };
        // These run a program of the project by name.
        let mut inner =
            RUNNERS.iter().filter(|(runner, _)| *runner == name).filter_map(|(_, verb)| match *verb {
                "" => Some(rest),
                verb => rest.split_first().filter(|(first, _)| first.text == verb).map(|(_, inner)| inner),
            });
        let is_plain = |words: &[ShellWord]| words.first().is_some_and(|word| !word.text.starts_with('-'));
        if inner.any(|inner| is_plain(inner) && self.is_build(inner)) {
            return true;
        }
        let is_known = match name {
            "python" | "python3" => {
                texts.first() == Some(&"-m") && texts.get(1).is_some_and(|it| MODULES.contains(it))
            }
            "cmake" if texts.first() == Some(&"--build") => !texts.iter().any(|word| is_deployment(word)),
            "cmake" => texts.iter().any(|word| ["-B", "-S"].contains(word)),
            _ => find_build_program(name).is_some_and(|builder| is_in_table(builder, &texts)),
        };
        is_known
            && find_risks(words).iter().all(|risk| {
                names_place(name, words, risk.word_index) && self.may_edit(&words[risk.word_index + 1])
            })
            && rest
                .iter()
                .filter(|word| !is_plain_option(&word.text))
                .flat_map(word_values)
                .all(|value| self.is_inside(&value))
    }

    /// Whether a value names nothing outside, including the parts after colons.
    fn is_inside(&self, value: &ShellWord) -> bool {
        let mut parts = value.text.split(':').skip(1).filter(|part| part.starts_with(['/', '~', '.']));
        self.may_edit(value) && parts.all(|part| self.may_edit(&ShellWord::from_text(part)))
    }
}

/// Options that name a directory or a settings file, which may belong to the project.
const PATH_OPTIONS: &[(&str, &str)] = &[
    ("make gmake ninja", "-C"),
    ("tsc vue-tsc", "-p --project"),
    ("go", "-o"),
    ("cargo", "--manifest-path"),
];

/// Whether a risk is only that an option names a path, which is the next word.
fn names_place(program: &str, words: &[ShellWord], at: usize) -> bool {
    let is_one = |list: &str, name: &str| list.split(' ').any(|one| one == name);
    at + 1 < words.len()
        && PATH_OPTIONS
            .iter()
            .any(|(programs, options)| is_one(programs, program) && is_one(options, &words[at].text))
}

/// Python modules that test, check or format.
const MODULES: &[&str] = &[
    "pytest",
    "unittest",
    "mypy",
    "black",
    "ruff",
    "flake8",
    "isort",
    "pylint",
    "compileall",
    "pyright",
    "doctest",
];

/// Whether an option has no value.
fn is_plain_option(text: &str) -> bool {
    text.starts_with('-') && !text.contains(['=', '/', '.', '~', ','])
}

/// Whether the table contains the words of a program.
fn is_in_table(builder: &BuildProgram, words: &[&str]) -> bool {
    let mut operands = words.iter().copied().filter(|word| !word.starts_with('-'));
    match builder.verbs {
        ANYTHING => !builder.has_targets || !words.iter().any(|word| is_deployment(word)),
        verbs => {
            let is_verb = |word: &str| verbs.split_whitespace().any(|verb| verb == word);
            let first = words.iter().position(|word| !word.starts_with('-'));
            let Some(first) = first else { return builder.runs_without_verb };
            // The value of a preceding option could be the verb.
            let verb = words[first];
            if verb == "run" && builder.has_scripts {
                let is_script = words.get(first + 1).is_some_and(|script| is_script(script));
                return is_script && !words.iter().any(|word| is_deployment(word));
            }
            let are_all = !builder.allows_verbs_only
                || operands.all(|word| is_verb(word.rsplit(':').next().unwrap_or(word)));
            (is_verb(verb) || (builder.has_scripts && builder.runs_scripts_directly && is_script(verb)))
                && are_all
                && !is_deployment(verb)
        }
    }
}

/// Whether a project script builds or checks, by its name.
fn is_script(name: &str) -> bool {
    let first = name.split([':', '-', '_']).next().unwrap_or_default();
    SCRIPTS.contains(&first) && !is_deployment(name)
}

/// Whether a target or a script deploys something, by its name.
fn is_deployment(name: &str) -> bool {
    name.split([':', '-', '_', '.', '/']).any(|part| DEPLOY_WORDS.contains(&part))
}
