//! Wraps spans into rows: between words, between wide letters, and inside a word only where it is longer than a row.

use unicode_segmentation::UnicodeSegmentation as _;

use super::{StyledRow, StyledSpan, cluster_width, text_width};

/// Spans in front of the rows of a paragraph, such as a list's bullet and the space below it.
#[derive(Debug, Clone, Default)]
pub struct RowIndent {
    pub first: Vec<StyledSpan>,
    pub rest: Vec<StyledSpan>,
}

/// Less than this per row is unreadable; an indent that leaves less is dropped.
const TEXT_COLUMNS_MIN: usize = 8;

/// A grapheme cluster and its span.
#[derive(Clone, Copy)]
struct SpanCluster<'a> {
    text: &'a str,
    width: usize,
    span: &'a StyledSpan,
}

impl SpanCluster<'_> {
    fn is_space(&self) -> bool {
        self.text == " "
    }

    /// Whether a row may end before this cluster, between letters that have no spaces.
    fn may_begin_row(&self, previous: &Self) -> bool {
        (self.width == 2 || previous.width == 2) && !is_closing(self.text) && !is_opening(previous.text)
    }
}

/// Punctuation that does not begin a row.
fn is_closing(cluster: &str) -> bool {
    cluster.chars().next().is_some_and(|letter| {
        letter.is_ascii_punctuation() && !matches!(letter, '(' | '[' | '{' | '<')
            || "、。，．・：；？！）」』】〕〉》”’ー々…".contains(letter)
    })
}

/// Punctuation that does not end a row.
fn is_opening(cluster: &str) -> bool {
    cluster.chars().next().is_some_and(|letter| "([{<（「『【〔〈《“‘".contains(letter))
}

/// Returns the spans of an indent, or none if it leaves too little of a row.
pub(super) fn usable_indent(spans: &[StyledSpan], width: usize) -> &[StyledSpan] {
    let n_cells: usize = spans.iter().map(StyledSpan::width).sum();
    if n_cells + TEXT_COLUMNS_MIN.min(width) > width { &[] } else { spans }
}

/// Wraps spans at a width. A line feed in a span begins a new row. There is at least one row.
pub fn wrap_spans(spans: &[StyledSpan], width: usize, indent: &RowIndent) -> Vec<StyledRow> {
    let mut wrapper = RowWrapper::new(width, indent);
    for span in spans {
        for (index, line) in span.content.split('\n').enumerate() {
            if index > 0 {
                wrapper.end_paragraph();
            }
            for text in line.graphemes(true) {
                wrapper.push(SpanCluster { text, width: cluster_width(text), span });
            }
        }
    }
    wrapper.end_paragraph();
    wrapper.rows
}

struct RowWrapper<'a> {
    width: usize,
    indent: &'a RowIndent,
    rows: Vec<StyledRow>,
    /// The clusters of the current row, without those that are still a part of an open word.
    line: Vec<SpanCluster<'a>>,
    line_width: usize,
    word: Vec<SpanCluster<'a>>,
    word_width: usize,
}

impl<'a> RowWrapper<'a> {
    fn new(width: usize, indent: &'a RowIndent) -> Self {
        Self {
            width: width.max(2),
            indent,
            rows: Vec::new(),
            line: Vec::new(),
            line_width: 0,
            word: Vec::new(),
            word_width: 0,
        }
    }

    /// The spans in front of the first row or of a later one.
    fn indent_spans(&self, is_first: bool) -> &'a [StyledSpan] {
        let spans = if is_first { &self.indent.first } else { &self.indent.rest };
        usable_indent(spans, self.width)
    }

    /// The cells of the first row or of a later one that are left for text.
    fn columns(&self, is_first: bool) -> usize {
        let n_cells: usize = self.indent_spans(is_first).iter().map(StyledSpan::width).sum();
        self.width - n_cells
    }

    fn push(&mut self, cluster: SpanCluster<'a>) {
        if cluster.is_space() {
            self.end_word();
            // Spaces hang over the edge and go with the break.
            self.line.push(cluster);
            self.line_width += 1;
            return;
        }
        if self.word.last().is_some_and(|previous| cluster.may_begin_row(previous)) {
            self.end_word();
        }
        // A word that fits the first row may go to a later one.
        if self.word_width + cluster.width > self.columns(self.rows.is_empty()).min(self.columns(false)) {
            // The word is longer than a row.
            self.end_word();
        }
        self.word_width += cluster.width;
        self.word.push(cluster);
    }

    fn end_word(&mut self) {
        if self.line_width + self.word_width > self.columns(self.rows.is_empty())
            && !self.word.is_empty()
            && !self.line.is_empty()
        {
            self.end_row();
        }
        self.line.append(&mut self.word);
        self.line_width += std::mem::take(&mut self.word_width);
    }

    fn end_row(&mut self) {
        let mut row = StyledRow { spans: self.indent_spans(self.rows.is_empty()).to_vec(), is_code: false };
        let n_clusters = self.line.len() - self.line.iter().rev().take_while(|one| one.is_space()).count();
        for cluster in &self.line[..n_clusters] {
            push_cluster(&mut row, cluster);
        }
        self.rows.push(row);
        self.line.clear();
        self.line_width = 0;
    }

    fn end_paragraph(&mut self) {
        self.end_word();
        self.end_row();
    }
}

fn push_cluster(row: &mut StyledRow, cluster: &SpanCluster<'_>) {
    match row.spans.last_mut() {
        Some(last) if last.style == cluster.span.style && last.link == cluster.span.link => {
            last.content.push_str(cluster.text);
        }
        _ => row.spans.push(StyledSpan { content: cluster.text.to_owned(), ..style_of(cluster.span) }),
    }
}

fn style_of(span: &StyledSpan) -> StyledSpan {
    StyledSpan { content: String::new(), style: span.style, link: span.link.clone() }
}

/// Divides a row at a width, between any two letters, as a terminal does.
pub fn split_row(row: StyledRow, width: usize) -> Vec<StyledRow> {
    if row.width() <= width {
        return vec![row];
    }
    let (mut rows, mut line, mut n_cells) = (Vec::new(), StyledRow::default(), 0);
    for span in &row.spans {
        for cluster in span.content.graphemes(true) {
            if n_cells + cluster_width(cluster) > width.max(2) {
                rows.push(std::mem::take(&mut line));
                n_cells = 0;
            }
            n_cells += cluster_width(cluster);
            push_cluster(&mut line, &SpanCluster { text: cluster, width: cluster_width(cluster), span });
        }
    }
    rows.push(line);
    rows
}

/// Shortens a row to a width, with `…` in its last cell.
pub fn truncate_row(row: StyledRow, width: usize) -> StyledRow {
    if row.width() <= width {
        return row;
    }
    let mut short = StyledRow { spans: Vec::new(), is_code: row.is_code };
    let mut n_left = width.saturating_sub(1);
    for span in row.spans {
        if span.width() <= n_left {
            n_left -= span.width();
            short.spans.push(span);
            continue;
        }
        let mut part = style_of(&span);
        for cluster in span.content.graphemes(true) {
            if cluster_width(cluster) > n_left {
                break;
            }
            n_left -= cluster_width(cluster);
            part.content.push_str(cluster);
        }
        if width > 0 {
            part.content.push('…');
        }
        short.push_span(part);
        break;
    }
    debug_assert!(text_width(&short.text()) <= width);
    short
}

#[cfg(test)]
mod tests;
