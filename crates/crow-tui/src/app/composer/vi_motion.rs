//! The motions of vi: a text and a caret in, a caret out.

use unicode_segmentation::UnicodeSegmentation as _;

use super::vi::ViMotion;

/// A text as grapheme clusters, with the index of the caret.
pub(super) struct MotionText<'a> {
    clusters: Vec<(usize, &'a str)>,
    len: usize,
}

/// Letters that a word motion does not stop between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LetterClass {
    Space,
    Word,
    Other,
}

impl<'a> MotionText<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { clusters: text.grapheme_indices(true).collect(), len: text.len() }
    }

    /// Returns the caret after a motion; `None` if there is nowhere to go.
    pub(super) fn target(&self, motion: ViMotion, caret: usize) -> Option<usize> {
        let at = self.index(caret);
        let target = match motion {
            ViMotion::Left => (at > self.line_start(at)).then(|| at - 1),
            ViMotion::Right => (at < self.line_end(at)).then_some(at + 1),
            ViMotion::WordForward => Some(self.word_forward(at)),
            ViMotion::WordBack => Some(self.word_back(at)),
            ViMotion::WordEnd => Some(self.word_end(at)),
            ViMotion::LineStart => Some(self.line_start(at)),
            ViMotion::LineFirst => Some(self.line_first(at)),
            ViMotion::LineEnd => Some(self.line_end(at)),
            ViMotion::TextStart => Some(0),
            ViMotion::TextEnd => Some(self.line_start(self.clusters.len())),
            ViMotion::Find { letter, is_before } => {
                let end = self.line_end(at);
                let found = (at + 1..end).find(|&index| self.letter(index) == Some(letter));
                found.map(|index| if is_before { index - 1 } else { index })
            }
            ViMotion::FindBack { letter, is_before } => {
                let found = (self.line_start(at)..at).rev().find(|&index| self.letter(index) == Some(letter));
                found.map(|index| if is_before { index + 1 } else { index })
            }
        };
        target.map(|index| self.offset(index))
    }

    /// The start of the caret's line, and its end without the line break.
    pub(super) fn line(&self, caret: usize) -> (usize, usize) {
        let at = self.index(caret);
        (self.offset(self.line_start(at)), self.offset(self.line_end(at)))
    }

    /// The first letter of the caret's line that is no space.
    pub(super) fn first_letter(&self, caret: usize) -> usize {
        self.offset(self.line_first(self.index(caret)))
    }

    /// The caret one letter to the right, also behind the last letter of the line.
    pub(super) fn after(&self, caret: usize) -> usize {
        let at = self.index(caret);
        self.offset(self.line_end(at).min(at + 1))
    }

    /// The caret on a letter: not behind the last one of a line that has letters.
    pub(super) fn on_letter(&self, caret: usize) -> usize {
        let at = self.index(caret);
        let is_behind = at == self.line_end(at) && at > self.line_start(at);
        self.offset(if is_behind { at - 1 } else { at })
    }

    fn index(&self, caret: usize) -> usize {
        self.clusters.partition_point(|(offset, _)| *offset < caret)
    }

    fn offset(&self, index: usize) -> usize {
        self.clusters.get(index).map_or(self.len, |(offset, _)| *offset)
    }

    fn letter(&self, index: usize) -> Option<char> {
        self.clusters.get(index).and_then(|(_, cluster)| cluster.chars().next())
    }

    fn class(&self, index: usize) -> LetterClass {
        match self.letter(index) {
            Some(letter) if letter.is_alphanumeric() || letter == '_' => LetterClass::Word,
            Some(letter) if !letter.is_whitespace() => LetterClass::Other,
            Some(_) | None => LetterClass::Space,
        }
    }

    fn line_start(&self, at: usize) -> usize {
        (0..at).rev().find(|&index| self.letter(index) == Some('\n')).map_or(0, |index| index + 1)
    }

    fn line_end(&self, at: usize) -> usize {
        let n_letters = self.clusters.len();
        (at..n_letters).find(|&index| self.letter(index) == Some('\n')).unwrap_or(n_letters)
    }

    fn line_first(&self, at: usize) -> usize {
        let (start, end) = (self.line_start(at), self.line_end(at));
        (start..end).find(|&index| self.class(index) != LetterClass::Space).unwrap_or(start)
    }

    fn word_forward(&self, at: usize) -> usize {
        let (n_letters, class) = (self.clusters.len(), self.class(at));
        let mut index = at;
        while index < n_letters && class != LetterClass::Space && self.class(index) == class {
            index += 1;
        }
        while index < n_letters && self.class(index) == LetterClass::Space {
            index += 1;
        }
        index
    }

    fn word_back(&self, at: usize) -> usize {
        let mut index = at;
        while index > 0 && self.class(index - 1) == LetterClass::Space {
            index -= 1;
        }
        let class = self.class(index.saturating_sub(1));
        while index > 0 && self.class(index - 1) == class {
            index -= 1;
        }
        index
    }

    fn word_end(&self, at: usize) -> usize {
        let n_letters = self.clusters.len();
        let mut index = at + 1;
        while index < n_letters && self.class(index) == LetterClass::Space {
            index += 1;
        }
        let class = self.class(index);
        while index + 1 < n_letters && self.class(index + 1) == class {
            index += 1;
        }
        index.min(n_letters.saturating_sub(1))
    }
}
