//! Escapes closing tags in a text: output that closes its own tag could impersonate another speaker.

use std::borrow::Cow;

/// Escapes each occurrence of the closing `tag`; the rest stays unchanged.
pub(crate) fn escape_closing_tag<'a>(tag: &str, text: &'a str) -> Cow<'a, str> {
    let mut quoted = String::new();
    let mut n_copied = 0;
    for (index, _) in text.match_indices("</") {
        let name = text[index + 2..].trim_start();
        if name.get(..tag.len()).is_some_and(|name| name.eq_ignore_ascii_case(tag)) {
            quoted.push_str(&text[n_copied..index]);
            quoted.push_str("<\\/");
            n_copied = index + 2;
        }
    }
    if n_copied == 0 {
        return Cow::Borrowed(text);
    }
    quoted.push_str(&text[n_copied..]);
    Cow::Owned(quoted)
}
