//! A question of the agent and which input answers it: nothing that was typed or pasted before the question was on the
//! screen, and nothing that was meant for the composer.

use std::time::{Duration, Instant};

use crow_acp::{AgentPermissionRequest, ElicitationForm, FormSubject};

use super::{
    cells::RowMemo,
    event::{DrawnQuestion, QuestionId},
    keys::KeyAction,
};

/// A key this soon after the question appeared, or after another key, was not a reaction to the question.
pub(crate) const QUIET: Duration = Duration::from_millis(400);

/// The same for the key that was pressed last: held, it is repeated after up to 660 ms.
pub(crate) const QUIET_SAME_KEY: Duration = Duration::from_millis(800);

/// The subject of a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum QuestionSubject {
    /// Whether a call may run.
    Call(Box<AgentPermissionRequest>),
    /// A choice or a free text.
    Form(Box<ElicitationForm>),
}

/// The effect of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnswerEffect {
    /// Chooses an option of a permission request.
    Option(String),
    /// Rejects with this option, and sends a text that the user types.
    Instead(String),
    /// Lets the user change the prefix of the commands that the option allows.
    Prefix { option: String, prefix: String },
    /// Chooses a label of a form.
    Choice(String),
    /// Asks for a text as the answer of a form.
    FreeText,
}

/// One answer on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfferedAnswer {
    pub(crate) key: Option<KeyAction>,
    pub(crate) name: String,
    pub(crate) description: String,
    /// Whether it approves something.
    pub(crate) allows: bool,
    pub(crate) effect: AnswerEffect,
}

/// A question that waits for the user.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WaitingQuestion {
    pub(crate) id: QuestionId,
    pub(crate) subject: QuestionSubject,
    /// The rows of the subject.
    pub(crate) rows: RowMemo,
    pub(crate) selected: usize,
    /// Rows of the body above the visible ones.
    pub(crate) scroll: usize,
    /// The last frame that showed it.
    drawn: Option<DrawnQuestion>,
    /// The rows from the first one on that have been on the screen.
    seen_to: usize,
    /// The time of the first frame that showed it.
    drawn_at: Option<Instant>,
    last_key_at: Option<Instant>,
    /// The key that is being handled should have given it the keyboard, but was too early.
    is_focus_early: bool,
    /// The user gave it the keyboard with Tab.
    pub(crate) is_focused: bool,
    /// All of it has been on the screen.
    pub(crate) is_read: bool,
    /// The composer has the answer.
    pub(crate) takes_text: bool,
}

impl WaitingQuestion {
    pub(crate) fn new(id: QuestionId, subject: QuestionSubject) -> Self {
        Self {
            id,
            subject,
            rows: RowMemo::default(),
            selected: 0,
            scroll: 0,
            drawn: None,
            seen_to: 0,
            drawn_at: None,
            last_key_at: None,
            is_focus_early: false,
            is_focused: false,
            is_read: false,
            takes_text: false,
        }
    }

    /// Records a frame that showed the question.
    pub(crate) fn mark_drawn(&mut self, drawn: DrawnQuestion, now: Instant) {
        self.drawn_at.get_or_insert(now);
        let has_same_rows =
            self.drawn.is_some_and(|before| (before.n_rows, before.columns) == (drawn.n_rows, drawn.columns));
        if !has_same_rows {
            self.seen_to = 0;
        }
        if drawn.first <= self.seen_to {
            self.seen_to = self.seen_to.max(drawn.end);
        }
        self.is_read |= self.seen_to >= drawn.n_rows;
        self.scroll = drawn.first;
        self.drawn = Some(drawn);
    }

    /// Whether the last frame had no room for any of its subject.
    pub(crate) fn is_hidden(&self) -> bool {
        self.drawn.is_some_and(|drawn| drawn.end == drawn.first)
    }

    /// Scrolls up by the rows that are visible.
    pub(crate) fn scroll_up(&mut self) {
        self.scroll = self.scroll.saturating_sub(self.page_rows());
    }

    /// Scrolls down by the rows that are visible, but past none that has not been on the screen.
    pub(crate) fn scroll_down(&mut self) {
        let next = self.scroll + self.page_rows();
        self.scroll = if self.is_read { next } else { next.min(self.seen_to) };
    }

    fn page_rows(&self) -> usize {
        self.drawn.map_or(0, |drawn| drawn.end - drawn.first).max(1)
    }

    /// Records a key that was not pressed at the question.
    pub(crate) fn note_key(&mut self, read_at: Instant) {
        self.last_key_at = Some(read_at);
    }

    /// Whether a key that was read at this time was typed at the question as it is on the screen.
    pub(crate) fn is_seen(&self, read_at: Instant) -> bool {
        self.drawn_at.is_some_and(|drawn_at| read_at > drawn_at)
    }

