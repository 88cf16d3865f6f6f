//! Two terminals without a window: one wraps rows again when it is resized, the other one cuts them.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fmt;
use std::num::NonZeroU16;

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::{Config, Term, TermMode};
use alacritty_terminal::vte::ansi::Processor;

/// Rows of history that the emulators keep.
const SCROLLBACK_ROWS: usize = 100_000;

/// A terminal.
pub struct TerminalEmulator {
    kind: EmulatorKind,
    size: EmulatorSize,
}

#[expect(clippy::large_enum_variant, reason = "a test has one")]
enum EmulatorKind {
    Reflowing { term: Term<VoidListener>, processor: Processor },
    Clipping(vt100::Parser),
}

/// The size of an emulator in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmulatorSize {
    pub columns: u16,
    pub rows: u16,
}

impl Dimensions for EmulatorSize {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        self.rows.into()
    }

    fn columns(&self) -> usize {
        self.columns.into()
    }
}

impl fmt::Debug for TerminalEmulator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TerminalEmulator").field("size", &self.size).finish_non_exhaustive()
    }
}

impl TerminalEmulator {
    /// Creates a terminal that wraps rows again when it is resized.
    pub fn reflowing(size: EmulatorSize) -> Self {
        let config = Config { scrolling_history: SCROLLBACK_ROWS, ..Config::default() };
        let term = Term::new(config, &size, VoidListener);
        Self { kind: EmulatorKind::Reflowing { term, processor: Processor::new() }, size }
    }

    /// Creates a terminal that cuts rows when it is resized.
    pub fn clipping(size: EmulatorSize) -> Self {
        let (rows, columns) = size.to_rows_and_columns();
        Self { kind: EmulatorKind::Clipping(vt100::Parser::new(rows, columns, SCROLLBACK_ROWS)), size }
    }

    pub fn size(&self) -> EmulatorSize {
        self.size
    }

    /// Shows what a program writes.
    pub fn process(&mut self, bytes: &[u8]) {
        match &mut self.kind {
            EmulatorKind::Reflowing { term, processor } => processor.advance(term, bytes),
            EmulatorKind::Clipping(parser) => parser.process(bytes),
        }
    }

    pub fn resize(&mut self, size: EmulatorSize) {
        self.size = size;
        match &mut self.kind {
            EmulatorKind::Reflowing { term, .. } => term.resize(size),
            EmulatorKind::Clipping(parser) => {
                let (rows, columns) = size.to_rows_and_columns();
                parser.set_size(rows, columns);
            }
        }
    }

    /// The cursor's row and column.
    pub fn cursor(&self) -> (u16, u16) {
        match &self.kind {
            EmulatorKind::Reflowing { term, .. } => {
                let point = term.grid().cursor.point;
                let row = u16::try_from(point.line.0).expect("the cursor is on the screen");
                (row, u16::try_from(point.column.0).expect("the cursor is on the screen"))
            }
            EmulatorKind::Clipping(parser) => parser.screen().cursor_position(),
        }
    }

    pub fn is_cursor_hidden(&self) -> bool {
        match &self.kind {
            EmulatorKind::Reflowing { term, .. } => !term.mode().contains(TermMode::SHOW_CURSOR),
            EmulatorKind::Clipping(parser) => parser.screen().hide_cursor(),
        }
    }

    /// The rows on the screen, without blanks at their ends.
    pub fn visible_rows(&self) -> Vec<String> {
        let rows: Vec<String> = match &self.kind {
            EmulatorKind::Reflowing { term, .. } => {
                (0..term.screen_lines()).map(|line| reflowing_row(term, Line(to_i32(line))).0).collect()
            }
            EmulatorKind::Clipping(parser) => parser.screen().rows(0, self.size.columns).collect(),
        };
        rows.into_iter().map(|row| row.trim_end().to_owned()).collect()
    }

    /// The rows of history and screen; a row that the terminal wrapped is one row. Blank rows at the end are dropped.
    pub fn rows(&mut self) -> Vec<String> {
        let mut rows: Vec<(String, bool)> = match &mut self.kind {
            EmulatorKind::Reflowing { term, .. } => {
                let grid = term.grid();
                let lines = grid.topmost_line().0..=grid.bottommost_line().0;
                lines.map(|line| reflowing_row(term, Line(line))).collect()
            }
            EmulatorKind::Clipping(parser) => clipping_rows(parser),
        };
        while rows.last().is_some_and(|(text, _)| text.trim_end().is_empty()) {
            rows.pop();
        }
        let mut lines: Vec<String> = Vec::new();
        let mut is_continued = false;
        for (text, is_wrapped) in rows {
            match lines.last_mut() {
                Some(line) if is_continued => line.push_str(&text),
                _ => lines.push(text),
            }
            is_continued = is_wrapped;
        }
        lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
    }
}

impl EmulatorSize {
    fn to_rows_and_columns(self) -> (NonZeroU16, NonZeroU16) {
        let positive = |number| NonZeroU16::new(number).expect("a terminal has cells");
        (positive(self.rows), positive(self.columns))
    }
}

/// A row, and whether the terminal wrapped it.
fn reflowing_row(term: &Term<VoidListener>, line: Line) -> (String, bool) {
    let grid = term.grid();
    let cells = (0..grid.columns()).map(|column| &grid[line][Column(column)]);
    let mut text = String::new();
    for cell in cells {
        if !cell.flags.intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER) {
            text.push(cell.c);
            text.extend(cell.zerowidth().into_iter().flatten());
        }
    }
    (text, grid[line][Column(grid.columns() - 1)].flags.contains(Flags::WRAPLINE))
}

fn clipping_rows(parser: &mut vt100::Parser) -> Vec<(String, bool)> {
    let screen = parser.screen_mut();
    let columns = screen.size().1.get();
    let mut rows = Vec::new();
    for offset in (1..=screen.scrollback_len()).rev() {
        screen.set_scrollback(offset);
        rows.push((screen.rows(0, columns).next().unwrap_or_default(), screen.row_wrapped(0)));
    }
    screen.set_scrollback(0);
    let visible: Vec<String> = screen.rows(0, columns).collect();
    let wraps = |(index, text)| (text, u16::try_from(index).is_ok_and(|row| screen.row_wrapped(row)));
    rows.extend(visible.into_iter().enumerate().map(wraps));
    rows
}

fn to_i32(number: usize) -> i32 {
    i32::try_from(number).expect("a screen is small")
}
