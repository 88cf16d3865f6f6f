//! One field of a server's form: which answers it offers, and the value of an answer.

use serde_json::{Number, Value};

/// Leaves an optional field out.
const SKIP: &str = "leave out";
const YES: &str = "Yes";
const NO: &str = "No";

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerFormField {
    /// Its name in the answer.
    pub name: String,
    pub title: String,
    pub description: String,
    pub is_required: bool,
    pub kind: ServerFieldKind,
    /// The server's default, as the user would answer it.
    pub default: Option<String>,
}

/// The values that a field accepts.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerFieldKind {
    Text {
        chars_min: usize,
        chars_max: usize,
        format: Option<TextFormat>,
    },
    Number {
        is_integer: bool,
        minimum: Option<f64>,
        maximum: Option<f64>,
    },
    Boolean,
    /// One of a list.
    Choice(Vec<ServerFieldChoice>),
    /// Several of a list.
    Choices {
        choices: Vec<ServerFieldChoice>,
        n_min: usize,
        n_max: usize,
    },
}

impl ServerFieldKind {
    /// Returns the answer to a field of this kind that is yes or no.
    pub fn boolean_answer(value: bool) -> &'static str {
        if value { YES } else { NO }
    }
}

/// A value to choose; labels are unique within a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFieldChoice {
    pub value: String,
    pub label: String,
}

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    Email,
    Uri,
    Date,
    DateTime,
}

impl TextFormat {
    /// The format as a noun with its article.
    fn description(self) -> &'static str {
        match self {
            Self::Email => "an email address",
            Self::Uri => "an address such as https://example.org",
            Self::Date => "a date such as 2026-01-31",
            Self::DateTime => "a time such as 2026-01-31T12:00:00Z",
        }
    }

    /// Whether a text has the shape of the format; the server checks the rest.
    fn matches(self, text: &str) -> bool {
        match self {
            Self::Email => text
                .split_once('@')
                .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@')),
            Self::Uri => text.split_once(':').is_some_and(|(scheme, rest)| {
                scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                    && !rest.is_empty()
                    && !text.contains(char::is_whitespace)
            }),
            Self::Date => is_date(text),
            Self::DateTime => text
                .split_once(['T', 't', ' '])
                .is_some_and(|(date, time)| is_date(date) && time.len() >= "00:00Z".len()),
        }
    }
}

fn is_date(text: &str) -> bool {
    let shape = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c });
    shape.eq("0000-00-00".chars())
}

impl ServerFormField {
    /// Lists the answers to choose from. The first one, which is easily chosen, is the default, or agrees to nothing.
    pub(super) fn offered_answers(&self) -> Vec<String> {
        let mut answers: Vec<String> = match &self.kind {
            ServerFieldKind::Text { .. }
            | ServerFieldKind::Number { .. }
            | ServerFieldKind::Choices { .. } => self.default.iter().cloned().collect(),
            ServerFieldKind::Boolean => vec![NO.to_owned(), YES.to_owned()],
            ServerFieldKind::Choice(choices) => choices.iter().map(|choice| choice.label.clone()).collect(),
        };
        let default = self.default.as_ref();
        if let Some(index) = answers.iter().position(|answer| Some(answer) == default) {
            answers[..=index].rotate_right(1);
        }
        if !self.is_required {
            let position = if default.is_some() { answers.len() } else { 0 };
            answers.insert(position, SKIP.to_owned());
        }
        answers
    }

    /// Whether a text that is not offered may be an answer.
    pub(super) fn accepts_text(&self) -> bool {
        match self.kind {
            ServerFieldKind::Text { .. }
            | ServerFieldKind::Number { .. }
            | ServerFieldKind::Choices { .. } => true,
            ServerFieldKind::Boolean | ServerFieldKind::Choice(_) => false,
        }
    }

