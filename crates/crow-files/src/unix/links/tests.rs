use std::path::Path;

use super::resolve_links;

#[test]
fn path_of_a_megabyte_is_resolved_at_once() {
    let long = format!("/{}", "a/".repeat(500_000));
    assert_eq!(resolve_links(Path::new(&long)).components().count(), 500_001);
    let up = format!("/{}b", "a/../".repeat(200_000));
    assert_eq!(resolve_links(Path::new(&up)), Path::new("/b"));
}
