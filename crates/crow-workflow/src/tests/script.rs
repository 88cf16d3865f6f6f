//! The script of a test: one action per line.

use crow_core::TurnEnd;
use serde_json::Value;

use crate::{ConfirmationAnswer, FormAnswer};

/// The directory of the feature.
const FEATURE: &str = "specs/001-albums";

/// A line of a script.
pub(super) enum ScriptLine {
    Have { path: String, text: String, is_approved: bool },
    Prompt(String),
    Session(SessionChange),
}

/// A change of the scripted session.
pub(super) enum SessionChange {
    Turn(Vec<ModelAction>),
    Confirm(ConfirmationAnswer),
    Form(FormAnswer),
    Child(String),
    Config(String),
}

/// An action of the model in a turn.
#[derive(Debug)]
pub(super) enum ModelAction {
    Write { path: String, text: String },
    Call { tool: String, arguments: Value },
    End(TurnEnd),
    EndByHook,
}

/// Parses a script.
pub(super) fn parse_script(script: &str) -> Vec<ScriptLine> {
    let mut lines: Vec<ScriptLine> = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(action) = parse_action(line) {
            let Some(ScriptLine::Session(SessionChange::Turn(actions))) = lines.last_mut() else {
                panic!("{line}: there is no turn")
            };
            actions.push(action);
            continue;
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        lines.push(match word {
            ">" => ScriptLine::Prompt(rest.to_owned()),
            "have" => parse_file(rest),
            "turn" => ScriptLine::Session(SessionChange::Turn(Vec::new())),
            "confirm" => ScriptLine::Session(SessionChange::Confirm(parse_confirmation(rest))),
            "form" => ScriptLine::Session(SessionChange::Form(parse_form_answer(rest))),
            "child" => ScriptLine::Session(SessionChange::Child(rest.replace("\\n", "\n"))),
            "config" => ScriptLine::Session(SessionChange::Config(rest.to_owned())),
            _ => panic!("{line} is no line of a script"),
        });
    }
    lines
}

fn parse_file(rest: &str) -> ScriptLine {
    let (path, text) = rest.split_once(": ").unwrap();
    let (path, is_approved) = match path.strip_suffix(" approved") {
        Some(path) => (path, true),
        None => (path, false),
    };
    ScriptLine::Have { path: expand_path(path), text: text.to_owned(), is_approved }
}

fn parse_action(line: &str) -> Option<ModelAction> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    Some(match word {
        "write" => {
            let (path, text) = rest.split_once(": ").unwrap();
            ModelAction::Write { path: expand_path(path), text: text.to_owned() }
        }
        "call" => {
            let (tool, arguments) = rest.split_once(' ').unwrap();
            ModelAction::Call { tool: tool.to_owned(), arguments: serde_json::from_str(arguments).unwrap() }
        }
        "cancelled" => ModelAction::End(TurnEnd::Cancelled),
        "request-limit" => ModelAction::End(TurnEnd::RequestLimit),
        "ended-by-hook" => ModelAction::EndByHook,
        _ => return None,
    })
}

fn expand_path(path: &str) -> String {
    path.replace("$F", FEATURE)
}

fn parse_confirmation(word: &str) -> ConfirmationAnswer {
    match word {
        "once" => ConfirmationAnswer::Allowed { is_lasting: false },
        "always" => ConfirmationAnswer::Allowed { is_lasting: true },
        "reject" => ConfirmationAnswer::Rejected { is_lasting: false },
        "cancel" => ConfirmationAnswer::Cancelled,
        _ => ConfirmationAnswer::Unavailable { reason: word.to_owned() },
    }
}

fn parse_form_answer(text: &str) -> FormAnswer {
    match text {
        "declined" => FormAnswer::Declined,
        "closed" => FormAnswer::Cancelled,
        _ => FormAnswer::Text(text.to_owned()),
    }
}
