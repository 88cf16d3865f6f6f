//! Going on where a turn would end by itself: after a reply that broke off or was cut, and with a model that goes in
//! circles.

use crow_acp::{Answers, Subject};
use crow_core::{
    CrowPart, Entry, Failure, FailureKind, Next, Part, Prompt, Repeated, Resume, Turn, TurnEnd, Update,
};

use crate::confirm::{Matter, confirm};
use crate::run_turn::{Conversation, TurnCx};

/// What the model is told of a reply that broke off. It cannot know what of it arrived.
const BROKE_OFF: &str = "Your reply broke off on its way: what stands above is all that arrived of it, and no call of \
                         it was run. Go on exactly where it stops, without saying any of it again.";

/// What the model is told of a reply that Crow cut.
const TOO_LARGE: &str =
    "Your reply above was cut at 16 MiB: no reply may be larger. Write long text to files, in pieces.";

/// Tells the model that Crow cut its reply. It hears that with the next prompt.
pub(crate) async fn after_size_limit(cx: &TurnCx<'_>, talk: &mut Conversation) -> Result<(), Failure> {
    append_note(cx, talk, CrowPart::CutReply, TOO_LARGE).await
}

/// Has the model go on with a reply that broke off; what arrived of it is on disk already.
pub(crate) async fn after_a_break(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    resume: &Resume,
) -> Result<Next, Failure> {
    if cx.is_over() {
        return Ok(Next::End(TurnEnd::Cancelled));
    }
    let is_trouble = resume.failure.kind == FailureKind::ProviderOverloaded;
    let what = if is_trouble { "the provider is in trouble" } else { "the answer broke off" };
    let Resume { n_times, n_max, .. } = resume;
    let notice = format!("{what}; the model is asked to go on with it ({n_times} of {n_max})");
    cx.client.tell(cx.session, Update::Notice(notice));
    append_note(cx, talk, CrowPart::BrokenReply, BROKE_OFF).await?;
    Ok(Next::Ask)
}

/// Stores words of Crow's own for the model; the person has a notice.
async fn append_note(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    what: CrowPart,
    text: &str,
) -> Result<(), Failure> {
    let part = Part::FromCrow { what, text: text.to_owned() };
    let prompt = Prompt { id: talk.transcript.next_message(), parts: vec![part] };
    cx.append(talk, Entry::Prompt(prompt)).await
}

/// Asks the person whether a model that goes in circles is to go on. Without an answer it is not.
pub(crate) async fn in_circles(
    cx: &TurnCx<'_>,
    (talk, turn): (&Conversation, &Turn),
    repeated: &Repeated,
) -> Next {
    let Repeated { title, n_calls, n_times } = repeated;
    let what = match n_calls {
        1 => title.clone(),
        n_calls => format!("{title} and {} more", n_calls - 1),
    };
    let title = format!("The model repeats itself: {what}, {n_times} times in a row with the same result");
    let matter = Matter {
        by: "turn",
        title: &title,
        content: Vec::new(),
        subject: Subject::GoOn,
        answers: Answers::Once,
    };
    let goes_on = confirm(cx, matter, talk).await.allows();
    let next = turn.on_answer(cx.is_over(), goes_on);
    if next == Next::End(TurnEnd::Repeating) {
        let notice = format!("{title}; the turn was stopped");
        cx.client.tell(cx.session, Update::Notice(notice));
    }
    next
}
