//! The text of the composer: a string with a caret. Pasted blocks and images are atoms, each one private-use character
//! in the string, so that every edit treats them as one letter.

use unicode_segmentation::UnicodeSegmentation as _;

/// The first character that represents an atom. Text from outside never has one: it is removed when it is inserted.
const FIRST_ATOM: u32 = 0xF_0000;

/// Atoms of one draft; more are not a prompt.
const ATOMS_MAX: usize = 1000;

/// Undo steps that are kept.
const UNDO_STEPS_MAX: usize = 200;

/// Content that is shown as a label and edited as one letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DraftAtom {
    /// A long pasted text.
    Pasted(String),
    /// An image; `data` is base64.
    Image { mime: String, data: String, name: String },
}

impl DraftAtom {
    /// The label in the composer.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Pasted(text) => match text.lines().count() {
                1 => format!("[pasted {} characters]", text.chars().count()),
                n_lines => format!("[pasted {n_lines} lines]"),
            },
            Self::Image { name, .. } => format!("[image {name}]"),
        }
    }
}

/// A state that undo returns to.
#[derive(Debug, Clone)]
struct UndoStep {
    text: String,
    caret: usize,
}

/// The kind of an edit: typed letters are undone together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EditKind {
    Typed,
    Killed,
    Other,
}

/// The composer's text.
#[derive(Debug, Clone, Default)]
pub(crate) struct DraftBuffer {
    text: String,
    /// The caret's byte offset, between two grapheme clusters.
    caret: usize,
    atoms: Vec<DraftAtom>,
    undo_steps: Vec<UndoStep>,
    last_edit: Option<EditKind>,
    killed: String,
}

impl DraftBuffer {
    /// The text with one character per atom.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn caret(&self) -> usize {
        self.caret
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the atom that a character represents.
    pub(crate) fn find_atom(&self, letter: char) -> Option<&DraftAtom> {
        self.atoms.get(u32::from(letter).checked_sub(FIRST_ATOM)? as usize)
    }

    /// The text with the content of pasted blocks and the labels of images.
    pub(crate) fn full_text(&self) -> String {
        let mut full = String::with_capacity(self.text.len());
        for letter in self.text.chars() {
            match self.find_atom(letter) {
                Some(DraftAtom::Pasted(text)) => full.push_str(text),
                Some(image @ DraftAtom::Image { .. }) => full.push_str(&image.label()),
                None => full.push(letter),
            }
        }
        full
    }

    /// The images in the text, in order.
    pub(crate) fn images(&self) -> impl Iterator<Item = &DraftAtom> {
        let atoms = self.text.chars().filter_map(|letter| self.find_atom(letter));
        atoms.filter(|atom| matches!(atom, DraftAtom::Image { .. }))
    }

    /// Replaces everything; the caret is at the end.
    pub(crate) fn set_text(&mut self, text: &str) {
        self.record_undo(EditKind::Other);
        self.text = without_atoms(text);
        self.caret = self.text.len();
    }

    /// Replaces everything by a changed [`Self::full_text`]: labels of images become the images again.
    pub(crate) fn set_edited_text(&mut self, text: &str) {
        let mut edited = without_atoms(text);
        for letter in self.text.chars() {
            if let Some(image @ DraftAtom::Image { .. }) = self.find_atom(letter) {
                let label = without_atoms(&image.label());
                edited = edited.replacen(&label, letter.encode_utf8(&mut [0; 4]), 1);
            }
        }
        self.record_undo(EditKind::Other);
        self.caret = edited.len();
        self.text = edited;
    }

    /// Puts a draft from before in the place of this one.
    pub(crate) fn restore(&mut self, draft: Self) {
        let killed = std::mem::take(&mut self.killed);
        *self = Self { killed, ..draft };
    }

    /// Removes everything and returns the state before.
    pub(crate) fn take(&mut self) -> Self {
        let killed = self.killed.clone();
        std::mem::replace(self, Self { killed, ..Self::default() })
    }

    /// Inserts typed text.
    pub(crate) fn insert_typed(&mut self, text: &str) {
        let starts_word = text.starts_with(char::is_whitespace);
        self.record_undo(if starts_word { EditKind::Other } else { EditKind::Typed });
        self.insert_clean(&without_atoms(text));
    }

