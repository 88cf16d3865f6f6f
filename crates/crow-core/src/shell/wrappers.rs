//! Wrappers: programs that run another program given in their words.

use super::command::{
    Assignment, InnerCommands, ShellDialect, ShellParseError, SimpleCommand, WrapperEffect,
};
use super::lex::{RESERVED, ShellReader};
use super::parse::parse_commands;
use super::word::{KnownExtent, ShellWord};

/// The options of a wrapper, to find the inner program.
struct Wrapper {
    names: &'static [&'static str],
    /// One-letter options without and with a value.
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    long_valued: &'static [&'static str],
    n_operands: usize,
}

const PLAIN: Wrapper =
    Wrapper { names: &[], flags: "", valued: "", long: &[], long_valued: &[], n_operands: 0 };

const WRAPPERS: &[Wrapper] = &[
    Wrapper { names: &["nohup", "builtin", "busybox", "toybox"], ..PLAIN },
    Wrapper { names: &["command"], flags: "p", ..PLAIN },
    Wrapper { names: &["exec"], flags: "cl", valued: "a", ..PLAIN },
    Wrapper { names: &["time"], flags: "pv", ..PLAIN },
    Wrapper { names: &["nice"], flags: "0123456789", valued: "n", long_valued: &["--adjustment"], ..PLAIN },
    Wrapper { names: &["ionice"], flags: "t", valued: "cn", ..PLAIN },
    Wrapper { names: &["setsid"], flags: "cfw", long: &["--ctty", "--fork", "--wait"], ..PLAIN },
    Wrapper { names: &["stdbuf"], valued: "ioe", long_valued: &["--input", "--output", "--error"], ..PLAIN },
    Wrapper {
        names: &["timeout", "gtimeout"],
        flags: "vfp",
        valued: "sk",
        long: &["--foreground", "--preserve-status", "--verbose"],
        long_valued: &["--signal", "--kill-after"],
        n_operands: 1,
    },
    Wrapper {
        names: &["env"],
        flags: "iv",
        valued: "u",
        long: &["--ignore-environment", "--debug"],
        long_valued: &["--unset"],
        n_operands: 0,
    },
    Wrapper {
        names: &["sudo"],
        flags: "nEHkbASPK",
        valued: "ugpCThrt",
        long: &["--non-interactive", "--preserve-env", "--set-home", "--background", "--askpass", "--stdin"],
        long_valued: &["--user", "--group", "--prompt"],
        n_operands: 0,
    },
    Wrapper { names: &["doas"], flags: "nL", valued: "uC", ..PLAIN },
    Wrapper {
        names: &["xargs"],
        flags: "0rtpxo",
        valued: "nPLsIdEa",
        long: &["--null", "--no-run-if-empty", "--verbose", "--exit", "--interactive", "--open-tty"],
        long_valued: &[
            "--max-args",
            "--max-procs",
            "--max-lines",
            "--max-chars",
            "--replace",
            "--delimiter",
            "--arg-file",
        ],
        n_operands: 0,
    },
];

/// Shells that accept the syntax of `/bin/sh`.
const SHELLS: &[&str] = &["sh", "bash", "dash", "ash"];
const SHELL_FLAGS: &str = "aceilmnuvx";
const SHELL_LONG: &[&str] = &["--login", "--noprofile", "--norc", "--posix"];
/// Values of `-o` that do not change the meaning of a text.
const SHELL_OPTIONS: &[&str] = &["errexit", "nounset", "pipefail", "xtrace", "posix"];

/// Builtins that change the meaning of later words, or run a text later.
const REDEFINING: &[&str] = &[
    "alias",
    "unalias",
    "trap",
    "hash",
    "enable",
    "shopt",
    "fc",
    "bind",
    "complete",
    "compgen",
    "let",
    "mapfile",
    "readarray",
    "declare",
    "typeset",
];

/// Those of them that set variables and options, without changing the meaning of later words.
const SETTING: &[&str] = &["declare", "typeset", "shopt", "unalias", "let", "mapfile", "readarray"];

/// Builtins that read `NAME[TEXT]` as a variable, and run the text.
const SUBSCRIPTED: &[&str] = &[
    "test", "[", "[[", "let", "declare", "typeset", "printf", "read", "wait", "unset", "export", "readonly",
    "local", "getopts",
];

