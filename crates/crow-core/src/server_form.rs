//! A form that an MCP server wants the user to fill in: one question for each field, and the answers as the values that
//! the server expects. Invariant: its texts are cleaned and limited by the caller, and only valid answers are returned.

mod field;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use self::field::{ServerFieldChoice, ServerFieldKind, ServerFormField, TextFormat};

/// Invalid answers to one field after which the form ends: an automatic client would repeat them forever.
const ATTEMPTS_MAX: u32 = 3;

/// The answers to a form without fields, and to an address.
const ACCEPT: &str = "Accept";
const CONTINUE: &str = "Continue";
const DECLINE: &str = "Decline";

/// A form of an MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerForm {
    /// The server's name in the configuration.
    pub server: String,
    pub message: String,
    /// Without fields it asks for consent.
    pub fields: Vec<ServerFormField>,
}

/// A web address that an MCP server wants the user to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// The server's name in the configuration.
    pub server: String,
    pub message: String,
    pub url: String,
    pub host: String,
}

/// A request of an MCP server to the user.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerElicitation {
    Form(ServerForm),
    Address(ServerAddress),
}

/// The outcome of a request to the user.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerElicitationOutcome {
    /// The values by field name; none for an address.
    Accepted(Map<String, Value>),
    Declined,
    /// Closed without an answer, or cancelled with the turn.
    Cancelled,
    /// No user could be asked, or no valid answer was given.
    Unavailable {
        reason: String,
    },
}

/// One question of a server's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerQuestion {
    pub message: String,
    /// Answers to choose from; labels are unique.
    pub options: Vec<String>,
    /// Whether any text is an answer too.
    pub free_text: bool,
}

/// The next step of a dialogue.
#[derive(Debug, Clone, PartialEq)]
pub enum DialogueStep {
    Ask(ServerQuestion),
    End(ServerElicitationOutcome),
}

/// The questions and answers of one request of a server.
#[derive(Debug, Clone)]
pub struct ElicitationDialogue {
    request: ServerElicitation,
    /// Index of the current field.
    position: usize,
    n_attempts: u32,
    /// Reason why the last answer to the current field was invalid.
    problem: Option<String>,
    values: Map<String, Value>,
    /// The answer to a request without fields.
    consent: Option<bool>,
}

impl ElicitationDialogue {
    /// Starts with the first question.
    pub fn new(request: ServerElicitation) -> Self {
        Self { request, position: 0, n_attempts: 0, problem: None, values: Map::new(), consent: None }
    }

    /// Returns the current question, or the outcome.
    pub fn next_step(&self) -> DialogueStep {
        match (&self.request, self.consent) {
            (_, Some(false)) => DialogueStep::End(ServerElicitationOutcome::Declined),
            (ServerElicitation::Address(_), Some(true)) => {
                DialogueStep::End(ServerElicitationOutcome::Accepted(Map::new()))
            }
            (ServerElicitation::Address(address), None) => DialogueStep::Ask(address_question(address)),
            (ServerElicitation::Form(form), None) if form.fields.is_empty() => {
                DialogueStep::Ask(ServerQuestion {
                    message: form_heading(form),
                    options: vec![ACCEPT.to_owned(), DECLINE.to_owned()],
                    free_text: false,
                })
            }
            (ServerElicitation::Form(form), _) => match form.fields.get(self.position) {
                Some(_) if self.n_attempts == ATTEMPTS_MAX => {
                    let problem = self.problem.as_deref().unwrap_or_default();
                    let reason = format!("{ATTEMPTS_MAX} answers were invalid: {problem}");
                    DialogueStep::End(ServerElicitationOutcome::Unavailable { reason })
                }
                Some(field) => DialogueStep::Ask(self.field_question(form, field)),
                None => DialogueStep::End(ServerElicitationOutcome::Accepted(self.values.clone())),
            },
        }
    }

    /// Takes the answer to the current question. An invalid one leads to the same question with the reason.
    pub fn on_answer(&mut self, text: &str) {
        let field = match &self.request {
            ServerElicitation::Form(form) => form.fields.get(self.position),
            ServerElicitation::Address(_) => None,
        };
        let Some(field) = field else {
            self.consent = Some(text == ACCEPT || text == CONTINUE);
            return;
        };
        match field.parse_answer(text) {
            Ok(value) => {
                if let Some(value) = value {
                    self.values.insert(field.name.clone(), value);
                }
                self.position += 1;
                (self.n_attempts, self.problem) = (0, None);
            }
            Err(problem) => {
                self.n_attempts += 1;
                self.problem = Some(problem);
            }
        }
    }

    fn field_question(&self, form: &ServerForm, field: &ServerFormField) -> ServerQuestion {
        let number = match form.fields.len() {
            1 => String::new(),
            n_fields => format!("{} of {n_fields}: ", self.position + 1),
        };
        let problem = self.problem.as_ref().map(|problem| format!("The answer is invalid: {problem}."));
        let lines = [
            form_heading(form),
            format!("{number}{}", field.title),
            field.description.clone(),
            field.requirement(),
            problem.unwrap_or_default(),
        ];
        let lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        ServerQuestion {
            message: lines.join("\n"),
            options: field.offered_answers(),
            free_text: field.accepts_text(),
        }
    }
}

fn form_heading(form: &ServerForm) -> String {
    format!("The MCP server {} asks: {}", form.server, form.message)
}

/// The whole address is shown and nothing opens it: the user decides where it leads.
fn address_question(address: &ServerAddress) -> ServerQuestion {
    let ServerAddress { server, message, url, host } = address;
    ServerQuestion {
        message: format!(
            "The MCP server {server} wants you to open an address of {host} in your browser: {message}\n{url}\n\
             Crow does not open it. Continue if you do."
        ),
        options: vec![CONTINUE.to_owned(), DECLINE.to_owned()],
        free_text: false,
    }
}
