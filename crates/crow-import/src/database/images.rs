//! Images that a message only refers to: later versions stored each in a file named by its hash.

use std::{fs, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use crow_core::ContentPart;

/// Providers accept no larger ones.
const IMAGE_BYTES_MAX: u64 = 20 * 1024 * 1024;
/// The default of the Python version.
const DEFAULT_MIME: &str = "image/png";
/// A SHA-256 in hexadecimal.
const HASH_CHARS: usize = 64;

/// The directory of images.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageFolder<'a> {
    directory: &'a Path,
}

impl<'a> ImageFolder<'a> {
    pub(super) fn new(directory: &'a Path) -> Self {
        Self { directory }
    }

    /// Reads an image by name, if the name has the Python version's form and the file exists.
    pub(super) fn load_image(self, name: &str, mime: Option<&str>) -> Option<ContentPart> {
        let (hash, extension) = name.split_once('.')?;
        let is_name = hash.len() == HASH_CHARS
            && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
            && ["png", "jpg", "webp", "gif"].contains(&extension);
        let path = Some(self.directory.join(name)).filter(|_| is_name)?;
        let metadata = fs::symlink_metadata(&path).ok()?;
        if !metadata.is_file() || metadata.len() == 0 || metadata.len() > IMAGE_BYTES_MAX {
            return None;
        }
        image_part(mime, STANDARD.encode(fs::read(path).ok()?))
    }
}

/// Makes an image from its base64, if that is complete.
pub(super) fn image_part(mime: Option<&str>, data: String) -> Option<ContentPart> {
    let mime = mime.filter(|mime| !mime.is_empty()).unwrap_or(DEFAULT_MIME);
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    // An incomplete image makes providers reject the conversation permanently.
    let is_whole = !data.is_empty() && data.len().is_multiple_of(4) && data.bytes().all(is_base64);
    (is_whole && mime.starts_with("image/")).then(|| ContentPart::Image { mime: mime.to_owned(), data })
}

/// Parses an image in a `data:` URL.
pub(super) fn parse_data_url(url: &str) -> Option<ContentPart> {
    let (mime, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    image_part(Some(mime), data.to_owned())
}
