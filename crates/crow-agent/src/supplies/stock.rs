//! What one session may use, looked at anew before each prompt: what changed is asked for again, and a client hears of
//! commands that came or went.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use crow_acp::Client;
use crow_core::{CommandInfo, Entry, Ledger, Part, SessionId, Supply, Transcript, Update, Word};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::asking::{Asking, Decision};
use super::survey::Survey;
use super::{Skill, Supplies, is_told, kept, skills_part};
use crate::children;
use crate::commands;
use crate::kit::Kit;
use crate::toolbox::Toolbox;

/// Sentences remembered as told, so that none is told with every prompt; a repository can make up new ones.
const TOLD_MAX: usize = 1000;

/// What one session may use.
pub(crate) struct Stock {
    kit: Arc<Kit>,
    client: Client,
    session: SessionId,
    cwd: PathBuf,
    toolbox: Arc<Toolbox>,
    now: RwLock<Arc<Supplies>>,
    /// One look at a time: a second one must not ask again.
    pub(super) state: Mutex<State>,
    /// Whoever asks here is an agent itself.
    pub(super) is_child: bool,
    /// Cancelled once the first look is over.
    opened: CancellationToken,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// What was said for this session.
    pub(super) said: Ledger,
    /// What `/trust` showed last.
    pub(super) shown: BTreeSet<Supply>,
    /// Sentences that were told.
    told: BTreeSet<String>,
    /// Commands that the client knows.
    offered: Vec<CommandInfo>,
    /// Skills that the model knows, by their files.
    known: BTreeSet<PathBuf>,
    /// A look whose prompt was cancelled while it waited for the disk.
    looking: Option<JoinHandle<Survey>>,
}

impl Stock {
    /// Makes the stock of a session with nothing in it but the configuration's rules, and tells the client of commands
    /// that come and go with MCP servers for as long as it is there.
    pub(crate) fn start(
        kit: Arc<Kit>,
        client: Client,
        session: SessionId,
        (cwd, toolbox): (PathBuf, Arc<Toolbox>),
    ) -> Arc<Self> {
        let now = RwLock::new(Arc::new(Supplies::configured(&kit.settings())));
        let mut changed = toolbox.commands_changed();
        let (state, opened) = (Mutex::default(), CancellationToken::new());
        let is_child = children::depth(&kit, &client) > 0;
        let stock = Arc::new(Self { kit, client, session, cwd, toolbox, now, state, is_child, opened });
        let told = Arc::downgrade(&stock);
        tokio::spawn(async move {
            while changed.changed().await.is_ok() {
                let Some(stock) = told.upgrade() else { return };
                stock.offer(&mut *stock.state.lock().await);
            }
        });
        stock
    }

    /// What may be used now.
    pub(crate) fn now(&self) -> Arc<Supplies> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Every command there is, once they were looked for. Waits for no question.
    pub(crate) async fn commands(&self) -> Vec<CommandInfo> {
        self.opened.cancelled().await;
        self.offered()
    }

    /// Takes in what is trusted already and tells the client, which was just told of our own commands.
    pub(crate) async fn open(&self) {
        let _opened = self.opened.clone().drop_guard();
        let mut state = self.state.lock().await;
        state.offered = commands::on_offer();
        for notice in self.kit.take_notices() {
            self.notice(&mut state, notice);
        }
        if let Some(survey) = self.survey(&mut state).await {
            self.take_in(&mut state, survey);
        }
    }

    /// Looks again before a prompt, and asks about what nobody has said anything to.
    pub(crate) async fn ready(&self, cut: &CancellationToken) {
        let look = async {
            let mut state = self.state.lock().await;
            let survey = self.survey(&mut state).await;
            (state, survey)
        };
        let (mut state, survey) = tokio::select! {
            looked = look => looked,
            // A disk that does not answer keeps nobody from stopping.
            () = cut.cancelled() => return,
        };
        let Some(survey) = survey else { return };
        self.asked(&mut state, survey, cut).await;
    }

    /// Looks on a thread of its own. One look at a time: where the disk does not answer, each prompt would leave a thread
    /// behind.
    pub(super) async fn survey(&self, state: &mut State) -> Option<Survey> {
        if let Some(left_behind) = &mut state.looking {
            // What it saw is old by now.
            let _ = left_behind.await;
        }
        let (settings, cwd) = (self.kit.settings(), self.cwd.clone());
        let looking =
            state.looking.insert(tokio::task::spawn_blocking(move || Survey::take(&settings, &cwd)));
        let survey = looking.await;
        state.looking = None;
        survey.inspect_err(|error| tracing::error!(%error, "looking for supplies broke")).ok()
    }

