//! What follows a prompt's command, as the prompt's arguments. Pure.

use serde_json::{Map, Value};

use super::Argument;

/// What was read.
#[derive(Debug, PartialEq)]
pub(super) struct Read<'a> {
    pub(super) values: Map<String, Value>,
    /// What a prompt without arguments was given all the same.
    pub(super) rest: &'a str,
}

/// Reads one argument to the end of the text, several as words in order or as `name=value`. The other side names the
/// arguments that are missing.
pub(super) fn read<'a>(arguments: &[Argument], text: &'a str) -> Result<Read<'a>, Vec<String>> {
    let text = text.trim();
    let mut values = Map::new();
    match arguments {
        [] => return Ok(Read { values, rest: text }),
        [only] => {
            let named = text.strip_prefix(&only.name).and_then(|value| value.strip_prefix('='));
            let value = named.map_or_else(|| text.to_owned(), |value| words(value).join(" "));
            if !value.is_empty() {
                values.insert(only.name.clone(), Value::String(value));
            }
        }
        several => in_order(several, text, &mut values),
    }
    let missing =
        arguments.iter().filter(|argument| argument.is_required && !values.contains_key(&argument.name));
    let missing: Vec<String> = missing.map(|argument| argument.name.clone()).collect();
    if missing.is_empty() { Ok(Read { values, rest: "" }) } else { Err(missing) }
}

fn in_order(arguments: &[Argument], text: &str, values: &mut Map<String, Value>) {
    let mut unnamed = Vec::new();
    for word in words(text) {
        let named = word.split_once('=');
        match named.filter(|(name, _)| arguments.iter().any(|argument| argument.name == *name)) {
            Some((name, value)) => drop(values.insert(name.to_owned(), value.into())),
            None => unnamed.push(word),
        }
    }
    let mut unnamed = unnamed.into_iter();
    let free: Vec<&Argument> =
        arguments.iter().filter(|argument| !values.contains_key(&argument.name)).collect();
    let mut last = None;
    for argument in free {
        let Some(word) = unnamed.next() else { break };
        values.insert(argument.name.clone(), word.into());
        last = Some(&argument.name);
    }
    // Who writes on means the last one.
    if let Some(Value::String(value)) = last.and_then(|last| values.get_mut(last)) {
        for word in unnamed {
            value.push(' ');
            value.push_str(&word);
        }
    }
}

/// Takes words apart as a shell does, quotes and backslashes alone; a quote that stays open ends with the text.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arguments are words, the optional ones in brackets.
    #[track_caller]
    fn check(arguments: &str, text: &str, expected: &str) {
        let arguments: Vec<Argument> = arguments
            .split_whitespace()
            .map(|word| Argument {
                name: word.trim_matches(['[', ']']).to_owned(),
                is_required: !word.starts_with('['),
            })
            .collect();
        let read = match read(&arguments, text) {
            Ok(read) => format!("{} {}", Value::Object(read.values), read.rest),
            Err(missing) => format!("missing {}", missing.join(" ")),
        };
        assert_eq!(read.trim_end(), expected, "{text:?}");
    }

    #[test]
    fn none_and_one() {
        check("", "", "{}");
        check("", " and more ", "{} and more");
        check("topic", " the \"whole\" line ", r#"{"topic":"the \"whole\" line"}"#);
        check("topic", "topic='a b'", r#"{"topic":"a b"}"#);
        check("topic", "", "missing topic");
        check("[topic]", " ", "{}");
    }

    #[test]
    fn several() {
        check("a b", "1 2", r#"{"a":"1","b":"2"}"#);
        check("a b", "\"1 2\" it\\'s' fine'", r#"{"a":"1 2","b":"it's fine"}"#);
        check("a b", "b=2 1", r#"{"b":"2","a":"1"}"#);
        check("a b [c]", "1 c='x y'", "missing b");
        check("a b [c]", "", "missing a b");
        check("a [b]", "1 and so on", r#"{"a":"1","b":"and so on"}"#);
        check("a b", "x=1 \"open", r#"{"a":"x=1","b":"open"}"#);
        check("a b", "'' 2", r#"{"a":"","b":"2"}"#);
        check("a b", "a=1 b=2 3", r#"{"a":"1","b":"2"}"#);
    }
}
