//! Concurrent, queued, cancelled and rejected turns.

use expect_test::expect;

use super::check;

#[test]
fn session_failure_does_not_affect_another_session() {
    check(
        r#"
        model: text "I begin" | hold | text " and end."
        model: status 401 {"error":{"message":"bad key"}}
        hello
        new A
        new B
        prompt a A first
        heard I begin
        prompt b B second
        got b
        release
        got a
        "#,
        &expect![[r#"
            < text[msg-1] I begin
            < title second
            b ! -32603 provider_auth: `fake` needs a key (401): bad key; configure its `api_key`
            < text[msg-1]  and end.
            < title first
            a = end_turn
            model saw "second"
        "#]],
    );
}

#[test]
fn prompts_wait_their_turn() {
    check(
        r#"
        model: text "One." | hold
        model: text "Two."
        model: text "Three."
        hello
        new A
        prompt one A first
        heard One.
        prompt two A second
        prompt three A third
        release
        got one
        got two
        got three
        "#,
        &expect![[r#"
            < text[msg-1] One.
            < title first
            one = end_turn
            < text[msg-3] Two.
            two = end_turn
            < text[msg-5] Three.
            three = end_turn
            model saw "first"
            model saw "second"
            model saw "third"
        "#]],
    );
}

#[test]
fn too_many_prompts_are_refused() {
    let waiting: String = (1..=16).map(|n| format!("prompt p{n} A wait\n")).collect();
    check(
        &format!(
            r#"
            model: text "One." | hold
            hello
            new A
            prompt one A first
            heard One.
            {waiting}
            prompt last A one more
            got last
            tell session/cancel {{"sessionId":"$A"}}
            got one
            {}
            "#,
            (1..=16).map(|n| format!("got p{n}\n")).collect::<String>(),
        ),
        &expect![[r#"
            < text[msg-1] One.
            last ! -32602 invalid_value: too many prompts wait in this session; cancel the turn or wait for it
            < title first
            one = cancelled
            p1 = cancelled
            p2 = cancelled
            p3 = cancelled
            p4 = cancelled
            p5 = cancelled
            p6 = cancelled
            p7 = cancelled
            p8 = cancelled
            p9 = cancelled
            p10 = cancelled
            p11 = cancelled
            p12 = cancelled
            p13 = cancelled
            p14 = cancelled
            p15 = cancelled
            p16 = cancelled
            model saw "first"
        "#]],
    );
}

#[test]
fn cancel_drops_queued_prompts() {
    check(
        r#"
        model: text "One." | hold
        model: text "Fresh."
        hello
        new A
        prompt one A first
        heard One.
        prompt two A second
        prompt three A third
        tell session/cancel {"sessionId":"$A"}
        got two
        got three
        got one
        tell session/cancel {"sessionId":"$A"}
        prompt four A fourth
        got four
        "#,
        &expect![[r#"
            < text[msg-1] One.
            two = cancelled
            three = cancelled
            < title first
            one = cancelled
            < text[msg-3] Fresh.
            four = end_turn
            model saw "first"
            model saw "fourth"
        "#]],
    );
}

#[test]
fn permission_answers_that_are_malformed_allow_nothing() {
    check(
        r#"
        model: call terminal {"command":"touch ran"}
        model: call terminal {"command":"touch ran"}
        model: call terminal {"command":"touch ran"}
        model: call terminal {"command":"touch ran"}
        model: call terminal {"command":"env -u A ls"}
        model: text "Nothing ran."
        hello
        new A
        answer null
        answer maybe
        answer error
        answer cancelled
        prompt one A try
        got one
        "#,
        &expect![[r#"
            < call call-1-0 terminal "`touch ran`" pending {"command":"touch ran"}
            ? `touch ran` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> null
            < call call-1-0 failed "not run: it needs permission, and the user could not be asked (the client's answer cannot be read)"
            < call call-3-0 terminal "`touch ran`" pending {"command":"touch ran"}
            ? `touch ran` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> maybe
            < call call-3-0 failed "not run: the user rejected it"
            < call call-5-0 terminal "`touch ran`" pending {"command":"touch ran"}
            ? `touch ran` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> error
            < call call-5-0 failed "not run: it needs permission, and the user could not be asked (the dialog broke)"
            < call call-7-0 terminal "`touch ran`" pending {"command":"touch ran"}
            ? `touch ran` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> cancelled
            < call call-7-0 failed "not run: the question was closed without an answer"
            < call call-9-0 terminal "`env -u A ls`" pending {"command":"env -u A ls"}
            ? `env -u A ls` [allow_once, allow_always, reject_once, reject_and_tell] -> allow_once
            < call call-9-0 in_progress
            < call call-9-0 completed "(no output)"
            < text[msg-11] Nothing ran.
            < title try
            one = end_turn
            model saw "try"
            model saw "not run: it needs permission, and the user could not be asked (the client's answer cannot be read)"
            model saw "not run: the user rejected it"
            model saw "not run: it needs permission, and the user could not be asked (the dialog broke)"
            model saw "not run: the question was closed without an answer"
            model saw "(no output)"
        "#]],
    );
}

#[test]
fn commands_and_their_lookalikes() {
    check(
        r#"
        model: text "Let me see."
        hello
        new A
        prompt help A /help
        got help
        prompt hosts A /etc/hosts is broken
        got hosts
        prompt mode A /mode yolo
        got mode
        prompt model A /model
        got model
        prompt stop A /stop
        got stop
        "#,
        &expect![[r#"
            < text[note-1] - `/help`: Show the commands⏎- `/context`: Show what takes how much of the context⏎- `/compact` `what to pay attention to, or undo for the last one`: Compact the context⏎- `/clear`: Clear the context; the session keeps its messages⏎- `/mode` `ask | accept-edits | plan | auto`: Show or change how much Crow may do on its own⏎- `/model` `name of a configured model`: Show or change the model⏎- `/sessions`: Show the newest sessions of this directory⏎- `/tasks`: Show the tasks of this session and their results⏎- `/stop`: Stop the running turn and the tasks⏎- `/trust` `yes | session | no`: Show what this repository would run, and trust it or not⏎- `/permissions` `remove N | clear`: Show and remove stored permissions⏎- `/undo` `N | --dry-run | skip`: Undo the file changes of the last turn, or of the last N⏎- `/speckit.constitution` `principles to adopt or change`: Set or amend the project's ground rules⏎- `/speckit.specify` `what to build and why`: Start a feature: turn an idea into a specification⏎- `/speckit.clarify` `area to focus on (optional)`: Clarify open questions of the current spec, one at a time⏎- `/speckit.plan` `stack and technical limits`: Design how the current spec will be built⏎- `/speckit.checklist` `topic, e.g. security`: Create a checklist to review the requirements⏎- `/speckit.tasks` `preferences for the breakdown (optional)`: Break the plan into ordered tasks⏎- `/speckit.analyze` `focus (optional)`: Cross-check spec, plan and tasks without changing files⏎- `/speckit.implement` `phase, story or task ids (optional)`: Work through the task list⏎- `/speckit.converge` `focus (optional)`: Compare the code with the spec and add missing tasks⏎- `/speckit.taskstoissues` `phase, story or task ids (optional)`: Create a GitHub issue for each open task, with your GitHub MCP server⏎- `/speckit` `status | use 002 | init | templates | doctor`: Show the state of the Spec Kit workflow⏎
            help = end_turn
            < text[msg-1] Let me see.
            < title /etc/hosts is broken
            hosts = end_turn
            < text[note-2] There is no mode yolo; the modes are: ask | accept-edits | plan | auto.⏎
            mode = end_turn
            < text[note-3] The model is scripted. Configured: scripted.⏎
            model = end_turn
            < text[note-4] Stopped.⏎
            stop = end_turn
            model saw "/etc/hosts is broken"
        "#]],
    );
}

#[test]
fn plan_mode_writes_nothing() {
    check(
        r#"
        model: call write {"file_path":"a.txt","content":"x"}
        model: call terminal {"command":"touch b.txt"}
        model: call glob {"pattern":"*.txt"}
        model: text "Only a plan."
        hello
        new A
        prompt mode A /mode plan
        got mode
        prompt one A write it
        got one
        "#,
        &expect![[r#"
            < mode plan
            < config_option_update
            < text[note-1] Mode plan, model scripted.⏎
            mode = end_turn
            < call call-1-0 write "Write a.txt" pending {"file_path":"a.txt","content":"x"}
            < call call-1-0 failed "not run: plan mode only reads; switch the mode to change or run something"
            < call call-3-0 terminal "`touch b.txt`" pending {"command":"touch b.txt"}
            < call call-3-0 failed "not run: plan mode only reads; switch the mode to change or run something"
            < call call-5-0 glob "Find `*.txt`" pending {"pattern":"*.txt"}
            < call call-5-0 in_progress
            < call call-5-0 completed "no files match\n"
            < text[msg-7] Only a plan.
            < title write it
            one = end_turn
            model saw "write it"
            model saw "not run: plan mode only reads; switch the mode to change or run something"
            model saw "not run: plan mode only reads; switch the mode to change or run something"
            model saw "no files match\n"
        "#]],
    );
}

#[test]
fn option_change_applies_to_the_running_turn() {
    check(
        r#"
        model: call terminal {"command":"env -u A true"}
        model: text "Next" | hold | call terminal {"command":"env -u B true"}
        model: text "Both."
        hello
        new A
        prompt one A run both
        heard Next
        ask mode session/set_config_option {"sessionId":"$A","configId":"mode","value":"auto"}
        got mode
        release
        got one
        "#,
        &expect![[r#"
            < call call-1-0 terminal "`env -u A true`" pending {"command":"env -u A true"}
            ? `env -u A true` [allow_once, allow_always, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            < call call-1-0 completed "(no output)"
            < text[msg-3] Next
            mode = ok "mode" "auto" "model" "scripted" "thought_level" "default"
            < mode auto
            < config_option_update
            < call call-3-0 terminal "`env -u B true`" pending {"command":"env -u B true"}
            < call call-3-0 in_progress
            < call call-3-0 completed "(no output)"
            < text[msg-6] Both.
            < title run both
            one = end_turn
            model saw "run both"
            model saw "(no output)"
            model saw "(no output)"
            model saw "<resource uri=\"crow:environment\">\nPermission mode: auto (does everything without asking)\n</resource>"
        "#]],
    );
}

#[test]
fn stop_ends_the_running_turn() {
    check(
        r#"
        model: text "I begin" | hold
        hello
        new A
        prompt one A go on
        heard I begin
        prompt stop A /stop
        got one
        got stop
        "#,
        &expect![[r#"
            < text[msg-1] I begin
            < text[note-1] Stopped.⏎
            < title go on
            one = cancelled
            stop = end_turn
            model saw "go on"
        "#]],
    );
}
