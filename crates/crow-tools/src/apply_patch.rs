//! `apply_patch`: changes several files by one patch, all or none. `crow_core::patch` decides what and where.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
};

use crow_core::{
    ContentPart, FileLocation, ToolAccess, ToolArguments, ToolCall, ToolCallContent, ToolCallInfo,
    ToolCallStatus, ToolKind, ToolResult, ToolSpec,
    edit::EditMatcher,
    patch::{ParsedPatch, PatchSection, PlannedFile, ShellPatch, plan_patch, shell_patch},
};
use crow_files::ReadError;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    PreviewFuture, Tool, ToolCx, ToolFuture, Workspace,
    editor_buffers::{self, OpenFileError, ReadPurpose, WriteTarget},
    file_write::{self, FileWrite, PriorContent, WrittenFile},
    read,
    text_encoding::TextEncoding,
    text_file::{self, TextFile},
    tool::{into_preview_future, into_tool_future, parse_arguments, path_title, text_argument},
    tool_error::{ToolError, run_blocking},
    write::{DIFF_BYTES_MAX, FileDiff, diff_content},
};

const APPLY_PATCH: &str = "apply_patch";

/// The title of a call whose patch cannot be parsed.
const UNKNOWN_TITLE: &str = "Apply a patch";

/// The usual permission bits of new files: a client creates a file with them too.
const NEW_FILE_MODES: [u32; 3] = [0o644, 0o664, 0o666];

pub(crate) struct ApplyPatchTool {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct ApplyPatchArgs {
    input: String,
}

/// A patch that is computed and not yet written.
struct PlannedPatch {
    files: Vec<PlannedFile>,
    /// The encodings of existing files; `None` if the client writes them.
    encodings: BTreeMap<String, Option<TextEncoding>>,
    /// The permission bits of the files that are moved or removed.
    modes: BTreeMap<String, u32>,
}

/// A file that was written or removed, with its text now.
struct DoneChange<'a> {
    file: &'a PlannedFile,
    text: Option<String>,
}

impl ApplyPatchTool {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: APPLY_PATCH.into(),
            description: "Adds, changes, moves and deletes files by one patch: all of it, or nothing if a part does not fit. \
                          `*** Begin Patch`; for each file `*** Add File: PATH` with lines that begin with `+`, \
                          `*** Delete File: PATH`, or `*** Update File: PATH` (then perhaps `*** Move to: PATH`) with hunks; \
                          `*** End Patch`. A hunk is `@@`, or `@@` and the line of the function or class around the change, \
                          then lines that begin with a space (kept), `-` (removed) or `+` (added), with about three kept \
                          lines around each change. Use it for every change of a file, rather than `terminal`."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "input": {"type": "string", "description": "The patch, with paths relative to the working folder"}
                },
                "required": ["input"]
            }),
        };
        Self { spec }
    }
}

/// Returns the call of `apply_patch` that a call of `terminal` means: a command that only applies a patch.
pub(crate) fn to_patch_call(call: &ToolCall) -> Option<ToolCall> {
    let ToolArguments::Valid(arguments) = &call.arguments else { return None };
    let is_plain = arguments.keys().all(|name| matches!(name.as_str(), "command" | "timeout"));
    if call.name != "terminal" || !is_plain {
        return None;
    }
    let Some(ShellPatch::Patch(input)) = shell_patch(text_argument(arguments, "command")) else {
        return None;
    };
    let arguments = Map::from_iter([("input".to_owned(), Value::String(input))]);
    Some(ToolCall {
        name: APPLY_PATCH.to_owned(),
        arguments: ToolArguments::Valid(arguments),
        ..call.clone()
    })
}

