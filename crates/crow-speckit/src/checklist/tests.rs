#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use expect_test::{Expect, expect};

use super::*;
use crate::lint::shown;

#[test]
fn items_are_counted() {
    let text = "- [ ] a\n- [x] CHK001 b\n  * [X] c\n```\n- [ ] d\n```\n<!-- - [ ] e -->\n- f\n";
    let found = counts(text);
    assert_eq!((found.n_total, found.n_checked), (3, 2));
    assert_eq!(next_item(text), 2);
    assert_eq!(next_item("- [ ] **CHK1009** a\n- [ ] CHK12 b\n- [ ] CHK099a c"), 1010);
    assert_eq!(next_item(""), 1);
}

#[track_caller]
fn check(before: Option<&str>, after: &str, expected: Expect) {
    let template = "## [Group 7]\n- [ ] CHK001 A sample\n- [ ] CHK002 [Is it?] [Gap]\n";
    expected.assert_eq(&shown(&check_checklist(before, after, template)));
}

#[test]
fn what_a_model_adds_to_a_checklist() {
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
        what was in the checklist before has changed; put it back as it was and add new items below it
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
    expected.assert_eq(&shown(&check_markers(before, after)));
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
