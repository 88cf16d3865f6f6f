//! `read`: a file as numbered lines, or an image as an image.

use std::{fmt::Write as _, path::Path};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use crow_core::{Content, Facets, Location, Outcome, Part, Status, ToolKind, ToolSpec, Touch};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Running, Tool, ToolCx, Workspace,
    buffers::{self, Opened, Purpose},
    files::{self, ReadError},
    text::{Decoded, cut_line, decode, numbered},
    tool::{Refusal, about, answer, off_thread, parse, text_of},
    workspace::{Stamp, resolve},
};

/// As many lines as most files have.
const LIMIT_DEFAULT: usize = 2000;

/// Longer lines are generated ones, and say little for their tokens.
const LINE_CHARS_MAX: usize = 2000;

/// About 25,000 tokens: one read must not fill a model's window.
const TEXT_BYTES_MAX: usize = 100_000;

/// Providers take images of up to 5 MB in base64, which is a third longer than the bytes.
pub(crate) const IMAGE_BYTES_MAX: usize = 3_700_000;

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

enum Found {
    Image(Outcome),
    Text { text: String, stamp: Stamp },
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
            let opened = buffers::open(&cx, &wanted.file_path, Purpose::Look).await?;
            let opened = opened.map_err(|error| refuse(&path, &shown, &error))?;
            match off_thread(move || find(opened, &shown, &wanted)).await? {
                Found::Image(outcome) => Ok(outcome),
                Found::Text { text, stamp } => {
                    cx.workspace.remember(path, stamp);
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
            return Ok(Found::Text { stamp: Stamp::of(&text), text: page(&text, shown, wanted)? });
        }
    };
    if let Some(mime) = image_type(&bytes) {
        return image(&bytes, mime, shown).map(Found::Image);
    }
    match decode(bytes) {
        Decoded::Text(text, _) => {
            Ok(Found::Text { stamp: Stamp::of(&text), text: page(&text, shown, wanted)? })
        }
        Decoded::Lossy(text) => {
            let note = "(not valid in its encoding: what could not be read is shown as \u{fffd}, and `edit` will \
                        not take this file)";
            let page = format!("{}{note}\n", page(&text, shown, wanted)?);
            Ok(Found::Text { stamp: Stamp::of(&text), text: page })
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
fn page(text: &str, shown: &str, wanted: &Wanted) -> Result<String, Refusal> {
    let n_lines = text.lines().count();
    let first = wanted.offset.max(1);
    if n_lines == 0 {
        return Ok(format!("({shown} is empty)\n"));
    }
    if first > n_lines {
        return Err(Refusal(format!("could not read {shown} from line {first}: it has {n_lines} lines")));
    }
    let mut room = TEXT_BYTES_MAX;
    let lines =
        text.lines().skip(first - 1).take(wanted.limit.max(1)).map(|line| cut_line(line, LINE_CHARS_MAX));
    let lines: Vec<String> = lines
        .take_while(|line| {
            let fits = line.len() <= room;
            room = room.saturating_sub(line.len());
            fits
        })
        .collect();
    let mut page = numbered(lines.iter().map(String::as_str), first);
    let last = first - 1 + lines.len();
    if last < n_lines {
        let next = last + 1;
        // Writing to a string cannot fail.
        let _ = writeln!(page, "(lines {first} to {last} of {n_lines}; go on with offset={next})");
    }
    Ok(page)
}

/// Reads an image that a person named; the error says why not.
pub fn read_image(path: &Path) -> Result<Part, String> {
    let bytes = files::read(&resolve(path), IMAGE_BYTES_MAX as u64).map_err(|error| error.to_string())?;
    let mime = image_type(&bytes).ok_or("it is no PNG, JPEG, GIF or WebP")?;
    Ok(Part::Image { mime: mime.to_owned(), data: BASE64_STANDARD.encode(bytes) })
}

pub(crate) fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

pub(crate) fn image(bytes: &[u8], mime: &str, shown: &str) -> Result<Outcome, Refusal> {
    if bytes.len() > IMAGE_BYTES_MAX {
        let n_bytes = bytes.len();
        return Err(Refusal(format!(
            "could not show {shown}: the image is too large ({n_bytes} bytes, the limit is {IMAGE_BYTES_MAX}); make \
             a smaller copy first"
        )));
    }
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
