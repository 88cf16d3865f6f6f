mod attacks;
mod commands;
mod everyday;
mod grammar;
mod grants;
mod holdout;
mod properties;
mod rules;
mod web;

use expect_test::{Expect, expect};

use super::*;
use crate::{PartialSandbox, SandboxMode, SandboxPolicy, SandboxSupport, ToolKind};

/// Judges a touch in every mode, one line each.
#[track_caller]
fn check(touch: &ToolAccess, grants: &GrantSet, expected: &Expect) {
    check_ruled("", touch, grants, expected);
}

/// The same under rules, written as `allow: A, B; deny: C`.
#[track_caller]
fn check_ruled(rules: &str, touch: &ToolAccess, grants: &GrantSet, expected: &Expect) {
    let rules = read_rules(rules);
    let lines = Mode::ALL.map(|mode| {
        let verdict = match judged(mode, &rules, touch, grants) {
            PermissionDecision::Allow => "allow".to_owned(),
            PermissionDecision::Ask { offer, why } => {
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                format!("ask, {}{why}", offered(&offer))
            }
            PermissionDecision::Deny(why) => format!("deny: {why}"),
        };
        format!("{}: {verdict}\n", mode.as_str())
    });
    expected.assert_eq(&lines.concat());
}

fn asks_each_time(verdict: &PermissionDecision) -> bool {
    matches!(verdict, PermissionDecision::Ask { offer, .. } if offer.session.is_empty())
}

/// Shows what a yes may be remembered as.
fn offered(offer: &GrantOffer) -> String {
    let list = |grants: &[Grant]| grants.iter().map(Grant::description).collect::<Vec<_>>().join(", ");
    match (offer.session.is_empty(), offer.project.is_empty()) {
        (true, _) => "each time".to_owned(),
        (false, true) => format!("session: {}", list(&offer.session)),
        (false, false) if offer.session == offer.project => format!("both: {}", list(&offer.session)),
        (false, false) => format!("session: {}; project: {}", list(&offer.session), list(&offer.project)),
    }
}

#[test]
fn what_needs_no_grant_was_approved_by_the_law() {
    let grants = |line: &str| GrantSet::from_iter([Grant::Run(line.to_owned())]);
    #[rustfmt::skip]
    let table = [
        ("", Mode::Auto, "make", ApprovalSource::Law),
        ("allow: make", Mode::Ask, "make", ApprovalSource::Law),
        ("allow: make", Mode::Ask, "make && echo done", ApprovalSource::Law),
        ("allow: git status", Mode::Ask, "git status; make", ApprovalSource::Person),
        ("", Mode::Ask, "make", ApprovalSource::Person),
    ];
    let roots = SessionRoots { work: vec!["/w/a".into()], ..SessionRoots::default() };
    for (rules, mode, line, expected) in table {
        let rules = read_rules(rules);
        let law = EffectivePolicy { mode, rules: &rules, roots: &roots, resolve: &resolve };
        let touch = ToolAccess::Runs(line.to_owned());
        let facets =
            ToolCallInfo { title: String::new(), kind: ToolKind::Other, locations: Vec::new(), touch };
        // A grant frees the call, and does not make it the law's.
        assert_eq!(
            evaluate_call(&law, &grants("make"), "terminal", &facets),
            PermissionDecision::Allow,
            "{line}"
        );
        assert_eq!(approval_source(&law, &grants("make"), "terminal", &facets), expected, "{rules:?} {line}");
    }
}

