//! Measures the evaluation of an everyday command line: `cargo bench -p crow-core`.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its result, and fails by panicking"
)]

use std::hint::black_box;
use std::time::Instant;

use crow_core::{
    EffectivePolicy, EmptyFileSystem, GrantSet, Mode, PermissionRule, PermissionRules, SandboxMode,
    SandboxPolicy, SandboxSupport, SessionRoots, ToolAccess, ToolCallInfo, ToolKind,
    approval_source_in_sandbox, evaluate_call_in_sandbox,
};

const LINES: &str = include_str!("../src/permission/tests/everyday.txt");
const N_ROUNDS: u32 = 20;
const N_TIMES: u32 = 20;

fn main() {
    let all: Vec<String> = LINES
        .lines()
        .filter(|line| !line.starts_with("# "))
        .filter_map(|line| line.split_once(" | "))
        .map(|(_, line)| line.replace('⏎', "\n"))
        .collect();
    let roots = SessionRoots {
        work: vec!["/w/a".into()],
        protected: vec!["/home/me/.crow".into()],
        ..SessionRoots::default()
    };
    let none = PermissionRules::default();
    let parse = |rules: [&str; 4]| rules.iter().map(|rule| PermissionRule::parse(rule).unwrap()).collect();
    let some = PermissionRules {
        allow: parse(["git status", "cargo test", "npm run build", "path(docs/**)"]),
        deny: parse(["rm -rf", "git push --force", "docker rm", "path(**/*.lock)"]),
    };
    for (name, mode, rules) in [
        ("ask", Mode::Ask, &none),
        ("accept-edits", Mode::AcceptEdits, &none),
        ("plan", Mode::Plan, &none),
        ("auto", Mode::Auto, &none),
        ("ask with rules", Mode::Ask, &some),
        ("auto with rules", Mode::Auto, &some),
    ] {
        let law = EffectivePolicy { mode, rules, roots: &roots, files: &EmptyFileSystem };
        let mut costs: Vec<f64> = all.iter().map(|line| cost(&law, line)).collect();
        costs.sort_by(f64::total_cmp);
        let sum: f64 = costs.iter().sum();
        let count = u32::try_from(costs.len()).unwrap();
        let (median, last) = (costs[costs.len() / 2], costs[costs.len() - 1]);
        println!(
            "{name}: {:.1} µs a line, half below {median:.1}, the most {last:.1}",
            sum / f64::from(count)
        );
    }
}

/// Returns the least time of one evaluation of a line, including its approval source.
fn cost(law: &EffectivePolicy<'_>, line: &str) -> f64 {
    let touch = ToolAccess::Runs(line.to_owned());
    let facets =
        ToolCallInfo { title: String::new(), kind: ToolKind::Other, locations: Vec::new(), access: touch };
    let sandbox = SandboxPolicy { sandbox_mode: SandboxMode::Unapproved, support: &SandboxSupport::Full };
    let grants = GrantSet::default();
    let round = || {
        let start = Instant::now();
        for _ in 0..N_TIMES {
            black_box(evaluate_call_in_sandbox(law, &grants, "terminal", black_box(&facets), &sandbox));
            black_box(approval_source_in_sandbox(law, &grants, "terminal", black_box(&facets), &sandbox));
        }
        start.elapsed().as_secs_f64() * 1e6 / f64::from(N_TIMES)
    };
    (0..N_ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}
