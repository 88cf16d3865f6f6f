//! `glob`: files by name, the newest first.

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    path::Path,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use crow_core::{Facets, Outcome, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    Running, Tool, ToolCx, Workspace,
    grep::search,
    nofollow,
    tool::{Refusal, answer, parse, text_of},
    walk::{Found, NamePattern, Visitor, here, walk},
};

/// Who gets more names than this has to ask more closely.
const FILES_MAX: usize = 100;

pub(crate) struct Glob {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Wanted {
    pattern: String,
    #[serde(default = "here")]
    path: String,
}

impl Glob {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "glob".into(),
            description: format!(
                "Finds files by name, the newest first, {FILES_MAX} at most. Files that Git ignores are left out."
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

impl Tool for Glob {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn facets(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> Facets {
        search(workspace, "Find", text_of(arguments, "pattern"), text_of(arguments, "path"))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        answer(async move {
            let Wanted { pattern, path } = parse(arguments)?;
            let pattern = NamePattern::new(&pattern)?;
            let (start, shown) = (cx.judged(&path)?, cx.workspace.shown(&path));
            let cut = cx.cut.child_token();
            let _stop = cut.clone().drop_guard();
            let text = cx.read_off_thread(move || find(&start, &shown, &pattern, &cut)).await?;
            Ok(Outcome::done(text))
        })
    }
}

fn find(
    start: &Path,
    shown: &str,
    pattern: &NamePattern,
    cut: &CancellationToken,
) -> Result<String, Refusal> {
    let newest = Mutex::new(Newest::default());
    let walked = walk(start, shown, cut, || Look { pattern, shown, newest: &newest })?;
    let Newest { files, n_files } = newest.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut text: String = files.into_iter().map(|(_, path)| path + "\n").collect();
    if n_files == 0 {
        text += "no files match\n";
    }
    if n_files > FILES_MAX {
        text += &format!("({FILES_MAX} of {n_files} files; use a narrower pattern or path)\n");
    }
    Ok(text + &walked.notes())
}

/// The newest files of all that match.
#[derive(Default)]
struct Newest {
    files: BTreeSet<(Reverse<SystemTime>, String)>,
    n_files: usize,
}

struct Look<'a> {
    pattern: &'a NamePattern,
    shown: &'a str,
    newest: &'a Mutex<Newest>,
}

impl Visitor for Look<'_> {
    fn visit(&mut self, file: Found) {
        if !self.pattern.is_match(&file) {
            return;
        }
        // What cannot be reached without a link is not below where the search began.
        let Ok(found) = nofollow::look(&file.absolute) else { return };
        let changed = Reverse(found.modified().unwrap_or(SystemTime::UNIX_EPOCH));
        let shown = file.shown(self.shown);
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.n_files += 1;
        newest.files.insert((changed, shown));
        if newest.files.len() > FILES_MAX {
            newest.files.pop_last();
        }
    }
}
