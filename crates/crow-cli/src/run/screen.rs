//! A person's screen: words on stdout, everything else on stderr, one line per call that settles in place.
//!
//! Whatever can still change stands in [`Live`] at the bottom. It is taken off before anything is written for good
//! and put back below; nothing else on the screen is ever touched again.

mod live;

use std::io::{self, BufWriter, Write};

use console::{Style, Term};
use crow_acp::{Heard, StopReason};
use crow_core::{Failure, SessionId};

use self::live::Live;
use super::{
    Onward, Speaker,
    markdown::{Looks, Markdown},
    plain::{Paint, one_line, plain},
};
use crate::money;

/// Draws what is heard.
pub(super) struct Screen<O, E: Write> {
    out: O,
    err: BufWriter<E>,
    /// The size of the terminal that stderr is, when it is one that takes more than letters.
    terminal: Option<Size>,
    words: Markdown,
    said: Said,
    open: Open,
    last: Last,
    held: Held,
    live: Live,
    n_drawn: usize,
    n_turns: usize,
    /// What the session has cost so far, in billionths of a US dollar.
    cost: Option<u64>,
}

/// How large a terminal is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// Whether stdout has words already, from which the next ones are set apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    Words,
}

/// What the line is part of in which the cursor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Words,
    Thought,
}

/// What was written last for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Words,
    Thought,
    Lines,
}

/// Whitespace that waits for what comes after it: a message ends where its words end.
#[derive(Debug, Default)]
struct Held(String);

impl Screen<io::Stdout, io::Stderr> {
    pub(super) fn new() -> Self {
        let size = |term: Term| {
            let (rows, columns) = term.size();
            term.is_term().then(|| Size { columns: columns.into(), rows: rows.into() })
        };
        let looks = match size(Term::stdout()).filter(|_| console::colors_enabled()) {
            Some(size) => Looks::Styled(size),
            None => Looks::Plain,
        };
        let terminal = size(Term::stderr()).filter(|_| console::colors_enabled_stderr());
        Self::on(io::stdout(), io::stderr(), (looks, terminal))
    }
}

impl<O: Write, E: Write> Screen<O, E> {
    pub(super) fn on(out: O, err: E, terminals: (Looks, Option<Size>)) -> Self {
        let (looks, terminal) = terminals;
        Self {
            out,
            err: BufWriter::new(err),
            terminal,
            words: Markdown::new(looks),
            said: Said::Nothing,
            open: Open::Nothing,
            last: Last::Nothing,
            held: Held::default(),
            live: Live::default(),
            n_drawn: 0,
            n_turns: 0,
            cost: None,
        }
    }

    fn paint(&self) -> Paint {
        if self.terminal.is_some() { Paint::Styled } else { Paint::Plain }
    }

    /// Takes what can change off the screen.
    fn lift(&mut self) -> io::Result<()> {
        if self.n_drawn > 0 {
            write!(self.err, "\x1b[{}A\r\x1b[J", self.n_drawn)?;
            self.n_drawn = 0;
        }
        Ok(())
    }

    /// Puts what can change at the bottom of the screen.
    fn lower(&mut self) -> io::Result<()> {
        if let Some(size) = self.terminal
            && self.open == Open::Nothing
        {
            let lines = self.live.lines(size);
            self.n_drawn = lines.len();
            for line in lines {
                writeln!(self.err, "{line}")?;
            }
        }
        self.err.flush()
    }

    /// Ends the line in which the cursor stands.
    fn close(&mut self) -> io::Result<()> {
        self.lift()?;
        self.err.flush()?;
        match self.open {
            Open::Words => self.words.end(&mut self.out)?,
            Open::Thought => writeln!(self.err)?,
            Open::Nothing => {}
        }
        self.open = Open::Nothing;
        Ok(())
    }

    /// Makes room for something of a kind, apart from what is of another.
    fn start(&mut self, next: Last) -> io::Result<()> {
        self.close()?;
        match (self.last, next, self.said) {
            (last, next, _) if last == next => {}
            (Last::Nothing, _, _) if self.terminal.is_some() => {}
            (_, Last::Words, Said::Words) => writeln!(self.out)?,
            (Last::Nothing, _, _) => {}
            (Last::Words | Last::Thought | Last::Lines, _, _) => self.gap()?,
        }
        self.last = next;
        self.err.flush()
    }

    fn gap(&mut self) -> io::Result<()> {
        if self.terminal.is_some() { writeln!(self.err) } else { Ok(()) }
    }

    fn on_text(&mut self, text: &str) -> io::Result<()> {
        let Some(text) = self.held.next(text, self.open, Open::Words) else { return Ok(()) };
        self.live.stop_waiting();
        if self.open != Open::Words {
            self.start(Last::Words)?;
        }
        self.open = Open::Words;
        self.said = Said::Words;
        self.words.push(&text, &mut self.out)
    }

    fn on_thought(&mut self, text: &str) -> io::Result<()> {
        let Some(text) = self.held.next(text, self.open, Open::Thought) else { return Ok(()) };
        self.live.stop_waiting();
        if self.open != Open::Thought {
            self.start(Last::Thought)?;
        }
        self.open = Open::Thought;
        write!(self.err, "{}", self.paint().on(Style::new().dim(), &text))?;
        self.err.flush()
    }

    /// Sets what comes next apart from all before it.
    fn set_apart(&mut self) -> io::Result<()> {
        self.close()?;
        if self.last != Last::Nothing {
            self.gap()?;
        }
        self.last = Last::Nothing;
        self.err.flush()
    }

