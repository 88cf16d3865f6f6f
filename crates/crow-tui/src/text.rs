//! Content as styled rows: markdown, diffs, output of programs. Pure functions of text, width and theme.
//!
//! Every row is safe to write: whatever enters a [`StyledRow`] through this module has no control characters. Knows no
//! terminal and no escape sequence besides those it parses out of other programs' output.

mod row;
mod sanitize;
mod theme;
mod wrap;

pub use self::{
    row::{LinkTarget, PaletteColor, StyledRow, StyledSpan, TextStyle, cluster_width, text_width},
    sanitize::{expand_tabs, sanitize_line, sanitize_text},
    theme::ColorTheme,
    wrap::{RowIndent, truncate_row, wrap_spans},
};
