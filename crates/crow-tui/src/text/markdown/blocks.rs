//! One segment of markdown as rows.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::{
    super::{CodeHighlighter, ColorTheme, RowIndent, StyledRow, StyledSpan, usable_indent, wrap_spans},
    inlines::InlineText,
    table::{MarkdownTable, render_table},
};

/// A rule is shorter than the screen, so that a narrower screen does not wrap it.
const RULE_COLUMNS: usize = 24;

/// Deeper nesting is not indented further.
const DEPTH_MAX: usize = 12;

/// Renders the blocks of a segment.
pub(super) fn render_blocks(text: &str, width: usize, theme: &ColorTheme) -> Vec<StyledRow> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut renderer = BlockRenderer {
        width,
        theme: *theme,
        rows: Vec::new(),
        inline: InlineText::new(*theme),
        containers: Vec::new(),
        lists: Vec::new(),
        code: None,
        table: None,
        wants_blank: false,
    };
    let parser = Parser::new_ext(text, options);
    let mut definitions: Vec<_> = parser
        .reference_definitions()
        .iter()
        .map(|(name, definition)| (definition.span.start, name.to_owned(), definition.dest.to_string()))
        .collect();
    definitions.sort();
    for event in parser {
        renderer.take_event(event);
    }
    renderer.end_paragraph();
    for (_, name, address) in definitions {
        renderer.push_definition(&name, &address);
    }
    renderer.rows
}

struct BlockRenderer {
    width: usize,
    theme: ColorTheme,
    rows: Vec<StyledRow>,
    inline: InlineText,
    containers: Vec<BlockContainer>,
    /// The next number of each open list; none for bullets.
    lists: Vec<Option<u64>>,
    code: Option<CodeBlockText>,
    table: Option<MarkdownTable>,
    /// Whether the next block is set apart from the last one.
    wants_blank: bool,
}

/// The prefix of a quote's or an item's rows.
struct BlockContainer {
    /// The bullet or number, until a row has it.
    marker: Option<StyledSpan>,
    rest: StyledSpan,
}

struct CodeBlockText {
    language: String,
    text: String,
}

