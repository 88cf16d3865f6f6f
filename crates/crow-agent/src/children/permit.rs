//! Whether a child that is an agent of others may have the files and terminals of our client. What the law frees is
//! free, what the person allowed the child already is not asked again, and the rest is asked.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crow_acp::{PermissionAnswer, PermissionChoice, PermissionQuestion, Subject, Want, Wanted};
use crow_core::{Content, Facets, Grants, Law, Roots, ToolKind, Touch, Verdict, judge, shell};
use serde_json::Value;

use crate::children::Family;
use crate::session::Standing;

/// What is remembered of answers of one child; more questions than that are asked anew.
const YESES_MAX: usize = 1_000;

const YES: &str = "allow_once";
const NO: &str = "reject_once";

/// What the person allowed a child that runs here: the paths and commands that stood in its questions. It could do all
/// of it with its own hands, so this is no right; it saves the person from being asked twice. Who is on another
/// machine has no hands here, and is asked about each thing.
#[derive(Debug, Default)]
pub(super) struct Yeses(Mutex<HashSet<String>>);

impl Yeses {
    /// Remembers a yes to a question.
    pub(super) fn remember(&self, question: &PermissionQuestion, answer: &PermissionAnswer) {
        let PermissionAnswer::Chosen(id) = answer else { return };
        // One answer, and one meaning of it.
        let chosen: Vec<_> = question.choices.iter().filter(|choice| choice.id == *id).collect();
        if !matches!(chosen[..], [choice] if choice.allows) {
            return;
        }
        let mut yeses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let input = question.input.as_ref().and_then(Value::as_object);
        let texts = input.into_iter().flat_map(|input| input.values()).filter_map(Value::as_str);
        let changed = question.content.iter().filter_map(|content| match content {
            Content::Diff { path, .. } => Some(path.as_str()),
            Content::Text(_) | Content::Image { .. } => None,
        });
        let room = YESES_MAX.saturating_sub(yeses.len());
        yeses.extend(texts.chain(changed).map(str::to_owned).take(room));
    }

    fn holds(&self, what: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(what)
    }
}

/// What is decided of a wish.
#[derive(Debug)]
pub(super) enum Permit {
    /// It may have it.
    Yes,
    /// It may not.
    No(String),
    /// The person decides.
    Ask(PermissionQuestion),
}

/// Decides on a wish of a child that works in `cwd`.
pub(super) fn permit(family: &Family, cwd: &Path, yeses: &Yeses, wanted: &Wanted) -> Permit {
    let (facets, said) = match wanted.want() {
        Want::Terminal => return Permit::Yes,
        Want::Read(path) => of_file(cwd, path, ToolKind::Read),
        Want::Write(path) => of_file(cwd, path, ToolKind::Edit),
        Want::Run { program, args, cwd: at, env } => {
            let at = crow_tools::resolve(&cwd.join(at.unwrap_or(cwd)));
            let roots = family.surroundings().workspace.roots().to_vec();
            if !at.starts_with(crow_tools::resolve(cwd)) && !roots.iter().any(|root| at.starts_with(root)) {
                return Permit::No(format!("{} is outside the folders of this session", at.display()));
            }
            let line = match args {
                // Many agents put a whole line here.
                [] if env.is_empty() => program.to_owned(),
                [] => format!("env {} sh -c {}", quoted(&env), shell::quote(program)),
                args if !env.is_empty() => {
                    let words: Vec<String> =
                        std::iter::once(program.to_owned()).chain(args.iter().cloned()).collect();
                    format!("env {} {}", quoted(&env), quoted(&words))
                }
                args => {
                    let words = std::iter::once(program).chain(args.iter().map(String::as_str));
                    words.map(shell::quote).collect::<Vec<_>>().join(" ")
                }
            };
            let title = super::view::line(&format!("Run {line}"));
            let touch = Touch::Runs(line.clone());
            (Facets { title, kind: ToolKind::Execute, locations: Vec::new(), touch }, line)
        }
    };
    match verdict(family, cwd, &facets) {
        Verdict::Allow => Permit::Yes,
        Verdict::Deny(why) => Permit::No(why),
        Verdict::Ask { .. } if yeses.holds(&said) => Permit::Yes,
        Verdict::Ask { why, .. } => Permit::Ask(question(&facets, why)),
    }
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| shell::quote(word)).collect::<Vec<_>>().join(" ")
}

fn of_file(cwd: &Path, path: &Path, kind: ToolKind) -> (Facets, String) {
    let said = path.display().to_string();
    let resolved = crow_tools::resolve(&cwd.join(path)).display().to_string();
    let (verb, touch) = match kind {
        ToolKind::Read => ("Read", Touch::Reads(vec![resolved])),
        ToolKind::Edit
        | ToolKind::Search
        | ToolKind::Execute
        | ToolKind::Think
        | ToolKind::Fetch
        | ToolKind::Other => ("Write", Touch::Writes(vec![resolved])),
    };
    let title = super::view::line(&format!("{verb} {said}"));
    (Facets { title, kind, locations: Vec::new(), touch }, said)
}

fn verdict(family: &Family, cwd: &Path, facets: &Facets) -> Verdict {
    let surroundings = family.surroundings();
    let settings = family.kit.settings();
    let supplies = surroundings.stock.now();
    let spelled = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect();
    let mut work: Vec<String> = spelled(surroundings.workspace.roots());
    work.push(crow_tools::resolve(cwd).display().to_string());
    let roots = Roots {
        work,
        readable: vec![settings.spill_dir.display().to_string()],
        protected: spelled(&[settings.config_dir.clone(), crow_tools::resolve(&settings.config_dir)]),
        repository: spelled(&surroundings.workspace.repositories()),
    };
    let Standing { mode, .. } = *family.standing.borrow();
    let law = Law { mode, rules: &supplies.rules, roots: &roots, resolve: &crow_tools::resolve };
    let tool = match facets.touch {
        Touch::Reads(_) => "read",
        Touch::Runs(_) => "terminal",
        Touch::Nothing | Touch::Writes(_) | Touch::Calls { .. } | Touch::Fetches { .. } | Touch::Searches => {
            "write"
        }
    };
    judge(&law, &Grants::default(), tool, facets)
}

fn question(facets: &Facets, why: Option<String>) -> PermissionQuestion {
    let choice = |id: &str, name: &str| PermissionChoice {
        id: id.to_owned(),
        name: name.to_owned(),
        allows: id == YES,
        always: false,
    };
    PermissionQuestion {
        subject: Subject::Call,
        call: String::new(),
        title: facets.title.clone(),
        kind: facets.kind,
        input: None,
        content: why.map(|why| Content::Text(format!("Why this is asked: {why}."))).into_iter().collect(),
        choices: vec![choice(YES, "Allow"), choice(NO, "Reject")],
    }
}

/// Tells whether an answer to a question of ours is a yes.
pub(super) fn is_yes(answer: Option<&PermissionAnswer>) -> bool {
    matches!(answer, Some(PermissionAnswer::Chosen(id)) if id == YES)
}
