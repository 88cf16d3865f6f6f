//! The loop: waits for the terminal, the agent, side tasks and the clock; applies one event after the other, and draws.
//! The only leaf of the client that waits.

mod lent_terminal;

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use crow_acp::{ClientEvent, PermissionAnswer};
use crow_core::SessionId;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    TerminalClient,
    agent_link::{OpenConnection, QuestionSenders},
    restore_on_panic, sequences,
    tasks::{ClientHost, TaskRunner},
};
use crate::{
    app::{
        cells::TranscriptCell,
        composer::buffer::{DraftAtom, DraftBuffer},
        event::{AppCommand, AppEvent, AttachedImage, DrawnFrame, SessionChoice},
        state::AppState,
        update::update,
        view::{self, next_frame_in},
    },
    screen::{InlineScreen, InputEvent, InputReader, REBUILD_ROWS_MAX, ScreenFrame, TimedInput, TtyIo},
    text::StyledRow,
};

/// Events of side tasks that wait for the loop; a task that is ahead of the screen waits too.
const EVENTS_LEN: usize = 256;

/// Frames are at least this far apart: more are not seen.
const FRAME_TIME: Duration = Duration::from_millis(16);

/// Waiting events are applied for this long before a frame.
const DRAIN_TIME: Duration = Duration::from_millis(4);

/// The loop with its state.
pub(super) struct AppLoop<H> {
    state: AppState,
    tty: TtyIo,
    screen: InlineScreen<TtyIo>,
    /// Without it the terminal belongs to another program.
    input: Option<InputReader>,
    events: mpsc::Receiver<AppEvent>,
    tasks: TaskRunner<H>,
    questions: QuestionSenders,
    terminate: CancellationToken,
    interrupt: Arc<Notify>,
    start: SessionChoice,
    last_frame_at: Option<Instant>,
    /// The state has changed since the last frame.
    is_dirty: bool,
    title: String,
}

impl<H: ClientHost> AppLoop<H> {
    /// Takes the terminal.
    pub(super) fn open(client: TerminalClient<H>) -> io::Result<Self> {
        let (event_sender, events) = mpsc::channel(EVENTS_LEN);
        let mut tasks = TaskRunner::new(client.host, client.facts.cwd.clone(), event_sender);
        tasks.history_file = client.history_file;
        tasks.initial_options = client.start.options;
        let screen = InlineScreen::open(client.tty.clone(), client.traits)?;
        restore_on_panic(client.tty.clone(), screen.modes());
        let input = InputReader::start(&client.tty)?;
        let draft = first_draft(client.start.prompt, client.start.images);
        let mut state = AppState::new(client.facts, screen.size(), client.theme, draft);
        state.is_fullscreen = client.is_fullscreen;
        Ok(Self {
            state,
            tty: client.tty,
            screen,
            input: Some(input),
            events,
            tasks,
            questions: QuestionSenders::new(client.start.approves_all),
            terminate: client.terminate,
            interrupt: client.interrupt,
            start: client.start.target,
            last_frame_at: None,
            is_dirty: true,
            title: String::new(),
        })
    }

    /// Runs until the user quits.
    pub(super) async fn run(&mut self, opened: oneshot::Receiver<OpenConnection>) -> io::Result<()> {
        // The composer is there before the agent answers.
        self.draw(Instant::now())?;
        self.tasks.load_stored_input();
        let mut opening = Some(opened);
        let mut agent_events = None;
        while !self.state.is_quitting {
            let wake = self.wait(&mut opening, &mut agent_events).await;
            self.handle_wake(wake, &mut agent_events)?;
            self.drain(&mut agent_events)?;
            let now = Instant::now();
            if self.is_dirty && self.next_frame_at().is_none_or(|at| at <= now) {
                self.draw(now)?;
            }
        }
        Ok(())
    }

