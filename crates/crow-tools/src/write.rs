//! `write`: a whole file at once.

use std::path::Path;

use crow_core::{Content, Facets, Location, Outcome, Part, Status, ToolKind, ToolSpec, Touch};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Running, Tool, ToolCx, Workspace,
    files::{self, ReadError},
    text::{Decoded, decode},
    tool::{Refusal, about, answer, off_thread, parse, text_of},
    workspace::Stamp,
};

/// A client draws no useful picture of a larger change, and both texts travel to it.
pub(crate) const DIFF_BYTES_MAX: usize = 1024 * 1024;

pub(crate) struct Write {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Wanted {
    file_path: String,
    content: String,
}

/// What was there before.
enum Before {
    Nothing,
    Text(String),
    /// Binary or too large to show.
    Something,
}

impl Write {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "write".into(),
            description:
                "Writes a whole file, replacing what was there; folders on the way are made. Use `edit` to \
                          change a part of a file."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "file_path": {"type": "string", "description": "The file, absolute or relative to the working folder"},
                    "content": {"type": "string", "description": "All that the file shall hold"}
                },
                "required": ["file_path", "content"]
            }),
        };
        Self { spec }
    }
}

impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn facets(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> Facets {
        change(workspace, "Write", text_of(arguments, "file_path"))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        answer(async move {
            let Wanted { file_path, content } = parse(arguments)?;
            let path = cx.workspace.resolve(&file_path);
            let shown = cx.workspace.shown(&file_path);
            let (before, content) = {
                let path = path.clone();
                off_thread(move || write(&path, &shown, &content).map(|before| (before, content))).await?
            };
            cx.workspace.remember(path, Stamp::of(content.as_bytes()));
            let shown = cx.workspace.shown(&file_path);
            let lines = match content.lines().count() {
                1 => "1 line".into(),
                n => format!("{n} lines"),
            };
            let verb = if matches!(before, Before::Nothing) { "created" } else { "replaced" };
            let text = format!("{verb} {shown}: {lines}");
            Ok(changed(text, &cx.workspace.absolute(&file_path), before.into_diff(content)))
        })
    }
}

fn write(path: &Path, shown: &str, content: &str) -> Result<Before, Refusal> {
    let refuse = |error: &dyn std::fmt::Display| Refusal(format!("could not write {shown}: {error}"));
    let before = match files::read(path, DIFF_BYTES_MAX as u64) {
        Ok(bytes) => match decode(bytes) {
            Decoded::Text(text, _) => Before::Text(text),
            Decoded::Lossy(_) | Decoded::Binary => Before::Something,
        },
        Err(ReadError::Missing) => Before::Nothing,
        Err(ReadError::TooLarge { .. }) => Before::Something,
        Err(error @ (ReadError::Folder | ReadError::NotAFile | ReadError::System(_))) => {
            return Err(refuse(&error));
        }
    };
    files::replace(path, content.as_bytes()).map_err(|error| refuse(&error))?;
    Ok(before)
}

impl Before {
    fn into_diff(self, new: String) -> Option<(Option<String>, String)> {
        match self {
            Self::Nothing => Some((None, new)),
            Self::Text(old) => Some((Some(old), new)),
            Self::Something => None,
        }
    }
}

/// Facets of a call that changes one file.
pub(crate) fn change(workspace: &Workspace, verb: &str, path: &str) -> Facets {
    let absolute = workspace.absolute(path).display().to_string();
    Facets {
        title: about(verb, path, workspace),
        kind: ToolKind::Edit,
        locations: vec![Location { path: absolute, line: None }],
        touch: Touch::Writes(vec![workspace.resolve(path).display().to_string()]),
    }
}

/// Outcome of a change: words for the model, the change itself for the client as far as it can be shown.
pub(crate) fn changed(text: String, path: &Path, diff: Option<(Option<String>, String)>) -> Outcome {
    let shown =
        diff.filter(|(old, new)| old.as_ref().map_or(0, String::len).max(new.len()) <= DIFF_BYTES_MAX);
    let content = match shown {
        Some((old, new)) => Content::Diff { path: path.display().to_string(), old, new },
        None => Content::Text(text.clone()),
    };
    Outcome { status: Status::Done, for_model: vec![Part::Text(text)], for_client: vec![content], plan: None }
}
