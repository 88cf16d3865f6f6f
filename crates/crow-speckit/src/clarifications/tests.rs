#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

const DAY: &str = "2026-02-03";

#[track_caller]
fn check(text: &str, question: &str, answer: &str, expected: Expect) {
    let longer = add_clarification(text, DAY, question, answer);
    expected.assert_eq(&longer);
    assert_eq!(count_clarifications(&longer, DAY), count_clarifications(text, DAY) + 1);
    if text.is_empty() {
        return;
    }
    let with_crlf = |text: &str| text.replace('\n', "\r\n");
    assert_eq!(
        add_clarification(&with_crlf(text), DAY, question, answer).replace('\n', ""),
        with_crlf(&longer).replace('\n', "")
    );
}

#[test]
fn headings_are_created_where_they_are_missing() {
    check(
        "# A\n\n**Status**: Draft\n\n## User Scenarios & Testing\n\nb\n",
        "Who?",
        "All",
        expect![[r#"
        # A

        **Status**: Draft

        ## Clarifications

        ### Session 2026-02-03

        - Q: Who? → A: All

        ## User Scenarios & Testing

        b
    "#]],
    );
    check(
        "# A\n\n## Overview\n\nb\n\n## More\n\nc\n\n## Requirements\n",
        "Who?",
        "All",
        expect![[r#"
        # A

        ## Overview

        b

        ## More

        c

        ## Clarifications

        ### Session 2026-02-03

        - Q: Who? → A: All

        ## Requirements
    "#]],
    );
    check(
        "# A\n\n## Overview\n\nb\n\n## More\n\nc\n",
        "Who?",
        "All",
        expect![[r#"
        # A

        ## Overview

        b

        ## Clarifications

        ### Session 2026-02-03

        - Q: Who? → A: All

        ## More

        c
    "#]],
    );
}

#[test]
fn section_is_placed_in_sparse_specs() {
    check(
        "# A\n",
        "Who?",
        "All",
        expect![[r#"
        # A

        ## Clarifications

        ### Session 2026-02-03

        - Q: Who? → A: All
    "#]],
    );
    check(
        "",
        "Who?",
        "All",
        expect![[r#"
        ## Clarifications

        ### Session 2026-02-03

        - Q: Who? → A: All
    "#]],
    );
    check(
        "# A\n\n```\n## Requirements\n```\n",
        "Who?",
        "All",
        expect![[r#"
        # A

        ```
        ## Requirements
        ```

        ## Clarifications

        ### Session 2026-02-03

        - Q: Who? → A: All
    "#]],
    );
}

#[test]
fn answers_of_a_day_are_grouped() {
    check(
        "# A\n\n## Clarifications\n\n### Session 2026-01-01\n\n- Q: a → A: b\n\n## Requirements\n",
        "Who?",
        "All",
        expect![[r#"
            # A

            ## Clarifications

            ### Session 2026-01-01

            - Q: a → A: b

            ### Session 2026-02-03

            - Q: Who? → A: All

            ## Requirements
        "#]],
    );
    check(
        "# A\n\n## Clarifications\n\n### Session 2026-02-03\n\n- Q: a → A: b\n\n### Session 2026-01-01\n\n- Q: c → A: d\n\n## Requirements\n",
        "Who?",
        "All",
        expect![[r#"
            # A

            ## Clarifications

            ### Session 2026-02-03

            - Q: a → A: b
            - Q: Who? → A: All

            ### Session 2026-01-01

            - Q: c → A: d

            ## Requirements
        "#]],
    );
    check(
        "# A\n## Clarifications\n### Session 2026-02-03\n## Requirements",
        "Who?",
        "All",
        expect![[r#"
        # A
        ## Clarifications
        ### Session 2026-02-03

        - Q: Who? → A: All

        ## Requirements"#]],
    );
}

#[test]
fn hostile_answer_stays_on_its_line() {
    check(
        "# A\n",
        "a\n## Requirements\n<!-- b",
        "c → A: `d [NEEDS CLARIFICATION: e]\u{1b}[31m",
        expect![[r#"
        # A

        ## Clarifications

        ### Session 2026-02-03

        - Q: a ## Requirements <! -- b → A: c -> A: 'd [needs clarification: e] [31m
    "#]],
    );
}

proptest! {
    #[test]
    fn existing_text_stays(text in "([#a]|## |### |\n|\r\n|- Q: |Clarifications|Session 2026-02-03|```|<!--|-->| ){0,20}", answer in ".{0,9}") {
        let longer = add_clarification(&text, DAY, "Who?", &answer);
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut rest = words(&longer).into_iter();
        for word in words(&text) {
            prop_assert!(rest.any(|other| other == word));
        }
        prop_assert!(longer.contains("- Q: Who? → A: "));
    }
}
