//! One turn: asks, runs, stores, until [`Turn`] says it is over.

use std::sync::Arc;

use crow_acp::{Client, Editor, Steered, Until};
use crow_core::{
    Delta, Ended, Entry, Failure, FailureKind, MessageId, Next, Outcome, Part, Prompt, Reply, ReplyBuilder,
    SessionId, ToolSpec, Transcript, Turn, TurnEnd, Update, Usage, limit, of_tools,
};
use crow_model::{Ask, Listener, ModelSettings};
use crow_speckit::{BackgroundWork, Baseline};
use crow_store::{Delivery, DeliveryId, Draft, StoreError, Writer};
use crow_tools::Workspace;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::approvals::Approvals;
use crate::calls::run_calls;
use crate::children::{Came, Children, Context};
use crate::clock;
use crate::compact::compact;
use crate::fallback::{self, Fallback, limit_of};
use crate::go_on;
use crate::handle::MoreWords;
use crate::hold::Told;
use crate::hooks::{self, HookMarks, NotAsked};
use crate::kit::Kit;
use crate::linked;
use crate::open::{self, Coming};
use crate::session::Standing;
use crate::speckit::Scope;
use crate::spoken;
use crate::supplies::Stock;
use crate::toolbox::{ToolSet, Toolbox};

/// What a turn works with; the transcript it works on goes beside it.
#[derive(Clone, Copy)]
pub(crate) struct TurnCx<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) kit: &'a Arc<Kit>,
    pub(crate) writer: &'a Writer,
    pub(crate) client: &'a Client,
    pub(crate) editor: &'a Editor,
    pub(crate) workspace: &'a Workspace,
    pub(crate) toolbox: &'a Toolbox,
    pub(crate) stock: &'a Stock,
    pub(crate) children: &'a Children,
    pub(crate) approvals: &'a Approvals,
    pub(crate) standing: &'a watch::Receiver<Standing>,
    pub(crate) until: Until,
    pub(crate) cut: &'a CancellationToken,
    pub(crate) hook_marks: &'a HookMarks,
    /// The model that answers in place of the session's own.
    pub(crate) fallback: &'a Fallback,
    /// What the step of the workflow that runs allows and offers, if one does.
    pub(crate) scope: Option<&'a Scope>,
}

/// What a session remembers between turns.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) transcript: Transcript,
    pub(crate) on_disk: OnDisk,
    /// What a reply came to whose end was never stored.
    pub(crate) unfinished: Option<Reply>,
    /// Its title is stored.
    pub(crate) is_titled: bool,
    pub(crate) told: Told,
    /// The tools that the store knows the model is offered.
    pub(crate) offered: Arc<[ToolSpec]>,
    /// The person rejected a call and says what to do instead with the next prompt: the turn ends for that.
    pub(crate) waits_for_words: bool,
    /// Place of the prompt whose turn runs.
    pub(crate) turn: u64,
    /// What a step that waits for an answer is held against when it is over.
    pub(crate) before: Option<Box<Baseline>>,
}

/// What the store holds of a conversation between turns.
#[derive(Debug, Default)]
pub(crate) enum OnDisk {
    /// Nothing yet: the session is on its way there.
    Coming(Coming),
    /// The same transcript.
    Same,
    /// Nobody knows: a turn broke or could not store. The next one reads it again first.
    #[default]
    Unsure,
}

/// Whether a number of tokens is our own guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsGuess {
    /// Nobody has counted them.
    Yes,
    /// The provider has counted them.
    No,
}

/// Whether an entry could be stored with what it claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// It is stored.
    Yes,
    /// It is not: another process has told the model already.
    BySomebodyElse,
}

