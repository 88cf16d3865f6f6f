//! The kinds of work of a turn.

use crow_acp::PromptBlock;
use crow_core::{
    CompactionOutcome, ContentPart, ContextCommand, Failure, MessageId, PromptRejection, ReportOutcome,
    SessionUpdate, TurnEnd, UndoRequest, prompt_title, text_title,
};
use crow_tools::{UndoContext, load_prompt_parts};
use tokio::sync::mpsc;

use super::TurnJob;
use crate::compact;
use crate::failures::store_failure;
use crate::handle::SteeringInput;
use crate::hooks;
use crate::run_turn::run_turn;
use crate::turn_context::{SessionState, StoredState, TurnCx};
use crate::workflow::{self, PromptInput, WorkflowInput};
use crate::{clock, linked_content};

impl TurnJob {
    /// Lets the model handle the mailbox.
    pub(super) async fn answer_mail(
        &self,
        cx: &TurnCx<'_>,
        state: &mut SessionState,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        self.config_loader.refresh_config(&self.cancel).await;
        state.turn = state.transcript.next_seq();
        match cx.append_mail(state).await? {
            0 => Ok(TurnEnd::Completed),
            _ => run_turn(cx, state, steering).await,
        }
    }

    /// Shows or changes the context and sends the result.
    pub(super) async fn run_context_command(
        &self,
        cx: &TurnCx<'_>,
        state: &mut SessionState,
        command: ContextCommand,
        message: MessageId,
    ) -> Result<TurnEnd, Failure> {
        let change = match command {
            ContextCommand::Show => {
                let text = cx.describe_context(state).await;
                self.client.send_update(&self.id, SessionUpdate::Text { message, text });
                return Ok(TurnEnd::Completed);
            }
            ContextCommand::Change(change) => change,
        };
        let (outcome, text) = compact::change_context(cx, state, change).await?;
        if outcome == CompactionOutcome::Cancelled {
            return Ok(TurnEnd::Cancelled);
        }
        if let Some(text) = text {
            self.client.send_update(&self.id, SessionUpdate::Text { message, text: format!("{text}\n") });
        }
        Ok(TurnEnd::Completed)
    }

    /// Lets the model answer a prompt.
    pub(super) async fn answer_prompt(
        &self,
        cx: &TurnCx<'_>,
        state: &mut SessionState,
        PromptInput { content, undo_note }: PromptInput,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        let parts = match self.prepare_prompt(cx, state, content).await {
            Ok(parts) => parts,
            Err(turn_result) => {
                // Nothing was appended since the state was read.
                state.stored_state = StoredState::Current;
                return turn_result;
            }
        };
        let has_undo_note = undo_note.is_some();
        let reminder = workflow::workflow_reminder(cx, &state.transcript).await?;
        let parts = parts.into_iter().chain(undo_note).chain(reminder).collect();
        state.turn = state.transcript.next_seq();
        let mail = cx.children.take_deliveries().await.map_err(store_failure)?;
        cx.append_prompt(state, parts, mail).await?;
        if has_undo_note {
            crow_history::clear_pending_undo(&self.runtime.store, &self.id).await.map_err(store_failure)?;
        }
        // A compaction in the turn may remove the first prompt.
        let title = state.transcript.entries().iter().find_map(prompt_title);
        let end = run_turn(cx, state, steering).await?;
        self.set_title(state, title).await?;
        Ok(end)
    }

    /// Runs a workflow request.
    pub(super) async fn run_workflow(
        &self,
        cx: &TurnCx<'_>,
        state: &mut SessionState,
        workflow_input: WorkflowInput,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        let title = workflow_input.input.content.iter().find_map(|block| match block {
            PromptBlock::Part(ContentPart::Text(text)) => Some(text_title(text)),
            PromptBlock::Part(_) | PromptBlock::ImageUri { .. } => None,
        });
        self.config_loader.refresh_config(&self.cancel).await;
        let seq_before = state.transcript.next_seq();
        let end = workflow::run_workflow(cx, state, workflow_input, steering).await;
        if state.transcript.next_seq() > seq_before {
            self.set_title(state, title).await?;
        }
        end
    }