impl Tool for ApplyPatchTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call_info(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> ToolCallInfo {
        // A patch that cannot be parsed accesses nothing.
        let patch = ParsedPatch::parse(text_argument(arguments, "input")).ok();
        let paths = patch.as_ref().map(ParsedPatch::paths).unwrap_or_default();
        let resolved = paths.iter().map(|path| workspace.resolve_path(path).display().to_string());
        let location = |path: &&str| FileLocation {
            path: workspace.to_absolute(path).display().to_string(),
            line: None,
        };
        ToolCallInfo {
            title: patch
                .as_ref()
                .map_or_else(|| UNKNOWN_TITLE.to_owned(), |patch| patch_title(patch, workspace)),
            kind: ToolKind::Edit,
            locations: paths.iter().map(location).collect(),
            access: match &patch {
                Some(_) => ToolAccess::Writes(resolved.collect()),
                None => ToolAccess::Nothing,
            },
        }
    }

    fn preview<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> PreviewFuture<'a> {
        into_preview_future(async move {
            let ApplyPatchArgs { input } = parse_arguments(arguments)?;
            let planned = plan_changes(&cx, &input, ReadPurpose::Preview).await?;
            let texts = planned.files.iter().map(|file| file.new.clone()).collect();
            Ok(client_content(&cx, &planned.files, texts))
        })
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        into_tool_future(async move {
            let ApplyPatchArgs { input } = parse_arguments(arguments)?;
            let planned = plan_changes(&cx, &input, ReadPurpose::Modify).await?;
            let (texts, notes) = apply_changes(&cx, &planned).await?;
            let text = render_report(&cx, &planned.files) + &notes;
            Ok(ToolResult {
                status: ToolCallStatus::Completed,
                for_model: vec![ContentPart::Text(text)],
                for_client: client_content(&cx, &planned.files, texts),
                plan: None,
            })
        })
    }
}

fn patch_title(patch: &ParsedPatch, workspace: &Workspace) -> String {
    match &patch.sections[..] {
        [PatchSection::Add { path, .. }] => path_title("Create", path, workspace),
        [PatchSection::Delete { path }] => path_title("Delete", path, workspace),
        [PatchSection::Update { path, .. }] => path_title("Edit", path, workspace),
        sections => format!("Edit {} files", sections.len()),
    }
}

fn patch_error(reason: &dyn std::fmt::Display) -> ToolError {
    ToolError(format!("the patch was not applied, no file was changed: {reason}"))
}

/// Computes a patch without writing anything.
async fn plan_changes(cx: &ToolCx<'_>, input: &str, purpose: ReadPurpose) -> Result<PlannedPatch, ToolError> {
    if input.contains('\0') {
        return Err(patch_error(&"it contains a zero byte, which no text file has"));
    }
    let patch = ParsedPatch::parse(input).map_err(|error| patch_error(&error))?;
    // A file has one name, whatever spellings the patch uses.
    let mut names: HashMap<PathBuf, String> = HashMap::new();
    let patch = patch.with_paths(|path| {
        names.entry(cx.workspace.resolve_path(path)).or_insert_with(|| path.to_owned()).clone()
    });
    let (mut contents, mut encodings) = (BTreeMap::new(), BTreeMap::new());
    for path in patch.paths() {
        if let Some(TextFile { text, encoding }) = open_text(cx, path, purpose).await? {
            contents.insert(path.to_owned(), text);
            encodings.insert(path.to_owned(), encoding);
        }
    }
    let files =
        run_blocking(move || plan_patch(&patch, &contents).map_err(|refusal| patch_error(&refusal))).await?;
    let modes = inspect_removed_files(cx, &files).await?;
    Ok(PlannedPatch { files, encodings, modes })
}

