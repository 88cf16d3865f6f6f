#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;

#[track_caller]
fn check(text: &str, at_work: &[&str], expected: Expect) {
    let at_work: Vec<TaskId> = at_work.iter().map(|id| TaskId::parse(id).unwrap()).collect();
    let mut shown = String::new();
    for entry in build_plan_view(&TaskList::parse(text), &at_work) {
        let TaskPlanEntry { text, priority, status, line, .. } = entry;
        writeln!(shown, "{line} {priority:?} {status:?} {text}").unwrap();
    }
    expected.assert_eq(&shown);
}

#[test]
fn tasks_are_entries() {
    let long = "x".repeat(200);
    check(
        &format!(
            "- [ ] T001 a\n## Phase 1: Setup\n- [x] T002 b\n## Phase 2: Foundational\n- [ ] T003 [P] c\n\
             ## Phase 3: User Story 1 (P2)\n- [ ] T004 [US1+US2] d\n## Phase 4: User Story 2\n- [ ] T005 [US2] e\n\
             ## Phase 5: User Story 3\n- [ ] T006 [US3] f\n## Phase 6: Polish\n- [ ] T007 g\n- [ ] T008 {long}\n\
             ## Phase 7: Convergence\n- [ ] T009 h\n- [ ] T010 CRITICAL: i\n## Old\n- [ ] T011 [US1] j\n- [ ] T012 k\n"
        ),
        &["T003", "T002", "T099"],
        expect![[r#"
            1 Medium Pending T001 a
            3 High Completed T002 b
            5 High InProgress T003 c
            7 Medium Pending T004 [US1+US2] d
            9 Medium Pending T005 [US2] e
            11 Low Pending T006 [US3] f
            13 Low Pending T007 g
            14 Low Pending T008 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
            16 Medium Pending T009 h
            17 High Pending T010 CRITICAL: i
            19 High Pending T011 [US1] j
            20 Medium Pending T012 k
        "#]],
    );
}

#[test]
fn completed_tasks_of_a_long_list_are_folded() {
    let mut text = "## Phase 1: Setup\n".to_owned();
    (0..59).for_each(|id| writeln!(text, "- [x] T{id:03} a").unwrap());
    text.push_str("## Phase 2: Polish\n- [ ] T100 b\n");
    assert_eq!(build_plan_view(&TaskList::parse(&text), &[]).len(), 60);
    text.push_str("- [x] T101 c\n");
    check(
        &text,
        &[],
        expect![[r#"
        1 High Completed Phase 1: Setup (59/59)
        61 Low Completed Phase 2: Polish (1/2)
        62 Low Pending T100 b
    "#]],
    );
}

#[test]
fn long_plan_gets_shorter_with_every_task() {
    let list = |n_done: usize| {
        let mut text = String::new();
        for id in 1..=90 {
            if id == 11 {
                text.push_str("## Phase 1: Setup\n");
            }
            writeln!(text, "- [{}] T{id:03} a", if id <= n_done { 'x' } else { ' ' }).unwrap();
        }
        text
    };
    let lengths: Vec<usize> =
        [0, 1, 10, 11, 12, 89, 90].map(|n| build_plan_view(&TaskList::parse(&list(n)), &[]).len()).into();
    assert_eq!(lengths, [90, 90, 81, 81, 80, 3, 2]);
    check(
        &list(89),
        &["T090"],
        expect![[r#"
            1 Medium Completed Tasks without a phase (10/10)
            11 High Completed Phase 1: Setup (79/80)
            91 High InProgress T090 a
        "#]],
    );
}
