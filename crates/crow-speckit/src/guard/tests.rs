use tempfile::TempDir;

use super::*;

const FEATURE: &str = "specs/001-a";

fn project() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    for (path, text) in [
        (".specify/memory/constitution.md", "rules"),
        (".specify/templates/spec-template.md", "template"),
        ("specs/001-a/spec.md", "spec"),
        ("specs/001-a/plan.md", "plan"),
        ("specs/001-a/tasks.md", "tasks"),
        ("specs/001-a/checklists/requirements.md", "- [x] a"),
        ("specs/001-a/checklists/security.md", "- [ ] b"),
        ("src/a.rs", "code"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    (folder, root)
}

fn guard(command: Command, root: &Path) -> Guard {
    Guard::new(command, root, Some(&root.join(FEATURE)))
}

/// Which of these paths each command may write.
#[test]
fn what_each_command_may_write() {
    let (_folder, root) = project();
    let paths = [
        ".specify/memory/constitution.md",
        "specs/001-a/spec.md",
        "specs/001-a/tasks.md",
        "specs/001-a/contracts/new/api.yaml",
        "specs/001-a/checklists/requirements.md",
        "specs/001-a/checklists/new.md",
        "specs/001-a",
        "specs/001-ab/spec.md",
        "src/a.rs",
    ];
    let mut shown = String::new();
    for command in Command::ALL {
        let guard = guard(command, &root);
        let row: String = paths
            .iter()
            .map(|path| if guard.may_write(&root.join(path)).is_ok() { 'w' } else { '.' })
            .collect();
        shown.push_str(&format!("{row} {}\n", command.as_str()));
    }
    expect_test::expect![[r#"
        w........ constitution
        .wwwww... specify
        .wwwww... clarify
        .wwwww... plan
        .....w... checklist
        .wwwww... tasks
        ......... analyze
        w..w..www implement
        ......... converge
    "#]]
    .assert_eq(&shown);
    let refusal = guard(Command::Plan, &root).may_write(&root.join("src/a.rs")).unwrap_err();
    assert_eq!(refusal, "/speckit.plan writes the feature's folder only; src/a.rs stays as it is");
    let none = Guard::new(Command::Plan, &root, None);
    assert!(none.may_write(&root.join("specs/001-a/plan.md")).is_err());
}

#[cfg(unix)]
#[test]
fn ways_around() {
    use std::os::unix::fs::symlink;
    let (_folder, root) = project();
    let feature = root.join(FEATURE);
    symlink(root.join("src"), feature.join("out")).unwrap();
    symlink(feature.join("checklists"), root.join("lists")).unwrap();
    symlink("nowhere", feature.join("dangling")).unwrap();
    symlink("loop", feature.join("loop")).unwrap();
    symlink(feature.join("spec.md"), root.join("src/b.rs")).unwrap();
    let check = |command, path: &str, may: bool| {
        let answer = guard(command, &root).may_write(&root.join(path));
        assert_eq!(answer.is_ok(), may, "{command} {path} {answer:?}");
    };
    check(Command::Plan, "specs/001-a/../../src/a.rs", false);
    check(Command::Plan, "specs/001-a/none/../../../src/a.rs", false);
    check(Command::Plan, "src/../specs/001-a/./plan.md", true);
    check(Command::Plan, "specs/001-a/out/a.rs", false);
    check(Command::Plan, "specs/001-a/dangling", false);
    check(Command::Plan, "specs/001-a/loop/a", false);
    check(Command::Plan, "specs/001-a/out/../plan.md", false);
    check(Command::Implement, "lists/security.md", false);
    check(Command::Implement, "src/b.rs", false);
    check(Command::Implement, "specs/001-a/SPEC.md", false);
    check(Command::Implement, "specs/001-a/out/a.rs", true);
    // The link that a fresh project has.
    symlink(root.join("specs"), root.join(".specify/specs")).unwrap();
    check(Command::Plan, ".specify/specs/001-a/plan.md", true);
    let by_link = Guard::new(Command::Plan, &root, Some(&root.join(".specify/specs/001-a")));
    assert!(by_link.may_write(&root.join("specs/001-a/plan.md")).is_ok());
}

fn shown(touched: &[Touched], root: &Path) -> String {
    let line = |touched: &Touched| {
        let undone = if touched.is_undone { " undone" } else { "" };
        format!("{:?} {}{undone}\n", touched.change, touched.path.strip_prefix(root).unwrap().display())
    };
    touched.iter().map(line).collect()
}

#[test]
fn what_a_shell_did_is_put_back() {
    let (_folder, root) = project();
    let feature = root.join(FEATURE);
    let mut snapshot = Snapshot::take(&guard(Command::Implement, &root)).unwrap();
    assert_eq!(snapshot.changed(), []);
    fs::write(feature.join("spec.md"), "spec and more").unwrap();
    fs::write(feature.join("plan.md"), "not protected").unwrap();
    fs::remove_dir_all(feature.join("checklists")).unwrap();
    fs::create_dir_all(feature.join("checklists/deep")).unwrap();
    fs::write(feature.join("checklists/deep/new.md"), "- [x] c").unwrap();
    fs::write(feature.join("checklists/requirements.md"), "- [ ] a").unwrap();
    fs::write(feature.join("tasks.md"), "flipped").unwrap();
    snapshot.accept(&feature.join("tasks.md")).unwrap();
    let touched = snapshot.restore();
    expect_test::expect![[r#"
        Created specs/001-a/checklists/deep/new.md undone
        Changed specs/001-a/checklists/requirements.md undone
        Removed specs/001-a/checklists/security.md undone
        Changed specs/001-a/spec.md undone
    "#]]
    .assert_eq(&shown(&touched, &root));
    let text = |path: &str| fs::read_to_string(feature.join(path)).unwrap();
    assert_eq!(["spec.md", "plan.md", "tasks.md"].map(text), ["spec", "not protected", "flipped"]);
    assert_eq!(text("checklists/security.md"), "- [ ] b");
    assert_eq!(text("checklists/requirements.md"), "- [x] a");
    assert!(!feature.join("checklists/deep/new.md").exists());
    assert_eq!(snapshot.changed(), []);
}

#[test]
fn what_is_new_stays_where_it_may_be_a_persons() {
    let (_folder, root) = project();
    let feature = root.join(FEATURE);
    let snapshot = Snapshot::take(&guard(Command::Analyze, &root)).unwrap();
    fs::write(feature.join("notes.md"), "mine").unwrap();
    fs::write(feature.join("plan.md"), "else").unwrap();
    expect_test::expect![[r#"
        Created specs/001-a/notes.md
        Changed specs/001-a/plan.md undone
    "#]]
    .assert_eq(&shown(&snapshot.restore(), &root));
    assert_eq!(fs::read_to_string(feature.join("notes.md")).unwrap(), "mine");
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let (_folder, root) = project();
    let feature = root.join(FEATURE);
    fs::set_permissions(feature.join("spec.md"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink(root.join("src/a.rs"), feature.join("checklists/link.md")).unwrap();
    let snapshot = Snapshot::take(&guard(Command::Implement, &root)).unwrap();
    assert_eq!(snapshot.changed(), []);
    fs::remove_file(feature.join("spec.md")).unwrap();
    symlink(root.join("src/a.rs"), feature.join("spec.md")).unwrap();
    expect_test::expect![[r#"
        Changed specs/001-a/spec.md undone
    "#]]
    .assert_eq(&shown(&snapshot.restore(), &root));
    let found = fs::symlink_metadata(feature.join("spec.md")).unwrap();
    assert!(found.is_file() && found.permissions().mode() & 0o777 == 0o640);
    assert_eq!(fs::read_to_string(root.join("src/a.rs")).unwrap(), "code");
    // A folder that became a link is left alone, nothing is written where it leads, and the other files are put back.
    fs::remove_dir_all(feature.join("checklists")).unwrap();
    symlink(root.join("src"), feature.join("checklists")).unwrap();
    fs::write(feature.join("spec.md"), "else").unwrap();
    expect_test::expect![[r#"
        Created specs/001-a/checklists/a.rs
        Removed specs/001-a/checklists/requirements.md
        Removed specs/001-a/checklists/security.md
        Changed specs/001-a/spec.md undone
    "#]]
    .assert_eq(&shown(&snapshot.restore(), &root));
    assert_eq!(fs::read_dir(root.join("src")).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_kept_is_said() {
    let (_folder, root) = project();
    let checklists = root.join(FEATURE).join("checklists");
    (0..300).for_each(|at| fs::write(checklists.join(format!("{at}.md")), "").unwrap());
    let error = Snapshot::take(&guard(Command::Implement, &root)).unwrap_err().to_string();
    assert!(error.contains("more than 256 files"), "{error}");
}