    /// Waits for whatever happens first.
    async fn wait(
        &mut self,
        opening: &mut Option<oneshot::Receiver<OpenConnection>>,
        agent_events: &mut Option<mpsc::Receiver<ClientEvent>>,
    ) -> LoopWake {
        let wake_at = self.wake_at();
        tokio::select! {
            biased;
            () = self.terminate.cancelled() => LoopWake::Event(AppEvent::Terminate),
            () = self.interrupt.notified() => LoopWake::Interrupt,
            input = receive_input(&mut self.input) => LoopWake::Input(input),
            connection = receive_connection(opening) => LoopWake::Connected(Box::new(connection)),
            event = receive_event(agent_events) => LoopWake::Agent(Box::new(event)),
            Some(event) = self.events.recv() => LoopWake::Event(event),
            id = self.questions.wait_withdrawn() => LoopWake::Event(AppEvent::QuestionWithdrawn(id)),
            () = sleep_until(wake_at) => LoopWake::Event(AppEvent::Tick),
        }
    }

    fn handle_wake(
        &mut self,
        wake: LoopWake,
        agent_events: &mut Option<mpsc::Receiver<ClientEvent>>,
    ) -> io::Result<()> {
        match wake {
            LoopWake::Input(input) => self.apply_input(input),
            LoopWake::Event(event) => self.apply(event),
            LoopWake::Interrupt if self.input.is_none() => Ok(()),
            LoopWake::Interrupt => self.apply(AppEvent::Terminate),
            LoopWake::Agent(event) => match self.questions.receive(*event) {
                Some(event) => self.apply(event),
                None => Ok(()),
            },
            LoopWake::Connected(connected) => {
                let OpenConnection { connection, events } = *connected;
                *agent_events = Some(events);
                let capabilities = connection.capabilities();
                self.tasks.connection = Some(connection);
                self.apply(AppEvent::Connected(capabilities))?;
                self.begin_session()
            }
        }
    }

    fn begin_session(&mut self) -> io::Result<()> {
        let target = std::mem::replace(&mut self.start, SessionChoice::New);
        if target == SessionChoice::Ask {
            // The choice opens a session; another one before it would answer later.
            self.tasks.list_sessions();
        } else {
            self.state.open_session(target);
        }
        self.apply(AppEvent::Tick)
    }

    /// Applies what has arrived meanwhile, input first, for a short time.
    fn drain(&mut self, agent_events: &mut Option<mpsc::Receiver<ClientEvent>>) -> io::Result<()> {
        let until = Instant::now() + DRAIN_TIME;
        while !self.state.is_quitting && Instant::now() < until {
            if let Some(input) = self.input.as_mut().and_then(InputReader::take_ready) {
                self.apply_input(input)?;
            } else if let Some(event) = agent_events.as_mut().and_then(|events| events.try_recv().ok()) {
                self.handle_wake(LoopWake::Agent(Box::new(event)), &mut None)?;
            } else if let Ok(event) = self.events.try_recv() {
                self.apply(event)?;
            } else {
                break;
            }
        }
        Ok(())
    }

    fn apply_input(&mut self, input: TimedInput) -> io::Result<()> {
        match &input.event {
            InputEvent::Resized => self.screen.on_resized(input.read_at),
            InputEvent::Reply(reply) => self.screen.on_reply(reply, input.read_at)?,
            InputEvent::FocusChanged(true) => self.screen.ask_background()?,
            InputEvent::FocusChanged(false)
            | InputEvent::Key(_)
            | InputEvent::KeyRepeat(_)
            | InputEvent::Paste { .. }
            | InputEvent::Closed => {}
        }
        self.apply(AppEvent::Input(input))
    }

    /// Applies an event and carries out what it asks for.
    fn apply(&mut self, event: AppEvent) -> io::Result<()> {
        if let AppEvent::SessionOpened(Ok(opened)) = &event {
            self.tasks.session = Some(opened.session.clone());
        }
        if let AppEvent::EditorClosed(_) = &event {
            self.take_terminal()?;
        }
        self.is_dirty = true;
        for command in update(&mut self.state, event, Instant::now()) {
            self.execute(command)?;
        }
        Ok(())
    }

