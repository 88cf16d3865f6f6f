//! The terminal output: the model's text on stdout, everything else on stderr, with one line per tool call that is
//! updated in place.
//!
//! Everything that may still change is in [`LiveRegion`] at the bottom. It is erased before permanent output is written
//! and redrawn below; nothing else on the screen is touched again.

mod live;

use std::io::{self, BufWriter, Write};

use console::Term;
use crow_acp::{AgentUpdate, PromptOutcome, StopReason};
use crow_core::{Failure, FailureKind, SessionId};
use crow_tui::text::{TextStyle, sanitize_text};

use self::live::LiveRegion;
use super::{
    markdown::{MarkdownStyle, MarkdownWriter},
    output::{ContinuationHint, RunOutput, SessionRetention},
    plain::{PaintMode, THEME, to_one_line},
    terminal_size::TerminalSize,
};
use crate::{failure::CliError, money};

/// Renders updates on a terminal.
pub(super) struct TerminalScreen<O, E: Write> {
    out: O,
    err: BufWriter<E>,
    /// The size of stderr's terminal, if it supports escape codes.
    terminal: Option<TerminalSize>,
    markdown: MarkdownWriter,
    /// Whether stdout has text, from which later text is separated.
    has_stdout_text: bool,
    open_line: OpenLine,
    last_block: LastBlock,
    pending_whitespace: HeldWhitespace,
    live: LiveRegion,
    n_live_lines: usize,
    n_turns: usize,
    /// Cost of the session so far, in billionths of a US dollar.
    cost: Option<u64>,
}

/// The kind of line the cursor is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenLine {
    None,
    Text,
    Thought,
}

/// The kind of the last permanent output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastBlock {
    None,
    Text,
    Thought,
    Lines,
}

/// Trailing whitespace, held back until text follows.
#[derive(Debug, Default)]
struct HeldWhitespace(String);

impl TerminalScreen<io::Stdout, io::Stderr> {
    pub(super) fn new() -> Self {
        let size = |term: Term| {
            let (rows, columns) = term.size();
            term.is_term().then(|| TerminalSize { columns: columns.into(), rows: rows.into() })
        };
        let markdown_style = match size(Term::stdout()).filter(|_| console::colors_enabled()) {
            Some(size) => MarkdownStyle::Styled(size),
            None => MarkdownStyle::Plain,
        };
        let terminal = size(Term::stderr()).filter(|_| console::colors_enabled_stderr());
        Self::with_writers(io::stdout(), io::stderr(), markdown_style, terminal)
    }
}

impl<O: Write, E: Write> TerminalScreen<O, E> {
    pub(super) fn with_writers(
        out: O,
        err: E,
        markdown_style: MarkdownStyle,
        terminal: Option<TerminalSize>,
    ) -> Self {
        Self {
            out,
            err: BufWriter::new(err),
            terminal,
            markdown: MarkdownWriter::new(markdown_style),
            has_stdout_text: false,
            open_line: OpenLine::None,
            last_block: LastBlock::None,
            pending_whitespace: HeldWhitespace::default(),
            live: LiveRegion::default(),
            n_live_lines: 0,
            n_turns: 0,
            cost: None,
        }
    }

    fn paint_mode(&self) -> PaintMode {
        if self.terminal.is_some() { PaintMode::Styled } else { PaintMode::Plain }
    }

    fn erase_live(&mut self) -> io::Result<()> {
        if self.n_live_lines > 0 {
            write!(self.err, "\x1b[{}A\r\x1b[J", self.n_live_lines)?;
            self.n_live_lines = 0;
        }
        Ok(())
    }

    /// Draws the live region at the bottom of the screen.
    fn draw_live(&mut self) -> io::Result<()> {
        if let Some(size) = self.terminal
            && self.open_line == OpenLine::None
        {
            let lines = self.live.render_lines(size);
            self.n_live_lines = lines.len();
            for line in lines {
                writeln!(self.err, "{line}")?;
            }
        }
        self.err.flush()
    }

    /// Ends the line the cursor is in.
    fn close_line(&mut self) -> io::Result<()> {
        self.erase_live()?;
        self.err.flush()?;
        match self.open_line {
            OpenLine::Text => self.markdown.finish(&mut self.out)?,
            OpenLine::Thought => writeln!(self.err)?,
            OpenLine::None => {}
        }
        self.open_line = OpenLine::None;
        Ok(())
    }

    /// Starts a block, separated from one of another kind.
    fn start_block(&mut self, block: LastBlock) -> io::Result<()> {
        self.close_line()?;
        match (self.last_block, block, self.has_stdout_text) {
            (last_block, next, _) if last_block == next => {}
            (LastBlock::None, _, _) if self.terminal.is_some() => {}
            (_, LastBlock::Text, true) => writeln!(self.out)?,
            (LastBlock::None, _, _) => {}
            (LastBlock::Text | LastBlock::Thought | LastBlock::Lines, _, _) => self.write_gap()?,
        }
        self.last_block = block;
        self.err.flush()
    }

