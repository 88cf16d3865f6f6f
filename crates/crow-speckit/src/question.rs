//! A question that a model may ask the user during a step, and the parser for answers. Text in, text out.

use std::fmt::Write as _;

#[cfg(test)]
mod tests;

/// Answers that accept the recommended option.
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

/// Answers that end the questions.
const NO_MORE_ANSWERS: [&str; 8] =
    ["done", "stop", "no more", "no more questions", "enough", "that is enough", "that's enough", "skip"];

/// Answers that end the step.
const STOP_ANSWERS: [&str; 4] = ["cancel", "cancel it", "abort", "abort it"];

/// A question that only the user can decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepQuestion {
    /// The question, one sentence.
    pub question: String,
    /// The options.
    pub options: Vec<QuestionOption>,
    /// The label of the recommended option.
    pub recommended: Option<String>,
    /// The topic, in a few words.
    pub topic: Option<String>,
}

/// An option of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionOption {
    /// A few words.
    pub label: String,
    /// Its consequence.
    pub meaning: String,
}

/// A parsed answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionAnswer {
    /// An answer.
    Answer(String),
    /// No more questions; the model is to assume the rest.
    NoMore,
    /// End the step.
    Stop,
}

impl StepQuestion {
    /// The options in display order: the recommended one first.
    pub fn ordered_options(&self) -> Vec<&QuestionOption> {
        let is_recommended = |choice: &&QuestionOption| Some(&choice.label) == self.recommended.as_ref();
        let (recommended, others): (Vec<_>, Vec<_>) = self.options.iter().partition(is_recommended);
        recommended.into_iter().chain(others).collect()
    }

    /// Formats the question for a user who answers with their next prompt.
    pub fn to_markdown(&self) -> String {
        let topic = self.topic.as_ref().map(|topic| format!("{topic}: ")).unwrap_or_default();
        let mut text = format!("**{topic}{}**\n\n", self.question);
        for (index, choice) in self.ordered_options().into_iter().enumerate() {
            let is_recommended = Some(&choice.label) == self.recommended.as_ref();
            let suffix = if is_recommended { " (recommended)" } else { "" };
            let meaning =
                if choice.meaning.is_empty() { String::new() } else { format!(": {}", choice.meaning) };
            let Some(letter) = option_letter(index) else { break };
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "- **{letter}** {}{suffix}{meaning}", choice.label);
        }
        let letters = if self.options.is_empty() { "" } else { "a letter, or " };
        let _ = writeln!(
            text,
            "\nAnswer with {letters}your own words. `done` ends the questions, `cancel` ends the step."
        );
        text
    }

    /// Whether an option has this label, ignoring case and punctuation.
    pub fn has_label(&self, text: &str) -> bool {
        self.find_by_label(text).is_some()
    }

    /// Parses an answer. A displayed option takes precedence, even if it is a word that would end the questions.
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

    /// Finds the option for a letter or a number, as in `b`, `(b)`, `option b`, `2` or `B: its label`.
    fn find_by_letter(&self, normalized: &str) -> Option<&QuestionOption> {
        let normalized = normalized.trim_start_matches(['(', '*']);
        let normalized = normalized.strip_prefix("option ").unwrap_or(normalized);
        let end = normalized.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(normalized.len());
        let (letter, rest) = normalized.split_at(end);
        let ordered = self.ordered_options();
        let index = match letter.as_bytes() {
            [letter @ b'a'..=b'z'] => usize::from(letter - b'a'),
            // If labels begin with numbers, a number is not an index.
            _ if ordered.iter().any(|choice| choice.label.starts_with(|c: char| c.is_ascii_digit())) => {
                return None;
            }
            _ => letter.parse::<usize>().ok()?.checked_sub(1)?,
        };
        let choice = *ordered.get(index)?;
        let label = rest.trim_start_matches([')', '*', ':', '.', '-', ' ']);
        (label.is_empty() || label == trim_punctuation(&choice.label).to_lowercase()).then_some(choice)
    }

    /// Returns the recommended option if the answer only agrees.
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
