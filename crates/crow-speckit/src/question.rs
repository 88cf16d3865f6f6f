//! A question to the person that a model may ask while a step runs, and what their answer to it means. Text in, text out.

use std::fmt::Write as _;

#[cfg(test)]
mod tests;

/// Something only the person can decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is asked, one sentence.
    pub question: String,
    /// What it may be answered with.
    pub options: Vec<Choice>,
    /// The label of the option that the model would take.
    pub recommended: Option<String>,
}

/// One possible answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// A few words.
    pub label: String,
    /// What it would mean.
    pub meaning: String,
}

/// What a person's words mean to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// This is the answer.
    Given(String),
    /// They want to be asked no more; the rest is for the model to assume.
    NoMore,
    /// They want the step to end.
    Stop,
}

impl Question {
    /// The options in the order they are shown: the one the model would take first.
    pub fn shown(&self) -> Vec<&Choice> {
        let is_recommended = |choice: &&Choice| Some(&choice.label) == self.recommended.as_ref();
        let (first, rest): (Vec<_>, Vec<_>) = self.options.iter().partition(is_recommended);
        first.into_iter().chain(rest).collect()
    }

    /// Spells it for a person who answers with their next prompt.
    pub fn spelled(&self) -> String {
        let mut text = format!("**{}**\n\n", self.question);
        for (index, choice) in self.shown().into_iter().enumerate() {
            let is_recommended = Some(&choice.label) == self.recommended.as_ref();
            let mark = if is_recommended { " (recommended)" } else { "" };
            let meaning =
                if choice.meaning.is_empty() { String::new() } else { format!(": {}", choice.meaning) };
            let Some(letter) = letter(index) else { break };
            // Writing to a text does not fail.
            let _ = writeln!(text, "- **{letter}** {}{mark}{meaning}", choice.label);
        }
        let letters = if self.options.is_empty() { "" } else { "a letter, or " };
        let _ = writeln!(
            text,
            "\nAnswer with {letters}your own words. `done` ends the questions, `cancel` ends the step."
        );
        text
    }

    /// Reads what a person said to it.
    pub fn read(&self, words: &str) -> Answer {
        let words = words.trim();
        let word = words.trim_end_matches(['.', '!', ')']).to_lowercase();
        match word.as_str() {
            "done" | "stop" | "no more" | "enough" | "skip" => return Answer::NoMore,
            "cancel" | "abort" => return Answer::Stop,
            _ => {}
        }
        let shown = self.shown();
        let by_letter = || {
            let mut letters = word.strip_prefix("option ").unwrap_or(&word).chars();
            let letter = letters.next().filter(|_| letters.next().is_none())?;
            shown.get((letter as usize).checked_sub('a' as usize)?).copied()
        };
        let by_label = || shown.iter().find(|choice| choice.label.to_lowercase() == word).copied();
        let by_consent = || {
            let consents = ["yes", "y", "ok", "recommended", "suggested"].contains(&word.as_str());
            let first = shown.first().filter(|_| consents && self.recommended.is_some())?;
            Some(*first)
        };
        let chosen = by_label().or_else(by_letter).or_else(by_consent);
        Answer::Given(chosen.map_or_else(|| words.to_owned(), |choice| choice.label.clone()))
    }
}

fn letter(index: usize) -> Option<char> {
    u8::try_from(index).ok().filter(|index| *index < 26).map(|index| char::from(b'A' + index))
}
