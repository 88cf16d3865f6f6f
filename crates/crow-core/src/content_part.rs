//! The parts of prompts and results.

use crate::CrowPart;

/// A part of a prompt or of a result, as the model gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentPart {
    /// Plain text.
    Text(String),
    /// An image; `data` is base64.
    Image {
        /// Media type, such as `image/png`.
        mime: String,
        /// The bytes in base64.
        data: String,
    },
    /// A link in a prompt.
    Link {
        /// The address, mostly `file://` with an optional `#L10:20`.
        uri: String,
        /// The client's name for it.
        name: String,
        /// Media type, if the client gave it.
        mime: Option<String>,
    },
    /// A resource in a prompt, with its text.
    Resource {
        /// The address.
        uri: String,
        /// The content.
        text: String,
        /// Media type, if the client gave it.
        mime: Option<String>,
    },
    /// A text that Crow adds to a prompt. Never created from input of a client, a server or a program.
    FromCrow {
        /// The kind of the text.
        kind: CrowPart,
        /// The text.
        text: String,
    },
}

impl ContentPart {
    /// Returns the kind of a part by Crow; `None` for an external part.
    pub fn crow_part(&self) -> Option<&CrowPart> {
        match self {
            Self::FromCrow { kind: what, .. } => Some(what),
            Self::Text(_) | Self::Image { .. } | Self::Link { .. } | Self::Resource { .. } => None,
        }
    }
}
