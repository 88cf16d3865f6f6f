//! Finds the files and directories that Git settings refer to: included configuration, hooks, programs.

use std::collections::BTreeSet;

use super::{
    GitConfigError, is_plain_setting,
    settings::{GitSetting, parse_settings},
};

/// More than any user has; a longer configuration counts as invalid.
const MENTIONS_MAX: usize = 10_000;

/// The longest text that is examined.
pub(super) const BYTES_MAX: usize = 1024 * 1024;

/// A reference in a text that Git acts on. Paths are as written, relative to the work tree or, for included
/// configuration, to the directory of the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GitMention {
    /// Included configuration.
    Include(String),
    /// The work tree of the repository, relative to the repository.
    WorkTree(String),
    /// A directory whose programs are run, or copied to such a place.
    Directory(String),
    /// A file that Git runs or that determines what it runs, whether it exists or not.
    Program(String),
    /// A program that runs by an alias or a hook.
    Script(String),
    /// A word that may be one of these if such a file exists.
    PossiblePath(String),
}

/// Finds the references in a configuration.
pub fn git_mentions(text: &str) -> Result<Vec<GitMention>, GitConfigError> {
    if text.len() > BYTES_MAX {
        return Err(GitConfigError::TooLong);
    }
    let mut mentions = BTreeSet::new();
    for setting in parse_settings(text).ok_or(GitConfigError::Invalid)? {
        if !is_plain_setting(&setting.section, &setting.key, &setting.value) {
            add_mention(&setting, &mut mentions);
        }
        if mentions.len() > MENTIONS_MAX {
            return Err(GitConfigError::TooLong);
        }
    }
    Ok(mentions.into_iter().collect())
}

/// Finds the references in a hook script: every word with a directory, and arguments of interpreters.
pub fn script_mentions(text: &str) -> Vec<GitMention> {
    let is_code = |line: &&str| !line.trim_start().starts_with('#') || line.starts_with("#!");
    let words = text.lines().filter(is_code).flat_map(|line| line_mentions(line, LineKind::Script));
    words.take(MENTIONS_MAX).collect::<BTreeSet<_>>().into_iter().collect()
}

fn add_mention(setting: &GitSetting, mentions: &mut BTreeSet<GitMention>) {
    let value = setting.value.trim();
    if value.is_empty() {
        return;
    }
    match (setting.section.as_str(), setting.key.as_str()) {
        ("include" | "includeif", "path") => drop(mentions.insert(GitMention::Include(value.to_owned()))),
        ("core", "worktree") => drop(mentions.insert(GitMention::WorkTree(value.to_owned()))),
        ("core", "hookspath") | ("init", "templatedir") => {
            mentions.insert(GitMention::Directory(value.to_owned()));
        }
        ("core", "attributesfile") => drop(mentions.insert(GitMention::Program(value.to_owned()))),
        ("alias", _) if value.starts_with('!') => mentions.extend(line_mentions(value, LineKind::Script)),
        (section, key) if is_program(section, key) => {
            mentions.extend(line_mentions(value, LineKind::Command));
        }
        _ => mentions.extend(line_mentions(value, LineKind::Text)),
    }
}

/// Whether Git runs the value of a setting.
fn is_program(section: &str, key: &str) -> bool {
    const PROGRAM_KEY_SUFFIXES: [&str; 22] = [
        "askpass",
        "clean",
        "cmd",
        "command",
        "driver",
        "editor",
        "external",
        "fsmonitor",
        "gitproxy",
        "helper",
        "pager",
        "process",
        "program",
        "receivepack",
        "smudge",
        "sshcommand",
        "textconv",
        "uploadpack",
        "update",
        "vcs",
        "hook",
        "filter",
    ];
    section == "pager" || key == "path" || PROGRAM_KEY_SUFFIXES.iter().any(|end| key.ends_with(end))
}

/// The meaning of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// Git runs it, with arguments of its own.
    Command,
    /// An alias or a hook runs it.
    Script,
    /// Other text.
    Text,
}

