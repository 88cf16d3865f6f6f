use std::{fs, path::Path};

use super::{resolve_links, simplify};

#[test]
fn missing_names_stay_below_the_real_ones() {
    let dir = tempfile::tempdir().unwrap();
    let real = simplify(&dir.path().canonicalize().unwrap());
    fs::create_dir(real.join("Inner")).unwrap();
    assert_eq!(resolve_links(&real.join(r"inner\.\x\..\new.txt")), real.join(r"Inner\new.txt"));
    assert_eq!(resolve_links(&real), real);
    assert_eq!(resolve_links(Path::new(r"relative\.\name")), Path::new(r"relative\name"));
}

#[test]
fn verbatim_prefix_is_removed() {
    let shown = |path: &str| simplify(Path::new(path)).display().to_string();
    assert_eq!(shown(r"\\?\C:\Users\me"), r"C:\Users\me");
    assert_eq!(shown(r"\\?\C:\"), r"C:\");
    assert_eq!(shown(r"\\?\UNC\server\share\file"), r"\\server\share\file");
    assert_eq!(shown(r"C:\Users"), r"C:\Users");
    assert_eq!(shown(r"\\?\Volume{1}\x"), r"\\?\Volume{1}\x");
}

#[test]
fn path_of_a_megabyte_is_resolved_at_once() {
    let long = format!(r"C:\{}", r"a\".repeat(500_000));
    assert_eq!(resolve_links(Path::new(&long)).components().count(), 500_002);
}
