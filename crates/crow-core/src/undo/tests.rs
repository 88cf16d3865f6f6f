use expect_test::{Expect, expect};

use super::*;

/// Names a content by one letter.
fn hash(letter: char) -> ContentHash {
    ContentHash::new([u8::try_from(letter).unwrap_or_default(); 32])
}

/// Reads changes as `path before>after`, where `-` is no file and `?` was too large, and what is there as `path=now`,
/// where `!` is something odd.
#[track_caller]
fn check(changes: &str, now: &str, expect: &Expect) {
    let letter = |text: &str| text.chars().next().unwrap_or('-');
    let changes: Vec<UndoChange> = changes
        .split(", ")
        .map(|change| {
            let (path, states) = change.split_once(' ').unwrap_or_default();
            let (was, left) = states.split_once('>').unwrap_or_default();
            let was = match letter(was) {
                '-' => PriorFileState::Missing,
                '?' => PriorFileState::Unknown,
                was => PriorFileState::File(hash(was)),
            };
            let left = Some(letter(left)).filter(|&left| left != '-').map(hash);
            UndoChange { path: path.into(), was, left }
        })
        .collect();
    let found = |path: &str| {
        let state = now.split(' ').find_map(|state| state.strip_prefix(&format!("{path}=")));
        match letter(state.unwrap_or_default()) {
            '-' => CurrentFileState::Missing,
            '!' => CurrentFileState::Odd("a link".into()),
            now => CurrentFileState::File(hash(now)),
        }
    };
    let lines = plan_undo(&changes, found).into_iter().map(|planned| {
        let PlannedUndo { path, action, changes, goal } = planned;
        format!("{path} {action:?} of {changes:?} to {goal}\n")
    });
    expect.assert_eq(&lines.collect::<String>());
}

#[test]
fn one_change() {
    check("a x>y", "a=y", &expect!["a Restore(0) of [0] to 0\n"]);
    check("a ->y", "a=y", &expect!["a Remove of [0] to 0\n"]);
    check("a x>-", "a=-", &expect!["a Restore(0) of [0] to 0\n"]);
}

#[test]
fn what_never_happened_or_was_taken_back_already() {
    check("a x>y", "a=x", &expect!["a AlreadyThere of [0] to 0\n"]);
    check("a ->y", "a=-", &expect!["a AlreadyThere of [0] to 0\n"]);
    check("a x>y, a y>y", "a=x", &expect!["a AlreadyThere of [0, 1] to 0\n"]);
}

#[test]
fn what_others_did_stays() {
    check("a x>y", "a=z", &expect!["a Conflict(Changed) of [0] to 0\n"]);
    check("a ->y", "a=z", &expect!["a Conflict(Changed) of [0] to 0\n"]);
    check("a x>y", "a=-", &expect!["a Conflict(Gone) of [0] to 0\n"]);
    check("a x>-", "a=z", &expect!["a Conflict(Changed) of [0] to 0\n"]);
    check(
        "a x>y",
        "a=!",
        &expect![[r#"
        a Conflict(Odd("a link")) of [0] to 0
    "#]],
    );
    check("a ?>y", "a=y", &expect!["a Conflict(NotKept) of [0] to 0\n"]);
}

#[test]
fn several_changes_of_a_path_are_one_step() {
    check(
        "a x>y, b ->q, a y>z",
        "a=z b=q",
        &expect![[r"
        a Restore(0) of [0, 2] to 0
        b Remove of [1] to 1
    "]],
    );
    check("a ->y, a y>z", "a=z", &expect!["a Remove of [0, 1] to 0\n"]);
    // The process ended before the second was made.
    check("a x>y, a y>z", "a=y", &expect!["a Restore(0) of [0, 1] to 0\n"]);
    // The second came to nothing.
    check("a x>y, a y>y, a y>z", "a=z", &expect!["a Restore(0) of [0, 1, 2] to 0\n"]);
    check("a x>y, a y>z", "a=q", &expect!["a Conflict(Changed) of [0, 1] to 0\n"]);
    check("a ?>y, a y>z", "a=z", &expect!["a Conflict(NotKept) of [0, 1] to 0\n"]);
}

#[test]
fn what_somebody_wrote_between_two_changes_is_where_it_stops() {
    check(
        "a x>y, a p>z",
        "a=z",
        &expect![[r"
        a Restore(1) of [1] to 1
        a Conflict(InBetween) of [0] to 0
    "]],
    );
    check(
        "a x>y, a p>z",
        "a=p",
        &expect![[r"
        a AlreadyThere of [1] to 1
        a Conflict(InBetween) of [0] to 0
    "]],
    );
    check("a x>y, a p>z", "a=q", &expect!["a Conflict(Changed) of [0, 1] to 0\n"]);
    // They had put back themselves what was there.
    check("a x>y, a x>z", "a=z", &expect!["a Restore(1) of [0, 1] to 0\n"]);
    check("a ->y, a ->z", "a=z", &expect!["a Remove of [0, 1] to 0\n"]);
    // They had gone one step back.
    check("a x>y, a y>z, a y>q", "a=q", &expect!["a Restore(0) of [0, 1, 2] to 0\n"]);
}

#[test]
fn a_difference_is_short() {
    let many: String = (0..100).map(|line| format!("line {line}\n")).collect();
    let shown = render_unified_diff(&many, "").unwrap_or_default();
    assert_eq!(shown.lines().count(), DIFF_LINES_MAX + 1);
    assert!(shown.ends_with("… and 61 lines more"), "{shown}");
    expect![[r"
        @@ -1,3 +1,3 @@
         a
        -b
        +c
         d"]]
    .assert_eq(&render_unified_diff("a\nb\nd\n", "a\nc\nd\n").unwrap_or_default());
    let long = "é".repeat(1000);
    assert!(
        render_unified_diff(&long, "").unwrap_or_default().lines().all(|line| line.chars().count() <= 201)
    );
    assert_eq!(render_unified_diff(&"x\n".repeat(COMPARED_BYTES_MAX), ""), None);
}
