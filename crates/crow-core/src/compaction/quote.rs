//! Keeps a text within the tag around it: output that closes it could go on in somebody else's name.

use std::borrow::Cow;

/// Breaks whatever would end `tag`; all else stays as it is.
pub(crate) fn escape_closing_tag<'a>(tag: &str, text: &'a str) -> Cow<'a, str> {
    let mut quoted = String::new();
    let mut done = 0;
    for (place, _) in text.match_indices("</") {
        let name = text[place + 2..].trim_start();
        if name.get(..tag.len()).is_some_and(|name| name.eq_ignore_ascii_case(tag)) {
            quoted.push_str(&text[done..place]);
            quoted.push_str("<\\/");
            done = place + 2;
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    quoted.push_str(&text[done..]);
    Cow::Owned(quoted)
}