/// Reads a file of the patch; `None` if there is none. It need not have been read before, because the lines of a hunk show
/// what the model knows, but if it was, it must be the same.
async fn open_text(
    cx: &ToolCx<'_>,
    file_path: &str,
    purpose: ReadPurpose,
) -> Result<Option<TextFile>, ToolError> {
    let path = cx.approved_path(file_path)?;
    let display_path = cx.workspace.display_path(file_path);
    let opened = match editor_buffers::open_file(cx, file_path, purpose).await {
        Ok(opened) => opened,
        Err(OpenFileError::Unreadable(ReadError::Missing)) => return Ok(None),
        Err(OpenFileError::Unreadable(error)) => {
            return Err(patch_error(&read::read_error(&path, &display_path, &error)));
        }
        Err(OpenFileError::Failed(error)) => return Err(patch_error(&error)),
    };
    let refuse = |reason: &dyn std::fmt::Display| patch_error(&format_args!("{display_path}: {reason}"));
    let file = text_file::decode_file(opened, &path).await.map_err(|reason| refuse(&reason))?;
    text_file::check_known_version(cx, &path, &file.text).map_err(|reason| refuse(&reason))?;
    Ok(Some(file))
}

/// Rejects the removal of a link, whose target would be removed, and returns the permission bits of the files.
async fn inspect_removed_files(
    cx: &ToolCx<'_>,
    files: &[PlannedFile],
) -> Result<BTreeMap<String, u32>, ToolError> {
    let removed = files.iter().filter(|file| file.new.is_none());
    let removed: Vec<(String, PathBuf)> =
        removed.map(|file| (file.path.clone(), cx.workspace.to_absolute(&file.path))).collect();
    run_blocking(move || {
        let mut modes = BTreeMap::new();
        for (path, absolute) in removed {
            let metadata = fs::symlink_metadata(&absolute).map_err(|error| patch_error(&error))?;
            if metadata.is_symlink() {
                let reason = format!("{path} is a link; remove or rename it with `terminal`");
                return Err(patch_error(&reason));
            }
            if let Some(mode) = crow_files::permission_bits(&metadata) {
                modes.insert(path, mode);
            }
        }
        Ok(modes)
    })
    .await
}

/// Writes the files of a patch and returns their texts with notes for the model. If one fails, the others are restored.
async fn apply_changes(
    cx: &ToolCx<'_>,
    planned: &PlannedPatch,
) -> Result<(Vec<Option<String>>, String), ToolError> {
    let mut done: Vec<DoneChange<'_>> = Vec::new();
    let mut notes = String::new();
    // A file is removed when all others are written, so that nothing is lost if one fails.
    let (written, removed): (Vec<_>, Vec<_>) = planned.files.iter().partition(|file| file.new.is_some());
    for file in written.into_iter().chain(removed) {
        match apply_change(cx, planned, file).await {
            Ok(WrittenFile { text, note }) => {
                if !note.is_empty() {
                    notes.push_str(&format!("\n{}:{note}", cx.workspace.display_path(&file.path)));
                }
                done.push(DoneChange { file, text: file.new.as_ref().map(|_| text) });
            }
            Err(ToolError(reason)) => {
                let unrestored = restore_files(cx, planned, &done).await;
                return Err(match unrestored.is_empty() {
                    true => patch_error(&reason),
                    false => ToolError(format!(
                        "the patch was applied only in part: {reason}; these files are changed and could not be \
                         restored: {}",
                        unrestored.join(", ")
                    )),
                });
            }
        }
    }
    let texts = planned.files.iter().map(|file| {
        let change = done.iter().find(|change| change.file.path == file.path);
        change.and_then(|change| change.text.clone())
    });
    Ok((texts.collect(), notes))
}

async fn apply_change(
    cx: &ToolCx<'_>,
    planned: &PlannedPatch,
    file: &PlannedFile,
) -> Result<WrittenFile, ToolError> {
    let encoding = planned.encodings.get(&file.path).copied();
    let moved_encoding =
        file.source.as_ref().and_then(|source| planned.encodings.get(source).copied()).flatten();
    let change = FileWrite {
        verb: "patch",
        file_path: &file.path,
        prior: match (&file.old, encoding.flatten()) {
            (None, _) => PriorContent::Missing,
            (Some(old), Some(_)) => PriorContent::Disk(old),
            (Some(old), None) => PriorContent::Buffer(old),
        },
        text: file.new.clone().unwrap_or_default(),
        is_whole: false,
        encoding: encoding.flatten().or(moved_encoding).unwrap_or(TextEncoding::Utf8),
        mode: file.source.as_ref().and_then(|source| created_mode(cx, planned, source, &file.path)),
    };
    match file.new {
        Some(_) => file_write::apply_write(cx, change).await,
        None => {
            file_write::remove_file(cx, change).await?;
            Ok(WrittenFile { text: String::new(), note: String::new() })
        }
    }
}

