use expect_test::{Expect, expect};

use super::super::*;

#[track_caller]
fn check(command: &str, expected: &Expect) {
    expected.assert_eq(&match shell_patch(command) {
        None => "another command".to_owned(),
        Some(ShellPatch::Other) => "not only a patch".to_owned(),
        Some(ShellPatch::Patch(patch)) => patch,
    });
}

#[test]
fn patches_in_shell_commands_are_found() {
    let body =
        "*** Begin Patch\n*** Update File: a\n-x\n+y\n*** Update File: /b\n*** Move to: c\n*** End Patch";
    check(
        &format!("apply_patch <<'EOF'\n{body}\nEOF"),
        &expect![[r#"
        *** Begin Patch
        *** Update File: a
        -x
        +y
        *** Update File: /b
        *** Move to: c
        *** End Patch"#]],
    );
    check(
        &format!("cd sub/dir && apply_patch << EOF\n{body}\nEOF\n"),
        &expect![[r#"
        *** Begin Patch
        *** Update File: sub/dir/a
        -x
        +y
        *** Update File: /b
        *** Move to: sub/dir/c
        *** End Patch"#]],
    );
    for command in [
        format!("apply_patch <<'EOF'\n{body}\nEOF\nrm -rf /"),
        format!("apply_patch <<'EOF' && make\n{body}\nEOF"),
        format!("apply_patch <<'EOF'\n{body}\nEOF\necho\nEOF"),
        format!("apply_patch '{body}'"),
        "apply_patch".to_owned(),
    ] {
        check(&command, &expect!["not only a patch"]);
    }
    for command in [
        format!("cd \"$(rm x)\" && apply_patch <<'EOF'\n{body}\nEOF"),
        format!("git apply <<'EOF'\n{body}\nEOF"),
        "apply_patches x".to_owned(),
    ] {
        check(&command, &expect!["another command"]);
    }
}