impl BlockRenderer {
    fn take_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start_tag(tag),
            Event::End(tag) => self.end_tag(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.text.push_str(&text),
                None => self.inline.push_text(&text),
            },
            Event::Code(code) => self.inline.push_code(&code),
            Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => {
                self.inline.push_text(&text);
            }
            Event::FootnoteReference(name) => self.inline.push_text(&format!("[^{name}]")),
            Event::SoftBreak => self.inline.push_text(" "),
            Event::HardBreak => self.inline.push_text("\n"),
            Event::Rule => {
                self.begin_block();
                let rule = "─".repeat(RULE_COLUMNS.min(self.columns()));
                self.push_rows(&[StyledSpan::styled(rule, self.theme.secondary())]);
                self.wants_blank = true;
            }
            Event::TaskListMarker(is_done) => self.mark_task(is_done),
        }
    }

    /// Shows the definition of a link that no link of the segment leads to: the links are in other segments.
    fn push_definition(&mut self, name: &str, address: &str) {
        if self.inline.has_linked(address) {
            return;
        }
        self.inline.push_text(&format!("[{name}]: "));
        self.inline.start_link(address);
        self.inline.push_text(address);
        self.inline.end_link();
        self.end_paragraph();
    }

    fn start_tag(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { .. } => {
                self.begin_block();
                self.inline.start_heading();
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                let bar = StyledSpan::styled("│ ", self.theme.secondary());
                self.push_container(BlockContainer { marker: None, rest: bar });
            }
            Tag::CodeBlock(kind) => {
                self.end_paragraph();
                self.begin_block();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split([' ', ',', '{']).next().unwrap_or_default().to_owned()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some(CodeBlockText { language, text: String::new() });
            }
            Tag::List(first) => {
                self.end_paragraph();
                // A list inside an item follows its text directly.
                self.wants_blank &= self.lists.is_empty();
                self.lists.push(first);
            }
            Tag::Item => self.start_item(),
            Tag::Table(alignments) => {
                self.begin_block();
                self.table = Some(MarkdownTable::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.start_row();
                }
            }
            Tag::TableCell => {}
            Tag::Emphasis => self.inline.start_emphasis(),
            Tag::Strong => self.inline.start_strong(),
            Tag::Strikethrough => self.inline.start_strikethrough(),
            Tag::Link { dest_url, .. } => self.inline.start_link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.inline.push_text("image: ");
                self.inline.start_link(&dest_url);
            }
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end_tag(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.end_paragraph();
                self.wants_blank = true;
            }
            TagEnd::Heading(_) => {
                self.inline.end_style();
                self.end_paragraph();
                self.wants_blank = true;
            }
            TagEnd::BlockQuote(_) => {
                self.end_paragraph();
                self.containers.pop();
                self.wants_blank = true;
            }
            TagEnd::CodeBlock => {
                if let Some(code) = self.code.take() {
                    self.push_code(&code);
                }
                self.wants_blank = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.wants_blank = true;
            }
            TagEnd::Item => self.end_item(),
            TagEnd::TableCell => {
                let spans = self.inline.take_spans();
                if let Some(table) = &mut self.table {
                    table.push_cell(spans);
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.inline.end_style(),
            TagEnd::Link | TagEnd::Image => self.inline.end_link(),
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn end_table(&mut self) {
        if let Some(table) = self.table.take() {
            for row in render_table(&table, self.columns(), &self.theme) {
                self.push_row(row);
            }
        }
        self.wants_blank = true;
    }

    fn end_item(&mut self) {
        self.end_paragraph();
        if self.containers.last().is_some_and(|item| item.marker.is_some()) {
            // An item without text.
            self.push_rows(&[]);
        }
        self.containers.pop();
        self.wants_blank = false;
    }

    fn start_item(&mut self) {
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number += 1;
                marker
            }
            Some(None) | None => "• ".to_owned(),
        };
        let rest = StyledSpan::plain(" ".repeat(marker.chars().count()));
        let marker = StyledSpan::styled(marker, self.theme.secondary());
        self.push_container(BlockContainer { marker: Some(marker), rest });
    }

    fn push_container(&mut self, container: BlockContainer) {
        let depth = self.containers.len();
        let rest = if depth < DEPTH_MAX { container.rest } else { StyledSpan::default() };
        self.containers.push(BlockContainer { rest, ..container });
    }

    fn mark_task(&mut self, is_done: bool) {
        if let Some(item) = self.containers.last_mut() {
            let style = if is_done { self.theme.success() } else { self.theme.secondary() };
            item.marker = Some(StyledSpan::styled(if is_done { "☑ " } else { "☐ " }, style));
            item.rest = StyledSpan::plain("  ");
        }
    }

    fn begin_block(&mut self) {
        self.end_paragraph();
        self.set_apart();
    }

    fn end_paragraph(&mut self) {
        let spans = self.inline.take_spans();
        if !spans.is_empty() {
            self.set_apart();
            self.push_rows(&spans);
        }
    }

    /// Sets a block apart from the one before it.
    fn set_apart(&mut self) {
        if std::mem::take(&mut self.wants_blank) && !self.rows.is_empty() {
            let mut row = StyledRow { spans: self.rest_indent(), is_code: false };
            while row.spans.last().is_some_and(|span| span.content.trim().is_empty()) {
                row.spans.pop();
            }
            self.rows.push(row);
        }
    }

    /// The columns that the containers leave.
    fn columns(&self) -> usize {
        let n_indent: usize = self.rest_indent().iter().map(StyledSpan::width).sum();
        self.width - n_indent
    }

    /// The prefix of rows without a marker.
    fn rest_indent(&self) -> Vec<StyledSpan> {
        let spans: Vec<StyledSpan> = self.containers.iter().map(|container| container.rest.clone()).collect();
        usable_indent(&spans, self.width).to_vec()
    }

    /// Returns the prefixes of the next rows; a marker is used once.
    fn take_indent(&mut self) -> RowIndent {
        let rest = self.containers.iter().map(|container| container.rest.clone()).collect();
        let first = self.containers.iter_mut().map(|container| match container.marker.take() {
            Some(marker) => marker,
            None => container.rest.clone(),
        });
        RowIndent { first: first.collect(), rest }
    }

    fn push_rows(&mut self, spans: &[StyledSpan]) {
        let indent = self.take_indent();
        self.rows.extend(wrap_spans(spans, self.width, &indent));
    }

    /// Appends a row that is complete but for its prefix.
    fn push_row(&mut self, row: StyledRow) {
        let mut spans = usable_indent(&self.take_indent().first, self.width).to_vec();
        spans.extend(row.spans);
        self.rows.push(StyledRow { spans, is_code: row.is_code });
    }

    fn push_code(&mut self, code: &CodeBlockText) {
        let mut highlighter = CodeHighlighter::new(&code.language, self.theme);
        for line in code.text.lines() {
            let spans = highlighter.highlight_line(line);
            self.push_row(StyledRow { spans, is_code: true });
        }
    }
}
