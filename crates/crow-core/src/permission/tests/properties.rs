//! Properties of all lines.

use proptest::prelude::*;

use super::*;
use crate::shell;

fn verdict(mode: Mode, rules: &str, line: &str) -> PermissionDecision {
    decide(mode, &read_rules(rules), &runs(line), &GrantSet::default())
}

/// A program with arguments that the rules below do not mention.
fn stranger() -> impl Strategy<Value = String> {
    // No known program begins so.
    "zz[a-z]{0,8}( [a-zA-Z0-9./-]{1,6}){0,3}"
}

/// Fragments of lines, to get deep into the parser.
fn shellish() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "git status",
        "ls",
        "rm",
        " ",
        "\n",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "(",
        ")",
        "{",
        "}",
        "'",
        "\"",
        "\\",
        "$",
        "$(",
        "${",
        "`",
        "<",
        ">",
        "<<",
        "EOF",
        "2>&1",
        "if ",
        "then ",
        "fi",
        "for x in ",
        "do ",
        "done",
        "case x in ",
        "esac",
        ";;",
        "!",
        "#",
        "=",
        "A=",
        "~",
        "*",
        "[",
        "sh -c ",
        "env ",
        "xargs ",
        "timeout 5 ",
        "find . -exec ",
        "é",
        "\t",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Words that programs and shells treat specially, and ordinary ones.
const WORDS: &[&str] = &[
    "a.txt",
    "src/main.rs",
    "src/*.rs",
    "*",
    ".env",
    ".e*",
    ".e?v",
    ".g*/config",
    ".envr[c]",
    "/etc/passwd",
    "../x",
    "-v",
    "-n",
    "-fa.txt",
    "-t.git/hooks",
    "-t/tmp/x",
    "--from-file=.env",
    "--files0-from=a.txt",
    "--target-directory=.vscode",
    "@a.txt",
    "a.l*",
    "HEAD:.env",
    "edit",
];

/// Commands with a place for a word.
const PLACES: &[&str] = &[
    "cat X",
    "head -n 3 X",
    "wc X",
    "diff X a.txt",
    "file X",
    "du X",
    "ls X",
    "grep X a.txt",
    "grep -n foo X",
    "strings X",
    "sort X",
    "echo X",
    "cat < X",
    "git log -p X",
    "git show X",
    "git config X",
    "[ -f X ]",
    "[ X 'a[1]' ]",
    "cp X a.txt",
    "cp a.txt X",
    "mkdir X",
    "touch X",
    "tee X",
    "echo hi > X",
    "rm X",
    "sed -i s/a/b/ X",
];

#[test]
fn value_of_variable_is_not_freer_than_word() {
    let mut freer = Vec::new();
    for (word, place) in WORDS.iter().flat_map(|word| PLACES.iter().map(move |place| (word, place))) {
        for mode in Mode::ALL {
            for (spelled, variable) in [((*word).to_owned(), "$x"), (format!("'{word}'"), "\"$x\"")] {
                let rules = "deny: path(**/*.lock)";
                let line = format!("x='{word}'; {}", place.replace('X', variable));
                let is_free = |line: &str| verdict(mode, rules, line) == PermissionDecision::Allow;
                if is_free(&line) && !is_free(&place.replace('X', &spelled)) {
                    freer.push(format!("{}: {line}", mode.as_str()));
                }
            }
        }
    }
    assert!(freer.is_empty(), "{}", freer.join("\n"));
}

proptest! {
    #[test]
    fn parser_never_panics(text in ".{0,80}", line in shellish()) {
        let _ = (shell::parse_line(&text), shell::parse_line(&line), shell::parse_words(&text));
        let _ = (shell::parse_extended(&text), shell::parse_extended(&line));
        let _ = verdict(Mode::Ask, "allow: git, sh, find; deny: rm", &text);
        let _ = verdict(Mode::Ask, "allow: git, sh, find; deny: rm", &line);
    }

    #[test]
    fn quoted_words_round_trip(words in prop::collection::vec("[^\\p{Cc}\u{202A}-\u{202E}\u{2066}-\u{2069}]{0,12}|[a-z\n\t '\"$`\\\\]{0,9}", 1..6)) {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        let line = format!("x {}", quoted.join(" "));
        let commands = shell::parse_line(&line).unwrap();
        prop_assert_eq!(commands.len(), 1);
        let read: Vec<&str> = commands[0].words.iter().skip(1).map(|word| word.known_text().unwrap()).collect();
        prop_assert_eq!(read, words.iter().map(String::as_str).collect::<Vec<_>>());
        let spelled = commands[0].canonical_text().unwrap();
        prop_assert_eq!(&shell::parse_line(&spelled).unwrap(), &commands);
    }

    #[test]
    fn allow_rule_does_not_cover_other_commands(other in stranger(), joint in prop::sample::select(vec![
        "git status; X", "git status && X", "git status || X", "git status | X", "git status & X", "git status\nX",
        "X; git status", "X | git status", "git status $(X)", "git status \"$(X)\"", "git status `X`", "(git status; X)",
        "{ git status; X; }", "if git status; then X; fi", "for f in $(X); do git status; done", "git status > \"$(X)\"",
        "while X; do git status; done", "case $(X) in a) git status;; esac", "A=$(X) git status", "! X", "timeout 5 X",
        "sh -c 'git status; X'", "eval 'X'", "git status <<E\n$(X)\nE", "echo $(X)", "test $(X)", "xargs X", "env X",
        "git status # \nX", "git status \\\n; X", "find . -exec X \\;", "exec X", "command X", "nohup X", "sudo X",
    ])) {
        let line = joint.replace('X', &other);
        prop_assert_ne!(verdict(Mode::Ask, "allow: git status, find", &line), PermissionDecision::Allow, "{}", line);
    }

    #[test]
    fn deny_rule_applies_in_any_context(
        word in "(/[a-z]{1,5}/|\\./|)(rm|RM|'rm'|r\\\\m|\"rm\"|r''m)",
        around in prop::collection::vec(prop::sample::select(vec![
            "X y", "ls; X", "ls | X", "X | ls", " (X)", "{ X; }", "if ls; then X; fi", "$(X)", "echo \"$(X y)\"",
            "timeout 5 X", "nice -n 5 X", "env A=b X", "env -i X", "nohup X", "sudo -u root X", "xargs -n1 X", "exec X",
            "command X", "time X", "stdbuf -oL X", "busybox X", "for f in a b; do X $f; done", "! X", "A=$(X)",
            "while ls; do X; done", "case a in a) X;; esac", "cat <<E\n$(X)\nE", "X > /dev/null 2>&1", "X &", "\nX\n",
        ]), 1..4),
    ) {
        let line = around.iter().fold(word, |line, around| around.replace('X', &line));
        let verdict = verdict(Mode::Auto, "allow: tool(terminal); deny: rm", &line);
        prop_assert_ne!(verdict, PermissionDecision::Allow, "{}", line);
    }
}
