//! The tools that a model has while a step runs: to ask the person, to say what became of a task, to say what the code
//! lacks. Each leaves what it heard on the desk; what follows from it is the driver's to do.

use std::sync::Arc;

use crow_acp::Client;
use crow_core::{Content, Facets, Outcome, SessionId, ToolKind, ToolSpec, Touch, Update};
use crow_speckit::{Answer, Choice, Command, Gap, GapKind, Question};
use crow_tools::{Running, Tool, ToolCx, Workspace};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::kit::Kit;
use crate::speckit::asking::{self, Asked};
use crate::speckit::record::Record;
use crate::speckit::scope::{Desk, TaskResult};
use crate::speckit::work::STOPPED;

/// The tool that asks; its last call says which question waits for an answer.
pub(super) const ASK: &str = "speckit_ask";

/// More than a person compares at a glance.
const OPTIONS_MAX: usize = 5;

/// A question is one sentence.
const QUESTION_CHARS_MAX: usize = 500;

/// An option is a few words, and a sentence about what it means.
const OPTION_CHARS_MAX: usize = 300;

/// A note is what a person reads in one line of a report.
const NOTE_CHARS_MAX: usize = 2_000;

/// Tasks that one look at the code may add; more is another plan.
const GAPS_MAX: usize = 100;

/// How many questions a step may ask.
pub(super) fn questions_max(command: Command) -> usize {
    match command {
        Command::Constitution | Command::Specify => 3,
        Command::Clarify | Command::Checklist => 5,
        Command::Plan | Command::Tasks | Command::Analyze | Command::Implement | Command::Converge => 0,
    }
}

/// The tools of a step.
pub(super) fn of(
    command: Command,
    desk: &Arc<Desk>,
    (kit, client, session): (&Arc<Kit>, &Client, &SessionId),
    record: Option<Record>,
) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    if questions_max(command) > 0 {
        tools.push(Arc::new(Ask {
            spec: ask_spec(),
            n_max: questions_max(command),
            desk: desk.clone(),
            kit: kit.clone(),
            client: client.clone(),
            session: session.clone(),
            record,
        }));
    }
    match command {
        Command::Implement => tools.push(Arc::new(Task { spec: task_spec(), desk: desk.clone() })),
        Command::Converge => tools.push(Arc::new(Converge { spec: converge_spec(), desk: desk.clone() })),
        Command::Constitution
        | Command::Specify
        | Command::Clarify
        | Command::Plan
        | Command::Checklist
        | Command::Tasks
        | Command::Analyze => {}
    }
    tools
}

struct Ask {
    spec: ToolSpec,
    n_max: usize,
    desk: Arc<Desk>,
    kit: Arc<Kit>,
    client: Client,
    session: SessionId,
    /// Where answers are written down.
    record: Option<Record>,
}

#[derive(Deserialize)]
struct WantedQuestion {
    question: String,
    #[serde(default)]
    options: Vec<WantedChoice>,
    recommended: Option<String>,
}

#[derive(Deserialize)]
struct WantedChoice {
    label: String,
    #[serde(default)]
    meaning: String,
}

fn ask_spec() -> ToolSpec {
    ToolSpec {
        name: ASK.into(),
        description: "Asks the person one question that only they can decide, and gives their answer. Give two to five \
                      options where you can, and recommend one."
            .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "question": {"type": "string", "description": "One sentence that ends with a question mark"},
                "options": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "label": {"type": "string", "description": "The answer in a few words"},
                            "meaning": {"type": "string", "description": "What follows from it, one sentence"}
                        },
                        "required": ["label"]
                    }
                },
                "recommended": {"type": "string", "description": "The label of the option you would take"}
            },
            "required": ["question"]
        }),
    }
}

/// Reads the question that a call asks, or says what is wrong with it.
pub(super) fn question(arguments: &Map<String, Value>) -> Result<Question, String> {
    let WantedQuestion { question, options, recommended } = parse(arguments)?;
    let question = line(&question);
    let options: Vec<Choice> = options
        .into_iter()
        .map(|choice| Choice { label: line(&choice.label), meaning: line(&choice.meaning) })
        .collect();
    if !question.ends_with('?') {
        return Err("the question is none: ask one sentence that ends with a question mark".to_owned());
    }
    if question.chars().count() > QUESTION_CHARS_MAX {
        return Err(format!("the question has more than {QUESTION_CHARS_MAX} characters; ask it shorter"));
    }
    if options.len() > OPTIONS_MAX || options.len() == 1 {
        return Err(format!("give no options, or two to {OPTIONS_MAX}"));
    }
    let is_odd = |choice: &Choice| {
        choice.label.is_empty()
            || choice.label.chars().count() + choice.meaning.chars().count() > OPTION_CHARS_MAX
    };
    if options.iter().any(is_odd) {
        return Err(format!(
            "an option has no label, or has with its meaning more than {OPTION_CHARS_MAX} characters"
        ));
    }
    let mut labels: Vec<String> = options.iter().map(|choice| choice.label.to_lowercase()).collect();
    labels.sort();
    labels.dedup();
    if labels.len() != options.len() {
        return Err("two options have the same label".to_owned());
    }
    let recommended = recommended.map(|label| line(&label));
    let recommended = recommended.filter(|label| options.iter().any(|choice| choice.label == *label));
    Ok(Question { question, options, recommended })
}

