//! What a person pointed at, in words a model can act on. Knows addresses, opens nothing.

use std::fmt::Write as _;

use crate::{IMAGE_TYPES, escape_hidden};

/// The media type of an image whose sender does not say which kind it is.
pub const ANY_IMAGE: &str = "image/*";

/// How the names of images end that models take.
const IMAGE_ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// Spells a link as one line: a file by its path and its lines, everything else by its address.
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
    let mut spelled = if is_nameless { format!("[{path}]") } else { format!("[{shown}]({path})") };
    // Writing to a string cannot fail.
    let _ = match lines {
        Some((first, last)) if first == last => write!(spelled, " (line {first})"),
        Some((first, last)) => write!(spelled, " (lines {first} to {last})"),
        None => Ok(()),
    };
    spelled
}

/// Reads a `file:` address: its path, and its lines where the fragment or the query names some.
pub fn parse_file_link(uri: &str) -> Option<(String, Option<(u64, u64)>)> {
    let (address, fragment) = match uri.split_once('#') {
        Some((address, fragment)) => (address, Some(fragment)),
        None => (uri, None),
    };
    let path = address.strip_prefix("file:")?;
    let path = match path.strip_prefix("//") {
        // What stands before the path is a host: none, or this one.
        Some(path) => path.strip_prefix("localhost").unwrap_or(path),
        None => path,
    };
    // A question mark may be part of a name that nobody encoded; a query names something.
    let (path, query) = match path.rsplit_once('?') {
        Some((path, query)) if query.contains('=') => (path, Some(query)),
        _ => (path, None),
    };
    let path = path.starts_with('/').then(|| percent_decode(path))?;
    let named = query.into_iter().flat_map(|query| query.split('&')).find_map(parse_line_range);
    Some((path?, fragment.and_then(parse_line_range).or(named)))
}

/// Whether a link leads to an image on the web: by the media type that its sender gave, else by how its path ends.
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
            let ending = address.split_once('/').and_then(|(_, path)| path.rsplit_once('.'));
            ending.is_some_and(|(_, ending)| {
                IMAGE_ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known))
            })
        }
    }
}

/// Reads `L10`, `L10:20`, `L10-20`, `L10-L20`, `L10C5-L20C3`, `10-20`, `line=10` or `lines=10-20`.
fn parse_line_range(range: &str) -> Option<(u64, u64)> {
    let range = ["lines=", "line="].iter().find_map(|key| range.strip_prefix(key)).unwrap_or(range);
    let (first, last) = range.split_once([':', '-', ',']).unwrap_or((range, range));
    let (first, last) = (parse_line_number(first)?, parse_line_number(last)?);
    (first > 0 && first <= last).then_some((first, last))
}

/// Reads a line with an `L` before it or none, and without the column behind it.
fn parse_line_number(text: &str) -> Option<u64> {
    let text = text.strip_prefix(['L', 'l']).unwrap_or(text);
    let number = text.split_once(['C', 'c']).map_or(text, |(number, _)| number);
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?
}

/// Takes percent signs apart; `None` when they do not spell a text.
fn percent_decode(path: &str) -> Option<String> {
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
