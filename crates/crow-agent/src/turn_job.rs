//! One turn on a task of its own: what is stored before it, what is remembered after it.

use std::sync::Arc;
use std::time::Duration;

use crow_acp::{Client, PromptBlock, SessionLocation, TurnScope};
use crow_core::{
    CompactionOutcome, ContentPart, Failure, FailureKind, MessageId, Prompt, SessionId, SessionUpdate,
    Transcript, TranscriptEntry, TurnEnd,
};
use crow_tools::{UndoContext, UndoMode, Workspace};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::children::ChildAgents;
use crate::compact::{self, ContextCommand};
use crate::fallback::FallbackModel;
use crate::handle::SteeringInput;
use crate::hooks::{self, PromptRejection, TurnHookState};
use crate::kit::AgentRuntime;
use crate::open::{CRASHED, PendingSession};
use crate::run_turn::{SessionState, StoredState, TurnCx, run_turn, store_failure};
use crate::session::SessionSettings;
use crate::supplies::ProjectConfigLoader;
use crate::toolbox::Toolbox;
use crate::{clock, linked, open, speckit, spoken, undo};

/// Characters of a title; clients show it on one line.
const TITLE_CHARS_MAX: usize = 60;

/// Time that a cancelled turn gives the folders of a new session, which are read before the session is stored.
const ARRIVES_WITHIN: Duration = Duration::from_secs(3);

/// What a turn is for.
#[derive(Debug)]
pub(crate) enum TurnWork {
    /// The model answers what the person said.
    Prompt(Vec<PromptBlock>),
    /// What the model sees is changed; what came of it is told as this message.
    Chore { chore: ContextCommand, message: MessageId },
    /// The model hears what came into the mailbox.
    Mail,
    /// Something of the Spec Kit workflow is done or told.
    Workflow { wanted: speckit::WorkflowRequest, said: Vec<PromptBlock> },
    /// What the last turn did to files is taken back; what came of it is told as this message.
    Undo { message: MessageId, how: UndoMode },
}

/// One turn with all it needs, on a task of its own.
pub(crate) struct TurnJob {
    pub(crate) id: SessionId,
    pub(crate) kit: Arc<AgentRuntime>,
    pub(crate) client: Client,
    pub(crate) place: SessionLocation,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) stock: Arc<ProjectConfigLoader>,
    pub(crate) children: Arc<ChildAgents>,
    pub(crate) standing: watch::Receiver<SessionSettings>,
    pub(crate) until: TurnScope,
    pub(crate) cut: CancellationToken,
}

impl TurnJob {
    /// Runs the turn; whatever comes of it, the conversation comes back.
    pub(crate) async fn run(
        self,
        mut talk: SessionState,
        work: TurnWork,
        mut more_words: mpsc::Receiver<SteeringInput>,
    ) -> (SessionState, Result<TurnEnd, Failure>, mpsc::Receiver<SteeringInput>) {
        tracing::info!(session = %self.id, "a turn begins");
        let end = self.run_turn(&mut talk, work, &mut more_words).await;
        // Whoever has more to say from here on starts a turn of its own.
        more_words.close();
        match &end {
            // Sentences may hold what a server said; the kind is enough here.
            Ok(TurnEnd::Failed(failure)) | Err(failure) => {
                tracing::warn!(session = %self.id, kind = %failure.kind, "a turn failed");
            }
            Ok(end) => tracing::info!(session = %self.id, ?end, "a turn ended"),
        }
        if let Err(error) = self.kit.store.sync().await {
            tracing::warn!(session = %self.id, %error, "the end of the turn may not survive a power cut");
        }
        self.client.send_update(&self.id, SessionUpdate::Changed(clock::format_rfc3339(clock::now())));
        (talk, end, more_words)
    }

