//! The user's input: prompts, and answers to questions. Input typed before a question, or pasted, never answers it.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use tokio::time::{sleep_until, timeout};

use super::keyboard::{ArrivedLine, InputLine, InputQueue, KeyboardInput};
use crate::failure::{CliError, CliExitCode};

/// A script closes its end at once after its last line; one that waits for an answer is silent for longer.
const END_TIMEOUT: Duration = Duration::from_millis(100);

/// A line followed by another one this soon was not typed.
const ALONE_DELAY: Duration = Duration::from_millis(30);

/// Time a question waits for the end of a paste.
const QUIET_TIMEOUT: Duration = Duration::from_secs(2);

/// The lines a user types.
#[derive(Debug, Default)]
pub(super) struct TypedLines {
    keyboard: Option<KeyboardInput>,
    /// The input that cannot be an answer to the open question.
    question: QuestionStart,
}

/// Input from before a question.
#[derive(Debug, Default, Clone, Copy)]
struct QuestionStart {
    /// Queued lines that are not answers.
    n_before: usize,
    /// The last burst before it; lines of the same burst are not answers either.
    burst: u64,
}

/// Input while a question is open.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypedAnswer {
    /// A line by itself.
    Line(String),
    /// The end of input.
    End,
    /// Several lines at once, or lines from before: they are queued as prompts.
    Pasted,
}

impl TypedLines {
    /// Starts to read, so that later input is known to be before or after a question.
    pub(super) fn start_listening(&mut self) -> Result<(), CliError> {
        self.keyboard().map(drop)
    }

    /// Returns the next line; `None` is the end of input. Cancel safe.
    pub(super) async fn next_line(&mut self) -> Result<Option<String>, CliError> {
        let keyboard = self.keyboard()?;
        let line = loop {
            let taken = {
                let mut queue = keyboard.read_pending();
                if queue.is_over() { Some(Ok(None)) } else { keyboard.take_line(&mut queue, 0) }
            };
            match taken {
                Some(line) => break line,
                None => keyboard.wait_for_input().await,
            }
        };
        self.question.n_before = self.question.n_before.saturating_sub(1);
        line_or_exit(line)
    }

    /// Whether no input follows. On a terminal the user may always continue.
    pub(super) async fn is_over(&mut self) -> Result<bool, CliError> {
        if io::stdin().is_terminal() {
            return Ok(false);
        }
        let is_empty = |line: &InputLine| matches!(line, Ok(Some(line)) if line.trim().is_empty());
        let keyboard = self.keyboard()?;
        loop {
            let is_over = {
                let mut queue = keyboard.read_pending();
                while queue.arrivals.front().is_some_and(|first| is_empty(&first.line)) {
                    drop(keyboard.take_line(&mut queue, 0));
                }
                let is_end = |first: &ArrivedLine| matches!(first.line, Ok(None));
                if queue.is_over() { Some(true) } else { queue.arrivals.front().map(is_end) }
            };
            match is_over {
                Some(is_over) => return Ok(is_over),
                None => match timeout(END_TIMEOUT, keyboard.wait_for_input()).await {
                    Ok(()) => {}
                    Err(_) => return Ok(false),
                },
            }
        }
    }

    /// Waits for the end of a paste.
    pub(super) async fn wait_for_quiet(&mut self) -> Result<(), CliError> {
        let keyboard = self.keyboard()?;
        let deadline = Instant::now() + QUIET_TIMEOUT;
        loop {
            let quiet_at = keyboard.read_pending().quiet_at().map(|quiet_at| quiet_at.min(deadline));
            match quiet_at.filter(|quiet_at| *quiet_at > Instant::now()) {
                Some(quiet_at) => sleep_until(quiet_at.into()).await,
                None => break,
            }
        }
        if keyboard.drop_overflow() {
            write_prompt("\n  Too much was typed ahead; it was discarded.\n")
                .map_err(|error| input_error(&error))?;
        }
        Ok(())
    }

