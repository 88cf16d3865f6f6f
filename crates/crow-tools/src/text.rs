//! Bytes of a file as text and back, in the encoding they had. Pure.

use crow_core::line_too_long;

use crate::files::may_be_text;

pub(crate) const BOM_UTF8: &[u8] = b"\xEF\xBB\xBF";
pub(crate) const BOM_UTF16_LE: &[u8] = b"\xFF\xFE";
pub(crate) const BOM_UTF16_BE: &[u8] = b"\xFE\xFF";

/// How a file writes its text down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf8Bom,
    Utf16Le,
    Utf16Be,
}

/// What bytes turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    Text(String, Encoding),
    /// Text in an encoding we do not know: good enough to look at, not to write back.
    Lossy(String),
    Binary,
}

/// Reads bytes as text.
pub(crate) fn decode(bytes: Vec<u8>) -> Decoded {
    if let Some(rest) = bytes.strip_prefix(BOM_UTF8) {
        return match std::str::from_utf8(rest) {
            Ok(text) => Decoded::Text(text.to_owned(), Encoding::Utf8Bom),
            Err(_) => Decoded::Lossy(String::from_utf8_lossy(rest).into_owned()),
        };
    }
    if let Some(rest) = bytes.strip_prefix(BOM_UTF16_LE) {
        return decode_utf16(rest, Encoding::Utf16Le);
    }
    if let Some(rest) = bytes.strip_prefix(BOM_UTF16_BE) {
        return decode_utf16(rest, Encoding::Utf16Be);
    }
    if !may_be_text(&bytes) {
        return Decoded::Binary;
    }
    match String::from_utf8(bytes) {
        Ok(text) => Decoded::Text(text, Encoding::Utf8),
        Err(error) => Decoded::Lossy(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

fn decode_utf16(bytes: &[u8], encoding: Encoding) -> Decoded {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|&pair| match encoding {
        Encoding::Utf16Be => u16::from_be_bytes(pair),
        Encoding::Utf16Le | Encoding::Utf8 | Encoding::Utf8Bom => u16::from_le_bytes(pair),
    });
    let units: Vec<u16> = units.collect();
    match String::from_utf16(&units) {
        Ok(text) if odd.is_empty() => Decoded::Text(text, encoding),
        Ok(_) | Err(_) => Decoded::Lossy(String::from_utf16_lossy(&units)),
    }
}

/// Writes text down as the file had it.
pub(crate) fn encode(text: &str, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Utf8 => text.as_bytes().to_vec(),
        Encoding::Utf8Bom => [BOM_UTF8, text.as_bytes()].concat(),
        Encoding::Utf16Le => {
            BOM_UTF16_LE.iter().copied().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
        }
        Encoding::Utf16Be => {
            BOM_UTF16_BE.iter().copied().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect()
        }
    }
}

/// Numbers lines as `cat -n` does.
pub(crate) fn numbered<'a>(lines: impl Iterator<Item = &'a str>, first: usize) -> String {
    let rows = lines.zip(first..).map(|(line, number)| format!("{number:>6}\t{line}\n"));
    rows.collect()
}

/// Cuts a line that is too long to show and says so.
pub(crate) fn cut_line(line: &str, chars_max: usize) -> String {
    match line.char_indices().nth(chars_max) {
        None => line.to_owned(),
        Some((at, _)) => line_too_long(&line[..at], line.chars().count()),
    }
}
