//! Compares our shell parser with an independent grammar on all corpus lines: the same simple commands, with the same
//! known words and redirections.

use brush_parser::{Parser, ParserOptions, word};
use serde_json::Value;

use super::*;
use crate::shell::{self, ShellWord, SimpleCommand};

/// A part that is unknown before a line runs.
const UNKNOWN: &str = "?";

const ESCAPES: &str = "the other one leaves the text in `$'…'` or `$\"…\"` unexpanded; here it is expanded";
const BRACES: &str = "the other one leaves braces unexpanded; here they are expanded";
const GROUPS: &str = "`((…))` is two groups to shells that do not have it, so what is in it counts as run";
const CONDITION: &str =
    "`[[ … ]]` is a program to shells that do not have it, so what follows an operator in it counts as run";
const LOOP: &str = "the other one does not read a loop whose three parts are empty";
const SUBSCRIPT: &str = "the other one does not look for commands in a subscript; some shells run them";

/// Lines with known differences: a text in the line, and the reason.
const EXPLAINED: &[(&str, &str)] = &[
    ("$'", ESCAPES),
    ("$\"x\"", ESCAPES),
    ("$\"rm\"", ESCAPES),
    ("{a,b}", BRACES),
    ("{a,.", BRACES),
    ("{a,/", BRACES),
    ("{rm,", BRACES),
    ("{ls,", BRACES),
    ("{.env,", BRACES),
    ("{env,", BRACES),
    ("{git,", BRACES),
    ("{-delete,", BRACES),
    ("{lock,", BRACES),
    (".e{n,}v", BRACES),
    ("-{r,f}", BRACES),
    ("r{f,}", BRACES),
    ("{k,}", BRACES),
    ("{a},", BRACES),
    ("{a.rs},", BRACES),
    ("{x},", BRACES),
    ("((1", GROUPS),
    ("((x", GROUPS),
    ("((rm", GROUPS),
    ("(( $(", GROUPS),
    ("[[ a |", CONDITION),
    ("[[ x ||", CONDITION),
    ("((;;))", LOOP),
    ("${a[$(", SUBSCRIPT),
];

/// The lines of all corpora.
fn lines() -> impl Iterator<Item = String> {
    let corpora = [include_str!("everyday.txt"), include_str!("commands.txt"), include_str!("holdout.txt")];
    let lines = corpora.into_iter().flat_map(str::lines);
    let lines = lines.filter(|line| !line.starts_with(['#', '@']));
    lines.filter_map(|line| line.split_once(" | ")).map(|(_, line)| commands::written_out(line))
}

/// Renders our parse result.
fn ours(commands: &[SimpleCommand]) -> Vec<String> {
    let word = |word: &ShellWord| word.known_text().unwrap_or(UNKNOWN).to_owned();
    let spelled = commands.iter().filter_map(|simple| {
        let mut words: Vec<String> = simple.words.iter().map(word).collect();
        match words.first().map(String::as_str) {
            // The other parser does not count these as commands.
            Some("[[") => return None,
            Some("time") => {
                let n_options = words[1..].iter().take_while(|word| *word == "-p").count();
                words.drain(..=n_options);
            }
            _ => {}
        }
        let mut files: Vec<String> = simple
            .redirections
            .iter()
            .map(|redirection| format!("<> {}", word(&redirection.target)))
            .collect();
        files.sort();
        words.extend(files);
        (!words.is_empty()).then(|| words.join("\u{1f}"))
    });
    let mut spelled: Vec<String> = spelled.collect();
    spelled.sort();
    spelled
}

/// Collects the other parser's result.
#[derive(Default)]
struct Theirs {
    commands: Vec<String>,
    is_broken: bool,
}

impl Theirs {
    fn line(&mut self, line: &str) {
        let options = ParserOptions::default();
        match Parser::new(line.as_bytes(), &options).parse_program() {
            Ok(program) => self.visit(&serde_json::to_value(&program).unwrap()),
            Err(_) => self.is_broken = true,
        }
    }