/// Runs a turn whose prompt is on disk already; what the person says meanwhile comes with the next request.
pub(crate) async fn run_turn(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    more_words: &mut mpsc::Receiver<MoreWords>,
) -> Result<TurnEnd, Failure> {
    let (mut turn, mut next) = Turn::start(cx.kit.settings().limits);
    cx.toolbox.settled(cx.cut).await;
    let mut tools = cx.tools();
    let mut n_gone_on = 0;
    loop {
        next = match next {
            Next::Ask => {
                cx.take_words(talk, more_words).await?;
                cx.take_mail(talk).await?;
                cx.remember_tools(talk).await?;
                talk.transcript.set_tools(of_tools(&cx.tools().specs));
                match turn.before_asking(talk.transcript.fill(), cx.limit()) {
                    Next::Ask => {
                        tools = cx.tools();
                        cx.reply(talk, &tools, &mut turn).await?
                    }
                    first @ (Next::Compact(_)
                    | Next::Run(_)
                    | Next::Resume(_)
                    | Next::Confirm(_)
                    | Next::End(_)) => first,
                }
            }
            Next::Compact(occasion) => {
                let (compacted, _) = compact(cx, talk, occasion, "").await?;
                turn.on_compacted(compacted, talk.transcript.fill().measured)
            }
            Next::Run(calls) => {
                run_calls(cx, &tools.tools, &calls, talk).await?;
                let next = turn.on_results(cx.is_over(), talk.transcript.entries());
                let has_to_wait = std::mem::take(&mut talk.waits_for_words) || cx.hook_marks.is_ended();
                let is_end = matches!(next, Next::End(_));
                if !is_end && (has_to_wait || cx.scope.is_some_and(Scope::is_over)) {
                    return Ok(TurnEnd::Done);
                }
                next
            }
            Next::Resume(resume) => go_on::after_a_break(cx, talk, &resume).await?,
            Next::Confirm(repeated) => go_on::in_circles(cx, (talk, &turn), &repeated).await,
            Next::End(TurnEnd::Done)
                if cx.take_words(talk, more_words).await? + cx.take_news(talk).await? > 0 =>
            {
                turn.on_more_words()
            }
            Next::End(TurnEnd::Done) if cx.waits_for_tasks().await => match cx.cut.is_cancelled() {
                true => Next::End(TurnEnd::Cancelled),
                false => Next::End(TurnEnd::Done),
            },
            Next::End(TurnEnd::Done) if hooks::keep_from_ending(cx, talk, &mut n_gone_on).await? => {
                if cx.is_over() { Next::End(TurnEnd::Cancelled) } else { turn.on_more_words() }
            }
            Next::End(end) => {
                cx.close_open(talk, "not run: the turn ended before it").await?;
                return Ok(end);
            }
        };
    }
}