    fn write_gap(&mut self) -> io::Result<()> {
        if self.terminal.is_some() { writeln!(self.err) } else { Ok(()) }
    }

    fn on_text(&mut self, text: &str) -> io::Result<()> {
        let Some(text) = self.pending_whitespace.take_printable(text, self.open_line, OpenLine::Text) else {
            return Ok(());
        };
        self.live.stop_waiting();
        if self.open_line != OpenLine::Text {
            self.start_block(LastBlock::Text)?;
        }
        self.open_line = OpenLine::Text;
        self.has_stdout_text = true;
        self.markdown.push(&text, &mut self.out)
    }

    fn on_thought(&mut self, text: &str) -> io::Result<()> {
        let Some(text) = self.pending_whitespace.take_printable(text, self.open_line, OpenLine::Thought)
        else {
            return Ok(());
        };
        self.live.stop_waiting();
        if self.open_line != OpenLine::Thought {
            self.start_block(LastBlock::Thought)?;
        }
        self.open_line = OpenLine::Thought;
        write!(self.err, "{}", self.paint_mode().apply_style(THEME.secondary(), &text))?;
        self.err.flush()
    }

    /// Separates what follows from everything before.
    fn set_apart(&mut self) -> io::Result<()> {
        self.close_line()?;
        if self.last_block != LastBlock::None {
            self.write_gap()?;
        }
        self.last_block = LastBlock::None;
        self.err.flush()
    }

    /// Shows an earlier prompt.
    fn on_prompt(&mut self, text: &str) -> io::Result<()> {
        self.set_apart()?;
        self.start_block(LastBlock::Lines)?;
        for line in text.lines() {
            let line = format!("> {line}");
            writeln!(self.err, "{}", self.paint_mode().apply_style(THEME.heading(), line.trim_end()))?;
        }
        self.draw_live()
    }

    /// Writes what is final, and the live region below.
    fn write_live(&mut self) -> io::Result<()> {
        self.start_block(LastBlock::Lines)?;
        for line in self.live.take_settled(self.paint_mode(), self.terminal) {
            writeln!(self.err, "{line}")?;
        }
        self.draw_live()
    }

    fn write_line(&mut self, style: TextStyle, text: &str) -> io::Result<()> {
        self.start_block(LastBlock::Lines)?;
        writeln!(self.err, "{}", self.paint_mode().apply_style(style, text))?;
        self.draw_live()
    }

    /// Ends a turn; open items stay as they are.
    fn end_turn(&mut self) -> io::Result<()> {
        self.close_line()?;
        if !self.live.is_empty() {
            self.live.fail_open_calls();
            self.write_live()?;
        }
        self.live.stop_waiting();
        self.err.flush()
    }
}

impl HeldWhitespace {
    /// Starts the next text after at least these line breaks.
    fn begin_line(&mut self, gap: &str) {
        if self.0.matches('\n').count() < gap.len() {
            self.0.push_str(gap);
        }
    }

    /// Returns the text that can be written now: with pending whitespace before it, without trailing whitespace.
    fn take_printable(&mut self, text: &str, open_line: OpenLine, kind: OpenLine) -> Option<String> {
        let mut merged = std::mem::take(&mut self.0);
        if open_line != kind {
            // The pending whitespace ended another block.
            merged.clear();
        }
        merged.push_str(if open_line == kind { text } else { text.trim_start_matches('\n') });
        let n_printable = merged.trim_end().len();
        self.0 = merged.split_off(n_printable);
        (!merged.is_empty()).then_some(merged)
    }
}

impl<O: Write + Send, E: Write + Send> RunOutput for TerminalScreen<O, E> {
    fn on_session_opened(&mut self, _: &SessionId) -> io::Result<()> {
        Ok(())
    }

    fn on_first_prompt(&mut self) -> io::Result<()> {
        match self.terminal {
            Some(_) => self.write_line(THEME.secondary(), "Type a task. /help lists commands, Ctrl-D exits."),
            None => Ok(()),
        }
    }

    fn on_turn_start(&mut self) -> io::Result<()> {
        self.n_turns += 1;
        self.live.start_waiting();
        Ok(())
    }

    fn is_animated(&self) -> bool {
        self.terminal.is_some()
    }

    fn on_tick(&mut self) -> io::Result<()> {
        if self.open_line != OpenLine::None || !self.live.advance_frame() {
            return Ok(());
        }
        self.erase_live()?;
        self.draw_live()
    }

    fn on_stopping(&mut self) -> io::Result<()> {
        self.live.mark_stopping();
        Ok(())
    }

