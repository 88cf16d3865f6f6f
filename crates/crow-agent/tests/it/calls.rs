//! Calls: permission, diffs, and calls written as text.

use expect_test::expect;

use crate::check;

#[test]
fn edit_shows_a_diff_and_asks_first() {
    check(
        r#"
        file a.txt "one\ntwo\n"
        model: call read {"file_path":"a.txt"}
        model: call edit {"file_path":"a.txt","old_string":"two","new_string":"three"}
        model: text "Done."
        > prompt make two three
        > end
        "#,
        &expect![[r#"
            > prompt make two three
            < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\tone\n     2\ttwo\n"
            < call call-3-0 edit "Edit a.txt" pending {"file_path":"a.txt","old_string":"two","new_string":"three"}
            ? Edit a.txt [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-3-0 in_progress
            < call call-3-0 completed diff $HOME/project/a.txt "one\ntwo\n" -> "one\nthree\n"
            < text[msg-5] Done.
            < title make two three
            = end_turn
            model saw user: "make two three"
            model saw assistant: read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tone\n     2\ttwo\n"
            model saw assistant: edit("{\"file_path\":\"a.txt\",\"old_string\":\"two\",\"new_string\":\"three\"}")
            model saw tool: "edited a.txt in 1 place; match: exact\n     1\tone\n     2\tthree\n"
        "#]],
    );
}

#[test]
fn patch_asks_once_and_shows_all_its_files() {
    check(
        r#"
        file a.txt "one\ntwo\n"
        model: call terminal {"command":"apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.txt\n-two\n+2\n*** Add File: b.txt\n+b\n*** End Patch\nEOF"}
        model: call apply_patch {"input":"*** Begin Patch\n*** Delete File: b.txt\n*** End Patch"}
        model: text "Done."
        model: call apply_patch {"input":"*** Begin Patch\n*** Delete File: a.txt\n*** End Patch"}
        model: text "Not now."
        > prompt make two 2
        > end
        > mode plan
        > prompt and now
        > end
        "#,
        &expect![[r#"
            > prompt make two 2
            < call call-1-0 apply_patch "Edit 2 files" pending {"input":"*** Begin Patch\n*** Update File: a.txt\n-two\n+2\n*** Add File: b.txt\n+b\n*** End Patch"}
            ? Edit 2 files [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            < call call-1-0 completed diff $HOME/project/a.txt "one\ntwo\n" -> "one\n2\n" diff $HOME/project/b.txt null -> "b\n"
            < call call-3-0 apply_patch "Delete b.txt" pending {"input":"*** Begin Patch\n*** Delete File: b.txt\n*** End Patch"}
            ? Delete b.txt [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-3-0 in_progress
            < call call-3-0 completed diff $HOME/project/b.txt "b\n" -> ""
            < text[msg-5] Done.
            < title make two 2
            = end_turn
            > mode plan
            = set
            > prompt and now
            < mode plan
            < config_option_update
            < call call-7-0 apply_patch "Delete a.txt" pending {"input":"*** Begin Patch\n*** Delete File: a.txt\n*** End Patch"}
            < call call-7-0 failed "not run: plan mode only reads; switch the mode to change or run something"
            < text[msg-9] Not now.
            = end_turn
            model saw user: "make two 2"
            model saw assistant: apply_patch("{\"input\":\"*** Begin Patch\\n*** Update File: a.txt\\n-two\\n+2\\n*** Add File: b.txt\\n+b\\n*** End Patch\"}")
            model saw tool: "Success. Updated the following files:\nM a.txt\nA b.txt"
            model saw assistant: apply_patch("{\"input\":\"*** Begin Patch\\n*** Delete File: b.txt\\n*** End Patch\"}")
            model saw tool: "Success. Updated the following files:\nD b.txt"
            model saw assistant: "Done."
            model saw user: "<resource uri=\"crow:environment\">\nPermission mode: plan (reads only)\n</resource>\nand now"
            model saw assistant: apply_patch("{\"input\":\"*** Begin Patch\\n*** Delete File: a.txt\\n*** End Patch\"}")
            model saw tool: "not run: plan mode only reads; switch the mode to change or run something"
        "#]],
    );
}

#[test]
fn rejected_call_does_not_run() {
    check(
        r#"
        model: call write {"file_path":"a.txt","content":"x"}
        model: text "Then not."
        > answer reject_once
        > prompt write a file
        > end
        "#,
        &expect![[r#"
            > prompt write a file
            < call call-1-0 write "Write a.txt" pending {"file_path":"a.txt","content":"x"}
            ? Write a.txt [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> reject_once
            < call call-1-0 failed "not run: the user rejected it"
            < text[msg-3] Then not.
            < title write a file
            = end_turn
            model saw user: "write a file"
            model saw assistant: write("{\"file_path\":\"a.txt\",\"content\":\"x\"}")
            model saw tool: "not run: the user rejected it"
        "#]],
    );
}

#[test]
fn files_are_not_read_before_approval() {
    check(
        r#"
        client: {"fs": {"readTextFile": true, "writeTextFile": true}}
        model: call read {"file_path":"/etc/hostname"} | call edit {"file_path":"/etc/hosts","old_string":"a","new_string":"b"} | call write {"file_path":"/etc/hosts","content":"b"}
        model: text "Then not."
        > answer reject_once
        > answer reject_once
        > answer reject_once
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 read "Read /etc/hostname" pending {"file_path":"/etc/hostname"}
            < call call-1-1 edit "Edit /etc/hosts" pending {"file_path":"/etc/hosts","old_string":"a","new_string":"b"}
            < call call-1-2 write "Write /etc/hosts" pending {"file_path":"/etc/hosts","content":"b"}
            ? Read /etc/hostname [allow_once, allow_always, reject_once, reject_and_tell] -> reject_once
            < call call-1-0 failed "not run: the user rejected it"
            ? Edit /etc/hosts [allow_once, allow_always, reject_once, reject_and_tell] -> reject_once
            < call call-1-1 failed "not run: the user rejected it"
            ? Write /etc/hosts [allow_once, allow_always, reject_once, reject_and_tell] -> reject_once
            < call call-1-2 failed "not run: the user rejected it"
            < text[msg-5] Then not.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: read("{\"file_path\":\"/etc/hostname\"}") edit("{\"file_path\":\"/etc/hosts\",\"old_string\":\"a\",\"new_string\":\"b\"}") write("{\"file_path\":\"/etc/hosts\",\"content\":\"b\"}")
            model saw tool: "not run: the user rejected it"
            model saw tool: "not run: the user rejected it"
            model saw tool: "not run: the user rejected it"
        "#]],
    );
}

#[test]
fn text_call_is_evaluated_like_any_other() {
    check(
        r#"
        model: text "<tool_call>\n{\"name\": \"write\", \"arguments\": {\"file_path\": \"a.txt\", \"content\": \"x\"}}\n</tool_call>"
        model: text "Then not."
        > answer reject_once
        > prompt write a file
        > end
        "#,
        &expect![[r#"
            > prompt write a file
            < thought[] `scripted` wrote its call of `write` as text; it is run as a tool call (`tool_calls: native` disables that)⏎
            < call call-1-0 write "Write a.txt" pending {"file_path":"a.txt","content":"x"}
            ? Write a.txt [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> reject_once
            < call call-1-0 failed "not run: the user rejected it"
            < text[msg-3] Then not.
            < title write a file
            = end_turn
            model saw user: "write a file"
            model saw assistant: write("{\"file_path\":\"a.txt\",\"content\":\"x\"}")
            model saw tool: "not run: the user rejected it"
        "#]],
    );
}

#[test]
fn model_configured_for_text_calls() {
    check(
        r#"
        model-config: tool_calls: text
        file a.txt "apples\n"
        model: text "I look.\n<tool_call>\n{\"name\": \"read\", \"arguments\"" | text ": {\"file_path\": \"a.txt\"}}\n</tool_call>"
        model: text "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"offset\": 1}}\n</tool_call>"
        model: text "It says apples."
        model: text "You are welcome."
        > prompt what does a.txt say?
        > end
        > prompt thanks
        > end
        "#,
        &expect![[r#"
            > prompt what does a.txt say?
            < text[msg-1] I look.⏎
            < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\tapples\n"
            < call call-3-0 read "read" pending {"offset":1}
            < call call-3-0 in_progress
            < call call-3-0 failed "`read` was not run: `file_path` is missing; it must be a string"
            < text[msg-5] It says apples.
            < title what does a.txt say?
            = end_turn
            > prompt thanks
            < text[msg-7] You are welcome.
            = end_turn
            model saw user: "what does a.txt say?"
            model saw assistant: "I look.\n<tool_call>\n{\"name\":\"read\",\"arguments\":{\"file_path\":\"a.txt\"}}\n</tool_call>"
            model saw user: "<tool_result name=\"read\">\n     1\tapples\n</tool_result>"
            model saw assistant: "<tool_call>\n{\"name\":\"read\",\"arguments\":{\"offset\":1}}\n</tool_call>"
            model saw user: "<tool_result name=\"read\">\n`read` was not run: `file_path` is missing; it must be a string\n</tool_result>"
            model saw assistant: "It says apples."
            model saw user: "thanks"
        "#]],
    );
}

#[test]
fn reasoning_in_text_is_a_thought() {
    check(
        r#"
        model: text "<think>\nThey " | text "greet.</th" | text "ink>\n\nHello."
        model: text "Bye."
        > prompt hello
        > end
        > prompt bye
        > end
        "#,
        &expect![[r#"
            > prompt hello
            < thought[msg-1-thought] They greet.
            < text[msg-1] Hello.
            < title hello
            = end_turn
            > prompt bye
            < text[msg-3] Bye.
            = end_turn
            model saw user: "hello"
            model saw assistant: "Hello."
            model saw user: "bye"
        "#]],
    );
}

#[test]
fn session_grant_covers_the_next_edit() {
    check(
        r#"
        file a.txt "one\n"
        model: call read {"file_path":"a.txt"}
        model: call edit {"file_path":"a.txt","old_string":"one","new_string":"two"}
        model: call edit {"file_path":"a.txt","old_string":"two","new_string":"three"}
        model: text "Twice."
        > answer allow_always
        > prompt edit twice
        > end
        "#,
        &expect![[r#"
            > prompt edit twice
            < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\tone\n"
            < call call-3-0 edit "Edit a.txt" pending {"file_path":"a.txt","old_string":"one","new_string":"two"}
            ? Edit a.txt [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_always
            < call call-3-0 in_progress
            < call call-3-0 completed diff $HOME/project/a.txt "one\n" -> "two\n"
            < call call-5-0 edit "Edit a.txt" pending {"file_path":"a.txt","old_string":"two","new_string":"three"}
            < call call-5-0 in_progress
            < call call-5-0 completed diff $HOME/project/a.txt "two\n" -> "three\n"
            < text[msg-7] Twice.
            < title edit twice
            = end_turn
            model saw user: "edit twice"
            model saw assistant: read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tone\n"
            model saw assistant: edit("{\"file_path\":\"a.txt\",\"old_string\":\"one\",\"new_string\":\"two\"}")
            model saw tool: "edited a.txt in 1 place; match: exact\n     1\ttwo\n"
            model saw assistant: edit("{\"file_path\":\"a.txt\",\"old_string\":\"two\",\"new_string\":\"three\"}")
            model saw tool: "edited a.txt in 1 place; match: exact\n     1\tthree\n"
        "#]],
    );
}

#[test]
fn plan_mode_rejects_an_edit_without_a_question() {
    check(
        r#"
        model: call write {"file_path":"a.txt","content":"x"}
        model: text "I only plan."
        > mode plan
        > prompt write a file
        > end
        "#,
        &expect![[r#"
            > mode plan
            = set
            > prompt write a file
            < mode plan
            < config_option_update
            < call call-1-0 write "Write a.txt" pending {"file_path":"a.txt","content":"x"}
            < call call-1-0 failed "not run: plan mode only reads; switch the mode to change or run something"
            < text[msg-3] I only plan.
            < title write a file
            = end_turn
            model saw user: "write a file"
            model saw assistant: write("{\"file_path\":\"a.txt\",\"content\":\"x\"}")
            model saw tool: "not run: plan mode only reads; switch the mode to change or run something"
        "#]],
    );
}

#[test]
fn protected_file_asks_in_auto_mode() {
    check(
        r#"
        model: call write {"file_path":".git/config","content":"x"}
        model: text "Not that."
        > mode auto
        > answer reject_once
        > prompt change it
        > end
        "#,
        &expect![[r#"
            > mode auto
            = set
            > prompt change it
            < mode auto
            < config_option_update
            < call call-1-0 write "Write .git/config" pending {"file_path":".git/config","content":"x"}
            ? Write .git/config [allow_once, reject_once, reject_and_tell] -> reject_once
            < call call-1-0 failed "not run: the user rejected it"
            < text[msg-3] Not that.
            < title change it
            = end_turn
            model saw user: "change it"
            model saw assistant: write("{\"file_path\":\".git/config\",\"content\":\"x\"}")
            model saw tool: "not run: the user rejected it"
        "#]],
    );
}

#[test]
fn instructions_after_a_rejection_end_the_turn() {
    check(
        r#"
        model: call write {"file_path":"a.txt","content":"x"}
        model: text "I write b instead."
        > answer reject_and_tell
        > prompt write a file
        > end
        > prompt write b.txt instead
        > end
        "#,
        &expect![[r#"
            > prompt write a file
            < call call-1-0 write "Write a.txt" pending {"file_path":"a.txt","content":"x"}
            ? Write a.txt [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> reject_and_tell
            < call call-1-0 failed "not run: the user rejected it and will give instructions with the next message"
            < title write a file
            = end_turn
            > prompt write b.txt instead
            < text[msg-4] I write b instead.
            = end_turn
            model saw user: "write a file"
            model saw assistant: write("{\"file_path\":\"a.txt\",\"content\":\"x\"}")
            model saw tool: "not run: the user rejected it and will give instructions with the next message"
            model saw user: "write b.txt instead"
        "#]],
    );
}

#[test]
fn unknown_tool_and_invalid_arguments_are_answered() {
    check(
        r#"
        model: call raed {"file_path":"a.txt"} | call read {"path_of_file":"a.txt"}
        model: text "I see."
        > prompt read
        > end
        "#,
        &expect![[r#"
            > prompt read
            < call call-1-0 raed "raed" pending {"file_path":"a.txt"}
            < call call-1-1 read "read" pending {"path_of_file":"a.txt"}
            < call call-1-0 in_progress
            < call call-1-0 failed "there is no tool `raed`; the tools are: read, write, edit, terminal, grep, glob, web_search, web_fetch, todo, query_memory, query_session, task, task_send, task"
            < call call-1-1 in_progress
            < call call-1-1 failed "`read` was not run: there is no parameter `path_of_file` (it takes `file_path`, `offset`, `limit`)"
            < text[msg-4] I see.
            < title read
            = end_turn
            model saw user: "read"
            model saw assistant: raed("{\"file_path\":\"a.txt\"}") read("{\"path_of_file\":\"a.txt\"}")
            model saw tool: "there is no tool `raed`; the tools are: read, write, edit, terminal, grep, glob, web_search, web_fetch, todo, query_memo"
            model saw tool: "`read` was not run: there is no parameter `path_of_file` (it takes `file_path`, `offset`, `limit`)"
        "#]],
    );
}

#[test]
fn edit_that_cannot_be_made_shows_an_unread_file() {
    check(
        r#"
        file a.txt "one\n"
        model: call edit {"file_path":"a.txt","old_string":"1","new_string":"2"}
        model: text "I see."
        > prompt edit
        > end
        "#,
        &expect![[r#"
            > prompt edit
            < call call-1-0 edit "Edit a.txt" pending {"file_path":"a.txt","old_string":"1","new_string":"2"}
            < call call-1-0 failed "could not edit a.txt: it was not read in this session; nothing was changed, and these are its lines:\n     1\tone\n(make the edit with an old text that is copied f"
            < text[msg-3] I see.
            < title edit
            = end_turn
            model saw user: "edit"
            model saw assistant: edit("{\"file_path\":\"a.txt\",\"old_string\":\"1\",\"new_string\":\"2\"}")
            model saw tool: "could not edit a.txt: it was not read in this session; nothing was changed, and these are its lines:\n     1\tone\n(make th"
        "#]],
    );
}
