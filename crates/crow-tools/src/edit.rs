//! `edit`: replaces texts in a file. `crow_core::edit` decides where they match.

use crow_core::{
    ToolCallContent, ToolCallInfo, ToolResult, ToolSpec,
    edit::{AppliedEdit, EditMatcher, EditOccurrences, RefusedChange, TextChange, apply_changes},
};
use crow_files::ReadError;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    PreviewFuture, Tool, ToolCx, ToolFuture, Workspace,
    editor_buffers::{self, OpenFileError, ReadPurpose},
    file_write::{self, FileWrite, PriorContent, WrittenFile},
    read,
    text_encoding::{TextEncoding, number_lines, truncate_line},
    text_file::{self, TextFile},
    tool::{into_preview_future, into_tool_future, parse_arguments, text_argument},
    tool_error::{ToolError, run_blocking},
    write::{FileDiff, change_call_info, change_result, diff_content},
};

/// Lines shown before and after a change: enough to verify the place.
const CONTEXT_LINES: usize = 3;

/// The model knows what it wrote; the beginning of a long change is enough.
const EXCERPT_LINES_MAX: usize = 20;

/// Enough to recognize a line.
const LINE_CHARS_MAX: usize = 300;

/// Follows the lines of a file in the refusal to change it.
const COPY_HINT: &str = "(make the edit with an old text that is copied from these lines)";

/// More changes of one file than this are a new file.
const CHANGES_MAX: usize = 100;

pub(crate) struct EditTool {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct EditArgs {
    file_path: String,
    old_string: Option<String>,
    new_string: Option<String>,
    #[serde(default)]
    replace_all: bool,
    #[serde(default)]
    edits: Vec<TextEdit>,
}

/// One of several edits.
#[derive(Deserialize)]
struct TextEdit {
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

/// Changes of one file.
pub(crate) struct FileEdit {
    pub(crate) file_path: String,
    pub(crate) changes: Vec<TextChange>,
}

/// Changes that are computed and not yet written.
struct PlannedEdit {
    /// The file's content; `None` if the file does not exist.
    old: Option<String>,
    edited: AppliedEdit,
    /// The encoding of the file on disk; `None` if the client writes it.
    encoding: Option<TextEncoding>,
}

impl EditArgs {
    fn into_file_edit(self) -> Result<FileEdit, ToolError> {
        let single = match (self.old_string, self.new_string) {
            (Some(old_string), Some(new_string)) => {
                Some(TextEdit { old_string, new_string, replace_all: self.replace_all })
            }
            (None, None) => None,
            (Some(_), None) => return Err(incomplete_arguments("`new_string` is missing")),
            (None, Some(_)) => return Err(incomplete_arguments("`old_string` is missing")),
        };
        let changes: Vec<TextChange> =
            single.into_iter().chain(self.edits).map(TextEdit::into_change).collect();
        match changes.len() {
            0 => Err(incomplete_arguments("`old_string` and `new_string` are missing")),
            1..=CHANGES_MAX => Ok(FileEdit { file_path: self.file_path, changes }),
            n => {
                let reason =
                    format!("`edit` was not run: {n} edits are more than {CHANGES_MAX}; write the file");
                Err(ToolError(reason))
            }
        }
    }
}

fn incomplete_arguments(problem: &str) -> ToolError {
    ToolError(format!(
        "`edit` was not run: {problem}; it takes `file_path`, `old_string` and `new_string`, or a list of `edits`"
    ))
}

impl TextEdit {
    fn into_change(self) -> TextChange {
        let Self { old_string: old, new_string: new, replace_all } = self;
        let occurrences = if replace_all { EditOccurrences::All } else { EditOccurrences::One };
        TextChange::Replace { old, new, occurrences }
    }
}

impl FileEdit {
    /// Whether the edit gives the whole text of a file that is missing or empty.
    fn fills_file(&self) -> bool {
        match &self.changes[..] {
            [TextChange::Replace { old, .. }] => old.trim_start_matches('\u{feff}').is_empty(),
            _ => false,
        }
    }

