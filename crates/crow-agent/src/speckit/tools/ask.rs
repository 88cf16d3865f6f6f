//! The tool that asks the person something only they can decide.

use std::sync::Arc;

use crow_acp::Client;
use crow_core::{Content, Facets, Outcome, SessionId, ToolSpec, Update};
use crow_speckit::{Answer, Choice, Question};
use crow_tools::{Running, Tool, ToolCx, Workspace};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{facets, line, parse};
use crate::kit::Kit;
use crate::speckit::asking::{self, Asked};
use crate::speckit::record::Record;
use crate::speckit::scope::Desk;
use crate::speckit::work::STOPPED;

/// The tool that asks; its last call says which question waits for an answer.
pub(in crate::speckit) const ASK: &str = "speckit_ask";

/// More than a person compares at a glance.
const OPTIONS_MAX: usize = 5;

/// A question is one sentence.
const QUESTION_CHARS_MAX: usize = 500;

/// A topic is a few words.
const TOPIC_CHARS_MAX: usize = 100;

/// An option is a few words, and a sentence about what it means.
const OPTION_CHARS_MAX: usize = 300;

pub(super) struct Ask {
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
    topic: Option<String>,
}

#[derive(Deserialize)]
struct WantedChoice {
    label: String,
    #[serde(default)]
    meaning: String,
}

fn spec() -> ToolSpec {
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
                "recommended": {"type": "string", "description": "The label of the option you would take"},
                "topic": {"type": "string", "description": "What it is about, in a few words"}
            },
            "required": ["question"]
        }),
    }
}

/// Reads the question that a call asks, or says what is wrong with it.
pub(in crate::speckit) fn question(arguments: &Map<String, Value>) -> Result<Question, String> {
    let WantedQuestion { question, options, recommended, topic } = parse(arguments)?;
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
    let topic = topic.map(|topic| line(&topic)).filter(|topic| !topic.is_empty());
    if topic.as_ref().is_some_and(|topic| topic.chars().count() > TOPIC_CHARS_MAX) {
        return Err(format!("the topic has more than {TOPIC_CHARS_MAX} characters; a few words are enough"));
    }
    Ok(Question { question, options, recommended, topic })
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
    pub(super) fn new(
        n_max: usize,
        desk: Arc<Desk>,
        (kit, client, session): (Arc<Kit>, Client, SessionId),
        record: Option<Record>,
    ) -> Self {
        Self { spec: spec(), n_max, desk, kit, client, session, record }
    }

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

/// What the model is told of an answer.
fn told(answer: &Answer, n_left: usize) -> String {
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
