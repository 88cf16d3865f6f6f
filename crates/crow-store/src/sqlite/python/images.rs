//! Images that a message only names: later versions kept each in a file named by its hash.

use std::{fs, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use crow_core::ContentPart;

/// Providers take no larger ones.
const IMAGE_BYTES_MAX: u64 = 20 * 1024 * 1024;
/// What the Python version used where it knew no better.
const USUAL_MIME: &str = "image/png";
/// A SHA-256 in hexadecimal.
const HASH_CHARS: usize = 64;

/// The folder with the images.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageFolder<'a> {
    folder: &'a Path,
}

impl<'a> ImageFolder<'a> {
    pub(super) fn new(folder: &'a Path) -> Self {
        Self { folder }
    }

    /// Reads the image of a name, if it is a name that the Python version made and the file is there.
    pub(super) fn load_image(self, name: &str, mime: Option<&str>) -> Option<ContentPart> {
        let (hash, ending) = name.split_once('.')?;
        let is_name = hash.len() == HASH_CHARS
            && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
            && ["png", "jpg", "webp", "gif"].contains(&ending);
        let path = Some(self.folder.join(name)).filter(|_| is_name)?;
        let found = fs::symlink_metadata(&path).ok()?;
        if !found.is_file() || found.len() == 0 || found.len() > IMAGE_BYTES_MAX {
            return None;
        }
        image_part(mime, STANDARD.encode(fs::read(path).ok()?))
    }
}

/// Makes an image of its base64, if it is whole.
pub(super) fn image_part(mime: Option<&str>, data: String) -> Option<ContentPart> {
    let mime = mime.filter(|mime| !mime.is_empty()).unwrap_or(USUAL_MIME);
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    // One that is not whole makes providers refuse the conversation for good.
    let is_whole = !data.is_empty() && data.len().is_multiple_of(4) && data.bytes().all(is_base64);
    (is_whole && mime.starts_with("image/")).then(|| ContentPart::Image { mime: mime.to_owned(), data })
}

/// Reads an image in a `data:` address.
pub(super) fn parse_data_url(address: &str) -> Option<ContentPart> {
    let (mime, data) = address.strip_prefix("data:")?.split_once(";base64,")?;
    image_part(Some(mime), data.to_owned())
}
