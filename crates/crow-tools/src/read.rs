//! `read`: a file as numbered lines, or an image as an image.

use std::{io::Read as _, path::Path};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use crow_core::{
    Content, Facets, Location, Outcome, PageRange, Part, Status, ToolKind, ToolSpec, Touch, check_image,
    image_type,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    Running, Tool, ToolCx, Workspace,
    buffers::{self, Opened, Purpose},
    files::{self, FILE_BYTES_MAX, ReadError},
    paging::Page,
    text::{Decoded, decode},
    tool::{Refusal, about, answer, parse, text_of},
    workspace::{Stamp, resolve},
};

/// As many lines as most files have.
const LIMIT_DEFAULT: usize = 2000;

/// Longer lines are generated ones, and say little for their tokens.
pub(crate) const LINE_CHARS_MAX: usize = 2000;

/// About 25,000 tokens: one read must not fill a model's window.
const TEXT_BYTES_MAX: usize = 100_000;

/// Providers take images of up to 5 MB in base64, which is a third longer than the bytes.
pub(crate) const IMAGE_BYTES_MAX: usize = 3_700_000;

/// What is said of text in an encoding that we do not know.
pub(crate) const LOSSY: &str = "(not valid in its encoding: what could not be read is shown as \u{fffd}, and `edit` will not take \
                     this file)\n";

/// As many bytes as tell what an image is.
const IMAGE_SIGNATURE_BYTES: usize = 16;

