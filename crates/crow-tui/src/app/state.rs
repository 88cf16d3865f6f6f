//! The state of the terminal client. Only `update` changes it, and only `view` shows it.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crow_acp::{AcpAgentCapabilities, ConfigOption};
use crow_core::{CommandInfo, PlanEntry, SessionId};

use super::{
    cells::{CallCell, TranscriptCells},
    children::SessionChildren,
    completion::CompletionList,
    composer::{buffer::DraftBuffer, vi::ViState},
    event::{AppCommand, SessionChoice},
    history::{HistorySearch, PromptHistory},
    pager::TextPager,
    picker::ListPicker,
    question::WaitingQuestion,
    rewind::RewindState,
    saved_draft::SavedDraft,
};
use crate::{
    screen::{KeyPress, ScreenSize},
    text::ColorTheme,
};

/// Time a short message replaces the hints.
pub(crate) const FLASH_TIME: Duration = Duration::from_secs(3);

/// Prompts that wait for the end of a turn; more are a mistake.
pub(crate) const QUEUE_MAX: usize = 64;

/// The fixed facts about this client.
#[derive(Debug, Clone)]
pub struct ClientFacts {
    /// The agent's name if it is not Crow.
    pub agent: Option<String>,
    pub version: &'static str,
    /// The working directory.
    pub cwd: PathBuf,
    /// The home directory, for shorter paths.
    pub home: Option<PathBuf>,
    /// The names of the agents that the agent may start, and of its MCP servers.
    pub agents: Vec<String>,
    pub mcp_servers: Vec<String>,
    /// The composer has vi keys.
    pub has_vi_keys: bool,
}

impl ClientFacts {
    /// The working directory with `~` for the home directory.
    pub(crate) fn shown_cwd(&self) -> String {
        self.below_home(&self.cwd)
    }

    /// A path from the working directory if it is below it, and otherwise with `~` for the home directory.
    pub(crate) fn shown_path(&self, path: &str) -> String {
        match Path::new(path).strip_prefix(&self.cwd) {
            Ok(rest) if !rest.as_os_str().is_empty() => rest.display().to_string(),
            Ok(_) | Err(_) => self.below_home(Path::new(path)),
        }
    }

    fn below_home(&self, path: &Path) -> String {
        let below_home = self.home.as_ref().and_then(|home| path.strip_prefix(home).ok());
        match below_home {
            Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Some(rest) => format!("~/{}", rest.display()),
            None => path.display().to_string(),
        }
    }
}

/// The whole state.
#[derive(Debug)]
pub(crate) struct AppState {
    pub(crate) facts: ClientFacts,
    pub(crate) size: ScreenSize,
    pub(crate) theme: ColorTheme,
    pub(crate) composer: DraftBuffer,
    /// Editing with vi keys.
    pub(crate) vi: Option<ViState>,
    /// The draft while the composer has the answer to a question.
    pub(crate) stashed_draft: Option<DraftBuffer>,
    /// The user chose to say what to do instead, and the agent asks for the text next.
    pub(crate) expects_text: bool,
    pub(crate) saved_draft: SavedDraft,
    /// Keys of a sequence so far, and the time of the last one.
    pub(crate) key_prefix: Option<(String, Instant)>,
    /// The last key that was not pressed at the question on the screen: it may be held still.
    pub(crate) last_key: Option<KeyPress>,
    pub(crate) history: PromptHistory,
    pub(crate) search: Option<HistorySearch>,
    pub(crate) completion: Option<CompletionList>,
    pub(crate) overlay: Option<AppOverlay>,
    pub(crate) cells: TranscriptCells,
    pub(crate) children: SessionChildren,
    /// The ID of a call that is shown whole while it is the newest one.
    pub(crate) unfolded_call: Option<String>,
    pub(crate) plan: Vec<PlanEntry>,
    pub(crate) turn: Option<RunningTurn>,
    pub(crate) queue: VecDeque<DraftBuffer>,
    /// Texts for the running turn that the model has not read yet.
    pub(crate) steering: VecDeque<String>,
    pub(crate) questions: VecDeque<WaitingQuestion>,
    pub(crate) session: SessionStatus,
    /// The way back to an earlier prompt, from the list to the copy of the session.
    pub(crate) rewind: RewindState,
    pub(crate) flash: Option<(String, Instant)>,
    pub(crate) quit_pressed_at: Option<Instant>,
    pub(crate) has_window_focus: bool,
    /// The conversation has the whole screen, with scrolling of its own.
    pub(crate) is_fullscreen: bool,
    /// The first visible row of the transcript there; without one, its end is visible.
    pub(crate) scroll: Option<ScrollPlace>,
    /// Requests that this update made.
    pub(crate) commands: Vec<AppCommand>,
    pub(crate) is_quitting: bool,
}

/// A list or text that covers the composer.
#[derive(Debug, Clone)]
pub(crate) enum AppOverlay {
    Picker(ListPicker),
    Pager(TextPager),
}

