//! `write`: writes a whole file.

use std::path::Path;

use crow_core::{
    ContentPart, FileLocation, ToolAccess, ToolCallContent, ToolCallInfo, ToolCallStatus, ToolKind,
    ToolResult, ToolSpec, edit::TextChange,
};
use crow_files::ReadError;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    PreviewFuture, Tool, ToolCx, ToolFuture, Workspace,
    edit::{self, FileEdit},
    editor_buffers::{self, OpenFileError, OpenedFile, ReadPurpose},
    file_write::{self, CHANGED_OR_UNSAVED, CHANGED_SINCE_READ, FileWrite, PriorContent, WrittenFile},
    read,
    text_encoding::{DecodedText, TextEncoding, decode_text},
    tool::{into_preview_future, into_tool_future, parse_arguments, path_title, text_argument},
    tool_error::ToolError,
    workspace::ContentStamp,
};

/// A client cannot usefully render a larger change, and both texts are sent to it.
pub(crate) const DIFF_BYTES_MAX: usize = 1024 * 1024;

/// Follows the lines of a file in the refusal to replace it.
const REPLACE_HINT: &str =
    "(change a part of it, append to it, or write it again to replace all of these lines)";

pub(crate) struct WriteTool {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct WriteArgs {
    file_path: String,
    content: String,
    #[serde(default)]
    mode: WriteMode,
}

/// The treatment of the content that a file has.
#[derive(Debug, Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
enum WriteMode {
    /// It is replaced.
    #[default]
    Overwrite,
    /// It stays, and lines are added after it.
    Append,
}

/// The existing file.
enum ExistingFile {
    Missing,
    /// The encoding is `None` if the client has the file and handles it.
    Text(String, Option<TextEncoding>),
    /// Binary or too large to show; with a stamp if it can be read.
    Opaque(Option<ContentStamp>),
}

/// The content of a file before and after a change; `old` is `None` if the file is new.
pub(crate) struct FileDiff {
    pub(crate) old: Option<String>,
    pub(crate) new: String,
}

impl WriteTool {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "write".into(),
            description: "Writes a whole file and replaces what was there; parent folders are created. Use it for new or short files, \
                          and `edit` for a part of a longer one. Give all of the content, never `…` for the rest. To add lines \
                          to the end of a file, give only these, with the mode `append`."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "file_path": {"type": "string", "description": "The file, absolute or relative to the working folder"},
                    "mode": {"type": "string", "enum": ["overwrite", "append"], "default": "overwrite", "description": "Whether the content takes the place of the old one or is added after it"},
                    "content": {"type": "string", "description": "All that the file shall hold, or the lines to add"}
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
        let verb = if text_argument(arguments, "mode") == "append" { "Append to" } else { "Write" };
        change_call_info(workspace, verb, text_argument(arguments, "file_path"))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        into_tool_future(async move {
            let WriteArgs { file_path, content, mode } = parse_arguments(arguments)?;
            if mode == WriteMode::Append {
                return edit::edit_file(&cx, append_edit(&cx, file_path, content)?).await;
            }
            let existing = read_existing(&cx, &file_path, ReadPurpose::Modify).await?;
            check_unchanged(&cx, &file_path, &existing)?;
            refuse_unread(&cx, &file_path, &existing, &content).await?;
            if existing.is_same_on_disk(&content) {
                cx.workspace.record_write(cx.approved_path(&file_path)?, &content);
                let path = cx.workspace.display_path(&file_path);
                return Ok(ToolResult::success(format!(
                    "{path} already has this content; nothing was changed"
                )));
            }
            let change = FileWrite {
                verb: "write",
                file_path: &file_path,
                prior: existing.prior_content(),
                text: content,
                is_whole: true,
                encoding: existing.encoding(),
                mode: None,
            };
            let WrittenFile { text: content, note } = file_write::apply_write(&cx, change).await?;
            let display_path = cx.workspace.display_path(&file_path);
            let lines = count_lines(&content);
            let text = match &existing {
                ExistingFile::Missing => format!("created {display_path}: {lines}{note}"),
                ExistingFile::Text(old, _) => {
                    format!("replaced {display_path}: {} before, {lines} now{note}", count_lines(old))
                }
                ExistingFile::Opaque(_) => format!("replaced {display_path}: {lines} now{note}"),
            };
            Ok(change_result(text, &cx.workspace.to_absolute(&file_path), existing.into_diff(content)))
        })
    }

