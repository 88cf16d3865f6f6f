//! Projects for tests, from their files.

use std::fs;

use tempfile::TempDir;

use crate::SpeckitProject;

/// A project with these files, and nothing else.
pub(crate) fn fixture_project(files: &[(&str, &str)]) -> (TempDir, SpeckitProject) {
    let temp_dir = tempfile::tempdir().unwrap();
    fs::create_dir(temp_dir.path().join(".specify")).unwrap();
    for (path, text) in files {
        let path = temp_dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let project = SpeckitProject::from_root(temp_dir.path());
    (temp_dir, project)
}

/// An outcome as tests compare it: without the folder of the test.
pub(crate) fn mask_project_root(project: &SpeckitProject, text: &str) -> String {
    let canonical = project.root().canonicalize().unwrap();
    text.replace(&canonical.display().to_string(), "$DIR")
        .replace(&project.root().display().to_string(), "$DIR")
}