    /// Sets the title of a session, once.
    async fn set_title(&self, state: &mut SessionState, title: Option<String>) -> Result<(), Failure> {
        if let Some(title) = title.filter(|_| !state.is_titled) {
            self.runtime.store.set_title(&self.id, &title).await.map_err(store_failure)?;
            state.is_titled = true;
            self.client.send_update(&self.id, SessionUpdate::Title(title));
        }
        Ok(())
    }

    /// Undoes the file changes of the last turns. A conflict ends it: the turns before change the same files.
    pub(super) async fn undo_turns(
        &self,
        cx: &TurnCx<'_>,
        message: MessageId,
        UndoRequest { mode, n_turns }: UndoRequest,
    ) -> Result<TurnEnd, Failure> {
        let (editor, cancel) = (Some(cx.editor), cx.cancel);
        let undo_context = UndoContext { workspace: cx.workspace, editor, cancel, mode };
        let mut text = String::new();
        for _ in 0..n_turns {
            let undone = crow_history::undo_turn(&self.runtime.store, cx.lease, undo_context, clock::now());
            let outcome = undone.await.map_err(store_failure)?;
            if outcome.is_some() || text.is_empty() {
                text.push_str(&crow_history::render_undo(outcome.as_ref(), &self.location.cwd, mode));
            }
            if self.cancel.is_cancelled() || !outcome.is_some_and(|undone| undone.is_complete()) {
                break;
            }
        }
        if self.cancel.is_cancelled() {
            text.push_str("Stopped. Files that are not listed here are unchanged.\n");
        }
        self.client.send_update(&self.id, SessionUpdate::Text { message, text });
        Ok(if self.cancel.is_cancelled() { TurnEnd::Cancelled } else { TurnEnd::Completed })
    }

    /// Gets the prompt of an MCP server, if the content begins with its command.
    async fn fetch_server_prompt(
        &self,
        content: &[PromptBlock],
    ) -> Option<Result<Vec<ContentPart>, Failure>> {
        let Some(PromptBlock::Part(ContentPart::Text(text))) = content.first() else { return None };
        self.toolbox.fetch_prompt(text, &self.cancel).await
    }

    /// Prepares a prompt for the model; the error is how the turn ends instead.
    async fn prepare_prompt(
        &self,
        cx: &TurnCx<'_>,
        state: &mut SessionState,
        content: Vec<PromptBlock>,
    ) -> Result<Vec<ContentPart>, Result<TurnEnd, Failure>> {
        self.config_loader.refresh_config(&self.cancel).await;
        let parts = match self.fetch_server_prompt(&content).await {
            Some(_) if self.cancel.is_cancelled() => return Err(Ok(TurnEnd::Cancelled)),
            Some(fetched) => {
                let mut parts = fetched.map_err(Err)?;
                parts.extend(load_prompt_parts(content.into_iter().skip(1).collect()).await.map_err(Err)?);
                parts
            }
            None => load_prompt_parts(content).await.map_err(Err)?,
        };
        match hooks::on_prompt(cx, parts).await {
            Ok(parts) => {
                let parts = linked_content::with_contents(cx, state, parts).await;
                Ok(self.config_loader.current_config().expand_prompt(parts))
            }
            Err(rejection) => Err(Ok(self.end_rejected(rejection))),
        }
    }

    /// Ends a turn whose prompt was rejected by hooks: nothing of it is stored.
    fn end_rejected(&self, rejection: PromptRejection) -> TurnEnd {
        match rejection {
            PromptRejection::Rejected(text) => {
                let message = MessageId::new(format!("refused-{}", self.runtime.next_number()));
                let outcome = ReportOutcome::NotStarted;
                let report = SessionUpdate::Report { message, text, outcome, next: Vec::new() };
                self.client.send_update(&self.id, report);
                TurnEnd::Completed
            }
            PromptRejection::Cancelled => TurnEnd::Cancelled,
        }
    }
}
