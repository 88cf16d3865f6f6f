//! Makes a conversation shorter: asks the model what the attempt wants to know, stores what came of it, then believes
//! it. What goes and what stays is decided in `crow-core`.

use crow_core::{
    Attempt, Compacted, Compaction, CompactionStage, Delta, Ended, Entry, Failure, FailureKind, MessageId,
    Occasion, Part, Prompt, Rejected, Reply, ReplyBuilder, Step, Transcript, Update, of_tools,
};
use crow_model::{Ask, Listener, ModelSettings};

use crate::run_turn::{Conversation, IsGuess, TurnCx, store_failure};
use crate::{clock, fallback, open, prompt};

/// What the model is asked after its summary; [`Attempt::on_check`] knows the word.
const CHECK: &str = "Hold your notes against what you read. List what they lack that the agent needs, above all facts, \
                     names, numbers, paths and constraints that the person stated; write only what is missing. If nothing \
                     is missing, answer with the one word COMPLETE.";

/// Tokens below which a number is told with a decimal.
const FEW_TOKENS: u64 = 10_000;

/// What a person wants done to what the model sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Chore {
    /// Makes it shorter; what to pay attention to.
    Compact { focus: String },
    /// Takes the last one back.
    Undo,
    /// Lets the model begin afresh.
    Clear,
}

/// Does it; gives what came of it, and that in a sentence unless the client shows it by itself.
pub(crate) async fn run(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    chore: Chore,
) -> Result<(Compacted, Option<String>), Failure> {
    let is_shown = cx.client.abilities().compactions && chore != Chore::Undo;
    let (compacted, text) = change(cx, talk, chore).await?;
    let is_told = is_shown && compacted != Compacted::Nothing;
    Ok((compacted, (!is_told).then_some(text)))
}

async fn change(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    chore: Chore,
) -> Result<(Compacted, String), Failure> {
    talk.transcript.set_tools(of_tools(&cx.tools().specs));
    match chore {
        Chore::Compact { focus } => compact(cx, talk, Occasion::Asked, &focus).await,
        Chore::Undo => undo(cx, talk).await,
        Chore::Clear => match Compaction::clear(&talk.transcript) {
            Some(by) => {
                let news = News::begin(cx, by.at, by.tokens_before);
                Ok((Compacted::Done, commit(cx, talk, by, &news).await?))
            }
            None => Ok((Compacted::Nothing, "There is nothing to clear.".to_owned())),
        },
    }
}

/// Makes the conversation shorter; gives what came of it, and that in a sentence.
pub(crate) async fn compact(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    occasion: Occasion,
    focus: &str,
) -> Result<(Compacted, String), Failure> {
    let (mut attempt, mut step) = Attempt::start(&talk.transcript, occasion, cx.limit());
    if step == Step::Reject(Rejected::Nothing) {
        return Ok((Compacted::Nothing, "There is nothing to compact yet.".to_owned()));
    }
    let news = News::begin(cx, talk.transcript.next_seq(), attempt.before().tokens);
    loop {
        step = match step {
            Step::Summarise { source } => {
                let reply = question(cx, focus, vec![source]).await;
                attempt.on_summary(&talk.transcript, &reply)
            }
            Step::Verify { source, summary } => {
                let reply = question(cx, focus, vec![source, summary, CHECK.to_owned()]).await;
                attempt.on_check(&talk.transcript, &reply)
            }
            Step::Commit(by) => return Ok((Compacted::Done, commit(cx, talk, by, &news).await?)),
            Step::Reject(Rejected::Cancelled) => {
                return Ok((
                    Compacted::Cancelled,
                    news.end(CompactionStage::Cancelled, "Stopped compacting."),
                ));
            }
            Step::Reject(why) => {
                let why = why.to_string();
                let sentence = format!("Could not compact the conversation: {}.", why.trim_end_matches('.'));
                return Ok((Compacted::Failed, news.end(CompactionStage::Failed, &sentence)));
            }
        };
    }
}

/// Stores a compaction, then believes it.
async fn commit(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    by: Compaction,
    news: &News<'_>,
) -> Result<String, Failure> {
    if let Err(error) = cx.kit.store.compact(cx.writer, &by, clock::now()).await {
        let failure = store_failure(error);
        news.end(CompactionStage::Failed, &failure.sentence);
        return Err(failure);
    }
    let text = sentence(&by);
    let (summary, used) = (by.summary.clone(), by.tokens_after);
    let misfit = talk.transcript.compact(by).err();
    news.end(CompactionStage::Done { summary }, &text);
    cx.tell_context(used, IsGuess::Yes);
    // What the model was told of skills may be gone with the rest.
    cx.stock.forget_known().await;
    match misfit {
        None => Ok(text),
        Some(misfit) => Err(Failure::new(FailureKind::Internal, misfit.to_string())),
    }
}

async fn undo(cx: &TurnCx<'_>, talk: &mut Conversation) -> Result<(Compacted, String), Failure> {
    let undone = cx.kit.store.undo_compaction(cx.writer, clock::now()).await.map_err(store_failure)?;
    let Some(by) = undone else {
        return Ok((Compacted::Nothing, "There is no compaction to take back.".to_owned()));
    };
    cx.children.book().bill_is(open::recover(cx.kit, cx.session, talk).await?);
    talk.transcript.set_tools(of_tools(&cx.tools().specs));
    let used = talk.transcript.fill().tokens;
    cx.tell_context(used, IsGuess::Yes);
    let text = format!("Taken back: {} → {} tokens.", spelled(by.tokens_after), spelled(used));
    Ok((Compacted::Done, text))
}