    /// Inserts text as one undo step.
    pub(crate) fn insert_text(&mut self, text: &str) {
        self.record_undo(EditKind::Other);
        self.insert_clean(&without_atoms(text));
    }

    /// Inserts an atom; `false` if there are too many.
    pub(crate) fn insert_atom(&mut self, atom: DraftAtom) -> bool {
        let index = self.atoms.len();
        let letter = u32::try_from(index).ok().and_then(|index| char::from_u32(FIRST_ATOM + index));
        let Some(letter) = letter.filter(|_| index < ATOMS_MAX) else { return false };
        self.record_undo(EditKind::Other);
        self.atoms.push(atom);
        self.insert_clean(letter.encode_utf8(&mut [0; 4]));
        true
    }

    /// Appends another draft on a line of its own.
    pub(crate) fn append_draft(&mut self, other: &Self) {
        self.move_to(self.text.len());
        if !self.is_empty() && !other.is_empty() {
            self.insert_text("\n");
        }
        for letter in other.text.chars() {
            match other.find_atom(letter) {
                Some(atom) => {
                    self.insert_atom(atom.clone());
                }
                None => self.insert_clean(letter.encode_utf8(&mut [0; 4])),
            }
        }
    }

    /// Replaces a range of bytes by text, with the caret after it.
    pub(crate) fn replace_range(&mut self, start: usize, end: usize, text: &str) {
        self.record_undo(EditKind::Other);
        self.text.replace_range(start..end, &without_atoms(text));
        self.caret = start + without_atoms(text).len();
    }

    pub(crate) fn move_to(&mut self, caret: usize) {
        self.last_edit = None;
        self.caret = caret.min(self.text.len());
    }

    pub(crate) fn move_left(&mut self) {
        self.move_to(self.previous_boundary());
    }

    pub(crate) fn move_right(&mut self) {
        self.move_to(self.next_boundary());
    }

    pub(crate) fn move_word_left(&mut self) {
        self.move_to(self.word_start());
    }

    pub(crate) fn move_word_right(&mut self) {
        self.move_to(self.word_end());
    }

    pub(crate) fn move_line_start(&mut self) {
        self.move_to(self.line_start());
    }

    pub(crate) fn move_line_end(&mut self) {
        self.move_to(self.line_end());
    }

    pub(crate) fn delete_left(&mut self) {
        self.delete(self.previous_boundary(), self.caret);
    }

    pub(crate) fn delete_right(&mut self) {
        self.delete(self.caret, self.next_boundary());
    }

    /// Kills to the start of the word left of the caret.
    pub(crate) fn kill_word_left(&mut self) {
        self.kill(self.word_start(), self.caret);
    }

    pub(crate) fn kill_word_right(&mut self) {
        self.kill(self.caret, self.word_end());
    }

    pub(crate) fn kill_line_start(&mut self) {
        let start = self.line_start();
        let start = if start == self.caret { self.previous_boundary() } else { start };
        self.kill(start, self.caret);
    }

    /// Kills to the end of the line, or the line break at its end.
    pub(crate) fn kill_line_end(&mut self) {
        let end = self.line_end();
        let end = if end == self.caret { self.next_boundary() } else { end };
        self.kill(self.caret, end);
    }

    /// The text that was killed last.
    pub(crate) fn killed(&self) -> &str {
        &self.killed
    }

    pub(crate) fn set_killed(&mut self, text: String) {
        self.killed = text;
    }

    /// Copies a range as if it had been killed.
    pub(crate) fn copy_range(&mut self, start: usize, end: usize) {
        self.killed = self.text[start..end].to_owned();
    }

    /// Kills a range, apart from what was killed before.
    pub(crate) fn cut_range(&mut self, start: usize, end: usize) {
        self.last_edit = None;
        self.kill(start, end);
        self.last_edit = None;
    }

    /// Inserts a text that was in the buffer, with the caret after it.
    pub(crate) fn insert_at(&mut self, at: usize, text: &str) {
        self.record_undo(EditKind::Other);
        self.caret = at;
        self.insert_clean(text);
    }

