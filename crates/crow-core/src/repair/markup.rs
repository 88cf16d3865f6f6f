//! Markup around an object that does not change its meaning: fences, tags, tokens of a model's format. Prose is not:
//! an object in a sentence is no call.

/// The words in tags and tokens of calls, of any format: `<tool_call>`, `<|tool▁call▁begin|>`, `[TOOL_CALLS]`,
/// `<seed:function_call>`. A tag with any other word may change the meaning.
const CALL_WORDS: [&str; 72] = [
    "action",
    "antml",
    "arg",
    "args",
    "argument",
    "arguments",
    "assistant",
    "available",
    "begin",
    "bos",
    "call",
    "calling",
    "calls",
    "channel",
    "code",
    "commentary",
    "constrain",
    "content",
    "dsml",
    "end",
    "endoftext",
    "endofturn",
    "eom",
    "eos",
    "eot",
    "function",
    "functioncall",
    "functioncalls",
    "functions",
    "glm",
    "header",
    "hermes",
    "id",
    "im",
    "input",
    "inst",
    "invoke",
    "ipython",
    "json",
    "key",
    "kimi",
    "longcat",
    "message",
    "minimax",
    "name",
    "of",
    "openai",
    "param",
    "parameter",
    "parameters",
    "params",
    "plugin",
    "python",
    "qwen",
    "request",
    "s",
    "section",
    "seed",
    "sentence",
    "sep",
    "start",
    "tag",
    "text",
    "tool",
    "toolcall",
    "toolcalls",
    "tools",
    "tooluse",
    "turn",
    "use",
    "value",
    "xai",
];

/// Attributes of such tags.
const ATTRIBUTES: [&str; 6] = ["call_id", "id", "index", "name", "string", "type"];

/// Info strings of code fences.
const LANGUAGES: [&str; 20] = [
    "bash",
    "console",
    "javascript",
    "js",
    "json5",
    "jsonc",
    "jsonl",
    "jsx",
    "plain",
    "plaintext",
    "py",
    "python",
    "sh",
    "shell",
    "text",
    "ts",
    "txt",
    "typescript",
    "xml",
    "yaml",
];

/// Punctuation that models leave around an object.
const SIGNS: &str = "()]},;:=.`'\"";

/// The name of the format, with or without a fence.
const FORMAT: &str = "json";

/// Whether a text consists of markup.
pub(super) fn is_markup(text: &str) -> bool {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(is_blank);
        let Some(first) = rest.chars().next() else { return true };
        let after = match first {
            '`' if rest.starts_with("```") => after_fence(&rest[3..]),
            '<' => rest[1..].split_once('>').filter(|(tag, _)| is_tag(tag)).map(|(_, after)| after),
            '[' => rest[1..].split_once(']').filter(|(mark, _)| is_mark(mark)).map(|(_, after)| after),
            'j' | 'J' => after_format(rest),
            _ => SIGNS.contains(first).then(|| &rest[first.len_utf8()..]),
        };
        match after {
            Some(after) => rest = after,
            None => return false,
        }
    }
}

/// Skips the info string of a fence, which is alone on its line unless it is the format.
fn after_fence(text: &str) -> Option<&str> {
    let is_of_language = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '+');
    let after = text.trim_start_matches(is_of_language);
    let language = text[..text.len() - after.len()].to_ascii_lowercase();
    let is_known = LANGUAGES.contains(&language.as_str()) || is_call_name(&language);
    let is_alone = after.is_empty() || after.trim_start_matches([' ', '\t', '\r']).starts_with('\n');
    if language.is_empty() || (is_known && is_alone) { Some(after) } else { after_format(text) }
}

fn after_format(text: &str) -> Option<&str> {
    let (word, after) = text.split_at_checked(FORMAT.len())?;
    let ends = !after.starts_with(|char: char| char.is_alphanumeric() || char == '_');
    (word.eq_ignore_ascii_case(FORMAT) && ends).then_some(after)
}

/// Whether this is the content of a call's tag.
fn is_tag(tag: &str) -> bool {
    let tag = tag.trim_end_matches('/');
    let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
    let name = name.trim_start_matches('/').to_lowercase();
    // `<function=terminal>` names the tool.
    let (name, tool) = name.split_once('=').unwrap_or((&name, ""));
    let is_of_name = |char: char| char.is_alphanumeric() || "_-./|:".contains(char);
    is_call_name(name)
        && tool.chars().all(is_of_name)
        && attributes.split_whitespace().all(|attribute| {
            attribute.split_once('=').is_some_and(|(name, value)| {
                ATTRIBUTES.contains(&name)
                    && value.len() > 1
                    && value.starts_with('"')
                    && value.ends_with('"')
            })
        })
}

/// Whether this is the content of a bracketed token such as `[TOOL_CALLS]`.
fn is_mark(mark: &str) -> bool {
    let mark = mark.trim_start_matches('/');
    !mark.contains(|char: char| char.is_lowercase()) && is_call_name(&mark.to_lowercase())
}

/// Whether a lower-case name consists of words of calls.
fn is_call_name(name: &str) -> bool {
    let mut words =
        name.split(|char: char| "_-.:|▁｜".contains(char)).filter(|word| !word.is_empty()).peekable();
    words.peek().is_some() && words.all(|word| CALL_WORDS.binary_search(&word).is_ok())
}

/// Whether a character is white space or a byte order mark.
pub(super) fn is_blank(char: char) -> bool {
    char.is_whitespace() || char == '\u{feff}'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_words_are_sorted() {
        assert!(CALL_WORDS.is_sorted());
    }

    #[test]
    fn tags_and_tokens_of_calls_are_markup() {
        for text in [
            "<tool_call>",
            "</tool_call>",
            "<tools>",
            "<function_calls>\n<invoke name=\"terminal\">",
            "<invoke name=\"read\">",
            "<minimax:tool_call>",
            "<seed:tool_call>",
            "<function=terminal>",
            "<tool name=\"x\" id=\"1\"/>",
            "<|tool▁call▁begin|>",
            "<｜tool▁calls▁end｜>",
            "<｜DSML｜invoke name=\"x\">",
            "<|python_tag|>",
            "<|im_end|>",
            "</s>",
            "<|eot_id|>",
            "<|tool_calls_section_begin|>",
            "<|tool_call_argument_begin|>",
            "<longcat_tool_call>",
            "<arguments>",
            "[TOOL_CALLS]",
            "[/INST]",
            "[TOOL_REQUEST]",
            "```json",
            "```\n",
            "```tool_call\n",
            "```JSON {",
            "json\n",
        ] {
            assert!(is_markup(text.trim_end_matches('{')), "{text:?}");
        }
    }

    #[test]
    fn other_tags_are_no_markup() {
        for text in [
            "<example>",
            "<think>",
            "<note>",
            "<never>",
            "<draft>",
            "<dont_call>",
            "<not:tool_call>",
            "<cancelled_tool_call>",
            "<quote>",
            "<b>",
            "<p>",
            "<user>",
            "<tool_result>",
            "<previous_call>",
            "<|example|>",
            "<|not_a_call|>",
            "<tool_call status=\"cancelled\">",
            "<tool_call cancelled>",
            "<invoke name=\"do not run\">",
            "<function=do not>",
            "<>",
            "</>",
            "<||>",
            "[NOT]",
            "[EXAMPLE]",
            "[DRAFT]",
            "[tool_calls]",
            "[]x",
            "```example\n",
            "```diff\n",
            "```wrong ",
            "```python x",
        ] {
            assert!(!is_markup(text), "{text:?}");
        }
    }
}
