//! Parses the lines of a patch.

use super::{PATCH_FILES_MAX, ParsedPatch, PatchError, PatchSection};
use crate::edit::{PatchHunk, PatchLine};
use crate::escape_hidden_start;

pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// The lines that begin with a path.
pub(super) const PATH_MARKS: [&str; 4] = [ADD, DELETE, UPDATE, MOVE];

/// The start of a line in an error.
const EXCERPT_CHARS: usize = 60;

/// A line with its number, from 1.
type NumberedLine<'a> = (usize, &'a str);

/// A line that begins a section or ends one.
enum MarkLine<'a> {
    Begin,
    End,
    Add(&'a str),
    Delete(&'a str),
    Update(&'a str),
    Move(&'a str),
    EndOfFile,
}

impl<'a> MarkLine<'a> {
    /// Reads a mark at the start of a line; some models close it with further stars.
    fn read(line: &'a str) -> Option<Self> {
        if !line.starts_with("***") {
            return None;
        }
        let line = line.trim_end();
        let line = line.strip_suffix(" ***").unwrap_or(line).trim_end();
        let path_after = |mark: &str| line.strip_prefix(mark).map(str::trim);
        Some(match line {
            BEGIN => Self::Begin,
            END => Self::End,
            END_OF_FILE => Self::EndOfFile,
            _ => path_after(ADD)
                .map(Self::Add)
                .or_else(|| path_after(DELETE).map(Self::Delete))
                .or_else(|| path_after(UPDATE).map(Self::Update))
                .or_else(|| path_after(MOVE).map(Self::Move))?,
        })
    }
}

/// Parses a patch without anything around it.
pub(super) fn parse_body(text: &str) -> Result<ParsedPatch, PatchError> {
    let lines: Vec<NumberedLine<'_>> = text
        .split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .enumerate()
        .map(|(at, line)| (at + 1, line))
        .collect();
    let is_blank = |line: &&NumberedLine<'_>| line.1.trim().is_empty();
    let first = lines.iter().position(|line| !is_blank(&line)).ok_or(PatchError::NoBegin)?;
    let last = lines.iter().rposition(|line| !is_blank(&line)).ok_or(PatchError::NoBegin)?;
    // Blanks around the outermost marks are no part of a file.
    match MarkLine::read(lines[first].1.trim_start()) {
        Some(MarkLine::Begin) => {}
        Some(MarkLine::Add(_) | MarkLine::Delete(_) | MarkLine::Update(_)) => {}
        Some(MarkLine::End | MarkLine::Move(_) | MarkLine::EndOfFile) | None => {
            return Err(PatchError::NoBegin);
        }
    }
    let Some(MarkLine::End) = MarkLine::read(lines[last].1.trim_start()) else {
        return Err(PatchError::NoEnd);
    };
    let start = match MarkLine::read(lines[first].1.trim_start()) {
        Some(MarkLine::Begin) => first + 1,
        _ => first,
    };
    PatchReader { lines: lines.get(start..last).unwrap_or_default(), at: 0 }.read_sections()
}

/// The lines between the outermost marks.
struct PatchReader<'a> {
    lines: &'a [NumberedLine<'a>],
    at: usize,
}

impl<'a> PatchReader<'a> {
    fn peek(&self) -> Option<NumberedLine<'a>> {
        self.lines.get(self.at).copied()
    }

    /// Takes the next line unless it is a mark.
    fn take_text(&mut self) -> Option<NumberedLine<'a>> {
        let line = self.peek().filter(|(_, line)| MarkLine::read(line).is_none())?;
        self.at += 1;
        Some(line)
    }

    fn read_sections(mut self) -> Result<ParsedPatch, PatchError> {
        let mut sections = Vec::new();
        while let Some((number, line)) = self.peek() {
            self.at += 1;
            let section = match MarkLine::read(line.trim_start()) {
                // Another patch behind the first is a part of it.
                Some(MarkLine::Begin | MarkLine::End) => continue,
                None if line.trim().is_empty() => continue,
                Some(MarkLine::Add(path)) => self.read_added(check_path(number, path)?)?,
                Some(MarkLine::Delete(path)) => PatchSection::Delete { path: check_path(number, path)? },
                Some(MarkLine::Update(path)) => self.read_updated(check_path(number, path)?)?,
                Some(MarkLine::Move(_) | MarkLine::EndOfFile) | None => {
                    return Err(PatchError::UnexpectedLine { line: number, text: excerpt(line) });
                }
            };
            sections.push(section);
            if sections.len() > PATCH_FILES_MAX {
                return Err(PatchError::TooManyFiles);
            }
        }
        if sections.is_empty() { Err(PatchError::NoFiles) } else { Ok(ParsedPatch { sections }) }
    }

    fn read_added(&mut self, path: String) -> Result<PatchSection, PatchError> {
        let mut added: Vec<&str> = Vec::new();
        let mut n_blank = 0;
        while let Some((number, line)) = self.take_text() {
            match line.strip_prefix('+') {
                Some(text) => {
                    // Blank lines in the middle lack their mark; those at the end separate sections.
                    added.extend(std::iter::repeat_n("", std::mem::take(&mut n_blank)));
                    added.push(text);
                }
                None if line.trim().is_empty() => n_blank += 1,
                None => return Err(PatchError::AddedLine { line: number, text: excerpt(line) }),
            }
        }
        let mut text = added.join("\n");
        if !added.is_empty() {
            text.push('\n');
        }
        Ok(PatchSection::Add { path, text })
    }

    fn read_updated(&mut self, path: String) -> Result<PatchSection, PatchError> {
        let mut target = None;
        if let Some((number, line)) = self.peek()
            && let Some(MarkLine::Move(to)) = MarkLine::read(line.trim_start())
        {
            self.at += 1;
            target = Some(check_path(number, to)?);
        }
        let mut hunks: Vec<PatchHunk> = Vec::new();
        let mut hunk = PatchHunk::default();
        loop {
            if let Some((_, line)) = self.peek()
                && matches!(MarkLine::read(line), Some(MarkLine::EndOfFile))
            {
                self.at += 1;
                hunk.is_at_end = true;
                finish_hunk(&mut hunk, &mut hunks);
                continue;
            }
            let Some((_, line)) = self.take_text() else { break };
            match line.strip_prefix("@@") {
                Some(anchor) => {
                    if !hunk.lines.is_empty() {
                        finish_hunk(&mut hunk, &mut hunks);
                    }
                    hunk.anchors.extend(read_anchor(anchor));
                }
                None => hunk.lines.push(read_hunk_line(line)),
            }
        }
        finish_hunk(&mut hunk, &mut hunks);
        if target.is_none() && !hunks.iter().any(PatchHunk::has_changes) {
            return Err(PatchError::NoHunks { path });
        }
        Ok(PatchSection::Update { path, target, hunks })
    }
}