impl Tool for Ask {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn facets(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> Facets {
        let question = arguments.get("question").and_then(Value::as_str).unwrap_or("Ask");
        facets(question)
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        Box::pin(async move { self.ask(arguments, cx).await.unwrap_or_else(Outcome::failed) })
    }
}

impl Ask {
    async fn ask(&self, arguments: &Map<String, Value>, cx: ToolCx<'_>) -> Result<Outcome, String> {
        let question = question(arguments)?;
        {
            let mut state = self.desk.state();
            if state.is_waiting {
                return Err("a question waits for its answer already; ask one at a time".to_owned());
            }
            if state.n_asked >= self.n_max {
                return Err("no more questions may be asked in this step; assume what is usual, and say what you assumed".to_owned());
            }
            state.n_asked += 1;
            // Another one of the same reply has to wait too.
            state.is_waiting = true;
        }
        let n_left = || self.n_max - self.desk.state().n_asked;
        match asking::ask(&self.client, &self.session, &question, cx.cut).await {
            Asked::Answered(answer) => {
                {
                    let mut state = self.desk.state();
                    state.is_waiting = false;
                    if matches!(answer, Answer::NoMore | Answer::Stop) {
                        state.n_asked = self.n_max;
                    }
                    state.has_stopped |= answer == Answer::Stop;
                    state.is_over |= answer == Answer::Stop;
                }
                let with = (cx.keeper, cx.workspace);
                asking::written(self.record.as_ref(), (&question, &answer), with).await?;
                let mut text = told(&answer, n_left());
                if let (Some(record), Answer::Given(_)) = (&self.record, &answer) {
                    text.push_str(&format!(
                        "\nCrow wrote both under Clarifications in {}. Carry it into the section it concerns now, before you \
                         ask anything else.",
                        record.spec.display()
                    ));
                }
                Ok(Outcome::done(text))
            }
            Asked::Cancelled => {
                self.desk.state().is_waiting = false;
                Err("the question was closed without an answer; do not ask it again".to_owned())
            }
            Asked::Later => {
                let text = question.spelled();
                let message = self.kit.next_note();
                self.client.tell(&self.session, Update::Text { message, text: format!("\n{text}") });
                self.desk.state().is_over = true;
                let outcome = Outcome::done(
                    "the question was shown to the person; their answer comes as the next message",
                );
                Ok(Outcome { for_client: vec![Content::Text(text)], ..outcome })
            }
        }
    }
}

struct Task {
    spec: ToolSpec,
    desk: Arc<Desk>,
}

#[derive(Deserialize)]
struct WantedResult {
    id: String,
    state: WantedState,
    #[serde(default)]
    note: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WantedState {
    Done,
    Failed,
}

fn task_spec() -> ToolSpec {
    ToolSpec {
        name: "speckit_task".into(),
        description: "Says what became of the task at hand, once, when its work is finished and checked. Crow marks it in \
                      tasks.md and hands out the next one."
            .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "The task's id, such as T012"},
                "state": {"type": "string", "enum": ["done", "failed"]},
                "note": {"type": "string", "description": "What was done and how it was checked, or why it failed; one or two sentences"}
            },
            "required": ["id", "state", "note"]
        }),
    }
}