    async fn run_turn(
        &self,
        talk: &mut SessionState,
        work: TurnWork,
        more_words: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        // Whatever fails from here on leaves it in doubt.
        let on_disk = match std::mem::take(&mut talk.on_disk) {
            StoredState::Coming(coming) => {
                // A prompt that is cancelled is stored all the same, unless the disk does not answer.
                if self.cut.run_until_cancelled(coming.wait_until_settled()).await.is_none()
                    && timeout(ARRIVES_WITHIN, coming.wait_until_settled()).await.is_err()
                {
                    talk.on_disk = StoredState::Coming(coming);
                    return Ok(TurnEnd::Cancelled);
                }
                talk.transcript =
                    Transcript::new(coming.wait_until_stored(&self.kit, &self.id, &self.standing).await?);
                StoredState::Same
            }
            on_disk @ (StoredState::Same | StoredState::Unsure) => on_disk,
        };
        let writer = match self.kit.store.acquire_session_lease(&self.id).await {
            Ok(writer) => writer,
            Err(error) => {
                talk.on_disk = on_disk;
                return Err(store_failure(error));
            }
        };
        let cx = TurnCx {
            session: &self.id,
            kit: &self.kit,
            writer: &writer,
            client: &self.client,
            editor: &self.client.editor(&self.id),
            workspace: &self.workspace,
            toolbox: &self.toolbox,
            stock: &self.stock,
            children: &self.children,
            approvals: self.children.grant_store(),
            standing: &self.standing,
            until: self.until,
            cut: &self.cut,
            hook_marks: &TurnHookState::default(),
            fallback: &FallbackModel::default(),
            scope: None,
        };
        let end = self.run_leased_turn(&cx, talk, on_disk, (work, more_words)).await;
        self.kit.store.release_session_lease(writer).await;
        end
    }

    /// Does a turn while nobody else writes in the session.
    async fn run_leased_turn(
        &self,
        cx: &TurnCx<'_>,
        talk: &mut SessionState,
        on_disk: StoredState,
        (work, more_words): (TurnWork, &mut mpsc::Receiver<SteeringInput>),
    ) -> Result<TurnEnd, Failure> {
        let tip = self.kit.store.session_tip(&self.id).await.map_err(store_failure)?;
        let config = tip.as_ref().map(|tip| tip.config.as_str());
        if let Some(problem) = cx.approvals.load_grants(config, &self.place.cwd).await {
            cx.client.send_update(cx.session, SessionUpdate::Notice(problem));
        }
        match on_disk {
            // Another process may have gone on with it, or deleted it.
            StoredState::Same | StoredState::Coming(_) => {
                let now = &talk.transcript;
                let is_same = tip.as_ref().is_some_and(|tip| {
                    (tip.n_messages, tip.compaction.as_ref()) == (now.next_seq(), now.compaction())
                });
                if !is_same {
                    reload_state(cx, talk, &self.place).await?;
                    self.stock.forget_known_skills().await;
                }
            }
            StoredState::Unsure => reload_state(cx, talk, &self.place).await?,
        }
        if let Some(known) = talk.unfinished.take() {
            // Whoever was saying it may have come further since.
            let now = self.kit.store.read_draft(&self.id, talk.transcript.next_seq()).await;
            let here = Some(known).filter(|known| known.id == talk.transcript.next_message_id());
            if let Some(reply) = open::longer_reply(here, now) {
                talk.unfinished = Some(reply.clone());
                cx.append_entry(talk, TranscriptEntry::Reply(reply)).await?;
                talk.unfinished = None;
            }
        }
        cx.close_open_calls(talk, CRASHED).await?;
        let end = match work {
            TurnWork::Prompt(said) => {
                let untold = tip.and_then(|tip| undo::pending_undo_part(&tip.config));
                match speckit::find_answered_question(&talk.transcript, &said) {
                    Some(open) => {
                        let step = speckit::WorkflowRequest::Answer(open);
                        self.run_workflow(cx, talk, (step, said, untold), more_words).await
                    }
                    None => self.answer_prompt(cx, talk, (said, untold), more_words).await,
                }
            }
            TurnWork::Mail => self.answer_mail(cx, talk, more_words).await,
            TurnWork::Chore { chore, message } => self.run_context_command(cx, talk, chore, message).await,
            TurnWork::Undo { message, how } => self.undo_turn(cx, (message, how)).await,
            TurnWork::Workflow { wanted, said } => {
                let untold = tip.and_then(|tip| undo::pending_undo_part(&tip.config));
                self.run_workflow(cx, talk, (wanted, said, untold), more_words).await
            }
        }?;
        talk.on_disk = StoredState::Same;
        Ok(end)
    }