/// Separators of commands and words.
const BREAKS: [char; 18] =
    [' ', '\t', '\n', '\r', '\'', '"', '`', ';', '|', '&', '(', ')', '<', '>', '{', '}', '=', ','];

/// Programs that run a file given as an argument.
const INTERPRETERS: [&str; 19] = [
    ".", "source", "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "perl", "ruby", "node",
    "deno", "bun", "php", "lua", "awk", "-f",
];

/// Words before a command.
const PREFIXES: [&str; 8] = ["exec", "env", "command", "time", "if", "then", "else", "do"];

/// Finds the words of a line that may be paths: whole ones and, since quotes may be nested, all pieces.
fn line_mentions(line: &str, kind: LineKind) -> Vec<GitMention> {
    let mut mentions = Vec::new();
    let mention = |word: &str, is_sure: bool| match kind {
        LineKind::Command if is_sure => GitMention::Program(word.to_owned()),
        LineKind::Script if is_sure => GitMention::Script(word.to_owned()),
        LineKind::Command | LineKind::Script | LineKind::Text => GitMention::PossiblePath(word.to_owned()),
    };
    let mut previous_words: [&str; 2] = ["", ""];
    let line = line.replace("${HOME}/", "~/").replace("$HOME/", "~/");
    for piece in line.split(BREAKS).filter(|piece| !piece.is_empty()) {
        let before = &line[..piece.as_ptr() as usize - line.as_ptr() as usize];
        let line_before = before.trim_end_matches([' ', '\t', '\'', '"', '!']);
        let is_first = line_before.is_empty()
            || line_before.ends_with([';', '|', '&', '(', '{', '`', '\n'])
            || PREFIXES.contains(&previous_words[1]);
        let is_script_argument =
            INTERPRETERS.contains(&previous_words[1].rsplit('/').next().unwrap_or_default());
        let piece = piece.trim_start_matches(['!', '#']);
        let is_sure = |path: &str| {
            is_script_argument || (path.contains('/') && (is_first || kind == LineKind::Command))
        };
        if previous_words[1] == "-m" && previous_words[0].contains("python") {
            // Python looks for the module in the working directory.
            let top = piece.split('.').next().unwrap_or_default();
            mentions.push(mention(&format!("./{top}.py"), true));
            mentions.push(mention(&format!("./{top}/__init__.py"), true));
            mentions.push(mention(&format!("./{top}/__main__.py"), true));
        }
        if let Some(rest) = after_expansion(piece, before.chars().next_back()) {
            let path = format!("./{rest}");
            mentions.push(mention(&path, is_sure(&path)));
        }
        for part in
            piece.split("::").filter(|part| is_path(part, is_script_argument || kind == LineKind::Command))
        {
            mentions.push(mention(part, is_sure(part)));
        }
        previous_words = [previous_words[1], piece];
    }
    // A path with spaces.
    let quoted = line.split(['"', '\'']).skip(1).filter(|text| text.contains(' ') && is_path(text, false));
    mentions.extend(quoted.map(|text| GitMention::PossiblePath(text.to_owned())));
    mentions
}

/// Returns the part of a path after an expansion that is only known at run time.
fn after_expansion(piece: &str, before: Option<char>) -> Option<&str> {
    if before.is_some_and(|letter| ['"', '\'', ')', '}', '`'].contains(&letter)) && piece.starts_with('/') {
        return Some(piece.trim_start_matches('/')).filter(|rest| !rest.is_empty());
    }
    let (_, behind) = piece.rsplit_once('$')?;
    let (_, rest) = behind.split_once('/')?;
    (!rest.is_empty()).then_some(rest)
}