impl TurnCx<'_> {
    /// Tells whether nobody waits for the turn any longer.
    pub(crate) fn is_over(&self) -> bool {
        self.cut.is_cancelled() || self.client.is_gone()
    }

    /// The tools there are now.
    pub(crate) fn tools(&self) -> Arc<ToolSet> {
        let now = self.toolbox.now();
        match self.scope {
            Some(scope) => Arc::new(ToolSet::new(now.tools.with(scope.tools()))),
            None => now,
        }
    }

    /// Makes prompts of what the person said meanwhile; tells how many.
    async fn take_words(
        &self,
        talk: &mut Conversation,
        more_words: &mut mpsc::Receiver<MoreWords>,
    ) -> Result<usize, Failure> {
        let mut n_taken = 0;
        while let Ok(MoreWords { said, answer }) = more_words.try_recv() {
            let parts = match spoken::parts(said).await {
                Ok(parts) => hooks::on_prompt(self, parts).await.map_err(NotAsked::failure),
                Err(failure) => Err(failure),
            };
            match parts {
                Ok(parts) => {
                    let parts = linked::with_contents(self, talk, parts).await;
                    let parts = self.stock.now().expand(parts);
                    let prompt = Prompt { id: talk.transcript.next_message(), parts };
                    self.append(talk, Entry::Prompt(prompt)).await?;
                    answer.give(Ok(Steered::Injected));
                    n_taken += 1;
                }
                Err(failure) => answer.give(Err(failure)),
            }
        }
        Ok(n_taken)
    }

    /// Waits for the next end of a task, where the turn is to last as long as its tasks; tells whether one came, or
    /// the turn was stopped.
    async fn waits_for_tasks(&self) -> bool {
        self.until == Until::TasksEnded
            && self.cut.run_until_cancelled(self.children.next_mail()).await != Some(Came::Nothing)
    }

    /// Whether a job or a child agent runs on behind the calls.
    pub(crate) fn background(&self) -> BackgroundWork {
        match self.workspace.has_running_jobs() || self.children.is_any_working() {
            true => BackgroundWork::Running,
            false => BackgroundWork::None,
        }
    }

    /// Makes a prompt of what came into the mailbox; tells how many deliveries that were.
    pub(crate) async fn take_mail(&self, talk: &mut Conversation) -> Result<usize, Failure> {
        let mail = self.children.mail().await.map_err(store_failure)?;
        if mail.is_empty() {
            return Ok(0);
        }
        let n_deliveries = mail.len();
        let n_messages = talk.transcript.next_seq();
        self.append_prompt(talk, Vec::new(), mail).await?;
        Ok(if talk.transcript.next_seq() == n_messages { 0 } else { n_deliveries })
    }

    /// The same, where the model should hear of it without being asked: what a person stopped is told with their next
    /// words.
    async fn take_news(&self, talk: &mut Conversation) -> Result<usize, Failure> {
        if self.children.has_news() { self.take_mail(talk).await } else { Ok(0) }
    }

    /// Stores a prompt with the mail that comes with it, and tells the client of that. Mail that somebody else claimed
    /// meanwhile is left out.
    pub(crate) async fn append_prompt(
        &self,
        talk: &mut Conversation,
        parts: Vec<Part>,
        mail: Vec<Delivery>,
    ) -> Result<(), Failure> {
        let id = talk.transcript.next_message();
        let news: Vec<Part> = mail.iter().map(|delivery| Part::Text(delivery.text.clone())).collect();
        let claims: Vec<DeliveryId> = mail.iter().map(|delivery| delivery.id).collect();
        let all = parts.iter().chain(&news).cloned().collect();
        let entry = Entry::Prompt(Prompt { id: id.clone(), parts: all });
        let claimed = self.append_claiming(talk, entry, &claims).await;
        if claimed.is_err() && !claims.is_empty() {
            self.children.keep_mail();
        }
        match claimed? {
            Claimed::Yes => {
                for part in news {
                    self.client.tell(self.session, Update::Prompt { message: id.clone(), part });
                }
                Ok(())
            }
            Claimed::BySomebodyElse if parts.is_empty() => Ok(()),
            Claimed::BySomebodyElse => self.append(talk, Entry::Prompt(Prompt { id, parts })).await,
        }
    }

    /// Stores an entry and claims the deliveries that stand in it, both or neither.
    pub(crate) async fn append_claiming(
        &self,
        talk: &mut Conversation,
        entry: Entry,
        claims: &[DeliveryId],
    ) -> Result<Claimed, Failure> {
        if claims.is_empty() {
            return self.append(talk, entry).await.map(|()| Claimed::Yes);
        }
        talk.transcript.accepts(&entry).map_err(refused)?;
        let seq = talk.transcript.next_seq();
        match self.kit.store.append_delivered(self.writer, seq, (&entry, claims), clock::now()).await {
            Ok(()) => believe(talk, entry).map(|()| Claimed::Yes),
            Err(StoreError::AlreadyDelivered { .. }) => Ok(Claimed::BySomebodyElse),
            Err(error) => Err(store_failure(error)),
        }
    }

    /// Stores which tools the model is offered, when they are others than before.
    async fn remember_tools(&self, talk: &mut Conversation) -> Result<(), Failure> {
        let specs = self.tools().specs.clone();
        if Arc::ptr_eq(&specs, &talk.offered) || specs == talk.offered {
            return Ok(());
        }
        let definitions = specs.iter().map(|ToolSpec { name, description, parameters }| {
            let function = json!({"name": name, "description": description, "parameters": parameters});
            json!({"type": "function", "function": function})
        });
        let definitions = Value::Array(definitions.collect()).to_string();
        self.kit.store.set_tool_definitions(self.session, definitions).await.map_err(store_failure)?;
        talk.offered = specs;
        Ok(())
    }

    /// The model that the session asks now, and how.
    pub(crate) fn model(&self) -> Result<ModelSettings, Failure> {
        let own = self.own_model()?;
        let substitute = self.fallback.substitute_of(&own.name);
        Ok(substitute.and_then(|name| self.model_named(Some(&name)).ok()).unwrap_or(own))
    }

    /// The model that the session asks where its provider has room.
    pub(crate) fn own_model(&self) -> Result<ModelSettings, Failure> {
        let name = self.standing.borrow().model.clone();
        self.model_named(name.as_deref())
    }

    /// A configured model, at the session's thought level.
    pub(crate) fn model_named(&self, name: Option<&str>) -> Result<ModelSettings, Failure> {
        let mut settings = self.kit.model(name)?;
        if let Some(effort) = self.standing.borrow().thought_level.effort() {
            settings.reasoning_effort = Some(effort.to_owned());
        }
        Ok(settings)
    }

    /// The window of that model; nothing where none is configured.
    pub(crate) fn window(&self) -> u64 {
        self.model().map_or(0, |model| model.context_window)
    }

    /// How many tokens the context may have.
    pub(crate) fn limit(&self) -> u64 {
        let limits = self.kit.settings().limits;
        match self.model() {
            Ok(model) => limit_of(limits, &model),
            Err(_) => limit(limits, 0, None),
        }
    }

    /// Asks the model and stores what it said; gives what comes next.
    async fn reply(
        &self,
        talk: &mut Conversation,
        tools: &ToolSet,
        turn: &mut Turn,
    ) -> Result<Next, Failure> {
        let (mut reply, draft) = self.ask(&talk.transcript, tools).await;
        // From here on everybody sees the names that the tools know.
        reply.calls = reply.calls.iter().map(|call| tools.tools.resolved(call)).collect();
        let next = turn.on_reply(&reply);
        // A call that it was cut in tells of it with its result.
        let is_too_large = reply.ended == Ended::SizeLimit && reply.calls.is_empty();
        self.store_reply(talk, reply).await?;
        draft.done();
        if is_too_large {
            go_on::after_size_limit(self, talk).await?;
        }
        Ok(next)
    }

    /// Asks the model; what the client saw of its reply is in the draft until the reply is stored.
    async fn ask(&self, transcript: &Transcript, tools: &ToolSet) -> (Reply, Draft) {
        // A step has ended, and the model takes longer than the disk.
        self.kit.store.sync_soon();
        let seq = transcript.next_seq();
        let draft = self.kit.store.draft(self.writer, seq);
        let mut telling = Telling { cx: self, message: MessageId::at(seq), draft };
        let asked = async {
            let settings = self.model()?;
            let http = self.kit.http().await?;
            let open = |open: crow_core::CallsOpen| Failure::new(FailureKind::Internal, open.to_string());
            let n_tokens = transcript.fill().tokens;
            let transcript = transcript.for_model().map_err(open)?;
            let ask = Ask { settings: &settings, transcript, tools: &tools.specs, seq };
            Ok(fallback::ask(self, (http, n_tokens), ask, &mut telling).await)
        };
        let reply = asked.await.unwrap_or_else(|failure| ReplyBuilder::new(seq).end(Ended::Failed(failure)));
        telling.draft.keep();
        (reply, telling.draft)
    }

    async fn store_reply(&self, talk: &mut Conversation, reply: Reply) -> Result<(), Failure> {
        if reply.is_empty() {
            return Ok(());
        }
        let entry = Entry::Reply(reply);
        if let Err(failure) = self.store(talk, &entry).await {
            // It was shown; the next turn stores it, if the disk can by then.
            if let Entry::Reply(reply) = entry {
                let ended = Ended::Failed(failure.clone());
                talk.unfinished = Some(Reply { calls: Vec::new(), ended, ..reply });
            }
            return Err(failure);
        }
        let usage = entry.usage();
        believe(talk, entry)?;
        if let Some(usage) = usage {
            self.children.book().charge(usage);
        }
        match usage.and_then(Usage::context) {
            Some(used) => self.tell_context(used, IsGuess::No),
            // A guess is on no bill.
            None => self.tell_context(talk.transcript.fill().tokens, IsGuess::Yes),
        }
        Ok(())
    }

    /// Tells how full the context is by now.
    pub(crate) fn tell_context(&self, used: u64, is_guess: IsGuess) {
        let context = Context { used, size: self.window(), is_guess: is_guess == IsGuess::Yes };
        self.client.tell(self.session, self.children.book().filled(context));
    }

    /// Puts on the bill what a question took that is no message.
    pub(crate) async fn charge_aside(&self, usage: Usage) {
        self.children.book().charge(usage);
        if let Err(error) = self.kit.store.note_aside(self.writer, usage, clock::now()).await {
            tracing::warn!(session = %self.session, %error, "what a question to the model took is not stored");
        }
    }

    /// Stores an entry, then believes it: what is in the transcript is on disk.
    pub(crate) async fn append(&self, talk: &mut Conversation, entry: Entry) -> Result<(), Failure> {
        self.store(talk, &entry).await?;
        believe(talk, entry)
    }

    async fn store(&self, talk: &Conversation, entry: &Entry) -> Result<(), Failure> {
        talk.transcript.accepts(entry).map_err(refused)?;
        let seq = talk.transcript.next_seq();
        self.kit.store.append(self.writer, seq, entry, clock::now()).await.map_err(store_failure)
    }

    /// Gives every call without a result one that says why.
    pub(crate) async fn close_open(&self, talk: &mut Conversation, why: &str) -> Result<(), Failure> {
        for call in talk.transcript.open_calls().to_vec() {
            let facets = self.tools().tools.facets(&call, self.workspace);
            let outcome = Outcome::failed(why);
            self.append(talk, Entry::Result { call: call.id, facets, outcome }).await?;
        }
        Ok(())
    }
}

