//! Loads the project configuration of one session, and refreshes it before each prompt: changed content is asked about
//! again, and the client is notified of new commands.

mod trust_command;
mod trust_form;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crow_acp::Client;
use crow_core::{CommandInfo, ContentPart, SessionId, SessionUpdate, Transcript, TrustAnswer, TrustSubject};
use crow_tools::Toolbox;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::trust_form::TrustDecision;
use crate::config::{ProjectConfig, mentions_skill, skills_part};
use crate::config_host::ConfigHost;
use crate::skill_files::Skill;
use crate::survey::ConfigSurvey;
use crate::trust_review::TrustReview;

/// A disk that does not respond, or an open question, must not block the session.
pub(crate) const LOOK_WAIT_MAX: Duration = Duration::from_secs(2);

/// Notices remembered as sent, so that each is sent once; a repository can cause new ones.
const NOTICES_MAX: usize = 1000;

/// The project configuration of one session.
pub struct ProjectConfigLoader<H> {
    host: Arc<H>,
    client: Client,
    session: SessionId,
    cwd: PathBuf,
    toolbox: Arc<Toolbox>,
    /// Crow's own commands.
    builtin_commands: Vec<CommandInfo>,
    current: RwLock<Arc<ProjectConfig>>,
    /// One survey at a time: a second one must not ask again.
    state: Mutex<LoaderState>,
    /// True if the client is an agent.
    is_child: bool,
    /// Cancelled after the first survey.
    initialized: CancellationToken,
}

/// The parameters of a loader.
pub struct ConfigLoaderInit<H> {
    pub host: Arc<H>,
    pub client: Client,
    pub session: SessionId,
    pub cwd: PathBuf,
    pub toolbox: Arc<Toolbox>,
    /// Crow's own commands.
    pub builtin_commands: Vec<CommandInfo>,
    /// True if the client is an agent.
    pub is_child: bool,
}

/// A decision of the user about files.
#[derive(Debug)]
struct FileDecision {
    subjects: Vec<TrustSubject>,
    answer: TrustAnswer,
    /// Otherwise it is valid in this session.
    until_changed: bool,
}

#[derive(Debug, Default)]
struct LoaderState {
    /// The decisions for this session, and what `/trust` showed.
    trust: TrustReview,
    sent_notices: BTreeSet<String>,
    /// The commands that the client has.
    sent_commands: Vec<CommandInfo>,
    /// The skills that the model knows, by their files.
    known_skills: BTreeSet<PathBuf>,
    /// A survey whose prompt was cancelled while it waited for the disk.
    pending_survey: Option<JoinHandle<ConfigSurvey>>,
}

impl<H: ConfigHost> ProjectConfigLoader<H> {
    /// Creates the loader of a session, with the user's rules only, and forwards changes of MCP prompts to the client
    /// as long as it exists.
    pub fn start(init: ConfigLoaderInit<H>) -> Arc<Self> {
        let ConfigLoaderInit { host, client, session, cwd, toolbox, builtin_commands, is_child } = init;
        let current = RwLock::new(Arc::new(ProjectConfig::without_repository(&host.config_sources())));
        let mut commands_changed = toolbox.subscribe_commands();
        let (state, initialized) = (Mutex::default(), CancellationToken::new());
        let loader = Arc::new(Self {
            host,
            client,
            session,
            cwd,
            toolbox,
            builtin_commands,
            current,
            state,
            is_child,
            initialized,
        });
        let weak_loader = Arc::downgrade(&loader);
        tokio::spawn(async move {
            while commands_changed.changed().await.is_ok() {
                let Some(loader) = weak_loader.upgrade() else { return };
                loader.send_commands(&mut *loader.state.lock().await);
            }
        });
        loader
    }

    /// Returns the current configuration.
    pub fn current_config(&self) -> Arc<ProjectConfig> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns all commands, after the first survey if that does not take long. Does not wait for a question.
    pub async fn available_commands(&self) -> Vec<CommandInfo> {
        // Without it, Crow's own commands are all there are.
        let _ = timeout(LOOK_WAIT_MAX, self.initialized.cancelled()).await;
        self.offered_commands()
    }

