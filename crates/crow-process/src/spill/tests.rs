use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// Sweeps files of 10 bytes with these ages in hours; returns the names of those left.
#[track_caller]
fn check(files: &[(&str, u64)], bytes_max: u64, left: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let now = fs::metadata(directory.path()).unwrap().modified().unwrap();
    for (name, age) in files {
        let path = directory.path().join(name);
        fs::write(&path, [b'x'; 10]).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(now - Duration::from_hours(*age)).unwrap();
    }
    remove_old_files(directory.path(), now, bytes_max).unwrap();
    let mut found: Vec<String> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, left);
}

#[test]
fn old_spill_files_are_removed() {
    let files = [("output-a", 0), ("output-b", 24 * 7), ("output-c", 24 * 7 + 1), ("other", 1000)];
    check(&files, 1000, &["other", "output-a", "output-b"]);
}

#[test]
fn oldest_spill_files_are_removed_first() {
    let files = [("output-a", 1), ("output-b", 3), ("output-c", 2), ("other", 4)];
    check(&files, 30, &["other", "output-a", "output-b", "output-c"]);
    check(&files, 20, &["other", "output-a", "output-c"]);
    check(&files, 9, &["other"]);
}

#[tokio::test]
async fn spill_file_is_private() {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("a/b");
    let (_, path) = create_spill_file(&inner).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&inner), mode(&path)), (0o700, 0o600));
}
