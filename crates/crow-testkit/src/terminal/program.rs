//! A program on a pseudo terminal that is its controlling terminal.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a person starts a program in a terminal as they like")]

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::Pid;

use super::emulator::{EmulatorSize, TerminalEmulator};
use super::keys::encode_key;
use super::output_scanner::{OutputScanner, TerminalQuery};

/// The timeout of every wait; a loaded machine may take this long.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Pieces of output that wait for the test.
const EVENTS_MAX: usize = 64;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// The kind of the terminal: how it treats rows when it is resized, and what it says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalKind {
    /// Wraps rows again, and has the kitty keyboard protocol.
    Kitty,
    /// Cuts rows.
    Xterm,
    /// Wraps rows again and does not name itself.
    Unnamed,
}

/// A terminal and how a program is started in it.
#[derive(Debug, Clone)]
pub struct TerminalSetup {
    pub kind: TerminalKind,
    pub size: EmulatorSize,
    pub args: Vec<String>,
    /// The whole environment of the program.
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
}

/// A piece of output with its time since the start.
#[derive(Debug, Clone)]
pub struct RecordedOutput {
    pub after: Duration,
    pub bytes: Vec<u8>,
}

/// A program on a terminal.
#[derive(Debug)]
pub struct TerminalProgram {
    process: Pid,
    kind: TerminalKind,
    emulator_end: File,
    /// Keeps the terminal's modes after the program has ended.
    program_end: Option<OwnedFd>,
    /// Ends the thread that reads the output, when it is closed.
    reader_lifetime: Option<PipeWriter>,
    events: Receiver<ProgramEvent>,
    exit: Option<ExitStatus>,
    emulator: TerminalEmulator,
    scanner: OutputScanner,
    started_at: Instant,
    recording: Vec<RecordedOutput>,
}

#[derive(Debug)]
enum ProgramEvent {
    Output(Vec<u8>),
    Exited(ExitStatus),
    /// No program has the terminal any more.
    Closed,
}

