//! `write`: a whole file at once.

use std::path::Path;

use crow_core::{Content, Facets, Location, Outcome, Part, Status, ToolKind, ToolSpec, Touch};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Previewing, Running, Tool, ToolCx, Workspace,
    buffers::{self, Opened, Purpose},
    changing::{self, Change, Made, Old},
    edit::{CHANGED, CHANGED_OR_UNSAVED},
    files::ReadError,
    text::{Decoded, Encoding, decode},
    tool::{Refusal, about, answer, parse, previewed, text_of},
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
    /// `None` when the client has it, which keeps its encoding.
    Text(String, Option<Encoding>),
    /// Binary or too large to show; stamped when it can be read.
    Something(Option<Stamp>),
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
        about_change(workspace, "Write", text_of(arguments, "file_path"))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        answer(async move {
            let Wanted { file_path, content } = parse(arguments)?;
            let before = before(&cx, &file_path).await?;
            check_known(&cx, &file_path, &before)?;
            let change = Change {
                verb: "write",
                file_path: &file_path,
                old: before.old(),
                text: content,
                encoding: before.encoding(),
            };
            let Made { text: content, note } = changing::make(&cx, change).await?;
            let shown = cx.workspace.shown(&file_path);
            let lines = match content.lines().count() {
                1 => "1 line".into(),
                n => format!("{n} lines"),
            };
            let verb = if matches!(before, Before::Nothing) { "created" } else { "replaced" };
            let text = format!("{verb} {shown}: {lines}{note}");
            Ok(changed(text, &cx.workspace.absolute(&file_path), before.into_diff(content)))
        })
    }

    fn preview<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Previewing<'a> {
        previewed(async move {
            let Wanted { file_path, content } = parse(arguments)?;
            let before = before(&cx, &file_path).await?;
            check_known(&cx, &file_path, &before)?;
            let diff = before.into_diff(content);
            let path = cx.workspace.absolute(&file_path);
            Ok(diff.map_or_else(Vec::new, |(old, new)| shown_diff(&path, old, new)))
        })
    }
}

/// Looks at what a write would replace.
async fn before(cx: &ToolCx<'_>, file_path: &str) -> Result<Before, Refusal> {
    match buffers::open(cx, file_path, Purpose::Change).await? {
        Ok(Opened::Buffer(text)) => Ok(Before::Text(text, None)),
        Ok(Opened::Disk(bytes)) => match decode(bytes) {
            Decoded::Text(text, encoding) => Ok(Before::Text(text, Some(encoding))),
            Decoded::Lossy(text) => Ok(Before::Something(Some(Stamp::of(&text)))),
            Decoded::Binary => Ok(Before::Something(None)),
        },
        Err(ReadError::Missing) => Ok(Before::Nothing),
        Err(ReadError::TooLarge { .. }) => Ok(Before::Something(None)),
        Err(error @ (ReadError::Folder | ReadError::NotAFile | ReadError::System(_))) => {
            Err(Refusal(format!("could not write {}: {error}", cx.workspace.shown(file_path))))
        }
    }
}

/// Refuses to replace a text that is another than the one the model has seen: it would take back what others wrote.
fn check_known(cx: &ToolCx<'_>, file_path: &str, before: &Before) -> Result<(), Refusal> {
    let seen = cx.workspace.seen(&cx.judged(file_path)?);
    let now = match before {
        Before::Text(text, _) => Some(Stamp::of(text)),
        Before::Something(stamp) => *stamp,
        Before::Nothing => None,
    };
    // What cannot be read could not be read again either.
    if seen.zip(now).is_none_or(|(seen, now)| seen == now) {
        return Ok(());
    }
    let only_reads = cx.abilities().reads_files && !cx.abilities().writes_files;
    let why = if only_reads { CHANGED_OR_UNSAVED } else { CHANGED };
    Err(Refusal(format!("could not write {}: {why}", cx.workspace.shown(file_path))))
}

impl Before {
    /// How the file is written, which stays so.
    fn encoding(&self) -> Encoding {
        match self {
            Self::Text(_, encoding) => encoding.unwrap_or(Encoding::Utf8),
            Self::Nothing | Self::Something(_) => Encoding::Utf8,
        }
    }

    fn old(&self) -> Old<'_> {
        match self {
            Self::Nothing => Old::Nothing,
            Self::Text(text, Some(_)) => Old::Disk(text),
            Self::Text(text, None) => Old::Buffer(text),
            Self::Something(_) => Old::Unseen,
        }
    }

    fn into_diff(self, new: String) -> Option<(Option<String>, String)> {
        match self {
            Self::Nothing => Some((None, new)),
            Self::Text(old, _) => Some((Some(old), new)),
            Self::Something(_) => None,
        }
    }
}

/// Facets of a call that changes one file.
pub(crate) fn about_change(workspace: &Workspace, verb: &str, path: &str) -> Facets {
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
    let mut content = diff.map_or_else(Vec::new, |(old, new)| shown_diff(path, old, new));
    if content.is_empty() {
        content.push(Content::Text(text.clone()));
    }
    Outcome { status: Status::Done, for_model: vec![Part::Text(text)], for_client: content, plan: None }
}

/// Shows a change, unless it is too large to draw.
pub(crate) fn shown_diff(path: &Path, old: Option<String>, new: String) -> Vec<Content> {
    let n_bytes = old.as_ref().map_or(0, String::len).max(new.len());
    let diff = Content::Diff { path: path.display().to_string(), old, new };
    if n_bytes <= DIFF_BYTES_MAX { vec![diff] } else { Vec::new() }
}
