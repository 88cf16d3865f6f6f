//! The fields before a text, between two lines of `---`. Reads what people write there, which is often no YAML:
//! a colon in a description breaks nothing. Must never know what the fields are for.

/// A text and the fields before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontMatter<'a> {
    fields: Vec<(&'a str, String)>,
    /// What follows the fields; the whole text when there are none.
    pub body: &'a str,
}

const FENCE: &str = "---";

impl<'a> FrontMatter<'a> {
    /// Takes a text apart.
    pub fn parse(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match split_fields(text) {
            Some((fields, body)) => Self { fields: read_fields(fields), body },
            None => Self { fields: Vec::new(), body: text },
        }
    }

    /// Finds a field that says something.
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

/// How the lines below a key belong together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockStyle {
    Folded,
    Kept,
}

fn read_fields(text: &str) -> Vec<(&str, String)> {
    let mut fields = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((key, value)) = line.split_once(':').filter(|(key, _)| is_key(key)) else { continue };
        let value = value.trim();
        let block = match value.trim_end_matches(['+', '-']) {
            "|" => Some(BlockStyle::Kept),
            ">" => Some(BlockStyle::Folded),
            _ => None,
        };
        let mut said = if block.is_some() { String::new() } else { value.to_owned() };
        while let Some(more) = lines.next_if(|line| line.trim().is_empty() || line.starts_with([' ', '\t'])) {
            if !said.is_empty() {
                said.push(if block == Some(BlockStyle::Kept) { '\n' } else { ' ' });
            }
            said.push_str(more.trim());
        }
        let said = said.trim();
        fields.push((key, if block.is_some() { said.to_owned() } else { unquote_value(said) }));
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