    /// Shows what the person said before.
    fn on_prompt(&mut self, text: &str) -> io::Result<()> {
        self.set_apart()?;
        self.start(Last::Lines)?;
        for line in text.lines() {
            let line = format!("> {line}");
            writeln!(self.err, "{}", self.paint().on(Style::new().bold(), line.trim_end()))?;
        }
        self.lower()
    }

    /// Writes for good what will not change any more, and what can below it.
    fn on_live(&mut self) -> io::Result<()> {
        self.start(Last::Lines)?;
        for line in self.live.settled(self.paint(), self.terminal) {
            writeln!(self.err, "{line}")?;
        }
        self.lower()
    }

    fn line(&mut self, style: Style, text: &str) -> io::Result<()> {
        self.start(Last::Lines)?;
        writeln!(self.err, "{}", self.paint().on(style, text))?;
        self.lower()
    }

    /// Ends a turn: what is still open stays as it is.
    fn end(&mut self) -> io::Result<()> {
        self.close()?;
        if !self.live.is_empty() {
            self.live.give_up();
            self.on_live()?;
        }
        self.live.stop_waiting();
        self.err.flush()
    }
}

impl Held {
    /// Has what comes next begin on a line of its own.
    fn part(&mut self) {
        if !self.0.contains('\n') {
            self.0.push('\n');
        }
    }

    /// Gives the text that can be written now: with the space before it, without the space after it.
    fn next(&mut self, text: &str, open: Open, kind: Open) -> Option<String> {
        let mut whole = std::mem::take(&mut self.0);
        if open != kind {
            // What was held was the end of something else.
            whole.clear();
        }
        whole.push_str(if open == kind { text } else { text.trim_start_matches('\n') });
        let n_words = whole.trim_end().len();
        self.0 = whole.split_off(n_words);
        (!whole.is_empty()).then_some(whole)
    }
}

impl<O: Write + Send, E: Write + Send> Speaker for Screen<O, E> {
    fn session(&mut self, _: &SessionId) -> io::Result<()> {
        Ok(())
    }

    fn greet(&mut self) -> io::Result<()> {
        match self.terminal {
            Some(_) => self.line(Style::new().dim(), "Say what to do. /help lists commands, Ctrl-D leaves."),
            None => Ok(()),
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        self.n_turns += 1;
        self.live.wait();
        Ok(())
    }

    fn beat(&mut self) -> io::Result<()> {
        if self.open != Open::Nothing || !self.live.beat() {
            return Ok(());
        }
        self.lift()?;
        self.lower()
    }

    fn stopping(&mut self) -> io::Result<()> {
        self.live.stop();
        Ok(())
    }

    fn heard(&mut self, heard: Heard) -> io::Result<()> {
        match heard {
            Heard::Text(text) => self.on_text(&plain(&text)),
            Heard::Thought(text) => self.on_thought(&plain(&text)),
            Heard::Notice(text) => self.line(Style::new().yellow(), &one_line(&text)),
            Heard::Compaction(text) => self.line(Style::new().dim(), &one_line(&text)),
            Heard::Call { id, title, status, content, .. } => {
                if self.live.on_call(id, title, status, content) { self.on_live() } else { Ok(()) }
            }
            Heard::Plan(entries) => {
                if self.live.on_plan(entries) {
                    self.on_live()
                } else {
                    Ok(())
                }
            }
            Heard::Usage { cost, .. } => {
                self.cost = cost.or(self.cost);
                Ok(())
            }
            Heard::Prompt(text) => self.on_prompt(&plain(&text)),
            Heard::Title(_) | Heard::Mode(_) | Heard::Commands(_) | Heard::Outcome(_) => Ok(()),
        }
    }

    fn replay_begins(&mut self, n_left_out: usize) -> io::Result<()> {
        let prompts = if n_left_out == 1 { "prompt" } else { "prompts" };
        match n_left_out {
            0 => Ok(()),
            n => self.line(Style::new().dim(), &format!("({n} earlier {prompts}; --replay all shows them)")),
        }
    }

    fn replay_ends(&mut self) -> io::Result<()> {
        self.end()?;
        self.line(Style::new().dim(), "(said before; what follows is new)")?;
        self.pause()
    }

    fn part(&mut self) -> io::Result<()> {
        self.held.part();
        Ok(())
    }

    fn pause(&mut self) -> io::Result<()> {
        self.set_apart()
    }

    fn result(&mut self, reason: StopReason) -> io::Result<()> {
        self.end()?;
        match reason {
            StopReason::Cancelled => {
                if self.terminal.is_some() {
                    // The terminal has shown `^C` where the cursor stands.
                    write!(self.err, "\r\x1b[K")?;
                }
                self.line(Style::new().yellow(), "stopped")
            }
            StopReason::EndTurn
            | StopReason::MaxTokens
            | StopReason::MaxTurnRequests
            | StopReason::Refusal => Ok(()),
        }
    }

    fn error(&mut self, _: &Failure) -> io::Result<()> {
        self.end()?;
        self.pause()
    }

    fn goodbye(&mut self, session: &SessionId, onward: Onward, agent: Option<&str>) -> io::Result<()> {
        self.end()?;
        // A session is stored with its first prompt: without one there is nothing to go on with.
        if self.n_turns == 0 {
            return Ok(());
        }
        self.pause()?;
        let dim = Style::new().dim();
        let session = one_line(session.as_str());
        self.line(dim.clone(), &format!("session     {session}"))?;
        if let Some(cost) = self.cost {
            self.line(dim.clone(), &format!("cost        {}", money::spelled(cost)))?;
        }
        let agent = agent.map(|name| format!("--agent {name} ")).unwrap_or_default();
        match onward {
            Onward::Stored => self.line(dim, &format!("go on with  crow-cli run {agent}-s {session} \"…\"")),
            Onward::Gone => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
