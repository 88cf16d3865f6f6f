//! `edit`: replaces a text in a file. `crow_core::edit` decides where it matches.

use std::path::Path;

use crow_core::{
    ToolCallContent, ToolCallInfo, ToolSpec,
    edit::{self, AppliedEdit, EditMatcher, EditOccurrences},
};
use crow_files::ReadError;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    PreviewFuture, Tool, ToolCx, ToolFuture, Workspace,
    editor_buffers::{self, FILE_BYTES_MAX, OpenFileError, OpenedFile, ReadPurpose},
    file_write::{self, CHANGED_OR_UNSAVED, CHANGED_SINCE_READ, FileWrite, PriorContent, WrittenFile},
    read,
    text_encoding::{DecodedText, TextEncoding, decode_text, number_lines, truncate_line},
    tool::{into_preview_future, into_tool_future, parse_arguments, text_argument},
    tool_error::{ToolError, run_blocking},
    workspace::ContentStamp,
    write::{FileDiff, change_call_info, change_result, diff_content},
};

const UNKNOWN_ENCODING: &str = "its encoding is unknown and would be lost";

/// Lines shown before and after a change: enough to verify the place.
const CONTEXT_LINES: usize = 3;

/// The model knows what it wrote; the beginning of a long change is enough.
const EXCERPT_LINES_MAX: usize = 20;

/// Enough to recognize a line.
const LINE_CHARS_MAX: usize = 300;

pub(crate) struct EditTool {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct EditArgs {
    file_path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

/// An edit that is computed and not yet written.
struct PlannedEdit {
    /// The file's content; `None` if the file does not exist.
    old: Option<String>,
    edited: AppliedEdit,
    /// The encoding of the file on disk; `None` if the client writes it.
    encoding: Option<TextEncoding>,
}

impl EditArgs {
    /// Whether the edit creates a file instead of changing one.
    fn creates_file(&self) -> bool {
        self.old_string.trim_start_matches('\u{feff}').is_empty()
    }
}

impl EditTool {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "edit".into(),
            description: "Replaces a text in a file that you have read; prefer it to `write` for a part of a file. `old_string` \
                          must be in the file once, or give `replace_all`: copy it with its indentation and without the \
                          line numbers. Example: of two equal lines `x = 1`, take the different line above along. An empty \
                          `old_string` makes a file that is missing or empty."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "file_path": {"type": "string", "description": "The file, absolute or relative to the working folder"},
                    "old_string": {"type": "string", "description": "The text to replace"},
                    "new_string": {"type": "string", "description": "The text to put there"},
                    "replace_all": {"type": "boolean", "default": false, "description": "Replaces it wherever it is"}
                },
                "required": ["file_path", "old_string", "new_string"]
            }),
        };
        Self { spec }
    }
}

impl Tool for EditTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call_info(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> ToolCallInfo {
        change_call_info(workspace, "Edit", text_argument(arguments, "file_path"))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        into_tool_future(async move {
            let args: EditArgs = parse_arguments(arguments)?;
            let display_path = cx.workspace.display_path(&args.file_path);
            let (PlannedEdit { old, edited, encoding }, args) = plan_edit(&cx, args).await?;
            let mut text = render_report(&display_path, &edited, &args.new_string);
            let note = match_note(&edited);
            let change = FileWrite {
                verb: "edit",
                file_path: &args.file_path,
                prior: match &old {
                    None => PriorContent::Missing,
                    Some(old) if encoding.is_some() => PriorContent::Disk(old),
                    Some(old) => PriorContent::Buffer(old),
                },
                text: edited.text,
                encoding: encoding.unwrap_or(TextEncoding::Utf8),
            };
            let WrittenFile { text: new, note: write_note } = file_write::apply_write(&cx, change).await?;
            text.push_str(&write_note);
            let mut result =
                change_result(text, &cx.workspace.to_absolute(&args.file_path), Some(FileDiff { old, new }));
            result.for_client.splice(0..0, note);
            Ok(result)
        })
    }

    fn preview<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> PreviewFuture<'a> {
        into_preview_future(async move {
            let (PlannedEdit { old, edited, .. }, args) = plan_edit(&cx, parse_arguments(arguments)?).await?;
            let mut content: Vec<ToolCallContent> = match_note(&edited).into_iter().collect();
            let diff = FileDiff { old, new: edited.text };
            content.extend(diff_content(&cx.workspace.to_absolute(&args.file_path), diff));
            Ok(content)
        })
    }
}

