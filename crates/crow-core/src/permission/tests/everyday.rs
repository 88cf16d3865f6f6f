//! The frequency of questions for everyday lines.

use super::*;

/// The effect of a line, as given in the corpus.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Reads,
    Edits,
    Builds,
    Works,
}

/// The lines of the corpus with their effects.
fn lines() -> impl Iterator<Item = (Kind, String)> {
    let lines = include_str!("everyday.txt").lines().filter(|line| !line.starts_with("# "));
    lines.map(|line| {
        let (kind, line) = line.split_once(" | ").unwrap();
        let kind = match kind.trim() {
            "reads" => Kind::Reads,
            "edits" => Kind::Edits,
            "builds" => Kind::Builds,
            "works" => Kind::Works,
            other => unreachable!("{other}"),
        };
        (kind, line.replace('⏎', "\n"))
    })
}

/// Evaluates a line in an ordinary session: one directory, and the configuration in the home directory.
fn decide_at_home(mode: Mode, rules: &PermissionRules, grants: &GrantSet, line: &str) -> PermissionDecision {
    let evaluate =
        |policy: &EffectivePolicy<'_>, info: &ToolCallInfo| evaluate_call(policy, grants, "terminal", info);
    evaluate_at_home(mode, rules, line, evaluate)
}

fn evaluate_at_home<T>(
    mode: Mode,
    rules: &PermissionRules,
    line: &str,
    evaluate: impl FnOnce(&EffectivePolicy<'_>, &ToolCallInfo) -> T,
) -> T {
    let roots = SessionRoots {
        work: vec!["/w/a".into()],
        protected: vec!["/home/me/.crow".into()],
        ..SessionRoots::default()
    };
    let policy = EffectivePolicy { mode, rules, roots: &roots, files: &TestFiles };
    let info = ToolCallInfo {
        title: String::new(),
        kind: ToolKind::Other,
        locations: Vec::new(),
        access: runs(line),
    };
    evaluate(&policy, &info)
}

#[test]
fn everyday_lines_are_free_by_kind() {
    let mut wrong = Vec::new();
    for (kind, line) in lines() {
        for mode in Mode::ALL {
            let grants = GrantSet::default();
            let decision = decide_at_home(mode, &PermissionRules::default(), &grants, &line);
            let approval = evaluate_at_home(mode, &PermissionRules::default(), &line, |policy, info| {
                approval_source(policy, &grants, "terminal", info)
            });
            let expected = match (kind, mode) {
                (Kind::Reads, _) => ApprovalSource::ReadOnlyCommand,
                (_, Mode::Auto) => ApprovalSource::Policy,
                (Kind::Edits, Mode::AcceptEdits) => ApprovalSource::EditCommand,
                (Kind::Builds, Mode::AcceptEdits) => ApprovalSource::BuildCommand,
                (_, Mode::Ask | Mode::AcceptEdits | Mode::Plan) => ApprovalSource::User,
            };
            let is_free = decision == PermissionDecision::Allow;
            if approval != expected || is_free != (expected != ApprovalSource::User) {
                wrong.push(format!("{}: {line}: {decision:?} {approval:?}", mode.as_str()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures are to be read")]
fn questions_for_everyday_lines_are_counted() {
    let none = PermissionRules::default();
    let denials = read_rules("deny: rm -rf, git push --force, docker rm, path(**/*.lock)");
    let mut table = String::new();
    for (name, mode, rules) in [
        ("ask", Mode::Ask, &none),
        ("accept-edits", Mode::AcceptEdits, &none),
        ("plan", Mode::Plan, &none),
        ("auto", Mode::Auto, &none),
        ("auto with deny rules", Mode::Auto, &denials),
    ] {
        let (mut n_asked, mut n_refused, mut n_reading_refused, mut n_lines) = (0, 0, 0, 0);
        for (kind, line) in lines() {
            n_lines += 1;
            match decide_at_home(mode, rules, &GrantSet::default(), &line) {
                PermissionDecision::Allow => {}
                PermissionDecision::Ask { .. } => n_asked += 1,
                PermissionDecision::Deny(_) => {
                    n_refused += 1;
                    n_reading_refused += usize::from(kind == Kind::Reads);
                }
            }
        }
        let share = f64::from(n_asked) * 100.0 / f64::from(n_lines);
        table += &format!(
            "{name}: {n_asked} of {n_lines} asked ({share:.1} %), {n_refused} refused, {n_reading_refused} of them reading\n"
        );
    }
    print!("{table}");
    expect![[r#"
        ask: 209 of 535 asked (39.1 %), 0 refused, 0 of them reading
        accept-edits: 72 of 535 asked (13.5 %), 0 refused, 0 of them reading
        plan: 0 of 535 asked (0.0 %), 209 refused, 0 of them reading
        auto: 0 of 535 asked (0.0 %), 0 refused, 0 of them reading
        auto with deny rules: 0 of 535 asked (0.0 %), 2 refused, 0 of them reading
    "#]]
    .assert_eq(&table);
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures are to be read")]
fn grants_for_each_program_leave_few_questions() {
    let none = PermissionRules::default();
    let mut grants = GrantSet::default();
    for (_, line) in lines() {
        if let PermissionDecision::Ask { offer, .. } = decide_at_home(Mode::Ask, &none, &grants, &line) {
            grants.extend(offer.project);
        }
    }
    let asked = lines()
        .filter(|(_, line)| decide_at_home(Mode::Ask, &none, &grants, line) != PermissionDecision::Allow);
    let asked: Vec<String> = asked.map(|(_, line)| line.replace('\n', "⏎") + "\n").collect();
    let shown = format!("{} of {} asked\n{}", asked.len(), lines().count(), asked.concat());
    print!("{shown}");
    expect![[r#"
        42 of 535 asked
        git push
        git reset --soft HEAD~1
        git restore src/main.rs
        git commit -m "$(cat <<'EOF'⏎fix: a longer message⏎EOF⏎)"
        cargo add serde
        node index.js
        node -e 'console.log(1)'
        python3 x.py
        pip install -r requirements.txt
        python3 -c "print(1)"
        source .venv/bin/activate && pytest
        rm tmp.txt
        rm -rf dist
        docker compose up -d
        curl -s http://localhost:8080/health
        curl -I https://example.org
        wget https://example.org/x.tar.gz
        tar xzf x.tar.gz
        kill 123
        psql -c 'select 1'
        sqlite3 a.db 'select 1'
        export FOO=1; ./run.sh
        FOO=1 ./run.sh
        find src -name '*.ts' | xargs grep -l useState
        wc -l $(git ls-files)
        diff <(sort a.txt) <(sort b.txt)
        make lint test
        make -C docs
        ninja -C build
        mvn -q test
        git checkout main -- src/lib.rs
        rm -rf build && cmake -B build
        python3 scripts/gen.py > src/gen.rs
        npm install --save-dev vitest
        docker compose logs -f web
        node scripts/check.js
        curl -s https://api.example.org/v1/items | jq '.[0]'
        pip install -e .
        ls .. 2>/dev/null; true
        go build -o bin/app ./cmd/app
        git push -u origin HEAD
        python3 main.py --help
    "#]]
    .assert_eq(&shown);
}
