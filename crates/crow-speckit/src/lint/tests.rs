#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

mod constitution;
mod plan;
mod spec;
mod tasks;

#[track_caller]
fn check(problems: Vec<LintProblem>, expected: Expect) {
    expected.assert_eq(&render_problems(&problems));
}

#[test]
fn placeholders_are_those_left_from_the_template() {
    let template = "# [NAME]\n\n[Say what\nit is] and [a, e.g. \"b [c]\"]\n- [ ] T001 in test_[name].py, [P] [Story] `[ID]`\n";
    check(
        find_placeholders(template, template),
        expect![[r#"
        line 1: the placeholder [NAME] is still there; replace it, or remove its line
        line 3: the placeholder [Say what it is] is still there; replace it, or remove its line
        line 4: the placeholder [a, e.g. "b [c]"] is still there; replace it, or remove its line
        line 5: the placeholder test_[name].py is still there; replace it, or remove its line
    "#]],
    );
    let fine = "# A\n\n[a link](b.md), [ref][b], [^1], [P], [US1], [Spec §FR-001], [NEEDS CLARIFICATION: c]\n\
                - [x] a `[NAME]` [b]: app/[name]/page.tsx, [0, 1], [NAME](c.md), ![NAME]\n\n```\n[NAME]\n```\n[b]: c.md\n";
    check(find_placeholders(fine, template), expect![""]);
    check(
        find_placeholders("a [FEATURE NAME], [e.g., b], [SOME_TOKEN] and `specs/[###-a]`", ""),
        expect![[r#"
        line 1: the placeholder [FEATURE NAME] is still there; replace it, or remove its line
        line 1: the placeholder [e.g., b] is still there; replace it, or remove its line
        line 1: the placeholder [SOME_TOKEN] is still there; replace it, or remove its line
        line 1: the placeholder [###…] is still there; write the feature's name
    "#]],
    );
}

#[test]
fn problems_are_limited_to_the_first() {
    let many = (0..40).map(|line| LintProblem::at_line(line, "a")).collect();
    assert_eq!(
        first_problems(many).last().map(ToString::to_string).as_deref(),
        Some("10 more problems are not listed")
    );
}
proptest! {
    #[test]
    fn strange_pages_do_not_panic(
        page in "(# |## |### |[a-z]| |\n|\r\n|- |\\[|\\]|\\(|\\||`|\\*\\*|<!--|-->|FR-00|User Story |Constitution Check|FAIL|é|:){0,40}",
        other in any::<String>(),
    ) {
        for (text, template) in [(&page, &other), (&other, &page), (&page, &page)] {
            let n_lines = text.lines().count();
            let problems = [
                check_spec(text, template), check_plan(text, template), check_tasks(text, template, template),
                check_constitution(Some(template), text), check_research(Some(text)),
                crate::checklist::check_checklist(None, text, template), crate::checklist::check_box_changes(text, template),
            ];
            prop_assert!(problems.iter().flatten().all(|problem| problem.line.is_none_or(|line| (1..=n_lines + 1).contains(&line))));
        }
    }
}