    /// Whether the edit creates a missing file.
    fn creates_file(&self) -> bool {
        self.fills_file() || matches!(self.changes[..], [TextChange::Append { .. }])
    }

    /// Whether the rest of the file does not matter, so that the model need not have read it: where the changed text is, it
    /// is once, so the model knows it from elsewhere.
    fn is_local(&self) -> bool {
        self.changes.iter().all(TextChange::is_local)
    }
}

impl EditTool {
    pub(crate) fn new() -> Self {
        let edit = json!({
            "type": "object",
            "properties": {
                "old_string": {"type": "string"},
                "new_string": {"type": "string"},
                "replace_all": {"type": "boolean"}
            },
            "required": ["old_string", "new_string"]
        });
        let spec = ToolSpec {
            name: "edit".into(),
            description: "Replaces a text in a file that you have read; prefer it to `write` for a part of a file. `old_string` \
                          must be in the file once, or give `replace_all`: copy it with its indentation and without the \
                          line numbers. Example: of two equal lines `x = 1`, take the different line above along. An empty \
                          `old_string` makes a file that is missing or empty. For several places of one file give `edits` \
                          instead, which are made in order, all or none."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "file_path": {"type": "string", "description": "The file, absolute or relative to the working folder"},
                    "old_string": {"type": "string", "description": "The text to replace"},
                    "new_string": {"type": "string", "description": "The text to put there"},
                    "replace_all": {"type": "boolean", "default": false, "description": "Replaces it wherever it is"},
                    "edits": {"type": "array", "items": edit, "description": "Several replacements"}
                },
                "required": ["file_path"]
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
            edit_file(&cx, args.into_file_edit()?).await
        })
    }

    fn preview<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> PreviewFuture<'a> {
        into_preview_future(async move {
            let args: EditArgs = parse_arguments(arguments)?;
            preview_edit(&cx, args.into_file_edit()?).await
        })
    }
}

/// Makes the changes of a file and reports them.
pub(crate) async fn edit_file(cx: &ToolCx<'_>, edit: FileEdit) -> Result<ToolResult, ToolError> {
    let display_path = cx.workspace.display_path(&edit.file_path);
    let (PlannedEdit { old, edited, encoding }, edit) = plan_edit(cx, edit).await?;
    let mut text = render_report(&display_path, &edited, &edit.changes);
    let note = match_note(&edited);
    let change = FileWrite {
        verb: "edit",
        file_path: &edit.file_path,
        prior: match &old {
            None => PriorContent::Missing,
            Some(old) if encoding.is_some() => PriorContent::Disk(old),
            Some(old) => PriorContent::Buffer(old),
        },
        text: edited.text,
        is_whole: edit.fills_file(),
        encoding: encoding.unwrap_or(TextEncoding::Utf8),
        mode: None,
    };
    let WrittenFile { text: new, note: write_note } = file_write::apply_write(cx, change).await?;
    text.push_str(&write_note);
    let mut result =
        change_result(text, &cx.workspace.to_absolute(&edit.file_path), Some(FileDiff { old, new }));
    result.for_client.splice(0..0, note);
    Ok(result)
}

/// Returns what the changes of a file would change.
pub(crate) async fn preview_edit(cx: &ToolCx<'_>, edit: FileEdit) -> Result<Vec<ToolCallContent>, ToolError> {
    let (PlannedEdit { old, edited, .. }, edit) = plan_edit(cx, edit).await?;
    let mut content: Vec<ToolCallContent> = match_note(&edited).into_iter().collect();
    let diff = FileDiff { old, new: edited.text };
    content.extend(diff_content(&cx.workspace.to_absolute(&edit.file_path), diff));
    Ok(content)
}

