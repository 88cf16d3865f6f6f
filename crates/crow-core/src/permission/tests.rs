mod attacks;
mod commands;
mod everyday;
mod grammar;
mod grants;
mod holdout;
mod properties;
mod rules;
mod session_grants;
mod web;

use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};

use super::*;
use crate::{PartialSandbox, SandboxMode, SandboxPolicy, SandboxSupport, ToolKind};

/// Evaluates an access in every mode, one line each.
#[track_caller]
fn check(access: &ToolAccess, grants: &GrantSet, expected: &Expect) {
    check_ruled("", access, grants, expected);
}

/// The same under rules, in the form `allow: A, B; deny: C`.
#[track_caller]
fn check_ruled(rules: &str, access: &ToolAccess, grants: &GrantSet, expected: &Expect) {
    let rules = read_rules(rules);
    let lines = Mode::ALL.map(|mode| {
        let decision = match decide(mode, &rules, access, grants) {
            PermissionDecision::Allow => "allow".to_owned(),
            PermissionDecision::Ask { offer, reason: why } => {
                let reason = why.map(|why| format!(": {why}")).unwrap_or_default();
                format!("ask, {}{reason}", offered(&offer))
            }
            PermissionDecision::Deny(reason) => format!("deny: {reason}"),
        };
        format!("{}: {decision}\n", mode.as_str())
    });
    expected.assert_eq(&lines.concat());
}

fn asks_each_time(decision: &PermissionDecision) -> bool {
    matches!(decision, PermissionDecision::Ask { offer, .. } if offer.session.is_empty())
}

/// Renders an offer of grants.
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
fn approval_source_is_policy_without_grants() {
    let grants = |line: &str| GrantSet::from_iter([Grant::Run(line.to_owned())]);
    #[rustfmt::skip]
    let table = [
        ("", Mode::Auto, "make", ApprovalSource::Policy),
        ("allow: make", Mode::Ask, "make", ApprovalSource::Policy),
        ("allow: make", Mode::Ask, "make && echo done", ApprovalSource::Policy),
        ("allow: git status", Mode::Ask, "git status; make", ApprovalSource::User),
        ("", Mode::Ask, "make", ApprovalSource::User),
    ];
    let roots = SessionRoots { work: vec!["/w/a".into()], ..SessionRoots::default() };
    for (rules, mode, line, expected) in table {
        let rules = read_rules(rules);
        let policy = EffectivePolicy { mode, rules: &rules, roots: &roots, files: &TestFiles };
        let access = ToolAccess::Runs(line.to_owned());
        let info =
            ToolCallInfo { title: String::new(), kind: ToolKind::Other, locations: Vec::new(), access };
        // A grant allows the call, but is not part of the policy.
        assert_eq!(
            evaluate_call(&policy, &grants("make"), "terminal", &info),
            PermissionDecision::Allow,
            "{line}"
        );
        assert_eq!(
            approval_source(&policy, &grants("make"), "terminal", &info),
            expected,
            "{rules:?} {line}"
        );
    }
}

#[test]
fn approval_source_is_grant_for_project_code() {
    #[rustfmt::skip]
    let table = [
        ("", Mode::Ask, "make test", ApprovalSource::ProjectCodeGrant),
        ("", Mode::AcceptEdits, "make test", ApprovalSource::ProjectCodeGrant),
        ("allow: make", Mode::Ask, "make test", ApprovalSource::Policy),
        ("", Mode::Auto, "make test", ApprovalSource::Policy),
        ("", Mode::AcceptEdits, "make check", ApprovalSource::BuildCommand),
        ("", Mode::Ask, "git fetch", ApprovalSource::User),
    ];
    let roots = SessionRoots { work: vec!["/w/a".into()], ..SessionRoots::default() };
    let prefix = |words: &str| Grant::RunPrefix(words.split(' ').map(str::to_owned).collect());
    let grants = GrantSet::from_iter([prefix("make test"), prefix("git fetch")]);
    for (rules, mode, line, expected) in table {
        let rules = read_rules(rules);
        let policy = EffectivePolicy { mode, rules: &rules, roots: &roots, files: &TestFiles };
        let access = ToolAccess::Runs(line.to_owned());
        let info =
            ToolCallInfo { title: String::new(), kind: ToolKind::Other, locations: Vec::new(), access };
        assert_eq!(evaluate_call(&policy, &grants, "terminal", &info), PermissionDecision::Allow, "{line}");
        assert_eq!(
            approval_source(&policy, &grants, "terminal", &info),
            expected,
            "{mode:?} {rules:?} {line}"
        );
    }
}

