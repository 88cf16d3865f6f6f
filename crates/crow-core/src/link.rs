//! What a person pointed at, in words a model can act on. Knows addresses, opens nothing.

use std::fmt::Write as _;

/// Spells a link: a file by its path and its lines, everything else by its address.
pub fn spell(uri: &str, name: &str) -> String {
    let Some((path, lines)) = file(uri) else {
        return if name.is_empty() || name == uri { format!("[{uri}]") } else { format!("[{name}]({uri})") };
    };
    let mut spelled = if name.is_empty() || name == path || name == uri {
        format!("[{path}]")
    } else {
        format!("[{name}]({path})")
    };
    // Writing to a string cannot fail.
    let _ = match lines {
        Some((first, last)) if first == last => write!(spelled, " (line {first})"),
        Some((first, last)) => write!(spelled, " (lines {first} to {last})"),
        None => Ok(()),
    };
    spelled
}

/// Reads a `file://` address: its path and, after `#L`, its lines.
pub fn file(uri: &str) -> Option<(String, Option<(u64, u64)>)> {
    let (address, fragment) = match uri.split_once('#') {
        Some((address, fragment)) => (address, Some(fragment)),
        None => (uri, None),
    };
    let path = address.strip_prefix("file://")?;
    // What stands before the path is a host: none, or this one.
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let path = path.starts_with('/').then(|| decoded(path))?;
    Some((path?, fragment.and_then(lines)))
}

/// Reads `L10`, `L10:20`, `L10-20` or `L10-L20`.
fn lines(fragment: &str) -> Option<(u64, u64)> {
    let range = fragment.strip_prefix('L')?;
    let (first, last) = range.split_once([':', '-']).unwrap_or((range, range));
    let (first, last) = (first.parse().ok()?, last.trim_start_matches('L').parse().ok()?);
    (first > 0 && first <= last).then_some((first, last))
}

/// Takes percent signs apart; `None` when they do not spell a text.
fn decoded(path: &str) -> Option<String> {
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
