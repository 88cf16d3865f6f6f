//! The Spec Kit workflow as a session runs it. What needs no model is `crow-speckit`'s; what a model has to do is put to it
//! here, within limits, and looked at when it is done.

mod about;
mod asking;
mod beside;
mod converge;
mod git;
mod ground;
mod hooking;
mod implement;
mod issues;
mod layout;
mod record;
mod report;
mod scope;
mod short_name;
mod source;
mod step;
mod tools;
mod work;

use crow_acp::{Client, PromptBlock};
use crow_core::{
    CommandInfo, ContentPart, Failure, Mode, SessionId, SessionUpdate, SpeckitPart, Transcript, TurnEnd,
    slash,
};
use crow_speckit::{Feature, SpeckitAction, SpeckitProject, SpeckitRequest, TaskList, WorkflowCommand};
use crow_store::SpeckitRow;

pub(crate) use self::asking::OpenQuestion;
use self::record::run_blocking;
pub(crate) use self::scope::{StepPolicy, begin_watching, end_watching};
pub(crate) use self::step::find_report;
use self::work::{SteeringReceiver, StepInput, report_refusal, send_note};
use crate::kit::AgentRuntime;
use crate::run_turn::{SessionState, TurnCx, store_failure};

/// What a session is to do.
#[derive(Debug)]
pub(crate) enum WorkflowRequest {
    /// What a command asks for, or why it cannot be read.
    Command(Result<SpeckitRequest, String>),
    /// The answer to a question.
    Answer(OpenQuestion),
}

impl WorkflowRequest {
    /// Tells whether Crow itself would change files for it.
    fn writes_files(&self) -> bool {
        match self {
            Self::Command(Ok(SpeckitRequest::Step(asked))) => asked.command != WorkflowCommand::Analyze,
            Self::Command(Ok(SpeckitRequest::About(about))) => {
                matches!(about, SpeckitAction::Use(_) | SpeckitAction::Init)
            }
            // A model asks for what it writes, and is refused.
            Self::Command(Ok(SpeckitRequest::Extension { .. }) | Err(_)) => false,
            Self::Answer(open) => open.command != WorkflowCommand::Analyze,
        }
    }
}

/// Reads what was said as one of our commands.
pub(crate) fn parse_workflow_command(said: &[PromptBlock]) -> Option<Result<SpeckitRequest, String>> {
    let command = slash::parse_command(prompt_text(said)?)?;
    SpeckitRequest::parse(command.name, command.arguments)
}

/// Finds the question that what was said answers. Another command is no answer.
pub(crate) fn find_answered_question(transcript: &Transcript, said: &[PromptBlock]) -> Option<OpenQuestion> {
    let is_answer = prompt_text(said).is_some_and(|text| slash::parse_command(text).is_none());
    if is_answer { asking::find_open_question(transcript) } else { None }
}

fn prompt_text(said: &[PromptBlock]) -> Option<&str> {
    match said.first() {
        Some(PromptBlock::Part(ContentPart::Text(text))) => Some(text),
        Some(PromptBlock::Part(_) | PromptBlock::ImageAt { .. }) | None => None,
    }
}

/// The commands on offer.
pub(crate) fn available_commands() -> impl Iterator<Item = CommandInfo> {
    let about = CommandInfo {
        name: "speckit".into(),
        description: "Where the Spec Kit workflow stands".into(),
        hint: Some("status | use 002 | init | templates | doctor".into()),
    };
    let steps = WorkflowCommand::ALL.into_iter().map(|command| CommandInfo {
        name: format!("speckit.{}", command.as_str()),
        description: command.description().into(),
        hint: Some(command.argument_hint().into()),
    });
    steps.chain([about])
}

/// What the programs of a stored session are told of the feature that it works on.
pub(crate) async fn variables(kit: &AgentRuntime, session: &SessionId) -> Vec<(String, String)> {
    row(kit, session).await.map(|row| ground::feature_variables(&row)).unwrap_or_default()
}

async fn row(kit: &AgentRuntime, session: &SessionId) -> Option<SpeckitRow> {
    let read = kit.store.speckit_state(session).await;
    read.unwrap_or_else(|error| {
        tracing::warn!(%session, %error, "what the session stood at in the workflow could not be read");
        None
    })
}

