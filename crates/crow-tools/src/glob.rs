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
            let pattern = PathPattern::new(&pattern)?;
            let (start, display_path) = (cx.approved_path(&path)?, cx.workspace.display_path(&path));
            let cancel = cx.cancel.child_token();
            let _stop = cancel.clone().drop_guard();
            let text = cx.read_blocking(move || find_files(&start, &display_path, &pattern, &cancel)).await?;
            Ok(ToolResult::success(text))
        })
    }
}

fn find_files(
    start: &Path,
    display_path: &str,
    pattern: &PathPattern,
    cancel: &CancellationToken,
) -> Result<String, ToolError> {
    let newest = Mutex::new(NewestFiles::default());
    let summary =
        walk_files(start, display_path, cancel, || GlobVisitor { pattern, display_path, newest: &newest })?;
    let NewestFiles { files, n_files } = newest.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut text: String = files.into_iter().map(|(_, path)| path + "\n").collect();
    if n_files == 0 {
        text += "no files match\n";
    }
    if n_files > FILES_MAX {
        text += &format!("({FILES_MAX} of {n_files} files; use a narrower pattern or path)\n");
    }
    Ok(text + &summary.render_notes())
}

/// The newest of the matching files.
#[derive(Default)]
struct NewestFiles {
    files: BTreeSet<(Reverse<SystemTime>, String)>,
    n_files: usize,
}

struct GlobVisitor<'a> {
    pattern: &'a PathPattern,
    display_path: &'a str,
    newest: &'a Mutex<NewestFiles>,
}

impl FileVisitor for GlobVisitor<'_> {
    fn visit_file(&mut self, file: FoundFile) {
        if !self.pattern.is_match(&file) {
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
