//! The content of a prompt.

use crow_core::ContentPart;

/// The content of a prompt: a text, or parts in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptContent {
    pub(crate) parts: Vec<ContentPart>,
}

impl PromptContent {
    /// Creates a prompt without content.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.with_part(ContentPart::Text(text.into()))
    }

    /// Adds an image of a media type such as `image/png`, whose bytes are in base64. Agents that do not support images
    /// reject the prompt; see `reads_images` of [`Agent::capabilities`](crate::Agent::capabilities).
    #[must_use]
    pub fn image(self, mime: impl Into<String>, base64: impl Into<String>) -> Self {
        self.with_part(ContentPart::Image { mime: mime.into(), data: base64.into() })
    }

    /// Adds a link to a file or page, such as `file:///project/src/main.rs#L10:20`.
    #[must_use]
    pub fn link(self, uri: impl Into<String>, name: impl Into<String>) -> Self {
        self.with_part(ContentPart::Link { uri: uri.into(), name: name.into(), mime: None })
    }

    /// Adds a text with its address, which the agent need not open.
    #[must_use]
    pub fn resource(self, uri: impl Into<String>, text: impl Into<String>) -> Self {
        self.with_part(ContentPart::Resource { uri: uri.into(), text: text.into(), mime: None })
    }

    fn with_part(mut self, part: ContentPart) -> Self {
        self.parts.push(part);
        self
    }
}

impl From<&str> for PromptContent {
    fn from(text: &str) -> Self {
        Self::new().text(text)
    }
}

impl From<String> for PromptContent {
    fn from(text: String) -> Self {
        Self::new().text(text)
    }
}
