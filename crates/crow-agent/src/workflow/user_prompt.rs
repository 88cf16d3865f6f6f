//! The prompt that made a workflow request.

use crow_acp::PromptBlock;
use crow_core::{ContentPart, PromptRejection, SessionUpdate, TurnEnd, replace_control_chars};
use crow_tools::load_prompt_parts;
use crow_workflow::{WorkflowExit, WorkflowRequest};
use tokio::sync::mpsc;

use crate::failures::store_failure;
use crate::handle::SteeringInput;
use crate::hooks;
use crate::linked_content;
use crate::turn_context::{SessionState, TurnCx};

/// The receiver of a turn's steering input.
pub(super) type SteeringReceiver<'a> = &'a mut mpsc::Receiver<SteeringInput>;

/// A prompt, with a note about what the user undid since the last one.
#[derive(Default)]
pub(crate) struct PromptInput {
    pub(crate) content: Vec<PromptBlock>,
    pub(crate) undo_note: Option<ContentPart>,
}

/// A workflow request with the prompt that made it.
pub(crate) struct WorkflowInput {
    pub(crate) request: WorkflowRequest,
    pub(crate) input: PromptInput,
}

/// Returns the text of a prompt.
pub(super) fn spoken_text(content: &[PromptBlock]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        PromptBlock::Part(ContentPart::Text(text)) => Some(text.as_str()),
        PromptBlock::Part(_) | PromptBlock::ImageUri { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Stores the prompt with its expansion.
pub(super) async fn append_user_prompt(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    input: PromptInput,
    expansion: Option<ContentPart>,
) -> Result<(), WorkflowExit> {
    // Files that are created from here on belong to this prompt.
    state.turn = state.transcript.next_seq();
    let PromptInput { content, undo_note } = input;
    let mut parts = match hooks::on_prompt(cx, load_prompt_parts(content).await?).await {
        Ok(parts) => linked_content::with_contents(cx, state, parts).await,
        Err(PromptRejection::Rejected(reason)) => {
            let text = format!("{}\n", replace_control_chars(reason.trim_end()));
            let message = cx.runtime.next_message_id();
            cx.client.send_update(cx.session, SessionUpdate::Text { message, text });
            return Err(WorkflowExit::Ended(TurnEnd::Completed));
        }
        Err(PromptRejection::Cancelled) => return Err(WorkflowExit::Ended(TurnEnd::Cancelled)),
    };
    if let Some(expansion) = expansion {
        parts.insert(parts.len().min(1), expansion);
    }
    let has_undo_note = undo_note.is_some();
    parts.extend(undo_note);
    let mail = cx.children.take_deliveries().await.map_err(store_failure)?;
    cx.append_prompt(state, parts, mail).await?;
    if has_undo_note {
        crow_history::clear_pending_undo(&cx.runtime.store, cx.session).await.map_err(store_failure)?;
    }
    Ok(())
}
