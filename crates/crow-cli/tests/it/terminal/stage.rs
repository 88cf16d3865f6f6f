//! A script of what a user does at a terminal, and the log of what the user sees.
//!
//! Each line is a step:
//!
//! - `type TEXT`, `key NAME`, `paste TEXT`: input; in a text, `\n` is a line break
//! - `focus`: gives the keyboard to a question, after a later frame than its first one
//! - `pause`: the user stops typing for a moment
//! - `wait TEXT`, `gone TEXT`: waits until a text is, or is no longer, on the screen
//! - `show`, `history`: adds the screen, or it with the rows above it, to the log; `▮` is the cursor
//! - `resize COLUMNS ROWS`, `signal NAME`
//! - `release`: continues a `hold` of the model; `answer …`: adds an answer of the model
//! - `requests N`: waits for the model's request number N; `prompt`: adds the last user message of the last one
//! - `ls`: adds the names of the project's files
//! - `exit`: waits for the end and adds the status and the modes that are left
#![expect(clippy::disallowed_methods, reason = "the program gets the test's own PATH")]

use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crow_testkit::ModelServer;
use crow_testkit::client::TestHome;
use crow_testkit::terminal::{EmulatorSize, TerminalEmulator, TerminalKind, TerminalProgram, TerminalSetup};
use expect_test::Expect;
use nix::sys::signal::Signal;

const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// A key that follows another one sooner is not an answer to a question.
const PAUSE: Duration = Duration::from_millis(500);

/// Wider status lines are shown whole; in others, the session's random name decides what else fits.
const WHOLE_STATUS_COLUMNS: u16 = 120;

/// In narrower live lines, the numbers decide what fits.
const WHOLE_LIVE_COLUMNS: u16 = 60;

/// A program on a terminal, its model and its home.
pub(super) struct TerminalStage {
    pub(super) model: ModelServer,
    pub(super) home: TestHome,
    setup: TerminalSetup,
    program: Option<TerminalProgram>,
    log: String,
    last_output: Vec<u8>,
    last_session: Option<String>,
}

/// Runs the steps on a terminal with this number of columns and compares the log.
#[track_caller]
pub(super) fn check(columns: u16, model: &str, steps: &str, expected: &Expect) {
    TerminalStage::new(columns, model).check(steps, expected);
}

impl TerminalStage {
    pub(super) fn new(columns: u16, model: &str) -> Self {
        let model = ModelServer::start(model);
        let home = TestHome::new(model.base_url());
        let path = std::env::var("PATH").expect("there are programs");
        let env = [
            ("PATH", path),
            ("HOME", home.home().display().to_string()),
            ("TERM", "xterm-256color".to_owned()),
        ];
        let setup = TerminalSetup {
            kind: TerminalKind::Kitty,
            size: EmulatorSize { columns, rows: 24 },
            args: Vec::new(),
            env: env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            cwd: home.project(),
        };
        Self {
            model,
            home,
            setup,
            program: None,
            log: String::new(),
            last_output: Vec::new(),
            last_session: None,
        }
    }

    pub(super) fn with_kind(mut self, kind: TerminalKind) -> Self {
        self.setup.kind = kind;
        self
    }

    pub(super) fn with_args(mut self, args: &[&str]) -> Self {
        self.set_args(args);
        self
    }