    /// Loads trusted content and notifies the client, which has Crow's own commands already.
    pub async fn load_trusted(&self) {
        let _opened = self.initialized.clone().drop_guard();
        let mut state = self.state.lock().await;
        state.sent_commands = self.builtin_commands.clone();
        for notice in self.host.take_notices() {
            self.notify_once(&mut state, notice);
        }
        if let Some(survey) = self.run_survey(&mut state).await {
            self.apply_survey(&mut state, survey);
        }
    }

    /// Surveys again before a prompt, and asks about undecided content.
    pub async fn refresh_config(&self, cancel: &CancellationToken) {
        let survey_task = async {
            let mut state = self.state.lock().await;
            let survey = self.run_survey(&mut state).await;
            (state, survey)
        };
        let (mut state, survey) = tokio::select! {
            biased;
            looked = survey_task => looked,
            // A disk that does not respond must not delay the cancellation.
            () = cancel.cancelled() => return,
        };
        let Some(survey) = survey else { return };
        self.ask_untrusted(&mut state, survey, cancel).await;
    }

    /// Surveys on a blocking thread. One survey at a time: if the disk does not respond, each prompt would leave a
    /// thread behind.
    async fn run_survey(&self, state: &mut LoaderState) -> Option<ConfigSurvey> {
        if let Some(earlier_survey) = &mut state.pending_survey {
            // Its result is outdated.
            let _ = earlier_survey.await;
        }
        let (sources, cwd) = (self.host.config_sources(), self.cwd.clone());
        let pending_survey = state
            .pending_survey
            .insert(self.host.spawn_blocking(move || ConfigSurvey::take_survey(&sources, &cwd)));
        let survey = pending_survey.await;
        state.pending_survey = None;
        survey
            .inspect_err(|error| tracing::error!(%error, "the survey of the project configuration panicked"))
            .ok()
    }

    async fn ask_untrusted(&self, state: &mut LoaderState, survey: ConfigSurvey, cancel: &CancellationToken) {
        let undecided = survey.undecided_files(state.trust.answers());
        if undecided.is_empty() || cancel.is_cancelled() {
            return self.apply_survey(state, survey);
        }
        let question = survey.trust_question(&undecided);
        let subjects: Vec<TrustSubject> = undecided.iter().map(|file| file.subject.clone()).collect();
        let (answer, until_changed) =
            match trust_form::ask_user(&question, &self.client, &self.session, cancel).await {
                // The next prompt asks again.
                TrustDecision::Closed if cancel.is_cancelled() || self.client.is_gone() => {
                    return self.apply_survey(state, survey);
                }
                TrustDecision::Use { until_changed } => (TrustAnswer::Trust, until_changed),
                TrustDecision::Reject { until_changed } => (TrustAnswer::Reject, until_changed),
                TrustDecision::Closed => (TrustAnswer::Reject, false),
                TrustDecision::NotAsked => {
                    self.notify_once(state, unused_notice(&question.summary, self.is_child));
                    (TrustAnswer::Reject, false)
                }
            };
        self.apply_decision(state, survey, FileDecision { subjects, answer, until_changed }).await;
    }

    /// Stores the user's decision about content, and applies it.
    async fn apply_decision(&self, state: &mut LoaderState, survey: ConfigSurvey, decision: FileDecision) {
        let FileDecision { subjects, answer, until_changed } = decision;
        state.trust.record_answers(&subjects, answer);
        let survey = if until_changed {
            self.store_decision(state, survey, &subjects, answer).await
        } else {
            Some(survey)
        };
        if let Some(survey) = survey {
            self.apply_survey(state, survey);
        }
    }