impl Tool for Task {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn facets(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> Facets {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        facets(&format!("{} {}", text("id"), text("state")))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, _cx: ToolCx<'a>) -> Running<'a> {
        Box::pin(async move { self.report(arguments).map_or_else(Outcome::failed, Outcome::done) })
    }
}

impl Task {
    fn report(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let WantedResult { id, state, note } = parse(arguments)?;
        let note = short(&note);
        let mut desk = self.desk.state();
        let at_hand = desk.task.as_deref().ok_or("there is no task at hand")?;
        if !at_hand.eq_ignore_ascii_case(id.trim()) {
            return Err(format!("the task at hand is {at_hand}, not {}; nothing was marked", line(&id)));
        }
        if desk.result.is_some() {
            return Err(format!("{at_hand} was reported already"));
        }
        let text = match state {
            WantedState::Done => format!("{at_hand} is done"),
            WantedState::Failed if note.is_empty() => return Err("say in the note why it failed".to_owned()),
            WantedState::Failed => format!("{at_hand} is noted as failed"),
        };
        desk.result = Some(match state {
            WantedState::Done => TaskResult::Done { note },
            WantedState::Failed => TaskResult::Failed { why: note },
        });
        desk.is_over = true;
        Ok(text)
    }
}

struct Converge {
    spec: ToolSpec,
    desk: Arc<Desk>,
}

#[derive(Deserialize)]
struct WantedGaps {
    tasks: Vec<WantedGap>,
}

#[derive(Deserialize)]
struct WantedGap {
    text: String,
    source: String,
    gap: WantedKind,
    #[serde(default)]
    is_critical: bool,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum WantedKind {
    Missing,
    Partial,
    Contradicts,
    Unrequested,
}

fn converge_spec() -> ToolSpec {
    ToolSpec {
        name: "speckit_converge".into(),
        description: "Says, once and completely, what the code lacks against spec, plan and tasks. Crow adds a task for \
                      each to tasks.md; an empty list means that nothing is missing."
            .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "tasks": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "text": {"type": "string", "description": "What is to be done, with the file path"},
                            "source": {"type": "string", "description": "What asks for it, such as FR-004 or plan.md"},
                            "gap": {"type": "string", "enum": ["missing", "partial", "contradicts", "unrequested"]},
                            "is_critical": {"type": "boolean", "description": "It breaks a must of the constitution or the main story"}
                        },
                        "required": ["text", "source", "gap"]
                    }
                }
            },
            "required": ["tasks"]
        }),
    }
}

impl Tool for Converge {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn facets(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> Facets {
        let n_gaps = arguments.get("tasks").and_then(Value::as_array).map_or(0, Vec::len);
        facets(&format!("{n_gaps} gaps between code and spec"))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, _cx: ToolCx<'a>) -> Running<'a> {
        Box::pin(async move { self.report(arguments).map_or_else(Outcome::failed, Outcome::done) })
    }
}

impl Converge {
    fn report(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let WantedGaps { tasks } = parse(arguments)?;
        if tasks.len() > GAPS_MAX {
            return Err(format!("these are more than {GAPS_MAX} tasks; sum some of them up"));
        }
        if let Some(at) =
            tasks.iter().position(|gap| line(&gap.text).is_empty() || line(&gap.source).is_empty())
        {
            return Err(format!("task {} has no text or no source", at + 1));
        }
        let gaps: Vec<Gap> = tasks.into_iter().map(WantedGap::into_gap).collect();
        let mut desk = self.desk.state();
        if desk.gaps.is_some() {
            return Err("this was reported already".to_owned());
        }
        let text = format!("{} tasks are noted", gaps.len());
        desk.gaps = Some(gaps);
        desk.is_over = true;
        Ok(text)
    }
}

impl WantedGap {
    fn into_gap(self) -> Gap {
        let kind = match self.gap {
            WantedKind::Missing => GapKind::Missing,
            WantedKind::Partial => GapKind::Partial,
            WantedKind::Contradicts => GapKind::Contradicts,
            WantedKind::Unrequested => GapKind::Unrequested,
        };
        Gap { text: short(&self.text), source: short(&self.source), kind, is_critical: self.is_critical }
    }
}

fn facets(title: &str) -> Facets {
    Facets {
        title: crate::children::line(title),
        kind: ToolKind::Think,
        locations: Vec::new(),
        touch: Touch::Nothing,
    }
}

/// Makes one line of what may be anything.
fn line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn short(text: &str) -> String {
    line(text).chars().take(NOTE_CHARS_MAX).collect()
}

fn parse<T: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments.clone()))
        .map_err(|error| format!("the arguments do not fit: {error}"))
}

/// What the model is told of an answer.
pub(super) fn told(answer: &Answer, n_left: usize) -> String {
    match answer {
        Answer::Given(text) if n_left > 0 => {
            format!("The person answered: {text}\n(You may ask {n_left} more.)")
        }
        Answer::Given(text) => {
            format!("The person answered: {text}\n(That was the last question you may ask.)")
        }
        Answer::NoMore => "The person wants no more questions. Assume what is usual for the rest.".to_owned(),
        Answer::Stop => STOPPED.to_owned(),
    }
}