    fn execute(&mut self, command: AppCommand) -> io::Result<()> {
        match command {
            AppCommand::OpenSession(target) => self.tasks.open_session(target),
            AppCommand::SendPrompt(content) => self.tasks.send_prompt(content),
            AppCommand::Steer(text) => self.tasks.steer(text),
            AppCommand::CancelTurn => self.tasks.cancel_turn(),
            AppCommand::SetOption { option, value } => self.tasks.set_option(option, value),
            AppCommand::ListSessions => self.tasks.list_sessions(),
            AppCommand::ListPrompts => self.tasks.list_prompts(),
            AppCommand::MatchFiles(query) => self.tasks.match_files(query),
            AppCommand::RunCommand(command) => self.tasks.run_command(command),
            AppCommand::KillCommand => self.tasks.kill_command(),
            AppCommand::ReadImage { path, pasted } => self.tasks.read_image(path, pasted),
            AppCommand::ReadClipboard => self.tasks.read_clipboard(),
            AppCommand::StoreHistory(entry) => self.tasks.store_history(&entry),
            AppCommand::StoreDraft(text) => self.tasks.store_draft(&text),
            AppCommand::AnswerCall { id, option } => {
                self.questions.answer_call(id, PermissionAnswer::Selected(option));
            }
            AppCommand::AnswerPrefix { id, option, prefix } => {
                self.questions.answer_call(id, PermissionAnswer::SelectedPrefix { option, prefix });
            }
            AppCommand::AnswerForm { id, outcome } => self.questions.answer_form(id, outcome),
            AppCommand::DropQuestion(id) => self.questions.drop_question(id),
            AppCommand::WriteFile { path, text } => self.tasks.write_file(path, text),
            AppCommand::LoadDiff => self.tasks.load_diff(),
            AppCommand::ReadBranch => self.tasks.read_branch(),
            AppCommand::EditText(text) => self.edit_text(text)?,
            AppCommand::Suspend => self.stop_process()?,
            AppCommand::CopyText(text) => {
                self.screen.write_control(&sequences::copy_text(&text))?;
                self.tasks.copy_text(text);
            }
            AppCommand::Alert(text) => {
                self.screen.write_control(&sequences::alert(&text, self.screen.traits()))?;
            }
            AppCommand::Redraw => self.redraw()?,
            AppCommand::Quit => {}
        }
        Ok(())
    }

    /// Draws a frame, unless the terminal is being resized or another program has it; then the state stays dirty.
    fn draw(&mut self, now: Instant) -> io::Result<()> {
        if self.input.is_none() {
            return Ok(());
        }
        if self.screen.deadline().is_some_and(|deadline| deadline <= now) {
            self.screen.on_deadline(now)?;
        }
        self.state.size = self.screen.size();
        let frame = view::view(&self.state, now);
        match frame.is_fullscreen {
            true => {
                self.screen.enter_fullscreen()?;
                if self.state.is_fullscreen {
                    self.screen.report_wheel()?;
                }
            }
            false if self.screen.is_fullscreen() => self.screen.leave_fullscreen(Some(now))?,
            false => {}
        }
        let is_drawn = match frame.is_fullscreen {
            true => self.screen.draw_fullscreen(&frame.live, frame.caret)?,
            false => self.screen.draw(&ScreenFrame {
                history: &frame.history,
                live: &frame.live,
                caret: frame.caret,
            })?,
        };
        if !is_drawn {
            return Ok(());
        }
        if frame.title != self.title {
            self.screen.write_control(&sequences::set_title(&frame.title))?;
            self.title = frame.title;
        }
        // The frame has been written: what is read from now on was typed at it.
        let drawn = DrawnFrame { n_committed: frame.n_committed, question: frame.question };
        let drawn_at = Instant::now();
        update(&mut self.state, AppEvent::FrameDrawn(drawn), drawn_at);
        (self.is_dirty, self.last_frame_at) = (false, Some(drawn_at));
        Ok(())
    }

