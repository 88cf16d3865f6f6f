//! Finds the words of a command that name files it changes.

use super::program_names::program_name;
use super::risk_table::{CommandRisk, RiskEffect};
use super::risks::find_risks;
use crate::shell::{RedirectDirection, ShellWord, SimpleCommand};

/// Programs that change all of their file arguments.
const WRITES_ALL: &[&str] = &[
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

/// Programs that change their last file argument, or create a file of the same name in the last directory.
const WRITES_LAST: &[&str] = &["cp", "ln", "link", "install", "rsync", "scp"];

/// Stream editors, which change files only with an option.
const WRITES_IN_PLACE: &[&str] = &["sed", "gsed", "perl", "ruby", "awk", "gawk", "mawk", "nawk"];

/// Programs that write to a file named by an option or an operand, and read others.
const MAY_WRITE: &str = "ed ex red vi vim nvim view nano pico emacs joe kak hx sponge rename prename split csplit gpg gpg2 \
    iconv tar gtar bsdtar zip 7z 7za 7zr rar ar ranlib strip objcopy patchelf flock script strace ltrace tcpdump tshark ffmpeg \
    convert magick sox gcc cc clang g++ c++ clang++ ld as rustc ssh-keygen ssh-copy-id mktemp uudecode logrotate sqlite3 sqlite \
    pg_dump pg_dumpall mysqldump pandoc protoc cpio age sops xsltproc dot wkhtmltopdf keytool qemu-img sshfs mount umount \
    visudo crudini augtool restic borg wasm-opt esbuild uglifyjs swiftc kotlinc javac scp sftp";

/// The same for subcommands.
const MAY_WRITE_WITH: &[(&str, &str)] = &[
    ("docker podman nerdctl kubectl oc", "cp"),
    ("npm pnpm yarn pip", "config set"),
    ("go", "build test"),
    ("git", "clone init submodule worktree bundle archive format-patch fast-export"),
];

/// Whether a program can change its file arguments.
pub(super) fn changes_files(program: &str) -> bool {
    [WRITES_ALL, WRITES_LAST, WRITES_IN_PLACE, &["dd"]].iter().any(|programs| programs.contains(&program))
}

/// Whether a command may write to a file that its words name.
pub(super) fn may_change(simple: &SimpleCommand) -> bool {
    let Some(program) = simple.words.first().and_then(ShellWord::known_text).map(program_name) else {
        return false;
    };
    let is_named = |names: &str| names.split_whitespace().any(|name| name == program);
    let has = |names: &str| {
        let mut words = simple.words.iter().skip(1).filter_map(ShellWord::known_text);
        words.any(|word| names.split(' ').any(|name| name == word))
    };
    is_named(MAY_WRITE) || MAY_WRITE_WITH.iter().any(|(programs, names)| is_named(programs) && has(names))
}

/// The files that a command changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WrittenWords {
    /// Certainly changed.
    pub(super) certain: Vec<ShellWord>,
    /// Possibly changed.
    pub(super) possible: Vec<ShellWord>,
}

