use expect_test::{Expect, expect};

use super::*;

/// Returns the hash for a letter.
fn hash(letter: char) -> ContentHash {
    ContentHash::new([u8::try_from(letter).unwrap_or_default(); 32])
}

/// Parses changes `path before>after`, where `-` is no file and `?` was too large, and current states `path=now`,
/// where `!` is unreadable.
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
                '?' => PriorFileState::TooLarge,
                was => PriorFileState::File(hash(was)),
            };
            let left = Some(letter(left)).filter(|&left| left != '-').map(hash);
            UndoChange { path: path.into(), before: was, after: left }
        })
        .collect();
    let found = |path: &str| {
        let state = now.split(' ').find_map(|state| state.strip_prefix(&format!("{path}=")));
        match letter(state.unwrap_or_default()) {
            '-' => CurrentFileState::Missing,
            '!' => CurrentFileState::Unreadable("a link".into()),
            now => CurrentFileState::File(hash(now)),
        }
    };
    let lines = plan_undo(&changes, found).into_iter().map(|planned| {
        let PlannedUndo { path, action, changes, goal_change: goal } = planned;
        format!("{path} {action:?} of {changes:?} to {goal}\n")
    });
    expect.assert_eq(&lines.collect::<String>());
}

#[test]
fn single_change_is_planned() {
    check("a x>y", "a=y", &expect!["a Restore(0) of [0] to 0\n"]);
    check("a ->y", "a=y", &expect!["a Remove of [0] to 0\n"]);
    check("a x>-", "a=-", &expect!["a Restore(0) of [0] to 0\n"]);
}

#[test]
fn change_without_effect_is_already_restored() {
    check(
        "a x>y",
        "a=x",
        &expect![[r#"
        a AlreadyRestored of [0] to 0
    "#]],
    );
    check(
        "a ->y",
        "a=-",
        &expect![[r#"
        a AlreadyRestored of [0] to 0
    "#]],
    );
    check(
        "a x>y, a y>y",
        "a=x",
        &expect![[r#"
        a AlreadyRestored of [0, 1] to 0
    "#]],
    );
}

#[test]
fn changes_by_others_stay() {
    check("a x>y", "a=z", &expect!["a Conflict(Changed) of [0] to 0\n"]);
    check("a ->y", "a=z", &expect!["a Conflict(Changed) of [0] to 0\n"]);
    check(
        "a x>y",
        "a=-",
        &expect![[r#"
        a Conflict(Removed) of [0] to 0
    "#]],
    );
    check("a x>-", "a=z", &expect!["a Conflict(Changed) of [0] to 0\n"]);
    check(
        "a x>y",
        "a=!",
        &expect![[r#"
            a Conflict(NotRestorable("a link")) of [0] to 0
        "#]],
    );
    check(
        "a ?>y",
        "a=y",
        &expect![[r#"
        a Conflict(NotStored) of [0] to 0
    "#]],
    );
}

#[test]
fn consecutive_changes_of_a_path_are_one_step() {
    check(
        "a x>y, b ->q, a y>z",
        "a=z b=q",
        &expect![[r"
        a Restore(0) of [0, 2] to 0
        b Remove of [1] to 1
    "]],
    );
    check("a ->y, a y>z", "a=z", &expect!["a Remove of [0, 1] to 0\n"]);
    // The process ended before the second change.
    check("a x>y, a y>z", "a=y", &expect!["a Restore(0) of [0, 1] to 0\n"]);
    // The second change had no effect.
    check("a x>y, a y>y, a y>z", "a=z", &expect!["a Restore(0) of [0, 1, 2] to 0\n"]);
    check("a x>y, a y>z", "a=q", &expect!["a Conflict(Changed) of [0, 1] to 0\n"]);
    check(
        "a ?>y, a y>z",
        "a=z",
        &expect![[r#"
        a Conflict(NotStored) of [0, 1] to 0
    "#]],
    );
}

#[test]
fn change_by_others_in_between_stops_undo() {
    check(
        "a x>y, a p>z",
        "a=z",
        &expect![[r#"
            a Restore(1) of [1] to 1
            a Conflict(ChangedBetween) of [0] to 0
        "#]],
    );
    check(
        "a x>y, a p>z",
        "a=p",
        &expect![[r#"
            a AlreadyRestored of [1] to 1
            a Conflict(ChangedBetween) of [0] to 0
        "#]],
    );
    check("a x>y, a p>z", "a=q", &expect!["a Conflict(Changed) of [0, 1] to 0\n"]);
    // The user had restored the file.
    check("a x>y, a x>z", "a=z", &expect!["a Restore(1) of [0, 1] to 0\n"]);
    check("a ->y, a ->z", "a=z", &expect!["a Remove of [0, 1] to 0\n"]);
    // The user had undone one change.
    check("a x>y, a y>z, a y>q", "a=q", &expect!["a Restore(0) of [0, 1, 2] to 0\n"]);
}

#[test]
fn diff_is_truncated() {
    let many: String = (0..100).map(|line| format!("line {line}\n")).collect();
    let shown = render_unified_diff(&many, "").unwrap_or_default();
    assert_eq!(shown.lines().count(), DIFF_LINES_MAX + 1);
    assert!(shown.ends_with("… and 61 more lines"), "{shown}");
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
