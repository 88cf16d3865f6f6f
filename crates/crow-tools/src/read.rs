//! `read`: a file as numbered lines, or an image.

use std::{io::Read as _, path::Path};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use crow_core::text_diff::TextDiff;
use crow_core::{
    ContentPart, FileLocation, PageRange, ToolAccess, ToolCallContent, ToolCallInfo, ToolCallStatus,
    ToolKind, ToolResult, ToolSpec, check_image, escape_hidden, image_type,
};
use crow_files::{ReadError, nofollow::DirHandle, resolve_links};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    Tool, ToolCx, ToolFuture, Workspace,
    editor_buffers::{self, FILE_BYTES_MAX, OpenFileError, OpenedFile, ReadPurpose},
    paging::TextPage,
    text_encoding::{DecodedText, decode_text},
    tool::{into_tool_future, parse_arguments, path_title, text_argument},
    tool_error::ToolError,
    workspace::ContentStamp,
};

/// Names of one directory that are compared for similarity.
const LISTED_NAMES_MAX: usize = 10_000;

/// Similar names that are suggested.
const SIMILAR_NAMES_MAX: usize = 3;

/// Minimum similarity of a name, from 0 to 1; lower values give noise.
const SIMILARITY_MIN: f32 = 0.6;

/// Most files have fewer lines.
const LIMIT_DEFAULT: usize = 2000;

/// Longer lines are generated, and not worth their tokens.
pub(crate) const LINE_CHARS_MAX: usize = 2000;

/// About 25,000 tokens: one read must not fill a model's context window.
const TEXT_BYTES_MAX: usize = 100_000;

/// Providers accept images of up to 5 MB in base64, which is a third longer than the bytes.
pub const IMAGE_BYTES_MAX: usize = 3_700_000;

/// The note below a text in an unknown encoding.
pub(crate) const LOSSY_NOTE: &str = "(not valid in its encoding: undecodable bytes are shown as \u{fffd}, and `edit` cannot change \
                     this file)\n";

const READ_FIRST: &str = "it was not read in this session; read it first";

/// Lines and bytes of a file that the refusal of a change shows: most source files, and a small part of a small context
/// window.
const REFUSAL_LINES_MAX: usize = 200;
const REFUSAL_BYTES_MAX: usize = 8 * 1024;

/// Enough bytes to detect an image's type.
const IMAGE_SIGNATURE_BYTES: usize = 16;

pub(crate) struct ReadTool {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct ReadArgs {
    file_path: String,
    #[serde(default = "first_line")]
    offset: usize,
    #[serde(default = "limit_default")]
    limit: usize,
}

fn first_line() -> usize {
    1
}

fn limit_default() -> usize {
    LIMIT_DEFAULT
}

impl ReadArgs {
    fn page_range(&self) -> PageRange {
        PageRange {
            first_line: self.offset,
            lines_max: self.limit,
            bytes_max: TEXT_BYTES_MAX,
            chars_max: LINE_CHARS_MAX,
        }
    }
}

enum ReadContent {
    Image(ToolResult),
    Text {
        text: String,
        /// `None` for a file that is too large to be edited.
        stamp: Option<ContentStamp>,
    },
}

impl ReadTool {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "read".into(),
            description: "Reads a file, or a part with `offset` and `limit`. Each line begins with its number, which is not part of \
                          the file: leave it out of `old_string`. Images (PNG, JPEG, GIF, WebP) are shown as images. Use it \
                          before `edit`, and rather than `cat` in `terminal`; `grep` finds the place in a long file."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "file_path": {"type": "string", "description": "The file, absolute or relative to the working folder"},
                    "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "First line to show"},
                    "limit": {"type": "integer", "minimum": 1, "default": LIMIT_DEFAULT, "description": "Most lines to show"}
                },
                "required": ["file_path"]
            }),
        };
        Self { spec }
    }
}

impl Tool for ReadTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call_info(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> ToolCallInfo {
        let path = text_argument(arguments, "file_path");
        let line = arguments.get("offset").and_then(Value::as_u64).filter(|&offset| offset > 1);
        ToolCallInfo {
            title: path_title("Read", path, workspace),
            kind: ToolKind::Read,
            locations: vec![FileLocation {
                path: workspace.to_absolute(path).display().to_string(),
                line: line.and_then(|line| u32::try_from(line).ok()),
            }],
            access: ToolAccess::Reads(vec![workspace.resolve_path(path).display().to_string()]),
        }
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        into_tool_future(async move {
            let args: ReadArgs = parse_arguments(arguments)?;
            match read_content(&cx, &args.file_path, args.page_range()).await? {
                ReadContent::Image(result) => Ok(result),
                ReadContent::Text { text, stamp } => {
                    if let Some(stamp) = stamp {
                        cx.workspace.record_seen(cx.approved_path(&args.file_path)?, stamp);
                    }
                    Ok(ToolResult::success(text))
                }
            }
        })
    }
}