    /// Has the model answer to what came into the mailbox.
    async fn answer_mail(
        &self,
        cx: &TurnCx<'_>,
        talk: &mut SessionState,
        more_words: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        self.stock.refresh_config(&self.cut).await;
        talk.turn = talk.transcript.next_seq();
        match cx.append_mail(talk).await? {
            0 => Ok(TurnEnd::Done),
            _ => run_turn(cx, talk, more_words).await,
        }
    }

    /// Changes what the model sees, and says what came of it.
    async fn run_context_command(
        &self,
        cx: &TurnCx<'_>,
        talk: &mut SessionState,
        chore: ContextCommand,
        message: MessageId,
    ) -> Result<TurnEnd, Failure> {
        let (compacted, text) = compact::run_context_command(cx, talk, chore).await?;
        if compacted == CompactionOutcome::Cancelled {
            return Ok(TurnEnd::Cancelled);
        }
        if let Some(text) = text {
            self.client.send_update(&self.id, SessionUpdate::Text { message, text: format!("{text}\n") });
        }
        Ok(TurnEnd::Done)
    }

    /// Has the model answer what the person said.
    async fn answer_prompt(
        &self,
        cx: &TurnCx<'_>,
        talk: &mut SessionState,
        (said, untold): (Vec<PromptBlock>, Option<ContentPart>),
        more_words: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        let parts = match self.prepare_prompt(cx, talk, said).await {
            Ok(parts) => parts,
            Err(instead) => {
                // Nothing was added since it was read.
                talk.on_disk = StoredState::Same;
                return instead;
            }
        };
        let has_untold = untold.is_some();
        let reminder = speckit::workflow_reminder(cx, &talk.transcript).await?;
        let parts = parts.into_iter().chain(untold).chain(reminder).collect();
        talk.turn = talk.transcript.next_seq();
        let mail = cx.children.take_deliveries().await.map_err(store_failure)?;
        cx.append_prompt(talk, parts, mail).await?;
        if has_untold {
            undo::clear_pending_undo(&self.kit.store, &self.id).await.map_err(store_failure)?;
        }
        // The turn may shorten the transcript, from its beginning.
        let title = talk.transcript.entries().iter().find_map(entry_title);
        let end = run_turn(cx, talk, more_words).await?;
        self.set_title(talk, title).await?;
        Ok(end)
    }

    /// Does something of the Spec Kit workflow.
    async fn run_workflow(
        &self,
        cx: &TurnCx<'_>,
        talk: &mut SessionState,
        (wanted, said, untold): (speckit::WorkflowRequest, Vec<PromptBlock>, Option<ContentPart>),
        more_words: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        let title = said.iter().find_map(|spoken| match spoken {
            PromptBlock::Part(ContentPart::Text(text)) => Some(text_title(text)),
            PromptBlock::Part(_) | PromptBlock::ImageAt { .. } => None,
        });
        self.stock.refresh_config(&self.cut).await;
        let before = talk.transcript.next_seq();
        let end = speckit::run_workflow(cx, talk, (wanted, said, untold), more_words).await;
        if talk.transcript.next_seq() > before {
            self.set_title(talk, title).await?;
        }
        end
    }

    /// Gives a session its title, once.
    async fn set_title(&self, talk: &mut SessionState, title: Option<String>) -> Result<(), Failure> {
        if let Some(title) = title.filter(|_| !talk.is_titled) {
            self.kit.store.set_title(&self.id, &title).await.map_err(store_failure)?;
            talk.is_titled = true;
            self.client.send_update(&self.id, SessionUpdate::Title(title));
        }
        Ok(())
    }

