//! Images of a message, which are stored separately because the same one often appears again.

use std::{borrow::Cow, collections::HashMap};

use base64::{Engine, prelude::BASE64_STANDARD};
use crow_core::{ContentHash, ContentPart, ToolCallContent, TranscriptEntry};

/// The prefix of the placeholder for an image; base64 has no colon.
const HASH_PREFIX: &str = "sha256:";

/// Images in base64, by hash.
pub(crate) type ImagesByHash = HashMap<String, String>;

/// The images of a message to be stored.
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
            TranscriptEntry::Result { result: outcome, .. } => {
                let client_images = outcome.for_client.iter().filter_map(content);
                outcome.for_model.iter().filter_map(part).chain(client_images).collect()
            }
        };
        let mut images_by_data = HashMap::new();
        for data in images {
            // An image that would not be restored exactly stays in the message.
            if let Ok(bytes) = BASE64_STANDARD.decode(data) {
                images_by_data.entry(data).or_insert_with(|| (crow_files::hash_content(&bytes), bytes));
            }
        }
        Self(images_by_data)
    }

    /// The placeholder of an image in its message.
    pub(super) fn placeholder_for(&self, data: &'a str) -> Cow<'a, str> {
        match self.0.get(data) {
            Some((hash, _)) => Cow::Owned(format!("{HASH_PREFIX}{hash}")),
            None => Cow::Borrowed(data),
        }
    }

    pub(super) fn into_images(self) -> Vec<(ContentHash, Vec<u8>)> {
        self.0.into_values().collect()
    }
}

/// Restores an image; drops it if images are not wanted.
pub(super) fn restore_image(data: Cow<'_, str>, images: Option<&ImagesByHash>) -> Result<String, String> {
    match (data.strip_prefix(HASH_PREFIX), images) {
        (None, _) => Ok(data.into_owned()),
        (Some(_), None) => Ok(String::new()),
        (Some(hash), Some(images)) => {
            images.get(hash).cloned().ok_or_else(|| format!("its image {hash} is missing"))
        }
    }
}

/// Encodes the bytes of an image.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}
