//! The inline renderer: history scrolls up as the terminal's own, the live region below it is redrawn in place.
//!
//! All moves are relative to the cursor, which is parked at the caret between frames, so the terminal may scroll or
//! grow meanwhile. History leaves the live region only at its top, so no live row scrolls into the terminal's history.
//! After a resize, the cursor's row is asked for: see [`resize`](super::resize).

use std::{collections::VecDeque, io, time::Instant};

use super::{
    ResizeBehavior, ScreenModes, ScreenSize, TerminalIo, TerminalReply, TerminalTraits,
    cell::count_wraps,
    frame::FrameWriter,
    fullscreen::FullscreenRegion,
    modes::ModeFlag,
    resize::{FrameOrigin, ResizeAction, ResizeProcess},
};
use crate::text::StyledRow;

/// Rows of history that can be written again; more are never overwritten by mistake.
const RECENT_ROWS_MAX: usize = 256;

/// Rows that a rebuild writes again.
pub const REBUILD_ROWS_MAX: usize = 2000;

/// Saves the title of the window; bracketed pastes and focus events.
const ENABLE: &str = "\x1b[22;2t\x1b[?2004h\x1b[?1004h";

/// The keyboard protocol, the version, the background; every terminal answers the last one.
const QUERIES: &str = "\x1b[?u\x1b[>0q\x1b]11;?\x1b\\\x1b[c";

const ASK_BACKGROUND: &str = "\x1b]11;?\x1b\\";
const ASK_POSITION: &str = "\x1b[6n";

/// Reports keys unambiguously, without releases.
const PUSH_KITTY: &str = "\x1b[>1u";

const REPORT_MODIFIED_KEYS: &str = "\x1b[>4;2m";

/// One frame.
#[derive(Debug, Clone, Copy)]
pub struct ScreenFrame<'a> {
    /// Rows that become final with this frame and are written once.
    pub history: &'a [StyledRow],
    /// All rows that may still change. If they are too many, the first ones are not drawn.
    pub live: &'a [StyledRow],
    /// The cursor's place in the live rows; without one it is hidden.
    pub caret: Option<CaretPosition>,
}

/// A place in the live rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CaretPosition {
    pub row: u16,
    pub column: u16,
}

/// Draws frames on a terminal.
#[derive(Debug)]
pub struct InlineScreen<T: TerminalIo> {
    pub(super) io: T,
    traits: TerminalTraits,
    pub(super) modes: ScreenModes,
    has_kitty: bool,
    pub(super) size: ScreenSize,
    pub(super) drawn: DrawnRegion,
    pub(super) resize: ResizeProcess,
    recent_history: VecDeque<StyledRow>,
    /// The rows on the alternate screen, while it is shown.
    pub(super) fullscreen: Option<FullscreenRegion>,
}

/// The rows that the terminal shows, and the cursor in them.
#[derive(Debug, Default)]
pub(super) struct DrawnRegion {
    pub(super) rows: Vec<StyledRow>,
    /// Longer rows were cut here.
    pub(super) columns: usize,
    pub(super) parked: CaretPosition,
    pub(super) is_caret_hidden: bool,
}

impl<T: TerminalIo> InlineScreen<T> {
    /// Takes over a terminal whose cursor is at the beginning of a row.
    pub fn open(io: T, traits: TerminalTraits) -> io::Result<Self> {
        let size = io.size()?;
        let mut screen = Self {
            io,
            traits,
            modes: ScreenModes::default(),
            has_kitty: false,
            size,
            drawn: DrawnRegion::default(),
            resize: ResizeProcess::new(),
            recent_history: VecDeque::new(),
            fullscreen: None,
        };
        screen.resume()?;
        screen.io.write_frame(QUERIES.as_bytes())?;
        Ok(screen)
    }

    /// The size that rows have to fit.
    pub fn size(&self) -> ScreenSize {
        self.size
    }

    /// The modes that are on, for a panic hook or a signal handler.
    pub fn modes(&self) -> ScreenModes {
        self.modes.clone()
    }

    /// The properties of the terminal that are known so far.
    pub fn traits(&self) -> TerminalTraits {
        self.traits
    }

    /// Whether a frame would be drawn: not while the size changes, nor below the alternate screen.
    pub fn is_ready(&self) -> bool {
        self.fullscreen.is_none() && self.modes.is_set(ModeFlag::Active) && self.resize.is_over()
    }

    /// The time at which [`on_deadline`](Self::on_deadline) has to be called.
    pub fn deadline(&self) -> Option<Instant> {
        self.resize.deadline()
    }