/// Asks the model in a conversation of its own: what the person says, what it answered, what the person says then.
async fn question(cx: &TurnCx<'_>, focus: &str, said: Vec<String>) -> Reply {
    let failed = |failure| ReplyBuilder::new(0).end(Ended::Failed(failure));
    let asked = async {
        let model = cx.model()?;
        let system = render(cx, focus).await?;
        Ok((model, system))
    };
    match asked.await {
        Ok((model, system)) => match transcript(system, said) {
            Ok(transcript) => ask(cx, &model, &transcript).await,
            Err(failure) => failed(failure),
        },
        Err(failure) => failed(failure),
    }
}

/// Asks the model something that is no part of the session, and shows nothing of it.
pub(crate) async fn ask(cx: &TurnCx<'_>, model: &ModelSettings, transcript: &Transcript) -> Reply {
    let seq = transcript.next_seq();
    let failed = |failure| ReplyBuilder::new(seq).end(Ended::Failed(failure));
    let http = match cx.kit.http().await {
        Ok(http) => http,
        Err(failure) => return failed(failure),
    };
    let n_tokens = transcript.fill().tokens;
    match transcript.for_model() {
        Ok(transcript) => {
            let ask = Ask { settings: model, transcript, tools: &[], seq };
            let reply = fallback::ask(cx, (http, n_tokens), ask, &mut Quiet { cx }).await;
            if let Some(usage) = reply.usage {
                cx.charge_aside(usage).await;
            }
            reply
        }
        Err(open) => failed(Failure::new(FailureKind::Internal, open.to_string())),
    }
}

async fn render(cx: &TurnCx<'_>, focus: &str) -> Result<String, Failure> {
    let (settings, focus) = (cx.kit.settings(), focus.to_owned());
    let rendered = tokio::task::spawn_blocking(move || prompt::render_compact(&settings, &focus)).await;
    rendered.map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?
}

/// A conversation in which the two take turns.
pub(crate) fn transcript(system: String, said: Vec<String>) -> Result<Transcript, Failure> {
    let mut transcript = Transcript::new(system);
    for (index, text) in said.into_iter().enumerate() {
        let id = MessageId::at(index as u64);
        let entry = match index % 2 {
            0 => Entry::Prompt(Prompt { id, parts: vec![Part::Text(text)] }),
            _ => {
                let (thought, calls) = (String::new(), Vec::new());
                Entry::Reply(Reply {
                    id,
                    thought,
                    text,
                    calls,
                    ended: Ended::Normally,
                    usage: None,
                    sealed: None,
                    answered_by: None,
                })
            }
        };
        let refused = |error: crow_core::NotAccepted| Failure::new(FailureKind::Internal, error.to_string());
        transcript.push(entry).map_err(refused)?;
    }
    Ok(transcript)
}

/// Tells how a compaction is called, live and in replay.
pub(crate) fn id(at: u64, tokens_before: u64) -> String {
    format!("compaction-{at}-{tokens_before}")
}

/// Tells that one has begun.
pub(crate) fn begun(id: String) -> Update {
    Update::Compaction {
        id,
        stage: CompactionStage::Started,
        text: "Compacting the conversation …".to_owned(),
    }
}

/// Says what a compaction came to.
pub(crate) fn sentence(by: &Compaction) -> String {
    let (before, after) = (spelled(by.tokens_before), spelled(by.tokens_after));
    let what = match &by.summary {
        Some(_) => "Compacted: what is older is summed up for the model",
        None if by.keep_from == by.at => "Cleared: the model begins afresh",
        None => "Compacted: old tool output is left out for the model",
    };
    format!("{what}, {before} → {after} tokens. `/compact undo` takes it back.")
}

fn spelled(tokens: u64) -> String {
    match tokens {
        0..1000 => tokens.to_string(),
        1000..FEW_TOKENS => format!("{}.{}k", tokens / 1000, tokens % 1000 / 100),
        FEW_TOKENS.. => format!("{}k", tokens / 1000),
    }
}

/// What the client hears of one compaction: that it began, and how it ended.
struct News<'a> {
    cx: &'a TurnCx<'a>,
    id: String,
}

impl<'a> News<'a> {
    fn begin(cx: &'a TurnCx<'_>, at: u64, tokens_before: u64) -> Self {
        let id = id(at, tokens_before);
        cx.client.tell(cx.session, begun(id.clone()));
        Self { cx, id }
    }

    /// Tells the end; gives its sentence back.
    fn end(&self, stage: CompactionStage, text: &str) -> String {
        let update = Update::Compaction { id: self.id.clone(), stage, text: text.to_owned() };
        self.cx.client.tell(self.cx.session, update);
        text.to_owned()
    }
}

/// Shows nothing of what the model notes down, but what a person has to know of it.
struct Quiet<'a> {
    cx: &'a TurnCx<'a>,
}

impl Listener for Quiet<'_> {
    fn heard(&mut self, _: Delta<'_>) {}

    fn noticed(&mut self, notice: String) {
        self.cx.client.tell(self.cx.session, Update::Notice(notice));
    }

    async fn room(&mut self) {}
}
