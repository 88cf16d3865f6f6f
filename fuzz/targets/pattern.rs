//! Globs of a repository or a model: each is compiled or rejected, and a compiled one can be matched.
//!
//! The first line of the input is the pattern, the rest are paths.
#![no_main]

use crow_core::{LetterCase, PathGlob, PermissionRule, escape_hidden};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (pattern, paths) = text.split_once('\n').unwrap_or((text, ""));
    let checked = PathGlob::check_pattern(pattern);
    for case in [LetterCase::Sensitive, LetterCase::Insensitive] {
        let compiled = PathGlob::compile(pattern, case);
        assert_eq!(checked.as_ref().err(), compiled.as_ref().err(), "{pattern}");
        let Ok(glob) = compiled else { continue };
        for path in paths.lines() {
            let _ = glob.is_match(path);
        }
    }
    // A rule of a repository is parsed before it is trusted.
    let _ = PermissionRule::parse(text);
    assert_eq!(escape_hidden(text).lines().count(), usize::from(!text.is_empty()));
});
