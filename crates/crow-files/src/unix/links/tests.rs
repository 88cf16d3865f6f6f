use std::path::Path;

use super::{create_link, follow_links, resolve_links, resolve_present};

#[test]
fn path_of_a_megabyte_is_resolved_at_once() {
    let long = format!("/{}", "a/".repeat(500_000));
    assert_eq!(resolve_links(Path::new(&long)).components().count(), 500_001);
    let up = format!("/{}b", "a/../".repeat(200_000));
    assert_eq!(resolve_links(Path::new(&up)), Path::new("/b"));
}

#[test]
fn links_are_resolved_wherever_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("real/inner")).unwrap();
    std::fs::write(root.join("real/file"), "").unwrap();
    create_link(Path::new("real"), &root.join("link")).unwrap();
    create_link(Path::new("missing/new"), &root.join("dangling")).unwrap();
    let paths = [
        ("real/inner", "real/inner"),
        ("real/./inner/", "real/inner"),
        ("real/absent/more", "real/absent/more"),
        ("real/file/below", "real/file/below"),
        ("link", "real"),
        ("link/", "real"),
        ("link/inner", "real/inner"),
        ("link/absent", "real/absent"),
        ("dangling", "missing/new"),
        ("absent/../link", "real"),
        ("real/inner/..", "real"),
    ];
    for (path, resolved) in paths {
        let (path, resolved) = (root.join(path), root.join(resolved));
        assert_eq!(
            (resolve_links(&path), follow_links(&path)),
            (resolved.clone(), resolved.clone()),
            "{path:?}"
        );
        let present = Some(resolved).filter(|resolved| resolved.exists());
        assert_eq!(resolve_present(&path), present, "{path:?}");
    }
}