#[test]
fn an_always_for_the_projects_code_is_not_the_word_of_the_law() {
    #[rustfmt::skip]
    let table = [
        ("", Mode::Ask, "make test", ApprovalSource::Lasting),
        ("", Mode::AcceptEdits, "make test", ApprovalSource::Lasting),
        ("allow: make", Mode::Ask, "make test", ApprovalSource::Law),
        ("", Mode::Auto, "make test", ApprovalSource::Law),
        ("", Mode::AcceptEdits, "make check", ApprovalSource::Building),
        ("", Mode::Ask, "git fetch", ApprovalSource::Person),
    ];
    let roots = SessionRoots { work: vec!["/w/a".into()], ..SessionRoots::default() };
    let prefix = |words: &str| Grant::RunPrefix(words.split(' ').map(str::to_owned).collect());
    let grants = GrantSet::from_iter([prefix("make test"), prefix("git fetch")]);
    for (rules, mode, line, expected) in table {
        let rules = read_rules(rules);
        let law = EffectivePolicy { mode, rules: &rules, roots: &roots, resolve: &resolve };
        let touch = ToolAccess::Runs(line.to_owned());
        let facets =
            ToolCallInfo { title: String::new(), kind: ToolKind::Other, locations: Vec::new(), touch };
        assert_eq!(evaluate_call(&law, &grants, "terminal", &facets), PermissionDecision::Allow, "{line}");
        assert_eq!(
            approval_source(&law, &grants, "terminal", &facets),
            expected,
            "{mode:?} {rules:?} {line}"
        );
    }
}

#[test]
fn a_rule_covers_outputs_in_the_project_only() {
    let rules = "allow: gcc, make, javac, ruff check, dot, grep, mypy, gcc -o /opt/x, path(/opt/y)";
    let roots = SessionRoots { work: vec!["/w/a".into()], ..SessionRoots::default() };
    let free = [
        "gcc -o main main.c",
        "gcc -obuild/main main.c",
        "gcc -o /w/a/main main.c",
        "gcc -o /dev/null main.c",
        "gcc -o /opt/x main.c",
        "gcc -o /opt/y main.c",
        "gcc -O2 -MF main.d main.c",
        "javac -d out A.java",
        "dot -opicture.svg a.dot",
        "grep -o /etc/x a.txt",
    ];
    let asked = [
        "gcc -o /etc/x main.c",
        "gcc -o/etc/x main.c",
        "gcc -o ../x main.c",
        "gcc -o ~/x main.c",
        "gcc -o $X main.c",
        "gcc -E -o .envrc main.c",
        "gcc -MF /etc/x main.c",
        "gcc main.c -o .vscode/tasks.json",
        "timeout 9 gcc -o /etc/x main.c",
        "javac -d /etc A.java",
        "ruff check -o /etc/x",
        "ruff check -o=/etc/x",
        "dot -o/etc/x a.dot",
        "mypy --html-report=/etc a.py",
    ];
    let rules = read_rules(rules);
    let law = EffectivePolicy { mode: Mode::Ask, rules: &rules, roots: &roots, resolve: &resolve };
    for (lines, is_free) in [(&free[..], true), (&asked[..], false)] {
        for line in lines {
            let touch = ToolAccess::Runs((*line).to_owned());
            let facets =
                ToolCallInfo { title: String::new(), kind: ToolKind::Other, locations: Vec::new(), touch };
            let verdict = evaluate_call(&law, &GrantSet::default(), "terminal", &facets);
            assert_eq!(verdict == PermissionDecision::Allow, is_free, "{line}: {verdict:?}");
        }
    }
}

/// Judges a line in `/w/a` with what the sandbox can do, with and without a grant for it.
#[track_caller]
fn check_sandboxed(support: &SandboxSupport, line: &str, is_asked: bool) {
    let rules = read_rules("allow: make, chmod, kill, sh -c");
    let roots = SessionRoots { work: vec!["/w/a".into()], ..SessionRoots::default() };
    let sandbox = SandboxPolicy { choice: SandboxMode::Unapproved, support };
    let touch = ToolAccess::Runs(line.to_owned());
    let facets = ToolCallInfo { title: String::new(), kind: ToolKind::Other, locations: Vec::new(), touch };
    for mode in [Mode::Ask, Mode::Auto] {
        let law = EffectivePolicy { mode, rules: &rules, roots: &roots, resolve: &resolve };
        if evaluate_call(&law, &GrantSet::default(), "terminal", &facets) != PermissionDecision::Allow {
            assert_eq!(mode, Mode::Ask, "{line}");
            continue;
        }
        let verdict = evaluate_call_in_sandbox(&law, &GrantSet::default(), "terminal", &facets, &sandbox);
        let PermissionDecision::Ask { offer, why } = verdict else {
            assert!(!is_asked && verdict == PermissionDecision::Allow, "{mode:?} {line}: {verdict:?}");
            continue;
        };
        assert!(
            is_asked && why.is_some_and(|why| why.contains("permissions.sandbox: off")),
            "{mode:?} {line}"
        );
        let approval = approval_source_in_sandbox(&law, &GrantSet::default(), "terminal", &facets, &sandbox);
        assert_eq!(approval, ApprovalSource::Person);
        if !offer.session.is_empty() {
            let grants = offer.session.into_iter().collect();
            let again = evaluate_call_in_sandbox(&law, &grants, "terminal", &facets, &sandbox);
            assert_eq!(again, PermissionDecision::Allow, "an always is remembered: {line}");
        }
    }
}