/// Returns why a file that the model has not read is not changed: its first lines, with which it counts as read, and what
/// to do with them, if it may be read without a question.
pub(crate) async fn unread_refusal(
    cx: &ToolCx<'_>,
    file_path: &str,
    hint: &str,
) -> Result<String, ToolError> {
    if !cx.may_read_written {
        return Ok(READ_FIRST.to_owned());
    }
    let range = PageRange {
        first_line: first_line(),
        lines_max: REFUSAL_LINES_MAX,
        bytes_max: REFUSAL_BYTES_MAX,
        chars_max: LINE_CHARS_MAX,
    };
    match read_content(cx, file_path, range).await? {
        ReadContent::Text { text, stamp: Some(stamp) } => {
            cx.workspace.record_seen(cx.approved_path(file_path)?, stamp);
            let text = text.trim_end_matches('\n');
            Ok(format!(
                "it was not read in this session; nothing was changed, and these are its lines:\n{text}\n{hint}"
            ))
        }
        ReadContent::Text { stamp: None, .. } | ReadContent::Image(_) => Ok(READ_FIRST.to_owned()),
    }
}

/// Reads a page of a file, or an image.
async fn read_content(cx: &ToolCx<'_>, file_path: &str, range: PageRange) -> Result<ReadContent, ToolError> {
    let path = cx.approved_path(file_path)?;
    let display_path = cx.workspace.display_path(file_path);
    match editor_buffers::open_file(cx, file_path, ReadPurpose::Show).await {
        Ok(opened) => cx.read_blocking(move || render_content(opened, &display_path, range)).await,
        Err(OpenFileError::Unreadable(ReadError::TooLarge { .. })) => {
            let cancel = cx.cancel.clone();
            let text = cx.read_blocking(move || read_file_page(&path, &display_path, range, &cancel)).await?;
            Ok(ReadContent::Text { text, stamp: None })
        }
        Err(OpenFileError::Unreadable(error)) => Err(read_error(&path, &display_path, &error)),
        Err(OpenFileError::Failed(error)) => Err(error),
    }
}

fn render_content(
    opened: OpenedFile,
    display_path: &str,
    range: PageRange,
) -> Result<ReadContent, ToolError> {
    let bytes = match opened {
        OpenedFile::Disk(bytes) => bytes,
        OpenedFile::Buffer(text) => {
            return Ok(ReadContent::Text {
                stamp: Some(ContentStamp::from_text(&text)),
                text: render_text(&text, display_path, range)?,
            });
        }
    };
    if image_type(&bytes).is_some() {
        return image_result(&bytes, display_path).map(ReadContent::Image);
    }
    match decode_text(bytes) {
        DecodedText::Text(text, _) => Ok(ReadContent::Text {
            stamp: Some(ContentStamp::from_text(&text)),
            text: render_text(&text, display_path, range)?,
        }),
        DecodedText::Lossy(text) => {
            let page = render_text(&text, display_path, range)? + LOSSY_NOTE;
            Ok(ReadContent::Text { stamp: Some(ContentStamp::from_text(&text)), text: page })
        }
        DecodedText::Binary => Err(ToolError(format!("could not read {display_path}: it is a binary file"))),
    }
}

/// Returns why a file could not be read, with a hint.
pub(crate) fn read_error(path: &Path, display_path: &str, error: &ReadError) -> ToolError {
    let similar = match error {
        ReadError::Missing => similar_names(path),
        ReadError::Directory | ReadError::NotAFile | ReadError::TooLarge { .. } | ReadError::System(_) => {
            Vec::new()
        }
    };
    let hint = match error {
        ReadError::Missing if similar.is_empty() => String::new(),
        ReadError::Missing => format!("; similar names in that directory: {}", similar.join(", ")),
        ReadError::Directory => "; list it with `glob`".into(),
        ReadError::TooLarge { .. } => "; search it with `grep` or show parts of it with `terminal`".into(),
        ReadError::NotAFile | ReadError::System(_) => String::new(),
    };
    ToolError(format!("could not read {display_path}: {error}{hint}"))
}

