//! The front matter of a text, between two lines of `---`. It is often not valid YAML, so that a colon in a
//! description is accepted. Does not interpret the fields.

/// A text with its front matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontMatter<'a> {
    fields: Vec<(&'a str, String)>,
    /// The text after the front matter; all of it if there is none.
    pub body: &'a str,
}

const FENCE: &str = "---";

impl<'a> FrontMatter<'a> {
    /// Splits a text into front matter and body.
    pub fn parse(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match split_fields(text) {
            Some((fields, body)) => Self { fields: read_fields(fields), body },
            None => Self { fields: Vec::new(), body: text },
        }
    }

    /// Returns the value of a field, if it is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }
}

fn split_fields(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != FENCE {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == FENCE {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// The style of a YAML block scalar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockStyle {
    Folded,
    Literal,
}

fn read_fields(text: &str) -> Vec<(&str, String)> {
    let mut fields = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((key, value)) = line.split_once(':').filter(|(key, _)| is_key(key)) else { continue };
        let value = value.trim();
        let block = match value.trim_end_matches(['+', '-']) {
            "|" => Some(BlockStyle::Literal),
            ">" => Some(BlockStyle::Folded),
            _ => None,
        };
        let mut content = if block.is_some() { String::new() } else { value.to_owned() };
        while let Some(continuation) =
            lines.next_if(|line| line.trim().is_empty() || line.starts_with([' ', '\t']))
        {
            if !content.is_empty() {
                content.push(if block == Some(BlockStyle::Literal) { '\n' } else { ' ' });
            }
            content.push_str(continuation.trim());
        }
        let content = content.trim();
        fields.push((key, if block.is_some() { content.to_owned() } else { unquote_value(content) }));
    }
    fields
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_'))
}

fn unquote_value(text: &str) -> String {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(inside) = inside('\'') {
        return inside.replace("''", "'");
    }
    let Some(inside) = inside('"') else { return text.to_owned() };
    let mut plain = String::with_capacity(inside.len());
    let mut chars = inside.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('n') => plain.push('\n'),
                Some(escaped) => plain.push(escaped),
                None => plain.push('\\'),
            },
            char => plain.push(char),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