    pub(super) fn with_env(mut self, name: &str, value: &str) -> Self {
        self.setup.env.retain(|(known, _)| known != name);
        self.setup.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs the steps and compares the log.
    #[track_caller]
    pub(super) fn check(mut self, steps: &str, expected: &Expect) {
        self.play(steps);
        expected.assert_eq(&self.log);
        assert_eq!(self.model.rejections(), Vec::<String>::new(), "the model refused a request");
    }

    /// Runs the steps. A program that has ended is started again.
    #[track_caller]
    pub(super) fn play(&mut self, steps: &str) {
        for step in steps.lines().map(str::trim_start).filter(|step| !step.is_empty()) {
            if self.program.is_none() {
                let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
                self.program = Some(TerminalProgram::start(binary, &self.setup));
            }
            self.perform(step);
        }
    }

    /// Sets the arguments of the next start.
    pub(super) fn set_args(&mut self, args: &[&str]) {
        self.setup.args = args.iter().map(|&arg| arg.to_owned()).collect();
    }

    pub(super) fn take_log(&mut self) -> String {
        std::mem::take(&mut self.log)
    }

    /// All that the program that ended last has written.
    pub(super) fn take_output(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.last_output)).into_owned()
    }

    /// The name of the session that ended last.
    #[track_caller]
    pub(super) fn session(&self) -> String {
        self.last_session.clone().expect("a session has ended")
    }

    /// The seconds on the live line.
    #[track_caller]
    pub(super) fn live_seconds(&mut self) -> u64 {
        let rows = self.program().emulator().visible_rows();
        let parts = rows.iter().flat_map(|row| row.split(" · "));
        let mut seconds = parts.filter_map(|part| part.strip_suffix(" s")?.parse().ok());
        seconds.next().expect("a turn is running")
    }

    pub(super) fn program(&mut self) -> &mut TerminalProgram {
        self.program.as_mut().expect("it has been started")
    }

    #[track_caller]
    fn perform(&mut self, step: &str) {
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        let text = rest.replace("\\n", "\n");
        match verb {
            "type" => self.program().type_text(&text),
            "key" => self.program().press_key(&text),
            "paste" => self.program().paste_text(&text),
            "focus" => self.play(
                "type x\nwait your text has the keyboard\nkey backspace\nwait Ask anything\npause\nkey tab",
            ),
            "pause" => self.program().watch_until(Instant::now() + PAUSE),
            "wait" => self.program().wait_until(step, |terminal| has_text(terminal, &text)),
            "gone" => self.program().wait_until(step, |terminal| !has_text(terminal, &text)),
            "show" => self.log_screen(),
            "history" => {
                let rows = self.program().emulator().rows();
                self.log_rows("history", &rows);
            }
            "resize" => {
                let mut numbers = rest.split(' ').map(|number| number.parse().expect("a number"));
                let mut next = || numbers.next().expect("columns and rows");
                let size = EmulatorSize { columns: next(), rows: next() };
                self.program().resize(size);
            }
            "signal" => {
                let signal = rest.parse::<Signal>().expect("the name of a signal");
                self.program().send_signal(signal);
            }
            "release" => self.model.release(),
            "answer" => self.model.add_answers(rest),
            "requests" => {
                let n_requests = rest.parse().expect("a number");
                let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                runtime.block_on(self.model.wait_for_requests(n_requests));
            }
            "prompt" => self.log_prompt(),
            "ls" => self.log_files(),
            "exit" => self.log_exit(),
            _ => panic!("there is no step {step}"),
        }
    }

    fn log_screen(&mut self) {
        let terminal = self.program().emulator();
        let size = terminal.size();
        let mut rows = terminal.visible_rows();
        if !terminal.is_cursor_hidden() {
            let (row, column) = terminal.cursor();
            mark_cursor(&mut rows[usize::from(row)], column.into());
        }
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        self.log_rows(&format!("{}×{}", size.columns, size.rows), &rows);
    }

    fn log_rows(&mut self, heading: &str, rows: &[String]) {
        let columns = self.program().emulator().size().columns;
        let session = rows.iter().find_map(|row| row.strip_prefix("session     ")).unwrap_or("$SESSION");
        let (home, port) = (self.home.home().display().to_string(), self.model.base_url().to_owned());
        let _ = writeln!(self.log, "── {heading}");
        for row in rows {
            let row = row.replace(session, "$SESSION").replace(&home, "$HOME").replace(&port, "$MODEL");
            let _ = writeln!(self.log, "{}", mask_row(&row, columns));
        }
    }

    fn log_prompt(&mut self) {
        let requests = self.model.requests();
        let messages = requests.last().and_then(|request| request["messages"].as_array());
        let last = messages.into_iter().flatten().rfind(|message| message["role"] == "user");
        let content = last.map(|message| &message["content"]).expect("there is a prompt");
        let content = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        let _ = writeln!(self.log, "── prompt\n{content}");
    }

    fn log_files(&mut self) {
        let entries = std::fs::read_dir(self.home.project()).expect("there is a project");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        let _ = writeln!(self.log, "── files: {}", names.join(", "));
    }

    fn log_exit(&mut self) {
        let mut program = self.program.take().expect("it has been started");
        let (status, modes) = program.wait_for_exit();
        let rows = program.emulator().rows();
        let session = rows.iter().find_map(|row| row.strip_prefix("session     "));
        self.last_session = session.map(str::to_owned);
        self.last_output = program.recording().iter().flat_map(|output| output.bytes.clone()).collect();
        self.program = Some(program);
        self.log_screen();
        self.program = None;
        let status = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, signal) => format!("signal {}", signal.unwrap_or_default()),
        };
        let modes = if modes.is_empty() { "none" } else { &modes };
        let _ = writeln!(self.log, "── {status}, modes left on: {modes}");
    }
}

/// Whether a text is on the screen, but not by chance in the session's name.
fn has_text(terminal: &TerminalEmulator, text: &str) -> bool {
    let columns = terminal.size().columns;
    terminal.visible_rows().iter().any(|row| mask_row(row, columns).contains(text))
}

/// Inserts the cursor's mark in front of its cell.
fn mark_cursor(row: &mut String, column: usize) {
    let mut cells = 0;
    let mut index = row.len();
    for (at, letter) in row.char_indices() {
        if cells >= column {
            index = at;
            break;
        }
        cells += unicode_width(letter);
    }
    if index == row.len() {
        row.push_str(&" ".repeat(column.saturating_sub(cells)));
        index = row.len();
    }
    row.insert(index, '▮');
}

/// The cells of a letter, as far as the tests' texts need it.
fn unicode_width(letter: char) -> usize {
    match u32::from(letter) {
        0x200d | 0xfe0f | 0x0300..0x0370 => 0,
        0x1100..0x1160
        | 0x2e80..0xa4d0
        | 0xac00..0xd7a4
        | 0xf900..0xfb00
        | 0xff00..0xff61
        | 0x1f300..0x1fb00 => 2,
        _ => 1,
    }
}

/// Replaces what is different in each run: times, the spinner, the size of the prompt.
fn mask_row(row: &str, columns: u16) -> String {
    let is_wide = columns >= WHOLE_STATUS_COLUMNS;
    let row = row.replace(SPINNER, "⠋");
    let is_status = row.starts_with("crow · ");
    let mut parts: Vec<String> = row.split(" · ").map(mask_part).collect();
    if is_status && !is_wide {
        parts.truncate(3);
    }
    if let (true, true, Some(session)) =
        (is_status, is_wide, parts.last_mut().filter(|part| part.contains("-of-")))
    {
        *session = "$SESSION".to_owned();
    }
    if columns < WHOLE_LIVE_COLUMNS && row.starts_with("⠋ ") && parts.len() > 1 {
        return "⠋ …".to_owned();
    }
    parts.join(" · ")
}

fn mask_part(part: &str) -> String {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit());
    if part.strip_suffix(" s").is_some_and(is_number) {
        return "N s".to_owned();
    }
    if part.starts_with("↓ ") && part.ends_with(" tokens") {
        return "↓ N tokens".to_owned();
    }
    match part.split_once("% context (") {
        Some(_) => "N% context".to_owned(),
        None => part.to_owned(),
    }
}