/// Names in the same directory that are similar to the missing one.
fn similar_names(path: &Path) -> Vec<String> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let names = DirHandle::open(dir).and_then(|dir| dir.entry_names(LISTED_NAMES_MAX)).unwrap_or_default();
    let missing = name.to_string_lossy();
    let similarity = |name: &str| TextDiff::compare_chars(&missing, name).similarity();
    let names = names.iter().map(|name| (similarity(name), name));
    let mut similar: Vec<_> = names.filter(|(similarity, _)| *similarity >= SIMILARITY_MIN).collect();
    similar.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    similar.into_iter().take(SIMILAR_NAMES_MAX).map(|(_, name)| escape_hidden(name)).collect()
}

/// Renders one page of a text, with a note on how to continue.
pub(crate) fn render_text(text: &str, display_path: &str, range: PageRange) -> Result<String, ToolError> {
    render_page(TextPage::from_text(text, range), display_path, range)
}

fn render_page(page: TextPage, display_path: &str, range: PageRange) -> Result<String, ToolError> {
    if page.is_empty() {
        return Ok(format!("({display_path} is empty)\n"));
    }
    match page.total_if_past_end() {
        Some(n_lines) => {
            let first = range.first_line.max(1);
            Err(ToolError(format!("could not read {display_path} from line {first}: it has {n_lines} lines")))
        }
        None => Ok(page.into_text()),
    }
}

/// Reads a page of a file that is too large to be read as a whole.
pub(crate) fn read_file_page(
    path: &Path,
    display_path: &str,
    range: PageRange,
    cancel: &CancellationToken,
) -> Result<String, ToolError> {
    let refuse =
        |reason: &dyn std::fmt::Display| ToolError(format!("could not read {display_path}: {reason}"));
    let mut file = crow_files::open_file(path).map_err(|error| read_error(path, display_path, &error))?;
    let mut head = [0; IMAGE_SIGNATURE_BYTES];
    let n_read = file.read(&mut head).map_err(|error| refuse(&error))?;
    if image_type(&head[..n_read]).is_some() {
        let message =
            format!("it is an image of more than {IMAGE_BYTES_MAX} bytes; make a smaller copy first");
        return Err(refuse(&message));
    }
    // Bytes that are appended meanwhile are not read.
    let n_bytes = file.metadata().map_err(|error| refuse(&error))?.len().max(FILE_BYTES_MAX);
    let source = head[..n_read].chain(file.take(n_bytes - n_read as u64));
    let page = TextPage::read(source, range, cancel).map_err(|error| refuse(&error))?;
    let note = if page.is_lossy() { LOSSY_NOTE } else { "" };
    Ok(render_page(page, display_path, range)? + note)
}

/// Reads an image that the user named; `Err` is the reason why it cannot be used.
pub fn read_image(path: &Path) -> Result<ContentPart, String> {
    let bytes = crow_files::read_file(&resolve_links(path), IMAGE_BYTES_MAX as u64)
        .map_err(|error| error.to_string())?;
    image_part(&bytes)
}

/// Converts a file's bytes to an image; `Err` is the reason why a model cannot read it.
pub fn image_part(bytes: &[u8]) -> Result<ContentPart, String> {
    if bytes.len() > IMAGE_BYTES_MAX {
        return Err(format!("the image is too large, the limit is {IMAGE_BYTES_MAX} bytes"));
    }
    let mime = check_image(bytes).map_err(|problem| format!("the image {problem}"))?;
    Ok(ContentPart::Image { mime: mime.to_owned(), data: BASE64_STANDARD.encode(bytes) })
}

pub(crate) fn image_result(bytes: &[u8], display_path: &str) -> Result<ToolResult, ToolError> {
    if bytes.len() > IMAGE_BYTES_MAX {
        let n_bytes = bytes.len();
        return Err(ToolError(format!(
            "could not show {display_path}: the image is too large ({n_bytes} bytes, the limit is {IMAGE_BYTES_MAX}); make \
             a smaller copy first"
        )));
    }
    let mime = check_image(bytes)
        .map_err(|problem| ToolError(format!("could not show {display_path}: the image {problem}")))?;
    let (mime, data) = (mime.to_owned(), BASE64_STANDARD.encode(bytes));
    Ok(ToolResult {
        status: ToolCallStatus::Completed,
        for_model: vec![
            ContentPart::Text(format!("{display_path} ({mime}, {} bytes):", bytes.len())),
            ContentPart::Image { mime: mime.clone(), data: data.clone() },
        ],
        for_client: vec![ToolCallContent::Image { mime, data }],
        plan: None,
    })
}