    async fn asked(&self, state: &mut State, survey: Survey, cut: &CancellationToken) {
        let unknown = survey.unknown(&state.said);
        if unknown.is_empty() || cut.is_cancelled() {
            return self.take_in(state, survey);
        }
        let asking = Asking::about(&unknown, |path| survey.kept.approved(path));
        let about: Vec<Supply> = unknown.iter().map(|file| file.supply.clone()).collect();
        let (word, until_changed) = match asking.ask(&self.client, &self.session, cut).await {
            // The next prompt asks again.
            Decision::Closed if cut.is_cancelled() || self.client.is_gone() => {
                return self.take_in(state, survey);
            }
            Decision::Use { until_changed } => (Word::Yes, until_changed),
            Decision::Leave { until_changed } => (Word::No, until_changed),
            Decision::Closed => (Word::No, false),
            Decision::Unasked => {
                self.notice(state, Supplies::unused(&asking.summary, self.is_child));
                (Word::No, false)
            }
        };
        self.decide(state, survey, (about, word, until_changed)).await;
    }

    /// Takes down what a person said about contents, and goes by it from here on.
    pub(super) async fn decide(
        &self,
        state: &mut State,
        survey: Survey,
        (about, word, until_changed): (Vec<Supply>, Word, bool),
    ) {
        about.iter().for_each(|supply| state.said.say(supply.clone(), word));
        let survey =
            if until_changed { self.keep(state, survey, (&about, word)).await } else { Some(survey) };
        if let Some(survey) = survey {
            self.take_in(state, survey);
        }
    }

    /// Keeps a word for good; a session that cannot keep it has it all the same.
    async fn keep(
        &self,
        state: &mut State,
        survey: Survey,
        (about, word): (&[Supply], Word),
    ) -> Option<Survey> {
        let config_dir = self.kit.settings().config_dir.clone();
        let about = about.to_vec();
        let kept = tokio::task::spawn_blocking(move || {
            let files = survey.found.files.iter().filter(|file| about.contains(&file.supply));
            let kept = kept::keep(&config_dir, &survey.found.repository, files, word);
            (survey, kept)
        });
        let (survey, kept) =
            kept.await.inspect_err(|error| tracing::error!(%error, "keeping trust broke")).ok()?;
        if let Err(error) = kept {
            let notice = format!("Your answer counts in this session only: it could not be kept ({error}).");
            self.notice(state, notice);
        }
        Some(survey)
    }

    fn take_in(&self, state: &mut State, survey: Survey) {
        let (supplies, problems) =
            survey.into_supplies(&state.said, Supplies::configured(&self.kit.settings()));
        for problem in problems {
            self.notice(state, problem);
        }
        for command in supplies.commands() {
            if commands::on_offer().iter().any(|own| own.name == command.name) {
                let name = command.name;
                let notice =
                    format!("/{name} stays Crow's own command; call the file or the skill otherwise.");
                self.notice(state, notice);
            }
        }
        self.toolbox.supply((&self.client, &self.session), &supplies.servers);
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(supplies);
        self.offer(state);
    }

    /// Every command there is now: Crow's own, then prompt files and skills, then the prompts of MCP servers.
    fn offered(&self) -> Vec<CommandInfo> {
        let more = self.now().commands().into_iter().chain(self.toolbox.commands());
        let mut offered = commands::on_offer();
        for command in more {
            if !offered.iter().any(|other| other.name == command.name) {
                offered.push(command);
            }
        }
        offered
    }

    fn offer(&self, state: &mut State) {
        let offered = self.offered();
        if offered != state.offered {
            self.client.tell(&self.session, Update::Commands(offered.clone()));
            state.offered = offered;
        }
    }

    /// Tells a sentence once.
    fn notice(&self, state: &mut State, sentence: String) {
        if state.told.len() < TOLD_MAX && state.told.insert(sentence.clone()) {
            self.client.tell(&self.session, Update::Notice(sentence));
        }
    }

    /// Tells the model again of every skill that it can no longer see.
    pub(crate) async fn forget_known(&self) {
        self.state.lock().await.known.clear();
    }

    /// Adds to what the person said what their command stands for, and the skills that the model does not know.
    pub(crate) async fn complete(&self, parts: Vec<Part>, transcript: &Transcript) -> Vec<Part> {
        let supplies = self.now();
        let mut parts = supplies.expand(parts);
        let mut state = self.state.lock().await;
        let is_new = |skill: &&Skill| !state.known.contains(&skill.path) && !knows(transcript, skill);
        let new: Vec<&Skill> = supplies.skills.iter().filter(is_new).collect();
        if !new.is_empty() {
            parts.push(skills_part(&new));
        }
        state.known = supplies.skills.iter().map(|skill| skill.path.clone()).collect();
        parts
    }
}

/// Tells whether the model was told of a skill.
fn knows(transcript: &Transcript, skill: &Skill) -> bool {
    let named = transcript.system().contains(&skill.path.display().to_string());
    named
        || transcript.entries().iter().any(|entry| match entry {
            Entry::Prompt(prompt) => is_told(&prompt.parts, skill),
            Entry::Reply(_) | Entry::Result { .. } => false,
        })
}
