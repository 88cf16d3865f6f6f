//! `edit`: one text in a file for another. Where it lands is decided in `crow_core::edit`.

use std::path::Path;

use crow_core::{
    Content, Facets, ToolSpec,
    edit::{self, Edited, Matcher, Occurrences},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Previewing, Running, Tool, ToolCx, Workspace,
    buffers::{self, Opened, Purpose},
    changing::{self, Change, Made, Old},
    files::{self, FILE_BYTES_MAX, ReadError},
    read,
    text::{Decoded, Encoding, cut_line, decode, numbered},
    tool::{Refusal, answer, off_thread, parse, previewed, text_of},
    workspace::Stamp,
    write::{about_change, changed, shown_diff},
};

pub(crate) const CHANGED: &str = "it has changed since it was read; read it again";
pub(crate) const CHANGED_OR_UNSAVED: &str = "it has changed since it was read, or has changes in the editor that are not saved; \
                                  the person has to save it there, then read it again";

const UNKNOWN_ENCODING: &str = "its encoding is not known, and would be lost";

/// Lines shown on either side of a change: enough to see that it landed where it should.
const CONTEXT_LINES: usize = 3;

/// The model knows what it wrote; of a long change the beginning is enough.
const EXCERPT_LINES_MAX: usize = 20;

/// As much of a line as is needed to know it again.
const LINE_CHARS_MAX: usize = 300;

