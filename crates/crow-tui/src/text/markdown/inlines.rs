//! The text of a paragraph as spans.

use super::super::{ColorTheme, LinkTarget, StyledSpan, TextStyle, sanitize_line, sanitize_text};

/// Collects the spans of a paragraph.
pub(super) struct InlineText {
    theme: ColorTheme,
    spans: Vec<StyledSpan>,
    /// The styles of the open emphases, each with those around it.
    styles: Vec<TextStyle>,
    link: Option<OpenLink>,
    /// The addresses of all links so far.
    addresses: Vec<String>,
}

struct OpenLink {
    address: String,
    target: Option<LinkTarget>,
    /// The link's text so far.
    text: String,
}

impl InlineText {
    pub(super) fn new(theme: ColorTheme) -> Self {
        Self { theme, spans: Vec::new(), styles: Vec::new(), link: None, addresses: Vec::new() }
    }

    fn style(&self) -> TextStyle {
        self.styles.last().copied().unwrap_or_default()
    }

    pub(super) fn push_text(&mut self, text: &str) {
        self.push_styled(text, self.style());
    }

    pub(super) fn push_code(&mut self, code: &str) {
        let style = self.style();
        self.push_styled(code, TextStyle { color: self.theme.inline_code().color, ..style });
    }

    /// Appends text without control characters: the source has none, but references such as `&#27;` stand for any.
    fn push_styled(&mut self, text: &str, style: TextStyle) {
        let text = sanitize_text(text).replace('\t', " ");
        let Some(link) = &mut self.link else {
            self.push_span(StyledSpan::styled(text, style));
            return;
        };
        link.text.push_str(&text);
        let target = link.target.clone();
        let link_style = self.theme.link();
        let style = TextStyle { color: link_style.color, is_underlined: true, ..style };
        self.push_span(StyledSpan { link: target, ..StyledSpan::styled(text, style) });
    }

    fn push_span(&mut self, span: StyledSpan) {
        match self.spans.last_mut() {
            Some(last) if last.style == span.style && last.link == span.link => {
                last.content.push_str(&span.content);
            }
            _ => self.spans.push(span),
        }
    }

    pub(super) fn start_heading(&mut self) {
        self.styles.push(self.theme.heading());
    }

    pub(super) fn start_emphasis(&mut self) {
        self.styles.push(self.style().italic());
    }

    pub(super) fn start_strong(&mut self) {
        self.styles.push(self.style().bold());
    }

    pub(super) fn start_strikethrough(&mut self) {
        self.styles.push(self.style().struck());
    }

    pub(super) fn end_style(&mut self) {
        self.styles.pop();
    }

    pub(super) fn start_link(&mut self, address: &str) {
        let target = LinkTarget::parse(address);
        self.addresses.push(address.to_owned());
        self.link = Some(OpenLink { address: address.to_owned(), target, text: String::new() });
    }

    /// Whether a link led to this address.
    pub(super) fn has_linked(&self, address: &str) -> bool {
        self.addresses.iter().any(|linked| linked == address)
    }

    /// Ends a link. The address follows the text unless the text has it: the user sees where a link leads.
    pub(super) fn end_link(&mut self) {
        let Some(link) = self.link.take() else { return };
        if !link.address.is_empty() && !link.text.contains(&link.address) {
            let address = format!(" ({})", sanitize_line(&link.address));
            let span = StyledSpan::styled(address, self.theme.secondary());
            self.push_span(StyledSpan { link: link.target, ..span });
        }
    }

    /// Takes the paragraph.
    pub(super) fn take_spans(&mut self) -> Vec<StyledSpan> {
        std::mem::take(&mut self.spans)
    }
}