    /// Draws a frame in one synchronized write. Returns whether it was drawn: if the screen is not ready, the history
    /// was not taken.
    pub fn draw(&mut self, frame: &ScreenFrame<'_>) -> io::Result<bool> {
        if !self.is_ready() {
            return Ok(false);
        }
        if self.io.size()? != self.size {
            // The event of the resize is still on its way: the rows are for another width, and the top is elsewhere.
            self.resize.on_resized(Instant::now());
            return Ok(false);
        }
        let origin = self.resize.take_origin().unwrap_or(FrameOrigin::Parked);
        let n_hidden = frame.live.len().saturating_sub(self.size.live_rows_max());
        let live = &frame.live[n_hidden..];
        let mut writer = FrameWriter::new(self.size);
        let has_same_height = live.len() == self.drawn.rows.len() && !live.is_empty();
        let cursor = if origin == FrameOrigin::Parked && frame.history.is_empty() && has_same_height {
            writer.write_live_changes(&self.drawn.rows, live, self.drawn.parked.row)
        } else {
            self.move_to_origin(&mut writer, origin);
            writer.write_history(frame.history);
            writer.write_live(live);
            to_u16(live.len().saturating_sub(1))
        };
        let caret = place_caret(frame.caret, n_hidden, live.len(), self.size);
        if let Some(bytes) = self.drawn.finish_frame(writer, live, cursor, caret) {
            self.io.write_frame(&bytes)?;
        }
        self.modes.set_rows_below(to_u16(live.len()).saturating_sub(self.drawn.parked.row + 1));
        self.remember_history(frame.history);
        Ok(true)
    }

    fn move_to_origin(&self, writer: &mut FrameWriter, origin: FrameOrigin) {
        match origin {
            FrameOrigin::Parked => writer.move_up(self.drawn.parked.row),
            FrameOrigin::Below => {
                writer.move_to_row(self.size.rows.saturating_sub(1));
                writer.push_bytes(b"\r\n");
            }
            FrameOrigin::Reported { row } => {
                let n_above = self.count_rows_above_cursor();
                writer.move_to_row(row - n_above.min(row));
                if self.traits.resizing == ResizeBehavior::Unknown {
                    // If the terminal clips, these rows of history are overwritten: twice is better than lost.
                    let n_again = usize::from(n_above.min(row).saturating_sub(self.drawn.parked.row));
                    let n_known = self.recent_history.len();
                    let rows: Vec<StyledRow> =
                        self.recent_history.range(n_known - n_again.min(n_known)..).cloned().collect();
                    writer.write_history(&rows);
                }
            }
        }
    }

    /// The rows between the live region's top and the cursor, which the terminal has wrapped at the new width.
    fn count_rows_above_cursor(&self) -> u16 {
        let parked = self.drawn.parked;
        if self.traits.resizing == ResizeBehavior::Clips {
            return parked.row;
        }
        let columns = usize::from(self.size.columns.max(1));
        let above = &self.drawn.rows[..usize::from(parked.row).min(self.drawn.rows.len())];
        let n_rows: usize = above.iter().map(|row| 1 + count_wraps(row, self.drawn.columns, columns)).sum();
        to_u16(n_rows + usize::from(parked.column) / columns)
    }

    fn remember_history(&mut self, rows: &[StyledRow]) {
        self.recent_history.extend(rows.iter().rev().take(RECENT_ROWS_MAX).rev().cloned());
        let n_extra = self.recent_history.len().saturating_sub(RECENT_ROWS_MAX);
        self.recent_history.drain(..n_extra);
    }

    /// The window has another size, or may have one.
    pub fn on_resized(&mut self, now: Instant) {
        self.resize.on_resized(now);
    }

    /// The time of [`deadline`](Self::deadline) has come.
    pub fn on_deadline(&mut self, now: Instant) -> io::Result<()> {
        if self.fullscreen.is_some() {
            return self.update_fullscreen_size(now);
        }
        let size = self.io.size()?;
        let can_ask = self.traits.resizing != ResizeBehavior::Repaints;
        let action = self.resize.on_deadline(now, size, can_ask);
        self.carry_out(action)
    }

    /// Takes a reply of the terminal.
    pub fn on_reply(&mut self, reply: &TerminalReply, now: Instant) -> io::Result<()> {
        match reply {
            TerminalReply::CursorPosition { row, .. } => {
                let size = self.io.size()?;
                let action = self.resize.on_position(*row, size, now);
                self.carry_out(action)
            }
            TerminalReply::Version(version) => {
                self.traits.apply_version(version);
                if self.traits.is_tmux && !self.has_kitty {
                    self.modes.set(ModeFlag::ModifiedKeys);
                    self.io.write_frame(REPORT_MODIFIED_KEYS.as_bytes())?;
                }
                Ok(())
            }
            TerminalReply::KittyKeyboard if !self.traits.avoids_kitty && !self.has_kitty => {
                self.has_kitty = true;
                self.push_kitty()
            }
            TerminalReply::KittyKeyboard
            | TerminalReply::Background { .. }
            | TerminalReply::DeviceAttributes => Ok(()),
        }
    }

    fn carry_out(&mut self, action: ResizeAction) -> io::Result<()> {
        self.size = self.io.size()?;
        match action {
            ResizeAction::None => Ok(()),
            ResizeAction::AskPosition => self.io.write_frame(ASK_POSITION.as_bytes()),
        }
    }

    pub(super) fn push_kitty(&mut self) -> io::Result<()> {
        if !self.has_kitty {
            return Ok(());
        }
        let is_fullscreen = self.fullscreen.is_some();
        self.modes.set(if is_fullscreen { ModeFlag::KittyPushedFullscreen } else { ModeFlag::KittyPushed });
        self.io.write_frame(PUSH_KITTY.as_bytes())
    }

