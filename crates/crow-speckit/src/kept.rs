//! What a feature keeps on the disk, however its folder is spelled. Writes nothing.

use std::path::Path;

use crate::{Feature, SpeckitError, TaskList, project::led_to};

impl Feature {
    /// Tells whether this is its folder, whatever links lead there.
    pub fn is_same(&self, dir: &Path) -> bool {
        self.dir == dir || led_to(&self.dir).is_some_and(|own| led_to(dir) == Some(own))
    }

    /// Reads its task list; one that is not there has no tasks.
    pub fn task_list(&self) -> Result<TaskList, SpeckitError> {
        let text = self.read("tasks.md")?.unwrap_or_default();
        TaskList::checked(&text).map_err(|error| SpeckitError::broken(&self.tasks(), error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::project;

    #[test]
    #[cfg(unix)]
    fn a_folder_is_known_whatever_leads_to_it() {
        let (_folder, project) = project(&[("specs/001-a/spec.md", ""), ("specs/002-b/spec.md", "")]);
        let at = |spelled: &str| project.root().join(spelled);
        std::os::unix::fs::symlink("specs", at("linked")).unwrap();
        std::os::unix::fs::symlink("nowhere", at("lost")).unwrap();
        let feature = Feature::at(at("specs/001-a"));
        for same in ["specs/001-a", "specs/001-a/", "linked/001-a", "specs/../specs/./001-a"] {
            assert!(feature.is_same(&at(same)), "{same}");
            assert!(Feature::at(at(same)).is_same(&feature.dir), "{same}");
        }
        for other in ["specs/002-b", "specs", "specs/001-a/spec.md", "specs/003-c", "lost"] {
            assert!(!feature.is_same(&at(other)), "{other}");
        }
        // What leads nowhere is not the same as all else that does.
        assert!(!Feature::at(at("lost/a")).is_same(&at("lost/b")));
    }

    #[test]
    fn a_list_that_is_not_there_has_no_tasks() {
        let (_folder, project) = project(&[("specs/001-a/tasks.md", "- [x] T001 a\n- [ ] T002 b\n")]);
        let list = |dir: &str| Feature::at(project.place(dir)).task_list().unwrap();
        assert_eq!((list("specs/001-a").tasks.len(), list("specs/001-a").n_done()), (2, 1));
        assert!(list("specs/002-b").tasks.is_empty());
    }
}