fn is_path(word: &str, may_be_name: bool) -> bool {
    let is_named = word.contains('/') || may_be_name;
    is_named && !word.is_empty() && !word.starts_with('-') && !word.contains(['$', '*', '?', '%', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_mentions(text: &str, expected: &[&str]) {
        let shown: Vec<String> = git_mentions(text)
            .expect("it is understood")
            .into_iter()
            .map(|mention| match mention {
                GitMention::Include(path) => format!("include {path}"),
                GitMention::WorkTree(path) => format!("tree {path}"),
                GitMention::Directory(path) => format!("folder {path}"),
                GitMention::Program(path) => format!("program {path}"),
                GitMention::Script(path) => format!("script {path}"),
                GitMention::PossiblePath(path) => format!("perhaps {path}"),
            })
            .collect();
        for expected in expected {
            assert!(shown.iter().any(|shown| shown == expected), "{expected} is not in {shown:?}");
        }
        assert!(!expected.is_empty() || shown.is_empty(), "{shown:?}");
    }

    #[test]
    fn mentions_of_config_are_found() {
        check_mentions("[core]\nhooksPath = .husky/_\n", &["folder .husky/_"]);
        check_mentions("[include]\npath = ../.gitconfig\n", &["include ../.gitconfig"]);
        check_mentions("[includeIf \"gitdir:/\"]\npath = ~/x\n", &["include ~/x"]);
        check_mentions(
            "[core]\nattributesFile = attributes\nworktree=..\n",
            &["program attributes", "tree .."],
        );
        check_mentions("[filter \"f\"]\nclean = ./tools/f.sh %f\n", &["program ./tools/f.sh"]);
        check_mentions("[filter.f]\nclean = python3 f.py --x\n", &["program f.py"]);
        check_mentions(
            "[filter \"f\"]\nsmudge = python -m strip.it\n",
            &["program ./strip.py", "program ./strip/__main__.py"],
        );
        check_mentions("[diff \"d\"]\ntextconv = \"sh -c 'a/b \\\"$@\\\"'\"\n", &["program a/b"]);
        check_mentions(
            "[core]\nfsmonitor = \"$(git rev-parse --show-toplevel)/m.sh\"\n",
            &["program ./m.sh"],
        );
        check_mentions("[core]\nsshCommand = $HOME/bin/x -o A=./b\n", &["program ~/bin/x", "program ./b"]);
        check_mentions("[core]\nfsmonitor = \"\\\"my tools/x\\\"\"\n", &["perhaps my tools/x"]);
        check_mentions(
            "[alias]\nt = !./t.sh x/y\nu = -c core.pager=./p log\n",
            &["script ./t.sh", "perhaps x/y", "perhaps ./p"],
        );
        check_mentions("[alias]\nt = !cd \"$GIT_PREFIX/..\" && sh tools/t\n", &["script tools/t"]);
        check_mentions("[remote \"o\"]\nurl = ext::./r x\n", &["perhaps ./r"]);
        check_mentions("[gitflow \"prefix\"]\nfeature = feature/\n", &["perhaps feature/"]);
        check_mentions(
            "[remote \"o\"]\nurl = https://example.org/a\nfetch = +refs/heads/*:refs/remotes/o/*\n",
            &[],
        );
        check_mentions("[branch \"m\"]\nmerge = refs/heads/m\n[core]\nbare = false\n", &[]);
        assert_eq!(git_mentions("[core"), Err(GitConfigError::Invalid));
        assert_eq!(git_mentions(&" ".repeat(BYTES_MAX + 1)), Err(GitConfigError::TooLong));
    }

    #[test]
    fn mentions_of_hook_script_are_found() {
        let text =
            "#!/bin/sh\n# not/this\n. \"$(dirname \"$0\")/_/h\"\nexec tools/check src/main.rs\ncargo test\n";
        let mentions = script_mentions(text);
        for mention in [
            GitMention::PossiblePath("./_/h".to_owned()),
            GitMention::Script("tools/check".to_owned()),
            GitMention::PossiblePath("src/main.rs".to_owned()),
        ] {
            assert!(mentions.contains(&mention), "{mention:?} is not in {mentions:?}");
        }
        assert!(!mentions.iter().any(|mention| format!("{mention:?}").contains("not/this")));
    }
}
