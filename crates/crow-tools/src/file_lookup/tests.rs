use super::*;

#[test]
fn links_are_found_with_their_targets() {
    let folder = tempfile::tempdir().unwrap();
    let root = crow_files::resolve_links(folder.path());
    fs::write(root.join("a.md"), "").unwrap();
    for (name, target) in [("b.md", "/out.md"), ("b.rs", "a.md"), ("c.md", "b.rs")] {
        crow_files::create_link(Path::new(target), &root.join(name)).unwrap();
    }
    let link = |name: &str, target: PathBuf| DirectoryLink { name: name.to_owned(), target };
    let mut links = LocalFileSystem.links_in(&root).unwrap();
    links.sort();
    let inside = root.join("a.md");
    let expected = [link("b.md", "/out.md".into()), link("b.rs", inside.clone()), link("c.md", inside)];
    assert_eq!(links, expected);
    assert_eq!(LocalFileSystem.links_in(&root.join("missing")), Some(Vec::new()));
    assert_eq!(LocalFileSystem.links_in(Path::new("/proc/self/fd/x\0")), None);
}

#[test]
fn repository_may_have_no_working_tree() {
    let folder = tempfile::tempdir().unwrap();
    assert!(!LocalFileSystem.may_be_repository(folder.path()));
    assert!(!LocalFileSystem.may_be_repository(&folder.path().join("missing")));
    fs::write(folder.path().join("HEAD"), "").unwrap();
    assert!(LocalFileSystem.may_be_repository(folder.path()) && LocalFileSystem.has_git_head(folder.path()));
    let other = tempfile::tempdir().unwrap();
    crow_files::create_link(Path::new("nowhere"), &other.path().join(".git")).unwrap();
    assert!(LocalFileSystem.may_be_repository(other.path()) && !LocalFileSystem.has_git_head(other.path()));
    fs::create_dir(other.path().join("HEAD")).unwrap();
    assert!(!LocalFileSystem.has_git_head(other.path()));
}
