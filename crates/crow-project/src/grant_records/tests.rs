use std::fs;

use crow_core::Grant;

use super::*;

fn prefix(text: &str) -> Grant {
    Grant::RunPrefix(text.split(' ').map(str::to_owned).collect())
}

#[test]
fn project_record_is_read_back_and_used_for_its_project_only() {
    let directory = tempfile::tempdir().unwrap();
    let (config, project, other) = (directory.path(), Path::new("/a/b"), Path::new("/a/c"));
    assert_eq!(read_grants(config, project), Ok(GrantSet::default()));
    let grants = GrantSet::from_iter([prefix("cargo test"), Grant::Edits]);
    write_grants(config, project, &grants).unwrap();
    assert_eq!(read_grants(config, project), Ok(grants));
    assert_eq!(read_grants(config, other), Ok(GrantSet::default()));

    // A copy under the name of another project is not used for that project.
    let path = |project| grant_records(config).path(project);
    fs::copy(path(project), path(other)).unwrap();
    assert!(read_grants(config, other).unwrap_err().contains("it is about another project"));
    let listed = list_permissions(config);
    assert_eq!(listed.iter().filter(|listed| listed.is_ok()).count(), 1, "{listed:?}");

    fs::write(path(other), "{").unwrap();
    let told = read_grants(config, other).unwrap_err();
    assert!(told.starts_with(&format!("{}: ", path(other).display())), "{told}");
    // An earlier grant is not lost when another one is added.
    assert_eq!(change_grants(config, other, |kept| kept.extend([Grant::Edits])), Err(told));
    assert_eq!(fs::read_to_string(path(other)).unwrap(), "{");
    let more = change_grants(config, project, |kept| kept.extend([Grant::WebSearch])).unwrap();
    assert_eq!(read_grants(config, project), Ok(more));

    write_grants(config, project, &GrantSet::default()).unwrap();
    assert!(!path(project).exists());
}

#[cfg(unix)]
#[test]
fn project_record_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let project = Path::new("/a/b");
    write_grants(directory.path(), project, &GrantSet::from_iter([Grant::Edits])).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = grant_records(directory.path()).path(project);
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
}