/// Shows the task list that the client of a stored session saw last.
pub(crate) async fn restore_workflow(kit: &AgentRuntime, (client, session): (&Client, &SessionId)) {
    let Some(row) = row(kit, session).await else { return };
    let is_listed = row.last_command.as_deref().and_then(WorkflowCommand::parse).is_some_and(|last| {
        matches!(last, WorkflowCommand::Tasks | WorkflowCommand::Implement | WorkflowCommand::Converge)
    });
    let Some(dir) = row.feature_dir.filter(|_| is_listed) else { return };
    let read = run_blocking(move || {
        Ok(SpeckitProject::read_file(&Feature::from_dir(dir.into()).tasks_path())?.unwrap_or_default())
    })
    .await;
    let list = TaskList::parse(&read.unwrap_or_default());
    if !list.tasks.is_empty() {
        client.send_update(session, SessionUpdate::Plan(step::plan_entries(&list, &[])));
    }
}

/// What the model has to know of the workflow again when the conversation was made shorter and nothing left in it speaks of
/// that.
pub(crate) async fn workflow_reminder(
    cx: &TurnCx<'_>,
    transcript: &Transcript,
) -> Result<Option<ContentPart>, Failure> {
    if transcript.compaction().is_none() || transcript.entries().iter().any(asking::mentions_workflow) {
        return Ok(None);
    }
    let row = cx.kit.store.speckit_state(cx.session).await.map_err(store_failure)?;
    let Some(row) = row else { return Ok(None) };
    let Some(dir) = row.feature_dir else { return Ok(None) };
    let feature = Feature::from_dir(dir.into());
    let last = row.last_command.as_deref().and_then(WorkflowCommand::parse);
    // Whoever cannot read the files is told of them all the same.
    let text = run_blocking(move || report::feature_reminder(&feature, last)).await;
    Ok(text.ok().map(|text| step::hidden_part(SpeckitPart::Reminder, text)))
}

/// Does it; what cannot be done is said, and nothing is written.
pub(crate) async fn run_workflow(
    cx: &TurnCx<'_>,
    talk: &mut SessionState,
    (wanted, spoken, untold): (WorkflowRequest, Vec<PromptBlock>, Option<ContentPart>),
    words: SteeringReceiver<'_>,
) -> Result<TurnEnd, Failure> {
    let said = StepInput { spoken, untold };
    if cx.standing.borrow().mode == Mode::Plan && wanted.writes_files() {
        report_refusal(cx, "Plan mode only reads, and this writes files; change the mode first, with /mode.");
        return Ok(TurnEnd::Done);
    }
    let done = match wanted {
        WorkflowRequest::Command(Err(why)) => Err(why),
        // The answer would be written down for another feature than the one that it is about.
        WorkflowRequest::Command(Ok(SpeckitRequest::About(SpeckitAction::Use(_))))
            if asking::find_open_question(&talk.transcript).is_some() =>
        {
            Err("a question waits for its answer; answer it, or say `cancel`, and change the feature then"
                .to_owned())
        }
        WorkflowRequest::Command(Ok(SpeckitRequest::About(asked))) => {
            about::run_info_command(cx, asked).await?.map(|text| {
                send_note(cx, &text);
                TurnEnd::Done
            })
        }
        WorkflowRequest::Command(Ok(SpeckitRequest::Extension { name, text })) => {
            hooking::run_extension_command(cx, talk, (&name, &text), said, words).await?
        }
        WorkflowRequest::Command(Ok(SpeckitRequest::Step(invocation))) => {
            work::begin_step(cx, talk, (invocation, said), words).await?
        }
        WorkflowRequest::Answer(open) => work::resume_step(cx, talk, (open, said), words).await?,
    };
    Ok(done.unwrap_or_else(|why| {
        report_refusal(cx, &to_sentence(&why));
        TurnEnd::Done
    }))
}

/// Makes a sentence of why something is not done.
fn to_sentence(why: &str) -> String {
    let mut letters = why.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if why.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}
