//! The call with which the model asks the user a question: its name and its arguments.

use crow_speckit::{QuestionOption, StepQuestion};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::tool_arguments::{parse_arguments, single_line};

/// Name of the tool; its last call has the open question.
pub(crate) const ASK: &str = "speckit_ask";

/// More than a user compares at a glance.
const OPTIONS_MAX: usize = 5;

/// A question is one sentence.
const QUESTION_CHARS_MAX: usize = 500;

/// A topic is a few words.
const TOPIC_CHARS_MAX: usize = 100;

/// An option is a few words, and a sentence about its meaning.
const OPTION_CHARS_MAX: usize = 300;

#[derive(Deserialize)]
struct QuestionArgs {
    question: String,
    #[serde(default)]
    options: Vec<ChoiceArgs>,
    recommended: Option<String>,
    topic: Option<String>,
}

#[derive(Deserialize)]
struct ChoiceArgs {
    label: String,
    #[serde(default)]
    meaning: String,
}

/// Parses the question of a call, or returns what is wrong with it.
pub(crate) fn parse_question(arguments: &Map<String, Value>) -> Result<StepQuestion, String> {
    let QuestionArgs { question, options, recommended, topic } = parse_arguments(arguments)?;
    let question = single_line(&question);
    let options: Vec<QuestionOption> = options
        .into_iter()
        .map(|choice| QuestionOption {
            label: single_line(&choice.label),
            meaning: single_line(&choice.meaning),
        })
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
    let is_invalid = |choice: &QuestionOption| {
        choice.label.is_empty()
            || choice.label.chars().count() + choice.meaning.chars().count() > OPTION_CHARS_MAX
    };
    if options.iter().any(is_invalid) {
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
    let recommended = recommended.map(|label| single_line(&label));
    let recommended = recommended.filter(|label| options.iter().any(|choice| choice.label == *label));
    let topic = topic.map(|topic| single_line(&topic)).filter(|topic| !topic.is_empty());
    if topic.as_ref().is_some_and(|topic| topic.chars().count() > TOPIC_CHARS_MAX) {
        return Err(format!("the topic has more than {TOPIC_CHARS_MAX} characters; a few words are enough"));
    }
    Ok(StepQuestion { question, options, recommended, topic })
}