/// Computes an edit without writing it.
async fn plan_edit(cx: &ToolCx<'_>, edit: FileEdit) -> Result<(PlannedEdit, FileEdit), ToolError> {
    let path = cx.approved_path(&edit.file_path)?;
    let display_path = cx.workspace.display_path(&edit.file_path);
    let opened = match editor_buffers::open_file(cx, &edit.file_path, ReadPurpose::Modify).await {
        Ok(opened) => opened,
        Err(OpenFileError::Unreadable(ReadError::Missing)) if edit.creates_file() => {
            check_text(&display_path, &edit)?;
            let edited = compute_edit("", &display_path, &edit.changes)?;
            return Ok((PlannedEdit { old: None, edited, encoding: Some(TextEncoding::Utf8) }, edit));
        }
        Err(OpenFileError::Unreadable(error)) => return Err(read::read_error(&path, &display_path, &error)),
        Err(OpenFileError::Failed(error)) => return Err(error),
    };
    let TextFile { text: old, encoding } =
        text_file::decode_file(opened, &path).await.map_err(|reason| edit_error(&display_path, &reason))?;
    // An empty file has no content that the model could have missed, and one with content has its own refusal.
    if !edit.fills_file() {
        text_file::check_known_version(cx, &path, &old)
            .map_err(|reason| edit_error(&display_path, &reason))?;
    }
    check_text(&display_path, &edit)?;
    let (edited, old, edit) = {
        let display_path = display_path.clone();
        run_blocking(move || Ok((compute_edit(&old, &display_path, &edit.changes), old, edit))).await?
    };
    // The report shows the lines around the change.
    let may_change = cx.workspace.seen_stamp(&path).is_some()
        || edit.fills_file()
        || (cx.may_read_written && edited.is_ok() && edit.is_local());
    if !may_change {
        let reason = read::unread_refusal(cx, &edit.file_path, COPY_HINT).await?;
        return Err(edit_error(&display_path, &reason));
    }
    Ok((PlannedEdit { old: Some(old), edited: edited?, encoding }, edit))
}

fn edit_error(display_path: &str, reason: &dyn std::fmt::Display) -> ToolError {
    ToolError(format!("could not edit {display_path}: {reason}"))
}

fn compute_edit(old: &str, display_path: &str, changes: &[TextChange]) -> Result<AppliedEdit, ToolError> {
    apply_changes(old, changes).map_err(|RefusedChange { index, refusal }| match changes.len() {
        1 => edit_error(display_path, &refusal),
        n => {
            let number = index + 1;
            edit_error(display_path, &format_args!("edit {number} of {n} (none was made): {refusal}"))
        }
    })
}

fn check_text(display_path: &str, edit: &FileEdit) -> Result<(), ToolError> {
    if edit.changes.iter().any(|change| change.new_text().contains('\0')) {
        return Err(edit_error(display_path, &"the new text contains a zero byte, which no text file has"));
    }
    Ok(())
}

/// Returns a note for the user if the match was not exact.
fn match_note(edited: &AppliedEdit) -> Option<ToolCallContent> {
    let is_exact = edited.matcher == EditMatcher::Exact;
    (!is_exact).then(|| ToolCallContent::Text(format!("The text to replace was found {}.", edited.matcher)))
}

fn render_report(display_path: &str, edited: &AppliedEdit, changes: &[TextChange]) -> String {
    let headline = match (changes, edited.n_replaced) {
        ([TextChange::Append { .. }], _) => format!("appended to {display_path}"),
        (_, 1) => format!("edited {display_path} in 1 place; match: {}", edited.matcher),
        (_, n) => format!("edited {display_path} in {n} places; match: {}", edited.matcher),
    };
    let line = usize::try_from(edited.line).unwrap_or(usize::MAX);
    let first = line.saturating_sub(CONTEXT_LINES).max(1);
    let n_new: usize = changes.iter().map(|change| change.new_text().lines().count()).sum();
    let n_lines = (line - first + n_new + CONTEXT_LINES).min(EXCERPT_LINES_MAX);
    let lines =
        edited.text.lines().skip(first - 1).take(n_lines).map(|line| truncate_line(line, LINE_CHARS_MAX));
    let lines: Vec<String> = lines.collect();
    let excerpt = number_lines(lines.iter().map(String::as_str), first);
    format!("{headline}\n{excerpt}")
}
