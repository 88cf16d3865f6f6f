//! Questions of Crow's own to the person, in the form of a call that no reply made.

use crow_acp::{Answered, Answers, Question, Subject};
use crow_core::{CallId, Content, Facets, Prints, Status, ToolKind, Touch, Update};
use serde_json::Map;

use crate::run_turn::{Conversation, TurnCx};

/// What is asked about.
pub(crate) struct Matter<'a> {
    /// Which part of Crow asks.
    pub(crate) by: &'a str,
    pub(crate) title: &'a str,
    pub(crate) content: Vec<Content>,
    pub(crate) subject: Subject,
    pub(crate) answers: Answers<'static>,
}

/// Asks whether something may be.
pub(crate) async fn confirm(cx: &TurnCx<'_>, matter: Matter<'_>, talk: &Conversation) -> Answered {
    let call = call(cx, talk);
    let content: Vec<Content> = matter
        .content
        .into_iter()
        .map(|content| match content {
            Content::Text(text) => Content::Text(visible(&text)),
            content @ (Content::Diff { .. } | Content::Image { .. }) => content,
        })
        .collect();
    let facets = Facets {
        title: visible(&crate::children::line(matter.title)),
        kind: ToolKind::Think,
        locations: Vec::new(),
        touch: Touch::Nothing,
    };
    let announced = Update::Call {
        call,
        name: matter.by.to_owned(),
        facets: facets.clone(),
        arguments: Map::new(),
        status: Status::Pending,
        content: content.clone(),
        prints: Prints::Nothing,
    };
    cx.client.tell(cx.session, announced);
    let question = Question {
        subject: matter.subject,
        call,
        facets: &facets,
        arguments: &Map::new(),
        preview: &content,
        why: None,
        answers: matter.answers,
    };
    let answered = cx.client.ask(cx.session, question, cx.cut).await;
    let status = if answered.allows() { Status::Done } else { Status::Failed };
    cx.client.tell(cx.session, Update::CallChanged { call, status, content: None });
    answered
}

/// Names a call that no reply makes: at the place of the next entry, beyond what any reply has.
pub(crate) fn call(cx: &TurnCx<'_>, talk: &Conversation) -> CallId {
    let beyond = usize::try_from(cx.kit.next_number()).unwrap_or(usize::MAX);
    CallId::at(talk.transcript.next_seq(), beyond.saturating_add(CALLS_OF_A_REPLY))
}

/// As many as no reply has calls.
const CALLS_OF_A_REPLY: usize = 100_000;

/// Takes out what would do something to whoever shows a text, or turn its letters around: names and words of a repository
/// and of a model are in it.
pub(crate) fn visible(text: &str) -> String {
    let is_odd = |char: char| {
        (char.is_control() && char != '\n')
            || matches!(char, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|char| if is_odd(char) { char::REPLACEMENT_CHARACTER } else { char }).collect()
}
