//! `write`: a whole file at once.

use std::path::Path;

use crow_core::{
    ContentPart, FileLocation, ToolAccess, ToolCallContent, ToolCallInfo, ToolCallStatus, ToolKind,
    ToolResult, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    PreviewFuture, Tool, ToolCx, ToolFuture, Workspace,
    buffers::{self, OpenedFile, ReadPurpose},
    changing::{self, FileWrite, PriorContent, WrittenFile},
    edit::{CHANGED, CHANGED_OR_UNSAVED},
    files::ReadError,
    text::{DecodedText, TextEncoding, decode_text},
    tool::{ToolError, into_preview_future, into_tool_future, parse_arguments, path_title, text_argument},
    workspace::ContentStamp,
};

/// A client draws no useful picture of a larger change, and both texts travel to it.
pub(crate) const DIFF_BYTES_MAX: usize = 1024 * 1024;

pub(crate) struct WriteTool {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct WriteArgs {
    file_path: String,
    content: String,
}

/// What was there before.
enum ExistingFile {
    Nothing,
    /// `None` when the client has it, which keeps its encoding.
    Text(String, Option<TextEncoding>),
    /// Binary or too large to show; stamped when it can be read.
    Something(Option<ContentStamp>),
}

impl WriteTool {
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

impl Tool for WriteTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call_info(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> ToolCallInfo {
        change_call_info(workspace, "Write", text_argument(arguments, "file_path"))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        into_tool_future(async move {
            let WriteArgs { file_path, content } = parse_arguments(arguments)?;
            let before = read_existing(&cx, &file_path).await?;
            check_unchanged(&cx, &file_path, &before)?;
            let change = FileWrite {
                verb: "write",
                file_path: &file_path,
                old: before.prior_content(),
                text: content,
                encoding: before.encoding(),
            };
            let WrittenFile { text: content, note } = changing::apply_write(&cx, change).await?;
            let shown = cx.workspace.display_path(&file_path);
            let lines = match content.lines().count() {
                1 => "1 line".into(),
                n => format!("{n} lines"),
            };
            let verb = if matches!(before, ExistingFile::Nothing) { "created" } else { "replaced" };
            let text = format!("{verb} {shown}: {lines}{note}");
            Ok(change_result(text, &cx.workspace.to_absolute(&file_path), before.into_diff(content)))
        })
    }

    fn preview<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> PreviewFuture<'a> {
        into_preview_future(async move {
            let WriteArgs { file_path, content } = parse_arguments(arguments)?;
            let before = read_existing(&cx, &file_path).await?;
            check_unchanged(&cx, &file_path, &before)?;
            let diff = before.into_diff(content);
            let path = cx.workspace.to_absolute(&file_path);
            Ok(diff.map_or_else(Vec::new, |(old, new)| diff_content(&path, old, new)))
        })
    }
}

/// Looks at what a write would replace.
async fn read_existing(cx: &ToolCx<'_>, file_path: &str) -> Result<ExistingFile, ToolError> {
    match buffers::open_file(cx, file_path, ReadPurpose::Change).await? {
        Ok(OpenedFile::Buffer(text)) => Ok(ExistingFile::Text(text, None)),
        Ok(OpenedFile::Disk(bytes)) => match decode_text(bytes) {
            DecodedText::Text(text, encoding) => Ok(ExistingFile::Text(text, Some(encoding))),
            DecodedText::Lossy(text) => Ok(ExistingFile::Something(Some(ContentStamp::from_text(&text)))),
            DecodedText::Binary => Ok(ExistingFile::Something(None)),
        },
        Err(ReadError::Missing) => Ok(ExistingFile::Nothing),
        Err(ReadError::TooLarge { .. }) => Ok(ExistingFile::Something(None)),
        Err(error @ (ReadError::Folder | ReadError::NotAFile | ReadError::System(_))) => {
            Err(ToolError(format!("could not write {}: {error}", cx.workspace.display_path(file_path))))
        }
    }
}

/// Refuses to replace a text that is another than the one the model has seen: it would take back what others wrote.
fn check_unchanged(cx: &ToolCx<'_>, file_path: &str, before: &ExistingFile) -> Result<(), ToolError> {
    let seen = cx.workspace.seen_stamp(&cx.approved_path(file_path)?);
    let now = match before {
        ExistingFile::Text(text, _) => Some(ContentStamp::from_text(text)),
        ExistingFile::Something(stamp) => *stamp,
        ExistingFile::Nothing => None,
    };
    // What cannot be read could not be read again either.
    if seen.zip(now).is_none_or(|(seen, now)| seen == now) {
        return Ok(());
    }
    let only_reads = cx.client_capabilities().reads_files && !cx.client_capabilities().writes_files;
    let why = if only_reads { CHANGED_OR_UNSAVED } else { CHANGED };
    Err(ToolError(format!("could not write {}: {why}", cx.workspace.display_path(file_path))))
}

impl ExistingFile {
    /// How the file is written, which stays so.
    fn encoding(&self) -> TextEncoding {
        match self {
            Self::Text(_, encoding) => encoding.unwrap_or(TextEncoding::Utf8),
            Self::Nothing | Self::Something(_) => TextEncoding::Utf8,
        }
    }

    fn prior_content(&self) -> PriorContent<'_> {
        match self {
            Self::Nothing => PriorContent::Nothing,
            Self::Text(text, Some(_)) => PriorContent::Disk(text),
            Self::Text(text, None) => PriorContent::Buffer(text),
            Self::Something(_) => PriorContent::Unseen,
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
pub(crate) fn change_call_info(workspace: &Workspace, verb: &str, path: &str) -> ToolCallInfo {
    let absolute = workspace.to_absolute(path).display().to_string();
    ToolCallInfo {
        title: path_title(verb, path, workspace),
        kind: ToolKind::Edit,
        locations: vec![FileLocation { path: absolute, line: None }],
        touch: ToolAccess::Writes(vec![workspace.resolve_path(path).display().to_string()]),
    }
}

/// Outcome of a change: words for the model, the change itself for the client as far as it can be shown.
pub(crate) fn change_result(text: String, path: &Path, diff: Option<(Option<String>, String)>) -> ToolResult {
    let mut content = diff.map_or_else(Vec::new, |(old, new)| diff_content(path, old, new));
    if content.is_empty() {
        content.push(ToolCallContent::Text(text.clone()));
    }
    ToolResult {
        status: ToolCallStatus::Done,
        for_model: vec![ContentPart::Text(text)],
        for_client: content,
        plan: None,
    }
}

/// Shows a change, unless it is too large to draw.
pub(crate) fn diff_content(path: &Path, old: Option<String>, new: String) -> Vec<ToolCallContent> {
    let n_bytes = old.as_ref().map_or(0, String::len).max(new.len());
    let diff = ToolCallContent::Diff { path: path.display().to_string(), old, new };
    if n_bytes <= DIFF_BYTES_MAX { vec![diff] } else { Vec::new() }
}