pub(crate) struct Read {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Wanted {
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

impl Wanted {
    fn range(&self) -> PageRange {
        PageRange {
            first: self.offset,
            lines_max: self.limit,
            bytes_max: TEXT_BYTES_MAX,
            chars_max: LINE_CHARS_MAX,
        }
    }
}

enum Found {
    Image(Outcome),
    Text {
        text: String,
        /// None of a file that is too large to be edited.
        stamp: Option<Stamp>,
    },
}

impl Read {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "read".into(),
            description:
                "Reads a file. Lines come with their numbers, which are not part of the file. Images \
                          (PNG, JPEG, GIF, WebP) are shown as images. Read a file before you edit it."
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

impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn facets(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> Facets {
        let path = text_of(arguments, "file_path");
        let line = arguments.get("offset").and_then(Value::as_u64).filter(|&offset| offset > 1);
        Facets {
            title: about("Read", path, workspace),
            kind: ToolKind::Read,
            locations: vec![Location {
                path: workspace.absolute(path).display().to_string(),
                line: line.and_then(|line| u32::try_from(line).ok()),
            }],
            touch: Touch::Reads(vec![workspace.resolve(path).display().to_string()]),
        }
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        answer(async move {
            let wanted: Wanted = parse(arguments)?;
            let path = cx.judged(&wanted.file_path)?;
            let shown = cx.workspace.shown(&wanted.file_path);
            let found = match buffers::open(&cx, &wanted.file_path, Purpose::Look).await? {
                Ok(opened) => cx.read_off_thread(move || find(opened, &shown, &wanted)).await?,
                Err(ReadError::TooLarge { .. }) => {
                    let (path, cut, range) = (path.clone(), cx.cut.clone(), wanted.range());
                    let text = cx.read_off_thread(move || page_of_file(&path, &shown, range, &cut)).await?;
                    Found::Text { text, stamp: None }
                }
                Err(error) => return Err(refuse(&path, &shown, &error)),
            };
            match found {
                Found::Image(outcome) => Ok(outcome),
                Found::Text { text, stamp } => {
                    if let Some(stamp) = stamp {
                        cx.workspace.remember(path, stamp);
                    }
                    Ok(Outcome::done(text))
                }
            }
        })
    }
}

fn find(opened: Opened, shown: &str, wanted: &Wanted) -> Result<Found, Refusal> {
    let bytes = match opened {
        Opened::Disk(bytes) => bytes,
        Opened::Buffer(text) => {
            return Ok(Found::Text {
                stamp: Some(Stamp::of(&text)),
                text: page(&text, shown, wanted.range())?,
            });
        }
    };
    if image_type(&bytes).is_some() {
        return image(&bytes, shown).map(Found::Image);
    }
    match decode(bytes) {
        Decoded::Text(text, _) => {
            Ok(Found::Text { stamp: Some(Stamp::of(&text)), text: page(&text, shown, wanted.range())? })
        }
        Decoded::Lossy(text) => {
            let page = page(&text, shown, wanted.range())? + LOSSY;
            Ok(Found::Text { stamp: Some(Stamp::of(&text)), text: page })
        }
        Decoded::Binary => Err(Refusal(format!("could not read {shown}: it is a binary file"))),
    }
}

/// Says why a file could not be read and what would help.
pub(crate) fn refuse(path: &Path, shown: &str, error: &ReadError) -> Refusal {
    let near = match error {
        ReadError::Missing => files::near_names(path),
        ReadError::Folder | ReadError::NotAFile | ReadError::TooLarge { .. } | ReadError::System(_) => {
            Vec::new()
        }
    };
    let hint = match error {
        ReadError::Missing if near.is_empty() => String::new(),
        ReadError::Missing => format!("; near names in that folder: {}", near.join(", ")),
        ReadError::Folder => "; list it with `glob`".into(),
        ReadError::TooLarge { .. } => "; search it with `grep` or show parts of it with `terminal`".into(),
        ReadError::NotAFile | ReadError::System(_) => String::new(),
    };
    Refusal(format!("could not read {shown}: {error}{hint}"))
}

/// Cuts one page out of a text and says how to go on.
pub(crate) fn page(text: &str, shown: &str, range: PageRange) -> Result<String, Refusal> {
    shown_page(Page::of(text, range), shown, range)
}

fn shown_page(page: Page, shown: &str, range: PageRange) -> Result<String, Refusal> {
    if page.is_of_nothing() {
        return Ok(format!("({shown} is empty)\n"));
    }
    match page.beyond() {
        Some(n_lines) => {
            let first = range.first.max(1);
            Err(Refusal(format!("could not read {shown} from line {first}: it has {n_lines} lines")))
        }
        None => Ok(page.into_text()),
    }
}

/// Reads a page of a file that is too large to be held whole.
pub(crate) fn page_of_file(
    path: &Path,
    shown: &str,
    range: PageRange,
    cut: &CancellationToken,
) -> Result<String, Refusal> {
    let refused = |why: &dyn std::fmt::Display| Refusal(format!("could not read {shown}: {why}"));
    let mut file = files::open(path).map_err(|error| refuse(path, shown, &error))?;
    let mut beginning = [0; IMAGE_SIGNATURE_BYTES];
    let n_read = file.read(&mut beginning).map_err(|error| refused(&error))?;
    if image_type(&beginning[..n_read]).is_some() {
        let what = format!("it is an image of more than {IMAGE_BYTES_MAX} bytes; make a smaller copy first");
        return Err(refused(&what));
    }
    // What is written to it meanwhile is not chased.
    let n_bytes = file.metadata().map_err(|error| refused(&error))?.len().max(FILE_BYTES_MAX);
    let source = beginning[..n_read].chain(file.take(n_bytes - n_read as u64));
    let page = Page::read(source, range, cut).map_err(|error| refused(&error))?;
    let note = if page.is_lossy() { LOSSY } else { "" };
    Ok(shown_page(page, shown, range)? + note)
}

/// Reads an image that a person named; the error says why not.
pub fn read_image(path: &Path) -> Result<Part, String> {
    let bytes = files::read(&resolve(path), IMAGE_BYTES_MAX as u64).map_err(|error| error.to_string())?;
    image_part(&bytes)
}

/// Makes an image of a file's bytes; the error says why they are none for a model.
pub(crate) fn image_part(bytes: &[u8]) -> Result<Part, String> {
    let mime = check_image(bytes).map_err(|bad| format!("the image {bad}"))?;
    Ok(Part::Image { mime: mime.to_owned(), data: BASE64_STANDARD.encode(bytes) })
}

pub(crate) fn image(bytes: &[u8], shown: &str) -> Result<Outcome, Refusal> {
    if bytes.len() > IMAGE_BYTES_MAX {
        let n_bytes = bytes.len();
        return Err(Refusal(format!(
            "could not show {shown}: the image is too large ({n_bytes} bytes, the limit is {IMAGE_BYTES_MAX}); make \
             a smaller copy first"
        )));
    }
    let mime =
        check_image(bytes).map_err(|bad| Refusal(format!("could not show {shown}: the image {bad}")))?;
    let (mime, data) = (mime.to_owned(), BASE64_STANDARD.encode(bytes));
    Ok(Outcome {
        status: Status::Done,
        for_model: vec![
            Part::Text(format!("{shown} ({mime}, {} bytes):", bytes.len())),
            Part::Image { mime: mime.clone(), data: data.clone() },
        ],
        for_client: vec![Content::Image { mime, data }],
        plan: None,
    })
}
