//! Renders links for the model. Handles URIs only, opens nothing.

use std::fmt::Write as _;

use crate::{IMAGE_TYPES, escape_hidden};

/// The media type of an image of unspecified format.
pub const ANY_IMAGE: &str = "image/*";

/// File extensions of supported images.
const IMAGE_ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// Renders a link as one line: a file by path and lines, anything else by its URI.
pub fn format_link(uri: &str, name: &str) -> String {
    let shown = escape_hidden(name);
    let Some((path, lines)) = parse_file_link(uri) else {
        let uri = escape_hidden(uri);
        return if name.is_empty() || shown == uri {
            format!("[{uri}]")
        } else {
            format!("[{shown}]({uri})")
        };
    };
    let is_nameless = name.is_empty() || name == path || name == uri;
    let path = escape_hidden(&path);
    let mut rendered = if is_nameless { format!("[{path}]") } else { format!("[{shown}]({path})") };
    // Writing to a string cannot fail.
    let _ = match lines {
        Some((first, last)) if first == last => write!(rendered, " (line {first})"),
        Some((first, last)) => write!(rendered, " (lines {first} to {last})"),
        None => Ok(()),
    };
    rendered
}

/// Parses a `file:` URI: its path, and the lines in its fragment or query.
pub fn parse_file_link(uri: &str) -> Option<(String, Option<(u64, u64)>)> {
    let (address, fragment) = match uri.split_once('#') {
        Some((address, fragment)) => (address, Some(fragment)),
        None => (uri, None),
    };
    let path = address.strip_prefix("file:")?;
    let path = match path.strip_prefix("//") {
        // The path may follow a host: empty, or this machine.
        Some(path) => path.strip_prefix("localhost").unwrap_or(path),
        None => path,
    };
    // A question mark may be an unencoded part of a name; a query has a `=`.
    let (path, query) = match path.rsplit_once('?') {
        Some((path, query)) if query.contains('=') => (path, Some(query)),
        _ => (path, None),
    };
    let path = path.starts_with('/').then(|| percent_decode(path))?;
    let query_lines = query.into_iter().flat_map(|query| query.split('&')).find_map(parse_line_range);
    Some((path?, fragment.and_then(parse_line_range).or(query_lines)))
}

/// Whether a link is an image on the web: by the sender's media type, otherwise by its extension.
pub fn is_web_image(uri: &str, mime: Option<&str>) -> bool {
    let has_scheme =
        |scheme: &&str| uri.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    let Some(scheme) = ["https://", "http://"].iter().find(|scheme| has_scheme(scheme)) else { return false };
    let mime = mime.and_then(|mime| mime.split(';').next()).map(|mime| mime.trim().to_ascii_lowercase());
    match mime.as_deref() {
        Some(mime) if !mime.is_empty() => {
            IMAGE_TYPES.contains(&mime) || matches!(mime, "image/jpg" | ANY_IMAGE)
        }
        Some(_) | None => {
            let address = uri[scheme.len()..].split(['?', '#']).next().unwrap_or_default();
            let extension = address.split_once('/').and_then(|(_, path)| path.rsplit_once('.'));
            extension.is_some_and(|(_, extension)| {
                IMAGE_ENDINGS.iter().any(|known| extension.eq_ignore_ascii_case(known))
            })
        }
    }
}

/// Parses `L10`, `L10:20`, `L10-20`, `L10-L20`, `L10C5-L20C3`, `10-20`, `line=10` or `lines=10-20`.
fn parse_line_range(range: &str) -> Option<(u64, u64)> {
    let range = ["lines=", "line="].iter().find_map(|key| range.strip_prefix(key)).unwrap_or(range);
    let (first, last) = range.split_once([':', '-', ',']).unwrap_or((range, range));
    let (first, last) = (parse_line_number(first)?, parse_line_number(last)?);
    (first > 0 && first <= last).then_some((first, last))
}

/// Parses a line number with an optional `L` before it and column after it.
fn parse_line_number(text: &str) -> Option<u64> {
    let text = text.strip_prefix(['L', 'l']).unwrap_or(text);
    let number = text.split_once(['C', 'c']).map_or(text, |(number, _)| number);
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?
}

/// Decodes percent-encoding; `None` if the result is not UTF-8.
pub fn percent_decode(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
