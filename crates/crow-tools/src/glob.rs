//! `glob`: finds files by name, newest first.

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    path::Path,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use crow_core::{ToolCallInfo, ToolResult, ToolSpec};
use crow_files::nofollow;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    Tool, ToolCx, ToolFuture, Workspace,
    grep::search_call_info,
    search_hits::{NAMES_MAX, list_names},
    tool::{into_tool_future, parse_arguments, text_argument},
    tool_error::ToolError,
    walk::{FileVisitor, FoundFile, PathPattern, default_path, walk_files},
};

/// More names than this call for a narrower pattern.
const FILES_MAX: usize = 100;

pub(crate) struct GlobTool {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct GlobArgs {
    pattern: String,
    #[serde(default = "default_path")]
    path: String,
}

impl GlobTool {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "glob".into(),
            description: format!(
                "Finds files by name, the newest first, {FILES_MAX} at most; `grep` searches their contents. Files that Git \
                 ignores are left out. Use it rather than `find` or `ls` in `terminal`."
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "minLength": 1, "description": "Such as `src/**/*.rs`; without a slash it is looked for in every folder"},
                    "path": {"type": "string", "description": "Where to look; the working folder if left out"}
                },
                "required": ["pattern"]
            }),
        };
        Self { spec }
    }
}

impl Tool for GlobTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call_info(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> ToolCallInfo {
        search_call_info(
            workspace,
            "Find",
            text_argument(arguments, "pattern"),
            text_argument(arguments, "path"),
        )
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        into_tool_future(async move {
            let GlobArgs { pattern, path } = parse_arguments(arguments)?;
            let patterns = GlobPatterns { path: PathPattern::new(&pattern)?, name: last_part(&pattern) };
            let (start, display_path) = (cx.approved_path(&path)?, cx.workspace.display_path(&path));
            let cancel = cx.cancel.child_token();
            let _stop = cancel.clone().drop_guard();
            let text =
                cx.read_blocking(move || find_files(&start, &display_path, &patterns, &cancel)).await?;
            Ok(ToolResult::success(text))
        })
    }
}

fn find_files(
    start: &Path,
    display_path: &str,
    patterns: &GlobPatterns,
    cancel: &CancellationToken,
) -> Result<String, ToolError> {
    let newest = Mutex::new(NewestFiles::default());
    let summary =
        walk_files(start, display_path, cancel, || GlobVisitor { patterns, display_path, newest: &newest })?;
    let NewestFiles { files, n_files, elsewhere, n_elsewhere } =
        newest.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut text: String = files.into_iter().map(|(_, path)| path + "\n").collect();
    if n_files == 0 {
        text += "no files match\n";
        let names: Vec<String> = elsewhere.into_iter().collect();
        let names = list_names(&names, n_elsewhere);
        match n_elsewhere {
            0 => {}
            1 => text += &format!("(but 1 file in another place has such a name: {names})\n"),
            n => text += &format!("(but {n} files in other places have such names: {names})\n"),
        }
    }
    if n_files > FILES_MAX {
        text += &format!("({FILES_MAX} of {n_files} files; use a narrower pattern or path)\n");
    } else if n_files > 1 {
        text += &format!("({n_files} files)\n");
    }
    Ok(text + &summary.render_notes())
}

/// A pattern for paths.
struct GlobPatterns {
    path: PathPattern,
    /// Its [last part](last_part), by which files are found in other places.
    name: Option<PathPattern>,
}

/// Returns the last part of a pattern with several; `None` if it says nothing about names, or is cut from braces.
fn last_part(pattern: &str) -> Option<PathPattern> {
    let (_, name) = pattern.rsplit_once('/')?;
    let has_name = name.contains(|character| character != '*');
    PathPattern::new(name).ok().filter(|_| has_name)
}

/// The newest of the matching files.
#[derive(Default)]
struct NewestFiles {
    files: BTreeSet<(Reverse<SystemTime>, String)>,
    n_files: usize,
    /// The first of the files in other places, by their paths.
    elsewhere: BTreeSet<String>,
    n_elsewhere: usize,
}

struct GlobVisitor<'a> {
    patterns: &'a GlobPatterns,
    display_path: &'a str,
    newest: &'a Mutex<NewestFiles>,
}

impl GlobVisitor<'_> {
    /// Adds a file in another place, which is told only if none matches.
    fn add_elsewhere(&self, file: &FoundFile) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.n_files > 0 {
            return;
        }
        newest.n_elsewhere += 1;
        newest.elsewhere.insert(file.display_path(self.display_path));
        if newest.elsewhere.len() > NAMES_MAX {
            newest.elsewhere.pop_last();
        }
    }
}

impl FileVisitor for GlobVisitor<'_> {
    fn visit_file(&mut self, file: FoundFile) {
        if !self.patterns.path.is_match(&file) {
            if self.patterns.name.as_ref().is_some_and(|name| name.is_match(&file)) {
                self.add_elsewhere(&file);
            }
            return;
        }
        // A file that is only reachable through a link is outside the search.
        let Ok(metadata) = nofollow::read_metadata(&file.absolute) else { return };
        let modified = Reverse(metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH));
        let path = file.display_path(self.display_path);
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.n_files += 1;
        newest.files.insert((modified, path));
        if newest.files.len() > FILES_MAX {
            newest.files.pop_last();
        }
    }
}
