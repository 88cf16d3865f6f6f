//! Command lines: each is evaluated, and no mode allows a line about which a freer one asks.
#![no_main]

use crow_core::{ToolCallInfo, GrantSet, EffectivePolicy, EmptyFileSystem, Mode, SessionRoots, PermissionRules, ToolKind, ToolAccess, PermissionDecision, evaluate_call, shell};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(line) = std::str::from_utf8(data) else { return };
    drop(shell::parse_words(line));
    drop(shell::parse_extended(line));
    let is_understood = shell::parse_line(line).is_ok();
    let rules = PermissionRules::default();
    let roots = SessionRoots {
        work: vec!["/w/a".into()],
        protected: vec!["/home/me/.crow".into()],
        ..SessionRoots::default()
    };
    let access = ToolAccess::Runs(line.to_owned());
    let info = ToolCallInfo { title: String::new(), kind: ToolKind::Other, locations: Vec::new(), access };
    let is_free = |mode| {
        let policy = EffectivePolicy { mode, rules: &rules, roots: &roots, files: &EmptyFileSystem };
        evaluate_call(&policy, &GrantSet::default(), "terminal", &info) == PermissionDecision::Allow
    };
    let [plan, ask, edits, auto] = [Mode::Plan, Mode::Ask, Mode::AcceptEdits, Mode::Auto].map(is_free);
    assert_eq!(plan, ask, "reading is free in both, and nothing else is: {line:?}");
    assert!(!ask || edits, "{line:?}");
    assert!(!edits || auto, "{line:?}");
    assert!(!edits || is_understood, "{line:?}");
});
