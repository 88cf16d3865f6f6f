//! A question to the person that a model may ask while a step runs, and what their answer to it means. Text in, text out.

use std::fmt::Write as _;

#[cfg(test)]
mod tests;

/// Words that agree with what is recommended.
const CONSENT: [&str; 10] = [
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
const NO_MORE: [&str; 8] =
    ["done", "stop", "no more", "no more questions", "enough", "that is enough", "that's enough", "skip"];

/// Words that end the step.
const STOP: [&str; 4] = ["cancel", "cancel it", "abort", "abort it"];

/// Something only the person can decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is asked, one sentence.
    pub question: String,
    /// What it may be answered with.
    pub options: Vec<Choice>,
    /// The label of the option that the model would take.
    pub recommended: Option<String>,
    /// What it is about, in a few words.
    pub topic: Option<String>,
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
        let topic = self.topic.as_ref().map(|topic| format!("{topic}: ")).unwrap_or_default();
        let mut text = format!("**{topic}{}**\n\n", self.question);
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

    /// Tells whether an option has this label, as a person spells it.
    pub fn has_label(&self, text: &str) -> bool {
        self.labelled(text).is_some()
    }

    /// Reads what a person said to it. What they see as an option is one, even if it is a word that would end the questions.
    pub fn read(&self, words: &str) -> Answer {
        let words = words.trim();
        let word = without_end(words).to_lowercase();
        let chosen =
            self.labelled(words).or_else(|| self.lettered(&word)).or_else(|| self.consented_to(&word));
        match (chosen, word.as_str()) {
            (Some(choice), _) => Answer::Given(choice.label.clone()),
            (None, word) if NO_MORE.contains(&word) => Answer::NoMore,
            (None, word) if STOP.contains(&word) => Answer::Stop,
            (None, _) => Answer::Given(words.to_owned()),
        }
    }

    fn labelled(&self, words: &str) -> Option<&Choice> {
        let said = words.trim().to_lowercase();
        let by = |said: &str| self.options.iter().find(|choice| choice.label.trim().to_lowercase() == said);
        by(&said).or_else(|| by(without_end(&said)))
    }

    /// The option behind a letter or a number, as in `b`, `(b)`, `option b`, `2` or `B: its label`.
    fn lettered(&self, word: &str) -> Option<&Choice> {
        let word = word.trim_start_matches(['(', '*']);
        let word = word.strip_prefix("option ").unwrap_or(word);
        let end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
        let (mark, rest) = word.split_at(end);
        let shown = self.shown();
        let at = match mark.as_bytes() {
            [letter @ b'a'..=b'z'] => usize::from(letter - b'a'),
            // Where labels begin with numbers, a number is no place in a list.
            _ if shown.iter().any(|choice| choice.label.starts_with(|c: char| c.is_ascii_digit())) => {
                return None;
            }
            _ => mark.parse::<usize>().ok()?.checked_sub(1)?,
        };
        let choice = *shown.get(at)?;
        let label = rest.trim_start_matches([')', '*', ':', '.', '-', ' ']);
        (label.is_empty() || label == without_end(&choice.label).to_lowercase()).then_some(choice)
    }

    /// The option that the model would take, where the person says only that they agree.
    fn consented_to(&self, word: &str) -> Option<&Choice> {
        let first = self.options.iter().find(|choice| Some(&choice.label) == self.recommended.as_ref())?;
        CONSENT.contains(&word).then_some(first)
    }
}

fn without_end(words: &str) -> &str {
    words.trim_end_matches(['.', '!', ')', ' '])
}

fn letter(index: usize) -> Option<char> {
    u8::try_from(index).ok().filter(|index| *index < 26).map(|index| char::from(b'A' + index))
}
