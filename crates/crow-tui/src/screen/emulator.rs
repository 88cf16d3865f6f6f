//! Emulators behind [`TerminalIo`], for tests: one wraps rows again when it is resized, the other one cuts them.

use std::{cell::RefCell, io, num::NonZeroU16, rc::Rc};

use alacritty_terminal::{
    event::VoidListener,
    grid::Dimensions,
    index::{Column, Line},
    term::{Config, Term, cell::Flags},
    vte::ansi::Processor,
};

use super::{ScreenSize, TerminalIo};

/// Rows of history that the emulators keep.
const SCROLLBACK_ROWS: usize = 100_000;

/// A terminal that a test shares with the screen.
#[derive(Clone)]
pub(super) struct EmulatorIo(Rc<RefCell<EmulatorState>>);

struct EmulatorState {
    kind: EmulatorKind,
    size: ScreenSize,
    /// Bytes of each frame.
    frames: Vec<Vec<u8>>,
    n_position_queries: usize,
}

#[expect(clippy::large_enum_variant, reason = "a test has one")]
enum EmulatorKind {
    Reflowing { term: Term<VoidListener>, processor: Processor },
    Clipping(vt100::Parser),
}

struct EmulatorSize(ScreenSize);

impl Dimensions for EmulatorSize {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        self.0.rows.into()
    }

    fn columns(&self) -> usize {
        self.0.columns.into()
    }
}

impl EmulatorIo {
    pub(super) fn reflowing(size: ScreenSize) -> Self {
        let config = Config { scrolling_history: SCROLLBACK_ROWS, ..Config::default() };
        let term = Term::new(config, &EmulatorSize(size), VoidListener);
        Self::with_kind(EmulatorKind::Reflowing { term, processor: Processor::new() }, size)
    }

    pub(super) fn clipping(size: ScreenSize) -> Self {
        Self::with_kind(EmulatorKind::Clipping(new_parser(size)), size)
    }

    fn with_kind(kind: EmulatorKind, size: ScreenSize) -> Self {
        Self(Rc::new(RefCell::new(EmulatorState { kind, size, frames: Vec::new(), n_position_queries: 0 })))
    }

    pub(super) fn resize(&self, size: ScreenSize) {
        let mut state = self.0.borrow_mut();
        state.size = size;
        match &mut state.kind {
            EmulatorKind::Reflowing { term, .. } => term.resize(EmulatorSize(size)),
            EmulatorKind::Clipping(parser) => set_parser_size(parser, size),
        }
    }

    /// The cursor's row and column.
    pub(super) fn cursor(&self) -> (u16, u16) {
        match &self.0.borrow().kind {
            EmulatorKind::Reflowing { term, .. } => {
                let point = term.grid().cursor.point;
                (u16::try_from(point.line.0).unwrap(), u16::try_from(point.column.0).unwrap())
            }
            EmulatorKind::Clipping(parser) => parser.screen().cursor_position(),
        }
    }

    /// Returns how many queries for the position were sent since the last call.
    pub(super) fn take_position_queries(&self) -> usize {
        std::mem::take(&mut self.0.borrow_mut().n_position_queries)
    }

    pub(super) fn take_frames(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.borrow_mut().frames)
    }

    /// The rows of history and screen; a row that the terminal wrapped is one row. Blank rows at the end are dropped.
    pub(super) fn rows(&self) -> Vec<String> {
        let mut state = self.0.borrow_mut();
        let mut rows: Vec<(String, bool)> = match &mut state.kind {
            EmulatorKind::Reflowing { term, .. } => reflowing_rows(term),
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

impl TerminalIo for EmulatorIo {
    fn write_frame(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.n_position_queries += usize::from(bytes == b"\x1b[6n");
        match &mut state.kind {
            EmulatorKind::Reflowing { term, processor } => processor.advance(term, bytes),
            EmulatorKind::Clipping(parser) => parser.process(bytes),
        }
        state.frames.push(bytes.to_vec());
        Ok(())
    }

    fn size(&self) -> io::Result<ScreenSize> {
        Ok(self.0.borrow().size)
    }

    fn set_raw(&mut self, _: bool) -> io::Result<()> {
        Ok(())
    }
}

fn reflowing_rows(term: &Term<VoidListener>) -> Vec<(String, bool)> {
    let grid = term.grid();
    let lines = grid.topmost_line().0..=grid.bottommost_line().0;
    let row = |line| {
        let cells = (0..grid.columns()).map(|column| &grid[Line(line)][Column(column)]);
        let mut text = String::new();
        for cell in cells {
            if !cell.flags.intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER) {
                text.push(cell.c);
                text.extend(cell.zerowidth().into_iter().flatten());
            }
        }
        let is_wrapped = grid[Line(line)][Column(grid.columns() - 1)].flags.contains(Flags::WRAPLINE);
        (text, is_wrapped)
    };
    lines.map(row).collect()
}

fn new_parser(size: ScreenSize) -> vt100::Parser {
    let (rows, columns) = parser_size(size);
    vt100::Parser::new(rows, columns, SCROLLBACK_ROWS)
}

fn set_parser_size(parser: &mut vt100::Parser, size: ScreenSize) {
    let (rows, columns) = parser_size(size);
    parser.set_size(rows, columns);
}

fn parser_size(size: ScreenSize) -> (NonZeroU16, NonZeroU16) {
    (NonZeroU16::new(size.rows).unwrap(), NonZeroU16::new(size.columns).unwrap())
}

fn clipping_rows(parser: &mut vt100::Parser) -> Vec<(String, bool)> {
    let screen = parser.screen_mut();
    let columns = screen.size().1.get();
    let mut rows = Vec::new();
    for offset in (1..=screen.scrollback_len()).rev() {
        screen.set_scrollback(offset);
        rows.push((screen.rows(0, columns).next().unwrap(), screen.row_wrapped(0)));
    }
    screen.set_scrollback(0);
    let visible: Vec<String> = screen.rows(0, columns).collect();
    rows.extend(
        visible
            .into_iter()
            .enumerate()
            .map(|(index, text)| (text, screen.row_wrapped(u16::try_from(index).unwrap()))),
    );
    rows
}