/// Returns the permission bits of a removed file for a file that is created from it. A client, which cannot set them,
/// only creates files with the usual ones.
fn created_mode(cx: &ToolCx<'_>, planned: &PlannedPatch, removed: &str, created: &str) -> Option<u32> {
    let is_disk = editor_buffers::write_target(cx, created) == WriteTarget::Disk;
    planned.modes.get(removed).copied().filter(|mode| is_disk || !NEW_FILE_MODES.contains(mode))
}

/// Restores the files that were written, the last one first; returns those that could not be restored.
async fn restore_files(cx: &ToolCx<'_>, planned: &PlannedPatch, done: &[DoneChange<'_>]) -> Vec<String> {
    let mut unrestored = Vec::new();
    for DoneChange { file, text } in done.iter().rev() {
        let change = FileWrite {
            verb: "restore",
            file_path: &file.path,
            prior: text.as_deref().map_or(PriorContent::Missing, PriorContent::Disk),
            text: file.old.clone().unwrap_or_default(),
            is_whole: false,
            encoding: planned.encodings.get(&file.path).copied().flatten().unwrap_or(TextEncoding::Utf8),
            mode: created_mode(cx, planned, &file.path, &file.path),
        };
        let restored = match file.old {
            Some(_) => file_write::apply_write(cx, change).await.map(drop),
            None => file_write::remove_file(cx, change).await,
        };
        if let Err(ToolError(reason)) = restored {
            tracing::warn!(%reason, "a file could not be restored after a failed patch");
            unrestored.push(cx.workspace.display_path(&file.path));
        }
    }
    unrestored
}

/// Renders the result in the words that OpenAI's models know.
fn render_report(cx: &ToolCx<'_>, files: &[PlannedFile]) -> String {
    let mut text = "Success. Updated the following files:".to_owned();
    for file in files {
        let kind = match (&file.old, &file.new) {
            (None, _) => 'A',
            (Some(_), Some(_)) => 'M',
            (Some(_), None) => 'D',
        };
        text.push_str(&format!("\n{kind} {}", cx.workspace.display_path(&file.path)));
        if file.matcher != EditMatcher::Exact {
            text.push_str(&format!(" (match: {})", file.matcher));
        }
    }
    text
}

/// Returns the diffs of the files, as far as a client can render them, and notes where the match was not exact.
fn client_content(
    cx: &ToolCx<'_>,
    files: &[PlannedFile],
    texts: Vec<Option<String>>,
) -> Vec<ToolCallContent> {
    let mut content = Vec::new();
    let mut n_bytes = 0;
    for (file, new) in files.iter().zip(texts) {
        let display_path = cx.workspace.display_path(&file.path);
        if file.matcher != EditMatcher::Exact {
            content.push(ToolCallContent::Text(format!(
                "The text to replace in {display_path} was found {}.",
                file.matcher
            )));
        }
        n_bytes += file.old.as_ref().map_or(0, String::len) + new.as_ref().map_or(0, String::len);
        let diff = FileDiff { old: file.old.clone(), new: new.unwrap_or_default() };
        let path: &Path = &cx.workspace.to_absolute(&file.path);
        let diff = if n_bytes <= 2 * DIFF_BYTES_MAX { diff_content(path, diff) } else { Vec::new() };
        match diff.is_empty() {
            true => content.push(ToolCallContent::Text(format!("{display_path} is too large to show."))),
            false => content.extend(diff),
        }
    }
    content
}
