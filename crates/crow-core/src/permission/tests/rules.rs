//! Rules: how they are read, and what those about tools, servers and paths do.

use super::*;
use crate::permission::rules;

#[track_caller]
fn check_rule(text: &str, expected: &Expect) {
    let read = match PermissionRule::parse(text) {
        Ok(rule) => match rule.covers {
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
fn rules_are_read() {
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
fn a_rule_that_cannot_be_meant_says_so() {
    check_rule("", &expect!["it names nothing"]);
    check_rule("tool()", &expect!["it names nothing"]);
    check_rule("path()", &expect!["it names nothing"]);
    check_rule("''", &expect!["it names nothing"]);
    check_rule("git status *", &expect!["it covers whatever follows its words as it is; leave out the *"]);
    check_rule("npm run test:*", &expect!["it covers whatever follows its words as it is; leave out the *"]);
    check_rule("rm $X", &expect!["it must be plain words; put what the shell replaces in single quotes"]);
    check_rule(
        "git status; ls",
        &expect!["it must be the words that a command begins with; it is not one command"],
    );
    check_rule(
        "A=b ls",
        &expect!["it must be the words that a command begins with; it is more than a program and its words"],
    );
    check_rule(
        "ls > x",
        &expect!["it must be the words that a command begins with; it is more than a program and its words"],
    );
    check_rule(
        "echo 'x",
        &expect!["it must be the words that a command begins with; it has a quote that does not end"],
    );
    check_rule(
        "bash(ls)",
        &expect!["it must be the words that a command begins with; it has a parenthesis after a word"],
    );
    check_rule("path(../x)", &expect!["it must name a path below the session's folders, or a whole path"]);
    check_rule("path(~/x)", &expect!["it must name a path below the session's folders, or a whole path"]);
    check_rule(
        "path(a[)",
        &expect!["it has a pattern that is not a glob: unclosed character class; missing ']'"],
    );
}

fn writes(path: &str) -> ToolAccess {
    ToolAccess::Writes(vec![path.to_owned()])
}

#[test]
fn a_path_rule_frees_and_forbids_edits() {
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
fn a_tool_rule_frees_and_forbids_a_tool() {
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
fn reading_and_running_are_tools_as_well() {
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
fn tools_of_servers_are_judged_by_server_and_name() {
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
fn an_always_is_about_one_tool_of_a_server() {
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
fn keys_ask_wherever_they_are() {
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
        let verdict = judged(Mode::Auto, &PermissionRules::default(), &writes(&path), &granted);
        assert!(asks_each_time(&verdict), "{name}: {verdict:?}");
        let verdict =
            judged(Mode::Ask, &PermissionRules::default(), &ToolAccess::Reads(vec![path]), &granted);
        assert!(asks_each_time(&verdict), "{name}: {verdict:?}");
    }
    for name in
        [".env.example", ".env.sample", ".environment", "env", "id_rsa.pub", "ssh/config", ".aws/cli", "pem"]
    {
        let verdict =
            judged(Mode::Ask, &PermissionRules::default(), &writes(&format!("/w/a/{name}")), &granted);
        assert_eq!(verdict, PermissionDecision::Allow, "{name}");
    }
}

#[test]
fn files_that_other_programs_run_ask_although_edits_are_free() {
    check_ruled(
        "allow: git status",
        &writes("/w/a/.vscode/tasks.json"),
        &GrantSet::default(),
        &expect![[r#"
        ask: ask, each time: other programs run what is in /w/a/.vscode/tasks.json by themselves
        accept-edits: ask, each time: other programs run what is in /w/a/.vscode/tasks.json by themselves
        plan: deny: plan mode only reads; switch the mode to change or run something
        auto: allow
    "#]],
    );
    check_ruled(
        "allow: git status",
        &runs("git status > .envrc"),
        &GrantSet::default(),
        &expect![[r#"
            ask: ask, each time: other programs run what is in /w/a/.envrc by themselves
            accept-edits: ask, each time: other programs run what is in /w/a/.envrc by themselves
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
        ask: ask, each time: other programs run what is in /w/a/.husky/pre-commit by themselves
        accept-edits: ask, each time: other programs run what is in /w/a/.husky/pre-commit by themselves
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
fn an_always_covers_each_command_of_a_line_as_it_is() {
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
        judged(Mode::Ask, &PermissionRules::default(), &line, &grants)
    else {
        unreachable!("it asks");
    };
    grants.extend(offer.session.into_iter().filter(|grant| matches!(grant, Grant::Run(_))));
    let verdict = |line: &str| {
        judged(Mode::Ask, &PermissionRules::default(), &runs(line), &grants) == PermissionDecision::Allow
    };
    assert!(verdict("npm test"));
    assert!(verdict("'npm'  test; tee out"));
    assert!(verdict("timeout 60 cargo test"));
    assert!(!verdict("npm test --watch"));
    assert!(!verdict("FOO=1 npm test"));
    assert!(!verdict("npm test > x"));
    assert!(!verdict("cargo test && rm x"));
}

#[test]
fn an_always_is_about_the_input_and_the_folder_too() {
    let always = |line: &str| {
        let verdict = judged(Mode::Ask, &PermissionRules::default(), &runs(line), &GrantSet::default());
        let PermissionDecision::Ask { offer, .. } = verdict else { unreachable!("{line}: {verdict:?}") };
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
        let verdict = |line: &str| judged(Mode::Ask, &PermissionRules::default(), &runs(line), &grants);
        assert_eq!(verdict(granted), PermissionDecision::Allow, "{granted}");
        assert_eq!(verdict(allowed), PermissionDecision::Allow, "{allowed}");
        assert!(matches!(verdict(asked), PermissionDecision::Ask { .. }), "{asked}");
    }
}

#[test]
fn a_rule_that_costs_too_much_says_so() {
    check_rule(
        &format!("path({})", "{".repeat(3000)),
        &expect!["it has a pattern that has braces within braces beyond 8 levels"],
    );
    check_rule(&format!("path({})", "{".repeat(5000)), &expect!["it is longer than 4096 bytes"]);
    check_rule(&"x".repeat(5000), &expect!["it is longer than 4096 bytes"]);
}