pub(crate) struct Edit {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Wanted {
    file_path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

/// An edit worked out.
struct Planned {
    /// What the file holds; `None` when there is none yet.
    old: Option<String>,
    edited: Edited,
    /// How the file on disk is written; `None` when the client writes it.
    encoding: Option<Encoding>,
}

impl Wanted {
    /// Whether it begins a file instead of changing one.
    fn begins(&self) -> bool {
        self.old_string.trim_start_matches('\u{feff}').is_empty()
    }
}

impl Edit {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "edit".into(),
            description: "Replaces a text in a file that you have read. `old_string` must be in the file once, or \
                          give `replace_all`; copy it from the file without the line numbers, with enough lines \
                          around it to be found only once. An empty \
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

impl Tool for Edit {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn facets(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> Facets {
        about_change(workspace, "Edit", text_of(arguments, "file_path"))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        answer(async move {
            let wanted: Wanted = parse(arguments)?;
            let shown = cx.workspace.shown(&wanted.file_path);
            let (Planned { old, edited, encoding }, wanted) = plan(&cx, wanted).await?;
            let mut text = report(&shown, &edited, &wanted.new_string);
            let note = note(&edited);
            let change = Change {
                verb: "edit",
                file_path: &wanted.file_path,
                old: match &old {
                    None => Old::Nothing,
                    Some(old) if encoding.is_some() => Old::Disk(old),
                    Some(old) => Old::Buffer(old),
                },
                text: edited.text,
                encoding: encoding.unwrap_or(Encoding::Utf8),
            };
            let Made { text: new, note: more } = changing::make(&cx, change).await?;
            text.push_str(&more);
            let mut outcome = changed(text, &cx.workspace.absolute(&wanted.file_path), Some((old, new)));
            outcome.for_client.splice(0..0, note);
            Ok(outcome)
        })
    }

    fn preview<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Previewing<'a> {
        previewed(async move {
            let (Planned { old, edited, .. }, wanted) = plan(&cx, parse(arguments)?).await?;
            let mut content: Vec<Content> = note(&edited).into_iter().collect();
            content.extend(shown_diff(&cx.workspace.absolute(&wanted.file_path), old, edited.text));
            Ok(content)
        })
    }
}

/// Works out what an edit comes to, and writes nothing.
async fn plan(cx: &ToolCx<'_>, wanted: Wanted) -> Result<(Planned, Wanted), Refusal> {
    let path = cx.judged(&wanted.file_path)?;
    let shown = cx.workspace.shown(&wanted.file_path);
    let seen = cx.workspace.seen(&path);
    let opened = buffers::open(cx, &wanted.file_path, Purpose::Change).await?;
    if let (true, Err(ReadError::Missing)) = (wanted.begins(), &opened) {
        let edited = edit::apply("", "", &wanted.new_string, Occurrences::One);
        let edited = edited.map_err(|refusal| refuse(&shown, &refusal))?;
        check_text(&shown, &wanted)?;
        return Ok((Planned { old: None, edited, encoding: Some(Encoding::Utf8) }, wanted));
    }
    let opened = opened.map_err(|error| read::refuse(&path, &shown, &error))?;
    check_buffer(&opened, &path, &shown).await?;
    let only_reads = cx.abilities().reads_files && !cx.abilities().writes_files;
    let changed = if only_reads { CHANGED_OR_UNSAVED } else { CHANGED };
    // Of an empty file there is nothing to know.
    let seen = seen.or_else(|| wanted.begins().then(|| Stamp::of("")));
    let seen = seen.ok_or_else(|| refuse(&shown, &"it was not read in this session; read it first"))?;
    let known = Known { seen, changed };
    off_thread(move || change(opened, &shown, &known, &wanted).map(|planned| (planned, wanted))).await
}

/// Refuses what an editor shows of a file that it could not read either: saving it would put its stand-ins for
/// what it did not understand in the place of that.
async fn check_buffer(opened: &Opened, path: &Path, shown: &str) -> Result<(), Refusal> {
    match opened {
        Opened::Buffer(text) if text.contains(char::REPLACEMENT_CHARACTER) => {
            let (path, shown) = (path.to_owned(), shown.to_owned());
            off_thread(move || match files::read(&path, FILE_BYTES_MAX).map(decode) {
                Ok(Decoded::Lossy(_)) => Err(refuse(&shown, &UNKNOWN_ENCODING)),
                Ok(Decoded::Text(..) | Decoded::Binary) | Err(_) => Ok(()),
            })
            .await
        }
        Opened::Buffer(_) | Opened::Disk(_) => Ok(()),
    }
}

fn refuse(shown: &str, why: &dyn std::fmt::Display) -> Refusal {
    Refusal(format!("could not edit {shown}: {why}"))
}

/// What the model knows of a file, and what it reads when that is no longer so.
struct Known {
    seen: Stamp,
    changed: &'static str,
}

fn change(opened: Opened, shown: &str, known: &Known, wanted: &Wanted) -> Result<Planned, Refusal> {
    let refuse = |why: &dyn std::fmt::Display| refuse(shown, why);
    let (old, encoding) = match opened {
        Opened::Buffer(text) => (text, None),
        Opened::Disk(bytes) => match decode(bytes) {
            Decoded::Text(text, encoding) => (text, Some(encoding)),
            Decoded::Lossy(_) => return Err(refuse(&UNKNOWN_ENCODING)),
            Decoded::Binary => return Err(refuse(&"it is a binary file")),
        },
    };
    // A file with something in it is refused as such.
    if known.seen != Stamp::of(&old) && !wanted.begins() {
        return Err(refuse(&known.changed));
    }
    check_text(shown, wanted)?;
    let occurrences = if wanted.replace_all { Occurrences::All } else { Occurrences::One };
    let edited = edit::apply(&old, &wanted.old_string, &wanted.new_string, occurrences);
    Ok(Planned { edited: edited.map_err(|refusal| refuse(&refusal))?, old: Some(old), encoding })
}

fn check_text(shown: &str, wanted: &Wanted) -> Result<(), Refusal> {
    if wanted.new_string.contains('\0') {
        return Err(refuse(shown, &"the new text has a zero byte in it, which no text file has"));
    }
    Ok(())
}

/// Tells the person that the place is not the one given to the letter.
fn note(edited: &Edited) -> Option<Content> {
    let is_exact = edited.matcher == Matcher::Exact;
    (!is_exact).then(|| Content::Text(format!("The text to replace was found {}.", edited.matcher)))
}

fn report(shown: &str, edited: &Edited, new: &str) -> String {
    let places = match edited.n_replaced {
        1 => "1 place".into(),
        n => format!("{n} places"),
    };
    let line = usize::try_from(edited.line).unwrap_or(usize::MAX);
    let first = line.saturating_sub(CONTEXT_LINES).max(1);
    let n_lines = (line - first + new.lines().count() + CONTEXT_LINES).min(EXCERPT_LINES_MAX);
    let lines = edited.text.lines().skip(first - 1).take(n_lines).map(|line| cut_line(line, LINE_CHARS_MAX));
    let lines: Vec<String> = lines.collect();
    let excerpt = numbered(lines.iter().map(String::as_str), first);
    format!("edited {shown} in {places}; match: {}\n{excerpt}", edited.matcher)
}