#[test]
fn what_the_sandbox_cannot_hold_is_asked() {
    let none = SandboxSupport::None { reason: "no Landlock".into() };
    let partial =
        SandboxSupport::Partial(PartialSandbox { no_namespace: Some("x".into()), signals_open: true });
    for line in ["make", "make && echo done"] {
        check_sandboxed(&SandboxSupport::Full, line, false);
        check_sandboxed(&partial, line, false);
        check_sandboxed(&none, line, true);
    }
    for line in [
        "chmod 777 /home/me/x",
        "make; chmod 600 /opt/x",
        "cd .. && chmod 777 x",
        "kill 1",
        "sh -c 'kill -9 5'",
    ] {
        check_sandboxed(&SandboxSupport::Full, line, false);
        check_sandboxed(&partial, line, true);
    }
    for line in ["chmod +x script", "chmod -R 755 sub", "kill %1", "kill -9 %1"] {
        check_sandboxed(&partial, line, false);
    }
}

/// Judges as in a session in `/w/a` and `/w/b`, where `/w/a/link` leads out.
fn judged(mode: Mode, rules: &PermissionRules, touch: &ToolAccess, grants: &GrantSet) -> PermissionDecision {
    let roots = SessionRoots {
        work: vec!["/w/a".into(), "/w/b".into()],
        readable: vec!["/w/a/.crow/spill".into()],
        protected: vec!["/w/a/.crow".into(), "/home/me/.crow".into()],
        repository: vec!["/w/a/meta".into()],
    };
    let tool = match touch {
        ToolAccess::Nothing => "todo",
        ToolAccess::Reads(_) => "read",
        ToolAccess::Writes(_) => "write",
        ToolAccess::Runs(_) => "terminal",
        ToolAccess::Calls { .. } => "docs_search",
        ToolAccess::Fetches { .. } => "web_fetch",
        ToolAccess::Searches => "web_search",
    };
    let facets = ToolCallInfo {
        title: String::new(),
        kind: ToolKind::Other,
        locations: Vec::new(),
        touch: touch.clone(),
    };
    evaluate_call(&EffectivePolicy { mode, rules, roots: &roots, resolve: &resolve }, grants, tool, &facets)
}

fn resolve(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part.as_os_str().to_str().unwrap() {
            ".." => drop(resolved.pop()),
            "link" => resolved = PathBuf::from("/elsewhere"),
            part => resolved.push(part),
        }
    }
    resolved
}

fn read_rules(text: &str) -> PermissionRules {
    let mut rules = PermissionRules::default();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (kind, list) = part.split_once(':').unwrap();
        let list = list.split(',').map(|rule| PermissionRule::parse(rule).unwrap());
        match kind {
            "allow" => rules.allow.extend(list),
            "deny" => rules.deny.extend(list),
            other => unreachable!("{other}"),
        }
    }
    rules
}

fn paths(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|&path| path.to_owned()).collect()
}

fn runs(command: &str) -> ToolAccess {
    ToolAccess::Runs(command.to_owned())
}

