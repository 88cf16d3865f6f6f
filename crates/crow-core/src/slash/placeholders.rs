//! Replaces placeholders in the text of a command by its arguments.

const ARGUMENTS: &str = "ARGUMENTS";

/// Replaces `$ARGUMENTS` by all arguments, and `$1`, `$2`, … by single words. Without a placeholder, the arguments
/// are appended.
pub fn fill_arguments(text: &str, arguments: &str) -> String {
    replace_arguments(text, arguments, Some(&split_words(arguments)))
}

/// Replaces `$ARGUMENTS` alone, in a text where `$1` may be shell code.
pub fn fill_all_arguments(text: &str, arguments: &str) -> String {
    replace_arguments(text, arguments, None)
}

fn replace_arguments(text: &str, arguments: &str, words: Option<&[String]>) -> String {
    let (mut filled, mut rest) = (String::with_capacity(text.len() + arguments.len()), text);
    let mut has_placeholder = false;
    while let Some((before, after)) = rest.split_once('$') {
        filled.push_str(before);
        let name = &after[..after.find(|char: char| !is_name_char(char)).unwrap_or(after.len())];
        let index = name.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
        rest = &after[name.len()..];
        match (words, index) {
            _ if name == ARGUMENTS => filled.push_str(arguments),
            (Some(words), Some(index)) => filled.push_str(words.get(index).map_or("", String::as_str)),
            _ => {
                filled.push('$');
                filled.push_str(name);
                continue;
            }
        }
        has_placeholder = true;
    }
    filled.push_str(rest);
    if !has_placeholder && !arguments.trim().is_empty() {
        filled.truncate(filled.trim_end().len());
        filled.push_str("\n\n");
        filled.push_str(arguments);
    }
    filled
}

fn is_name_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

/// Splits at white space outside quotes. A quote inside a word, as in `don't`, is a letter.
fn split_words(text: &str) -> Vec<String> {
    let (mut words, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let quoted = matches!(first, '"' | '\'').then(|| rest[1..].split_once(first)).flatten();
        let (word, after) = match quoted {
            Some((word, after)) if !after.starts_with(|char: char| !char.is_whitespace()) => (word, after),
            _ => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_filled(text: &str, arguments: &str, expected: &str) {
        assert_eq!(fill_arguments(text, arguments), expected, "{text:?} with {arguments:?}");
    }

    #[test]
    fn arguments_replace_placeholders() {
        check_filled("Look at $ARGUMENTS.", "a\nb", "Look at a\nb.");
        check_filled("$2 before $1, $ARGUMENTS", "one 'two words'", "two words before one, one 'two words'");
        check_filled("$1|$2|$10", "don't \"x", "don't|\"x|");
        check_filled("[$1]", "", "[]");
    }

    #[test]
    fn arguments_without_placeholder_are_appended() {
        check_filled("Review.\n", "src/a.rs", "Review.\n\nsrc/a.rs");
        check_filled("Review.\n", " ", "Review.\n");
        check_filled("It costs $5x and $HOME and $", "y", "It costs $5x and $HOME and $\n\ny");
    }

    #[test]
    fn arguments_are_not_expanded_again() {
        check_filled("$1 $ARGUMENTS", "$2 $ARGUMENTS", "$2 $2 $ARGUMENTS");
    }

    #[test]
    fn shell_code_stays_if_only_all_arguments_are_filled() {
        assert_eq!(fill_all_arguments("awk '{print $1}' $ARGUMENTS", "x y"), "awk '{print $1}' x y");
        assert_eq!(fill_all_arguments("echo $1", "x"), "echo $1\n\nx");
    }
}
