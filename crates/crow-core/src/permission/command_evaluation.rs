//! The state of the evaluation of a line, and what all of its checks use.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use super::cd_route::{CdRoute, CdScope, find_cd_route};
use super::grants::GrantSet;
use super::harmless;
use super::paths::{PathResolver, WordTarget};
use super::policy::{DirectoryLink, EffectivePolicy};
use super::program_names::program_name;
use super::risks::{is_input, reads_program};
use super::variables::ShellVariables;
use crate::shell::{RedirectDirection, Redirection, ShellWord, SimpleCommand};

/// The reason to ask about a line; `None` if it is merely not allowed.
pub(super) type AskReason = Option<String>;

/// Programs whose input is a command line.
pub(super) const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "ash",
    "zsh",
    "fish",
    "ksh",
    "mksh",
    "csh",
    "tcsh",
    "rbash",
    "pwsh",
    "powershell",
    "at",
    "batch",
    "crontab",
    "parallel",
];

/// The evaluation of a parsed line.
#[derive(Clone)]
pub(super) struct CommandEvaluation<'a> {
    pub(super) policy: &'a EffectivePolicy<'a>,
    pub(super) grants: &'a GrantSet,
    /// All commands, including those that others run.
    pub(super) all_commands: Vec<&'a SimpleCommand>,
    pub(super) resolver: PathResolver<'a>,
    pub(super) cd_route: CdRoute,
    pub(super) variables: ShellVariables,
    /// Whether `git` may be free below the roots: only if the line makes no repository there, as one that only reads.
    pub(super) may_change_directory: bool,
    /// The links of directories that were looked at.
    pub(super) links: RefCell<BTreeMap<String, Option<Rc<[DirectoryLink]>>>>,
}

impl<'a> CommandEvaluation<'a> {
    pub(super) fn new(
        policy: &'a EffectivePolicy<'a>,
        grants: &'a GrantSet,
        commands: &'a [SimpleCommand],
    ) -> Self {
        let all_commands = flatten_commands(commands);
        let cd_route = find_cd_route(policy, &all_commands);
        let variables = ShellVariables::from_commands(&all_commands, cd_route.cwd(policy));
        let resolver = PathResolver { cwd: cd_route.cwd(policy), files: policy.files };
        Self {
            policy,
            grants,
            all_commands,
            resolver,
            cd_route,
            variables,
            may_change_directory: false,
            links: RefCell::default(),
        }
    }

    /// Returns the links in a directory, which is read once for all words.
    pub(super) fn links_in(&self, directory: &str) -> Option<Rc<[DirectoryLink]>> {
        if let Some(links) = self.links.borrow().get(directory) {
            return links.clone();
        }
        let links: Option<Rc<[DirectoryLink]>> =
            self.policy.files.links_in(Path::new(directory)).map(Rc::from);
        self.links.borrow_mut().insert(directory.to_owned(), links.clone());
        links
    }

    /// Resolves a reading of a word from each directory that the line may be in.
    pub(super) fn word_targets(&self, word: &ShellWord) -> Vec<WordTarget> {
        if self.cd_route.scope == CdScope::Anywhere {
            return vec![self.resolver.resolve_word(word)];
        }
        let places = self.cd_route.directories.iter().map(|place| place.display().to_string());
        places
            .map(|cwd| PathResolver { cwd: Some(&cwd), files: self.policy.files }.resolve_word(word))
            .collect()
    }

    /// Whether the value of a variable makes a word an option.
    pub(super) fn reads_as_option(&self, word: &ShellWord) -> bool {
        let is_option =
            |reading: &ShellWord| reading.text.starts_with('-') && reading.known_text() != Some("-");
        !word.pieces.is_empty() && self.variables.word_readings(word).iter().any(is_option)
    }

    /// Returns the reason to ask about a command that leaves the roots.
    pub(super) fn reason_for_leaving(&self, simple: &SimpleCommand) -> AskReason {
        let is_cd = simple.words.first().and_then(ShellWord::known_text) == Some("cd");
        (is_cd && self.cd_route.scope == CdScope::Anywhere)
            .then(|| "it changes to a directory that may be outside the project".to_owned())
    }
}

/// Returns the words that name output files of a command, including those of `tee`.
pub(super) fn output_words(simple: &SimpleCommand) -> Vec<&ShellWord> {
    let redirected =
        simple.redirections.iter().filter(|redirection| redirection.direction == RedirectDirection::Out);
    let mut words: Vec<&ShellWord> = redirected.map(|redirection| &redirection.target).collect();
    if simple
        .words
        .first()
        .and_then(ShellWord::known_text)
        .is_some_and(|program| program_name(program) == "tee")
    {
        words.extend(simple.words.iter().skip(1).filter(|word| !word.text.starts_with('-')));
    }
    words
}

pub(super) fn risky_assignment(simple: &SimpleCommand) -> Option<&str> {
    let names = simple.assignments.iter().map(|assignment| assignment.name.as_str());
    let is_for_program = !simple.words.is_empty();
    names.into_iter().find(|name| {
        let is_free = if is_for_program {
            harmless::is_harmless_variable(name)
        } else {
            harmless::is_harmless_shell_variable(name)
        };
        !is_free
    })
}

pub(super) fn describe_word(word: &ShellWord) -> String {
    if word.text.is_empty() { "an unknown place".to_owned() } else { word.text.clone() }
}

/// Whether a command runs commands from its input, so that its words say little.
pub(super) fn runs_commands_from_input(simple: &SimpleCommand, has_input: bool) -> bool {
    let is_in = |redirection: &Redirection| {
        redirection.direction == RedirectDirection::In && !is_input(&redirection.target.text)
    };
    let has_input = has_input || !simple.documents.is_empty() || simple.redirections.iter().any(is_in);
    let mut inner = simple.inner.iter().flat_map(|inner| &inner.commands);
    (reads_program(&simple.words) && !has_input)
        || inner.any(|inner| runs_commands_from_input(inner, has_input))
}

pub(super) fn flatten_commands(commands: &[SimpleCommand]) -> Vec<&SimpleCommand> {
    let mut all = Vec::new();
    commands.iter().for_each(|command| command.walk(&mut |simple| all.push(simple)));
    all
}
