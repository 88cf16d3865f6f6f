//! Runs the user's hooks in the order of the configuration, and applies their decisions to the turn. Must not know how
//! a hook is started or how its data is encoded.
//!
//! Without hooks, nothing happens here: no process, no JSON.

use crow_core::{
    ContentPart, Failure, HookConfig, HookInput, HookObjection, HookResults, HookSession, Prompt,
    PromptRejection, SessionUpdate, ToolCall, ToolResult, Transcript, TranscriptEntry, append_hook_context,
};

use crate::turn_context::{SessionState, TurnCx};

/// Times that hooks may let the model continue in one turn; without a limit, a hook could keep a turn running forever.
const CONTINUATIONS_MAX: u32 = 3;

const ENDED_BEFORE: &str = "not run: a hook ended the turn before it";

/// Runs the hooks of an event until one objects.
async fn run_hooks(cx: &TurnCx<'_>, input: HookInput<'_>) -> HookResults {
    let project_config = cx.config_loader.current_config();
    let hooks: Vec<&HookConfig> =
        project_config.hooks.iter().filter(|hook| hook.applies_to(&input)).collect();
    let mut results = HookResults::default();
    if hooks.is_empty() {
        return results;
    }
    let cwd = cx.workspace.cwd().display().to_string();
    let input_json = input.to_json(HookSession { session: cx.session, cwd: &cwd });
    for hook in hooks {
        let decision = cx.runtime.shared_tools.run_hook(hook, &input_json, cx.workspace, cx.cancel).await;
        if let Some(notice) = results.add_decision(hook, decision) {
            send_notice(cx, notice);
        }
        if results.objection.is_some() {
            break;
        }
    }
    if matches!(results.objection, Some(HookObjection::Ended(_))) {
        cx.hook_state.end_turn();
    }
    results
}

/// Runs the hooks before a call; returns text to add to its result, or its result if it may not run.
pub(crate) async fn before_call(cx: &TurnCx<'_>, call: &ToolCall) -> Result<Vec<String>, ToolResult> {
    if cx.hook_state.is_ended() {
        return Err(ToolResult::failure(ENDED_BEFORE));
    }
    run_hooks(cx, HookInput::BeforeCall(call)).await.into_call_context()
}

/// Runs the hooks after a call and adds their text to its result. The call is not undone.
pub(crate) async fn after_call(cx: &TurnCx<'_>, call: &ToolCall, mut result: ToolResult) -> ToolResult {
    let results = run_hooks(cx, HookInput::AfterCall { call, result: &result }).await;
    append_hook_context(&mut result, results.context);
    result
}

/// Runs the hooks on a prompt; returns the prompt with the text they add.
pub(crate) async fn on_prompt(
    cx: &TurnCx<'_>,
    parts: Vec<ContentPart>,
) -> Result<Vec<ContentPart>, PromptRejection> {
    run_hooks(cx, HookInput::Prompt { parts: &parts }).await.into_prompt(parts)
}

/// Runs the hooks when the model has nothing more to do. Returns true if the turn continues: a hook lets the model
/// continue, or the turn was cancelled meanwhile.
pub(crate) async fn run_stop_hooks(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    n_continuations: u32,
) -> Result<bool, Failure> {
    let input = HookInput::Stop { reply: last_reply_text(&state.transcript), n_continuations };
    let reason = match run_hooks(cx, input).await.objection {
        None | Some(HookObjection::Ended(_)) => return Ok(false),
        Some(HookObjection::Cancelled) => return Ok(cx.cancel.is_cancelled()),
        Some(HookObjection::Rejected(reason)) => reason,
    };
    if n_continuations == CONTINUATIONS_MAX {
        send_notice(
            cx,
            format!(
                "A hook asked the model to continue again, beyond the limit of {CONTINUATIONS_MAX} times: {reason}"
            ),
        );
        return Ok(false);
    }
    let text = format!("A hook asks you to go on: {reason}");
    send_notice(cx, text.clone());
    let prompt = Prompt { id: state.transcript.next_message_id(), parts: vec![ContentPart::Text(text)] };
    cx.append_entry(state, TranscriptEntry::Prompt(prompt)).await?;
    Ok(true)
}

fn last_reply_text(transcript: &Transcript) -> &str {
    let last = transcript.entries().iter().rev().find_map(|entry| match entry {
        TranscriptEntry::Reply(reply) => Some(reply.text.as_str()),
        TranscriptEntry::Prompt(_) | TranscriptEntry::Result { .. } => None,
    });
    last.unwrap_or_default()
}

fn send_notice(cx: &TurnCx<'_>, text: String) {
    cx.client.send_update(cx.session, SessionUpdate::Notice(text));
}