    fn visit(&mut self, value: &Value) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| self.visit(value)),
            Value::Object(fields) => {
                if let Some(Value::String(text)) = fields.get("value") {
                    self.word(text);
                }
                for (name, value) in fields {
                    match (name.as_str(), value) {
                        ("Simple", _) => self.simple(value),
                        // Two forms of the same assignment.
                        ("AssignmentWord", _) => {
                            self.visit(&value[1]);
                            continue;
                        }
                        ("HereDocument", _) => {
                            let is_expanded = value[1]["requires_expansion"].as_bool() == Some(true);
                            if is_expanded && let Some(text) = value[1]["doc"]["value"].as_str() {
                                self.word(&text.replace(['"', '\''], ""));
                            }
                            continue;
                        }
                        ("Compound" | "ExtendedTest" | "body", Value::Array(parts)) if parts.len() == 2 => {
                            self.around(&parts[1]);
                        }
                        _ => {}
                    }
                    self.visit(value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn simple(&mut self, simple: &Value) {
        let (mut words, mut files) = (Vec::new(), Vec::new());
        let items = |name: &str| simple[name].as_array().cloned().unwrap_or_default();
        if let Some(text) = simple["word_or_name"]["value"].as_str() {
            words.push(spelled(text));
        }
        files.extend(items("prefix").iter().filter_map(|item| file(&item["IoRedirect"])));
        for item in items("suffix") {
            let text = item["Word"]["value"].as_str().or_else(|| item["AssignmentWord"][1]["value"].as_str());
            match text {
                Some(text) => words.push(spelled(text)),
                None if item.get("ProcessSubstitution").is_some() => words.push(UNKNOWN.into()),
                None => files.extend(file(&item["IoRedirect"])),
            }
        }
        files.sort();
        words.extend(files);
        self.commands.extend((!words.is_empty()).then(|| words.join("\u{1f}")));
    }

    /// Adds the redirections around a group.
    fn around(&mut self, list: &Value) {
        let mut files: Vec<String> = list.as_array().into_iter().flatten().filter_map(file).collect();
        files.sort();
        self.commands.extend((!files.is_empty()).then(|| files.join("\u{1f}")));
    }

    /// Finds commands in a word.
    fn word(&mut self, text: &str) {
        match word::parse(text, &ParserOptions::default()) {
            Ok(pieces) => self.pieces(&serde_json::to_value(&pieces).unwrap()),
            Err(_) => self.is_broken = true,
        }
    }

    fn pieces(&mut self, value: &Value) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| self.pieces(value)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    match (name.as_str(), value) {
                        ("CommandSubstitution" | "BackquotedCommandSubstitution", Value::String(line)) => {
                            self.line(line);
                        }
                        (
                            "default_value" | "alternative_value" | "error_message" | "value" | "pattern",
                            Value::String(text),
                        ) => {
                            self.word(text);
                        }
                        _ => self.pieces(value),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Renders the file of a redirection, if there is one.
fn file(redirection: &Value) -> Option<String> {
    let both = &redirection["OutputAndError"][0];
    let file = &redirection["File"][2];
    let duplicate = &file["Duplicate"];
    let is_file = |text: &str| !text.ends_with('-') && text.parse::<u8>().is_err();
    let target = match duplicate["value"].as_str() {
        _ if both.is_object() => both,
        Some(text) if is_file(text) => duplicate,
        Some(_) | None => &file["Filename"],
    };
    target["value"].as_str().map(|text| format!("<> {}", spelled(text)))
}

/// Renders a word without its quotes, if all of it is known.
fn spelled(text: &str) -> String {
    let Ok(pieces) = word::parse(text, &ParserOptions::default()) else { return UNKNOWN.into() };
    let pieces = serde_json::to_value(&pieces).unwrap();
    let mut plain = String::new();
    if is_known(&pieces, false, &mut plain) { plain } else { UNKNOWN.into() }
}

fn is_known(pieces: &Value, is_quoted: bool, plain: &mut String) -> bool {
    pieces.as_array().into_iter().flatten().all(|piece| {
        let piece = &piece["piece"];
        let text = |name: &str| piece[name].as_str();
        if let Some(text) = text("Text") {
            plain.push_str(text);
            return is_quoted || !text.contains(['*', '?', '[']) && !expands_braces(text) || text == "[";
        }
        if let Some(text) = text("SingleQuotedText") {
            plain.push_str(text);
            return true;
        }
        if let Some(escape) = text("EscapeSequence") {
            let letter = &escape[1..];
            let keeps = is_quoted && !["$", "`", "\"", "\\", "\n"].contains(&letter);
            plain.push_str(if keeps {
                escape
            } else if letter == "\n" {
                ""
            } else {
                letter
            });
            return true;
        }
        let inner = &piece["DoubleQuotedSequence"];
        inner.is_array() && is_known(inner, true, plain)
    })
}

fn expands_braces(text: &str) -> bool {
    let insides = text.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let has_dots = insides.into_iter().any(|inside| inside.contains(".."));
    has_dots || text.split_once('{').is_some_and(|(_, rest)| rest.contains(','))
}

#[test]
fn common_lines_have_same_extended_parse() {
    for line in lines() {
        let Ok(commands) = shell::parse_line(&line) else { continue };
        let extended = shell::parse_extended(&line).unwrap_or_else(|reason| panic!("{line:?}: {reason}"));
        assert_eq!(ours(&commands), ours(&extended), "{line:?}");
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures are to be read")]
fn commands_agree_with_independent_grammar() {
    let (mut n_same, mut n_ours_only, mut n_theirs_only, mut n_neither) = (0, 0, 0, 0);
    let (mut explained, mut different) = (Vec::new(), Vec::new());
    for line in lines() {
        let mut theirs = Theirs::default();
        theirs.line(&line);
        theirs.commands.sort();
        let commands = shell::parse_line(&line).or_else(|_| shell::parse_extended(&line));
        match commands {
            Err(_) if theirs.is_broken => n_neither += 1,
            // A line that is not understood always asks.
            Err(_) => n_theirs_only += 1,
            Ok(commands) if !theirs.is_broken && ours(&commands) == theirs.commands => n_same += 1,
            Ok(commands) => {
                n_ours_only += usize::from(theirs.is_broken);
                match EXPLAINED.iter().find(|(text, _)| line.contains(text)) {
                    Some((text, reason)) => {
                        println!("{line:?}: {reason}");
                        explained.push(*text);
                    }
                    None => different.push(format!(
                        "{line:?}\n  {:?}\n  {:?} {}",
                        ours(&commands),
                        theirs.commands,
                        theirs.is_broken
                    )),
                }
            }
        }
    }
    println!(
        "{n_same} lines the same, {} different with a reason ({n_ours_only} of them read here alone), {n_theirs_only} read there alone, \
         {n_neither} by neither",
        explained.len()
    );
    assert!(different.is_empty(), "{}:\n{}", different.len(), different.join("\n").replace('\u{1f}', "|"));
    let unused = EXPLAINED.iter().filter(|(text, _)| !explained.contains(text)).collect::<Vec<_>>();
    assert!(unused.is_empty(), "{unused:?}");
}
