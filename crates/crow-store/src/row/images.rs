//! Images of a message, which are kept beside it: the same one often comes again.

use std::{borrow::Cow, collections::HashMap};

use base64::{Engine, prelude::BASE64_STANDARD};
use crow_core::{ContentHash, ContentPart, ToolCallContent, TranscriptEntry};

use crate::hashing;

/// What stands in a message instead of an image; no base64 has a colon.
const KEPT: &str = "sha256:";

/// Images by the hash that stands for them, in base64.
pub(crate) type ImagesByHash = HashMap<String, String>;

/// The images of a message on its way to the database.
#[derive(Debug, Default)]
pub(super) struct ExtractedImages<'a>(HashMap<&'a str, (ContentHash, Vec<u8>)>);

impl<'a> ExtractedImages<'a> {
    pub(super) fn from_entry(entry: &'a TranscriptEntry) -> Self {
        let part = |part: &'a ContentPart| match part {
            ContentPart::Image { data, .. } => Some(data.as_str()),
            ContentPart::Text(_)
            | ContentPart::Link { .. }
            | ContentPart::Resource { .. }
            | ContentPart::FromCrow { .. } => None,
        };
        let content = |content: &'a ToolCallContent| match content {
            ToolCallContent::Image { data, .. } => Some(data.as_str()),
            ToolCallContent::Text(_) | ToolCallContent::Diff { .. } => None,
        };
        let images: Vec<&str> = match entry {
            TranscriptEntry::Prompt(prompt) => prompt.parts.iter().filter_map(part).collect(),
            TranscriptEntry::Reply(_) => Vec::new(),
            TranscriptEntry::Result { outcome, .. } => {
                let shown = outcome.for_client.iter().filter_map(content);
                outcome.for_model.iter().filter_map(part).chain(shown).collect()
            }
        };
        let mut kept = HashMap::new();
        for data in images {
            // What would not come back letter for letter stays where it is.
            if let Ok(bytes) = BASE64_STANDARD.decode(data) {
                kept.entry(data).or_insert_with(|| (hashing::content_hash(&bytes), bytes));
            }
        }
        Self(kept)
    }

    /// What stands for an image in its message.
    pub(super) fn placeholder_for(&self, data: &'a str) -> Cow<'a, str> {
        match self.0.get(data) {
            Some((hash, _)) => Cow::Owned(format!("{KEPT}{hash}")),
            None => Cow::Borrowed(data),
        }
    }

    pub(super) fn into_images(self) -> Vec<(ContentHash, Vec<u8>)> {
        self.0.into_values().collect()
    }
}

/// Puts an image back; it is left out where nobody wants to see it.
pub(super) fn restore_image(data: Cow<'_, str>, images: Option<&ImagesByHash>) -> Result<String, String> {
    match (data.strip_prefix(KEPT), images) {
        (None, _) => Ok(data.into_owned()),
        (Some(_), None) => Ok(String::new()),
        (Some(hash), Some(images)) => {
            images.get(hash).cloned().ok_or_else(|| format!("its image {hash} is missing"))
        }
    }
}

/// Spells the bytes of an image.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}