    /// Keeps earlier lines as prompts and drops an unfinished one: an answer is typed after the question is read.
    pub(super) fn set_aside_typed(&mut self) -> Result<(), CliError> {
        let queue = self.keyboard()?.drop_unfinished_line().map_err(|error| input_error(&error))?;
        let question = QuestionStart { n_before: queue.arrivals.len(), burst: queue.burst() };
        drop(queue);
        self.question = question;
        Ok(())
    }

    /// Returns input typed after [`TypedLines::set_aside_typed`]. Cancel safe.
    pub(super) async fn next_answer(&mut self) -> Result<TypedAnswer, CliError> {
        let mut question = self.question;
        let keyboard = self.keyboard()?;
        let answer = loop {
            let deadline = {
                let mut queue = keyboard.read_pending();
                if queue.is_over() {
                    break Ok(TypedAnswer::End);
                }
                if queue.drop_overflow() {
                    question.n_before = 0;
                }
                match classify_input(&queue, &mut question) {
                    PendingInput::None => None,
                    PendingInput::Pasted => break Ok(TypedAnswer::Pasted),
                    PendingInput::Coming { until: deadline } => Some(deadline),
                    PendingInput::Alone { until: deadline } if deadline <= Instant::now() => {
                        let line = keyboard.take_line(&mut queue, question.n_before);
                        break line_or_exit(line.unwrap_or(Ok(None)))
                            .map(|line| line.map_or(TypedAnswer::End, TypedAnswer::Line));
                    }
                    PendingInput::Alone { until: deadline } => Some(deadline),
                }
            };
            match deadline {
                None => keyboard.wait_for_input().await,
                Some(deadline) => sleep_until(deadline.into()).await,
            }
        };
        self.question = question;
        answer
    }

    fn keyboard(&mut self) -> Result<&KeyboardInput, CliError> {
        match &mut self.keyboard {
            Some(keyboard) => Ok(keyboard),
            empty @ None => {
                let keyboard = KeyboardInput::open().map_err(|error| input_error(&error))?;
                Ok(empty.insert(keyboard))
            }
        }
    }
}

/// State of the input after a question.
enum PendingInput {
    None,
    /// Lines that are not answers; more may follow until the deadline.
    Coming {
        until: Instant,
    },
    /// Lines that are not answers, and count as earlier input from here on.
    Pasted,
    /// A line that is an answer if nothing follows until the deadline.
    Alone {
        until: Instant,
    },
}

fn classify_input(queue: &InputQueue, question: &mut QuestionStart) -> PendingInput {
    let Some(first) = queue.arrivals.get(question.n_before) else { return PendingInput::None };
    let is_end = !matches!(first.line, Ok(Some(_)));
    // The end of input always rejects.
    if is_end {
        return PendingInput::Alone { until: first.arrived };
    }
    let arrivals = queue.arrivals.iter().skip(question.n_before);
    let n_together = arrivals.take_while(|arrival| arrival.burst == first.burst).count();
    if first.burst == question.burst || n_together > 1 {
        if let Some(until) = queue.quiet_at().filter(|until| *until > Instant::now()) {
            return PendingInput::Coming { until };
        }
        question.n_before += n_together;
        question.burst = first.burst;
        return PendingInput::Pasted;
    }
    PendingInput::Alone { until: first.arrived + ALONE_DELAY }
}

/// Whether a user can be asked on a terminal.
pub(super) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Writes to the terminal, if there is one.
pub(super) fn write_prompt(text: &str) -> io::Result<()> {
    if is_interactive() {
        let mut err = io::stderr().lock();
        write!(err, "{text}")?;
        err.flush()?;
    }
    Ok(())
}

fn line_or_exit(line: InputLine) -> Result<Option<String>, CliError> {
    line.map_err(|error| input_error(&error))
}

fn input_error(error: &io::Error) -> CliError {
    CliError::new(CliExitCode::Failed, format!("could not read the input: {error}"))
}