    /// Draws everything again, with rows of the current width.
    fn redraw(&mut self) -> io::Result<()> {
        if self.screen.is_fullscreen() {
            return self.screen.clear_fullscreen();
        }
        let history = view::history_rows(&self.state, Instant::now());
        self.screen.rebuild(&history)
    }

    /// The earliest time of the next frame.
    fn next_frame_at(&self) -> Option<Instant> {
        self.last_frame_at.map(|at| at + FRAME_TIME)
    }

    /// The time of the next frame if something waits for it; without one, only events wake the loop.
    fn wake_at(&self) -> Option<Instant> {
        let resize_at = self.screen.deadline();
        let can_draw = self.screen.is_ready() || (self.screen.is_fullscreen() && resize_at.is_none());
        if !can_draw {
            return resize_at;
        }
        if self.is_dirty {
            return Some(self.next_frame_at().unwrap_or_else(Instant::now));
        }
        let moves_at = next_frame_in(&self.state).and_then(|time| Some(self.last_frame_at? + time));
        let flash_ends_at = self.state.flash.as_ref().map(|(_, until)| *until);
        let flash_ends_at = flash_ends_at.filter(|until| self.last_frame_at.is_some_and(|at| at < *until));
        let draft_at = self.state.saved_draft.due_at();
        [moves_at, flash_ends_at, draft_at, resize_at].into_iter().flatten().min()
    }

    /// Leaves the terminal to the shell, whose prompt follows the history.
    pub(super) fn close(&mut self) -> io::Result<()> {
        self.state.cells.end_stream();
        self.state.cells.fail_open_calls(Instant::now());
        let mut rows = match self.state.is_fullscreen {
            true => {
                // The shell's screen has nothing of the conversation yet.
                self.state.cells.commit(self.state.cells.n_settled());
                let rows = view::history_rows(&self.state, Instant::now());
                rows[rows.len().saturating_sub(REBUILD_ROWS_MAX)..].to_vec()
            }
            false => view::view(&self.state, Instant::now()).history,
        };
        if self.resumable_session().is_some() {
            // The lines that say how to continue follow.
            rows.push(StyledRow::default());
        }
        self.screen.close(&rows)
    }

    pub(super) fn resumable_session(&self) -> Option<SessionId> {
        let can_load = self.state.session.capabilities.is_some_and(|capabilities| capabilities.load_session);
        let has_prompt =
            self.state.cells.of_session().iter().any(|cell| matches!(cell, TranscriptCell::Prompt(_)));
        self.tasks.session.clone().filter(|_| can_load && has_prompt)
    }
}

/// The event that ended a wait.
enum LoopWake {
    Input(TimedInput),
    Interrupt,
    Event(AppEvent),
    Agent(Box<ClientEvent>),
    Connected(Box<OpenConnection>),
}

fn first_draft(prompt: Option<String>, images: Vec<AttachedImage>) -> Option<DraftBuffer> {
    let mut draft = DraftBuffer::default();
    draft.set_text(&prompt?);
    for AttachedImage { name, mime, data } in images {
        draft.insert_atom(DraftAtom::Image { mime, data, name });
    }
    Some(draft)
}

async fn receive_input(input: &mut Option<InputReader>) -> TimedInput {
    match input {
        Some(input) => input.next_event().await,
        None => std::future::pending().await,
    }
}

async fn receive_connection(opening: &mut Option<oneshot::Receiver<OpenConnection>>) -> OpenConnection {
    if let Some(receiver) = opening
        && let Ok(connection) = receiver.await
    {
        *opening = None;
        return connection;
    }
    // The connection failed; the link reports why.
    *opening = None;
    std::future::pending().await
}

async fn receive_event(events: &mut Option<mpsc::Receiver<ClientEvent>>) -> ClientEvent {
    if let Some(receiver) = events
        && let Some(event) = receiver.recv().await
    {
        return event;
    }
    *events = None;
    std::future::pending().await
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
