//! What one session may use, looked at anew before each prompt: what changed is asked for again, and a client hears of
//! commands that came or went.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use crow_acp::Client;
use crow_core::{
    CommandInfo, ContentPart, SessionId, SessionUpdate, Transcript, TranscriptEntry, TrustAnswer,
    TrustLedger, TrustSubject,
};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::asking::{TrustDecision, TrustQuestion};
use super::survey::ConfigSurvey;
use super::{ProjectConfig, Skill, kept, mentions_skill, skills_part};
use crate::children;
use crate::commands;
use crate::kit::AgentRuntime;
use crate::toolbox::Toolbox;

/// Sentences remembered as told, so that none is told with every prompt; a repository can make up new ones.
const TOLD_MAX: usize = 1000;

/// What one session may use.
pub(crate) struct ProjectConfigLoader {
    kit: Arc<AgentRuntime>,
    client: Client,
    session: SessionId,
    cwd: PathBuf,
    toolbox: Arc<Toolbox>,
    now: RwLock<Arc<ProjectConfig>>,
    /// One look at a time: a second one must not ask again.
    pub(super) state: Mutex<LoaderState>,
    /// Whoever asks here is an agent itself.
    pub(super) is_child: bool,
    /// Cancelled once the first look is over.
    opened: CancellationToken,
}

#[derive(Debug, Default)]
pub(super) struct LoaderState {
    /// What was said for this session.
    pub(super) said: TrustLedger,
    /// What `/trust` showed last.
    pub(super) shown: BTreeSet<TrustSubject>,
    /// Sentences that were told.
    told: BTreeSet<String>,
    /// Commands that the client knows.
    offered: Vec<CommandInfo>,
    /// Skills that the model knows, by their files.
    known: BTreeSet<PathBuf>,
    /// A look whose prompt was cancelled while it waited for the disk.
    looking: Option<JoinHandle<ConfigSurvey>>,
}

impl ProjectConfigLoader {
    /// Makes the stock of a session with nothing in it but the configuration's rules, and tells the client of commands
    /// that come and go with MCP servers for as long as it is there.
    pub(crate) fn start(
        kit: Arc<AgentRuntime>,
        client: Client,
        session: SessionId,
        (cwd, toolbox): (PathBuf, Arc<Toolbox>),
    ) -> Arc<Self> {
        let now = RwLock::new(Arc::new(ProjectConfig::from_config(&kit.config())));
        let mut changed = toolbox.subscribe_commands();
        let (state, opened) = (Mutex::default(), CancellationToken::new());
        let is_child = children::tree_depth(&kit, &client) > 0;
        let stock = Arc::new(Self { kit, client, session, cwd, toolbox, now, state, is_child, opened });
        let told = Arc::downgrade(&stock);
        tokio::spawn(async move {
            while changed.changed().await.is_ok() {
                let Some(stock) = told.upgrade() else { return };
                stock.send_commands(&mut *stock.state.lock().await);
            }
        });
        stock
    }

    /// What may be used now.
    pub(crate) fn current_config(&self) -> Arc<ProjectConfig> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Every command there is, once they were looked for. Waits for no question.
    pub(crate) async fn available_commands(&self) -> Vec<CommandInfo> {
        self.opened.cancelled().await;
        self.offered_commands()
    }

    /// Takes in what is trusted already and tells the client, which was just told of our own commands.
    pub(crate) async fn load_trusted(&self) {
        let _opened = self.opened.clone().drop_guard();
        let mut state = self.state.lock().await;
        state.offered = commands::available_commands();
        for notice in self.kit.take_notices() {
            self.notify_once(&mut state, notice);
        }
        if let Some(survey) = self.run_survey(&mut state).await {
            self.apply_survey(&mut state, survey);
        }
    }

    /// Looks again before a prompt, and asks about what nobody has said anything to.
    pub(crate) async fn refresh_config(&self, cut: &CancellationToken) {
        let look = async {
            let mut state = self.state.lock().await;
            let survey = self.run_survey(&mut state).await;
            (state, survey)
        };
        let (mut state, survey) = tokio::select! {
            looked = look => looked,
            // A disk that does not answer keeps nobody from stopping.
            () = cut.cancelled() => return,
        };
        let Some(survey) = survey else { return };
        self.ask_untrusted(&mut state, survey, cut).await;
    }

    /// Looks on a thread of its own. One look at a time: where the disk does not answer, each prompt would leave a thread
    /// behind.
    pub(super) async fn run_survey(&self, state: &mut LoaderState) -> Option<ConfigSurvey> {
        if let Some(left_behind) = &mut state.looking {
            // What it saw is old by now.
            let _ = left_behind.await;
        }
        let (settings, cwd) = (self.kit.config(), self.cwd.clone());
        let looking = state
            .looking
            .insert(tokio::task::spawn_blocking(move || ConfigSurvey::take_survey(&settings, &cwd)));
        let survey = looking.await;
        state.looking = None;
        survey.inspect_err(|error| tracing::error!(%error, "looking for supplies broke")).ok()
    }

