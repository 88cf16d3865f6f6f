//! Where the folder of a feature may be. Steps write into it, so a repository must not choose one in which other programs
//! look for what to run.

use std::path::{Component, Path, PathBuf};

use crate::project::{FOLDER, follow_links};
use crate::{SpeckitProject, SpecsRoot};

/// Folders in which a file can become a command.
const NOBODYS: [&str; 2] = [".git", ".crow"];

/// Who named a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeatureDirSource {
    /// Something in the project: the pointer, a link, what was made before.
    Project,
    /// The person, who may mean a folder elsewhere.
    Person,
}

impl FeatureDirSource {
    /// Who named the folder that a session works on: one that is spelled outside of the project only the person can have
    /// named, and whatever is spelled inside has to be there.
    pub(crate) fn for_session_dir(project: &SpeckitProject, dir: &Path) -> Self {
        let mut spelled = PathBuf::new();
        for part in dir.components() {
            match part {
                Component::ParentDir => drop(spelled.pop()),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => spelled.push(part),
            }
        }
        if spelled.starts_with(project.root()) { Self::Project } else { Self::Person }
    }
}

/// Why a folder is none for a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InvalidFeatureDir {
    /// It is elsewhere.
    Outside,
    /// It is the project's root, or around it.
    Root,
    /// Something else is kept there.
    Kept,
}

impl InvalidFeatureDir {
    /// The reason, and what to do next.
    pub(crate) fn to_message(self, next: &str) -> String {
        let why = match self {
            Self::Outside => "it leads out of the project",
            Self::Root => "it is not below the project's root",
            Self::Kept => "it is no place for a feature: other things are kept there",
        };
        format!("{why}; {next}")
    }

    /// The reason why the pointer is not followed.
    pub(crate) fn to_pointer_message(self, dir: &Path) -> String {
        let dir = dir.display();
        match self {
            Self::Outside => format!(
                "it leads out of the project, to {dir}; name that folder yourself if you mean it, with --feature or \
                 SPECIFY_FEATURE_DIRECTORY"
            ),
            Self::Root | Self::Kept => {
                format!("it names {dir}, which is no place for a feature; point it anew with /speckit use")
            }
        }
    }
}

/// Checks that a feature may be in this folder, wherever its links lead.
pub(crate) fn check_feature_dir(
    project: &SpeckitProject,
    dir: &Path,
    (namer, specs_root): (FeatureDirSource, &SpecsRoot),
) -> Result<(), InvalidFeatureDir> {
    let (Some(real), Some(root)) = (follow_links(dir), follow_links(project.root())) else {
        return Err(InvalidFeatureDir::Outside);
    };
    if root.starts_with(&real) {
        return Err(InvalidFeatureDir::Root);
    }
    let inside = match (real.strip_prefix(&root), namer) {
        (Ok(inside), _) => inside,
        (Err(_), FeatureDirSource::Project) => return Err(InvalidFeatureDir::Outside),
        (Err(_), FeatureDirSource::Person) => {
            return if has_component(&real, &NOBODYS) { Err(InvalidFeatureDir::Kept) } else { Ok(()) };
        }
    };
    let is_set = match specs_root {
        SpecsRoot::Auto => false,
        SpecsRoot::At(folder) => {
            follow_links(&project.resolve_path(folder)).is_some_and(|set| is_below(&real, &set))
        }
    };
    let specs = Path::new(FOLDER).join("specs");
    let rest = if is_below(inside, &specs) { inside.strip_prefix(&specs).unwrap_or(inside) } else { inside };
    let is_kept = has_component(inside, &NOBODYS) || (has_component(rest, &[FOLDER]) && !is_set);
    if is_kept { Err(InvalidFeatureDir::Kept) } else { Ok(()) }
}

fn is_below(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder) && path != folder
}

/// Compares as the most careless file system does.
fn has_component(path: &Path, names: &[&str]) -> bool {
    path.iter().any(|part| names.iter().any(|name| part.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::fixture_project;

    #[track_caller]
    fn assert_feature_dir(dir: &str, namer: FeatureDirSource, expected: Result<(), InvalidFeatureDir>) {
        let (_folder, project) = fixture_project(&[(".git/HEAD", ""), ("specs/001-a/spec.md", "")]);
        #[cfg(unix)]
        for (link, to) in [("up", ".."), ("git", "../.git"), ("out", "/")] {
            std::os::unix::fs::symlink(to, project.root().join("specs").join(link)).unwrap();
        }
        let found = check_feature_dir(&project, &project.resolve_path(dir), (namer, &SpecsRoot::Auto));
        assert_eq!(found, expected, "{dir}");
    }

    #[test]
    fn a_feature_is_below_the_root_and_not_where_commands_come_from() {
        use InvalidFeatureDir::{Kept, Outside, Root};
        for namer in [FeatureDirSource::Project, FeatureDirSource::Person] {
            for dir in ["specs/001-a", "specs/002-new", ".specify/specs/001-b", "docs/a/b"] {
                assert_feature_dir(dir, namer, Ok(()));
            }
            for dir in [".", "specs/..", "specs/001-a/../..", "specs/gone/../..", "..", "/"] {
                assert_feature_dir(dir, namer, Err(Root));
            }
            for dir in [".git", ".git/hooks", ".crow", ".GIT/x", "sub/.crow/x", "specs/../.git"] {
                assert_feature_dir(dir, namer, Err(Kept));
            }
            for dir in [".specify", ".specify/specs", ".specify/memory", ".specify/specs/../crow"] {
                assert_feature_dir(dir, namer, Err(Kept));
            }
        }
        assert_feature_dir("/elsewhere/001-a", FeatureDirSource::Person, Ok(()));
        assert_feature_dir("/elsewhere/.git/001-a", FeatureDirSource::Person, Err(Kept));
        assert_feature_dir("/elsewhere/001-a", FeatureDirSource::Project, Err(Outside));
        assert_feature_dir("../001-a", FeatureDirSource::Project, Err(Outside));
    }

    #[cfg(unix)]
    #[test]
    fn links_count_by_where_they_lead() {
        assert_feature_dir("specs/up", FeatureDirSource::Person, Err(InvalidFeatureDir::Root));
        assert_feature_dir("specs/git/hooks", FeatureDirSource::Person, Err(InvalidFeatureDir::Kept));
        assert_feature_dir("specs/out/elsewhere", FeatureDirSource::Project, Err(InvalidFeatureDir::Outside));
    }
}
