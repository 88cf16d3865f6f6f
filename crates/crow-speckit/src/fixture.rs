//! Projects for tests, from their files.

use std::fs;

use tempfile::TempDir;

use crate::SpeckitProject;

/// A project with these files, and nothing else.
pub(crate) fn fixture_project(files: &[(&str, &str)]) -> (TempDir, SpeckitProject) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(".specify")).unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let project = SpeckitProject::from_root(folder.path());
    (folder, project)
}

/// An outcome as tests compare it: without the folder of the test.
pub(crate) fn mask_project_root(project: &SpeckitProject, text: &str) -> String {
    let real = project.root().canonicalize().unwrap();
    text.replace(&real.display().to_string(), "$DIR").replace(&project.root().display().to_string(), "$DIR")
}