/// Finds the commands that a command runs itself.
pub(super) fn find_inner_commands(
    simple: &SimpleCommand,
    depth: usize,
    dialect: ShellDialect,
) -> Result<Option<InnerCommands>, ShellParseError> {
    let words = simple.words.as_slice();
    let Some(program) = words.first().and_then(ShellWord::known_text) else { return Ok(None) };
    let name = program.rsplit('/').next().unwrap_or(program);
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name)) {
        return wrapped_commands(name, wrapper, words, depth, dialect);
    }
    match name {
        "trap" if dialect == ShellDialect::Extended => trap_commands(words, depth, dialect),
        _ if dialect == ShellDialect::Extended
            && SETTING.contains(&name)
            && !words[1..].iter().any(has_subscript_expansion) =>
        {
            Ok(None)
        }
        _ if REDEFINING.contains(&name) => Err(ShellParseError("changes the meaning of later words")),
        _ if SUBSCRIPTED.contains(&name) && words[1..].iter().any(has_subscript_expansion) => {
            Err(ShellParseError("may run what is in brackets"))
        }
        "eval" => {
            let texts: Option<Vec<&str>> = words[1..].iter().map(ShellWord::known_text).collect();
            let text = texts.ok_or(ShellParseError("runs an unknown text"))?.join(" ");
            Ok(Some(InnerCommands {
                commands: parse_commands(&text, depth + 1, dialect)?,
                first_word: 1,
                effect: WrapperEffect::Transparent,
            }))
        }
        _ if SHELLS.contains(&name) => match shell_commands(words, depth, dialect)? {
            None if reads_input(words) => document_commands(simple, depth, dialect),
            inner => Ok(inner),
        },
        "find" | "gfind" => search_commands(words, &["-exec", "-execdir", "-ok", "-okdir"], depth, dialect),
        "fd" | "fdfind" => search_commands(words, &["-x", "-X", "--exec", "--exec-batch"], depth, dialect),
        _ => Ok(None),
    }
}

/// Reads the commands of a trap.
fn trap_commands(
    words: &[ShellWord],
    depth: usize,
    dialect: ShellDialect,
) -> Result<Option<InnerCommands>, ShellParseError> {
    let at = if words.get(1).and_then(ShellWord::known_text) == Some("--") { 2 } else { 1 };
    let Some(text) = words.get(at) else { return Ok(None) };
    let text = text.known_text().ok_or(ShellParseError("runs an unknown text"))?;
    if text.starts_with('-') {
        return Ok(None);
    }
    Ok(Some(InnerCommands {
        commands: parse_commands(text, depth + 1, dialect)?,
        first_word: at,
        effect: WrapperEffect::Transparent,
    }))
}

/// Whether a shell has no file to run.
fn reads_input(words: &[ShellWord]) -> bool {
    words[1..].iter().all(|word| word.known_text().is_some_and(|text| text.starts_with('-')))
}

/// Reads the here-documents of a shell.
fn document_commands(
    simple: &SimpleCommand,
    depth: usize,
    dialect: ShellDialect,
) -> Result<Option<InnerCommands>, ShellParseError> {
    if simple.documents.is_empty() {
        return Ok(None);
    }
    let mut inner = Vec::new();
    for text in &simple.documents {
        inner.extend(parse_commands(text, depth + 1, dialect)?);
    }
    Ok(Some(InnerCommands { commands: inner, first_word: simple.words.len(), effect: WrapperEffect::Opaque }))
}

fn has_subscript_expansion(word: &ShellWord) -> bool {
    word.text.split_once('[').is_some_and(|(_, inside)| inside.contains(['$', '`']))
}

/// One is joined to its option and one follows it; a few more may look like marks.
const MARKS_MAX: usize = 8;

