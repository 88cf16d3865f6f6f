//! A feature's files, independent of how its directory is written. Writes nothing.

use std::path::Path;

use crate::{Feature, SpeckitError, TaskList, project::follow_links};

impl Feature {
    /// Whether this is its directory after resolving links.
    pub fn is_same_dir(&self, dir: &Path) -> bool {
        self.dir == dir
            || follow_links(&self.dir).is_some_and(|canonical| follow_links(dir) == Some(canonical))
    }

    /// Reads its task list, which is empty if the file does not exist.
    pub fn read_task_list(&self) -> Result<TaskList, SpeckitError> {
        let text = self.read_page("tasks.md")?.unwrap_or_default();
        TaskList::parse_checked(&text)
            .map_err(|error| SpeckitError::invalid_file(&self.tasks_path(), error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::fixture_project;

    #[test]
    #[cfg(unix)]
    fn feature_dir_is_recognized_through_links() {
        let (_folder, project) = fixture_project(&[("specs/001-a/spec.md", ""), ("specs/002-b/spec.md", "")]);
        let at = |path_text: &str| project.root().join(path_text);
        std::os::unix::fs::symlink("specs", at("linked")).unwrap();
        std::os::unix::fs::symlink("nowhere", at("lost")).unwrap();
        let feature = Feature::from_dir(at("specs/001-a"));
        for same in ["specs/001-a", "specs/001-a/", "linked/001-a", "specs/../specs/./001-a"] {
            assert!(feature.is_same_dir(&at(same)), "{same}");
            assert!(Feature::from_dir(at(same)).is_same_dir(&feature.dir), "{same}");
        }
        for other in ["specs/002-b", "specs", "specs/001-a/spec.md", "specs/003-c", "lost"] {
            assert!(!feature.is_same_dir(&at(other)), "{other}");
        }
        // Two dangling links are not the same directory.
        assert!(!Feature::from_dir(at("lost/a")).is_same_dir(&at("lost/b")));
    }

    #[test]
    fn missing_task_list_has_no_tasks() {
        let (_folder, project) = fixture_project(&[("specs/001-a/tasks.md", "- [x] T001 a\n- [ ] T002 b\n")]);
        let list = |dir: &str| Feature::from_dir(project.resolve_path(dir)).read_task_list().unwrap();
        assert_eq!((list("specs/001-a").tasks.len(), list("specs/001-a").done_count()), (2, 1));
        assert!(list("specs/002-b").tasks.is_empty());
    }
}