/// Moves a hunk to the others if it has lines. Blank lines at its end separate it from what follows.
fn finish_hunk(hunk: &mut PatchHunk, hunks: &mut Vec<PatchHunk>) {
    let is_separator = |line: &PatchLine| matches!(line, PatchLine::Kept(text) if text.is_empty());
    while hunk.lines.last().is_some_and(is_separator) && hunk.lines.iter().any(|line| !is_separator(line)) {
        hunk.lines.pop();
    }
    let hunk = std::mem::take(hunk);
    if !hunk.lines.iter().all(is_separator) {
        hunks.push(hunk);
    }
}

/// Reads what follows `@@`; the positions of a unified diff say nothing.
fn read_anchor(text: &str) -> Option<String> {
    let text = text.strip_prefix(' ').unwrap_or(text).trim_end();
    let is_position = |text: &str| text.trim_start().starts_with('-') && text.contains('+');
    let text = match text.split_once("@@") {
        Some((position, rest)) if is_position(position) => rest.strip_prefix(' ').unwrap_or(rest),
        // Some models close the mark.
        Some((anchor, "")) => anchor.trim_end(),
        Some(_) | None => text,
    };
    (!text.trim().is_empty()).then(|| text.to_owned())
}

/// Reads a line of a hunk. Without its mark it is a line of the file, whose blank was forgotten.
fn read_hunk_line(line: &str) -> PatchLine {
    match line.chars().next() {
        Some('+') => PatchLine::Added(line[1..].to_owned()),
        Some('-') => PatchLine::Removed(line[1..].to_owned()),
        Some(' ') => PatchLine::Kept(line[1..].to_owned()),
        Some(_) | None => PatchLine::Kept(line.to_owned()),
    }
}

fn check_path(line: usize, path: &str) -> Result<String, PatchError> {
    if path.is_empty() { Err(PatchError::NoPath { line }) } else { Ok(path.to_owned()) }
}

fn excerpt(line: &str) -> String {
    escape_hidden_start(line.trim(), EXCERPT_CHARS)
}