    async fn ask_untrusted(&self, state: &mut LoaderState, survey: ConfigSurvey, cut: &CancellationToken) {
        let unknown = survey.undecided_files(&state.said);
        if unknown.is_empty() || cut.is_cancelled() {
            return self.apply_survey(state, survey);
        }
        let asking = TrustQuestion::for_files(&unknown, |path| survey.kept.approved_text(path));
        let about: Vec<TrustSubject> = unknown.iter().map(|file| file.supply.clone()).collect();
        let (word, until_changed) = match asking.ask_user(&self.client, &self.session, cut).await {
            // The next prompt asks again.
            TrustDecision::Closed if cut.is_cancelled() || self.client.is_gone() => {
                return self.apply_survey(state, survey);
            }
            TrustDecision::Use { until_changed } => (TrustAnswer::Yes, until_changed),
            TrustDecision::Leave { until_changed } => (TrustAnswer::No, until_changed),
            TrustDecision::Closed => (TrustAnswer::No, false),
            TrustDecision::Unasked => {
                self.notify_once(state, ProjectConfig::unused_notice(&asking.summary, self.is_child));
                (TrustAnswer::No, false)
            }
        };
        self.apply_decision(state, survey, (about, word, until_changed)).await;
    }

    /// Takes down what a person said about contents, and goes by it from here on.
    pub(super) async fn apply_decision(
        &self,
        state: &mut LoaderState,
        survey: ConfigSurvey,
        (about, word, until_changed): (Vec<TrustSubject>, TrustAnswer, bool),
    ) {
        about.iter().for_each(|supply| state.said.record_answer(supply.clone(), word));
        let survey = if until_changed {
            self.store_decision(state, survey, (&about, word)).await
        } else {
            Some(survey)
        };
        if let Some(survey) = survey {
            self.apply_survey(state, survey);
        }
    }

    /// Keeps a word for good; a session that cannot keep it has it all the same.
    async fn store_decision(
        &self,
        state: &mut LoaderState,
        survey: ConfigSurvey,
        (about, word): (&[TrustSubject], TrustAnswer),
    ) -> Option<ConfigSurvey> {
        let config_dir = self.kit.config().config_dir.clone();
        let about = about.to_vec();
        let kept = tokio::task::spawn_blocking(move || {
            let files = survey.found.files.iter().filter(|file| about.contains(&file.supply));
            let kept = kept::store_decision(&config_dir, &survey.found.repository, files, word);
            (survey, kept)
        });
        let (survey, kept) =
            kept.await.inspect_err(|error| tracing::error!(%error, "keeping trust broke")).ok()?;
        if let Err(error) = kept {
            let notice = format!("Your answer counts in this session only: it could not be kept ({error}).");
            self.notify_once(state, notice);
        }
        Some(survey)
    }

    fn apply_survey(&self, state: &mut LoaderState, survey: ConfigSurvey) {
        let (supplies, problems) =
            survey.into_project_config(&state.said, ProjectConfig::from_config(&self.kit.config()));
        for problem in problems {
            self.notify_once(state, problem);
        }
        for command in supplies.slash_commands() {
            if commands::available_commands().iter().any(|own| own.name == command.name) {
                let name = command.name;
                let notice =
                    format!("/{name} stays Crow's own command; call the file or the skill otherwise.");
                self.notify_once(state, notice);
            }
        }
        self.toolbox.set_supplied_servers((&self.client, &self.session), &supplies.servers);
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(supplies);
        self.send_commands(state);
    }

    /// Every command there is now: Crow's own, then prompt files and skills, then the prompts of MCP servers.
    fn offered_commands(&self) -> Vec<CommandInfo> {
        let more = self.current_config().slash_commands().into_iter().chain(self.toolbox.prompt_commands());
        let mut offered = commands::available_commands();
        for command in more {
            if !offered.iter().any(|other| other.name == command.name) {
                offered.push(command);
            }
        }
        offered
    }

    fn send_commands(&self, state: &mut LoaderState) {
        let offered = self.offered_commands();
        if offered != state.offered {
            self.client.send_update(&self.session, SessionUpdate::Commands(offered.clone()));
            state.offered = offered;
        }
    }

    /// Tells a sentence once.
    fn notify_once(&self, state: &mut LoaderState, sentence: String) {
        if state.told.len() < TOLD_MAX && state.told.insert(sentence.clone()) {
            self.client.send_update(&self.session, SessionUpdate::Notice(sentence));
        }
    }

    /// Tells the model again of every skill that it can no longer see.
    pub(crate) async fn forget_known_skills(&self) {
        self.state.lock().await.known.clear();
    }

    /// Adds to what the person said what their command stands for, and the skills that the model does not know.
    pub(crate) async fn complete_prompt(
        &self,
        parts: Vec<ContentPart>,
        transcript: &Transcript,
    ) -> Vec<ContentPart> {
        let supplies = self.current_config();
        let mut parts = supplies.expand_prompt(parts);
        let mut state = self.state.lock().await;
        let is_new = |skill: &&Skill| !state.known.contains(&skill.path) && !knows_skill(transcript, skill);
        let new: Vec<&Skill> = supplies.skills.iter().filter(is_new).collect();
        if !new.is_empty() {
            parts.push(skills_part(&new));
        }
        state.known = supplies.skills.iter().map(|skill| skill.path.clone()).collect();
        parts
    }
}

/// Tells whether the model was told of a skill.
fn knows_skill(transcript: &Transcript, skill: &Skill) -> bool {
    let named = transcript.system().contains(&skill.path.display().to_string());
    named
        || transcript.entries().iter().any(|entry| match entry {
            TranscriptEntry::Prompt(prompt) => mentions_skill(&prompt.parts, skill),
            TranscriptEntry::Reply(_) | TranscriptEntry::Result { .. } => false,
        })
}
