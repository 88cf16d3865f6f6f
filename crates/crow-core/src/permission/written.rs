//! Which words of a command name files that it changes.

use super::programs::RiskEffect;
use super::risks::{find_risks, program_name};
use crate::shell::{RedirectDirection, ShellWord, SimpleCommand};

/// Programs that change the files they are given, all of them.
const CHANGE_ALL: &[&str] = &[
    "rm",
    "rmdir",
    "unlink",
    "mv",
    "tee",
    "truncate",
    "shred",
    "chmod",
    "chown",
    "chgrp",
    "touch",
    "mkdir",
    "mkfifo",
    "mknod",
    "patch",
    "gzip",
    "gunzip",
    "bzip2",
    "bunzip2",
    "xz",
    "unxz",
    "zstd",
    "unzstd",
    "compress",
    "dos2unix",
    "unix2dos",
    "setfacl",
    "chattr",
    "setfattr",
    "fallocate",
];

/// Programs that change the last file they are given, or make a file of the same name in the last folder.
const CHANGE_LAST: &[&str] = &["cp", "ln", "link", "install", "rsync", "scp"];

/// Editors of streams, which change the files they are given when they are told to.
const CHANGE_IN_PLACE: &[&str] = &["sed", "gsed", "perl", "ruby", "awk", "gawk", "mawk", "nawk"];

/// Programs that write to a file of which an option or an operand is the name, and read others.
const MAY_CHANGE: &str = "ed ex red vi vim nvim view nano pico emacs joe kak hx sponge rename prename split csplit gpg gpg2 \
    iconv tar gtar bsdtar zip 7z 7za 7zr rar ar ranlib strip objcopy patchelf flock script strace ltrace tcpdump tshark ffmpeg \
    convert magick sox gcc cc clang g++ c++ clang++ ld as rustc ssh-keygen ssh-copy-id mktemp uudecode logrotate sqlite3 sqlite \
    pg_dump pg_dumpall mysqldump pandoc protoc cpio age sops xsltproc dot wkhtmltopdf keytool qemu-img sshfs mount umount \
    visudo crudini augtool restic borg wasm-opt esbuild uglifyjs swiftc kotlinc javac scp sftp";

/// The same for subcommands.
const MAY_CHANGE_WITH: &[(&str, &str)] = &[
    ("docker podman nerdctl kubectl oc", "cp"),
    ("npm pnpm yarn pip", "config set"),
    ("go", "build test"),
    ("git", "clone init submodule worktree bundle archive format-patch fast-export"),
];

/// Whether a program changes files that it is given, if it is told to.
pub(super) fn changes_files(program: &str) -> bool {
    [CHANGE_ALL, CHANGE_LAST, CHANGE_IN_PLACE, &["dd"]].iter().any(|programs| programs.contains(&program))
}

/// Whether a command may write to one of the files that its words name.
pub(super) fn may_change(simple: &SimpleCommand) -> bool {
    let Some(program) = simple.words.first().and_then(ShellWord::known_text).map(program_name) else {
        return false;
    };
    let is_named = |names: &str| names.split_whitespace().any(|name| name == program);
    let has = |names: &str| {
        let mut words = simple.words.iter().skip(1).filter_map(ShellWord::known_text);
        words.any(|word| names.split(' ').any(|name| name == word))
    };
    is_named(MAY_CHANGE) || MAY_CHANGE_WITH.iter().any(|(programs, names)| is_named(programs) && has(names))
}

/// What a command does to the files that its words name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WrittenWords {
    /// It changes these.
    pub(super) certain: Vec<ShellWord>,
    /// It may change these.
    pub(super) possible: Vec<ShellWord>,
}