    fn preview<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> PreviewFuture<'a> {
        into_preview_future(async move { preview_write(arguments, &cx).await })
    }
}

/// Returns the edit that adds lines to the end of a file.
fn append_edit(cx: &ToolCx<'_>, file_path: String, text: String) -> Result<FileEdit, ToolError> {
    if text.is_empty() {
        let path = cx.workspace.display_path(&file_path);
        return Err(ToolError(format!("could not append to {path}: the content is empty")));
    }
    Ok(FileEdit { file_path, changes: vec![TextChange::Append { text }] })
}

/// Returns what a write would change.
pub(crate) async fn preview_write(
    arguments: &Map<String, Value>,
    cx: &ToolCx<'_>,
) -> Result<Vec<ToolCallContent>, ToolError> {
    let WriteArgs { file_path, content, mode } = parse_arguments(arguments)?;
    if mode == WriteMode::Append {
        return edit::preview_edit(cx, append_edit(cx, file_path, content)?).await;
    }
    let existing = read_existing(cx, &file_path, ReadPurpose::Preview).await?;
    check_unchanged(cx, &file_path, &existing)?;
    refuse_unread(cx, &file_path, &existing, &content).await?;
    let diff = existing.into_diff(content);
    let path = cx.workspace.to_absolute(&file_path);
    Ok(diff.map_or_else(Vec::new, |diff| diff_content(&path, diff)))
}

/// Reads the file that a write would replace.
async fn read_existing(
    cx: &ToolCx<'_>,
    file_path: &str,
    purpose: ReadPurpose,
) -> Result<ExistingFile, ToolError> {
    match editor_buffers::open_file(cx, file_path, purpose).await {
        Ok(OpenedFile::Buffer(text)) => Ok(ExistingFile::Text(text, None)),
        Ok(OpenedFile::Disk(bytes)) => match decode_text(bytes) {
            DecodedText::Text(text, encoding) => Ok(ExistingFile::Text(text, Some(encoding))),
            DecodedText::Lossy(text) => Ok(ExistingFile::Opaque(Some(ContentStamp::from_text(&text)))),
            DecodedText::Binary => Ok(ExistingFile::Opaque(None)),
        },
        Err(OpenFileError::Unreadable(ReadError::Missing)) => Ok(ExistingFile::Missing),
        Err(OpenFileError::Unreadable(ReadError::TooLarge { .. })) => Ok(ExistingFile::Opaque(None)),
        Err(OpenFileError::Failed(error)) => Err(error),
        Err(OpenFileError::Unreadable(
            error @ (ReadError::Directory | ReadError::NotAFile | ReadError::System(_)),
        )) => Err(ToolError(format!("could not write {}: {error}", cx.workspace.display_path(file_path)))),
    }
}

/// Rejects replacing a text that is another one than the model has read: it would revert others' changes.
fn check_unchanged(cx: &ToolCx<'_>, file_path: &str, existing: &ExistingFile) -> Result<(), ToolError> {
    let known = cx.workspace.seen_stamp(&cx.approved_path(file_path)?);
    let current = match existing {
        ExistingFile::Text(text, _) => Some(ContentStamp::from_text(text)),
        ExistingFile::Opaque(stamp) => *stamp,
        ExistingFile::Missing => None,
    };
    // An unreadable file could not be read again either.
    if known.zip(current).is_none_or(|(seen, now)| seen == now) {
        return Ok(());
    }
    let is_read_only_client = cx.client_capabilities().reads_files && !cx.client_capabilities().writes_files;
    let reason = if is_read_only_client { CHANGED_OR_UNSAVED } else { CHANGED_SINCE_READ };
    Err(ToolError(format!("could not write {}: {reason}", cx.workspace.display_path(file_path))))
}