/// Finds the files that a command changes, by redirections and by words.
pub(super) fn find_written_words(simple: &SimpleCommand) -> WrittenWords {
    let redirected =
        simple.redirections.iter().filter(|redirection| redirection.direction == RedirectDirection::Out);
    let mut written = WrittenWords {
        certain: redirected.map(|redirection| redirection.target.clone()).collect(),
        possible: Vec::new(),
    };
    let program = simple.words.first().and_then(ShellWord::known_text).map(program_name).unwrap_or_default();
    let writes = find_risks(&simple.words).iter().any(|risk| risk.effect == RiskEffect::Writes);
    let operands: Vec<&ShellWord> =
        simple.words.iter().skip(1).filter(|word| !word.text.starts_with('-')).collect();
    let options = simple.words.iter().skip(1).filter(|word| word.text.starts_with('-'));
    if WRITES_ALL.contains(&program) {
        written.certain.extend(operands.into_iter().cloned());
    } else if WRITES_LAST.contains(&program) {
        match target_dir(simple) {
            Some(directory) => {
                written.possible.extend(operands.iter().filter_map(|source| file_inside(&directory, source)));
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
    } else if writes || (WRITES_IN_PLACE.contains(&program) && is_in_place(simple)) || program == "dd" {
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

/// Options with an output file or directory as value; almost every program has `-o`.
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

/// Programs with another meaning of `-o`, or whose output always asks.
const OTHER_O: &str = "grep egrep fgrep rg ag ack find gfind ls ps pgrep set test [ kubectl oc ssh scp sftp mount sshfs stat sort uniq \
    curl wget awk gawk sed git pytest less";

/// Returns the output files that options name, each with the index of the word where its name ends.
pub(super) fn output_operands(words: &[ShellWord]) -> Vec<(usize, ShellWord)> {
    let Some(program) = words.first().and_then(ShellWord::known_text).map(program_name) else {
        return Vec::new();
    };
    let is_one = |list: &str, name: &str| list.split_whitespace().any(|one| one == name);
    let output_options =
        OUTPUT_OPTIONS.iter().find(|(programs, _)| is_one(programs, program)).map_or("", |(_, own)| own);
    let has_o = !is_one(OTHER_O, program);
    let is_option = |text: &str| is_one(output_options, text) || (has_o && text == "-o");
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

/// Returns a file in a word that may be a directory outside.
fn file_below(directory: &ShellWord) -> Option<ShellWord> {
    let text = directory.known_text().filter(|text| text.starts_with('/'))?;
    Some(ShellWord::from_text(format!("{}/_", text.trim_end_matches('/'))))
}

/// Options of Git before its subcommand that have a value.
const GIT_VALUED: &[&str] =
    &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix"];

/// Returns the files that Git changes, including its own configuration.
fn git_written_words(simple: &SimpleCommand) -> Vec<ShellWord> {
    // It replaces files by the repository's content.
    const CHANGE: &[&str] = &["checkout", "restore", "mv", "rm", "clean", "stash", "apply", "am", "reset"];
    const READ: &[&str] =
        &["get", "list", "--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l"];
    let is_value = |at: usize| GIT_VALUED.contains(&simple.words[at - 1].text.as_str());
    let is_operand = |at: &usize| !simple.words[*at].text.starts_with('-') && !is_value(*at);
    let operand_indices: Vec<usize> = (1..simple.words.len()).filter(is_operand).collect();
    let Some(subcommand) = operand_indices.first().and_then(|&at| simple.words[at].known_text()) else {
        return Vec::new();
    };
    if CHANGE.contains(&subcommand) {
        return operand_indices[1..].iter().map(|&at| simple.words[at].clone()).collect();
    }
    const CHANGE_REMOTE: &[&str] = &["add", "set-url", "rename", "rm", "remove", "set-branches", "set-head"];
    let second = operand_indices.get(1).and_then(|&at| simple.words[at].known_text());
    if subcommand == "remote" && second.is_some_and(|second| CHANGE_REMOTE.contains(&second)) {
        return vec![ShellWord::from_text(".git/config")];
    }
    let reads = simple.words.iter().any(|word| word.known_text().is_some_and(|word| READ.contains(&word)));
    // A name alone queries its value.
    let is_change = subcommand == "config"
        && !reads
        && operand_indices.len()
            + usize::from(simple.words.iter().any(|word| word.text.starts_with("--") && word.text != "--"))
            > 2;
    if is_change { vec![ShellWord::from_text(".git/config")] } else { Vec::new() }
}

/// Returns the directory of `-t` or `--target-directory`.
fn target_dir(simple: &SimpleCommand) -> Option<ShellWord> {
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

/// Whether a stream editor changes its files.
fn is_in_place(simple: &SimpleCommand) -> bool {
    let is_in_place_option = |word: &ShellWord| {
        let bundle = word.text.strip_prefix('-').filter(|bundle| !bundle.starts_with('-'));
        bundle.is_some_and(|bundle| bundle.contains(['i', 'I'])) || word.text.starts_with("--in")
    };
    simple.words.iter().skip(1).any(is_in_place_option)
}

/// Returns the file that a source becomes in a directory.
fn file_inside(directory: &ShellWord, source: &ShellWord) -> Option<ShellWord> {
    let directory = directory.known_text()?;
    let name = source.known_text()?.trim_end_matches('/').rsplit('/').next()?;
    Some(ShellWord::from_text(format!("{}/{name}", directory.trim_end_matches('/'))))
}

/// Returns the possible values in a word, as in `of=FILE`, `--file=FILE`, `-tFILE` and `@FILE`.
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
    values.filter(|value| !value.text.is_empty() || !value.pieces.is_empty()).collect()
}

/// Whether a command changes its file arguments.
pub(super) fn changes_given_files(simple: &SimpleCommand) -> bool {
    let program = simple.words.first().and_then(ShellWord::known_text).map(program_name);
    let writes = |risk: &CommandRisk| risk.effect == RiskEffect::Writes;
    program.is_some_and(changes_files) || may_change(simple) || find_risks(&simple.words).iter().any(writes)
}
