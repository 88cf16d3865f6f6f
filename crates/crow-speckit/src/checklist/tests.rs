#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use expect_test::{Expect, expect};

use super::*;
use crate::lint::render_problems;

#[test]
fn items_are_counted() {
    let text = "- [ ] a\n- [x] CHK001 b\n  * [X] c\n```\n- [ ] d\n```\n<!-- - [ ] e -->\n- f\n";
    let found = count_items(text);
    assert_eq!((found.n_total, found.n_checked), (3, 2));
    assert_eq!(next_item_number(text), 2);
    assert_eq!(next_item_number("- [ ] **CHK1009** a\n- [ ] CHK12 b\n- [ ] CHK099a c"), 1010);
    assert_eq!(next_item_number(""), 1);
}

#[track_caller]
fn check(before: Option<&str>, after: &str, expected: Expect) {
    let template = "## [Group 7]\n- [ ] CHK001 A sample\n- [ ] CHK002 [Is it?] [Gap]\n";
    expected.assert_eq(&render_problems(&check_checklist(before, after, template)));
}

#[test]
fn added_items_are_checked() {
    let old = "# A\n- [x] CHK001 Is it said? [Gap]\n";
    check(
        None,
        "- [ ] CHK001 Is it? [Spec §FR-001]\n- [ ] CHK002 Is it? [Clarity, Spec §FR-002]\n",
        expect![""],
    );
    check(Some(old), &format!("{old}- [ ] CHK002 Is it? [Gap]\n"), expect![""]);
    check(
        Some(old),
        "# A\n- [ ] CHK001 Is it said? [Gap]\n",
        expect![[r#"
            no item was added; add lines such as `- [ ] CHK001 …`
        "#]],
    );
    check(
        Some(old),
        old,
        expect![[r#"
        no item was added; add lines such as `- [ ] CHK001 …`
    "#]],
    );
    check(
        None,
        "## [Group 7]\n- [ ] CHK001 A sample\n",
        expect![[r#"
        only 0 of 1 new items say what they are about; end at least 80 % of them with [Spec §…], [Gap], [Ambiguity], [Conflict] or [Assumption]
        line 1: the placeholder [Group 7] is still there; replace it, or remove its line
        line 2: this item is a sample of the template; replace it
    "#]],
    );
    check(
        Some(old),
        &format!(
            "{old}- [x] CHK002 Is it? [Gap]\n- [ ] CHK002 Again? [Gap]\n- [ ] None? [Gap]\n- [ ] CHK005 D?\n"
        ),
        expect![[r#"
            only 3 of 4 new items say what they are about; end at least 80 % of them with [Spec §…], [Gap], [Ambiguity], [Conflict] or [Assumption]
            line 3: a new item is ticked; only a reviewer ticks, write `[ ]`
            line 4: this item has to begin with CHK003
            line 5: this item has to begin with CHK004
        "#]],
    );
}

#[track_caller]
fn check_boxes(before: &str, after: &str, expected: Expect) {
    expected.assert_eq(&render_problems(&check_box_changes(before, after)));
}

#[test]
fn only_boxes_may_change() {
    check_boxes("# A\n- [ ] a\r\n- [x] b", "# A\n- [x] a\r\n- [ ] b", expect![""]);
    check_boxes(
        "- [ ] a\n- [ ] b\n",
        "- [x] a\n- [x] c\n",
        expect![[r#"
        line 2: only boxes may change here; the line was: - [ ] b
    "#]],
    );
    check_boxes(
        "- [ ] a\n",
        "- [x] a\n- [x] b\n",
        expect![[r#"
        line 2: only boxes may change here; remove what was added
    "#]],
    );
    check_boxes(
        "- [ ] a\n- [ ] b\n",
        "- [x] a\n",
        expect![[r#"
        line 2: only boxes may change here; the line was: - [ ] b
    "#]],
    );
    check_boxes(
        "```\n- [ ] a\n```\n",
        "```\n- [x] a\n```\n",
        expect![[r#"
        line 2: only boxes may change here; the line was: - [ ] a
    "#]],
    );
}

#[track_caller]
fn check_reviewed(before: &str, after: &str, expected: &str) {
    let shown = match compare_reviewed(before, after) {
        ReviewOutcome::Unchanged => "whole".to_owned(),
        ReviewOutcome::BoxesRestored(text) => text,
        ReviewOutcome::Broken => "lost".to_owned(),
    };
    assert_eq!(shown, expected, "{before:?} -> {after:?}");
}

#[test]
fn reviewed_items_keep_their_boxes() {
    let old = "# A\n- [x] CHK001 a\n- [ ] CHK002 b\n";
    check_reviewed(old, &format!("{old}- [ ] CHK003 c\n"), "whole");
    check_reviewed(old, "# A\n- [x] CHK001 a\n## New\n- [ ] CHK003 c\n\n- [ ] CHK002 b\n", "whole");
    check_reviewed(old, &old.replace('\n', "\r\n"), "whole");
    check_reviewed(&format!("\u{feff}{old}"), old, "whole");
    check_reviewed(old, "# A\n- [ ] CHK001 a\n- [X] CHK002 b\n", old);
    check_reviewed(old, &format!("{old}- [x] CHK003 c\n"), &format!("{old}- [ ] CHK003 c\n"));
    check_reviewed(old, "# A\n- [x] CHK001 a\n", "lost");
    check_reviewed(old, "# A\n- [ ] CHK002 b\n- [x] CHK001 a\n", "lost");
    check_reviewed(old, "# A\n- [x] CHK001 a, changed\n- [ ] CHK002 b\n", "lost");
    check_reviewed("- [x] CHK001 a\nA reviewer's note\n", "- [x] CHK001 a\n", "lost");
    check_reviewed("```\n- [ ] a\n```\n", "```\n- [x] a\n```\n", "lost");
    check_reviewed("- [x] a\n", "```\n- [x] a\n```\n", "lost");
    check_reviewed("- [x] a\n", "<!--\n- [x] a\n-->\n", "lost");
}

#[test]
fn reviewers_boxes_are_adopted_and_nothing_else() {
    let (kept, seen) = ("- [ ] a\n- [x] b\n", "- [ ] a\n- [ ] new\n- [x] b\n");
    let adopted = adopt_boxes(kept, seen, "- [x] a\n- [x] new\n- [ ] b\n");
    assert_eq!(adopted.as_deref(), Some("- [x] a\n- [ ] b\n"));
    assert_eq!(adopt_boxes(kept, seen, "- [x] a, changed\n- [ ] new\n- [x] b\n"), None);
}

proptest::proptest! {
    /// After any write to a list, the restored text has every earlier line, in order and with its box.
    #[test]
    fn reviewed_list_loses_nothing(
        before in "(- \\[[ xX]\\] (a|b|CHK001 c)\n|# h\n|note\n|\n|```\n){0,8}",
        after in "(- \\[[ xX]\\] (a|b|CHK001 c)\n|# h\n|note\n|\n|```\n){0,12}",
    ) {
        match compare_reviewed(&before, &after) {
            ReviewOutcome::Broken => {}
            ReviewOutcome::Unchanged => proptest::prop_assert!(has_all(&before, &after)),
            ReviewOutcome::BoxesRestored(text) => {
                proptest::prop_assert!(has_all(&before, &text), "{text:?}");
                proptest::prop_assert_eq!(compare_reviewed(&before, &text), ReviewOutcome::Unchanged);
                proptest::prop_assert_eq!(clear_boxes(&text), clear_boxes(&after));
            }
        }
    }
}

/// Whether every non-empty line of one text is in the other, in order.
fn has_all(before: &str, after: &str) -> bool {
    let path_text = |line: &str| line.replace("[X]", "[x]");
    let mut after = after.lines().map(path_text);
    before
        .lines()
        .filter(|line| !line.trim().is_empty())
        .all(|line| after.any(|other| other == path_text(line)))
}
