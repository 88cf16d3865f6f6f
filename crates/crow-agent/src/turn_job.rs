//! One turn on a task of its own: what is stored before it, what is remembered after it.

use std::sync::Arc;
use std::time::Duration;

use crow_acp::{Client, Place, Spoken, Until};
use crow_core::{
    Compacted, Entry, Failure, FailureKind, MessageId, Part, Prompt, SessionId, Transcript, TurnEnd, Update,
};
use crow_tools::{How, Undoing, Workspace};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::children::Children;
use crate::compact::{self, Chore};
use crate::fallback::Fallback;
use crate::handle::MoreWords;
use crate::hooks::{self, HookMarks, NotAsked};
use crate::kit::Kit;
use crate::open::{CRASHED, Coming};
use crate::run_turn::{Conversation, OnDisk, TurnCx, run_turn, store_failure};
use crate::session::Standing;
use crate::supplies::Stock;
use crate::toolbox::Toolbox;
use crate::{clock, linked, open, speckit, spoken, undo};

/// Characters of a title; clients show it on one line.
const TITLE_CHARS_MAX: usize = 60;

/// Time that a cancelled turn gives the folders of a new session, which are read before the session is stored.
const ARRIVES_WITHIN: Duration = Duration::from_secs(3);

/// What a turn is for.
#[derive(Debug)]
pub(crate) enum Work {
    /// The model answers what the person said.
    Prompt(Vec<Spoken>),
    /// What the model sees is changed; what came of it is told as this message.
    Chore { chore: Chore, message: MessageId },
    /// The model hears what came into the mailbox.
    Mail,
    /// Something of the Spec Kit workflow is done or told.
    Workflow { wanted: speckit::Wanted, said: Vec<Spoken> },
    /// What the last turn did to files is taken back; what came of it is told as this message.
    Undo { message: MessageId, how: How },
}

/// One turn with all it needs, on a task of its own.
pub(crate) struct TurnJob {
    pub(crate) id: SessionId,
    pub(crate) kit: Arc<Kit>,
    pub(crate) client: Client,
    pub(crate) place: Place,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) stock: Arc<Stock>,
    pub(crate) children: Arc<Children>,
    pub(crate) standing: watch::Receiver<Standing>,
    pub(crate) until: Until,
    pub(crate) cut: CancellationToken,
}

impl TurnJob {
    /// Runs the turn; whatever comes of it, the conversation comes back.
    pub(crate) async fn run(
        self,
        mut talk: Conversation,
        work: Work,
        mut more_words: mpsc::Receiver<MoreWords>,
    ) -> (Conversation, Result<TurnEnd, Failure>, mpsc::Receiver<MoreWords>) {
        tracing::info!(session = %self.id, "a turn begins");
        let end = self.turn(&mut talk, work, &mut more_words).await;
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
        self.client.tell(&self.id, Update::Changed(clock::spelled(clock::now())));
        (talk, end, more_words)
    }

    async fn turn(
        &self,
        talk: &mut Conversation,
        work: Work,
        more_words: &mut mpsc::Receiver<MoreWords>,
    ) -> Result<TurnEnd, Failure> {
        // Whatever fails from here on leaves it in doubt.
        let on_disk = match std::mem::take(&mut talk.on_disk) {
            OnDisk::Coming(coming) => {
                // A prompt that is cancelled is stored all the same, unless the disk does not answer.
                if self.cut.run_until_cancelled(coming.over()).await.is_none()
                    && timeout(ARRIVES_WITHIN, coming.over()).await.is_err()
                {
                    talk.on_disk = OnDisk::Coming(coming);
                    return Ok(TurnEnd::Cancelled);
                }
                talk.transcript = Transcript::new(coming.arrived(&self.kit, &self.id, &self.standing).await?);
                OnDisk::Same
            }
            on_disk @ (OnDisk::Same | OnDisk::Unsure) => on_disk,
        };
        let writer = match self.kit.store.begin_writing(&self.id).await {
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
            approvals: self.children.approvals(),
            standing: &self.standing,
            until: self.until,
            cut: &self.cut,
            hook_marks: &HookMarks::default(),
            fallback: &Fallback::default(),
            scope: None,
        };
        let end = self.turn_of_writer(&cx, talk, on_disk, (work, more_words)).await;
        self.kit.store.end_writing(writer).await;
        end
    }