    /// Asks for the background again: the user may have switched the theme while the window had no focus.
    pub fn ask_background(&mut self) -> io::Result<()> {
        self.io.write_frame(ASK_BACKGROUND.as_bytes())
    }

    /// Writes the whole history again on an empty screen, with the terminal's own history erased, and nothing else:
    /// the next frame draws the live region. The last [`REBUILD_ROWS_MAX`] rows are written.
    pub fn rebuild(&mut self, history: &[StyledRow]) -> io::Result<()> {
        if !self.is_ready() {
            return Ok(());
        }
        self.resize.take_origin();
        let history = &history[history.len().saturating_sub(REBUILD_ROWS_MAX)..];
        let mut writer = FrameWriter::new(self.size);
        writer.push_bytes(b"\x1b[H\x1b[J\x1b[3J");
        writer.write_history(history);
        self.drawn = DrawnRegion { is_caret_hidden: self.drawn.is_caret_hidden, ..DrawnRegion::default() };
        self.recent_history.clear();
        self.remember_history(history);
        writer.finish().map_or(Ok(()), |bytes| self.io.write_frame(&bytes))
    }

    /// Erases the live region and gives the terminal back, for an editor or a suspension.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.leave_fullscreen(None)?;
        self.resize = ResizeProcess::new();
        let mut writer = FrameWriter::new(self.size);
        writer.move_up(self.drawn.parked.row);
        writer.write_live(&[]);
        self.drawn = DrawnRegion::default();
        if let Some(bytes) = writer.finish() {
            self.io.write_frame(&bytes)?;
        }
        self.modes.set_rows_below(0);
        let restore = self.modes.take_restore_sequence();
        // Nothing is left below which the shell would have to go.
        self.io.write_frame(restore.trim_end().as_bytes())?;
        self.io.set_raw(false)
    }

    /// Takes the terminal again. The cursor has to be at the beginning of a row.
    pub fn resume(&mut self) -> io::Result<()> {
        self.io.set_raw(true)?;
        self.size = self.io.size()?;
        self.resize = ResizeProcess::new();
        self.modes.set(ModeFlag::Active);
        self.io.write_frame(ENABLE.as_bytes())?;
        if self.traits.is_tmux && !self.has_kitty {
            self.modes.set(ModeFlag::ModifiedKeys);
            self.io.write_frame(REPORT_MODIFIED_KEYS.as_bytes())?;
        }
        self.push_kitty()
    }

    /// Ends the program's use of the terminal: the live region is replaced by these rows.
    pub fn close(&mut self, last_rows: &[StyledRow]) -> io::Result<()> {
        self.leave_fullscreen(None)?;
        let mut writer = FrameWriter::new(self.size);
        writer.move_up(self.drawn.parked.row);
        writer.write_history(last_rows);
        writer.write_live(&[]);
        self.drawn = DrawnRegion::default();
        if let Some(bytes) = writer.finish() {
            self.io.write_frame(&bytes)?;
        }
        self.suspend()
    }

    /// Writes bytes that draw nothing, such as a title.
    pub fn write_control(&mut self, sequence: &str) -> io::Result<()> {
        self.io.write_frame(sequence.as_bytes())
    }
}

impl<T: TerminalIo> Drop for InlineScreen<T> {
    fn drop(&mut self) {
        let restore = self.modes.take_restore_sequence();
        if !restore.is_empty() {
            // A terminal that is gone needs no restoring.
            drop(self.io.write_frame(restore.as_bytes()));
            drop(self.io.set_raw(false));
        }
    }
}

impl DrawnRegion {
    /// Completes a frame of these rows, whose last written row is `cursor`, and writes it.
    pub(super) fn finish_frame(
        &mut self,
        mut writer: FrameWriter,
        rows: &[StyledRow],
        cursor: u16,
        caret: Option<CaretPosition>,
    ) -> Option<Vec<u8>> {
        let place = caret.unwrap_or(CaretPosition { row: cursor, column: 0 });
        if !writer.is_empty() || place != self.parked {
            writer.park(cursor, place);
        }
        if caret.is_none() != self.is_caret_hidden {
            writer.push_bytes(if caret.is_none() { b"\x1b[?25l" } else { b"\x1b[?25h" });
            self.is_caret_hidden = caret.is_none();
        }
        self.parked = place;
        self.columns = writer.columns();
        if self.rows != rows {
            self.rows = rows.to_vec();
        }
        writer.finish()
    }
}

/// Returns the caret among the rows that are drawn.
fn place_caret(
    caret: Option<CaretPosition>,
    n_hidden: usize,
    n_rows: usize,
    size: ScreenSize,
) -> Option<CaretPosition> {
    caret.map(|caret| CaretPosition {
        row: caret.row.saturating_sub(to_u16(n_hidden)).min(to_u16(n_rows.saturating_sub(1))),
        column: caret.column.min(size.columns.saturating_sub(1)),
    })
}

fn to_u16(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
