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

use crow_acp::{Client, Spoken};
use crow_core::{
    CommandInfo, Failure, Mode, Part, SessionId, SpeckitPart, Transcript, TurnEnd, Update, slash,
};
use crow_speckit::{About, Asked, Command, Feature, Project, TaskList};
use crow_store::SpeckitRow;

pub(crate) use self::asking::Open;
use self::record::off;
pub(crate) use self::scope::{Scope, begin_watching, end_watching};
pub(crate) use self::step::reported;
use self::work::{Said, Words, note_to, refuse};
use crate::kit::Kit;
use crate::run_turn::{Conversation, TurnCx, store_failure};

/// What a session is to do.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// What a command asks for, or why it cannot be read.
    Command(Result<Asked, String>),
    /// The answer to a question.
    Answer(Open),
}

impl Wanted {
    /// Tells whether Crow itself would change files for it.
    fn writes(&self) -> bool {
        match self {
            Self::Command(Ok(Asked::Step(asked))) => asked.command != Command::Analyze,
            Self::Command(Ok(Asked::About(about))) => matches!(about, About::Use(_) | About::Init),
            // A model asks for what it writes, and is refused.
            Self::Command(Ok(Asked::Extension { .. }) | Err(_)) => false,
            Self::Answer(open) => open.command != Command::Analyze,
        }
    }
}

/// Reads what was said as one of our commands.
pub(crate) fn read(said: &[Spoken]) -> Option<Result<Asked, String>> {
    let command = slash::parse(text(said)?)?;
    Asked::read(command.name, command.arguments)
}

/// Finds the question that what was said answers. Another command is no answer.
pub(crate) fn open(transcript: &Transcript, said: &[Spoken]) -> Option<Open> {
    let is_answer = text(said).is_some_and(|text| slash::parse(text).is_none());
    if is_answer { asking::open(transcript) } else { None }
}

fn text(said: &[Spoken]) -> Option<&str> {
    match said.first() {
        Some(Spoken::Part(Part::Text(text))) => Some(text),
        Some(Spoken::Part(_) | Spoken::ImageAt { .. }) | None => None,
    }
}

/// The commands on offer.
pub(crate) fn on_offer() -> impl Iterator<Item = CommandInfo> {
    let about = CommandInfo {
        name: "speckit".into(),
        description: "Where the Spec Kit workflow stands".into(),
        hint: Some("status | use 002 | init | templates | doctor".into()),
    };
    let steps = Command::ALL.into_iter().map(|command| CommandInfo {
        name: format!("speckit.{}", command.as_str()),
        description: command.description().into(),
        hint: Some(command.hint().into()),
    });
    steps.chain([about])
}

/// What the programs of a stored session are told of the feature that it works on.
pub(crate) async fn variables(kit: &Kit, session: &SessionId) -> Vec<(String, String)> {
    row(kit, session).await.map(|row| ground::variables_of(&row)).unwrap_or_default()
}

async fn row(kit: &Kit, session: &SessionId) -> Option<SpeckitRow> {
    let read = kit.store.speckit(session).await;
    read.unwrap_or_else(|error| {
        tracing::warn!(%session, %error, "what the session stood at in the workflow could not be read");
        None
    })
}

/// Shows the task list that the client of a stored session saw last.
pub(crate) async fn recall(kit: &Kit, (client, session): (&Client, &SessionId)) {
    let Some(row) = row(kit, session).await else { return };
    let is_listed = row
        .last_command
        .as_deref()
        .and_then(Command::parse)
        .is_some_and(|last| matches!(last, Command::Tasks | Command::Implement | Command::Converge));
    let Some(dir) = row.feature_dir.filter(|_| is_listed) else { return };
    let read = off(move || Ok(Project::read(&Feature::at(dir.into()).tasks())?.unwrap_or_default())).await;
    let list = TaskList::parse(&read.unwrap_or_default());
    if !list.tasks.is_empty() {
        client.tell(session, Update::Plan(step::plan(&list, &[])));
    }
}

/// What the model has to know of the workflow again when the conversation was made shorter and nothing left in it speaks of
/// that.
pub(crate) async fn reminder(cx: &TurnCx<'_>, transcript: &Transcript) -> Result<Option<Part>, Failure> {
    if transcript.compaction().is_none() || transcript.entries().iter().any(asking::speaks_of_it) {
        return Ok(None);
    }
    let row = cx.kit.store.speckit(cx.session).await.map_err(store_failure)?;
    let Some(row) = row else { return Ok(None) };
    let Some(dir) = row.feature_dir else { return Ok(None) };
    let feature = Feature::at(dir.into());
    let last = row.last_command.as_deref().and_then(Command::parse);
    // Whoever cannot read the files is told of them all the same.
    let text = off(move || report::reminder(&feature, last)).await;
    Ok(text.ok().map(|text| step::hidden(SpeckitPart::Reminder, text)))
}

/// Does it; what cannot be done is said, and nothing is written.
pub(crate) async fn run(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    (wanted, spoken, untold): (Wanted, Vec<Spoken>, Option<Part>),
    words: Words<'_>,
) -> Result<TurnEnd, Failure> {
    let said = Said { spoken, untold };
    if cx.standing.borrow().mode == Mode::Plan && wanted.writes() {
        refuse(cx, "Plan mode only reads, and this writes files; change the mode first, with /mode.");
        return Ok(TurnEnd::Done);
    }
    let done = match wanted {
        Wanted::Command(Err(why)) => Err(why),
        // The answer would be written down for another feature than the one that it is about.
        Wanted::Command(Ok(Asked::About(About::Use(_)))) if asking::open(&talk.transcript).is_some() => {
            Err("a question waits for its answer; answer it, or say `cancel`, and change the feature then"
                .to_owned())
        }
        Wanted::Command(Ok(Asked::About(asked))) => about::tell(cx, asked).await?.map(|text| {
            note_to(cx, &text);
            TurnEnd::Done
        }),
        Wanted::Command(Ok(Asked::Extension { name, text })) => {
            hooking::command(cx, talk, (&name, &text), said, words).await?
        }
        Wanted::Command(Ok(Asked::Step(invocation))) => {
            work::begin(cx, talk, (invocation, said), words).await?
        }
        Wanted::Answer(open) => work::go_on(cx, talk, (open, said), words).await?,
    };
    Ok(done.unwrap_or_else(|why| {
        refuse(cx, &sentence(&why));
        TurnEnd::Done
    }))
}

/// Makes a sentence of why something is not done.
fn sentence(why: &str) -> String {
    let mut letters = why.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if why.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}