#[test]
fn rule_covers_output_inside_project_only() {
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
    let policy = EffectivePolicy { mode: Mode::Ask, rules: &rules, roots: &roots, files: &TestFiles };
    for (lines, is_free) in [(&free[..], true), (&asked[..], false)] {
        for line in lines {
            let access = ToolAccess::Runs((*line).to_owned());
            let info =
                ToolCallInfo { title: String::new(), kind: ToolKind::Other, locations: Vec::new(), access };
            let decision = evaluate_call(&policy, &GrantSet::default(), "terminal", &info);
            assert_eq!(decision == PermissionDecision::Allow, is_free, "{line}: {decision:?}");
        }
    }
}

/// Evaluates a line in `/w/a` with a sandbox support, with and without a grant for it.
#[track_caller]
fn check_sandboxed(support: &SandboxSupport, line: &str, is_asked: bool) {
    let rules = read_rules("allow: make, chmod, kill, sh -c");
    let roots = SessionRoots { work: vec!["/w/a".into()], ..SessionRoots::default() };
    let sandbox = SandboxPolicy { sandbox_mode: SandboxMode::Unapproved, support };
    let access = ToolAccess::Runs(line.to_owned());
    let info = ToolCallInfo { title: String::new(), kind: ToolKind::Other, locations: Vec::new(), access };
    for mode in [Mode::Ask, Mode::Auto] {
        let policy = EffectivePolicy { mode, rules: &rules, roots: &roots, files: &TestFiles };
        if evaluate_call(&policy, &GrantSet::default(), "terminal", &info) != PermissionDecision::Allow {
            assert_eq!(mode, Mode::Ask, "{line}");
            continue;
        }
        let decision = evaluate_call_in_sandbox(&policy, &GrantSet::default(), "terminal", &info, &sandbox);
        let PermissionDecision::Ask { offer, reason: why } = decision else {
            assert!(!is_asked && decision == PermissionDecision::Allow, "{mode:?} {line}: {decision:?}");
            continue;
        };
        assert!(
            is_asked && why.is_some_and(|why| why.contains("permissions.sandbox: off")),
            "{mode:?} {line}"
        );
        let approval = approval_source_in_sandbox(&policy, &GrantSet::default(), "terminal", &info, &sandbox);
        assert_eq!(approval, ApprovalSource::User);
        if !offer.session.is_empty() {
            let grants = offer.session.into_iter().collect();
            let again = evaluate_call_in_sandbox(&policy, &grants, "terminal", &info, &sandbox);
            assert_eq!(again, PermissionDecision::Allow, "an always is remembered: {line}");
        }
    }
}