    /// Inserts the killed text.
    pub(crate) fn yank(&mut self) {
        self.record_undo(EditKind::Other);
        let killed = self.killed.clone();
        self.insert_clean(&killed);
    }

    /// Swaps the letters around the caret.
    pub(crate) fn transpose(&mut self) {
        let end = self.next_boundary();
        let middle = if end == self.caret { self.previous_boundary() } else { self.caret };
        let start = previous_boundary_in(&self.text, middle);
        if start == middle || middle == end {
            return;
        }
        self.record_undo(EditKind::Other);
        let swapped = format!("{}{}", &self.text[middle..end], &self.text[start..middle]);
        self.text.replace_range(start..end, &swapped);
        self.caret = end;
    }

    /// Returns to the state before the last edit; `false` if there is none.
    pub(crate) fn undo(&mut self) -> bool {
        self.last_edit = None;
        let Some(step) = self.undo_steps.pop() else { return false };
        (self.text, self.caret) = (step.text, step.caret);
        true
    }

    fn insert_clean(&mut self, text: &str) {
        self.text.insert_str(self.caret, text);
        self.caret += text.len();
        // The letters around may form a cluster with the new ones.
        if !self.is_boundary(self.caret) {
            self.caret = self.next_boundary();
        }
    }

    fn delete(&mut self, start: usize, end: usize) {
        if start == end {
            return;
        }
        self.record_undo(EditKind::Other);
        self.text.replace_range(start..end, "");
        self.caret = start;
    }

    /// Removes text for [`Self::yank`]; consecutive kills are one.
    fn kill(&mut self, start: usize, end: usize) {
        if start == end {
            return;
        }
        let is_continued = self.last_edit == Some(EditKind::Killed);
        let killed = self.text[start..end].to_owned();
        self.killed = match is_continued {
            true if end == self.caret => killed + &self.killed,
            true => std::mem::take(&mut self.killed) + &killed,
            false => killed,
        };
        self.record_undo(EditKind::Other);
        self.text.replace_range(start..end, "");
        self.caret = start;
        self.last_edit = Some(EditKind::Killed);
    }

    fn record_undo(&mut self, kind: EditKind) {
        let is_same_run = kind == EditKind::Typed && self.last_edit == Some(EditKind::Typed);
        self.last_edit = Some(kind);
        if is_same_run {
            return;
        }
        if self.undo_steps.len() == UNDO_STEPS_MAX {
            self.undo_steps.remove(0);
        }
        self.undo_steps.push(UndoStep { text: self.text.clone(), caret: self.caret });
    }

    fn is_boundary(&self, at: usize) -> bool {
        at == self.text.len() || self.text.grapheme_indices(true).any(|(start, _)| start == at)
    }

    fn previous_boundary(&self) -> usize {
        previous_boundary_in(&self.text, self.caret)
    }

    fn next_boundary(&self) -> usize {
        let cluster = self.text[self.caret..].graphemes(true).next();
        self.caret + cluster.map_or(0, str::len)
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.caret].trim_end_matches(|letter| !is_word_letter(letter));
        before.trim_end_matches(is_word_letter).len()
    }

    fn word_end(&self) -> usize {
        let after = self.text[self.caret..].trim_start_matches(|letter| !is_word_letter(letter));
        self.text.len() - after.trim_start_matches(is_word_letter).len()
    }

    fn line_start(&self) -> usize {
        self.text[..self.caret].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.caret..].find('\n').map_or(self.text.len(), |at| self.caret + at)
    }
}

fn previous_boundary_in(text: &str, at: usize) -> usize {
    text[..at].grapheme_indices(true).next_back().map_or(0, |(start, _)| start)
}

fn is_word_letter(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || is_atom(letter)
}

fn is_atom(letter: char) -> bool {
    u32::from(letter).checked_sub(FIRST_ATOM).is_some_and(|index| (index as usize) < ATOMS_MAX)
}

/// Removes characters that represent atoms, and control characters.
fn without_atoms(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let is_control = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    text.chars().filter(|&letter| !is_atom(letter) && !is_control(letter)).collect()
}

#[cfg(test)]
mod tests;
