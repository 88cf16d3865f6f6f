use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::Path,
    thread,
};

use rustix::{
    process::{Gid, Uid},
    thread::{set_thread_gid, set_thread_groups, set_thread_res_uid},
};

use crate::{FileReplacement, read_snapshot, replace_file};

const OWNER: u32 = 62_001;
const EDITOR: u32 = 62_002;
const SHARED_GROUP: u32 = 63_001;
const EDITOR_GROUP: u32 = 63_002;

/// Replaces a file of another user and a shared group; returns its new user, group and mode.
fn edit_as_other_user(path: &Path, groups: &[u32]) -> (u32, u32, u32) {
    fs::write(path, "old").unwrap();
    chown(path, Some(OWNER), Some(SHARED_GROUP)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o664)).unwrap();
    let edit = || {
        // On Linux a thread may have a user and groups of its own; it ends with them.
        let groups: Vec<Gid> = groups.iter().copied().map(Gid::from_raw).collect();
        let editor = Uid::from_raw(EDITOR);
        set_thread_groups(&groups).unwrap();
        set_thread_gid(Gid::from_raw(EDITOR_GROUP)).unwrap();
        set_thread_res_uid(editor, editor, editor).unwrap();
        let expected = read_snapshot(path).unwrap().fingerprint;
        replace_file(path, FileReplacement { bytes: b"new", mode: Some(0o664), expected }).unwrap();
    };
    thread::scope(|scope| scope.spawn(edit).join().unwrap());
    let metadata = fs::metadata(path).unwrap();
    (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777)
}

#[test]
fn shared_file_keeps_its_group_or_loses_its_group_permissions() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let path = dir.path().canonicalize().unwrap().join("shared");
    assert_eq!(edit_as_other_user(&path, &[SHARED_GROUP]), (EDITOR, SHARED_GROUP, 0o664));
    assert_eq!(edit_as_other_user(&path, &[]), (EDITOR, EDITOR_GROUP, 0o604));
}
