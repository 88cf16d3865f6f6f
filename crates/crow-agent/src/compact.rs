//! Compacts the context: sends the requests of a compaction attempt to the model, stores the result, then applies it.
//! `crow-core` decides what is kept.

use crow_core::{
    Compaction, CompactionAttempt, CompactionOutcome, CompactionRejection, CompactionStage, CompactionStep,
    CompactionTrigger, ContextChange, Failure, FailureKind, Reply, ReplyBuilder, ReplyEnd, SUMMARY_CHECK,
    SessionUpdate, Transcript, compaction_id, compaction_sentence, compaction_started, estimate_tool_tokens,
    format_tokens, to_sentence,
};
use crow_model::RequestBounds;
use crow_store::Timestamp;

use crate::clock;
use crate::failures::store_failure;
use crate::stored_session;
use crate::turn_context::{SessionState, TurnCx};

/// Changes the context; returns the outcome, and a sentence about it unless an update has told the client. Every client is told
/// of a compaction, in the form that it knows; a replay repeats that.
pub(crate) async fn change_context(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    change: ContextChange,
) -> Result<(CompactionOutcome, Option<String>), Failure> {
    let is_undo = change == ContextChange::Undo;
    let (outcome, text) = apply_context_change(cx, state, change).await?;
    let is_told = !is_undo && outcome != CompactionOutcome::NothingToCompact;
    Ok((outcome, (!is_told).then_some(text)))
}

async fn apply_context_change(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    change: ContextChange,
) -> Result<(CompactionOutcome, String), Failure> {
    state.transcript.set_tool_tokens(estimate_tool_tokens(&cx.current_tools().specs));
    match change {
        ContextChange::Compact { focus } => {
            compact_context(cx, state, CompactionTrigger::Manual, &focus).await
        }
        ContextChange::Undo => undo_compaction(cx, state).await,
        ContextChange::Clear => match Compaction::for_clear(&state.transcript) {
            Some(compaction) => {
                let progress = CompactionProgress::begin(cx, compaction.at_seq, compaction.is_clear());
                Ok((CompactionOutcome::Compacted, commit_compaction(cx, state, compaction, &progress).await?))
            }
            None => Ok((CompactionOutcome::NothingToCompact, "There is nothing to clear.".to_owned())),
        },
    }
}

/// Compacts the context; returns the outcome and a sentence about it.
pub(crate) async fn compact_context(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    trigger: CompactionTrigger,
    focus: &str,
) -> Result<(CompactionOutcome, String), Failure> {
    let (mut attempt, mut step) = CompactionAttempt::start(&state.transcript, trigger, cx.context_limit());
    if step == CompactionStep::Reject(CompactionRejection::NothingToCompact) {
        return Ok((CompactionOutcome::NothingToCompact, "There is nothing to compact yet.".to_owned()));
    }
    let progress = CompactionProgress::begin(cx, state.transcript.next_seq(), false);
    loop {
        step = match step {
            CompactionStep::Summarise { source } => {
                let reply = ask_for_summary(cx, focus, vec![source]).await;
                attempt.on_summary(&state.transcript, &reply)
            }
            CompactionStep::Verify { source, summary } => {
                let reply = ask_for_summary(cx, focus, vec![source, summary, SUMMARY_CHECK.to_owned()]).await;
                attempt.on_check(&state.transcript, &reply)
            }
            CompactionStep::Commit(compaction) => {
                return Ok((
                    CompactionOutcome::Compacted,
                    commit_compaction(cx, state, compaction, &progress).await?,
                ));
            }
            CompactionStep::Reject(CompactionRejection::Cancelled) => {
                return Ok((
                    CompactionOutcome::Cancelled,
                    progress.end(CompactionStage::Cancelled, "Stopped compacting."),
                ));
            }
            CompactionStep::Reject(reason) => {
                let reason = reason.to_string();
                let sentence =
                    format!("Could not compact the conversation: {}.", reason.trim_end_matches('.'));
                return Ok((CompactionOutcome::Failed, progress.end(CompactionStage::Failed, &sentence)));
            }
        };
    }
}