    /// Stores a decision permanently; a session that cannot store it applies it nevertheless.
    async fn store_decision(
        &self,
        state: &mut LoaderState,
        survey: ConfigSurvey,
        subjects: &[TrustSubject],
        answer: TrustAnswer,
    ) -> Option<ConfigSurvey> {
        let config_dir = self.host.config_dir();
        let subjects = subjects.to_vec();
        let store_result = self.host.spawn_blocking(move || {
            let store_result = survey.store_decision(&config_dir, &subjects, answer);
            (survey, store_result)
        });
        let (survey, store_result) = store_result
            .await
            .inspect_err(|error| tracing::error!(%error, "storing a trust decision panicked"))
            .ok()?;
        if let Err(error) = store_result {
            let notice =
                format!("Your answer is used in this session only: it could not be stored ({error}).");
            self.notify_once(state, notice);
        }
        Some(survey)
    }

    fn apply_survey(&self, state: &mut LoaderState, survey: ConfigSurvey) {
        let (project_config, problems) = survey.into_project_config(
            state.trust.answers(),
            ProjectConfig::without_repository(&self.host.config_sources()),
        );
        for problem in problems {
            self.notify_once(state, problem);
        }
        for command in project_config.slash_commands() {
            if self.builtin_commands.iter().any(|builtin| builtin.name == command.name) {
                let name = command.name;
                let notice = format!("/{name} is a command of Crow's own; rename the file or the skill.");
                self.notify_once(state, notice);
            }
        }
        self.toolbox.set_project_servers(&project_config.servers);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(project_config);
        self.send_commands(state);
    }

    /// Returns all current commands: Crow's own, then prompt files and skills, then the prompts of MCP servers.
    pub fn offered_commands(&self) -> Vec<CommandInfo> {
        let other_commands =
            self.current_config().slash_commands().into_iter().chain(self.toolbox.prompt_commands());
        let mut commands = self.builtin_commands.clone();
        for command in other_commands {
            if !commands.iter().any(|other| other.name == command.name) {
                commands.push(command);
            }
        }
        commands
    }

    fn send_commands(&self, state: &mut LoaderState) {
        let commands = self.offered_commands();
        if commands != state.sent_commands {
            self.client.send_update(&self.session, SessionUpdate::Commands(commands.clone()));
            state.sent_commands = commands;
        }
    }

    /// Sends a notice once.
    fn notify_once(&self, state: &mut LoaderState, sentence: String) {
        if state.sent_notices.len() < NOTICES_MAX && state.sent_notices.insert(sentence.clone()) {
            self.client.send_update(&self.session, SessionUpdate::Notice(sentence));
        }
    }

    /// Forgets which skills the model knows, so that the next prompt names those that it can no longer see.
    pub async fn forget_known_skills(&self) {
        self.state.lock().await.known_skills.clear();
    }

    /// Returns a part with the skills that the model does not know.
    pub async fn unknown_skills(&self, transcript: &Transcript) -> Option<ContentPart> {
        let project_config = self.current_config();
        let mut state = self.state.lock().await;
        let is_unknown =
            |skill: &&Skill| !state.known_skills.contains(&skill.path) && !knows_skill(transcript, skill);
        let unknown_skills: Vec<&Skill> = project_config.skills.iter().filter(is_unknown).collect();
        let part = (!unknown_skills.is_empty()).then(|| skills_part(&unknown_skills));
        state.known_skills = project_config.skills.iter().map(|skill| skill.path.clone()).collect();
        part
    }
}

/// Whether the model has been told of a skill.
fn knows_skill(transcript: &Transcript, skill: &Skill) -> bool {
    let is_in_system_prompt = transcript.system().contains(&skill.path.display().to_string());
    is_in_system_prompt || transcript.prompts().any(|prompt| mentions_skill(&prompt.parts, skill))
}

/// Returns the notice that content is not used.
fn unused_notice(summary: &str, is_child: bool) -> String {
    let notice = format!("This repository has {summary}, not used because you have not trusted it.");
    match is_child {
        true => format!("{notice} A child agent cannot ask you; use `crow-cli trust` in a terminal."),
        false => {
            format!("{notice} Type /trust to see what it would run, or use `crow-cli trust` in a terminal.")
        }
    }
}
