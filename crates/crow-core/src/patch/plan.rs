//! Plans the changes of a patch: file contents in, file contents out, all or none.

use std::collections::BTreeMap;

use super::{ParsedPatch, PatchSection};
use crate::edit::{EditMatcher, RefusedHunk, apply_hunks};

/// The change of one file, computed and not yet made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    pub path: String,
    /// Its content; `None` if there is no file.
    pub old: Option<String>,
    /// Its content afterwards; `None` removes it.
    pub new: Option<String>,
    /// The file that was moved here.
    pub source: Option<String>,
    /// The loosest matcher that found a hunk.
    pub matcher: EditMatcher,
}

/// The reason why a patch is not applied, with the next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchRefusal {
    #[error("{path} exists; change it with `*** Update File: {path}`, or delete it first in the same patch")]
    Exists { path: String },
    #[error("{path} does not exist; find its path, or create it with `*** Add File: {path}`")]
    Missing { path: String },
    #[error("{path}, {refused}")]
    Hunk { path: String, refused: RefusedHunk },
    #[error("it changes nothing: the files already have this content")]
    NoChange,
}

/// Plans a patch by the current contents of its files; those that are missing do not exist.
pub fn plan_patch(
    patch: &ParsedPatch,
    contents: &BTreeMap<String, String>,
) -> Result<Vec<PlannedFile>, PatchRefusal> {
    let mut plan = PatchPlan { contents, files: Vec::new() };
    for section in &patch.sections {
        plan.apply_section(section)?;
    }
    let mut files = plan.files;
    files.retain(|file| file.old != file.new);
    if files.is_empty() { Err(PatchRefusal::NoChange) } else { Ok(files) }
}

/// The files of a patch so far, in the order of their first change.
struct PatchPlan<'a> {
    contents: &'a BTreeMap<String, String>,
    files: Vec<PlannedFile>,
}

impl PatchPlan<'_> {
    fn apply_section(&mut self, section: &PatchSection) -> Result<(), PatchRefusal> {
        match section {
            PatchSection::Add { path, text } => {
                // An empty file has nothing to lose.
                if self.text_of(path).is_some_and(|text| !text.is_empty()) {
                    return Err(PatchRefusal::Exists { path: path.clone() });
                }
                self.set_text(path, Some(text.clone()), EditMatcher::Exact);
            }
            PatchSection::Delete { path } => {
                self.existing_text(path)?;
                self.set_text(path, None, EditMatcher::Exact);
            }
            PatchSection::Update { path, target, hunks } => {
                let text = self.existing_text(path)?;
                let patched = apply_hunks(&text, hunks)
                    .map_err(|refused| PatchRefusal::Hunk { path: path.clone(), refused })?;
                let target = target.as_ref().filter(|target| *target != path);
                if let Some(target) = target {
                    if self.text_of(target).is_some() {
                        return Err(PatchRefusal::Exists { path: target.clone() });
                    }
                    self.set_text(path, None, EditMatcher::Exact);
                }
                let file = self.set_text(target.unwrap_or(path), Some(patched.text), patched.matcher);
                file.source = target.map(|_| path.clone()).or(file.source.take());
            }
        }
        Ok(())
    }

    /// Returns the content of a file as earlier sections left it.
    fn text_of(&self, path: &str) -> Option<&String> {
        match self.files.iter().find(|file| file.path == path) {
            Some(file) => file.new.as_ref(),
            None => self.contents.get(path),
        }
    }

    fn existing_text(&self, path: &str) -> Result<String, PatchRefusal> {
        self.text_of(path).cloned().ok_or_else(|| PatchRefusal::Missing { path: path.to_owned() })
    }

    fn set_text(&mut self, path: &str, new: Option<String>, matcher: EditMatcher) -> &mut PlannedFile {
        let index = match self.files.iter().position(|file| file.path == path) {
            Some(index) => index,
            None => {
                self.files.push(PlannedFile {
                    path: path.to_owned(),
                    old: self.contents.get(path).cloned(),
                    new: None,
                    source: None,
                    matcher: EditMatcher::Exact,
                });
                self.files.len() - 1
            }
        };
        let file = &mut self.files[index];
        file.new = new;
        file.matcher = file.matcher.max(matcher);
        file
    }
}
