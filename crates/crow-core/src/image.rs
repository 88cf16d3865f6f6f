//! Images for models: the accepted types, and the validation of base64 data. Knows no provider.

mod container;

use base64::{Engine as _, alphabet, engine::GeneralPurposeConfig, engine::general_purpose::GeneralPurpose};

use crate::ContentPart;

/// The types that every provider accepts.
pub const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Some senders omit the padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The reason why data is not an image for a model. Fits after "the image".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// An unsupported type.
    #[error("is of the type {0}, which models do not accept; send PNG, JPEG, GIF or WebP")]
    UnsupportedType(String),
    /// Its data cannot be decoded.
    #[error("has data that is not base64")]
    InvalidBase64,
    /// Its bytes do not begin like an image.
    #[error("is not a PNG, JPEG, GIF or WebP file")]
    UnknownFormat,
    /// Its file is truncated or damaged.
    #[error("is truncated or damaged")]
    Damaged,
    /// It is larger than providers accept.
    #[error("has {0} by {1} pixels, but models accept {SIDE_MAX} at most; make a smaller copy")]
    TooLarge(u32, u32),
}

/// Pixels of a side: the limit of the strictest provider.
const SIDE_MAX: u32 = 8000;

/// Detects the type of an image by its first bytes.
pub fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Returns the type of a complete image. The structure is checked to the end, without decoding.
pub fn check_image(bytes: &[u8]) -> Result<&'static str, ImageError> {
    let mime = image_type(bytes).ok_or(ImageError::UnknownFormat)?;
    match container::read_image_size(bytes, mime) {
        None | Some((0, _) | (_, 0)) => Err(ImageError::Damaged),
        Some((width, height)) if width.max(height) > SIDE_MAX => Err(ImageError::TooLarge(width, height)),
        Some(_) => Ok(mime),
    }
}

/// Creates an image part from external data: a provider rejects every request of a conversation with a damaged image.
/// The bytes determine the type if the sender named another accepted one.
pub fn read_image_part(mime: &str, data: &str) -> Result<ContentPart, ImageError> {
    let declared = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_known = IMAGE_TYPES.contains(&declared.as_str()) || declared == "image/jpg";
    if !is_known {
        return Err(ImageError::UnsupportedType(crate::escape_hidden_start(mime, 80)));
    }
    let bytes = decode_base64(data).ok_or(ImageError::InvalidBase64)?;
    let mime = check_image(&bytes)?.to_owned();
    Ok(ContentPart::Image { mime, data: base64::prelude::BASE64_STANDARD.encode(bytes) })
}

/// Parses a `data:` URL with an image; `None` for another URL.
pub fn read_data_url(uri: &str) -> Option<Result<ContentPart, ImageError>> {
    let scheme = uri.get(..5)?;
    let (head, data) = uri.get(5..)?.split_once(',')?;
    if !scheme.eq_ignore_ascii_case("data:") {
        return None;
    }
    let mime = head.strip_suffix(";base64").unwrap_or_default();
    Some(if mime.is_empty() { Err(ImageError::InvalidBase64) } else { read_image_part(mime, data) })
}

/// Decodes base64, with or without line breaks and padding.
pub fn decode_base64(data: &str) -> Option<Vec<u8>> {
    if !data.bytes().any(|byte| byte.is_ascii_whitespace()) {
        return LENIENT.decode(data).ok();
    }
    let joined: Vec<u8> = data.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    LENIENT.decode(joined).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One pixel.
    const PNG: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

    #[track_caller]
    fn check_part(mime: &str, data: &str, expected: &str) {
        let read = match read_image_part(mime, data) {
            Ok(ContentPart::Image { mime, data }) => format!("{mime} {data}"),
            Ok(other) => format!("{other:?}"),
            Err(bad) => format!("the image {bad}"),
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn image_part_requires_supported_type_and_complete_file() {
        check_part("image/png", PNG, &format!("image/png {PNG}"));
        let (begin, end) = PNG.trim_end_matches('=').split_at(40);
        check_part("image/png", &format!("{begin}\r\n{end}"), &format!("image/png {PNG}"));
        check_part("IMAGE/JPG; q=1", PNG, &format!("image/png {PNG}"));
        check_part("image/png", "iVBORw0KGgo=", "the image is truncated or damaged");
        check_part("image/jpeg", "/9j/", "the image is truncated or damaged");
        check_part("image/png", "aGVsbG8=", "the image is not a PNG, JPEG, GIF or WebP file");
        check_part("image/png", "", "the image is not a PNG, JPEG, GIF or WebP file");
        check_part("image/png", "not base64!", "the image has data that is not base64");
        check_part("image/png", "iVBORw0KGgo=====x", "the image has data that is not base64");
        let svg =
            "the image is of the type image/svg+xml, which models do not accept; send PNG, JPEG, GIF or WebP";
        check_part("image/svg+xml", "iVBORw0KGgo=", svg);
        check_part("", "iVBORw0KGgo=", &svg.replace("image/svg+xml", ""));
    }

    #[test]
    fn image_side_has_limit() {
        let gif = |width: [u8; 2], height: [u8; 2]| {
            let screen = [b"GIF89a", width.as_slice(), &height, &[0, 0, 0]].concat();
            check_image(&[screen.as_slice(), &[0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 0, 0x3b]].concat())
        };
        assert_eq!(gif([0x40, 0x1f], [1, 0]), Ok("image/gif"));
        assert_eq!(gif([0x41, 0x1f], [1, 0]), Err(ImageError::TooLarge(8001, 1)));
        assert_eq!(gif([1, 0], [0, 0]), Err(ImageError::Damaged));
    }

    #[test]
    fn data_url_is_parsed_as_image() {
        assert!(matches!(read_data_url(&format!("data:image/png;base64,{PNG}")), Some(Ok(_))));
        assert_eq!(read_data_url("data:image/png;base64,%"), Some(Err(ImageError::InvalidBase64)));
        assert_eq!(read_data_url("DATA:,x"), Some(Err(ImageError::InvalidBase64)));
        assert_eq!(read_data_url("file:///a,b"), None);
        assert_eq!(read_data_url("é"), None);
    }
}
