//! Decodes a file's bytes and encodes them again in the same encoding. Pure.

use crow_core::line_too_long;

/// The byte order mark as a character.
pub(crate) const BOM: char = '\u{feff}';

pub(crate) const BOM_UTF8: &[u8] = b"\xEF\xBB\xBF";
pub(crate) const BOM_UTF16_LE: &[u8] = b"\xFF\xFE";
pub(crate) const BOM_UTF16_BE: &[u8] = b"\xFE\xFF";

/// The encoding of a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextEncoding {
    Utf8,
    Utf8Bom,
    Utf16Le,
    Utf16Be,
}

/// Decoded bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DecodedText {
    Text(String, TextEncoding),
    /// Text in an unknown encoding: readable, but not to be written back.
    Lossy(String),
    Binary,
}

/// Git looks for a zero byte in as many bytes to detect a binary file.
pub(crate) const SNIFFED_BYTES: usize = 8000;

/// Whether an editor would open it: images and programs have zero bytes at their beginning.
pub(crate) fn may_be_text(bytes: &[u8]) -> bool {
    !bytes.iter().take(SNIFFED_BYTES).any(|&byte| byte == 0)
}

/// Decodes bytes as text.
pub(crate) fn decode_text(bytes: Vec<u8>) -> DecodedText {
    if let Some(rest) = bytes.strip_prefix(BOM_UTF8) {
        return match std::str::from_utf8(rest) {
            Ok(text) => DecodedText::Text(text.to_owned(), TextEncoding::Utf8Bom),
            Err(_) => DecodedText::Lossy(String::from_utf8_lossy(rest).into_owned()),
        };
    }
    if let Some(rest) = bytes.strip_prefix(BOM_UTF16_LE) {
        return decode_utf16(rest, TextEncoding::Utf16Le);
    }
    if let Some(rest) = bytes.strip_prefix(BOM_UTF16_BE) {
        return decode_utf16(rest, TextEncoding::Utf16Be);
    }
    if !may_be_text(&bytes) {
        return DecodedText::Binary;
    }
    match String::from_utf8(bytes) {
        Ok(text) => DecodedText::Text(text, TextEncoding::Utf8),
        Err(error) => DecodedText::Lossy(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

fn decode_utf16(bytes: &[u8], encoding: TextEncoding) -> DecodedText {
    let (pairs, remainder) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|&pair| match encoding {
        TextEncoding::Utf16Be => u16::from_be_bytes(pair),
        TextEncoding::Utf16Le | TextEncoding::Utf8 | TextEncoding::Utf8Bom => u16::from_le_bytes(pair),
    });
    let units: Vec<u16> = units.collect();
    match String::from_utf16(&units) {
        Ok(text) if remainder.is_empty() => DecodedText::Text(text, encoding),
        Ok(_) | Err(_) => DecodedText::Lossy(String::from_utf16_lossy(&units)),
    }
}

/// Encodes text in the file's encoding.
pub(crate) fn encode_text(text: &str, encoding: TextEncoding) -> Vec<u8> {
    match encoding {
        TextEncoding::Utf8 => text.as_bytes().to_vec(),
        TextEncoding::Utf8Bom => [BOM_UTF8, text.as_bytes()].concat(),
        TextEncoding::Utf16Le => {
            BOM_UTF16_LE.iter().copied().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
        }
        TextEncoding::Utf16Be => {
            BOM_UTF16_BE.iter().copied().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect()
        }
    }
}

/// Numbers lines as `cat -n` does.
pub(crate) fn number_lines<'a>(lines: impl Iterator<Item = &'a str>, first: usize) -> String {
    let rows = lines.zip(first..).map(|(line, number)| format!("{number:>6}\t{line}\n"));
    rows.collect()
}

/// Truncates a long line, with a note.
pub(crate) fn truncate_line(line: &str, chars_max: usize) -> String {
    match line.char_indices().nth(chars_max) {
        None => line.to_owned(),
        Some((at, _)) => line_too_long(&line[..at], line.chars().count()),
    }
}
