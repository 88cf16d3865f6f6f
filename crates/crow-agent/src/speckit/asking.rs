//! Questions of a step and their answers: as a form where the client has them, else as text whose answer is the person's
//! next prompt. Which question is open stands in the transcript and nowhere else, so a crash, a fork and a replay agree.

use crow_acp::{Client, Form, Formed};
use crow_core::{
    CallId, CrowPart, Entry, Failure, Outcome, Reply, SessionId, SpeckitPart, Status, Transcript,
};
use crow_speckit::{Answer, AnswerFacts, Aside, Command, Question};
use crow_tools::{Keeper, Workspace};
use tokio_util::sync::CancellationToken;

use crate::speckit::record::Record;
use crate::speckit::step::Step;
use crate::speckit::tools::{self, ASK};

/// What became of a question.
pub(super) enum Asked {
    Answered(Answer),
    /// It was closed, or the turn was cut.
    Cancelled,
    /// It has to be shown, and is answered by a prompt.
    Later,
}

/// Asks in a form.
pub(super) async fn ask(
    client: &Client,
    session: &SessionId,
    question: &Question,
    cut: &CancellationToken,
) -> Asked {
    if !client.abilities().forms {
        return Asked::Later;
    }
    let options = question.shown().into_iter();
    let options = options
        .map(|choice| crow_acp::Choice { label: choice.label.clone(), meaning: choice.meaning.clone() });
    // Nobody must take it for a question of Crow's own, such as one for permission.
    let about = question.topic.as_ref().map(|topic| format!(" ({topic})")).unwrap_or_default();
    let message = format!("The model asks{about}: {}", question.question);
    let form = Form { message, options: options.collect(), free_text: true, is_about_trust: false };
    match client.elicit(session, &form, cut).await {
        Formed::Chosen(text) if question.options.iter().any(|choice| choice.label == text) => {
            Asked::Answered(Answer::Given(text))
        }
        Formed::Chosen(text) => Asked::Answered(question.read(&text)),
        Formed::Declined => Asked::Answered(Answer::NoMore),
        Formed::Cancelled => Asked::Cancelled,
        Formed::Nobody { .. } => Asked::Later,
    }
}

/// Writes an answer down where it belongs.
pub(super) async fn written(
    record: Option<&Record>,
    (question, answer): (&Question, &Answer),
    (keeper, workspace): (Option<&dyn Keeper>, &Workspace),
) -> Result<(), String> {
    match (record, answer) {
        (Some(record), Answer::Given(given)) => {
            record.add((&question.question, given), keeper, workspace).await
        }
        (Some(_) | None, _) => Ok(()),
    }
}

/// What the model is told of an answer that came as a prompt.
pub(super) async fn told(
    step: &Step<'_>,
    (question, answer): (&Question, &Answer),
    left: usize,
) -> Result<String, Failure> {
    let answer = match answer {
        Answer::Given(text) => text.clone(),
        Answer::NoMore | Answer::Stop => String::new(),
    };
    let facts = AnswerFacts { question: question.question.clone(), answer, left };
    step.aside(Aside::Answer, |all| all.answer = facts).await
}

/// What waits for the person's word: which step asked what, and how often it has asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub(super) command: Command,
    pub(super) question: Question,
    pub(super) n_asked: usize,
}

/// Finds the question that the last reply left open.
pub(crate) fn open(transcript: &Transcript) -> Option<Open> {
    let entries = transcript.entries();
    let answered_until = entries.iter().rposition(|entry| matches!(entry, Entry::Reply(_)))?;
    let Entry::Reply(Reply { calls, .. }) = &entries[answered_until] else { return None };
    let is_shown = |outcome: &Outcome| outcome.status == Status::Done;
    let results = &entries[answered_until + 1..];
    // Whatever was said since then is no answer to it.
    let shown = results.iter().map(|entry| match entry {
        Entry::Result { call, outcome, .. } => Some((call, is_shown(outcome))),
        Entry::Prompt(_) | Entry::Reply(_) => None,
    });
    let shown: Vec<_> = shown.collect::<Option<_>>()?;
    let call = calls
        .iter()
        .find(|call| call.name == ASK && shown.iter().any(|(id, is_shown)| **id == call.id && *is_shown))?;
    let question = tools::question(&call.arguments.object()).ok()?;
    let (begun, command) =
        entries.iter().enumerate().rev().find_map(|(at, entry)| Some((at, begins(entry)?)))?;
    let asks: Vec<_> = entries[begun..].iter().flat_map(asks).collect();
    let is_asked = |entry: &&Entry| match entry {
        Entry::Result { call, outcome, .. } => asks.contains(call) && is_shown(outcome),
        Entry::Prompt(_) | Entry::Reply(_) => false,
    };
    let n_asked = entries[begun..].iter().filter(is_asked).count();
    Some(Open { command, question, n_asked })
}

/// The calls of a reply that ask something.
fn asks(entry: &Entry) -> Vec<CallId> {
    let Entry::Reply(reply) = entry else { return Vec::new() };
    reply.calls.iter().filter(|call| call.name == ASK).map(|call| call.id).collect()
}

/// Tells which step a prompt began.
fn begins(entry: &Entry) -> Option<Command> {
    let step =
        |what: &SpeckitPart| if let SpeckitPart::Step(step) = what { Command::parse(step) } else { None };
    added(entry).find_map(step)
}

/// Tells whether a prompt says what a run of tasks stands for.
pub(super) fn begins_run(entry: &Entry) -> bool {
    begins(entry) == Some(Command::Implement)
}

/// Tells whether a prompt says something of the workflow.
pub(super) fn speaks_of_it(entry: &Entry) -> bool {
    added(entry).next().is_some()
}

/// What the workflow added to a prompt.
fn added(entry: &Entry) -> impl Iterator<Item = &SpeckitPart> {
    let parts = match entry {
        Entry::Prompt(prompt) => prompt.parts.as_slice(),
        Entry::Reply(_) | Entry::Result { .. } => &[],
    };
    parts.iter().filter_map(|part| match part.added() {
        Some(CrowPart::Speckit(what)) => Some(what),
        Some(_) | None => None,
    })
}
