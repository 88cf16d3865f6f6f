//! Whatever a model writes as a command line is judged, and no mode lets through what a freer one asks about.
#![no_main]

use std::path::Path;

use crow_core::{Facets, Grants, Law, Mode, Roots, Rules, ToolKind, Touch, Verdict, judge, shell};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(line) = std::str::from_utf8(data) else { return };
    drop(shell::words(line));
    drop(shell::parse_extended(line));
    let is_understood = shell::parse(line).is_ok();
    let rules = Rules::default();
    let roots = Roots {
        work: vec!["/w/a".into()],
        protected: vec!["/home/me/.crow".into()],
        ..Roots::default()
    };
    let touch = Touch::Runs(line.to_owned());
    let facets = Facets { title: String::new(), kind: ToolKind::Other, locations: Vec::new(), touch };
    let is_free = |mode| {
        let law = Law { mode, rules: &rules, roots: &roots, resolve: &Path::to_path_buf };
        judge(&law, &Grants::default(), "terminal", &facets) == Verdict::Allow
    };
    let [plan, ask, edits, auto] = [Mode::Plan, Mode::Ask, Mode::AcceptEdits, Mode::Auto].map(is_free);
    assert_eq!(plan, ask, "reading is free in both, and nothing else is: {line:?}");
    assert!(!ask || edits, "{line:?}");
    assert!(!edits || auto, "{line:?}");
    assert!(!edits || is_understood, "{line:?}");
});
