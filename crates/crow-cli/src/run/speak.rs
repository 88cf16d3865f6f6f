//! What the person types. One thread reads it, from the first time it is needed, so that waiting for a line never
//! keeps the program from anything else, and a line that comes late is still there.

use std::{
    collections::VecDeque,
    io::{self, BufRead, IsTerminal, Write},
    thread,
    time::Duration,
};

use tokio::{sync::mpsc, time::timeout};

use crate::failure::{Code, Exit};

/// Lines typed ahead; a person is not faster, and a pipe waits.
const LINES_AHEAD: usize = 16;

/// A script that has said its last word closes its end at once; whoever waits for an answer says nothing for longer.
const END_WITHIN: Duration = Duration::from_millis(100);

/// The lines a person types.
#[derive(Debug, Default)]
pub(super) struct Typed {
    lines: Option<mpsc::Receiver<Line>>,
    /// Lines typed before a question was asked: prompts, not answers.
    ahead: VecDeque<Line>,
}

/// A line, or the end of what they have to say; at a terminal more may follow that.
type Line = io::Result<Option<String>>;

impl Typed {
    /// Begins to listen, so that what is typed from here on has its place before or after a question.
    pub(super) fn listen(&mut self) -> Result<(), Exit> {
        self.lines().map(drop)
    }

    /// Takes the next line; `None` is the end of what they have to say. May be given up and asked again.
    pub(super) async fn line(&mut self) -> Result<Option<String>, Exit> {
        let line = match self.ahead.pop_front() {
            Some(line) => Some(line),
            None => self.lines()?.recv().await,
        };
        read(line)
    }

    /// Tells whether nothing follows what was taken last. A person may always go on.
    pub(super) async fn is_over(&mut self) -> Result<bool, Exit> {
        if io::stdin().is_terminal() {
            return Ok(false);
        }
        loop {
            let line = match self.ahead.pop_front() {
                Some(line) => line,
                None => match timeout(END_WITHIN, self.lines()?.recv()).await {
                    Ok(line) => line.unwrap_or(Ok(None)),
                    Err(_) => return Ok(false),
                },
            };
            if !matches!(&line, Ok(Some(line)) if line.trim().is_empty()) {
                let is_over = matches!(line, Ok(None));
                self.ahead.push_front(line);
                return Ok(is_over);
            }
        }
    }

    /// Takes the next line that is typed after [`Typed::set_aside`]. May be given up and asked again.
    pub(super) async fn answer(&mut self) -> Result<Option<String>, Exit> {
        let line = self.lines()?.recv().await;
        read(line)
    }

    /// Keeps what was typed so far for later: nobody answers a question before reading it.
    pub(super) fn set_aside(&mut self) -> Result<(), Exit> {
        while self.ahead.len() < LINES_AHEAD {
            let Ok(line) = self.lines()?.try_recv() else { break };
            self.ahead.push_back(line);
        }
        Ok(())
    }

    fn lines(&mut self) -> Result<&mut mpsc::Receiver<Line>, Exit> {
        match &mut self.lines {
            Some(lines) => Ok(lines),
            none @ None => {
                let (read, lines) = mpsc::channel(LINES_AHEAD);
                // Never joined: it waits for the keyboard, and ends with the process.
                let started = thread::Builder::new().name("keyboard".into()).spawn(move || read_lines(&read));
                started.map_err(|error| failed(&error))?;
                Ok(none.insert(lines))
            }
        }
    }
}

/// Tells whether there is a person who can be asked.
pub(super) fn somebody() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Shows where to type; without a person there is nobody to show it to.
pub(super) fn mark(mark: &str) -> io::Result<()> {
    if somebody() {
        let mut err = io::stderr().lock();
        write!(err, "{mark}")?;
        err.flush()?;
    }
    Ok(())
}

fn read_lines(lines: &mpsc::Sender<Line>) {
    let mut stdin = io::stdin().lock();
    loop {
        let mut bytes = Vec::new();
        let line = match stdin.read_until(b'\n', &mut bytes) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned())),
            Err(error) => Err(error),
        };
        let is_last = match &line {
            Ok(Some(_)) => false,
            Ok(None) => !stdin.is_terminal(),
            Err(_) => true,
        };
        if lines.blocking_send(line).is_err() || is_last {
            return;
        }
    }
}

fn read(line: Option<Line>) -> Result<Option<String>, Exit> {
    line.unwrap_or(Ok(None)).map_err(|error| failed(&error))
}

fn failed(error: &io::Error) -> Exit {
    Exit::new(Code::Failed, format!("could not read what was typed: {error}"))
}