    /// Does a turn while nobody else writes in the session.
    async fn turn_of_writer(
        &self,
        cx: &TurnCx<'_>,
        talk: &mut Conversation,
        on_disk: OnDisk,
        (work, more_words): (Work, &mut mpsc::Receiver<MoreWords>),
    ) -> Result<TurnEnd, Failure> {
        let tip = self.kit.store.tip(&self.id).await.map_err(store_failure)?;
        let config = tip.as_ref().map(|tip| tip.config.as_str());
        if let Some(problem) = cx.approvals.load(config, &self.place.cwd).await {
            cx.client.tell(cx.session, Update::Notice(problem));
        }
        match on_disk {
            // Another process may have gone on with it, or deleted it.
            OnDisk::Same | OnDisk::Coming(_) => {
                let now = &talk.transcript;
                let is_same = tip.as_ref().is_some_and(|tip| {
                    (tip.n_messages, tip.compaction.as_ref()) == (now.next_seq(), now.compaction())
                });
                if !is_same {
                    read_again(cx, talk, &self.place).await?;
                    self.stock.forget_known().await;
                }
            }
            OnDisk::Unsure => read_again(cx, talk, &self.place).await?,
        }
        if let Some(known) = talk.unfinished.take() {
            // Whoever was saying it may have come further since.
            let now = self.kit.store.read_draft(&self.id, talk.transcript.next_seq()).await;
            let here = Some(known).filter(|known| known.id == talk.transcript.next_message());
            if let Some(reply) = open::further(here, now) {
                talk.unfinished = Some(reply.clone());
                cx.append(talk, Entry::Reply(reply)).await?;
                talk.unfinished = None;
            }
        }
        cx.close_open(talk, CRASHED).await?;
        let end = match work {
            Work::Prompt(said) => {
                let untold = tip.and_then(|tip| undo::untold(&tip.config));
                match speckit::open(&talk.transcript, &said) {
                    Some(open) => {
                        let step = speckit::Wanted::Answer(open);
                        self.workflow(cx, talk, (step, said, untold), more_words).await
                    }
                    None => self.answer(cx, talk, (said, untold), more_words).await,
                }
            }
            Work::Mail => self.mail(cx, talk, more_words).await,
            Work::Chore { chore, message } => self.chore(cx, talk, chore, message).await,
            Work::Undo { message, how } => self.undo(cx, (message, how)).await,
            Work::Workflow { wanted, said } => {
                let untold = tip.and_then(|tip| undo::untold(&tip.config));
                self.workflow(cx, talk, (wanted, said, untold), more_words).await
            }
        }?;
        talk.on_disk = OnDisk::Same;
        Ok(end)
    }

    /// Has the model answer to what came into the mailbox.
    async fn mail(
        &self,
        cx: &TurnCx<'_>,
        talk: &mut Conversation,
        more_words: &mut mpsc::Receiver<MoreWords>,
    ) -> Result<TurnEnd, Failure> {
        self.stock.ready(&self.cut).await;
        talk.turn = talk.transcript.next_seq();
        match cx.take_mail(talk).await? {
            0 => Ok(TurnEnd::Done),
            _ => run_turn(cx, talk, more_words).await,
        }
    }

    /// Changes what the model sees, and says what came of it.
    async fn chore(
        &self,
        cx: &TurnCx<'_>,
        talk: &mut Conversation,
        chore: Chore,
        message: MessageId,
    ) -> Result<TurnEnd, Failure> {
        let (compacted, text) = compact::run(cx, talk, chore).await?;
        if compacted == Compacted::Cancelled {
            return Ok(TurnEnd::Cancelled);
        }
        if let Some(text) = text {
            self.client.tell(&self.id, Update::Text { message, text: format!("{text}\n") });
        }
        Ok(TurnEnd::Done)
    }

    /// Has the model answer what the person said.
    async fn answer(
        &self,
        cx: &TurnCx<'_>,
        talk: &mut Conversation,
        (said, untold): (Vec<Spoken>, Option<Part>),
        more_words: &mut mpsc::Receiver<MoreWords>,
    ) -> Result<TurnEnd, Failure> {
        let parts = match self.prepared(cx, talk, said).await {
            Ok(parts) => parts,
            Err(instead) => {
                // Nothing was added since it was read.
                talk.on_disk = OnDisk::Same;
                return instead;
            }
        };
        let has_untold = untold.is_some();
        let reminder = speckit::reminder(cx, &talk.transcript).await?;
        let parts = parts.into_iter().chain(untold).chain(reminder).collect();
        talk.turn = talk.transcript.next_seq();
        let mail = cx.children.mail().await.map_err(store_failure)?;
        cx.append_prompt(talk, parts, mail).await?;
        if has_untold {
            undo::told(&self.kit.store, &self.id).await.map_err(store_failure)?;
        }
        // The turn may shorten the transcript, from its beginning.
        let title = talk.transcript.entries().iter().find_map(title_of);
        let end = run_turn(cx, talk, more_words).await?;
        self.entitle(talk, title).await?;
        Ok(end)
    }