/// Rejects replacing a text that the model has not read, unless the new one contains it.
async fn refuse_unread(
    cx: &ToolCx<'_>,
    file_path: &str,
    existing: &ExistingFile,
    new: &str,
) -> Result<(), ToolError> {
    let is_lost = match existing {
        ExistingFile::Text(old, _) => !new.contains(old.as_str()),
        ExistingFile::Opaque(stamp) => stamp.is_some(),
        ExistingFile::Missing => false,
    };
    if !is_lost || cx.workspace.seen_stamp(&cx.approved_path(file_path)?).is_some() {
        return Ok(());
    }
    let reason = read::unread_refusal(cx, file_path, REPLACE_HINT).await?;
    let display_path = cx.workspace.display_path(file_path);
    Err(ToolError(format!("could not write {display_path}: {reason}")))
}

fn count_lines(text: &str) -> String {
    match text.lines().count() {
        1 => "1 line".into(),
        n => format!("{n} lines"),
    }
}

impl ExistingFile {
    /// Whether the file on disk has this text. An editor's text may be unsaved.
    fn is_same_on_disk(&self, new: &str) -> bool {
        match self {
            Self::Text(old, encoding) => encoding.is_some() && old == new,
            Self::Missing | Self::Opaque(_) => false,
        }
    }

    /// The file's encoding, which is kept.
    fn encoding(&self) -> TextEncoding {
        match self {
            Self::Text(_, encoding) => encoding.unwrap_or(TextEncoding::Utf8),
            Self::Missing | Self::Opaque(_) => TextEncoding::Utf8,
        }
    }

    fn prior_content(&self) -> PriorContent<'_> {
        match self {
            Self::Missing => PriorContent::Missing,
            Self::Text(text, Some(_)) => PriorContent::Disk(text),
            Self::Text(text, None) => PriorContent::Buffer(text),
            Self::Opaque(_) => PriorContent::Unreadable,
        }
    }

    fn into_diff(self, new: String) -> Option<FileDiff> {
        match self {
            Self::Missing => Some(FileDiff { old: None, new }),
            Self::Text(old, _) => Some(FileDiff { old: Some(old), new }),
            Self::Opaque(_) => None,
        }
    }
}

/// Call info of a call that changes one file.
pub(crate) fn change_call_info(workspace: &Workspace, verb: &str, path: &str) -> ToolCallInfo {
    let absolute = workspace.to_absolute(path).display().to_string();
    ToolCallInfo {
        title: path_title(verb, path, workspace),
        kind: ToolKind::Edit,
        locations: vec![FileLocation { path: absolute, line: None }],
        access: ToolAccess::Writes(vec![workspace.resolve_path(path).display().to_string()]),
    }
}

/// Result of a change: text for the model, and the diff for the client if it can be shown.
pub(crate) fn change_result(text: String, path: &Path, diff: Option<FileDiff>) -> ToolResult {
    let mut content = diff.map_or_else(Vec::new, |diff| diff_content(path, diff));
    if content.is_empty() {
        content.push(ToolCallContent::Text(text.clone()));
    }
    ToolResult {
        status: ToolCallStatus::Completed,
        for_model: vec![ContentPart::Text(text)],
        for_client: content,
        plan: None,
    }
}

/// Renders a diff, unless it is too large.
pub(crate) fn diff_content(path: &Path, diff: FileDiff) -> Vec<ToolCallContent> {
    let FileDiff { old, new } = diff;
    let n_bytes = old.as_ref().map_or(0, String::len).max(new.len());
    let diff = ToolCallContent::Diff { path: path.display().to_string(), old, new };
    if n_bytes <= DIFF_BYTES_MAX { vec![diff] } else { Vec::new() }
}