    fn on_update(&mut self, update: AgentUpdate) -> io::Result<()> {
        match update {
            AgentUpdate::Text(text) => self.on_text(&sanitize_text(&text)),
            AgentUpdate::Thought(text) => self.on_thought(&sanitize_text(&text)),
            AgentUpdate::Notice(text) => self.write_line(THEME.warning(), &to_one_line(&text)),
            AgentUpdate::Compaction(text) => self.write_line(THEME.secondary(), &to_one_line(&text)),
            AgentUpdate::Call { id, title, status, content, .. } => {
                if self.live.on_call(id, title, status, content) { self.write_live() } else { Ok(()) }
            }
            AgentUpdate::Plan(entries) => {
                if self.live.on_plan(entries) {
                    self.write_live()
                } else {
                    Ok(())
                }
            }
            AgentUpdate::Usage { cost, .. } => {
                self.cost = cost.or(self.cost);
                Ok(())
            }
            AgentUpdate::Prompt(text) => self.on_prompt(&sanitize_text(&text)),
            AgentUpdate::Child { .. }
            | AgentUpdate::Title(_)
            | AgentUpdate::Mode(_)
            | AgentUpdate::Commands(_)
            | AgentUpdate::Options(_)
            | AgentUpdate::CallOutput { .. }
            | AgentUpdate::CallResult { .. }
            | AgentUpdate::CallExit { .. }
            | AgentUpdate::Outcome(_) => Ok(()),
        }
    }

    fn on_replay_start(&mut self, n_omitted: usize) -> io::Result<()> {
        let prompts = if n_omitted == 1 { "prompt" } else { "prompts" };
        match n_omitted {
            0 => Ok(()),
            n => self
                .write_line(THEME.secondary(), &format!("({n} earlier {prompts}; --replay all shows them)")),
        }
    }

    fn on_replay_end(&mut self) -> io::Result<()> {
        self.end_turn()?;
        self.write_line(THEME.secondary(), "(end of the replay)")?;
        self.prepare_for_input()
    }

    fn on_new_message(&mut self) -> io::Result<()> {
        self.pending_whitespace.begin_line(self.markdown.message_gap());
        Ok(())
    }

    fn prepare_for_input(&mut self) -> io::Result<()> {
        self.set_apart()
    }

    fn on_turn_end(&mut self, outcome: PromptOutcome) -> io::Result<()> {
        self.end_turn()?;
        match outcome.stop_reason {
            StopReason::Cancelled => {
                if self.terminal.is_some() {
                    // The terminal echoed `^C` at the cursor.
                    write!(self.err, "\r\x1b[K")?;
                }
                self.write_line(THEME.warning(), "cancelled")
            }
            StopReason::EndTurn
            | StopReason::MaxTokens
            | StopReason::MaxTurnRequests
            | StopReason::Refusal => Ok(()),
        }
    }

    fn on_turn_failed(&mut self, failure: &Failure) -> io::Result<()> {
        if matches!(failure.kind, FailureKind::Store | FailureKind::InvalidValue) {
            // Its prompt is not stored, or may not be, and then the session is not either.
            self.n_turns = self.n_turns.saturating_sub(1);
        }
        self.end_turn()?;
        self.prepare_for_input()
    }

    fn on_error(&mut self, error: &CliError) -> io::Result<()> {
        self.prepare_for_input()?;
        error.report(&mut io::stderr().lock());
        Ok(())
    }

    fn on_session_end(
        &mut self,
        session: &SessionId,
        retention: SessionRetention,
        ContinuationHint { agent, is_interactive }: ContinuationHint<'_>,
    ) -> io::Result<()> {
        self.end_turn()?;
        // A session is stored with its first prompt; without one there is nothing to continue.
        if self.n_turns == 0 {
            return Ok(());
        }
        self.prepare_for_input()?;
        let session = to_one_line(session.as_str());
        self.write_labelled("session", &[&session])?;
        if let Some(cost) = self.cost {
            self.write_labelled("cost", &[&money::format_dollars(cost)])?;
        }
        let agent = agent.map(|name| format!(" --agent {name}")).unwrap_or_default();
        match retention {
            SessionRetention::Stored if is_interactive => self
                .write_labelled("continue", &[&format!("crow-cli{agent}"), &format!("--resume {session}")]),
            SessionRetention::Stored => self.write_labelled(
                "continue",
                &[&format!("crow-cli run{agent}"), &format!("-s {session} \"…\"")],
            ),
            SessionRetention::Gone => Ok(()),
        }
    }
}

impl<O: Write, E: Write> TerminalScreen<O, E> {
    /// Writes a line of the footer. Where the terminal would break it, the words have a line of their own, or each one
    /// of them continued by a backslash, so that an ID and a command can be copied.
    fn write_labelled(&mut self, label: &str, words: &[&str]) -> io::Result<()> {
        let (dim, line) = (THEME.secondary(), words.join(" "));
        let columns = self.terminal.map_or(usize::MAX, |terminal| terminal.columns);
        let labelled = format!("{label:<12}{line}");
        if console::measure_text_width(&labelled) <= columns {
            return self.write_line(dim, &labelled);
        }
        self.write_line(dim, label)?;
        if console::measure_text_width(&line) <= columns {
            return self.write_line(dim, &line);
        }
        self.write_line(dim, &words.join(" \\\n"))
    }
}

#[cfg(test)]
mod tests;
