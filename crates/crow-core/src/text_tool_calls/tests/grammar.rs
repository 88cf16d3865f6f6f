//! The formats of text tool calls.

use super::*;

/// A call of `read` in any format.
#[track_caller]
fn check_read(text: &str) {
    check(
        text,
        &expect![[r#"
            "" ("")
            Calls(["read"])
            read {"file_path":"a"}"#]],
    );
}

#[test]
fn object_is_parsed_as_call() {
    check_read(r#"{"name": "read", "arguments": {"file_path": "a"}}"#);
    check_read("\n  {\"name\":\"read\",\n\"parameters\":{\"file_path\":\"a\"}\n}\n\n");
    check_read(r#"{"arguments":{"file_path":"a"},"name":"read"}"#);
    check_read(r#"{"tool":"read","args":{"file_path":"a"}}"#);
    check_read(r#"{"tool_name":"read","input":{"file_path":"a"}}"#);
    check_read(r#"{"function":"read","parameters":{"file_path":"a"}}"#);
    check_read(r#"{"type":"function","id":1,"function":{"name":"read","arguments":{"file_path":"a"}}}"#);
    check_read(
        r#"{"id":"call_1","type":"function","function":{"arguments":"{\"file_path\":\"a\"}","name":"read"}}"#,
    );
    check_read(r#"[{"name":"read","arguments":{"file_path":"a"}}]"#);
    check_read("```json\n{\"name\": \"read\", \"arguments\": {\"file_path\": \"a\"}}\n```");
    check_read("```\n{\"name\": \"read\", \"arguments\": {\"file_path\": \"a\",}}\n```\n");
    check_read("```tool_call\r\n{\"name\": \"read\", \"arguments\": {\"file_path\": \"a\"}}\n```");
}

#[test]
fn tags_enclose_calls() {
    check_read("<tool_call>\n{\"name\": \"read\", \"arguments\": {\"file_path\": \"a\"}}\n</tool_call>");
    check_read(
        "```xml\n<tool_call>{\"name\": \"read\", \"arguments\": {\"file_path\": \"a\"}}</tool_call>\n```",
    );
    check_read("<|python_tag|>{\"name\": \"read\", \"parameters\": {\"file_path\": \"a\"}}");
    check_read("<function=read>{\"file_path\": \"a\"}</function>");
    check_read("[TOOL_CALLS][{\"name\": \"read\", \"arguments\": {\"file_path\": \"a\"}}]");
    check_read("[TOOL_CALLS] [{\"name\": \"read\", \"arguments\": {\"file_path\": \"a\"}, \"id\": \"abc\"}]");
    check_read("[TOOL_CALLS]read[ARGS]{\"file_path\": \"a\"}");
    check_read("[TOOL_CALLS]read[CALL_ID]x7A[ARGS]{\"file_path\": \"a\"}");
    check_read("[TOOL_CALLS]read{\"file_path\": \"a\"}");
    check_read(concat!(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>",
        "{\"file_path\": \"a\"}<|tool_call_end|><|tool_calls_section_end|>"
    ));
    check_read(
        "<|tool_call_begin|>read:12<|tool_call_argument_begin|>{\"file_path\":\"a\"}<|tool_call_end|>",
    );
}

#[test]
fn parameters_may_be_separate() {
    check_read(
        "<tool_call>\n<function=read>\n<parameter=file_path>\na\n</parameter>\n</function>\n</tool_call>",
    );
    check_read("<function=read><parameter=file_path>a</parameter></function>");
    // The model omitted the opening tag.
    check_read("<function=read>\n<parameter=file_path>a</parameter>\n</function>\n</tool_call>");
    check(
        "<function=read><parameter=file_path>\n 7 < 8 </x>\n</parameter><parameter=limit>\n5\n</parameter>\
         <parameter=deep>True</parameter><parameter=other>5</parameter></function>",
        &expect![[r#"
            "" ("")
            Calls(["read"])
            read {"file_path":" 7 < 8 </x>","limit":5,"deep":true,"other":"5"}"#]],
    );
    // Only the line breaks next to the tags belong to them.
    check(
        "<function=terminal><parameter=command>\n\nls\n\n</parameter></function>",
        &expect![[r#"
            "" ("")
            Calls(["terminal"])
            terminal {"command":"\nls\n"}"#]],
    );
    check(
        "<function=tasks>\n</function>",
        &expect![[r#"
            "" ("")
            Calls(["tasks"])
            tasks {}"#]],
    );
}

#[test]
fn several_calls_are_parsed_in_order() {
    let expected = expect![[r#"
        "" ("")
        Calls(["read", "terminal"])
        read {"file_path":"a"}
        terminal {"command":"ls"}"#]];
    let (read, terminal) = (
        r#"{"name":"read","arguments":{"file_path":"a"}}"#,
        r#"{"name":"terminal","arguments":{"command":"ls"}}"#,
    );
    for text in [
        format!("{read}\n{terminal}"),
        format!("{read}; {terminal}"),
        format!("[{read}, {terminal}]"),
        format!("```json\n{read}\n{terminal}\n```"),
        format!("```json\n{read}\n```\n\n```json\n{terminal}\n```"),
        format!("<tool_call>{read}</tool_call>\n<tool_call>{terminal}</tool_call>"),
        format!("<tool_call>{read}\n{terminal}</tool_call>"),
        format!("<|python_tag|>{read}; {terminal}"),
        r#"[TOOL_CALLS]read[ARGS]{"file_path":"a"}[TOOL_CALLS]terminal[ARGS]{"command":"ls"}"#.to_owned(),
        "<function=read><parameter=file_path>a</parameter></function>\
         <function=terminal><parameter=command>ls</parameter></function>"
            .to_owned(),
        "<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{\"file_path\":\"a\"}<|tool_call_end|>\
         <|tool_call_begin|>functions.terminal:1<|tool_call_argument_begin|>{\"command\":\"ls\"}<|tool_call_end|>"
            .to_owned(),
    ] {
        check(&text, &expected);
    }
}

#[test]
fn strings_are_repaired() {
    // Unescaped line breaks, invalid escapes, and ends of tags.
    check(
        "<tool_call>{\"name\":\"terminal\",\"arguments\":{\"command\":\"echo 'é\\d' \\\"</tool_call>}\\\"\n\tls\"}}</tool_call>",
        &expect![[r#"
            "" ("")
            Calls(["terminal"])
            terminal {"command":"echo 'é\\d' \"</tool_call>}\"\n\tls"}"#]],
    );
}

#[test]
fn mismatching_arguments_stay_text() {
    check(
        r#"{"name":"read","arguments":{"path":"a"}}"#,
        &expect![[r#"
            "{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}" ("")
            InvalidArguments { tool: "read", reason: "`file_path` is missing; it must be a string" }"#]],
    );
    // A model that was instructed to write calls gets the error from the tool.
    check_in(
        TextToolCallMode::ReplyEndings,
        r#"{"name":"read","arguments":{"path":"a"}}"#,
        &expect![[r#"
            "" ("")
            Calls(["read"])
            read {"path":"a"}"#]],
    );
}

#[test]
fn call_after_text_requires_instructed_model() {
    check_in(
        TextToolCallMode::ReplyEndings,
        "I look.\n\n```rust\nfn a() {}\n```\n <tool_call>\n{\"name\":\"terminal\",\"arguments\":{\"command\":\"ls\"}}\n</tool_call>\n",
        &expect![[r#"
            "I look.\n\n```rust\nfn a() {}\n```\n" ("")
            Calls(["terminal"])
            terminal {"command":"ls"}"#]],
    );
}
