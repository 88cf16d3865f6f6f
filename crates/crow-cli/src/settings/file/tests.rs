//! Any text, as a repository may have it.

use std::path::Path;

use proptest::prelude::*;

use super::*;

/// Pieces of YAML and of variables, for texts that get past the first line.
const PIECES: [&str; 36] = [
    "a", "a: ", "b:\n", "- ", "\n", "\n  ", "\n    ", "{", "}", "[", "]", ",", "\"", "'", "|\n ", ">-\n ",
    "&x ", "*x ", "!!str ", "? ", "# ", "${A}", "${", "$", "\u{E0C0}", "\u{E0C1}", "é", "1", "0x_1", "true",
    "null", "\t", "---\n", "<<: ", "\r\n", "\u{FEFF}",
];

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => proptest::sample::select(PIECES.to_vec()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Checks that a node and those below it are in the text.
fn check_node(node: &ConfigNode, marked: &str, n_lines: u64) -> Result<(), TestCaseError> {
    prop_assert!(node.line <= n_lines, "line {}", node.line);
    prop_assert!(marked.get(node.span.clone()).is_some(), "{:?}", node.span);
    match &node.value {
        ConfigValue::Null | ConfigValue::Scalar(_) => Ok(()),
        ConfigValue::List(items) => items.iter().try_for_each(|item| check_node(item, marked, n_lines)),
        ConfigValue::Map(fields) => fields.iter().try_for_each(|field| {
            prop_assert!(field.line <= n_lines, "line {}", field.line);
            check_node(&field.node, marked, n_lines)
        }),
    }
}

proptest! {
    #[test]
    fn any_text_has_a_tree_or_an_error_in_it(text in any_text()) {
        let marked = mark_variables(&text);
        let n_lines = text.split(['\r', '\n']).count() as u64;
        match parse_marked(Path::new("config.yaml"), &marked) {
            Ok(node) => check_node(&node, &marked, n_lines)?,
            Err(ConfigError::Invalid { line, problem, .. }) => {
                prop_assert!((1..=n_lines).contains(&line), "line {line} of {n_lines}: {problem}");
                prop_assert!(!problem.contains(OPEN_MARK) || text.contains(OPEN_MARK), "{problem}");
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn marks_lose_nothing(text in any_text()) {
        prop_assert_eq!(unmark_variables(&mark_variables(&text)), unmark_variables(&text));
    }
}