    /// Does something of the Spec Kit workflow.
    async fn workflow(
        &self,
        cx: &TurnCx<'_>,
        talk: &mut Conversation,
        (wanted, said, untold): (speckit::Wanted, Vec<Spoken>, Option<Part>),
        more_words: &mut mpsc::Receiver<MoreWords>,
    ) -> Result<TurnEnd, Failure> {
        let title = said.iter().find_map(|spoken| match spoken {
            Spoken::Part(Part::Text(text)) => Some(title_of_text(text)),
            Spoken::Part(_) | Spoken::ImageAt { .. } => None,
        });
        self.stock.ready(&self.cut).await;
        let before = talk.transcript.next_seq();
        let end = speckit::run(cx, talk, (wanted, said, untold), more_words).await;
        if talk.transcript.next_seq() > before {
            self.entitle(talk, title).await?;
        }
        end
    }

    /// Gives a session its title, once.
    async fn entitle(&self, talk: &mut Conversation, title: Option<String>) -> Result<(), Failure> {
        if let Some(title) = title.filter(|_| !talk.is_titled) {
            self.kit.store.set_title(&self.id, &title).await.map_err(store_failure)?;
            talk.is_titled = true;
            self.client.tell(&self.id, Update::Title(title));
        }
        Ok(())
    }

    /// Takes back what the last turn did to files.
    async fn undo(&self, cx: &TurnCx<'_>, (message, how): (MessageId, How)) -> Result<TurnEnd, Failure> {
        let (editor, cut) = (Some(cx.editor), cx.cut);
        let undoing = Undoing { workspace: cx.workspace, editor, cut, how };
        let undone = undo::undo_turn(&self.kit.store, cx.writer, undoing).await.map_err(store_failure)?;
        let mut text = undo::report(undone.as_ref(), &self.place.cwd, how);
        if self.cut.is_cancelled() {
            text.push_str("Stopped. What is not named here was left as it is.\n");
        }
        self.client.tell(&self.id, Update::Text { message, text });
        Ok(if self.cut.is_cancelled() { TurnEnd::Cancelled } else { TurnEnd::Done })
    }

    /// Makes of what was said what the model is told; the other side is how the turn ends instead.
    async fn prepared(
        &self,
        cx: &TurnCx<'_>,
        talk: &mut Conversation,
        said: Vec<Spoken>,
    ) -> Result<Vec<Part>, Result<TurnEnd, Failure>> {
        self.stock.ready(&self.cut).await;
        let parts = match self.toolbox.prompt(&said, &self.cut).await {
            Some(_) if self.cut.is_cancelled() => return Err(Ok(TurnEnd::Cancelled)),
            Some(prompted) => {
                let mut parts = prompted.map_err(Err)?;
                parts.extend(spoken::parts(said.into_iter().skip(1).collect()).await.map_err(Err)?);
                parts
            }
            None => spoken::parts(said).await.map_err(Err)?,
        };
        match hooks::on_prompt(cx, parts).await {
            Ok(parts) => {
                let parts = linked::with_contents(cx, talk, parts).await;
                Ok(self.stock.complete(parts, &talk.transcript).await)
            }
            Err(not_asked) => Err(Ok(self.not_asked(not_asked))),
        }
    }

    /// Ends a turn whose prompt hooks kept back: nothing of it is stored.
    fn not_asked(&self, not_asked: NotAsked) -> TurnEnd {
        match not_asked {
            NotAsked::Refused(text) => {
                let message = MessageId::new(format!("refused-{}", self.kit.next_number()));
                self.client.tell(&self.id, Update::Text { message, text });
                TurnEnd::Done
            }
            NotAsked::Cut => TurnEnd::Cancelled,
        }
    }
}

/// Reads again what is on disk, whatever was in memory; a session that never got there is stored now.
async fn read_again(cx: &TurnCx<'_>, talk: &mut Conversation, place: &Place) -> Result<(), Failure> {
    match open::recover(cx.kit, cx.session, talk).await {
        Err(failure) if failure.kind == FailureKind::SessionNotFound && talk.transcript.next_seq() == 0 => {
            let coming = Coming::start(cx.kit, cx.session, place, cx.standing.borrow().clone());
            talk.transcript = Transcript::new(coming.arrived(cx.kit, cx.session, cx.standing).await?);
            Ok(())
        }
        recovered => {
            cx.children.book().bill_is(recovered?);
            Ok(())
        }
    }
}

/// Makes a title of a prompt: its first line that says something.
fn title_of(entry: &Entry) -> Option<String> {
    let Entry::Prompt(prompt) = entry else { return None };
    let said = prompt.parts.iter().filter(|part| part.added().is_none()).cloned().collect();
    Some(title_of_text(&Prompt { id: prompt.id.clone(), parts: said }.text()))
}

fn title_of_text(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("(no text)");
    match line.char_indices().nth(TITLE_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", line[..cut].trim_end()),
        None => line.to_owned(),
    }
}