fn believe(talk: &mut Conversation, entry: Entry) -> Result<(), Failure> {
    talk.transcript.push(entry).map_err(refused)
}

#[expect(clippy::needless_pass_by_value, reason = "it maps an error")]
fn refused(error: crow_core::NotAccepted) -> Failure {
    Failure::new(FailureKind::Internal, error.to_string())
}

/// Says what went wrong with the store, as a failure of the turn.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    if let StoreError::NoSession(id) = error {
        return open::not_found(&id);
    }
    Failure::new(FailureKind::Store, error.to_string())
}

/// Tells the client what the model says while it says it.
struct Telling<'a> {
    cx: &'a TurnCx<'a>,
    message: MessageId,
    draft: Draft,
}

impl Listener for Telling<'_> {
    fn heard(&mut self, delta: Delta<'_>) {
        let message = self.message.clone();
        let update = match delta {
            Delta::Thought(text) => {
                self.draft.thought(text);
                Update::Thought { message, text: text.to_owned() }
            }
            Delta::Text(text) => {
                self.draft.text(text);
                Update::Text { message, text: text.to_owned() }
            }
        };
        self.cx.client.tell(self.cx.session, update);
    }

    fn noticed(&mut self, notice: String) {
        self.cx.client.tell(self.cx.session, Update::Notice(notice));
    }

    async fn room(&mut self) {
        // Nothing was waited for since it was heard, so nobody has seen it yet.
        self.draft.keep();
        self.cx.client.room().await;
    }
}