    /// Describes the values that it accepts, as a sentence; empty if any will do.
    pub(super) fn requirement(&self) -> String {
        match &self.kind {
            ServerFieldKind::Text { format: Some(format), .. } => {
                format!("The answer is {}.", format.description())
            }
            ServerFieldKind::Text { chars_min, .. } if *chars_min > 1 => {
                format!("The answer has at least {chars_min} characters.")
            }
            ServerFieldKind::Number { is_integer, minimum, maximum } => {
                let noun = if *is_integer { "a whole number" } else { "a number" };
                format!("The answer is {noun}{}.", range_clause(*minimum, *maximum))
            }
            ServerFieldKind::Choices { choices, .. } => {
                let labels: Vec<&str> = choices.iter().map(|choice| choice.label.as_str()).collect();
                format!("Answer with several, separated by commas: {}.", labels.join(", "))
            }
            ServerFieldKind::Text { .. } | ServerFieldKind::Boolean | ServerFieldKind::Choice(_) => {
                String::new()
            }
        }
    }

    /// Parses an answer; `None` if the field is left out. The error is a clause that says why it is invalid.
    pub(super) fn parse_answer(&self, text: &str) -> Result<Option<Value>, String> {
        if text == SKIP && !self.is_required {
            return Ok(None);
        }
        let value = match &self.kind {
            ServerFieldKind::Text { chars_min, chars_max, format } => {
                check_text(text, *chars_min, *chars_max, *format)?;
                Value::String(text.to_owned())
            }
            ServerFieldKind::Number { is_integer, minimum, maximum } => {
                let number = parse_number(text, *is_integer).ok_or("it is not such a number")?;
                let size = number.as_f64().unwrap_or_default();
                if minimum.is_some_and(|minimum| size < minimum)
                    || maximum.is_some_and(|maximum| size > maximum)
                {
                    return Err(format!("it is not a number{}", range_clause(*minimum, *maximum)));
                }
                Value::Number(number)
            }
            ServerFieldKind::Boolean => match text {
                YES => Value::Bool(true),
                NO => Value::Bool(false),
                _ => return Err("it was not offered".to_owned()),
            },
            ServerFieldKind::Choice(choices) => Value::String(find_choice(choices, text)?.value.clone()),
            ServerFieldKind::Choices { choices, n_min, n_max } => {
                let mut values: Vec<Value> = Vec::new();
                for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
                    let value = Value::String(find_choice(choices, part)?.value.clone());
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                if values.len() < *n_min || values.len() > *n_max {
                    return Err(format!("between {n_min} and {n_max} are required"));
                }
                Value::Array(values)
            }
        };
        Ok(Some(value))
    }
}

fn check_text(
    text: &str,
    chars_min: usize,
    chars_max: usize,
    format: Option<TextFormat>,
) -> Result<(), String> {
    let n_chars = text.chars().count();
    if n_chars < chars_min {
        return Err(format!("it has fewer than {chars_min} characters"));
    }
    if n_chars > chars_max {
        return Err(format!("it has more than {chars_max} characters"));
    }
    match format.filter(|format| !format.matches(text)) {
        Some(format) => Err(format!("it is not {}", format.description())),
        None => Ok(()),
    }
}

fn parse_number(text: &str, is_integer: bool) -> Option<Number> {
    match text.parse::<i64>() {
        Ok(number) => Some(number.into()),
        Err(_) if is_integer => None,
        // Infinity and NaN are no numbers in JSON.
        Err(_) => Number::from_f64(text.parse().ok()?),
    }
}

fn range_clause(minimum: Option<f64>, maximum: Option<f64>) -> String {
    match (minimum, maximum) {
        (Some(minimum), Some(maximum)) => format!(" between {minimum} and {maximum}"),
        (Some(minimum), None) => format!(" of at least {minimum}"),
        (None, Some(maximum)) => format!(" of at most {maximum}"),
        (None, None) => String::new(),
    }
}

fn find_choice<'a>(choices: &'a [ServerFieldChoice], text: &str) -> Result<&'a ServerFieldChoice, String> {
    let is_exact = |choice: &&ServerFieldChoice| choice.label == text;
    let is_same = |choice: &&ServerFieldChoice| choice.label.eq_ignore_ascii_case(text);
    let found = choices.iter().find(is_exact).or_else(|| choices.iter().find(is_same));
    found.ok_or_else(|| format!("{text:?} was not offered"))
}