fn wrapped_commands(
    name: &str,
    wrapper: &Wrapper,
    words: &[ShellWord],
    depth: usize,
    dialect: ShellDialect,
) -> Result<Option<InnerCommands>, ShellParseError> {
    // These only show the path of a program.
    if name == "command"
        && words.get(1).and_then(ShellWord::known_text).is_some_and(|word| ["-v", "-V"].contains(&word))
    {
        return Ok(None);
    }
    let (mut at, mut assignments) = wrapper.skip_options(words, name == "env")?;
    for operand in words.iter().skip(at).take(wrapper.n_operands) {
        check_certain(operand)?;
        at += 1;
    }
    if ["env", "sudo", "doas"].contains(&name) {
        while let Some((word, (name, value))) =
            words.get(at).and_then(|word| Some((word, word.text.split_once('=')?)))
        {
            check_certain(word)?;
            assignments.push(Assignment { name: name.to_owned(), value: ShellWord::from_text(value) });
            at += 1;
        }
    }
    let mut inner = words.get(at..).unwrap_or_default().to_vec();
    match inner.first() {
        None => return Ok(None),
        Some(word) if word.known_text().is_some_and(|word| RESERVED.contains(&word)) => {
            return Err(ShellParseError("has a word that shells parse differently"));
        }
        Some(_) => {}
    }
    if name == "xargs" {
        let marks = xargs_marks(&words[..at]);
        // No usual command has more than one.
        if marks.len() > MARKS_MAX {
            return Err(ShellParseError("has an unusual option in front of a program"));
        }
        for mark in marks {
            inner.iter_mut().for_each(|word| forget_from_mark(word, mark));
        }
        inner.push(ShellWord::unknown());
    }
    let effect =
        if ["sudo", "doas"].contains(&name) { WrapperEffect::Opaque } else { WrapperEffect::Transparent };
    let commands = vec![with_inner_commands(
        SimpleCommand { assignments, words: inner, ..SimpleCommand::default() },
        depth,
        dialect,
    )?];
    Ok(Some(InnerCommands { commands, first_word: at, effect }))
}

impl Wrapper {
    /// Finds the end of the options; variables that `env` unsets count as set to an unknown value.
    fn skip_options(
        &self,
        words: &[ShellWord],
        unsets: bool,
    ) -> Result<(usize, Vec<Assignment>), ShellParseError> {
        let error = ShellParseError("has an unusual option in front of a program");
        let (mut at, mut unset) = (1, Vec::new());
        while let Some(word) = words.get(at) {
            if word.may_be_option() || (word.extent != KnownExtent::Full && word.text.starts_with('-')) {
                return Err(ShellParseError("has unknown words in front of a program"));
            }
            let text = word.text.as_str();
            if !text.starts_with('-') {
                break;
            }
            at += 1;
            let mut value = None;
            match text {
                "--" => break,
                "-" if unsets => {}
                _ if text.starts_with("--") => {
                    let (name, joined) =
                        text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
                    match joined {
                        _ if self.long.contains(&name) => {}
                        _ if !self.long_valued.contains(&name) => return Err(error),
                        Some(joined) => value = Some(joined.to_owned()),
                        // The value of these is optional and always joined.
                        None if ["--replace", "--max-lines"].contains(&name) => {}
                        None => (value, at) = (words.get(at).map(|word| word.text.clone()), at + 1),
                    }
                }
                _ => {
                    let letters = text[1..].trim_start_matches(|letter| self.flags.contains(letter));
                    match letters.chars().next() {
                        None if text.len() > 1 => {}
                        Some(letter) if self.valued.contains(letter) && letters.len() > 1 => {
                            value = Some(letters[1..].to_owned());
                        }
                        Some(letter) if self.valued.contains(letter) => {
                            (value, at) = (words.get(at).map(|word| word.text.clone()), at + 1);
                        }
                        _ => return Err(error),
                    }
                }
            }
            if let Some(last) = words.get(at - 1) {
                check_certain(last)?;
            }
            if let Some(name) = value.filter(|_| unsets) {
                unset.push(Assignment { name, value: ShellWord::unknown() });
            }
        }
        Ok((at, unset))
    }
}

/// Rejects an unknown word, which could be several and hide the program.
fn check_certain(word: &ShellWord) -> Result<(), ShellParseError> {
    match word.extent {
        KnownExtent::Full | KnownExtent::Home => Ok(()),
        KnownExtent::Prefix | KnownExtent::Unknown => {
            Err(ShellParseError("has unknown words in front of a program"))
        }
    }
}

