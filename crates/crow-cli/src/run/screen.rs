//! A person's screen: words on stdout, everything else on stderr, one line per call that settles in place.

use std::io::{self, Write};

use console::{Style, Term, strip_ansi_codes, truncate_str};
use crow_acp::{Heard, StopReason};
use crow_core::{Content, Failure, PlanStatus, SessionId, Status};
use similar::{ChangeTag, TextDiff};

use super::{
    Speaker,
    markdown::{Looks, Markdown},
};

/// Lines of a diff that are shown; the file has the rest.
const DIFF_LINES_MAX: usize = 40;

/// Lines of a failed call that are shown; the model has the rest.
const FAILURE_LINES_MAX: usize = 12;

/// Draws what is heard.
pub(super) struct Screen<O, E> {
    out: O,
    err: E,
    words: Markdown,
    thoughts: Thoughts,
    calls: Vec<CallLine>,
    /// Lines at the bottom of the screen that are calls and can be drawn again.
    n_redrawable: usize,
    err_columns: Option<usize>,
}

/// Whether thoughts are being shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thoughts {
    Silent,
    Open,
}

#[derive(Debug)]
struct CallLine {
    id: String,
    title: String,
    status: Status,
    content: Vec<Content>,
}

impl Screen<io::Stdout, io::Stderr> {
    pub(super) fn new(out: io::Stdout, err: io::Stderr) -> Self {
        let columns = |term: Term| term.is_term().then(|| usize::from(term.size().1));
        let looks = match columns(Term::stdout()).filter(|_| console::colors_enabled()) {
            Some(columns) => Looks::Styled { columns },
            None => Looks::Plain,
        };
        Self::on(out, err, looks, columns(Term::stderr()).filter(|_| console::colors_enabled_stderr()))
    }
}

impl<O: Write, E: Write> Screen<O, E> {
    pub(super) fn on(out: O, err: E, looks: Looks, err_columns: Option<usize>) -> Self {
        let words = Markdown::new(looks);
        Self { out, err, words, thoughts: Thoughts::Silent, calls: Vec::new(), n_redrawable: 0, err_columns }
    }

    /// Looks that only a terminal gets.
    fn style(&self, style: Style) -> Style {
        style.for_stderr().force_styling(self.err_columns.is_some())
    }

    /// Brings the cursor to the start of a line before something of another kind is written.
    fn settle(&mut self) -> io::Result<()> {
        if !self.words.is_at_start() {
            self.words.end(&mut self.out)?;
        }
        if self.thoughts == Thoughts::Open {
            self.thoughts = Thoughts::Silent;
            writeln!(self.err)?;
        }
        Ok(())
    }

    fn on_text(&mut self, text: &str) -> io::Result<()> {
        if self.thoughts == Thoughts::Open || self.n_redrawable > 0 {
            self.settle()?;
        }
        self.n_redrawable = 0;
        self.words.push(text, &mut self.out)
    }

    fn on_thought(&mut self, text: &str) -> io::Result<()> {
        if self.thoughts == Thoughts::Silent {
            self.settle()?;
        }
        self.n_redrawable = 0;
        self.thoughts = if text.ends_with('\n') { Thoughts::Silent } else { Thoughts::Open };
        let style = self.style(Style::new().dim());
        write!(self.err, "{}", style.apply_to(text))?;
        self.err.flush()
    }

    fn on_call(&mut self, changed: CallLine, known: Known) -> io::Result<()> {
        self.settle()?;
        let place = self.calls.iter().position(|call| call.id == changed.id);
        let ended = matches!(changed.status, Status::Done | Status::Failed);
        match (place, known) {
            (Some(place), _) => {
                let was = self.calls[place].status;
                self.calls[place] = changed;
                if was == self.calls[place].status {
                    return Ok(());
                }
            }
            (None, Known::New) => {
                self.calls.push(changed);
                self.n_redrawable += usize::from(self.err_columns.is_some());
                if self.err_columns.is_some() {
                    let line = self.call_line(&self.calls[self.calls.len() - 1]);
                    writeln!(self.err, "{line}")?;
                    return self.err.flush();
                }
                return Ok(());
            }
            (None, Known::Changed) => return Ok(()),
        }
        self.redraw(ended)
    }

    /// Draws the calls at the bottom again; those that scrolled away get a new line once they end.
    fn redraw(&mut self, ended: bool) -> io::Result<()> {
        let n = self.n_redrawable.min(self.calls.len());
        if n > 0 {
            write!(self.err, "\x1b[{n}A")?;
            for index in self.calls.len() - n..self.calls.len() {
                let line = self.call_line(&self.calls[index]);
                writeln!(self.err, "\r\x1b[2K{line}")?;
            }
        }
        if ended {
            self.close_ended(n)?;
        }
        self.err.flush()
    }

    fn close_ended(&mut self, n_drawn: usize) -> io::Result<()> {
        let all_ended = self.calls.iter().all(|call| matches!(call.status, Status::Done | Status::Failed));
        if self.err_columns.is_some() && n_drawn > 0 && !all_ended {
            return Ok(());
        }
        let first_drawn = self.calls.len() - n_drawn;
        let (ended, open): (Vec<_>, Vec<_>) = std::mem::take(&mut self.calls)
            .into_iter()
            .enumerate()
            .partition(|(_, call)| matches!(call.status, Status::Done | Status::Failed));
        for (index, call) in &ended {
            if *index < first_drawn || n_drawn == 0 {
                let line = self.call_line(call);
                writeln!(self.err, "{line}")?;
            }
            self.details(call)?;
        }
        self.calls = open.into_iter().map(|(_, call)| call).collect();
        self.n_redrawable = 0;
        Ok(())
    }