/// A row of a cell of the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ScrollPlace {
    pub(crate) cell: usize,
    pub(crate) row: usize,
}

/// The turn that runs.
#[derive(Debug, Clone)]
pub(crate) struct RunningTurn {
    pub(crate) started_at: Instant,
    pub(crate) is_stopping: bool,
    /// Letters that the model wrote in it.
    pub(crate) n_letters: usize,
}

/// The agent and its session, as far as known.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionStatus {
    pub(crate) capabilities: Option<AcpAgentCapabilities>,
    pub(crate) id: Option<SessionId>,
    /// A stored session is being replayed.
    pub(crate) is_loading: bool,
    pub(crate) title: Option<String>,
    pub(crate) options: Vec<ConfigOption>,
    /// The commands of the agent; `None` until it sent them.
    pub(crate) commands: Option<Vec<CommandInfo>>,
    pub(crate) usage: Option<SessionUsage>,
    pub(crate) branch: Option<String>,
    /// The last prompt that was sent.
    pub(crate) last_prompt: String,
}

/// Context and cost, as the agent reported them last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionUsage {
    pub(crate) used: u64,
    pub(crate) size: u64,
    pub(crate) is_estimate: bool,
    /// In billionths of a US dollar.
    pub(crate) cost: Option<u64>,
}

impl AppState {
    /// Returns the state before the agent has answered. `first_prompt` is sent as soon as a session is open.
    pub(crate) fn new(
        facts: ClientFacts,
        size: ScreenSize,
        theme: ColorTheme,
        first_prompt: Option<DraftBuffer>,
    ) -> Self {
        let vi = facts.has_vi_keys.then(ViState::default);
        let project = facts.cwd.display().to_string();
        Self {
            facts,
            size,
            theme,
            composer: DraftBuffer::default(),
            vi,
            stashed_draft: None,
            expects_text: false,
            saved_draft: SavedDraft::default(),
            key_prefix: None,
            last_key: None,
            history: PromptHistory::new(project, Vec::new()),
            search: None,
            completion: None,
            overlay: None,
            cells: TranscriptCells::default(),
            children: SessionChildren::default(),
            unfolded_call: None,
            plan: Vec::new(),
            turn: None,
            queue: first_prompt.into_iter().collect(),
            steering: VecDeque::new(),
            questions: VecDeque::new(),
            session: SessionStatus::default(),
            rewind: RewindState::default(),
            flash: None,
            quit_pressed_at: None,
            has_window_focus: true,
            is_fullscreen: false,
            scroll: None,
            commands: Vec::new(),
            is_quitting: false,
        }
    }

    /// Shows a short message in place of the hints.
    pub(crate) fn set_flash(&mut self, text: impl Into<String>, now: Instant) {
        self.flash = Some((text.into(), now + FLASH_TIME));
    }

    /// Asks for something outside.
    pub(crate) fn request(&mut self, command: AppCommand) {
        self.commands.push(command);
    }

    /// The call that is shown whole.
    pub(crate) fn unfolded_call(&self) -> Option<&CallCell> {
        let id = self.unfolded_call.as_ref()?;
        self.cells.newest_call().filter(|call| call.id == *id)
    }

    /// The text of the draft, also while the composer has the answer to a question.
    pub(crate) fn draft_text(&self) -> String {
        self.stashed_draft.as_ref().unwrap_or(&self.composer).full_text()
    }

    /// Opens a new session if there is none, and none is being opened.
    pub(crate) fn open_missing_session(&mut self) {
        if self.session.id.is_none() && !self.session.is_loading && self.session.capabilities.is_some() {
            self.open_session(SessionChoice::New);
        }
    }

    /// Opens a session in place of the current one.
    pub(crate) fn open_session(&mut self, target: SessionChoice) {
        self.session.id = None;
        self.session.is_loading = true;
        self.children = SessionChildren::default();
        self.steering.clear();
        self.request(AppCommand::OpenSession(target));
    }

    /// The question that is on the screen.
    pub(crate) fn question(&mut self) -> Option<&mut WaitingQuestion> {
        self.questions.front_mut()
    }

    /// Whether the composer is free: no turn runs and no question is open.
    pub(crate) fn is_idle(&self) -> bool {
        self.turn.is_none() && self.questions.is_empty()
    }

    /// The cells of a row of text: the last column stays empty.
    pub(crate) fn columns(&self) -> usize {
        usize::from(self.size.columns).saturating_sub(1).max(20)
    }
}

impl SessionStatus {
    /// Finds an option by its ID or category.
    pub(crate) fn find_option(&self, id_or_category: &str) -> Option<&ConfigOption> {
        let by_category = || self.options.iter().find(|option| option.category == Some(id_or_category));
        self.options.iter().find(|option| option.id == id_or_category).or_else(by_category)
    }
}
