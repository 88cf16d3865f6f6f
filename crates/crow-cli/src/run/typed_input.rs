//! What the person types: prompts, and answers to questions. What was typed before a question was there never answers it,
//! and neither does what was pasted.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use tokio::time::{sleep_until, timeout};

use super::keyboard::{ArrivedLine, InputLine, InputQueue, KeyboardInput};
use crate::failure::{CliError, CliExitCode};

/// A script that has said its last word closes its end at once; whoever waits for an answer says nothing for longer.
const END_TIMEOUT: Duration = Duration::from_millis(100);

/// A line that is followed by another one this soon was not typed.
const ALONE_DELAY: Duration = Duration::from_millis(30);

/// A question waits this long for the end of a paste.
const QUIET_TIMEOUT: Duration = Duration::from_secs(2);

/// The lines a person types.
#[derive(Debug, Default)]
pub(super) struct TypedLines {
    keyboard: Option<KeyboardInput>,
    /// While a question is there: what is no answer to it.
    question: QuestionStart,
}

/// What was typed before a question.
#[derive(Debug, Default, Clone, Copy)]
struct QuestionStart {
    /// Lines that wait and are none of its answers.
    n_before: usize,
    /// The last input before it; what came with that is no answer either.
    burst: u64,
}

/// What a person typed while a question was there.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypedAnswer {
    /// A line of its own.
    Line(String),
    /// The end of what they have to say.
    End,
    /// Several lines at once, or lines from before: they wait as prompts.
    Pasted,
}

impl TypedLines {
    /// Begins to listen, so that what is typed from here on has its place before or after a question.
    pub(super) fn start_listening(&mut self) -> Result<(), CliError> {
        self.keyboard().map(drop)
    }

    /// Takes the next line; `None` is the end of what they have to say. May be given up and asked again.
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

    /// Tells whether nothing follows what was taken last. A person may always go on.
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

    /// Waits until what is being pasted is there.
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
            write_prompt("\n  More was typed ahead than there is room for; it is dropped.\n")
                .map_err(|error| input_error(&error))?;
        }
        Ok(())
    }

    /// Keeps the lines that were typed so far for later, and drops one that has no end yet: nobody answers a question before
    /// reading it.
    pub(super) fn set_aside_typed(&mut self) -> Result<(), CliError> {
        let queue = self.keyboard()?.drop_unfinished_line().map_err(|error| input_error(&error))?;
        let question = QuestionStart { n_before: queue.arrivals.len(), burst: queue.burst() };
        drop(queue);
        self.question = question;
        Ok(())
    }

    /// Takes what is typed after [`TypedLines::set_aside_typed`]. May be given up and asked again.
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

/// What there is behind a question.
enum PendingInput {
    None,
    /// Lines that are no answer, and more may come with them until then.
    Coming {
        until: Instant,
    },
    /// Lines that are no answer, and count as typed before from here on.
    Pasted,
    /// A line that is an answer if nothing follows it until then.
    Alone {
        until: Instant,
    },
}

fn classify_input(queue: &InputQueue, question: &mut QuestionStart) -> PendingInput {
    let Some(first) = queue.arrivals.get(question.n_before) else { return PendingInput::None };
    let is_end = !matches!(first.line, Ok(Some(_)));
    // The end of everything is a no, whenever it came.
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

/// Tells whether there is a person who can be asked.
pub(super) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Shows where to type; without a person there is nobody to show it to.
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
    CliError::new(CliExitCode::Failed, format!("could not read what was typed: {error}"))
}
