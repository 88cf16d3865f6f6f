use expect_test::{Expect, expect};

/// Loads hooks and compares them or the error.
#[track_caller]
fn check(yaml: &str, expect: Expect) {
    let text = super::loaded(yaml, "", &[("VAR", "of crow")]);
    let lines = text.lines().filter(|line| !line.starts_with("db "));
    expect.assert_eq(&lines.map(|line| format!("{line}\n")).collect::<String>());
}

#[test]
fn hooks_keep_their_order_and_their_variables() {
    check(
        "
hooks:
  PostToolUse:
    - command: cargo fmt
  PreToolUse:
    - { matcher: 'terminal|edit', command: '${VAR}/check.sh \"$CROW_PROJECT_DIR\"', timeout: 5 }
    - { matcher: '*', command: second, timeout: 600 }
  UserPromptSubmit:
    - command: |
        grep -q secret && exit 2
        exit 0
  Stop:
",
        expect![[r#"
            PostToolUse ["read", "edit", "terminal"] "cargo fmt" 60s
            PreToolUse ["edit", "terminal"] "${VAR}/check.sh \"$CROW_PROJECT_DIR\"" 5s
            PreToolUse ["read", "edit", "terminal"] "second" 600s
            UserPromptSubmit ["read", "edit", "terminal"] "grep -q secret && exit 2\nexit 0\n" 60s
        "#]],
    );
}

#[test]
fn groups_of_other_agents_are_read() {
    check(
        r#"{"hooks": {"PreToolUse": [{"matcher": "edit", "hooks": [
            {"type": "command", "command": "one"}, {"type": "command", "command": "two", "timeout": 3}]}]}}"#,
        expect![[r#"
            PreToolUse ["edit"] "one" 60s
            PreToolUse ["edit"] "two" 3s
        "#]],
    );
}

#[test]
fn events_of_other_agents_are_skipped_and_mistyped_ones_are_errors() {
    check(
        "hooks:\n  SessionStart: [{command: x}]\n",
        expect![[r#"
        warning: $DIR/config.yaml:2: hooks: unknown event SessionStart, its hooks never run; known events: PreToolUse, PostToolUse, UserPromptSubmit, Stop
    "#]],
    );
    check(
        "hooks:\n  preToolUse: [{command: x}]\n",
        expect![[r#"
        error: $DIR/config.yaml:2: hooks: unknown event preToolUse; did you mean PreToolUse?
    "#]],
    );
    check(
        "hooks:\n  PreToolUses: [{command: x}]\n",
        expect![[r#"
        error: $DIR/config.yaml:2: hooks: unknown event PreToolUses; did you mean PreToolUse?
    "#]],
    );
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[test]
fn invalid_hooks_are_errors() {
    check(
        "hooks: ./check.sh\n",
        expect![[r#"
            error: $DIR/config.yaml:1: hooks: expected a map from events to lists of hooks, found a string
        "#]],
    );
    check(
        "hooks:\n  Stop: ./check.sh\n",
        expect![[r#"
            error: $DIR/config.yaml:2: hooks.Stop: expected a list of hooks, found a string
        "#]],
    );
    check(
        "hooks:\n  Stop: [./check.sh]\n",
        expect![[r#"
            error: $DIR/config.yaml:2: hooks.Stop: expected a map with matcher and command, found a string
        "#]],
    );
    check(
        "hooks:\n  Stop:\n    - matcher: x\n",
        expect![[r#"
        error: $DIR/config.yaml:3: hooks.Stop: a hook needs a command
    "#]],
    );
    check(
        "hooks:\n  Stop: [{command: ''}]\n",
        expect![[r#"
        error: $DIR/config.yaml:2: hooks.Stop: a hook needs a command
    "#]],
    );
    check(
        "hooks:\n  Stop: [{command: [ls]}]\n",
        expect![[r#"
            error: $DIR/config.yaml:2: hooks.Stop.command: expected a string, found a list
        "#]],
    );
    check(
        "hooks:\n  Stop: [{command: ls, hooks: []}]\n",
        expect![[r#"
        error: $DIR/config.yaml:2: hooks.Stop: a hook has either a command or hooks, not both
    "#]],
    );
    check(
        "hooks:\n  PreToolUse: [{command: ls, matcher: '(edit'}]\n",
        expect![[r#"
        error: $DIR/config.yaml:2: hooks.PreToolUse.matcher: `(edit` is not a regular expression: unclosed group
    "#]],
    );
    check(
        "hooks:\n  Stop: [{command: ls, type: http}]\n",
        expect![[r#"
        error: $DIR/config.yaml:2: hooks.Stop.type: only hooks of type command are supported
    "#]],
    );
    check(
        "hooks:\n  Stop: [{command: ls, timeout: 0}]\n",
        expect![[r#"
            error: $DIR/config.yaml:2: hooks.Stop.timeout: expected a whole number of seconds from 1 to 600, found zero
        "#]],
    );
    check(
        "hooks:\n  Stop: [{command: ls, timeout: 601}]\n",
        expect![[r#"
        error: $DIR/config.yaml:2: hooks.Stop.timeout: expected a whole number of seconds from 1 to 600, found a number
    "#]],
    );
    check(
        "hooks:\n  Stop: [{command: ls, timeout: soon}]\n",
        expect![[r#"
            error: $DIR/config.yaml:2: hooks.Stop.timeout: expected a whole number of seconds from 1 to 600, found a string
        "#]],
    );
    check(
        "hooks:\n  Stop: [{command: ls, macher: edit}]\n",
        expect![[r#"
        warning: $DIR/config.yaml:2: unknown key hooks.Stop.macher; did you mean matcher?
        Stop ["read", "edit", "terminal"] "ls" 60s
    "#]],
    );
}

#[test]
fn hooks_per_event_are_limited() {
    let hooks = |n_hooks: usize| format!("hooks:\n  Stop: [{}]\n", vec!["{command: ls}"; n_hooks].join(", "));
    assert_eq!(super::loaded(&hooks(32), "", &[]).matches("\"ls\"").count(), 32);
    check(
        &format!("hooks:\n  Stop: [{}]\n", vec!["{matcher: a, hooks: []}"; 65].join(", ")),
        expect![[r#"
        error: $DIR/config.yaml:2: hooks.Stop: at most 32 hooks for one event
    "#]],
    );
    check(
        &hooks(33),
        expect![[r#"
        error: $DIR/config.yaml:2: hooks.Stop: at most 32 hooks for one event
    "#]],
    );
}
