//! Continues where a turn would end on its own: after a reply that broke off or reached the size limit, and with a
//! model that repeats itself.

use crow_acp::{OfferedAnswers, PermissionSubject};
use crow_core::{
    ContentPart, CrowPart, Failure, FailureKind, Prompt, RepeatedRound, ReplyResume, SessionUpdate,
    TranscriptEntry, Turn, TurnAction, TurnEnd, ends_with_announcement,
};

use crate::confirm::{ConfirmationRequest, ask_confirmation};
use crate::turn_context::{SessionState, TurnCx};

/// The note to the model after a reply that broke off. It cannot know which part arrived.
const BROKEN_REPLY_NOTE: &str = "Your reply broke off on its way: what stands above is all that arrived of it, and no call of \
                         it was run. Go on exactly where it stops, without saying any of it again.";

/// Sent to the model after a reply that reached the size limit.
const SIZE_LIMIT_NOTE: &str =
    "Your reply above was cut at 16 MiB: no reply may be larger. Write long text to files, in pieces.";

/// Sent to a model that ended with an announcement.
const ANNOUNCED_WORK_NOTE: &str = "You announced what comes next, but your reply has no call, and steps of your plan are open. Go on \
                                   now. If nothing more is to be done, complete the plan and say so.";

/// The notice at the end of a turn whose model repeats a call that changes nothing.
const EQUAL_CALLS_NOTICE: &str =
    "The model makes the same call again and again, and nothing changes. The turn was ended.";

/// Notifies the user that the model makes the same call again; the turn ends.
pub(crate) fn report_equal_calls(cx: &TurnCx<'_>) -> TurnAction {
    cx.client.send_update(cx.session, SessionUpdate::Notice(EQUAL_CALLS_NOTICE.to_owned()));
    TurnAction::End(TurnEnd::Repetition)
}

/// Asks a model that ended with an announcement for what it announced; returns whether it did.
pub(crate) async fn ask_for_announced_work(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
) -> Result<bool, Failure> {
    if cx.is_over() || !ends_with_announcement(state.transcript.entries()) {
        return Ok(false);
    }
    let notice = "The model announced work that it has not begun; it is asked to go on.";
    cx.client.send_update(cx.session, SessionUpdate::Notice(notice.to_owned()));
    append_note(cx, state, CrowPart::AnnouncedWork, ANNOUNCED_WORK_NOTE).await?;
    Ok(true)
}

/// Stores a note to the model that its reply reached the size limit.
pub(crate) async fn note_size_limit(cx: &TurnCx<'_>, state: &mut SessionState) -> Result<(), Failure> {
    append_note(cx, state, CrowPart::TruncatedReply, SIZE_LIMIT_NOTE).await
}

/// Lets the model continue a reply that broke off; the part that arrived is on disk already.
pub(crate) async fn resume_broken_reply(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    resume: &ReplyResume,
) -> Result<TurnAction, Failure> {
    if cx.is_over() {
        return Ok(TurnAction::End(TurnEnd::Cancelled));
    }
    let is_overloaded = resume.failure.kind == FailureKind::ProviderOverloaded;
    let subject = if is_overloaded { "The provider is overloaded" } else { "The reply broke off" };
    let ReplyResume { attempt: n_times, attempts_max: n_max, .. } = resume;
    let notice = format!("{subject}; the model is asked to continue its reply ({n_times} of {n_max}).");
    cx.client.send_update(cx.session, SessionUpdate::Notice(notice));
    append_note(cx, state, CrowPart::InterruptedReply, BROKEN_REPLY_NOTE).await?;
    Ok(TurnAction::RequestReply)
}

/// Stores a message of Crow for the model; the user has a notice.
async fn append_note(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    crow_part: CrowPart,
    text: &str,
) -> Result<(), Failure> {
    let part = ContentPart::FromCrow { kind: crow_part, text: text.to_owned() };
    let prompt = Prompt { id: state.transcript.next_message_id(), parts: vec![part] };
    cx.append_entry(state, TranscriptEntry::Prompt(prompt)).await
}

/// Asks the user whether a model that repeats itself should continue. Without an answer it does not.
pub(crate) async fn confirm_repetition(
    cx: &TurnCx<'_>,
    state: &SessionState,
    turn: &Turn,
    repeated: &RepeatedRound,
) -> TurnAction {
    let RepeatedRound { title, n_calls, n_times } = repeated;
    let subject = match n_calls {
        1 => title.clone(),
        n_calls => format!("{title} and {} more", n_calls - 1),
    };
    let title = format!("The model repeats itself: {subject}, {n_times} times in a row with the same result");
    let confirmation = ConfirmationRequest {
        source: "turn",
        title: &title,
        content: Vec::new(),
        subject: PermissionSubject::Continue,
        answers: OfferedAnswers::Once,
    };
    let is_allowed = ask_confirmation(cx, confirmation, state).await.is_allowed();
    let action = turn.on_answer(cx.is_over(), is_allowed);
    if action == TurnAction::End(TurnEnd::Repetition) {
        let notice = format!("{title}. The turn was stopped.");
        cx.client.send_update(cx.session, SessionUpdate::Notice(notice));
    }
    action
}