#[test]
fn command_asks_if_sandbox_cannot_confine_it() {
    let none = SandboxSupport::Unavailable { reason: "no Landlock".into() };
    let partial = SandboxSupport::Partial(PartialSandbox {
        namespace_problem: Some("x".into()),
        signals_unconfined: true,
    });
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

/// Evaluates in a session with `/w/a` and `/w/b`, where `/w/a/link` leads out.
fn decide(mode: Mode, rules: &PermissionRules, access: &ToolAccess, grants: &GrantSet) -> PermissionDecision {
    let roots = SessionRoots {
        work: vec!["/w/a".into(), "/w/b".into()],
        readable: vec!["/w/a/.crow/spill".into()],
        protected: vec!["/w/a/.crow".into(), "/home/me/.crow".into()],
        repository: vec!["/w/a/meta".into()],
    };
    let tool = match access {
        ToolAccess::Nothing => "todo",
        ToolAccess::Reads(_) => "read",
        ToolAccess::Writes(_) => "write",
        ToolAccess::Runs(_) => "terminal",
        ToolAccess::Calls { .. } => "docs_search",
        ToolAccess::Fetches { .. } => "web_fetch",
        ToolAccess::Searches => "web_search",
    };
    let info = ToolCallInfo {
        title: String::new(),
        kind: ToolKind::Other,
        locations: Vec::new(),
        access: access.clone(),
    };
    evaluate_call(&EffectivePolicy { mode, rules, roots: &roots, files: &TestFiles }, grants, tool, &info)
}

/// Each `link` leads out, each directory `linked` contains `out.md`, which does too, and each `evil` and
/// each `bare` is a repository, the second without a working tree.
struct TestFiles;

impl FileLookup for TestFiles {
    fn resolve_links(&self, path: &Path) -> PathBuf {
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

    fn links_in(&self, directory: &Path) -> Option<Vec<DirectoryLink>> {
        let link = || DirectoryLink { name: "out.md".to_owned(), target: "/elsewhere/out.md".into() };
        Some(directory.ends_with("linked").then(link).into_iter().collect())
    }

    fn may_be_repository(&self, directory: &Path) -> bool {
        ["evil", "bare"].iter().any(|name| directory.ends_with(name))
    }

    fn has_git_head(&self, directory: &Path) -> bool {
        directory.ends_with("bare")
    }
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
fn reads_ask_outside_roots() {
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
fn writes_depend_on_mode_and_path() {
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
fn protected_paths_always_ask() {
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

/// Checks which paths ask in `auto` for changing and reading: `w`, `r`, or nothing.
#[track_caller]
fn check_protected(list: &[(&str, &str)]) {
    let policy = PermissionRules::default();
    for (path, expected) in list {
        let asks = |mode: Mode, access: ToolAccess| {
            matches!(decide(mode, &policy, &access, &GrantSet::default()), PermissionDecision::Ask { .. })
        };
        let writes = asks(Mode::Auto, ToolAccess::Writes(paths(&[path])));
        let reads = asks(Mode::Ask, ToolAccess::Reads(paths(&[path])));
        let found =
            [("w", writes), ("r", reads)].map(|(letter, asks)| if asks { letter } else { "" }).concat();
        assert_eq!(found, *expected, "{path}");
    }
}

#[test]
fn protected_paths_include_missing_and_folded_names() {
    // Only names are checked, whether or not the files exist.
    check_protected(&[
        ("/w/a/x", ""),
        ("/w/a/.git", "w"),
        ("/w/a/.git/hooks/x", "w"),
        ("/w/a/sub/.Git/config", "w"),
        ("/w/a/.git./config", "w"),
        ("/w/a/.git . /config", "w"),
        ("/w/a/bare/config", "w"),
        ("/w/a/bare/Hooks/x", "w"),
        ("/w/a/bare/src/config", ""),
        ("/w/a/evil/config", ""),
        ("/w/a/.git::$INDEX_ALLOCATION/config", "w"),
        ("/w/a/.g\u{200c}it/config", "w"),
        ("/w/a/GIT~1/config", "w"),
        ("/w/a/.gitx/config", ""),
        ("/w/a/x.git", ""),
        ("/w/a/HEAD", "w"),
        ("/w/a/sub/HEAD", "w"),
        ("/w/a/HEAD/x", ""),
        ("/w/a/HEAD.md", ""),
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
fn search_above_protected_path_asks() {
    // Directories with a repository are often searched, those with the configuration are not.
    check_protected(&[("/w/a", "r"), ("/w/b", ""), ("/w/A", "r")]);
}

#[test]
fn commands_ask_without_rule() {
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
fn modes_round_trip_through_text() {
    for mode in Mode::ALL {
        assert_eq!(Mode::parse(mode.as_str()), Some(mode));
    }
    assert_eq!(Mode::parse("yolo"), None);
}

#[test]
fn configuration_asks_inside_root_except_readable_output() {
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
