//! Patches: any text has an answer, and a patch that fits removes no line that it does not name.
//!
//! The input is a file and a patch, separated by a zero byte.
#![no_main]

use std::collections::BTreeMap;

use crow_core::patch::{ParsedPatch, PatchSection, plan_patch, shell_patch};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (file, patch) = text.split_once('\0').unwrap_or(("", text));
    drop(shell_patch(patch));
    let Ok(patch) = ParsedPatch::parse(patch) else { return };
    let patch = patch.with_paths(|_| "a".to_owned());
    let contents = BTreeMap::from([("a".to_owned(), file.to_owned())]);
    let Ok(planned) = plan_patch(&patch, &contents) else { return };
    let [planned] = &planned[..] else { panic!("one file: {planned:?}") };
    assert_ne!(planned.old, planned.new);
    if let ([PatchSection::Update { hunks, .. }], Some(new)) = (&patch.sections[..], &planned.new) {
        let n_shown: usize = hunks.iter().map(|hunk| hunk.lines.len()).sum();
        let (n_old, n_new) = (file.lines().count(), new.lines().count());
        assert!(n_new <= n_old + n_shown && n_old <= n_new + n_shown, "{n_old} {n_new}");
    }
});