#[test]
fn nothing_and_reads() {
    let none = GrantSet::default();
    check(
        &ToolAccess::Nothing,
        &none,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: allow
        auto: allow
    "#]],
    );
    check(
        &ToolAccess::Reads(paths(&["/w/a/x", "/w/b"])),
        &none,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: allow
        auto: allow
    "#]],
    );
    check(
        &ToolAccess::Reads(paths(&["/w/a/x", "/w/ab/x"])),
        &none,
        &expect![[r#"
            ask: ask, session: reading /w/ab/x
            accept-edits: ask, session: reading /w/ab/x
            plan: ask, session: reading /w/ab/x
            auto: allow
        "#]],
    );
}

#[test]
fn writes() {
    let none = GrantSet::default();
    let mut granted = GrantSet::default();
    granted.add_grant(Grant::Edits);
    let inside = ToolAccess::Writes(paths(&["/w/a/x"]));
    let outside = ToolAccess::Writes(paths(&["/w/a/x", "/etc/hosts"]));
    check(
        &inside,
        &none,
        &expect![[r#"
            ask: ask, both: edits
            accept-edits: allow
            plan: deny: plan mode only reads; switch the mode to change or run something
            auto: allow
        "#]],
    );
    check(
        &inside,
        &granted,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: deny: plan mode only reads; switch the mode to change or run something
        auto: allow
    "#]],
    );
    check(
        &outside,
        &granted,
        &expect![[r#"
            ask: ask, session: writing /w/a/x, writing /etc/hosts
            accept-edits: ask, session: writing /w/a/x, writing /etc/hosts
            plan: deny: plan mode only reads; switch the mode to change or run something
            auto: allow
        "#]],
    );
}

#[test]
fn what_is_protected_always_asks() {
    let mut granted = GrantSet::default();
    granted.add_grant(Grant::Edits);
    check(
        &ToolAccess::Writes(paths(&["/w/a/.git/hooks/pre-commit"])),
        &granted,
        &expect![[r#"
            ask: ask, each time: /w/a/.git/hooks/pre-commit is protected
            accept-edits: ask, each time: /w/a/.git/hooks/pre-commit is protected
            plan: deny: plan mode only reads; switch the mode to change or run something
            auto: ask, each time: /w/a/.git/hooks/pre-commit is protected
        "#]],
    );
    check(
        &ToolAccess::Writes(paths(&["/w/a/.GIT/config"])),
        &granted,
        &expect![[r#"
            ask: ask, each time: /w/a/.GIT/config is protected
            accept-edits: ask, each time: /w/a/.GIT/config is protected
            plan: deny: plan mode only reads; switch the mode to change or run something
            auto: ask, each time: /w/a/.GIT/config is protected
        "#]],
    );
    check(
        &ToolAccess::Writes(paths(&["/w/a/.gitignore"])),
        &granted,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: deny: plan mode only reads; switch the mode to change or run something
        auto: allow
    "#]],
    );
}

/// Tells which paths ask in `auto` to be changed and to be read: `w`, `r`, or nothing.
#[track_caller]
fn check_protected(list: &[(&str, &str)]) {
    let law = PermissionRules::default();
    for (path, expected) in list {
        let asks = |mode: Mode, touch: ToolAccess| {
            matches!(judged(mode, &law, &touch, &GrantSet::default()), PermissionDecision::Ask { .. })
        };
        let writes = asks(Mode::Auto, ToolAccess::Writes(paths(&[path])));
        let reads = asks(Mode::Ask, ToolAccess::Reads(paths(&[path])));
        let found =
            [("w", writes), ("r", reads)].map(|(letter, asks)| if asks { letter } else { "" }).concat();
        assert_eq!(found, *expected, "{path}");
    }
}

#[test]
fn what_is_missing_or_spelled_otherwise_is_protected() {
    // Only names are judged, so whether anything is there makes no difference.
    check_protected(&[
        ("/w/a/x", ""),
        ("/w/a/.git", "w"),
        ("/w/a/.git/hooks/x", "w"),
        ("/w/a/sub/.Git/config", "w"),
        ("/w/a/.git./config", "w"),
        ("/w/a/.git . /config", "w"),
        ("/w/a/.git::$INDEX_ALLOCATION/config", "w"),
        ("/w/a/.g\u{200c}it/config", "w"),
        ("/w/a/GIT~1/config", "w"),
        ("/w/a/.gitx/config", ""),
        ("/w/a/x.git", ""),
        ("/w/a/...", ""),
        ("/w/a/meta", "w"),
        ("/w/a/META/hooks/x", "w"),
        ("/w/a/metal", ""),
        ("/w/a/.crow/config.yaml", "wr"),
        ("/w/a/.CROW/new", "wr"),
        ("/w/a/.crow./new", "wr"),
        ("/home/me/.Crow/.env", "wr"),
        ("/w/a/.env", "wr"),
        ("/w/a/.ENV.", "wr"),
        ("/w/a/.env.local", "wr"),
        ("/w/a/.env.example", ""),
        ("/w/a/.\u{17f}sh/x", "wr"),
        ("/w/a/ID_RSA", "wr"),
        ("/w/a/server.PEM ", "wr"),
    ]);
}

#[test]
fn a_search_above_what_is_protected_asks() {
    // Folders that hold a repository are searched all the time, those that hold the configuration are not.
    check_protected(&[("/w/a", "r"), ("/w/b", ""), ("/w/A", "r")]);
}

#[test]
fn commands() {
    let mut grants = GrantSet::default();
    check(
        &runs("ls"),
        &grants,
        &expect![[r#"
            ask: allow
            accept-edits: allow
            plan: allow
            auto: allow
        "#]],
    );
    grants.add_grant(Grant::Run("ls".to_owned()));
    check(
        &runs("ls"),
        &grants,
        &expect![[r#"
            ask: allow
            accept-edits: allow
            plan: allow
            auto: allow
        "#]],
    );
    check(
        &runs("ls; rm x"),
        &grants,
        &expect![[r#"
            ask: ask, session: `ls`, `rm x`: no rule covers `rm x`
            accept-edits: ask, session: `ls`, `rm x`: no rule covers `rm x`
            plan: deny: plan mode only reads; switch the mode to change or run something
            auto: allow
        "#]],
    );
}

#[test]
fn modes_are_read_as_they_are_spelled() {
    for mode in Mode::ALL {
        assert_eq!(Mode::parse(mode.as_str()), Some(mode));
    }
    assert_eq!(Mode::parse("yolo"), None);
}

#[test]
fn the_configuration_asks_even_inside_a_root_and_output_kept_in_it_is_read_freely() {
    check(
        &ToolAccess::Reads(vec!["/w/a/.crow/spill/1".into()]),
        &GrantSet::default(),
        &expect![[r#"
            ask: allow
            accept-edits: allow
            plan: allow
            auto: allow
        "#]],
    );
    check(
        &ToolAccess::Reads(vec!["/w/a/.crow/spill/.env".into()]),
        &GrantSet::default(),
        &expect![[r#"
            ask: ask, each time: /w/a/.crow/spill/.env is protected
            accept-edits: ask, each time: /w/a/.crow/spill/.env is protected
            plan: ask, each time: /w/a/.crow/spill/.env is protected
            auto: allow
        "#]],
    );
    check(
        &ToolAccess::Writes(vec!["/w/a/.crow/spill/1".into()]),
        &GrantSet::default(),
        &expect![[r#"
            ask: ask, each time: /w/a/.crow/spill/1 is protected
            accept-edits: ask, each time: /w/a/.crow/spill/1 is protected
            plan: deny: plan mode only reads; switch the mode to change or run something
            auto: ask, each time: /w/a/.crow/spill/1 is protected
        "#]],
    );
    check(
        &ToolAccess::Reads(vec!["/w/a/.crow/.env".into()]),
        &GrantSet::default(),
        &expect![[r#"
            ask: ask, each time: /w/a/.crow/.env is protected
            accept-edits: ask, each time: /w/a/.crow/.env is protected
            plan: ask, each time: /w/a/.crow/.env is protected
            auto: allow
        "#]],
    );
    check(
        &ToolAccess::Reads(vec!["/w/a".into()]),
        &GrantSet::default(),
        &expect![[r#"
            ask: ask, each time
            accept-edits: ask, each time
            plan: ask, each time
            auto: allow
        "#]],
    );
    check(
        &ToolAccess::Reads(vec!["/w/a/src".into()]),
        &GrantSet::default(),
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: allow
        auto: allow
    "#]],
    );
}