/// Computes an edit without writing it.
async fn plan_edit(cx: &ToolCx<'_>, args: EditArgs) -> Result<(PlannedEdit, EditArgs), ToolError> {
    let path = cx.approved_path(&args.file_path)?;
    let display_path = cx.workspace.display_path(&args.file_path);
    let known_stamp = cx.workspace.seen_stamp(&path);
    let opened = match editor_buffers::open_file(cx, &args.file_path, ReadPurpose::Modify).await {
        Ok(opened) => opened,
        Err(OpenFileError::Unreadable(ReadError::Missing)) if args.creates_file() => {
            let edited = edit::apply_edit("", "", &args.new_string, EditOccurrences::One);
            let edited = edited.map_err(|refusal| edit_error(&display_path, &refusal))?;
            check_text(&display_path, &args)?;
            return Ok((PlannedEdit { old: None, edited, encoding: Some(TextEncoding::Utf8) }, args));
        }
        Err(OpenFileError::Unreadable(error)) => return Err(read::read_error(&path, &display_path, &error)),
        Err(OpenFileError::Failed(error)) => return Err(error),
    };
    check_buffer(&opened, &path, &display_path).await?;
    let is_read_only_client = cx.client_capabilities().reads_files && !cx.client_capabilities().writes_files;
    let changed_message = if is_read_only_client { CHANGED_OR_UNSAVED } else { CHANGED_SINCE_READ };
    // An empty file has no content that the model could have missed.
    let known_stamp = known_stamp.or_else(|| args.creates_file().then(|| ContentStamp::from_text("")));
    let known_stamp = known_stamp
        .ok_or_else(|| edit_error(&display_path, &"it was not read in this session; read it first"))?;
    let known = KnownVersion { stamp: known_stamp, changed_message };
    run_blocking(move || compute_edit(opened, &display_path, &known, &args).map(|planned| (planned, args)))
        .await
}

/// Rejects an editor's buffer with replacement characters if the file's encoding is unknown: saving it would write them
/// over the original bytes.
async fn check_buffer(opened: &OpenedFile, path: &Path, display_path: &str) -> Result<(), ToolError> {
    match opened {
        OpenedFile::Buffer(text) if text.contains(char::REPLACEMENT_CHARACTER) => {
            let (path, display_path) = (path.to_owned(), display_path.to_owned());
            run_blocking(move || match crow_files::read_file(&path, FILE_BYTES_MAX).map(decode_text) {
                Ok(DecodedText::Lossy(_)) => Err(edit_error(&display_path, &UNKNOWN_ENCODING)),
                Ok(DecodedText::Text(..) | DecodedText::Binary) | Err(_) => Ok(()),
            })
            .await
        }
        OpenedFile::Buffer(_) | OpenedFile::Disk(_) => Ok(()),
    }
}

fn edit_error(display_path: &str, reason: &dyn std::fmt::Display) -> ToolError {
    ToolError(format!("could not edit {display_path}: {reason}"))
}

/// The version of a file that the model has read, and the message if the file is another one now.
struct KnownVersion {
    stamp: ContentStamp,
    changed_message: &'static str,
}

fn compute_edit(
    opened: OpenedFile,
    display_path: &str,
    known: &KnownVersion,
    args: &EditArgs,
) -> Result<PlannedEdit, ToolError> {
    let refuse = |reason: &dyn std::fmt::Display| edit_error(display_path, reason);
    let (old, encoding) = match opened {
        OpenedFile::Buffer(text) => (text, None),
        OpenedFile::Disk(bytes) => match decode_text(bytes) {
            DecodedText::Text(text, encoding) => (text, Some(encoding)),
            DecodedText::Lossy(_) => return Err(refuse(&UNKNOWN_ENCODING)),
            DecodedText::Binary => return Err(refuse(&"it is a binary file")),
        },
    };
    // `apply_edit` rejects a file that is not empty with its own message.
    if known.stamp != ContentStamp::from_text(&old) && !args.creates_file() {
        return Err(refuse(&known.changed_message));
    }
    check_text(display_path, args)?;
    let occurrences = if args.replace_all { EditOccurrences::All } else { EditOccurrences::One };
    let edited = edit::apply_edit(&old, &args.old_string, &args.new_string, occurrences);
    Ok(PlannedEdit { edited: edited.map_err(|refusal| refuse(&refusal))?, old: Some(old), encoding })
}

fn check_text(display_path: &str, args: &EditArgs) -> Result<(), ToolError> {
    if args.new_string.contains('\0') {
        return Err(edit_error(display_path, &"the new text contains a zero byte, which no text file has"));
    }
    Ok(())
}

/// Returns a note for the user if the match was not exact.
fn match_note(edited: &AppliedEdit) -> Option<ToolCallContent> {
    let is_exact = edited.matcher == EditMatcher::Exact;
    (!is_exact).then(|| ToolCallContent::Text(format!("The text to replace was found {}.", edited.matcher)))
}

fn render_report(display_path: &str, edited: &AppliedEdit, new_text: &str) -> String {
    let places = match edited.n_replaced {
        1 => "1 place".into(),
        n => format!("{n} places"),
    };
    let line = usize::try_from(edited.line).unwrap_or(usize::MAX);
    let first = line.saturating_sub(CONTEXT_LINES).max(1);
    let n_lines = (line - first + new_text.lines().count() + CONTEXT_LINES).min(EXCERPT_LINES_MAX);
    let lines =
        edited.text.lines().skip(first - 1).take(n_lines).map(|line| truncate_line(line, LINE_CHARS_MAX));
    let lines: Vec<String> = lines.collect();
    let excerpt = number_lines(lines.iter().map(String::as_str), first);
    format!("edited {display_path} in {places}; match: {}\n{excerpt}", edited.matcher)
}