impl TerminalProgram {
    /// Starts a program.
    pub fn start(program: &Path, setup: &TerminalSetup) -> Self {
        let terminal = openpty(Some(&window_size(setup.size)), None).expect("there is a terminal");
        // A program with the emulator's end would outlive its window.
        for end in [&terminal.master, &terminal.slave] {
            fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).expect("it is open");
        }
        let program_end = || Stdio::from(terminal.slave.try_clone().expect("it can be copied"));
        let mut command = Command::new("setsid");
        command.arg("-c").arg(program).args(&setup.args).env_clear().envs(setup.env.iter().cloned());
        command.current_dir(&setup.cwd).stdin(program_end()).stdout(program_end()).stderr(program_end());
        let mut child = command.spawn().expect("the program starts");
        // The command has copies of the program's end.
        drop(command);
        let process = Pid::from_raw(i32::try_from(child.id()).expect("a process ID is small"));
        let emulator_end = File::from(terminal.master);
        let (sender, events) = sync_channel(EVENTS_MAX);
        let (reader, output_sender) = (emulator_end.try_clone().expect("it can be copied"), sender.clone());
        let (reader_end, reader_lifetime) = std::io::pipe().expect("a pipe can be made");
        std::thread::spawn(move || forward_output(reader, &reader_end, &output_sender));
        std::thread::spawn(move || {
            let status = child.wait().expect("the program can be waited for");
            // The test has ended.
            let _ = sender.send(ProgramEvent::Exited(status));
        });
        let emulator = match setup.kind {
            TerminalKind::Xterm => TerminalEmulator::clipping(setup.size),
            TerminalKind::Kitty | TerminalKind::Unnamed => TerminalEmulator::reflowing(setup.size),
        };
        Self {
            process,
            kind: setup.kind,
            emulator_end,
            program_end: Some(terminal.slave),
            reader_lifetime: Some(reader_lifetime),
            events,
            exit: None,
            emulator,
            scanner: OutputScanner::default(),
            started_at: Instant::now(),
            recording: Vec::new(),
        }
    }

    /// The terminal that the program writes to, as far as its output was waited for.
    pub fn emulator(&mut self) -> &mut TerminalEmulator {
        &mut self.emulator
    }

    /// The ID of the process.
    pub fn process_id(&self) -> i32 {
        self.process.as_raw()
    }

    /// Sends text as if it was typed.
    pub fn type_text(&mut self, text: &str) {
        self.emulator_end.write_all(text.as_bytes()).expect("the terminal takes input");
    }

    /// Presses a key such as `enter` or `ctrl-o`, once the program has turned on what the terminal needs to send it.
    ///
    /// # Panics
    /// If the terminal cannot send it.
    #[track_caller]
    pub fn press_key(&mut self, name: &str) {
        let deadline = Instant::now() + TIMEOUT;
        let bytes = loop {
            match encode_key(name, self.scanner.has_kitty()) {
                Some(bytes) => break bytes,
                None if self.kind == TerminalKind::Kitty && self.receive_event(deadline) => {}
                None => panic!("this terminal cannot send {name}"),
            }
        };
        self.type_text(&bytes);
    }

    /// Pastes a text, in brackets if the program asked for them.
    pub fn paste_text(&mut self, text: &str) {
        let is_bracketed = self.scanner.changed_modes().split(' ').any(|mode| mode == "2004");
        let text = if is_bracketed { format!("\x1b[200~{text}\x1b[201~") } else { text.to_owned() };
        self.type_text(&text);
    }

    /// Changes the size of the window.
    pub fn resize(&mut self, size: EmulatorSize) {
        self.emulator.resize(size);
        rustix::termios::tcsetwinsize(
            &self.emulator_end,
            rustix::termios::Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 },
        )
        .expect("the terminal has a size");
    }

    /// Sends a signal to the program.
    pub fn send_signal(&self, signal: Signal) {
        kill(self.process, signal).expect("the program runs");
    }

    /// Waits until a complete frame satisfies a condition.
    ///
    /// # Panics
    /// If that takes too long, or the program ends before.
    #[track_caller]
    pub fn wait_until(&mut self, description: &str, condition: impl Fn(&TerminalEmulator) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while self.scanner.is_in_frame() || !condition(&self.emulator) {
            if !self.receive_event(deadline) {
                panic!("waited in vain for {description}:\n{}", self.emulator.visible_rows().join("\n"));
            }
        }
    }

    /// Waits for output until a time; for recordings, and for the pauses of a user.
    pub fn watch_until(&mut self, deadline: Instant) {
        while self.receive_event(deadline) {}
    }

    /// Waits for the end of the program and of all others that have its terminal; returns its status, and the modes that
    /// it left.
    ///
    /// # Panics
    /// If that takes too long.
    #[track_caller]
    pub fn wait_for_exit(&mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + TIMEOUT;
        while self.exit.is_none() {
            if !self.receive_event(deadline) && self.exit.is_none() {
                panic!("the program does not end:\n{}", self.emulator.visible_rows().join("\n"));
            }
        }
        let is_cooked = self.has_cooked_input();
        self.program_end = None;
        while self.receive_event(deadline) {}
        let mut modes = self.scanner.changed_modes();
        if !is_cooked {
            modes.push_str(" raw");
        }
        (self.exit.expect("it has ended"), modes)
    }

    /// Closes the terminal, as a closed window does, and waits for the end of the program.
    ///
    /// # Panics
    /// If that takes too long.
    #[track_caller]
    pub fn close_window(&mut self) -> ExitStatus {
        let deadline = Instant::now() + TIMEOUT;
        self.program_end = None;
        self.reader_lifetime = None;
        self.emulator_end = File::create("/dev/null").expect("it can be opened");
        while self.exit.is_none() {
            assert!(Instant::now() < deadline, "the program outlives its terminal");
            self.receive_event(deadline);
        }
        self.exit.expect("it has ended")
    }

    /// The modes that are not as a terminal has them.
    pub fn changed_modes(&self) -> String {
        self.scanner.changed_modes()
    }

    /// The output so far.
    pub fn recording(&self) -> &[RecordedOutput] {
        &self.recording
    }

    /// Whether the terminal passes lines to the program and shows what is typed.
    fn has_cooked_input(&self) -> bool {
        let terminal = self.program_end.as_ref().expect("the terminal is open");
        let flags = tcgetattr(terminal).expect("a terminal has modes").local_flags;
        flags.contains(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG)
    }

    /// Takes the next event; `false` if none comes any more, or not in time.
    fn receive_event(&mut self, deadline: Instant) -> bool {
        match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(ProgramEvent::Output(bytes)) => self.show_output(bytes),
            Ok(ProgramEvent::Exited(status)) => self.exit = Some(status),
            Ok(ProgramEvent::Closed) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return false;
            }
        }
        true
    }

    fn show_output(&mut self, bytes: Vec<u8>) {
        for piece in self.scanner.push(&bytes) {
            self.emulator.process(&piece.bytes);
            if let Some(reply) = piece.query.and_then(|query| self.reply_to(query)) {
                self.type_text(&reply);
            }
        }
        self.recording.push(RecordedOutput { after: self.started_at.elapsed(), bytes });
    }

    fn reply_to(&self, query: TerminalQuery) -> Option<String> {
        match query {
            TerminalQuery::CursorPosition => {
                let (row, column) = self.emulator.cursor();
                Some(format!("\x1b[{};{}R", row + 1, column + 1))
            }
            TerminalQuery::DeviceAttributes => Some("\x1b[?62;22c".to_owned()),
            TerminalQuery::Background => Some("\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\".to_owned()),
            TerminalQuery::KittyKeyboard => (self.kind == TerminalKind::Kitty).then(|| "\x1b[?0u".to_owned()),
            TerminalQuery::Version => match self.kind {
                TerminalKind::Kitty => Some("\x1bP>|kitty(0.40.0)\x1b\\".to_owned()),
                TerminalKind::Xterm => Some("\x1bP>|XTerm(390)\x1b\\".to_owned()),
                TerminalKind::Unnamed => None,
            },
        }
    }
}

impl Drop for TerminalProgram {
    fn drop(&mut self) {
        if self.exit.is_none() {
            // It may have ended meanwhile.
            let _ = kill(self.process, Signal::SIGKILL);
        }
    }
}

/// Forwards what a terminal shows until `lifetime` is closed.
fn forward_output(mut terminal: File, lifetime: &PipeReader, events: &SyncSender<ProgramEvent>) {
    let mut bytes = vec![0; CHUNK_BYTES];
    while wait_for_output(&terminal, lifetime) {
        // Reading from a terminal that no program has is an error.
        let Ok(n_bytes @ 1..) = terminal.read(&mut bytes) else { break };
        if events.send(ProgramEvent::Output(bytes[..n_bytes].to_vec())).is_err() {
            return;
        }
    }
    drop(terminal);
    // The test has ended.
    let _ = events.send(ProgramEvent::Closed);
}

/// Waits until a terminal has output or was closed by its programs; `false` when `lifetime` is closed.
fn wait_for_output(terminal: &File, lifetime: &PipeReader) -> bool {
    let mut ends = [terminal.as_fd(), lifetime.as_fd()].map(|end| PollFd::new(end, PollFlags::POLLIN));
    let is_ready = poll(&mut ends, PollTimeout::NONE).is_ok();
    is_ready && !ends[1].any().unwrap_or(true)
}

fn window_size(size: EmulatorSize) -> Winsize {
    Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 }
}
