//! The check of a feature's directory. Steps write into it, so a repository must not choose a directory in which
//! other programs look for commands.

use std::path::{Component, Path, PathBuf};

use crate::project::{SPECIFY_DIR, follow_links};
use crate::{SpeckitProject, SpecsRoot};

/// Directories in which a file can become a command.
const EXCLUDED_DIRS: [&str; 2] = [".git", ".crow"];

/// The source of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeatureDirSource {
    /// The project: the pointer, a link, an existing feature.
    Project,
    /// The user, who may choose a directory elsewhere.
    Person,
}

impl FeatureDirSource {
    /// Returns the source of a session's directory: only the user can have chosen a path outside the project, and a
    /// path inside it must not lead out.
    pub(crate) fn for_session_dir(project: &SpeckitProject, dir: &Path) -> Self {
        let mut normalized = PathBuf::new();
        for component in dir.components() {
            match component {
                Component::ParentDir => drop(normalized.pop()),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                    normalized.push(component);
                }
            }
        }
        if normalized.starts_with(project.root()) { Self::Project } else { Self::Person }
    }
}

/// Why a directory is not valid for a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InvalidFeatureDir {
    /// It is outside the project.
    Outside,
    /// It is the project's root or a parent of it.
    Root,
    /// It is used for something else.
    Reserved,
}

impl InvalidFeatureDir {
    /// The reason and what to do next.
    pub(crate) fn to_message(self, advice: &str) -> String {
        let reason = match self {
            Self::Outside => "it leads out of the project",
            Self::Root => "it is not below the project's root",
            Self::Reserved => "it is used for something else, so no feature can be stored there",
        };
        format!("{reason}; {advice}")
    }

    /// The reason why the pointer is not used.
    pub(crate) fn to_pointer_message(self, dir: &Path) -> String {
        let dir = dir.display();
        match self {
            Self::Outside => format!(
                "it leads out of the project, to {dir}; to use that directory, select it with --feature or \
                 SPECIFY_FEATURE_DIRECTORY"
            ),
            Self::Root | Self::Reserved => {
                format!(
                    "it points to {dir}, where no feature can be stored; select another with /speckit use"
                )
            }
        }
    }
}

/// Checks that a feature may be in this directory once its links are resolved.
pub(crate) fn check_feature_dir(
    project: &SpeckitProject,
    dir: &Path,
    source: FeatureDirSource,
    specs_root: &SpecsRoot,
) -> Result<(), InvalidFeatureDir> {
    let (Some(canonical), Some(root)) = (follow_links(dir), follow_links(project.root())) else {
        return Err(InvalidFeatureDir::Outside);
    };
    if root.starts_with(&canonical) {
        return Err(InvalidFeatureDir::Root);
    }
    let relative = match (canonical.strip_prefix(&root), source) {
        (Ok(relative), _) => relative,
        (Err(_), FeatureDirSource::Project) => return Err(InvalidFeatureDir::Outside),
        (Err(_), FeatureDirSource::Person) => {
            return if has_component(&canonical, &EXCLUDED_DIRS) {
                Err(InvalidFeatureDir::Reserved)
            } else {
                Ok(())
            };
        }
    };
    let is_in_configured_root = match specs_root {
        SpecsRoot::Auto => false,
        SpecsRoot::Path(directory) => follow_links(&project.resolve_path(directory))
            .is_some_and(|specs_root| is_below(&canonical, &specs_root)),
    };
    let specs = Path::new(SPECIFY_DIR).join("specs");
    let within_specs =
        if is_below(relative, &specs) { relative.strip_prefix(&specs).unwrap_or(relative) } else { relative };
    let is_reserved = has_component(relative, &EXCLUDED_DIRS)
        || (has_component(within_specs, &[SPECIFY_DIR]) && !is_in_configured_root);
    if is_reserved { Err(InvalidFeatureDir::Reserved) } else { Ok(()) }
}

fn is_below(path: &Path, directory: &Path) -> bool {
    path.starts_with(directory) && path != directory
}

/// Ignores case, as some file systems do.
fn has_component(path: &Path, names: &[&str]) -> bool {
    path.iter().any(|component| names.iter().any(|name| component.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::fixture_project;

    #[track_caller]
    fn assert_feature_dir(dir: &str, source: FeatureDirSource, expected: Result<(), InvalidFeatureDir>) {
        let (_folder, project) = fixture_project(&[(".git/HEAD", ""), ("specs/001-a/spec.md", "")]);
        #[cfg(unix)]
        for (link, to) in [("up", ".."), ("git", "../.git"), ("out", "/")] {
            std::os::unix::fs::symlink(to, project.root().join("specs").join(link)).unwrap();
        }
        let found = check_feature_dir(&project, &project.resolve_path(dir), source, &SpecsRoot::Auto);
        assert_eq!(found, expected, "{dir}");
    }

    #[test]
    fn feature_dir_is_below_the_root_and_outside_command_directories() {
        use InvalidFeatureDir::{Outside, Reserved, Root};
        for namer in [FeatureDirSource::Project, FeatureDirSource::Person] {
            for dir in ["specs/001-a", "specs/002-new", ".specify/specs/001-b", "docs/a/b"] {
                assert_feature_dir(dir, namer, Ok(()));
            }
            for dir in [".", "specs/..", "specs/001-a/../..", "specs/gone/../..", "..", "/"] {
                assert_feature_dir(dir, namer, Err(Root));
            }
            for dir in [".git", ".git/hooks", ".crow", ".GIT/x", "sub/.crow/x", "specs/../.git"] {
                assert_feature_dir(dir, namer, Err(Reserved));
            }
            for dir in [".specify", ".specify/specs", ".specify/memory", ".specify/specs/../crow"] {
                assert_feature_dir(dir, namer, Err(Reserved));
            }
        }
        assert_feature_dir("/elsewhere/001-a", FeatureDirSource::Person, Ok(()));
        assert_feature_dir("/elsewhere/.git/001-a", FeatureDirSource::Person, Err(Reserved));
        assert_feature_dir("/elsewhere/001-a", FeatureDirSource::Project, Err(Outside));
        assert_feature_dir("../001-a", FeatureDirSource::Project, Err(Outside));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_checked_by_their_target() {
        assert_feature_dir("specs/up", FeatureDirSource::Person, Err(InvalidFeatureDir::Root));
        assert_feature_dir("specs/git/hooks", FeatureDirSource::Person, Err(InvalidFeatureDir::Reserved));
        assert_feature_dir("specs/out/elsewhere", FeatureDirSource::Project, Err(InvalidFeatureDir::Outside));
    }
}
