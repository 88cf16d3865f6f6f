//! Parsing of rules, and the effect of rules on tools, servers and paths.

use super::*;
use crate::permission::rules;

#[track_caller]
fn check_rule(text: &str, expected: &Expect) {
    let read = match PermissionRule::parse(text) {
        Ok(rule) => match rule.subject {
            rules::RuleSubject::Tool(name) => format!("tool {name}"),
            rules::RuleSubject::Server(name) => format!("server {name}"),
            rules::RuleSubject::Path(_) => "path".to_owned(),
            rules::RuleSubject::Command(words) => format!("command {words:?}"),
        },
        Err(bad) => format!("it {bad}"),
    };
    expected.assert_eq(&read);
}

#[test]
fn rules_are_parsed() {
    check_rule("tool(terminal)", &expect!["tool terminal"]);
    check_rule(" mcp( docs ) ", &expect!["server docs"]);
    check_rule("path(src/**)", &expect!["path"]);
    check_rule("git  status", &expect![[r#"command ["git", "status"]"#]]);
    check_rule("git commit -m 'a b'", &expect![[r#"command ["git", "commit", "-m", "a b"]"#]]);
    check_rule("timeout 5 cargo test", &expect![[r#"command ["timeout", "5", "cargo", "test"]"#]]);
    check_rule("find . -exec", &expect![[r#"command ["find", ".", "-exec"]"#]]);
    check_rule("tool", &expect![[r#"command ["tool"]"#]]);
}

#[test]
fn invalid_rule_is_rejected_with_reason() {
    check_rule("", &expect!["it names nothing"]);
    check_rule("tool()", &expect!["it names nothing"]);
    check_rule("path()", &expect!["it names nothing"]);
    check_rule("''", &expect!["it names nothing"]);
    check_rule("git status *", &expect!["it already covers any further words; remove the *"]);
    check_rule("npm run test:*", &expect!["it already covers any further words; remove the *"]);
    check_rule(
        "rm $X",
        &expect!["it must be literal words; put text that the shell expands in single quotes"],
    );
    check_rule("git status; ls", &expect!["it must be the first words of a command; it is not one command"]);
    check_rule(
        "A=b ls",
        &expect!["it must be the first words of a command; it is more than a program and its words"],
    );
    check_rule(
        "ls > x",
        &expect!["it must be the first words of a command; it is more than a program and its words"],
    );
    check_rule(
        "echo 'x",
        &expect!["it must be the first words of a command; it has a quote that does not end"],
    );
    check_rule(
        "bash(ls)",
        &expect!["it must be the first words of a command; it has a parenthesis after a word"],
    );
    check_rule(
        "path(../x)",
        &expect!["it must be a path below the session's directories, or an absolute path"],
    );
    check_rule(
        "path(~/x)",
        &expect!["it must be a path below the session's directories, or an absolute path"],
    );
    check_rule(
        "path(a[)",
        &expect!["it has a pattern that is not a glob: unclosed character class; missing ']'"],
    );
}

fn writes(path: &str) -> ToolAccess {
    ToolAccess::Writes(vec![path.to_owned()])
}

#[test]
fn path_rule_allows_and_denies_edits() {
    let none = GrantSet::default();
    let rules = "allow: path(docs/**), path(/tmp/out/*); deny: path(docs/secret/**), path(**/*.lock)";
    check_ruled(
        rules,
        &writes("/w/b/docs/x/y.md"),
        &none,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: deny: plan mode only reads; switch the mode to change or run something
        auto: allow
    "#]],
    );
    check_ruled(
        rules,
        &writes("/tmp/out/x"),
        &none,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: deny: plan mode only reads; switch the mode to change or run something
        auto: allow
    "#]],
    );
    check_ruled(
        rules,
        &writes("/tmp/out/x/y"),
        &none,
        &expect![[r#"
            ask: ask, session: writing /tmp/out/x/y
            accept-edits: ask, session: writing /tmp/out/x/y
            plan: deny: plan mode only reads; switch the mode to change or run something
            auto: allow
        "#]],
    );
    check_ruled(
        rules,
        &writes("/w/a/docs/secret/x"),
        &none,
        &expect![[r#"
        ask: deny: the configuration forbids it with the deny rule `path(docs/secret/**)`
        accept-edits: deny: the configuration forbids it with the deny rule `path(docs/secret/**)`
        plan: deny: the configuration forbids it with the deny rule `path(docs/secret/**)`
        auto: deny: the configuration forbids it with the deny rule `path(docs/secret/**)`
    "#]],
    );
    check_ruled(
        rules,
        &writes("/w/a/x/Cargo.LOCK"),
        &none,
        &expect![[r#"
        ask: deny: the configuration forbids it with the deny rule `path(**/*.lock)`
        accept-edits: deny: the configuration forbids it with the deny rule `path(**/*.lock)`
        plan: deny: the configuration forbids it with the deny rule `path(**/*.lock)`
        auto: deny: the configuration forbids it with the deny rule `path(**/*.lock)`
    "#]],
    );
    check_ruled(
        rules,
        &writes("/w/a/docs/.env"),
        &none,
        &expect![[r#"
        ask: ask, each time: /w/a/docs/.env is protected
        accept-edits: ask, each time: /w/a/docs/.env is protected
        plan: deny: plan mode only reads; switch the mode to change or run something
        auto: ask, each time: /w/a/docs/.env is protected
    "#]],
    );
}

#[test]
fn tool_rule_allows_and_denies_tool() {
    let none = GrantSet::default();
    check_ruled(
        "allow: tool(write)",
        &writes("/etc/hosts"),
        &none,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: deny: plan mode only reads; switch the mode to change or run something
        auto: allow
    "#]],
    );
    check_ruled(
        "allow: tool(write)",
        &writes("/w/a/.git/config"),
        &none,
        &expect![[r#"
        ask: ask, each time: /w/a/.git/config is protected
        accept-edits: ask, each time: /w/a/.git/config is protected
        plan: deny: plan mode only reads; switch the mode to change or run something
        auto: ask, each time: /w/a/.git/config is protected
    "#]],
    );
    check_ruled(
        "deny: tool(write)",
        &writes("/w/a/x"),
        &none,
        &expect![[r#"
        ask: deny: the configuration forbids it with the deny rule `tool(write)`
        accept-edits: deny: the configuration forbids it with the deny rule `tool(write)`
        plan: deny: the configuration forbids it with the deny rule `tool(write)`
        auto: deny: the configuration forbids it with the deny rule `tool(write)`
    "#]],
    );
}

#[test]
fn tool_rule_covers_reading_and_running() {
    let none = GrantSet::default();
    check_ruled(
        "allow: tool(read)",
        &ToolAccess::Reads(vec!["/etc/hosts".into()]),
        &none,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: allow
        auto: allow
    "#]],
    );
    check_ruled(
        "allow: tool(read)",
        &ToolAccess::Reads(vec!["/w/a/.env".into()]),
        &none,
        &expect![[r#"
        ask: ask, each time: /w/a/.env is protected
        accept-edits: ask, each time: /w/a/.env is protected
        plan: ask, each time: /w/a/.env is protected
        auto: allow
    "#]],
    );
    check_ruled(
        "deny: tool(terminal)",
        &runs("ls"),
        &none,
        &expect![[r#"
        ask: deny: the configuration forbids it with the deny rule `tool(terminal)`
        accept-edits: deny: the configuration forbids it with the deny rule `tool(terminal)`
        plan: deny: the configuration forbids it with the deny rule `tool(terminal)`
        auto: deny: the configuration forbids it with the deny rule `tool(terminal)`
    "#]],
    );
    check_ruled(
        "allow: tool(terminal); deny: tool(terminal)",
        &runs("ls"),
        &none,
        &expect![[r#"
        ask: deny: the configuration forbids it with the deny rule `tool(terminal)`
        accept-edits: deny: the configuration forbids it with the deny rule `tool(terminal)`
        plan: deny: the configuration forbids it with the deny rule `tool(terminal)`
        auto: deny: the configuration forbids it with the deny rule `tool(terminal)`
    "#]],
    );
}

#[test]
fn mcp_tools_are_matched_by_server_and_name() {
    let grants = GrantSet::default();
    let call = ToolAccess::Calls { server: "docs".into(), tool: "search".into() };
    check(
        &call,
        &grants,
        &expect![[r#"
            ask: ask, both: search of the MCP server docs
            accept-edits: ask, both: search of the MCP server docs
            plan: deny: plan mode only reads; switch the mode to change or run something
            auto: allow
        "#]],
    );
    check_ruled(
        "allow: mcp(docs)",
        &call,
        &grants,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: allow
        auto: allow
    "#]],
    );
    check_ruled(
        "allow: tool(search)",
        &call,
        &grants,
        &expect![[r#"
            ask: ask, both: search of the MCP server docs
            accept-edits: ask, both: search of the MCP server docs
            plan: deny: plan mode only reads; switch the mode to change or run something
            auto: allow
        "#]],
    );
    check_ruled(
        "allow: tool(docs_search); deny: mcp(docs)",
        &call,
        &grants,
        &expect![[r#"
        ask: deny: the configuration forbids it with the deny rule `mcp(docs)`
        accept-edits: deny: the configuration forbids it with the deny rule `mcp(docs)`
        plan: deny: the configuration forbids it with the deny rule `mcp(docs)`
        auto: deny: the configuration forbids it with the deny rule `mcp(docs)`
    "#]],
    );
    check_ruled(
        "allow: mcp(other)",
        &call,
        &grants,
        &expect![[r#"
            ask: ask, both: search of the MCP server docs
            accept-edits: ask, both: search of the MCP server docs
            plan: deny: plan mode only reads; switch the mode to change or run something
            auto: allow
        "#]],
    );
}

#[test]
fn grant_covers_one_mcp_tool() {
    let mut grants = GrantSet::default();
    let call = ToolAccess::Calls { server: "docs".into(), tool: "search".into() };
    let grant = Grant::Tool { server: "docs".into(), tool: "search".into() };
    grants.add_grant(grant);
    check(
        &call,
        &grants,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: deny: plan mode only reads; switch the mode to change or run something
        auto: allow
    "#]],
    );
}

#[test]
fn keys_ask_in_every_directory() {
    let mut granted = GrantSet::default();
    granted.add_grant(Grant::Edits);
    for name in [
        ".env",
        ".env.local",
        "deep/.ENV",
        "server.pem",
        "id_ed25519",
        ".ssh/config",
        ".netrc",
        ".aws/credentials",
        ".gnupg/x",
    ] {
        let path = format!("/w/a/{name}");
        let decision = decide(Mode::Auto, &PermissionRules::default(), &writes(&path), &granted);
        assert!(asks_each_time(&decision), "{name}: {decision:?}");
        let decision =
            decide(Mode::Ask, &PermissionRules::default(), &ToolAccess::Reads(vec![path]), &granted);
        assert!(asks_each_time(&decision), "{name}: {decision:?}");
    }
    for name in
        [".env.example", ".env.sample", ".environment", "env", "id_rsa.pub", "ssh/config", ".aws/cli", "pem"]
    {
        let decision =
            decide(Mode::Ask, &PermissionRules::default(), &writes(&format!("/w/a/{name}")), &granted);
        assert_eq!(decision, PermissionDecision::Allow, "{name}");
    }
}

#[test]
fn autorun_files_ask_even_if_edits_are_free() {
    check_ruled(
        "allow: git status",
        &writes("/w/a/.vscode/tasks.json"),
        &GrantSet::default(),
        &expect![[r#"
            ask: ask, each time: other programs run /w/a/.vscode/tasks.json automatically
            accept-edits: ask, each time: other programs run /w/a/.vscode/tasks.json automatically
            plan: deny: plan mode only reads; switch the mode to change or run something
            auto: allow
        "#]],
    );
    check_ruled(
        "allow: git status",
        &runs("git status > .envrc"),
        &GrantSet::default(),
        &expect![[r#"
            ask: ask, each time: other programs run /w/a/.envrc automatically
            accept-edits: ask, each time: other programs run /w/a/.envrc automatically
            plan: deny: plan mode only reads; switch the mode to change or run something
            auto: allow
        "#]],
    );
    let mut granted = GrantSet::default();
    granted.add_grant(Grant::Edits);
    check(
        &writes("/w/a/.husky/pre-commit"),
        &granted,
        &expect![[r#"
            ask: ask, each time: other programs run /w/a/.husky/pre-commit automatically
            accept-edits: ask, each time: other programs run /w/a/.husky/pre-commit automatically
            plan: deny: plan mode only reads; switch the mode to change or run something
            auto: allow
        "#]],
    );
    check_ruled(
        "allow: path(.husky/**)",
        &writes("/w/a/.husky/pre-commit"),
        &granted,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: deny: plan mode only reads; switch the mode to change or run something
        auto: allow
    "#]],
    );
}

#[test]
fn grant_covers_exact_commands_of_line() {
    let mut grants = GrantSet::default();
    let line = runs("cargo test && npm test 2>&1 | tee out");
    check(
        &line,
        &grants,
        &expect![[r#"
            ask: ask, session: `cargo test`, `npm test`, `tee out`, `cargo test …`, `npm test …`; project: `cargo test …`, `npm test …`, edits: no rule covers `cargo test`
            accept-edits: allow
            plan: deny: plan mode only reads; switch the mode to change or run something
            auto: allow
        "#]],
    );
    let PermissionDecision::Ask { offer, .. } =
        decide(Mode::Ask, &PermissionRules::default(), &line, &grants)
    else {
        unreachable!("it asks");
    };
    grants.extend(offer.session.into_iter().filter(|grant| matches!(grant, Grant::Run(_))));
    let decision = |line: &str| {
        decide(Mode::Ask, &PermissionRules::default(), &runs(line), &grants) == PermissionDecision::Allow
    };
    assert!(decision("npm test"));
    assert!(decision("'npm'  test; tee out"));
    assert!(decision("timeout 60 cargo test"));
    assert!(!decision("npm test --watch"));
    assert!(!decision("FOO=1 npm test"));
    assert!(!decision("npm test > x"));
    assert!(!decision("cargo test && rm x"));
}

#[test]
fn grant_includes_input_and_directory() {
    let always = |line: &str| {
        let decision = decide(Mode::Ask, &PermissionRules::default(), &runs(line), &GrantSet::default());
        let PermissionDecision::Ask { offer, .. } = decision else { unreachable!("{line}: {decision:?}") };
        let exact = offer.session.into_iter().filter(|grant| matches!(grant, Grant::Run(_)));
        exact.collect::<GrantSet>()
    };
    for (granted, allowed, asked) in [
        ("python3 - <<'E'\n1\nE", "python3 - <<X\n1\nX", "python3 - <<'E'\n2\nE"),
        ("bash <<E\nls\nE", "bash <<'E'\nls\nE", "bash <<E\nrm x\nE"),
        ("git apply <<E\na\nE", "git apply <<'X'\na\nX", "git apply <<E\nb\nE"),
        ("cd sub && make", " cd sub && make", "cd other && make"),
        ("cd sub && make", "cd sub && make\n", "make"),
        ("make", "cd /w/a && make", "cd sub && make"),
        ("rm x", "rm x; rm x", "cd /w/b && rm x"),
    ] {
        let grants = always(granted);
        let decision = |line: &str| decide(Mode::Ask, &PermissionRules::default(), &runs(line), &grants);
        assert_eq!(decision(granted), PermissionDecision::Allow, "{granted}");
        assert_eq!(decision(allowed), PermissionDecision::Allow, "{allowed}");
        assert!(matches!(decision(asked), PermissionDecision::Ask { .. }), "{asked}");
    }
}

#[test]
fn expensive_rule_is_rejected() {
    check_rule(
        &format!("path({})", "{".repeat(3000)),
        &expect!["it has a pattern that has more than 8 levels of nested braces"],
    );
    check_rule(&format!("path({})", "{".repeat(5000)), &expect!["it is longer than 4096 bytes"]);
    check_rule(&"x".repeat(5000), &expect!["it is longer than 4096 bytes"]);
}
