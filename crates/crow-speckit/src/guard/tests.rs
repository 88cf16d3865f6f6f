use tempfile::TempDir;

use super::*;
use crate::SpeckitProject;

const FEATURE: &str = "specs/001-a";

fn project() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(directory.path()).unwrap();
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
    (directory, root)
}

fn guard(command: WorkflowCommand, root: &Path) -> WriteGuard {
    WriteGuard::new(command, root, Some(&root.join(FEATURE)))
}

/// Prints which of these paths each command may write.
#[test]
fn commands_write_only_their_files() {
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
    for command in WorkflowCommand::ALL {
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
        ......... taskstoissues
    "#]]
    .assert_eq(&shown);
    let refusal = guard(WorkflowCommand::Plan, &root).may_write(&root.join("src/a.rs")).unwrap_err();
    assert_eq!(refusal, "/speckit.plan writes the feature's directory only; src/a.rs stays as it is");
    let none = WriteGuard::new(WorkflowCommand::Plan, &root, None);
    assert!(none.may_write(&root.join("specs/001-a/plan.md")).is_err());
}

#[cfg(unix)]
#[test]
fn guard_resolves_links_and_dots() {
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
    check(WorkflowCommand::Plan, "specs/001-a/../../src/a.rs", false);
    check(WorkflowCommand::Plan, "specs/001-a/none/../../../src/a.rs", false);
    check(WorkflowCommand::Plan, "src/../specs/001-a/./plan.md", true);
    check(WorkflowCommand::Plan, "specs/001-a/out/a.rs", false);
    check(WorkflowCommand::Plan, "specs/001-a/dangling", false);
    check(WorkflowCommand::Plan, "specs/001-a/loop/a", false);
    check(WorkflowCommand::Plan, "specs/001-a/out/../plan.md", false);
    check(WorkflowCommand::Implement, "lists/security.md", false);
    check(WorkflowCommand::Implement, "src/b.rs", false);
    check(WorkflowCommand::Implement, "specs/001-a/SPEC.md", false);
    check(WorkflowCommand::Implement, "specs/001-a/out/a.rs", true);
    // The link that a new project has.
    symlink(root.join("specs"), root.join(".specify/specs")).unwrap();
    check(WorkflowCommand::Plan, ".specify/specs/001-a/plan.md", true);
    let by_link = WriteGuard::new(WorkflowCommand::Plan, &root, Some(&root.join(".specify/specs/001-a")));
    assert!(by_link.may_write(&root.join("specs/001-a/plan.md")).is_ok());
}

fn shown(touched: &[ProtectedChange], root: &Path) -> String {
    let line = |touched: &ProtectedChange| {
        let undone = if touched.is_undone { " undone" } else { "" };
        format!("{:?} {}{undone}\n", touched.kind, touched.path.strip_prefix(root).unwrap().display())
    };
    touched.iter().map(line).collect()
}

#[test]
fn changes_of_a_shell_are_reverted() {
    let (_folder, root) = project();
    let feature = root.join(FEATURE);
    let mut snapshot = GuardSnapshot::capture(&guard(WorkflowCommand::Implement, &root)).unwrap();
    assert_eq!(snapshot.list_changes(), []);
    fs::write(feature.join("spec.md"), "spec and more").unwrap();
    fs::write(feature.join("plan.md"), "not protected").unwrap();
    fs::remove_dir_all(feature.join("checklists")).unwrap();
    fs::create_dir_all(feature.join("checklists/deep")).unwrap();
    fs::write(feature.join("checklists/deep/new.md"), "- [x] c").unwrap();
    fs::write(feature.join("checklists/requirements.md"), "- [ ] a").unwrap();
    fs::write(feature.join("tasks.md"), "flipped").unwrap();
    snapshot.accept_file(&feature.join("tasks.md")).unwrap();
    let touched = snapshot.restore_files();
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
    assert_eq!(snapshot.list_changes(), []);
}

#[test]
fn new_files_stay_where_they_may_be_the_users() {
    let (_folder, root) = project();
    let feature = root.join(FEATURE);
    let mut snapshot = GuardSnapshot::capture(&guard(WorkflowCommand::Analyze, &root)).unwrap();
    fs::write(feature.join("notes.md"), "mine").unwrap();
    fs::write(feature.join("plan.md"), "else").unwrap();
    expect_test::expect![[r#"
        Created specs/001-a/notes.md
        Changed specs/001-a/plan.md undone
    "#]]
    .assert_eq(&shown(&snapshot.restore_files(), &root));
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
    let mut snapshot = GuardSnapshot::capture(&guard(WorkflowCommand::Implement, &root)).unwrap();
    assert_eq!(snapshot.list_changes(), []);
    fs::remove_file(feature.join("spec.md")).unwrap();
    symlink(root.join("src/a.rs"), feature.join("spec.md")).unwrap();
    expect_test::expect![[r#"
        Changed specs/001-a/spec.md undone
    "#]]
    .assert_eq(&shown(&snapshot.restore_files(), &root));
    let found = fs::symlink_metadata(feature.join("spec.md")).unwrap();
    assert!(found.is_file() && found.permissions().mode() & 0o777 == 0o640);
    assert_eq!(fs::read_to_string(root.join("src/a.rs")).unwrap(), "code");
    // A directory that became a link is restored, and nothing is written to its target.
    fs::remove_dir_all(feature.join("checklists")).unwrap();
    symlink(root.join("src"), feature.join("checklists")).unwrap();
    fs::write(feature.join("spec.md"), "else").unwrap();
    expect_test::expect![[r#"
        Created specs/001-a/checklists undone
        Removed specs/001-a/checklists/requirements.md undone
        Removed specs/001-a/checklists/security.md undone
        Changed specs/001-a/spec.md undone
    "#]]
    .assert_eq(&shown(&snapshot.restore_files(), &root));
    assert_eq!(fs::read_dir(root.join("src")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(feature.join("checklists/security.md")).unwrap(), "- [ ] b");
    expect_test::expect![[r#"
        checklists leads to src
        spec.md leads to src/a.rs
        spec.md.2 says "else"
    "#]]
    .assert_eq(&set_aside(&root));
}

/// The replaced versions; links are printed as their target.
fn set_aside(root: &Path) -> String {
    let mut lines: Vec<String> = fs::read_dir(root.join(SPECIFY_DIR).join(SET_ASIDE_DIR))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().display().to_string();
            let found = fs::symlink_metadata(&path).unwrap();
            match (found.is_symlink(), found.is_file(), found.is_dir()) {
                (true, ..) => format!(
                    "{name} leads to {}\n",
                    fs::read_link(&path).unwrap().strip_prefix(root).unwrap().display()
                ),
                (_, true, _) => format!("{name} says {:?}\n", fs::read_to_string(&path).unwrap()),
                (_, _, true) => format!("{name} is a folder\n"),
                (..) => format!("{name} is something else\n"),
            }
        })
        .collect();
    lines.sort();
    lines.concat()
}

#[cfg(unix)]
#[test]
fn replacement_of_a_file_is_set_aside_without_overwriting() {
    use std::os::unix::fs::symlink;
    let (_folder, root) = project();
    let feature = root.join(FEATURE);
    let outside = root.join("src/a.rs");
    fs::create_dir_all(feature.join("checklists/sub")).unwrap();
    fs::write(feature.join("checklists/sub/security.md"), "- [ ] c").unwrap();
    let mut snapshot = GuardSnapshot::capture(&guard(WorkflowCommand::Implement, &root)).unwrap();
    let aside = root.join(SPECIFY_DIR).join(SET_ASIDE_DIR);
    fs::create_dir_all(&aside).unwrap();
    symlink(&outside, aside.join("spec.md")).unwrap();
    fs::write(feature.join("spec.md"), "mine").unwrap();
    fs::write(feature.join("checklists/new.md"), "new").unwrap();
    fs::write(feature.join("checklists/security.md"), "one").unwrap();
    fs::write(feature.join("checklists/sub/security.md"), "other").unwrap();
    fs::remove_file(feature.join("checklists/requirements.md")).unwrap();
    fs::create_dir(feature.join("checklists/requirements.md")).unwrap();
    fs::write(feature.join("checklists/requirements.md/x"), "x").unwrap();
    expect_test::expect![[r#"
        Created specs/001-a/checklists/new.md undone
        Changed specs/001-a/checklists/requirements.md undone
        Created specs/001-a/checklists/requirements.md/x undone
        Changed specs/001-a/checklists/security.md undone
        Changed specs/001-a/checklists/sub/security.md undone
        Changed specs/001-a/spec.md undone
    "#]]
    .assert_eq(&shown(&snapshot.restore_files(), &root));
    fs::remove_file(feature.join("spec.md")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, feature.join("spec.md"), rustix::fs::Mode::RWXU).unwrap();
    assert!(snapshot.restore_files().iter().all(|touched| touched.is_undone));
    fs::write(feature.join("spec.md"), "mine again").unwrap();
    assert!(snapshot.restore_files().iter().all(|touched| touched.is_undone));
    assert_eq!(snapshot.list_changes(), []);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "code");
    expect_test::expect![[r#"
        checklists-new.md says "new"
        checklists-requirements.md is a folder
        checklists-security.md says "one"
        checklists-sub-security.md says "other"
        spec.md leads to src/a.rs
        spec.md.2 says "mine"
        spec.md.3 is something else
        spec.md.4 says "mine again"
    "#]]
    .assert_eq(&set_aside(&root));
    assert_eq!(fs::read_to_string(root.join(".specify/crow/.gitignore")).unwrap(), "*\n");
}

#[cfg(unix)]
#[test]
fn set_aside_does_not_follow_links() {
    let (_folder, root) = project();
    let mut snapshot = GuardSnapshot::capture(&guard(WorkflowCommand::Implement, &root)).unwrap();
    fs::create_dir_all(root.join(".specify/crow")).unwrap();
    std::os::unix::fs::symlink(root.join("src"), root.join(".specify").join(SET_ASIDE_DIR)).unwrap();
    fs::write(root.join(FEATURE).join("spec.md"), "mine").unwrap();
    assert!(snapshot.restore_files().iter().all(|touched| !touched.is_undone));
    assert_eq!(fs::read_dir(root.join("src")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(root.join(FEATURE).join("spec.md")).unwrap(), "mine");
}

#[test]
fn snapshot_that_exceeds_its_limits_is_an_error() {
    let (_folder, root) = project();
    let checklists = root.join(FEATURE).join("checklists");
    (0..300).for_each(|at| fs::write(checklists.join(format!("{at}.md")), "").unwrap());
    let error = GuardSnapshot::capture(&guard(WorkflowCommand::Implement, &root)).unwrap_err().to_string();
    assert!(error.contains("more than 256 files"), "{error}");
}

/// A running step with its project.
struct Stage {
    _folder: TempDir,
    root: PathBuf,
    watch: ChangeWatch,
}

impl Stage {
    fn new(command: WorkflowCommand, files: &[(&str, &str)]) -> Self {
        let (directory, root) = project();
        for (path, text) in files {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let feature = crate::Feature::from_dir(root.join(FEATURE));
        let snapshot = GuardSnapshot::capture(&guard(command, &root)).unwrap();
        Self { _folder: directory, root, watch: ChangeWatch::new(snapshot, Some(feature)) }
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.root.join(path), text).unwrap();
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap_or_else(|_| "nothing".to_owned())
    }

    /// Writes a file in a call and returns what was restored.
    fn call(&mut self, path: &str, text: &str) -> String {
        self.watch.begin_call(BackgroundWork::None);
        self.write(path, text);
        shown(&self.watch.end_call(BackgroundWork::None), &self.root)
    }

    fn end(&mut self) -> String {
        shown(&self.watch.end_turn(BackgroundWork::None), &self.root)
    }
}

const SECURITY: &str = "specs/001-a/checklists/security.md";

#[test]
fn tick_of_the_user_stays_and_tick_of_a_call_is_reverted() {
    let mut stage = Stage::new(WorkflowCommand::Implement, &[]);
    assert_eq!(stage.call(SECURITY, "- [x] b"), "Changed specs/001-a/checklists/security.md undone\n");
    assert_eq!(stage.text(SECURITY), "- [ ] b");
    stage.write(SECURITY, "- [x] b");
    assert_eq!(stage.call("src/a.rs", "more"), "");
    assert_eq!(stage.text(SECURITY), "- [x] b");
    // A later change by a call is reverted to the user's version.
    assert_eq!(stage.call(SECURITY, "- [ ] b"), "Changed specs/001-a/checklists/security.md undone\n");
    assert_eq!(stage.text(SECURITY), "- [x] b");
    stage.write("specs/001-a/spec.md", "the person's spec");
    assert_eq!(stage.end(), "Changed specs/001-a/checklists/security.md undone\n");
    assert_eq!(stage.text("specs/001-a/spec.md"), "the person's spec");
}

#[test]
fn changes_during_background_work_are_not_the_users() {
    let mut stage = Stage::new(WorkflowCommand::Implement, &[]);
    stage.write(SECURITY, "- [x] b");
    stage.watch.begin_call(BackgroundWork::Running);
    assert_eq!(stage.text(SECURITY), "- [ ] b");
    // Overlapping calls are one interval.
    stage.watch.begin_call(BackgroundWork::None);
    stage.write(SECURITY, "- [x] b");
    assert_eq!(stage.watch.end_call(BackgroundWork::None), []);
    assert_eq!(stage.watch.end_call(BackgroundWork::None).len(), 1);
    stage.write(SECURITY, "- [x] b");
    assert_eq!(stage.watch.end_turn(BackgroundWork::Running).len(), 1);
    assert_eq!(stage.text(SECURITY), "- [ ] b");
}

#[test]
fn changes_of_a_job_that_ended_between_calls_are_not_the_users() {
    let mut stage = Stage::new(WorkflowCommand::Implement, &[]);
    stage.watch.begin_call(BackgroundWork::None);
    assert_eq!(stage.watch.end_call(BackgroundWork::Running), []);
    stage.write(SECURITY, "- [x] b");
    assert_eq!(stage.watch.end_turn(BackgroundWork::None).len(), 1);
    assert_eq!(stage.text(SECURITY), "- [ ] b");
}

#[test]
fn ticks_of_calls_are_recorded() {
    let tasks = "specs/001-a/tasks.md";
    let mut stage =
        Stage::new(WorkflowCommand::Implement, &[(tasks, "- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n")]);
    stage.write(tasks, "- [ ] T001 a\n- [x] T002 b\n- [ ] T003 c\n");
    stage.call(tasks, "- [ ] T001 a\n- [x] T002 b\n- [x] T003 c\n");
    stage.write(tasks, "- [x] T001 a\n- [x] T002 b\n- [x] T003 c\n");
    stage.end();
    let ticked: Vec<String> = stage.watch.take_ticked_tasks().iter().map(ToString::to_string).collect();
    assert_eq!(ticked, ["T003"]);
    assert!(stage.watch.take_ticked_tasks().is_empty());
}

/// Children write the list while Crow ticks the first task, `call` before that and `user` afterwards; returns the ticks
/// that are not allowed.
fn check_ticks_of_children(call: &str, user: &str, expected: &[&str]) {
    let tasks = "specs/001-a/tasks.md";
    let mut stage = Stage::new(WorkflowCommand::Implement, &[(tasks, "- [ ] T001 a\n- [ ] T002 b\n")]);
    let marked = crate::TaskId::parse("T001").unwrap();
    stage.watch.begin_call(BackgroundWork::None);
    stage.write(tasks, call);
    stage.watch.accept_file(&stage.root.join(tasks), Some(&marked)).unwrap();
    stage.watch.end_call(BackgroundWork::None);
    stage.write(tasks, user);
    stage.watch.accept_file(&stage.root.join(tasks), None).unwrap();
    let ticked: Vec<String> = stage.watch.take_ticked_tasks().iter().map(ToString::to_string).collect();
    assert_eq!(ticked, expected);
}

#[test]
fn tick_of_a_child_is_recorded_when_crow_ticks_another_task() {
    let both = "- [x] T001 a\n- [x] T002 b\n";
    check_ticks_of_children(both, both, &["T002"]);
    check_ticks_of_children("- [x] T001 a\n- [ ] T002 b\n", both, &[]);
}

#[test]
fn reviewed_list_loses_nothing_to_a_call() {
    let old = "- [x] CHK001 a\n- [ ] CHK002 b\n";
    let mut stage = Stage::new(WorkflowCommand::Checklist, &[(SECURITY, old)]);
    assert_eq!(stage.call(SECURITY, &format!("{old}- [ ] CHK003 c\n")), "");
    let ticks = "- [x] CHK001 a\n- [x] CHK002 b\n- [ ] CHK003 c\n";
    assert_eq!(stage.call(SECURITY, ticks), "Changed specs/001-a/checklists/security.md undone\n");
    assert_eq!(stage.text(SECURITY), format!("{old}- [ ] CHK003 c\n"));
    // The user checks a box between calls, and the model rewrites the list.
    stage.write(SECURITY, ticks);
    assert_eq!(
        stage.call(SECURITY, "- [ ] CHK001 other\n"),
        "Changed specs/001-a/checklists/security.md undone\n"
    );
    assert_eq!(stage.text(SECURITY), "- [x] CHK001 a\n- [x] CHK002 b\n");
    // The model may change a list that it created.
    let new = "specs/001-a/checklists/new.md";
    assert_eq!(stage.call(new, "- [ ] CHK001 x\n"), "");
    assert_eq!(stage.call(new, "- [ ] CHK001 y\n"), "");
    assert_eq!(stage.text(new), "- [ ] CHK001 y\n");
    stage.watch.begin_call(BackgroundWork::None);
    fs::remove_file(stage.root.join(SECURITY)).unwrap();
    stage.watch.end_call(BackgroundWork::None);
    assert_eq!(stage.text(SECURITY), "- [x] CHK001 a\n- [x] CHK002 b\n");
    stage.end();
}

#[test]
fn other_features_are_protected_except_by_implement() {
    let other = "specs/002-b/spec.md";
    for command in WorkflowCommand::ALL {
        let mut stage = Stage::new(command, &[(other, "other"), ("specs/notes/a.md", "notes")]);
        let undone = stage.call(other, "mine");
        let expected =
            if command == WorkflowCommand::Implement { "" } else { "Changed specs/002-b/spec.md undone\n" };
        assert_eq!(undone, expected, "{command}");
        let expected = if command == WorkflowCommand::Implement { "mine" } else { "other" };
        assert_eq!(stage.text(other), expected, "{command}");
        assert_eq!(stage.call("specs/notes/a.md", "mine"), "", "{command}");
    }
}

#[cfg(unix)]
#[test]
fn removed_and_new_files_of_other_features() {
    let mut stage = Stage::new(
        WorkflowCommand::Plan,
        &[("specs/002-b/spec.md", "other"), ("specs/002-b/plan.md", "plan")],
    );
    stage.watch.begin_call(BackgroundWork::None);
    fs::remove_dir_all(stage.root.join("specs/002-b")).unwrap();
    stage.watch.end_call(BackgroundWork::None);
    assert_eq!(stage.text("specs/002-b/plan.md"), "plan");
    assert_eq!(stage.call("specs/002-b/new.md", "new"), "Created specs/002-b/new.md\n");
    assert_eq!(stage.text("specs/002-b/new.md"), "new");
    // Another session is implementing it.
    let project = SpeckitProject::from_root(&stage.root);
    let _hold =
        crate::FeatureLock::acquire(&project, &crate::Feature::from_dir(stage.root.join("specs/002-b")))
            .unwrap();
    assert_eq!(stage.call("specs/002-b/spec.md", "of the other session"), "");
    assert_eq!(stage.text("specs/002-b/spec.md"), "of the other session");
}

#[test]
fn many_other_features_do_not_block_a_step() {
    let long = "x".repeat(3 * 1024 * 1024);
    let files: Vec<(String, &str)> =
        (2..6).map(|n| (format!("specs/00{n}-b/spec.md"), long.as_str())).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let mut stage = Stage::new(WorkflowCommand::Plan, &files);
    assert_eq!(stage.call("specs/002-b/spec.md", "short"), "Changed specs/002-b/spec.md undone\n");
    // Changes of files that were not saved are only reported.
    assert_eq!(stage.call("specs/005-b/spec.md", "short"), "Changed specs/005-b/spec.md\n");
}
