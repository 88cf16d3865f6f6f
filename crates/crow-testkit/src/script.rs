//! The scripted model's answers, as values and in a small language for transcripts.
//!
//! One line is the answer to one request; its steps are separated by `|`: `thought "hm" | text "Hello" | call read
//! {"file_path": "a"} | usage 10 2 | cache 6 3`, `hold`, `cut`, `header "retry-after" "1" | status 429 {"error":
//! "busy"}`. Lines that begin with `#` are comments.
#![expect(clippy::panic, reason = "a script that cannot be read is a mistake in the test")]

#[cfg(test)]
mod tests;

use serde_json::Value;

/// The answers of a model, one for each request.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// The answers in the order of the requests.
    pub answers: Vec<Answer>,
}

/// The answer to one request. Unless its steps say otherwise, it ends as a good provider ends it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The steps in order.
    pub steps: Vec<Step>,
    /// Splits the body into pieces of this many bytes.
    pub split: Option<usize>,
}

/// A step of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Sends text.
    Text(String),
    /// Sends reasoning.
    Thought(String),
    /// Sends a whole call in two pieces; its id is `call_` and its index.
    Call {
        /// The tool.
        name: String,
        /// The arguments; any text, valid or not.
        arguments: String,
    },
    /// Sends a whole chunk.
    Chunk(Value),
    /// Sends the usage.
    Usage {
        /// Input tokens.
        input: u64,
        /// Output tokens.
        output: u64,
    },
    /// Adds cache use to the usage; must follow `usage`.
    Cache {
        /// Tokens read from the cache.
        read: u64,
        /// Tokens written to the cache.
        written: u64,
    },
    /// Sends this finish reason instead of the default.
    Finish(String),
    /// Sends raw bytes; nothing is added at the end of the answer.
    Raw(Vec<u8>),
    /// Waits for `release` or until the client disconnects.
    Hold,
    /// Closes the connection.
    Disconnect,
    /// Adds a header to the answer.
    Header(String, String),
    /// Sets a status other than 200.
    Code(u16),
    /// Answers with a status and a body instead of a stream.
    Status {
        /// The code.
        code: u16,
        /// The raw body.
        body: String,
    },
}

impl Script {
    /// Parses a script; see the module for its language.
    #[track_caller]
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self { answers: lines.map(Answer::parse).collect() }
    }

    /// Makes a script from its answers.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: answers.into_iter().collect() }
    }
}

impl From<&str> for Script {
    #[track_caller]
    fn from(text: &str) -> Self {
        Self::parse(text)
    }
}

impl Answer {
    /// Makes an answer from its steps.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), split: None }
    }

    /// Creates an answer with these bytes as the body of a stream.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new([Step::Raw(bytes.into())])
    }

    /// Creates an answer with a status and this body, byte for byte.
    pub fn with_status(code: u16, body: impl Into<String>) -> Self {
        Self::new([Step::Status { code, body: body.into() }])
    }

    /// Splits the body into pieces of `n_bytes`.
    #[must_use]
    pub fn split(mut self, n_bytes: usize) -> Self {
        self.split = Some(n_bytes);
        self
    }

    /// Parses one line of a script.
    #[track_caller]
    pub fn parse(line: &str) -> Self {
        let mut answer = Self::default();
        let mut parser = AnswerParser { line, text: line };
        loop {
            match parser.next_word() {
                "split" => answer.split = Some(parser.next_number()),
                word => answer.steps.push(parser.parse_step(word)),
            }
            parser.text = parser.text.trim_start();
            match parser.text.strip_prefix('|') {
                Some(text) => parser.text = text,
                None if parser.text.is_empty() => return answer,
                None => parser.fail("a `|`"),
            }
        }
    }
}

/// A parser for one line.
struct AnswerParser<'a> {
    line: &'a str,
    text: &'a str,
}

impl<'a> AnswerParser<'a> {
    #[track_caller]
    fn parse_step(&mut self, word: &str) -> Step {
        match word {
            "text" => Step::Text(self.next_string()),
            "thought" => Step::Thought(self.next_string()),
            "call" => {
                let name = self.next_word().to_owned();
                // A string is used as it is, so that a script can send broken arguments.
                let value = self.next_value();
                let arguments = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                Step::Call { name, arguments }
            }
            "chunk" => Step::Chunk(self.next_value()),
            "usage" => Step::Usage { input: self.next_number(), output: self.next_number() },
            "cache" => Step::Cache { read: self.next_number(), written: self.next_number() },
            "finish" => Step::Finish(self.next_word().to_owned()),
            "raw" => Step::Raw(self.next_string().into_bytes()),
            "hold" => Step::Hold,
            "cut" => Step::Disconnect,
            "header" => Step::Header(self.next_string(), self.next_string()),
            "status" => {
                let code = self.next_number();
                let body = if self.is_at_step_end() { String::new() } else { self.next_value().to_string() };
                Step::Status { code, body }
            }
            _ => self.fail("a step"),
        }
    }

    fn is_at_step_end(&self) -> bool {
        let text = self.text.trim_start();
        text.is_empty() || text.starts_with('|')
    }

    fn next_word(&mut self) -> &'a str {
        let text = self.text.trim_start();
        let end = text.find(|c: char| c.is_whitespace() || c == '|').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.text = rest;
        word
    }

    #[track_caller]
    fn next_number<N: std::str::FromStr>(&mut self) -> N {
        self.next_word().parse().unwrap_or_else(|_| self.fail("a number"))
    }

    #[track_caller]
    fn next_string(&mut self) -> String {
        let value = self.next_value();
        value.as_str().map_or_else(|| self.fail("a string"), str::to_owned)
    }

    #[track_caller]
    fn next_value(&mut self) -> Value {
        let mut values = serde_json::Deserializer::from_str(self.text).into_iter();
        match values.next() {
            Some(Ok(value)) => {
                self.text = &self.text[values.byte_offset()..];
                value
            }
            Some(Err(_)) | None => self.fail("a JSON value"),
        }
    }

    #[track_caller]
    fn fail(&self, expected: &str) -> ! {
        panic!("expected {expected} before `{}` in `{}`", self.text, self.line)
    }
}
