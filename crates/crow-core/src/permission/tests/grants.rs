//! The grants that a request offers, and their later effect.

use super::*;

/// Checks the offer for a line in `ask`.
#[track_caller]
fn check_offers(lines: &[&str], expected: &Expect) {
    let shown = lines.iter().map(|line| {
        match decide(Mode::Ask, &PermissionRules::default(), &runs(line), &GrantSet::default()) {
            PermissionDecision::Allow => format!("{line} => allow\n"),
            PermissionDecision::Ask { offer, .. } => format!("{line} => {}\n", offered(&offer)),
            PermissionDecision::Deny(reason) => format!("{line} => deny: {reason}\n"),
        }
    });
    expected.assert_eq(&shown.collect::<String>());
}

#[test]
fn offer_has_widest_safe_prefix() {
    check_offers(
        &[
            "cargo test -p core parse",
            "cargo nextest run",
            "npm run build -- --watch",
            "npm run",
            "git --no-pager log --oneline",
            "git commit -m x",
            "git stash pop",
            "make test",
            "make",
            "timeout 60 cargo test",
            "cargo build && npm test",
            "cd sub && cargo test",
            "python -m pytest tests",
            "./scripts/build.sh --fast",
            "docker compose logs web",
        ],
        &expect![[r#"
            cargo test -p core parse => session: `cargo test -p core parse`, `cargo test …`; project: `cargo test …`
            cargo nextest run => session: `cargo nextest run`, `cargo nextest run …`; project: `cargo nextest run …`
            npm run build -- --watch => session: `npm run build -- --watch`, `npm run build …`; project: `npm run build …`
            npm run => session: `npm run`
            git --no-pager log --oneline => allow
            git commit -m x => session: `git commit -m x`, `git commit …`; project: `git commit …`
            git stash pop => session: `git stash pop`, `git stash pop …`; project: `git stash pop …`
            make test => session: `make test`, `make test …`; project: `make test …`
            make => session: `make`, `make`; project: `make`
            timeout 60 cargo test => session: `timeout 60 cargo test`, `cargo test …`; project: `cargo test …`
            cargo build && npm test => session: `cargo build`, `npm test`, `cargo build …`, `npm test …`; project: `cargo build …`, `npm test …`
            cd sub && cargo test => session: `cd sub && cargo test`, `cargo test …`; project: `cargo test …`
            python -m pytest tests => session: `python -m pytest tests`, `python -m pytest …`; project: `python -m pytest …`
            ./scripts/build.sh --fast => session: `./scripts/build.sh --fast`, `./scripts/build.sh …`; project: `./scripts/build.sh …`
            docker compose logs web => session: `docker compose logs web`, `docker compose logs …`; project: `docker compose logs …`
        "#]],
    );
}

#[test]
fn offer_has_no_prefix_for_arbitrary_code() {
    check_offers(
        &[
            "python3 x.py",
            "node -e 1",
            "curl https://example.org",
            "rm -rf dist",
            "sudo make install",
            "env make test",
            "sh -c 'cargo test'",
            "xargs cargo test",
            "npm install left-pad",
            "git push",
            "git reset --hard",
            "cargo test && rm x",
            "cargo test --config x",
            "../x.sh",
            "./../x.sh",
            "FOO=1 cargo test",
            "cargo test > /etc/x",
            "cargo test $X",
            "npm run $X",
        ],
        &expect![[r#"
            python3 x.py => session: `python3 x.py`
            node -e 1 => session: `node -e 1`
            curl https://example.org => session: `curl https://example.org`
            rm -rf dist => session: `rm -rf dist`
            sudo make install => session: `sudo make install`
            env make test => session: `env make test`, `make test …`; project: `make test …`
            sh -c 'cargo test' => session: `sh -c 'cargo test'`, `cargo test …`; project: `cargo test …`
            xargs cargo test => each time
            npm install left-pad => session: `npm install left-pad`
            git push => session: `git push`
            git reset --hard => session: `git reset --hard`
            cargo test && rm x => session: `cargo test`, `rm x`
            cargo test --config x => session: `cargo test --config x`
            ../x.sh => session: `../x.sh`
            ./../x.sh => session: `./../x.sh`
            FOO=1 cargo test => session: `FOO=1 cargo test`
            cargo test > /etc/x => each time
            cargo test $X => each time
            npm run $X => each time
        "#]],
    );
}

#[test]
fn prefix_allows_commands_and_confines_project_code() {
    let prefix = |words: &[&str]| Grant::RunPrefix(words.iter().map(|&word| word.to_owned()).collect());
    let grants = GrantSet::from_iter([
        prefix(&["cargo", "test"]),
        prefix(&["git", "fetch"]),
        Grant::Run("make deploy".to_owned()),
    ]);
    let roots = SessionRoots { work: vec!["/w/a".into()], ..SessionRoots::default() };
    let policy = EffectivePolicy {
        mode: Mode::Ask,
        rules: &PermissionRules::default(),
        roots: &roots,
        files: &TestFiles,
    };
    let shown = |line: &str| {
        let access = ToolAccess::Runs(line.to_owned());
        let info =
            ToolCallInfo { title: String::new(), kind: ToolKind::Other, locations: Vec::new(), access };
        match evaluate_call(&policy, &grants, "terminal", &info) {
            PermissionDecision::Allow => {
                format!("{line} => {:?}\n", approval_source(&policy, &grants, "terminal", &info))
            }
            PermissionDecision::Ask { reason, .. } => {
                format!("{line} => ask: {}\n", reason.unwrap_or_default())
            }
            PermissionDecision::Deny(reason) => format!("{line} => deny: {reason}\n"),
        }
    };
    let lines = [
        "cargo test",
        "cargo test --workspace | tail -3",
        "cargo testing",
        "cargo build",
        "cargo test --config x",
        "cargo test > .git/hooks/pre-commit",
        "git fetch origin",
        "git fetch --upload-pack=x origin",
        "make deploy",
        "make deploy now",
        "cargo test && make deploy",
    ];
    expect![[r#"
        cargo test => ProjectCodeGrant
        cargo test --workspace | tail -3 => ProjectCodeGrant
        cargo testing => ask: 
        cargo build => ask: 
        cargo test --config x => ask: cargo sets configuration, which can name a program to run
        cargo test > .git/hooks/pre-commit => ask: it writes to .git/hooks/pre-commit, which is protected
        git fetch origin => User
        git fetch --upload-pack=x origin => ask: git runs another program through an option
        make deploy => User
        make deploy now => ask: 
        cargo test && make deploy => User
    "#]]
    .assert_eq(&lines.map(shown).concat());
}

/// Replaces the prefix of the offer for a line, and shows what the offer then allows.
#[track_caller]
fn check_prefix(line: &str, prefix: &str, lines: &[&str], expected: &Expect) {
    let rules = PermissionRules::default();
    let decision = |line: &str, grants: &GrantSet| decide(Mode::Ask, &rules, &runs(line), grants);
    let PermissionDecision::Ask { offer, .. } = decision(line, &GrantSet::default()) else {
        panic!("{line} needs no permission")
    };
    let shown = match offer.with_prefix(prefix) {
        Err(reason) => format!("{reason}\n"),
        Ok(changed) => {
            let grants = changed.project.iter().cloned().collect();
            let shown = lines.iter().map(|line| match decision(line, &grants) {
                PermissionDecision::Allow => format!("{line} => allow\n"),
                PermissionDecision::Ask { reason, .. } => {
                    format!("{line} => ask: {}\n", reason.unwrap_or_default())
                }
                PermissionDecision::Deny(reason) => format!("{line} => deny: {reason}\n"),
            });
            format!("{}\n{}", offered(&changed), shown.collect::<String>())
        }
    };
    expected.assert_eq(&shown);
}

#[test]
fn longer_prefix_narrows_an_offer() {
    check_prefix(
        "cargo test -p core parse",
        "cargo test -p core",
        &[
            "cargo test -p core parse",
            "cargo test -p core",
            "cargo test -p other",
            "cargo test",
            "timeout 9 cargo test -p core",
        ],
        &expect![[r#"
            session: `cargo test -p core parse`, `cargo test -p core …`; project: `cargo test -p core …`
            cargo test -p core parse => allow
            cargo test -p core => allow
            cargo test -p other => ask: 
            cargo test => ask: 
            timeout 9 cargo test -p core => allow
        "#]],
    );
    check_prefix(
        "git commit -m 'a b'",
        " git commit  -m 'a b' ",
        &["git commit -m 'a b' x", "git commit -m c"],
        &expect![[r#"
            session: `git commit -m 'a b'`, `git commit -m 'a b' …`; project: `git commit -m 'a b' …`
            git commit -m 'a b' x => allow
            git commit -m c => ask: 
        "#]],
    );
    // The user sees the words, but not what an option among them does with the words after it.
    check_prefix(
        "cargo test -p core",
        "cargo test --config",
        &["cargo test --config x", "cargo test -p core"],
        &expect![[r#"
            session: `cargo test -p core`, `cargo test --config …`; project: `cargo test --config …`
            cargo test --config x => ask: cargo sets configuration, which can name a program to run
            cargo test -p core => ask: 
        "#]],
    );
    check_prefix(
        "make test",
        "make test deploy",
        &["make test", "make test deploy"],
        &expect![[r#"
        session: `make test`, `make test deploy …`; project: `make test deploy …`
        make test => ask: 
        make test deploy => ask: 
    "#]],
    );
    check_prefix(
        "cd sub && cargo test",
        "cargo test -p core",
        &["cd sub && cargo test -p core", "cd sub && cargo test"],
        &expect![[r#"
            session: `cd sub && cargo test`, `cargo test -p core …`; project: `cargo test -p core …`
            cd sub && cargo test -p core => allow
            cd sub && cargo test => ask: no rule covers `cargo test`
        "#]],
    );
}

#[test]
fn prefix_that_the_table_does_not_have_is_rejected() {
    for (line, prefix, expected) in [
        ("cargo test", "cargo", "commands that begin with `cargo` always ask"),
        ("cargo test", "", "the prefix is empty"),
        ("cargo test", "python3", "commands that begin with `python3` always ask"),
        ("cargo test", "cargo $X", "commands that begin with `cargo $X` always ask"),
        ("cargo test", "cargo test && rm", "commands that begin with `cargo test && rm` always ask"),
        ("cargo test", "cargo test\nrm", "a prefix is one line of a few words"),
        ("make test", "make", "commands that begin with `make` always ask"),
        ("npm install", "npm install left-pad", "commands that begin with `npm install left-pad` always ask"),
        ("rm x", "cargo test", "there is no prefix to change"),
        ("cargo test && npm test", "cargo test -p x", "there is no prefix to change"),
    ] {
        let PermissionDecision::Ask { offer, .. } =
            decide(Mode::Ask, &PermissionRules::default(), &runs(line), &GrantSet::default())
        else {
            panic!("{line} needs no permission")
        };
        assert_eq!(offer.with_prefix(prefix), Err(expected.to_owned()), "{line}");
    }
}

/// Lines that change files, or seem to.
const EDITING_LINES: [&str; 25] = [
    "touch x",
    "mkdir -p a/b",
    "sed -i s/a/b/ x",
    "cp x y",
    "mv x y",
    "echo a > x",
    "echo a >> x",
    "tee x < y",
    "mkdir a && cargo test",
    "cd sub && touch x",
    "touch x; rm y",
    "touch /etc/x",
    "touch ../x",
    "echo a > Makefile",
    "echo a > .git/config",
    "echo a > $X",
    "cp x .git/hooks/pre-commit",
    "sed -i s/a/b/e x",
    "sed -i w/etc/x y",
    "touch x | cat",
    "rmdir x",
    "ln -s /etc x",
    "cat > x <<'E'\na\nE",
    "printf a > package.json",
    "git add x && touch y",
];

#[test]
fn offered_grants_allow_what_was_asked() {
    let rules = PermissionRules::default();
    let writes = |path: &str| ToolAccess::Writes(vec![path.to_owned()]);
    let accesses = EDITING_LINES
        .map(runs)
        .into_iter()
        .chain(["/w/a/x", "/w/a/.git/config", "/w/a/.envrc", "/elsewhere/x"].map(writes));
    let mut shown = String::new();
    for access in accesses {
        for mode in Mode::ALL {
            let PermissionDecision::Ask { offer, .. } = decide(mode, &rules, &access, &GrantSet::default())
            else {
                continue;
            };
            for grants in [&offer.session, &offer.project].into_iter().filter(|grants| !grants.is_empty()) {
                let granted: GrantSet = grants.iter().cloned().collect();
                assert_eq!(
                    decide(mode, &rules, &access, &granted),
                    PermissionDecision::Allow,
                    "{access:?} {granted:?}"
                );
            }
            if mode == Mode::Ask && offer.project.contains(&Grant::Edits) {
                shown.push_str(&format!("{access:?}\n"));
            }
        }
    }
    // Edits are offered for these and no others.
    expect![[r#"
        Runs("touch x")
        Runs("mkdir -p a/b")
        Runs("sed -i s/a/b/ x")
        Runs("cp x y")
        Runs("mv x y")
        Runs("echo a > x")
        Runs("echo a >> x")
        Runs("tee x < y")
        Runs("cd sub && touch x")
        Runs("echo a > Makefile")
        Runs("touch x | cat")
        Runs("cat > x <<'E'\na\nE")
        Runs("printf a > package.json")
        Writes(["/w/a/x"])
    "#]]
    .assert_eq(&shown);
}

#[test]
fn read_grant_does_not_allow_writing() {
    let grants = GrantSet::from_iter([Grant::Read("/elsewhere/x".to_owned())]);
    let path = || vec!["/elsewhere/x".to_owned()];
    check(
        &ToolAccess::Reads(path()),
        &grants,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: allow
        auto: allow
    "#]],
    );
    check(
        &ToolAccess::Writes(path()),
        &grants,
        &expect![[r#"
            ask: ask, session: writing /elsewhere/x
            accept-edits: ask, session: writing /elsewhere/x
            plan: deny: plan mode only reads; switch the mode to change or run something
            auto: allow
        "#]],
    );
}

#[test]
fn grants_round_trip_through_json() {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect();
    let grants = GrantSet::from_iter([
        Grant::Run("git commit -m 'a b'".to_owned()),
        Grant::RunPrefix(words("npm run build")),
        Grant::RunExact(words("make -j4")),
        Grant::Edits,
        Grant::Read("/x".to_owned()),
        Grant::Write("/x".to_owned()),
        Grant::Tool { server: "a server".to_owned(), tool: "search".to_owned() },
        Grant::Site("docs.rs".to_owned()),
        Grant::WebSearch,
    ]);
    assert_eq!(GrantSet::from_json(&grants.to_json()), grants);
    // Prefixes that are no longer offered, or were never written by Crow, allow nothing.
    for text in [
        r#"{"effect": "run_prefix", "target": "python3"}"#,
        r#"{"effect": "run_prefix", "target": "cargo"}"#,
        r#"{"effect": "run_whole", "target": "rm -rf dist"}"#,
        r#"{"effect": "run_prefix", "target": "make"}"#,
        r#"{"effect": "run_prefix", "target": "cargo $X"}"#,
        r#"{"effect": "run", "target": ""}"#,
        r#"{"effect": "edit", "target": "everything"}"#,
        r#"{"effect": "run", "target": "ls", "more": 1}"#,
        r#"["run"]"#,
    ] {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(Grant::from_json(&value), None, "{text}");
    }
}
