//! Parses the text behind a prompt's command as the prompt's arguments. Pure.

use serde_json::{Map, Value};

use super::super::prompt_list::PromptParameter;

/// Parsed arguments.
#[derive(Debug, PartialEq)]
pub(super) struct ParsedPromptArgs<'a> {
    pub(super) values: Map<String, Value>,
    /// Text behind the command of a prompt without parameters.
    pub(super) trailing_text: &'a str,
}

/// Parses a single argument up to the end of the text, and several as words in order or as `name=value`. `Err` has the
/// names of missing arguments.
pub(super) fn parse_arguments<'a>(
    arguments: &[PromptParameter],
    text: &'a str,
) -> Result<ParsedPromptArgs<'a>, Vec<String>> {
    let text = text.trim();
    let mut values = Map::new();
    match arguments {
        [] => return Ok(ParsedPromptArgs { values, trailing_text: text }),
        [only] => {
            let named = text.strip_prefix(&only.name).and_then(|value| value.strip_prefix('='));
            let value = named.map_or_else(|| text.to_owned(), |value| split_words(value).join(" "));
            if !value.is_empty() {
                values.insert(only.name.clone(), Value::String(value));
            }
        }
        many => assign_in_order(many, text, &mut values),
    }
    let missing =
        arguments.iter().filter(|argument| argument.is_required && !values.contains_key(&argument.name));
    let missing: Vec<String> = missing.map(|argument| argument.name.clone()).collect();
    if missing.is_empty() { Ok(ParsedPromptArgs { values, trailing_text: "" }) } else { Err(missing) }
}

fn assign_in_order(arguments: &[PromptParameter], text: &str, values: &mut Map<String, Value>) {
    let mut positional = Vec::new();
    for word in split_words(text) {
        let named = word.split_once('=');
        match named.filter(|(name, _)| arguments.iter().any(|argument| argument.name == *name)) {
            Some((name, value)) => drop(values.insert(name.to_owned(), value.into())),
            None => positional.push(word),
        }
    }
    let mut positional = positional.into_iter();
    let unset: Vec<&PromptParameter> =
        arguments.iter().filter(|argument| !values.contains_key(&argument.name)).collect();
    let mut last = None;
    for argument in unset {
        let Some(word) = positional.next() else { break };
        values.insert(argument.name.clone(), word.into());
        last = Some(&argument.name);
    }
    // Further words belong to the last argument.
    if let Some(Value::String(value)) = last.and_then(|last| values.get_mut(last)) {
        for word in positional {
            value.push(' ');
            value.push_str(&word);
        }
    }
}

/// Splits words as a shell does, with quotes and backslashes; an open quote ends with the text.
fn split_words(text: &str) -> Vec<String> {
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

    /// Parameters are words, optional ones in brackets.
    #[track_caller]
    fn assert_parsed(arguments: &str, text: &str, expected: &str) {
        let arguments: Vec<PromptParameter> = arguments
            .split_whitespace()
            .map(|word| PromptParameter {
                name: word.trim_matches(['[', ']']).to_owned(),
                is_required: !word.starts_with('['),
            })
            .collect();
        let parsed = match parse_arguments(&arguments, text) {
            Ok(parsed) => format!("{} {}", Value::Object(parsed.values), parsed.trailing_text),
            Err(missing) => format!("missing {}", missing.join(" ")),
        };
        assert_eq!(parsed.trim_end(), expected, "{text:?}");
    }

    #[test]
    fn single_argument_takes_the_whole_text() {
        assert_parsed("", "", "{}");
        assert_parsed("", " and more ", "{} and more");
        assert_parsed("topic", " the \"whole\" line ", r#"{"topic":"the \"whole\" line"}"#);
        assert_parsed("topic", "topic='a b'", r#"{"topic":"a b"}"#);
        assert_parsed("topic", "", "missing topic");
        assert_parsed("[topic]", " ", "{}");
    }

    #[test]
    fn several_arguments_are_words_or_named() {
        assert_parsed("a b", "1 2", r#"{"a":"1","b":"2"}"#);
        assert_parsed("a b", "\"1 2\" it\\'s' fine'", r#"{"a":"1 2","b":"it's fine"}"#);
        assert_parsed("a b", "b=2 1", r#"{"b":"2","a":"1"}"#);
        assert_parsed("a b [c]", "1 c='x y'", "missing b");
        assert_parsed("a b [c]", "", "missing a b");
        assert_parsed("a [b]", "1 and so on", r#"{"a":"1","b":"and so on"}"#);
        assert_parsed("a b", "x=1 \"open", r#"{"a":"x=1","b":"open"}"#);
        assert_parsed("a b", "'' 2", r#"{"a":"","b":"2"}"#);
        assert_parsed("a b", "a=1 b=2 3", r#"{"a":"1","b":"2"}"#);
    }
}
