//! What the settings of Git lead to: more configuration, folders of hooks, programs.

use std::collections::BTreeSet;

use super::{
    GitConfigError, is_plain_setting,
    settings::{GitSetting, parse_settings},
};

/// More than any person has; what is beyond is not understood.
const MENTIONS_MAX: usize = 10_000;

/// The longest text that is looked at.
pub(super) const BYTES_MAX: usize = 1024 * 1024;

/// Something that a text which Git acts on leads to. Paths are as written: relative ones are meant from the work tree,
/// those of more configuration from the folder of the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GitMention {
    /// More configuration.
    Include(String),
    /// A work tree that the repository belongs to, from the repository.
    WorkTree(String),
    /// A folder whose programs are run, or copied to where they are.
    Folder(String),
    /// A file that Git runs or that decides what it runs, there or not.
    Program(String),
    /// One that is run when somebody asks for it by name, or by a hook.
    Script(String),
    /// A word that is one of these when such a file is there.
    Perhaps(String),
}

/// Finds what a configuration leads to.
pub fn git_mentions(text: &str) -> Result<Vec<GitMention>, GitConfigError> {
    if text.len() > BYTES_MAX {
        return Err(GitConfigError::TooLong);
    }
    let mut mentions = BTreeSet::new();
    for setting in parse_settings(text).ok_or(GitConfigError::NotUnderstood)? {
        if !is_plain_setting(&setting.section, &setting.key, &setting.value) {
            add_mention(&setting, &mut mentions);
        }
        if mentions.len() > MENTIONS_MAX {
            return Err(GitConfigError::TooLong);
        }
    }
    Ok(mentions.into_iter().collect())
}

/// Finds what a program of a hook's kind names: every word with a folder in it, and what is given to an interpreter.
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
            mentions.insert(GitMention::Folder(value.to_owned()));
        }
        ("core", "attributesfile") => drop(mentions.insert(GitMention::Program(value.to_owned()))),
        ("alias", _) if value.starts_with('!') => mentions.extend(line_mentions(value, LineKind::Script)),
        (section, key) if is_program(section, key) => mentions.extend(line_mentions(value, LineKind::Run)),
        _ => mentions.extend(line_mentions(value, LineKind::Text)),
    }
}

/// Whether Git runs what a setting says.
fn is_program(section: &str, key: &str) -> bool {
    const ENDS: [&str; 22] = [
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
    section == "pager" || key == "path" || ENDS.iter().any(|end| key.ends_with(end))
}

/// What is known of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// Git runs it, with its own words behind.
    Run,
    /// It is run when somebody asks for it by name, or by a hook.
    Script,
    /// It is a text like any other.
    Text,
}

/// What begins another command, or stands around one.
const BREAKS: [char; 18] =
    [' ', '\t', '\n', '\r', '\'', '"', '`', ';', '|', '&', '(', ')', '<', '>', '{', '}', '=', ','];

/// Programs that run a file which they are given.
const INTERPRETERS: [&str; 19] = [
    ".", "source", "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "perl", "ruby", "node",
    "deno", "bun", "php", "lua", "awk", "-f",
];

/// Words behind which a command begins.
const PREFIXES: [&str; 8] = ["exec", "env", "command", "time", "if", "then", "else", "do"];

/// Finds the words of a line that may be paths: whole ones and, since quotes may stand inside quotes, the pieces of all.
fn line_mentions(line: &str, kind: LineKind) -> Vec<GitMention> {
    let mut found = Vec::new();
    let mention = |word: &str, is_sure: bool| match kind {
        LineKind::Run if is_sure => GitMention::Program(word.to_owned()),
        LineKind::Script if is_sure => GitMention::Script(word.to_owned()),
        LineKind::Run | LineKind::Script | LineKind::Text => GitMention::Perhaps(word.to_owned()),
    };
    let mut former: [&str; 2] = ["", ""];
    let line = line.replace("${HOME}/", "~/").replace("$HOME/", "~/");
    for piece in line.split(BREAKS).filter(|piece| !piece.is_empty()) {
        let before = &line[..piece.as_ptr() as usize - line.as_ptr() as usize];
        let begins = before.trim_end_matches([' ', '\t', '\'', '"', '!']);
        let is_first = begins.is_empty()
            || begins.ends_with([';', '|', '&', '(', '{', '`', '\n'])
            || PREFIXES.contains(&former[1]);
        let is_given = INTERPRETERS.contains(&former[1].rsplit('/').next().unwrap_or_default());
        let piece = piece.trim_start_matches(['!', '#']);
        let is_sure = |path: &str| is_given || (path.contains('/') && (is_first || kind == LineKind::Run));
        if former[1] == "-m" && former[0].contains("python") {
            // It looks for the module where it runs.
            let top = piece.split('.').next().unwrap_or_default();
            found.push(mention(&format!("./{top}.py"), true));
            found.push(mention(&format!("./{top}/__init__.py"), true));
            found.push(mention(&format!("./{top}/__main__.py"), true));
        }
        if let Some(rest) = after_expansion(piece, before.chars().next_back()) {
            let path = format!("./{rest}");
            found.push(mention(&path, is_sure(&path)));
        }
        for part in piece.split("::").filter(|part| is_path(part, is_given || kind == LineKind::Run)) {
            found.push(mention(part, is_sure(part)));
        }
        former = [former[1], piece];
    }
    // A path with a space in it.
    let quoted = line.split(['"', '\'']).skip(1).filter(|text| text.contains(' ') && is_path(text, false));
    found.extend(quoted.map(|text| GitMention::Perhaps(text.to_owned())));
    found
}

/// What follows the last part of a path that is only known when the line runs.
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
                GitMention::Folder(path) => format!("folder {path}"),
                GitMention::Program(path) => format!("program {path}"),
                GitMention::Script(path) => format!("script {path}"),
                GitMention::Perhaps(path) => format!("perhaps {path}"),
            })
            .collect();
        for expected in expected {
            assert!(shown.iter().any(|shown| shown == expected), "{expected} is not in {shown:?}");
        }
        assert!(!expected.is_empty() || shown.is_empty(), "{shown:?}");
    }

    #[test]
    fn what_git_is_told_to_run_or_read_is_found() {
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
        assert_eq!(git_mentions("[core"), Err(GitConfigError::NotUnderstood));
        assert_eq!(git_mentions(&" ".repeat(BYTES_MAX + 1)), Err(GitConfigError::TooLong));
    }

    #[test]
    fn what_a_hook_names_is_found() {
        let text =
            "#!/bin/sh\n# not/this\n. \"$(dirname \"$0\")/_/h\"\nexec tools/check src/main.rs\ncargo test\n";
        let found = script_mentions(text);
        for mention in [
            GitMention::Perhaps("./_/h".to_owned()),
            GitMention::Script("tools/check".to_owned()),
            GitMention::Perhaps("src/main.rs".to_owned()),
        ] {
            assert!(found.contains(&mention), "{mention:?} is not in {found:?}");
        }
        assert!(!found.iter().any(|mention| format!("{mention:?}").contains("not/this")));
    }
}