    fn call_line(&self, call: &CallLine) -> String {
        let (mark, style) = match call.status {
            Status::Pending => ("○", Style::new().dim()),
            Status::Running => ("●", Style::new().yellow()),
            Status::Done => ("✓", Style::new().green()),
            Status::Failed => ("✗", Style::new().red()),
        };
        let title = plain(&call.title).replace('\n', " ");
        let line = format!("{} {title}", self.style(style).apply_to(mark));
        match self.err_columns {
            Some(columns) => truncate_str(&line, columns.saturating_sub(1), "…").into_owned(),
            None => line,
        }
    }

    fn details(&mut self, call: &CallLine) -> io::Result<()> {
        for content in &call.content {
            match content {
                Content::Diff { old, new, .. } => self.diff(old.as_deref().unwrap_or_default(), new)?,
                Content::Text(text) if call.status == Status::Failed => {
                    let text = plain(text);
                    let lines: Vec<&str> = text.lines().collect();
                    for line in &lines[lines.len().saturating_sub(FAILURE_LINES_MAX)..] {
                        writeln!(self.err, "  {}", self.style(Style::new().dim()).apply_to(line))?;
                    }
                }
                Content::Text(_) | Content::Image { .. } => {}
            }
        }
        Ok(())
    }

    fn diff(&mut self, old: &str, new: &str) -> io::Result<()> {
        let diff = TextDiff::from_lines(old, new);
        let mut lines = Vec::new();
        for group in diff.grouped_ops(2) {
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let (sign, style) = match change.tag() {
                    ChangeTag::Delete => ("-", Style::new().red()),
                    ChangeTag::Insert => ("+", Style::new().green()),
                    ChangeTag::Equal => (" ", Style::new().dim()),
                };
                let text = format!("{sign} {}", plain(change.value()).trim_end());
                lines.push(format!("  {}", self.style(style).apply_to(text)));
            }
        }
        let n_hidden = lines.len().saturating_sub(DIFF_LINES_MAX);
        lines.truncate(DIFF_LINES_MAX);
        for line in lines {
            writeln!(self.err, "{line}")?;
        }
        if n_hidden > 0 {
            writeln!(self.err, "  … {n_hidden} more lines")?;
        }
        Ok(())
    }
}

/// Whether a call is announced or changed.
#[derive(Debug, Clone, Copy)]
enum Known {
    New,
    Changed,
}

impl<O: Write + Send, E: Write + Send> Speaker for Screen<O, E> {
    fn session(&mut self, _: &SessionId) -> io::Result<()> {
        Ok(())
    }

    fn heard(&mut self, heard: Heard) -> io::Result<()> {
        match heard {
            Heard::Text(text) => self.on_text(&plain(&text)),
            Heard::Thought(text) | Heard::Notice(text) => self.on_thought(&plain(&text)),
            Heard::Call { id, title, status, content, .. } => {
                let known = if title.is_some() { Known::New } else { Known::Changed };
                let before = self.calls.iter().find(|call| call.id == id);
                let call = CallLine {
                    title: title.or_else(|| before.map(|call| call.title.clone())).unwrap_or_default(),
                    status: status.or_else(|| before.map(|call| call.status)).unwrap_or(Status::Pending),
                    content: content.or_else(|| before.map(|call| call.content.clone())).unwrap_or_default(),
                    id,
                };
                self.on_call(call, known)
            }
            Heard::Plan(entries) => {
                self.settle()?;
                self.n_redrawable = 0;
                for entry in entries {
                    let mark = match entry.status {
                        PlanStatus::Pending => "☐",
                        PlanStatus::InProgress => "▸",
                        PlanStatus::Completed => "☑",
                    };
                    writeln!(self.err, "  {mark} {}", plain(&entry.text))?;
                }
                Ok(())
            }
            Heard::Prompt(_)
            | Heard::Title(_)
            | Heard::Usage { .. }
            | Heard::Mode(_)
            | Heard::Commands(_) => Ok(()),
        }
    }

    fn result(&mut self, reason: StopReason) -> io::Result<()> {
        self.settle()?;
        self.calls.clear();
        self.n_redrawable = 0;
        match reason {
            StopReason::Cancelled => {
                writeln!(self.err, "{}", self.style(Style::new().yellow()).apply_to("stopped"))
            }
            StopReason::EndTurn
            | StopReason::MaxTokens
            | StopReason::MaxTurnRequests
            | StopReason::Refusal => Ok(()),
        }
    }

    fn error(&mut self, _: &Failure) -> io::Result<()> {
        self.settle()
    }

    fn goodbye(&mut self, session: &SessionId) -> io::Result<()> {
        self.settle()?;
        let text = format!("session {session} · go on with: crow-cli run -s {session} \"…\"");
        writeln!(self.err, "{}", self.style(Style::new().dim()).apply_to(text))
    }
}

/// Takes out what could drive the terminal: a model's words and a program's output are not commands to it.
fn plain(text: &str) -> String {
    let text = strip_ansi_codes(text);
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests;
