//! Synonyms of commands and options: a deny rule applies to all of them.

use std::borrow::Cow;

use super::program_names::program_name;
use crate::shell::ShellWord;

/// Equivalent options of a program, by its name and optionally its subcommand; `+` is an operand prefix.
const OPTIONS: &[(&str, &[&str])] = &[
    ("rm", &["-r -R --recursive", "-f --force", "-d --dir"]),
    ("cp", &["-r -R --recursive -a --archive", "-f --force"]),
    ("mv ln", &["-f --force"]),
    ("chmod chown chgrp", &["-R --recursive"]),
    ("sed gsed", &["-i --in-place"]),
    ("grep egrep fgrep", &["-r -R --recursive --dereference-recursive"]),
    ("kill pkill killall", &["-9 -KILL -SIGKILL --signal=KILL --signal=9"]),
    ("curl", &["-k --insecure", "-X --request", "-T --upload-file", "-d --data", "-F --form", "-o --output"]),
    ("wget", &["-O --output-document"]),
    (
        "git push",
        &[
            "-f --force --force-with-lease --force-if-includes --mirror +",
            "-d --delete",
            "-n --dry-run",
            "-u --set-upstream",
        ],
    ),
    ("git branch", &["-d --delete -D", "-f --force -D -M -C", "-m --move -M", "-c --copy -C"]),
    ("git tag", &["-d --delete", "-f --force"]),
    ("git clean", &["-f --force", "-x -X"]),
    ("git commit", &["-a --all", "-n --no-verify", "-m --message"]),
    ("git", &["-f --force"]),
    ("docker podman", &["-f --force", "-v --volume"]),
    ("npm pnpm yarn bun", &["-g --global", "-f --force"]),
    ("pip uv", &["-U --upgrade", "-y --yes"]),
    ("apt apt-get dnf yum", &["-y --yes --assume-yes"]),
    ("rsync", &["-r --recursive -a --archive"]),
    ("kubectl", &["-f --filename", "-n --namespace"]),
];

/// Synonyms of programs and subcommands.
const PROGRAMS: &[(&str, &str)] = &[
    ("git send-pack", "git push"),
    ("docker image rm", "docker rmi"),
    ("docker image remove", "docker rmi"),
    ("docker image build", "docker build"),
    ("docker image pull", "docker pull"),
    ("docker image push", "docker push"),
    ("docker buildx build", "docker build"),
    ("docker container remove", "docker rm"),
    ("docker remove", "docker rm"),
    ("docker container ls", "docker ps"),
    ("docker container", "docker"),
    ("podman container", "podman"),
    ("docker-compose", "docker compose"),
    ("npm i", "npm install"),
    ("npm add", "npm install"),
    ("npm in", "npm install"),
    ("npm un", "npm uninstall"),
    ("npm rm", "npm uninstall"),
    ("npm remove", "npm uninstall"),
    ("npm unlink", "npm uninstall"),
    ("npm r", "npm uninstall"),
    ("npm run-script", "npm run"),
    ("npm rum", "npm run"),
    ("npm urn", "npm run"),
    ("npm x", "npm exec"),
    ("npm t", "npm test"),
    ("npm tst", "npm test"),
    ("npx", "npm exec"),
    ("pnpm i", "pnpm install"),
    ("pnpm rm", "pnpm remove"),
    ("pnpm un", "pnpm remove"),
    ("pnpm uninstall", "pnpm remove"),
    ("cargo b", "cargo build"),
    ("cargo c", "cargo check"),
    ("cargo t", "cargo test"),
    ("cargo r", "cargo run"),
    ("cargo rm", "cargo remove"),
    ("cargo d", "cargo doc"),
    ("apt-get", "apt"),
    ("pip3", "pip"),
];

/// Returns the equivalents of an option, including itself.
pub(super) fn same_options<'a>(words: &[Cow<'_, ShellWord>], option: &'a str) -> Vec<&'a str> {
    let name = |at: usize| words.get(at).and_then(|word| word.known_text()).unwrap_or_default();
    let program = program_name(name(0));
    let subcommands: Vec<&str> = words
        .iter()
        .skip(1)
        .filter_map(|word| word.known_text())
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_for_program = |names: &str| match names.split_once(' ').filter(|(first, _)| *first == "git") {
        Some((first, second)) => first == program && subcommands.contains(&second),
        None => names.split(' ').any(|name| name == program),
    };
    let groups =
        OPTIONS.iter().filter(|(names, _)| is_for_program(names)).flat_map(|(_, groups)| groups.iter());
    let same = groups.map(|group| group.split(' ')).find(|group| group.clone().any(|other| other == option));
    same.map_or_else(|| vec![option], |group| group.chain([option]).collect())
}

/// Returns the words of a command with its program and subcommands by their canonical names.
pub(super) fn usual_words(words: &[ShellWord]) -> Vec<Cow<'_, ShellWord>> {
    let mut usual: Vec<Cow<'_, ShellWord>> = words.iter().map(Cow::Borrowed).collect();
    let Some(program) = words.first().and_then(ShellWord::known_text).map(program_name) else { return usual };
    // `git-push` in Git's directory of programs.
    if let Some(subcommand) = program.strip_prefix("git-").filter(|subcommand| !subcommand.is_empty()) {
        usual.splice(..1, ["git", subcommand].map(|word| Cow::Owned(ShellWord::from_text(word))));
    }
    // A canonical name may have another synonym itself.
    for (name, usual_name) in PROGRAMS {
        let mut names = name.split(' ');
        let first = names.next().unwrap_or_default();
        if !usual.first().and_then(|word| word.known_text()).is_some_and(|word| is_same_name(word, first)) {
            continue;
        }
        let rest: Vec<_> = names.collect();
        let Some(at) = find_subcommands(&usual, &rest) else { continue };
        let mut usual_names = usual_name.split(' ').map(|word| Cow::Owned(ShellWord::from_text(word)));
        let program: Vec<_> = usual_names.next().into_iter().collect();
        usual.splice(at..at + rest.len(), usual_names);
        usual.splice(..1, program);
    }
    usual
}

fn is_same_name(program: &str, name: &str) -> bool {
    program_name(program).eq_ignore_ascii_case(name)
}

/// Finds the position of subcommands, after only options and their values.
fn find_subcommands(words: &[Cow<'_, ShellWord>], names: &[&str]) -> Option<usize> {
    let Some(first) = names.first() else { return Some(1) };
    let is_option = |at: usize| words[at].text.starts_with('-');
    let at = (1..words.len()).find(|&at| words[at].known_text() == Some(first))?;
    let are_options = (1..at).all(|before| is_option(before) || (before > 1 && is_option(before - 1)));
    let are_next =
        names.iter().zip(&words[at..]).filter(|(name, word)| word.known_text() == Some(name)).count();
    (are_options && are_next == names.len()).then_some(at)
}
