//! A question to the person that a model may ask while a step runs, and what their answer to it means. Text in, text out.

use std::fmt::Write as _;

#[cfg(test)]
mod tests;

/// Words that agree with what is recommended.
const CONSENT_ANSWERS: [&str; 10] = [
    "yes",
    "y",
    "yes please",
    "yes, please",
    "ok",
    "okay",
    "sure",
    "recommended",
    "suggested",
    "the recommended one",
];

/// Words that end the questions.
const NO_MORE_ANSWERS: [&str; 8] =
    ["done", "stop", "no more", "no more questions", "enough", "that is enough", "that's enough", "skip"];

/// Words that end the step.
const STOP_ANSWERS: [&str; 4] = ["cancel", "cancel it", "abort", "abort it"];

/// Something only the person can decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepQuestion {
    /// What is asked, one sentence.
    pub question: String,
    /// What it may be answered with.
    pub options: Vec<QuestionOption>,
    /// The label of the option that the model would take.
    pub recommended: Option<String>,
    /// What it is about, in a few words.
    pub topic: Option<String>,
}

/// One possible answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionOption {
    /// A few words.
    pub label: String,
    /// What it would mean.
    pub meaning: String,
}

/// What a person's words mean to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionAnswer {
    /// This is the answer.
    Answer(String),
    /// They want to be asked no more; the rest is for the model to assume.
    NoMore,
    /// They want the step to end.
    Stop,
}

impl StepQuestion {
    /// The options in the order they are shown: the one the model would take first.
    pub fn ordered_options(&self) -> Vec<&QuestionOption> {
        let is_recommended = |choice: &&QuestionOption| Some(&choice.label) == self.recommended.as_ref();
        let (recommended, others): (Vec<_>, Vec<_>) = self.options.iter().partition(is_recommended);
        recommended.into_iter().chain(others).collect()
    }

    /// Spells it for a person who answers with their next prompt.
    pub fn to_markdown(&self) -> String {
        let topic = self.topic.as_ref().map(|topic| format!("{topic}: ")).unwrap_or_default();
        let mut text = format!("**{topic}{}**\n\n", self.question);
        for (index, choice) in self.ordered_options().into_iter().enumerate() {
            let is_recommended = Some(&choice.label) == self.recommended.as_ref();
            let suffix = if is_recommended { " (recommended)" } else { "" };
            let meaning =
                if choice.meaning.is_empty() { String::new() } else { format!(": {}", choice.meaning) };
            let Some(letter) = option_letter(index) else { break };
            // Writing to a text does not fail.
            let _ = writeln!(text, "- **{letter}** {}{suffix}{meaning}", choice.label);
        }
        let letters = if self.options.is_empty() { "" } else { "a letter, or " };
        let _ = writeln!(
            text,
            "\nAnswer with {letters}your own words. `done` ends the questions, `cancel` ends the step."
        );
        text
    }

    /// Tells whether an option has this label, as a person spells it.
    pub fn has_label(&self, text: &str) -> bool {
        self.find_by_label(text).is_some()
    }

    /// Reads what a person said to it. What they see as an option is one, even if it is a word that would end the questions.
    pub fn parse_answer(&self, answer: &str) -> QuestionAnswer {
        let answer = answer.trim();
        let normalized = trim_punctuation(answer).to_lowercase();
        let choice = self
            .find_by_label(answer)
            .or_else(|| self.find_by_letter(&normalized))
            .or_else(|| self.find_by_consent(&normalized));
        match (choice, normalized.as_str()) {
            (Some(choice), _) => QuestionAnswer::Answer(choice.label.clone()),
            (None, normalized) if NO_MORE_ANSWERS.contains(&normalized) => QuestionAnswer::NoMore,
            (None, normalized) if STOP_ANSWERS.contains(&normalized) => QuestionAnswer::Stop,
            (None, _) => QuestionAnswer::Answer(answer.to_owned()),
        }
    }

    fn find_by_label(&self, answer: &str) -> Option<&QuestionOption> {
        let normalized = answer.trim().to_lowercase();
        let find_exact =
            |label: &str| self.options.iter().find(|choice| choice.label.trim().to_lowercase() == label);
        find_exact(&normalized).or_else(|| find_exact(trim_punctuation(&normalized)))
    }

    /// The option behind a letter or a number, as in `b`, `(b)`, `option b`, `2` or `B: its label`.
    fn find_by_letter(&self, normalized: &str) -> Option<&QuestionOption> {
        let normalized = normalized.trim_start_matches(['(', '*']);
        let normalized = normalized.strip_prefix("option ").unwrap_or(normalized);
        let end = normalized.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(normalized.len());
        let (letter, rest) = normalized.split_at(end);
        let ordered = self.ordered_options();
        let index = match letter.as_bytes() {
            [letter @ b'a'..=b'z'] => usize::from(letter - b'a'),
            // Where labels begin with numbers, a number is no place in a list.
            _ if ordered.iter().any(|choice| choice.label.starts_with(|c: char| c.is_ascii_digit())) => {
                return None;
            }
            _ => letter.parse::<usize>().ok()?.checked_sub(1)?,
        };
        let choice = *ordered.get(index)?;
        let label = rest.trim_start_matches([')', '*', ':', '.', '-', ' ']);
        (label.is_empty() || label == trim_punctuation(&choice.label).to_lowercase()).then_some(choice)
    }

    /// The option that the model would take, where the person says only that they agree.
    fn find_by_consent(&self, normalized: &str) -> Option<&QuestionOption> {
        let recommended =
            self.options.iter().find(|choice| Some(&choice.label) == self.recommended.as_ref())?;
        CONSENT_ANSWERS.contains(&normalized).then_some(recommended)
    }
}

fn trim_punctuation(answer: &str) -> &str {
    answer.trim_end_matches(['.', '!', ')', ' '])
}

fn option_letter(index: usize) -> Option<char> {
    u8::try_from(index).ok().filter(|index| *index < 26).map(|index| char::from(b'A' + index))
}
