//! `glob`: files by name, the newest first.

use std::{cmp::Reverse, collections::BTreeSet, path::Path, time::SystemTime};

use crow_core::{Facets, Outcome, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    Running, Tool, ToolCx, Workspace,
    grep::search,
    tool::{Refusal, answer, off_thread, parse, text_of},
    walk::{Found, NamePattern, Walk, here, walk},
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
            let text = off_thread(move || find(&start, &shown, &pattern, &cut)).await?;
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
    let mut newest = BTreeSet::new();
    let mut n_files = 0_usize;
    walk(start, shown, cut, |file| {
        if pattern.is_match(&file) {
            n_files += 1;
            newest.insert((Reverse(changed_at(&file)), file.shown(shown)));
            if newest.len() > FILES_MAX {
                newest.pop_last();
            }
        }
        Walk::On
    })?;
    if n_files == 0 {
        return Ok("no files match".into());
    }
    let mut text: String = newest.into_iter().map(|(_, path)| path + "\n").collect();
    if n_files > FILES_MAX {
        text += &format!("({FILES_MAX} of {n_files} files; use a narrower pattern or path)\n");
    }
    Ok(text)
}

fn changed_at(file: &Found) -> SystemTime {
    let found = std::fs::metadata(&file.absolute);
    found.and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}
