use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(pattern: &str, expected: &str) {
    let [exact, either] = [LetterCase::Sensitive, LetterCase::Insensitive].map(|case| {
        PathGlob::compile(pattern, case)
            .map_or_else(|bad| format!("the pattern {bad}"), |_| "fine".to_owned())
    });
    assert_eq!(exact, expected);
    assert_eq!(either, exact);
    assert_eq!(PathGlob::check_pattern(pattern).is_ok(), expected == "fine");
}

#[test]
fn common_patterns_compile() {
    for pattern in ["**/*.rs", "src/**", "*.{ts,tsx}", "{a,{b,c}}/[!x-z]?", "a\\{b", "[{]", "a/**/b", ""] {
        check(pattern, "fine");
    }
}

#[test]
fn expensive_patterns_are_rejected() {
    check(&"{".repeat(5000), "the pattern is too long (5000 bytes, the limit is 4096)");
    check(&"{".repeat(4000), "the pattern has more than 8 levels of nested braces");
    let deep = "{a,".repeat(300) + "b" + &"}".repeat(300);
    check(&deep, "the pattern has more than 8 levels of nested braces");
    check(&"*a".repeat(2000), "the pattern has more than 128 wildcards");
    check(&"[a]".repeat(1000), "the pattern has more than 128 wildcards");
    check("[", "the pattern is not a glob: unclosed character class; missing ']'");
    check(
        "{a",
        "the pattern is not a glob: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)",
    );
    check("a\\", "the pattern is not a glob: dangling '\\'");
}

#[test]
fn paths_match() {
    let fits = |pattern: &str, case, path: &str| PathGlob::compile(pattern, case).unwrap().is_match(path);
    assert!(fits("src/**/*.rs", LetterCase::Sensitive, "src/a/b.rs"));
    assert!(!fits("src/*.rs", LetterCase::Sensitive, "src/a/b.rs"));
    assert!(!fits("SRC/*.rs", LetterCase::Sensitive, "src/b.rs"));
    assert!(fits("SRC/*.rs", LetterCase::Insensitive, "src/b.rs"));
}

proptest! {
    #[test]
    fn checked_pattern_compiles(pattern in "[a-c*?{},!/\\\\\\[\\]-]{0,60}", path in "[a-c/]{0,20}") {
        let compiled = PathGlob::compile(&pattern, LetterCase::Insensitive);
        prop_assert_eq!(PathGlob::check_pattern(&pattern).err(), compiled.as_ref().err().cloned());
        if let Ok(glob) = compiled {
            glob.is_match(path);
        }
    }
}
