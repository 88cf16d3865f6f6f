//! Content as styled rows: markdown, code, diffs, output of programs. Pure functions of text, width and theme.
//!
//! Every row is safe to write: text from outside is sanitized before it becomes a [`StyledRow`]. Knows no terminal and
//! no escape sequence besides those it parses out of programs' output.

mod ansi;
mod count;
mod diff;
mod elapsed;
mod highlight;
mod markdown;
mod row;
mod sanitize;
mod theme;
mod wrap;

pub(crate) use self::markdown::{PartDivider, PartStart, TextPart, render_part};
use self::wrap::usable_indent;
pub use self::{
    ansi::ansi_rows,
    count::format_count,
    diff::{DIFF_ROWS_MAX, DiffExtent, DiffTexts, fold_diff, render_diff, render_diff_part},
    elapsed::format_elapsed,
    highlight::{CodeHighlighter, HIGHLIGHT_BYTES_MAX, highlight_code},
    markdown::{MarkdownStream, render_markdown},
    row::{LinkTarget, PaletteColor, StyledRow, StyledSpan, TextStyle, cluster_width, text_width},
    sanitize::{expand_tabs, reveal_controls, sanitize_line, sanitize_text},
    theme::ColorTheme,
    wrap::{RowIndent, split_row, truncate_row, wrap_spans},
};
