//! `edit`: one text in a file for another. Where it lands is decided in `crow_core::edit`.

use std::path::Path;

use crow_core::{
    Facets, ToolSpec,
    edit::{self, Edited, Occurrences},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Running, Tool, ToolCx, Workspace,
    files::{self, FILE_BYTES_MAX},
    read,
    text::{Decoded, cut_line, decode, encode, numbered},
    tool::{Refusal, answer, off_thread, parse, text_of},
    workspace::Stamp,
    write::{change, changed},
};

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

struct Done {
    old: String,
    edited: Edited,
    stamp: Stamp,
}

impl Edit {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "edit".into(),
            description: "Replaces a text in a file that you have read. `old_string` must be in the file once, or \
                          give `replace_all`; copy it from the file without the line numbers, with enough lines \
                          around it to be found only once."
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
        change(workspace, "Edit", text_of(arguments, "file_path"))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        answer(async move {
            let wanted: Wanted = parse(arguments)?;
            let path = cx.workspace.resolve(&wanted.file_path);
            let shown = cx.workspace.shown(&wanted.file_path);
            let absolute = cx.workspace.absolute(&wanted.file_path);
            let seen = cx.workspace.seen(&path);
            let work = {
                let (path, shown) = (path.clone(), shown.clone());
                move || change_file(&path, &shown, seen, &wanted).map(|done| (done, wanted))
            };
            let (Done { old, edited, stamp }, wanted) = off_thread(work).await?;
            cx.workspace.remember(path, stamp);
            let text = report(&shown, &edited, &wanted.new_string);
            Ok(changed(text, &absolute, Some((Some(old), edited.text))))
        })
    }
}

fn change_file(path: &Path, shown: &str, seen: Option<Stamp>, wanted: &Wanted) -> Result<Done, Refusal> {
    let refuse = |why: &dyn std::fmt::Display| Refusal(format!("could not edit {shown}: {why}"));
    let bytes = files::read(path, FILE_BYTES_MAX).map_err(|error| read::refuse(path, shown, &error))?;
    match seen {
        None => return Err(refuse(&"it was not read in this session; read it first")),
        Some(seen) if seen != Stamp::of(&bytes) => {
            return Err(refuse(&"it has changed since it was read; read it again"));
        }
        Some(_) => {}
    }
    let (old, encoding) = match decode(bytes) {
        Decoded::Text(text, encoding) => (text, encoding),
        Decoded::Lossy(_) => return Err(refuse(&"its encoding is not known, and would be lost")),
        Decoded::Binary => return Err(refuse(&"it is a binary file")),
    };
    let occurrences = if wanted.replace_all { Occurrences::All } else { Occurrences::One };
    let edited = edit::apply(&old, &wanted.old_string, &wanted.new_string, occurrences);
    let edited = edited.map_err(|refusal| refuse(&refusal))?;
    let bytes = encode(&edited.text, encoding);
    files::replace(path, &bytes).map_err(|error| refuse(&error))?;
    Ok(Done { old, edited, stamp: Stamp::of(&bytes) })
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
