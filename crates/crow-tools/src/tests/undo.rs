use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    sync::Mutex,
};

use crow_core::{
    CallId, ContentHash, ToolArguments, ToolCall,
    undo::{UndoMode, UndoSnapshot},
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::{Machine, show};
use crate::{RecordedChange, ToolCx, UndoContext, UndoFuture, UndoRecorder, undo_changes};

/// Records in memory, or fails.
#[derive(Default)]
struct Memory {
    kept: Mutex<Vec<RecordedChange>>,
    is_full: bool,
}

impl UndoRecorder for Memory {
    fn record_change<'a>(
        &'a self,
        path: &'a Path,
        before: UndoSnapshot,
        after: ContentHash,
    ) -> UndoFuture<'a, Result<(), String>> {
        if self.is_full {
            return Box::pin(async { Err("there is no room left".into()) });
        }
        let kept = RecordedChange { path: path.to_str().unwrap().into(), before, after: Some(after) };
        self.kept.lock().unwrap().push(kept);
        Box::pin(async { Ok(()) })
    }

    fn correct_after(&self, after: Option<ContentHash>) -> UndoFuture<'_, ()> {
        self.kept.lock().unwrap().last_mut().unwrap().after = after;
        Box::pin(async {})
    }
}

/// A machine with an undo recorder.
pub(super) struct Stage {
    pub(super) machine: Machine,
    memory: Memory,
}

impl Stage {
    pub(super) fn new(setup: fn(&Path)) -> Self {
        Self { machine: Machine::new(setup), memory: Memory::default() }
    }

    pub(super) async fn call(&self, name: &str, arguments: Value) -> String {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let arguments = ToolArguments::Valid(arguments);
        let call = ToolCall {
            id: CallId::from_position(1, 0),
            provider_id: "1".into(),
            name: name.into(),
            arguments,
        };
        let info = self.machine.tools.call_info(&call, &self.machine.workspace);
        let cx = self.machine.cx(&|_| ());
        let cx = ToolCx { access: &info.access, undo_recorder: Some(&self.memory), ..cx };
        show(&self.machine.tools.run_call(&call, cx).await)
    }

    async fn write(&self, path: &str, content: &str) -> String {
        self.call("read", json!({"file_path": path})).await;
        self.call("write", json!({"file_path": path, "content": content})).await
    }

    /// Undoes everything and renders the outcome, one line per file.
    pub(super) async fn undo(&self, how: UndoMode) -> String {
        let kept = self.memory.kept.lock().unwrap().clone();
        let (workspace, cancel) = (&self.machine.workspace, &self.machine.cancel);
        let undone = undo_changes(UndoContext { workspace, editor: None, cancel, mode: how }, kept).await;
        let lines = undone.into_iter().map(|undone| {
            let path = Path::new(&undone.path).strip_prefix(workspace.roots()[0].clone()).unwrap();
            let reason = undone.reason.map(|why| format!(": {why}")).unwrap_or_default();
            let diff = undone.diff.map(|diff| format!("{diff}\n")).unwrap_or_default();
            let (done, settled) = (undone.status.as_str(), undone.resolved_changes);
            format!("{} {done}{reason} {settled:?}\n{diff}", path.display())
        });
        let outside = self.machine.dir.path().canonicalize().unwrap().display().to_string();
        lines.collect::<String>().replace(&outside, "$DIR")
    }

    /// Previews an undo, applies it, and compares both.
    async fn check(&self, expect: Expect) {
        let without_marks = |text: &str| {
            let lines = text.lines().map(|line| line.split(" [").next().unwrap_or_default().to_owned());
            lines.collect::<Vec<_>>()
        };
        let before = self.files();
        let shown = self.undo(UndoMode::Preview).await;
        assert_eq!(self.files(), before, "looking changes nothing");
        let done = self.undo(UndoMode::Apply).await;
        expect.assert_eq(&done);
        assert_eq!(without_marks(&shown), without_marks(&done));
    }