    /// Whether a key that was read at this time, after a pause of at least `quiet`, may answer. A text in the composer
    /// keeps the keyboard until Tab.
    pub(crate) fn has_keyboard(&self, read_at: Instant, quiet: Duration, is_draft_empty: bool) -> bool {
        if !self.is_seen(read_at) || self.takes_text {
            return false;
        }
        self.is_focused || (is_draft_empty && self.is_quiet(read_at, quiet))
    }

    /// Gives it the keyboard, if the key that was read at this time was a reaction to it.
    pub(crate) fn focus(&mut self, read_at: Instant, quiet: Duration) {
        self.is_focused |= self.is_seen(read_at) && self.is_quiet(read_at, quiet);
        self.is_focus_early = !self.is_focused;
    }

    /// Whether the key that has been handled was too early to give it the keyboard; `false` from then on.
    pub(crate) fn take_early_focus(&mut self) -> bool {
        std::mem::take(&mut self.is_focus_early)
    }

    fn is_quiet(&self, read_at: Instant, quiet: Duration) -> bool {
        let quiet_since = self.last_key_at.max(self.drawn_at);
        quiet_since.is_some_and(|since| read_at.saturating_duration_since(since) >= quiet)
    }

    /// Whether it is a question of Crow to which a text is the only answer.
    pub(crate) fn is_free_text(&self) -> bool {
        match &self.subject {
            QuestionSubject::Form(form) => {
                form.free_text && form.options.is_empty() && form.subject == FormSubject::Question
            }
            QuestionSubject::Call(_) => false,
        }
    }

    /// Whether the composer has the prefix of an answer.
    pub(crate) fn edits_prefix(&self) -> bool {
        let answers = self.answers();
        let effect = answers.get(self.selected).map(|answer| &answer.effect);
        self.takes_text && matches!(effect, Some(AnswerEffect::Prefix { .. }))
    }

    /// Lists the answers; approving once is first, and an answer for later is never selected by itself.
    pub(crate) fn answers(&self) -> Vec<OfferedAnswer> {
        match &self.subject {
            QuestionSubject::Call(request) => call_answers(request),
            QuestionSubject::Form(form) => form_answers(form),
        }
    }
}

fn call_answers(request: &AgentPermissionRequest) -> Vec<OfferedAnswer> {
    let mut free_keys = vec![
        (true, false, KeyAction::AnswerAllowOnce),
        (true, true, KeyAction::AnswerAllowSession),
        (true, true, KeyAction::AnswerAllowProject),
        (false, false, KeyAction::AnswerReject),
        (false, true, KeyAction::AnswerRejectAlways),
    ];
    let mut answers: Vec<OfferedAnswer> = Vec::new();
    for option in &request.options {
        let is_project = option.allows && option.always && option.name.contains("project");
        let is_fitting = |key: &(bool, bool, KeyAction)| {
            let prefers = !is_project || key.2 == KeyAction::AnswerAllowProject;
            key.0 == option.allows && key.1 == option.always && prefers
        };
        let key = free_keys.iter().position(is_fitting).map(|index| free_keys.remove(index).2);
        let is_instead = !option.allows && !option.always && key.is_none();
        answers.push(OfferedAnswer {
            key: if is_instead { Some(KeyAction::AnswerInstead) } else { key },
            name: option.name.clone(),
            description: String::new(),
            allows: option.allows,
            effect: match &option.prefix {
                Some(prefix) => AnswerEffect::Prefix { option: option.id.clone(), prefix: prefix.clone() },
                None => AnswerEffect::Option(option.id.clone()),
            },
        });
    }
    let has_instead = answers.iter().any(|answer| answer.key == Some(KeyAction::AnswerInstead));
    let reject = answers.iter().position(|answer| answer.key == Some(KeyAction::AnswerReject));
    if let (false, Some(reject)) = (has_instead, reject) {
        let AnswerEffect::Option(id) = answers[reject].effect.clone() else { return answers };
        let instead = OfferedAnswer {
            key: Some(KeyAction::AnswerInstead),
            name: "Reject and say what to do instead".to_owned(),
            description: String::new(),
            allows: false,
            effect: AnswerEffect::Instead(id),
        };
        answers.insert(reject + 1, instead);
    }
    answers
}

fn form_answers(form: &ElicitationForm) -> Vec<OfferedAnswer> {
    let choices = form.options.iter().map(|choice| OfferedAnswer {
        key: None,
        name: choice.label.clone(),
        description: choice.description.clone(),
        allows: true,
        effect: AnswerEffect::Choice(choice.label.clone()),
    });
    let free_text = form.free_text.then(|| OfferedAnswer {
        key: Some(KeyAction::AnswerInstead),
        name: "Type an answer".to_owned(),
        description: String::new(),
        allows: false,
        effect: AnswerEffect::FreeText,
    });
    choices.chain(free_text).collect()
}

#[cfg(test)]
mod tests;