/// Finds the files that a command changes: those of its redirections, and those of its words.
pub(super) fn find_written_words(simple: &SimpleCommand) -> WrittenWords {
    let redirected =
        simple.redirections.iter().filter(|redirection| redirection.direction == RedirectDirection::Out);
    let mut written = WrittenWords {
        certain: redirected.map(|redirection| redirection.target.clone()).collect(),
        possible: Vec::new(),
    };
    let program = simple.words.first().and_then(ShellWord::known_text).map(program_name).unwrap_or_default();
    let writes = find_risks(&simple.words).iter().any(|risk| risk.does == RiskEffect::Writes);
    let operands: Vec<&ShellWord> =
        simple.words.iter().skip(1).filter(|word| !word.text.starts_with('-')).collect();
    let options = simple.words.iter().skip(1).filter(|word| word.text.starts_with('-'));
    if CHANGE_ALL.contains(&program) {
        written.certain.extend(operands.into_iter().cloned());
    } else if CHANGE_LAST.contains(&program) {
        match target_folder(simple) {
            Some(folder) => {
                written.possible.extend(operands.iter().filter_map(|source| file_inside(&folder, source)));
            }
            None => {
                let split = operands.split_last();
                written.certain.extend(split.map(|(last, _)| (*last).clone()));
                let inner = split.iter().flat_map(|(last, sources)| {
                    sources.iter().filter_map(|source| file_inside(last, source))
                });
                written.possible.extend(inner);
            }
        }
        written.possible.extend(options.flat_map(word_values));
    } else if writes || (CHANGE_IN_PLACE.contains(&program) && is_in_place(simple)) || program == "dd" {
        written.certain.extend(operands.iter().flat_map(|word| word_values(word)));
        written.possible.extend(options.flat_map(word_values));
    } else if program == "git" {
        written.possible.extend(git_written_words(simple));
    }
    if may_change(simple) {
        let words = simple.words.iter().skip(1).flat_map(word_values);
        written.possible.extend(words.flat_map(|word| [file_below(&word), Some(word)]).flatten());
    }
    written
}

/// Options that are followed by a file or folder to write; `-o` is one of nearly every program.
const OUTPUT_OPTIONS: &[(&str, &str)] = &[
    ("gcc cc clang g++ c++ clang++", "-MF -dumpdir -aux-info -MJ -serialize-diagnostics"),
    ("javac", "-d -s -h"),
    ("kotlinc scalac groovyc ocamlc", "-d"),
    ("cppcheck", "--cppcheck-build-dir --checkers-report"),
    ("clang-tidy", "--export-fixes -export-fixes"),
    ("mypy", "--cache-dir --cobertura-xml-report --html-report --txt-report --any-exprs-report"),
    ("ruff eslint prettier stylelint jest", "--cache-dir --cache-location --cacheDirectory"),
    ("gradle gradlew", "-g --gradle-user-home --project-cache-dir"),
    ("mvn mvnw", "-l"),
    ("swift", "--build-path --scratch-path --cache-path"),
    ("tox nox", "--workdir --envdir --result-json"),
    (
        "phpunit",
        "--log-junit --log-teamcity --coverage-clover --coverage-html --coverage-php --coverage-xml --coverage-text",
    ),
];

/// Programs to which `-o` is something else, or whose output is asked about whatever its name is.
const OTHER_O: &str = "grep egrep fgrep rg ag ack find gfind ls ps pgrep set test [ kubectl oc ssh scp sftp mount sshfs stat sort uniq \
    curl wget awk gawk sed git pytest less";

/// Lists what the options of a command name as outputs, each with the place where its name ends.
pub(super) fn output_operands(words: &[ShellWord]) -> Vec<(usize, ShellWord)> {
    let Some(program) = words.first().and_then(ShellWord::known_text).map(program_name) else {
        return Vec::new();
    };
    let is_one = |list: &str, name: &str| list.split_whitespace().any(|one| one == name);
    let own =
        OUTPUT_OPTIONS.iter().find(|(programs, _)| is_one(programs, program)).map_or("", |(_, own)| own);
    let has_o = !is_one(OTHER_O, program);
    let is_option = |text: &str| is_one(own, text) || (has_o && text == "-o");
    let value = |at: usize| {
        let text = words[at].text.as_str();
        let joined = text.find('=').map(|end| (&text[..end], end + 1));
        match joined {
            _ if is_option(text) => words.get(at + 1).map(|word| (at + 1, word.clone())),
            Some((option, start)) if is_option(option) => Some((at, words[at].without_prefix(start))),
            _ if has_o && text.starts_with("-o") => Some((at, words[at].without_prefix("-o".len()))),
            _ => None,
        }
    };
    (1..words.len()).filter_map(value).collect()
}

/// A file in what may be a folder, where it names one outside.
fn file_below(folder: &ShellWord) -> Option<ShellWord> {
    let text = folder.known_text().filter(|text| text.starts_with('/'))?;
    Some(ShellWord::from_text(format!("{}/_", text.trim_end_matches('/'))))
}