    /// Takes back what the last turn did to files.
    async fn undo_turn(
        &self,
        cx: &TurnCx<'_>,
        (message, how): (MessageId, UndoMode),
    ) -> Result<TurnEnd, Failure> {
        let (editor, cut) = (Some(cx.editor), cx.cut);
        let undoing = UndoContext { workspace: cx.workspace, editor, cut, how };
        let undone = undo::undo_turn(&self.kit.store, cx.writer, undoing).await.map_err(store_failure)?;
        let mut text = undo::render_undo(undone.as_ref(), &self.place.cwd, how);
        if self.cut.is_cancelled() {
            text.push_str("Stopped. What is not named here was left as it is.\n");
        }
        self.client.send_update(&self.id, SessionUpdate::Text { message, text });
        Ok(if self.cut.is_cancelled() { TurnEnd::Cancelled } else { TurnEnd::Done })
    }

    /// Makes of what was said what the model is told; the other side is how the turn ends instead.
    async fn prepare_prompt(
        &self,
        cx: &TurnCx<'_>,
        talk: &mut SessionState,
        said: Vec<PromptBlock>,
    ) -> Result<Vec<ContentPart>, Result<TurnEnd, Failure>> {
        self.stock.refresh_config(&self.cut).await;
        let parts = match self.toolbox.fetch_prompt(&said, &self.cut).await {
            Some(_) if self.cut.is_cancelled() => return Err(Ok(TurnEnd::Cancelled)),
            Some(prompted) => {
                let mut parts = prompted.map_err(Err)?;
                parts.extend(
                    spoken::load_prompt_parts(said.into_iter().skip(1).collect()).await.map_err(Err)?,
                );
                parts
            }
            None => spoken::load_prompt_parts(said).await.map_err(Err)?,
        };
        match hooks::on_prompt(cx, parts).await {
            Ok(parts) => {
                let parts = linked::with_contents(cx, talk, parts).await;
                Ok(self.stock.complete_prompt(parts, &talk.transcript).await)
            }
            Err(not_asked) => Err(Ok(self.end_rejected(not_asked))),
        }
    }

    /// Ends a turn whose prompt hooks kept back: nothing of it is stored.
    fn end_rejected(&self, not_asked: PromptRejection) -> TurnEnd {
        match not_asked {
            PromptRejection::Refused(text) => {
                let message = MessageId::new(format!("refused-{}", self.kit.next_number()));
                self.client.send_update(&self.id, SessionUpdate::Text { message, text });
                TurnEnd::Done
            }
            PromptRejection::Cut => TurnEnd::Cancelled,
        }
    }
}

/// Reads again what is on disk, whatever was in memory; a session that never got there is stored now.
async fn reload_state(
    cx: &TurnCx<'_>,
    talk: &mut SessionState,
    place: &SessionLocation,
) -> Result<(), Failure> {
    match open::recover_conversation(cx.kit, cx.session, talk).await {
        Err(failure) if failure.kind == FailureKind::SessionNotFound && talk.transcript.next_seq() == 0 => {
            let coming = PendingSession::start(cx.kit, cx.session, place, cx.standing.borrow().clone());
            talk.transcript =
                Transcript::new(coming.wait_until_stored(cx.kit, cx.session, cx.standing).await?);
            Ok(())
        }
        recovered => {
            cx.children.tree_budget().set_session_usage(recovered?);
            Ok(())
        }
    }
}

/// Makes a title of a prompt: its first line that says something.
fn entry_title(entry: &TranscriptEntry) -> Option<String> {
    let TranscriptEntry::Prompt(prompt) = entry else { return None };
    let said = prompt.parts.iter().filter(|part| part.crow_part().is_none()).cloned().collect();
    Some(text_title(&Prompt { id: prompt.id.clone(), parts: said }.text()))
}

fn text_title(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("(no text)");
    match line.char_indices().nth(TITLE_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", line[..cut].trim_end()),
        None => line.to_owned(),
    }
}
