//! The alternate screen, for the pager and the conversation on the whole screen: rows at fixed places, drawn by their differences.

use std::{io, time::Instant};

use super::{
    CaretPosition, InlineScreen, ScreenSize, TerminalIo,
    frame::FrameWriter,
    inline::DrawnRegion,
    modes::{IGNORE_WHEEL, ModeFlag},
};
use crate::text::StyledRow;

/// The alternate screen while it is shown.
#[derive(Debug)]
pub(super) struct FullscreenRegion {
    drawn: DrawnRegion,
    /// The size that the inline screen was left with.
    inline_size: ScreenSize,
}

impl<T: TerminalIo> InlineScreen<T> {
    /// Whether the alternate screen is shown.
    pub fn is_fullscreen(&self) -> bool {
        self.fullscreen.is_some()
    }

    /// Shows the alternate screen. Frames are not drawn until it is left.
    pub fn enter_fullscreen(&mut self) -> io::Result<()> {
        if self.fullscreen.is_some() {
            return Ok(());
        }
        let drawn = DrawnRegion { is_caret_hidden: self.drawn.is_caret_hidden, ..DrawnRegion::default() };
        self.fullscreen = Some(FullscreenRegion { drawn, inline_size: self.size });
        self.modes.set(ModeFlag::Fullscreen);
        self.io.write_frame(b"\x1b[?1049h\x1b[H\x1b[2J")?;
        // Each screen has its own stack of keyboard flags.
        self.push_kitty()
    }

    /// Reports the wheel of the mouse until the alternate screen is left. The terminal then selects text only while
    /// Shift is held.
    pub fn report_wheel(&mut self) -> io::Result<()> {
        if self.fullscreen.is_none() || self.modes.is_set(ModeFlag::Wheel) {
            return Ok(());
        }
        self.modes.set(ModeFlag::Wheel);
        self.io.write_frame(b"\x1b[?1000h\x1b[?1006h")
    }

    /// Draws all rows of the alternate screen with the next frame.
    pub fn clear_fullscreen(&mut self) -> io::Result<()> {
        let Some(region) = &mut self.fullscreen else { return Ok(()) };
        region.drawn.rows.clear();
        self.io.write_frame(b"\x1b[H\x1b[2J")
    }

    /// Draws the rows of the alternate screen from its top. Returns whether they were drawn: not while the size changes.
    pub fn draw_fullscreen(&mut self, rows: &[StyledRow], caret: Option<CaretPosition>) -> io::Result<bool> {
        let size = self.size;
        if self.io.size()? != size {
            // The rows are for another size; the terminal would show some of them at most.
            if self.resize.is_over() {
                self.resize.on_resized(Instant::now());
            }
            return Ok(false);
        }
        let Some(region) = &mut self.fullscreen else { return Ok(false) };
        let rows = &rows[..rows.len().min(usize::from(size.rows))];
        let mut writer = FrameWriter::new(size);
        let cursor = if rows.len() == region.drawn.rows.len() && !rows.is_empty() {
            writer.write_live_changes(&region.drawn.rows, rows, region.drawn.parked.row)
        } else {
            writer.move_to_row(0);
            writer.write_live(rows);
            u16::try_from(rows.len().saturating_sub(1)).unwrap_or(u16::MAX)
        };
        if let Some(bytes) = region.drawn.finish_frame(writer, rows, cursor, caret) {
            self.io.write_frame(&bytes)?;
        }
        Ok(true)
    }

    /// Returns to the inline screen. With the time, a resize meanwhile is taken into account.
    pub fn leave_fullscreen(&mut self, now: Option<Instant>) -> io::Result<()> {
        let Some(region) = self.fullscreen.take() else { return Ok(()) };
        let mut leave = String::new();
        if self.modes.is_set(ModeFlag::Wheel) {
            leave.push_str(IGNORE_WHEEL);
            self.modes.clear(ModeFlag::Wheel);
        }
        if self.modes.is_set(ModeFlag::KittyPushedFullscreen) {
            leave.push_str("\x1b[<u");
        }
        leave.push_str(if self.drawn.is_caret_hidden {
            "\x1b[?1049l\x1b[?25l"
        } else {
            "\x1b[?1049l\x1b[?25h"
        });
        self.modes.clear(ModeFlag::KittyPushedFullscreen);
        self.modes.clear(ModeFlag::Fullscreen);
        self.io.write_frame(leave.as_bytes())?;
        self.size = self.io.size()?;
        if let Some(now) = now
            && region.inline_size != self.size
        {
            self.resize.on_resized(now);
        }
        Ok(())
    }

    /// The alternate screen has no rows that the terminal moves.
    pub(super) fn update_fullscreen_size(&mut self, now: Instant) -> io::Result<()> {
        if self.resize.deadline().is_some_and(|deadline| now >= deadline) {
            self.resize.settle();
            self.size = self.io.size()?;
            if let Some(region) = &mut self.fullscreen {
                region.drawn.rows.clear();
            }
        }
        Ok(())
    }
}