    /// All files of the project with content and mode.
    fn files(&self) -> String {
        let mut found: Vec<String> = Vec::new();
        let mut dirs = vec![self.machine.path("")];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let meta = fs::symlink_metadata(&path).unwrap();
                if meta.is_dir() {
                    dirs.push(path);
                } else if meta.is_file() {
                    let bytes = fs::read(&path).unwrap();
                    let name = path.strip_prefix(self.machine.path("")).unwrap().display().to_string();
                    found.push(format!("{name} {:o} {}", meta.permissions().mode(), bytes.escape_ascii()));
                }
            }
        }
        found.sort();
        found.join("\n")
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn undo_restores_every_byte() {
    let stage = Stage::new(|cwd| {
        fs::write(cwd.join("crlf"), b"\xEF\xBB\xBFone\r\ntwo\r\n").unwrap();
        fs::write(cwd.join("binary"), b"\0\xFF\xFE").unwrap();
        fs::write(cwd.join("wide"), b"\xFF\xFEa\0\n\0").unwrap();
        fs::write(cwd.join("script"), "#!/bin/sh\n").unwrap();
        mode(&cwd.join("script"), 0o751);
    });
    let before = stage.files();
    stage.call("read", json!({"file_path": "crlf"})).await;
    let edit = json!({"file_path": "crlf", "old_string": "two", "new_string": "three"});
    let said = stage.call("edit", edit).await;
    assert!(said.starts_with("Completed"), "{said}");
    for (path, content) in
        [("crlf", "x"), ("binary", "text"), ("wide", "b\n"), ("script", ""), ("new/deep/file", "hello")]
    {
        let said = stage.write(path, content).await;
        assert!(said.starts_with("Completed"), "{said}");
    }
    stage
        .check(expect![[r"
            binary restored [2]
            crlf restored [0, 1]
            new/deep/file removed [5]
            script restored [4]
            wide restored [3]
        "]])
        .await;
    assert_eq!(stage.files(), before);
    assert!(stage.machine.path("new/deep").is_dir(), "folders are left alone");
    stage
        .check(expect![[r"
            binary already [2]
            crlf already [0, 1]
            new/deep/file already [5]
            script already [4]
            wide already [3]
        "]])
        .await;
    let edit = json!({"file_path": "crlf", "old_string": "other", "new_string": "1"});
    let said = stage.call("edit", edit).await;
    assert!(said.contains("it was not read in this session"), "{said}");
}

#[tokio::test]
async fn conflicting_files_are_left_unchanged() {
    let stage = Stage::new(|cwd| {
        for name in ["edited", "gone", "folder", "fixed", "binary"] {
            fs::write(cwd.join(name), "one\ntwo\n").unwrap();
        }
    });
    for name in ["edited", "gone", "folder", "fixed", "binary", "made"] {
        stage.write(name, "agent\n").await;
    }
    let path = |name: &str| stage.machine.path(name);
    fs::write(path("edited"), "agent\nperson\n").unwrap();
    fs::write(path("made"), "person\n").unwrap();
    fs::write(path("binary"), b"\0").unwrap();
    for name in ["gone", "folder"] {
        fs::remove_file(path(name)).unwrap();
    }
    fs::create_dir(path("folder")).unwrap();
    mode(&path("fixed"), 0o444);
    let undone = stage.undo(UndoMode::Apply).await;
    expect![[r#"
        binary conflict: it was changed after the agent's change []
        edited conflict: it was changed after the agent's change []
        @@ -1,2 +1,2 @@
        -agent
        -person
        +one
        +two
        fixed conflict: could not restore it: it is read-only []
        @@ -1 +1,2 @@
        -agent
        +one
        +two
        folder conflict: it is a directory []
        gone conflict: it was removed after the agent's change []
        @@ -0,0 +1,2 @@
        +one
        +two
        made conflict: it was changed after the agent's change []
        @@ -1 +0,0 @@
        -person
    "#]]
    .assert_eq(&undone);
    expect![[r"
        binary 100644 \x00
        edited 100644 agent\nperson\n
        fixed 100444 agent\n
        made 100644 person\n"]]
    .assert_eq(&stage.files());
}

#[tokio::test]
async fn content_between_two_changes_is_restored() {
    let stage = Stage::new(|cwd| fs::write(cwd.join("a"), "one\ntwo\n").unwrap());
    stage.write("a", "agent\n").await;
    fs::write(stage.machine.path("a"), "person\n").unwrap();
    stage.call("read", json!({"file_path": "a"})).await;
    stage.write("a", "agent again\n").await;
    stage
        .check(expect![[r#"
            a restored [1]
            a conflict: it was changed by someone else between two changes of the agent; only the later change is undone [0]
            @@ -1 +1,2 @@
            -person
            +one
            +two
        "#]])
        .await;
    assert_eq!(stage.files(), "a 100644 person\\n");
}

#[tokio::test]
async fn mode_changed_since_is_kept() {
    let stage = Stage::new(|cwd| {
        fs::write(cwd.join("same"), "one\n").unwrap();
        fs::write(cwd.join("script"), "one\n").unwrap();
    });
    for name in ["same", "script"] {
        stage.write(name, "two\n").await;
    }
    for name in ["same", "script"] {
        mode(&stage.machine.path(name), 0o755);
    }
    fs::write(stage.machine.path("same"), "one\n").unwrap();
    stage
        .check(expect![[r"
            same already [0]
            script restored [1]
        "]])
        .await;
    expect![[r"
        same 100755 one\n
        script 100755 one\n"]]
    .assert_eq(&stage.files());
}

#[tokio::test]
async fn skip_only_resolves_conflicts() {
    let stage = Stage::new(|cwd| {
        for name in ["edited", "fine", "gone"] {
            fs::write(cwd.join(name), "one\n").unwrap();
        }
    });
    for name in ["edited", "fine", "gone"] {
        stage.write(name, "agent\n").await;
    }
    fs::write(stage.machine.path("edited"), "person\n").unwrap();
    fs::remove_file(stage.machine.path("gone")).unwrap();
    let before = stage.files();
    expect![[r#"
        edited skipped: it was changed after the agent's change [0]
        gone skipped: it was removed after the agent's change [2]
    "#]]
    .assert_eq(&stage.undo(UndoMode::Skip).await);
    assert_eq!(stage.files(), before);
}

#[tokio::test]
async fn links_are_not_followed() {
    let stage = Stage::new(|cwd| {
        fs::write(cwd.join("linked"), "one\n").unwrap();
        fs::write(cwd.join("../outside"), "agent\n").unwrap();
    });
    let path = |name: &str| stage.machine.path(name);
    for name in ["linked", "in/deep"] {
        stage.write(name, "agent\n").await;
    }
    fs::remove_file(path("linked")).unwrap();
    symlink("../outside", path("linked")).unwrap();
    fs::rename(path("in"), path("elsewhere")).unwrap();
    symlink("elsewhere", path("in")).unwrap();
    stage
        .check(expect![[r"
            in/deep conflict: a link in its path is circular or was created just now []
            linked conflict: a link in its path is circular or was created just now []
        "]])
        .await;
    assert_eq!(fs::read_to_string(path("../outside")).unwrap(), "agent\n");
    assert_eq!(stage.files(), "elsewhere/deep 100644 agent\\n");
}

#[tokio::test]
async fn file_that_cannot_be_recorded_is_not_changed() {
    let mut stage = Stage::new(|cwd| fs::write(cwd.join("a"), "one\n").unwrap());
    stage.memory.is_full = true;
    stage.call("read", json!({"file_path": "a"})).await;
    let edit = json!({"file_path": "a", "old_string": "one", "new_string": "two"});
    let mut said = stage.call("edit", edit).await;
    said += &stage.write("a", "two").await;
    said += &stage.write("new", "two").await;
    expect![[r"
        Failed: could not edit a: the current content could not be recorded for undo (there is no room left); nothing was changed
        Failed: could not write a: the current content could not be recorded for undo (there is no room left); nothing was changed
        Failed: could not write new: the current content could not be recorded for undo (there is no room left); nothing was changed
    "]]
    .assert_eq(&said);
    assert_eq!(stage.files(), "a 100644 one\\n");
}

#[tokio::test]
async fn file_too_large_to_record_is_reported_and_does_not_block_undo() {
    let stage = Stage::new(|cwd| {
        let file = fs::File::create(cwd.join("large")).unwrap();
        file.set_len(16 * 1024 * 1024 + 1).unwrap();
    });
    let said = stage.write("large", "small").await;
    expect![[r#"
        Completed: replaced large: 1 line now
        (the file was too large to record; this change cannot be undone)
    "#]]
    .assert_eq(&said);
    stage
        .check(expect![[r#"
            large conflict: the content before was too large to store; the change cannot be undone [0]
        "#]])
        .await;
    assert_eq!(stage.files(), "large 100644 small");
}

#[tokio::test]
async fn failed_change_leaves_nothing_to_undo() {
    let stage = Stage::new(|cwd| {
        fs::write(cwd.join("fixed"), "one\n").unwrap();
        mode(&cwd.join("fixed"), 0o444);
    });
    let said = stage.write("fixed", "two\n").await;
    assert!(said.contains("it is read-only"), "{said}");
    stage
        .check(expect![[r"
        fixed already [0]
    "]])
        .await;
    mode(&stage.machine.path("fixed"), 0o644);
    stage.write("fixed", "two\n").await;
    stage
        .check(expect![[r"
        fixed restored [0, 1]
    "]])
        .await;
    assert_eq!(fs::read_to_string(stage.machine.path("fixed")).unwrap(), "one\n");
}