/// Options of Git in front of its subcommand that have a value.
const GIT_VALUED: &[&str] =
    &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix"];

/// Finds what Git changes of the files it is given, and of its own configuration.
fn git_written_words(simple: &SimpleCommand) -> Vec<ShellWord> {
    // What it takes out of its own store, it puts in place of files.
    const CHANGE: &[&str] = &["checkout", "restore", "mv", "rm", "clean", "stash", "apply", "am", "reset"];
    const READ: &[&str] =
        &["get", "list", "--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l"];
    let is_value = |at: usize| GIT_VALUED.contains(&simple.words[at - 1].text.as_str());
    let is_operand = |at: &usize| !simple.words[*at].text.starts_with('-') && !is_value(*at);
    let places: Vec<usize> = (1..simple.words.len()).filter(is_operand).collect();
    let Some(subcommand) = places.first().and_then(|&at| simple.words[at].known_text()) else {
        return Vec::new();
    };
    if CHANGE.contains(&subcommand) {
        return places[1..].iter().map(|&at| simple.words[at].clone()).collect();
    }
    const CHANGE_REMOTE: &[&str] = &["add", "set-url", "rename", "rm", "remove", "set-branches", "set-head"];
    let second = places.get(1).and_then(|&at| simple.words[at].known_text());
    if subcommand == "remote" && second.is_some_and(|second| CHANGE_REMOTE.contains(&second)) {
        return vec![ShellWord::from_text(".git/config")];
    }
    let reads = simple.words.iter().any(|word| word.known_text().is_some_and(|word| READ.contains(&word)));
    // One name alone asks for its value.
    let is_change = subcommand == "config"
        && !reads
        && places.len()
            + usize::from(simple.words.iter().any(|word| word.text.starts_with("--") && word.text != "--"))
            > 2;
    if is_change { vec![ShellWord::from_text(".git/config")] } else { Vec::new() }
}

/// The folder that `-t` or `--target-directory` names.
fn target_folder(simple: &SimpleCommand) -> Option<ShellWord> {
    let at = simple
        .words
        .iter()
        .position(|word| word.text.starts_with("-t") || word.text.starts_with("--target"))?;
    let word = &simple.words[at];
    match word.text.as_str() {
        "-t" => simple.words.get(at + 1).cloned(),
        text if text.starts_with("--") => match text.find('=') {
            Some(place) => Some(word.without_prefix(place + 1)),
            None => simple.words.get(at + 1).cloned(),
        },
        _ => Some(word.without_prefix("-t".len())),
    }
}

/// Whether an editor of streams is told to change its files.
fn is_in_place(simple: &SimpleCommand) -> bool {
    let is_it = |word: &ShellWord| {
        let bundle = word.text.strip_prefix('-').filter(|bundle| !bundle.starts_with('-'));
        bundle.is_some_and(|bundle| bundle.contains(['i', 'I'])) || word.text.starts_with("--in")
    };
    simple.words.iter().skip(1).any(is_it)
}

/// The file that a source becomes in a folder.
fn file_inside(folder: &ShellWord, source: &ShellWord) -> Option<ShellWord> {
    let folder = folder.known_text()?;
    let name = source.known_text()?.trim_end_matches('/').rsplit('/').next()?;
    Some(ShellWord::from_text(format!("{}/{name}", folder.trim_end_matches('/'))))
}

/// Lists the values that may be in a word, as in `of=FILE`, `--file=FILE`, `-tFILE` and `@FILE`.
pub(super) fn word_values(word: &ShellWord) -> Vec<ShellWord> {
    let text = word.text.as_str();
    let mut starts = vec![text.find('=').map_or(0, |place| place + 1)];
    starts.extend(text.find('@').map(|place| place + 1));
    if text.starts_with('-') && !text.starts_with("--") {
        starts.extend(text.char_indices().nth(2).map(|(place, _)| place));
        let letters = text[1..].trim_start_matches(|letter: char| letter.is_ascii_alphanumeric());
        starts.push(text.len() - letters.len());
    }
    let values = starts.into_iter().map(|start| word.without_prefix(start));
    values.filter(|value| !value.text.is_empty() || !value.rest.is_empty()).collect()
}
