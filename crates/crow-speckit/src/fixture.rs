//! Test projects.

use std::fs;

use tempfile::TempDir;

use crate::SpeckitProject;

/// Creates a project with exactly these files.
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

/// Replaces the test directory in a text.
pub(crate) fn mask_project_root(project: &SpeckitProject, text: &str) -> String {
    let canonical = project.root().canonicalize().unwrap();
    text.replace(&canonical.display().to_string(), "$DIR")
        .replace(&project.root().display().to_string(), "$DIR")
}