/// Returns the possible marks that `xargs` replaces by its input.
fn xargs_marks(options: &[ShellWord]) -> Vec<&str> {
    let mut marks = Vec::new();
    for (place, option) in options.iter().enumerate() {
        let text = option.text.as_str();
        if let Some(rest) = text.strip_prefix("--replace") {
            marks.push(rest.strip_prefix('=').unwrap_or("{}"));
        } else if let Some((_, joined)) = text.split_once('I') {
            marks.push(joined);
            marks.extend(options.get(place + 1).map(|next| next.text.as_str()));
        }
    }
    marks.retain(|mark| !mark.is_empty());
    marks
}

/// Makes a word unknown from a mark on.
fn forget_from_mark(word: &mut ShellWord, mark: &str) {
    if let Some(start) = word.text.find(mark) {
        word.forget_from(start);
    }
}

/// Reads `sh -c TEXT`; without `-c` a shell runs a file or its input, which is unknown here.
fn shell_commands(
    words: &[ShellWord],
    depth: usize,
    dialect: ShellDialect,
) -> Result<Option<InnerCommands>, ShellParseError> {
    let error = ShellParseError("has an unusual option in front of what a shell runs");
    let (mut at, mut is_text) = (1, false);
    while let Some(word) = words.get(at) {
        check_certain(word)?;
        let Some(letters) = word.text.strip_prefix(['-', '+']) else { break };
        at += 1;
        match letters.trim_start_matches(|letter| SHELL_FLAGS.contains(letter)) {
            _ if ["--version", "--help"].contains(&word.text.as_str()) => return Ok(None),
            _ if SHELL_LONG.contains(&word.text.as_str()) => {}
            "-" | "" if letters.is_empty() || word.text == "--" => break,
            // Commands from stdin are unknown.
            "s" => return if is_text || letters.contains('c') { Err(error) } else { Ok(None) },
            "" => is_text |= letters.contains('c'),
            "o" if !letters.contains('c') => {
                let option = words.get(at).and_then(ShellWord::known_text);
                if !option.is_some_and(|option| SHELL_OPTIONS.contains(&option)) {
                    return Err(error);
                }
                at += 1;
            }
            _ => return Err(error),
        }
    }
    if !is_text {
        return Ok(None);
    }
    let text = words.get(at).ok_or(ShellParseError("is incomplete"))?;
    let text = text.known_text().ok_or(ShellParseError("runs an unknown text"))?;
    Ok(Some(InnerCommands {
        commands: parse_commands(text, depth + 1, dialect)?,
        first_word: at,
        effect: WrapperEffect::Transparent,
    }))
}

/// Reads the commands that a search runs on its matches.
fn search_commands(
    words: &[ShellWord],
    options: &[&str],
    depth: usize,
    dialect: ShellDialect,
) -> Result<Option<InnerCommands>, ShellParseError> {
    let (mut inner, mut first) = (Vec::new(), None);
    let mut at = 1;
    while at < words.len() {
        let is_start = words[at].known_text().is_some_and(|word| options.contains(&word));
        at += 1;
        if !is_start {
            continue;
        }
        first = first.or(Some(at));
        let rest = &words[at..];
        let len =
            rest.iter().position(|word| matches!(word.known_text(), Some(";" | "+"))).unwrap_or(rest.len());
        let mut words = rest[..len].to_vec();
        words.iter_mut().for_each(|word| forget_from_mark(word, "{"));
        words.push(ShellWord::unknown());
        inner.push(with_inner_commands(SimpleCommand { words, ..SimpleCommand::default() }, depth, dialect)?);
        at += len;
    }
    Ok(first.map(|at| InnerCommands { commands: inner, first_word: at, effect: WrapperEffect::Opaque }))
}

fn with_inner_commands(
    mut simple: SimpleCommand,
    depth: usize,
    dialect: ShellDialect,
) -> Result<SimpleCommand, ShellParseError> {
    // The reader checks the depth.
    ShellReader::new("", depth + 1, dialect)?;
    simple.inner = find_inner_commands(&simple, depth + 1, dialect)?;
    Ok(simple)
}