/// Stores a compaction, then applies it.
async fn commit_compaction(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    compaction: Compaction,
    progress: &CompactionProgress<'_>,
) -> Result<String, Failure> {
    let compaction = Compaction { began_ms: progress.began.0, ..compaction };
    if let Err(error) = cx.runtime.store.record_compaction(cx.lease, &compaction).await {
        let failure = store_failure(error);
        progress.end(CompactionStage::Failed, &to_sentence(&failure.message));
        return Err(failure);
    }
    let text = compaction_sentence(&compaction);
    let (summary, n_tokens) = (compaction.summary.clone(), compaction.tokens_after);
    let compact_error = state.transcript.compact(compaction).err();
    progress.end(CompactionStage::Done { summary }, &text);
    cx.send_estimated_usage(n_tokens);
    // The skills that the model knew may no longer be in its context.
    cx.config_loader.forget_known_skills().await;
    match compact_error {
        None => Ok(text),
        Some(compact_error) => Err(Failure::new(FailureKind::Internal, compact_error.to_string())),
    }
}

async fn undo_compaction(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
) -> Result<(CompactionOutcome, String), Failure> {
    let undone = cx.runtime.store.undo_compaction(cx.lease, clock::now()).await.map_err(store_failure)?;
    let Some(compaction) = undone else {
        return Ok((CompactionOutcome::NothingToCompact, "There is no compaction to undo.".to_owned()));
    };
    cx.children
        .tree_budget()
        .set_session_usage(stored_session::recover_conversation(cx.runtime, cx.session, state).await?);
    state.transcript.set_tool_tokens(estimate_tool_tokens(&cx.current_tools().specs));
    let n_tokens = state.transcript.context_tokens().tokens;
    cx.send_estimated_usage(n_tokens);
    let text = format!(
        "Compaction undone: {} → {} tokens.",
        format_tokens(compaction.tokens_after),
        format_tokens(n_tokens)
    );
    Ok((CompactionOutcome::Compacted, text))
}

/// Sends a side request: a user message, optionally an answer and another user message.
async fn ask_for_summary(cx: &TurnCx<'_>, focus: &str, messages: Vec<String>) -> Reply {
    let failed = |failure| ReplyBuilder::new(0).into_reply(ReplyEnd::Failed(failure));
    let request = async {
        let model = cx.current_model()?;
        let system = render_instructions(cx, focus).await?;
        Ok((model, system))
    };
    match request.await {
        Ok((model, system)) => match Transcript::from_dialogue(system, messages) {
            Ok(transcript) => cx.send_side_request(&model, &transcript, RequestBounds::default()).await,
            Err(error) => failed(Failure::new(FailureKind::Internal, error.to_string())),
        },
        Err(failure) => failed(failure),
    }
}

async fn render_instructions(cx: &TurnCx<'_>, focus: &str) -> Result<String, Failure> {
    let (settings, focus) = (cx.runtime.config(), focus.to_owned());
    let rendered = cx
        .runtime
        .spawn_blocking(move || crow_project::render_compaction_prompt(&settings.prompts_dir, &focus))
        .await;
    rendered.map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?
}

/// Updates of the client about one compaction: its start and its end.
struct CompactionProgress<'a> {
    cx: &'a TurnCx<'a>,
    id: String,
    /// Stored with the compaction, so that a replay has the same id.
    began: Timestamp,
}

impl<'a> CompactionProgress<'a> {
    fn begin(cx: &'a TurnCx<'_>, at: u64, is_clear: bool) -> Self {
        let began = clock::now();
        let id = compaction_id(at, began.0);
        cx.client.send_update(cx.session, compaction_started(id.clone(), is_clear));
        Self { cx, id, began }
    }

    /// Sends the end and returns its text.
    fn end(&self, stage: CompactionStage, text: &str) -> String {
        let update = SessionUpdate::Compaction { id: self.id.clone(), stage, text: text.to_owned() };
        self.cx.client.send_update(self.cx.session, update);
        text.to_owned()
    }
}
