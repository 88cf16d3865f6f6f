//! Editing as in vi: normal and insert mode, counts, operators and motions. Pure: a command and a text in, a text out.

use super::{buffer::DraftBuffer, vi_motion::MotionText};

/// A larger count is a mistake.
const COUNT_MAX: usize = 999;

/// A motion within the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ViMotion {
    Left,
    Right,
    WordForward,
    WordBack,
    WordEnd,
    LineStart,
    LineFirst,
    LineEnd,
    TextStart,
    TextEnd,
    /// To a letter in the line, or to the one before it.
    Find {
        letter: char,
        is_before: bool,
    },
    FindBack {
        letter: char,
        is_before: bool,
    },
}

/// A change of the text between the caret and the target of a motion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ViOperator {
    Delete,
    Change,
    Copy,
}

/// The place where text is inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ViInsertPlace {
    Before,
    LineStart,
    After,
    LineEnd,
    LineBelow,
    LineAbove,
}

/// A command of the normal mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ViCommand {
    Move(ViMotion),
    /// To the letter that is typed next.
    Find {
        is_before: bool,
    },
    RepeatFind {
        is_back: bool,
    },
    Operate(ViOperator),
    /// An operator on everything up to the end of the line.
    OperateToEnd(ViOperator),
    DeleteLetter,
    DeleteBack,
    /// Replaces the letter by the one that is typed next.
    Replace,
    Insert(ViInsertPlace),
    PutAfter,
    PutBefore,
    Undo,
}

/// A key that the next letter belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingLetter {
    Find { is_before: bool },
    Replace,
}

/// The state of vi keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ViState {
    /// Letters are commands.
    pub(crate) is_normal: bool,
    count: usize,
    operator: Option<ViOperator>,
    letter: Option<PendingLetter>,
    /// The last letter that was searched in a line.
    last_find: Option<(char, bool)>,
}

impl ViState {
    /// Leaves the insert mode; the caret moves to the last letter that was inserted.
    pub(crate) fn enter_normal(&mut self, buffer: &mut DraftBuffer) {
        *self = Self { is_normal: true, last_find: self.last_find, ..Self::default() };
        let caret = MotionText::new(buffer.text()).target(ViMotion::Left, buffer.caret());
        buffer.move_to(caret.unwrap_or_else(|| buffer.caret()));
    }

    /// Whether a key is waited for: a motion after an operator, a letter, or anything after a count.
    pub(crate) fn is_pending(&self) -> bool {
        self.operator.is_some() || self.letter.is_some() || self.count > 0
    }

    /// Whether the next letter is text and no command.
    pub(crate) fn takes_letter(&self) -> bool {
        self.letter.is_some()
    }

    /// Forgets a count and an operator.
    pub(crate) fn cancel(&mut self) {
        (self.count, self.operator, self.letter) = (0, None, None);
    }

    /// Takes a letter that is no command: a digit of a count, or the letter that a command waits for.
    pub(crate) fn type_letter(&mut self, letter: char, buffer: &mut DraftBuffer) {
        match (self.letter.take(), letter.to_digit(10)) {
            (Some(PendingLetter::Find { is_before }), _) => {
                self.last_find = Some((letter, is_before));
                self.run_motion(ViMotion::Find { letter, is_before }, buffer);
            }
            (Some(PendingLetter::Replace), _) => {
                let (start, end) = (buffer.caret(), MotionText::new(buffer.text()).after(buffer.caret()));
                if start < end {
                    buffer.replace_range(start, end, letter.encode_utf8(&mut [0; 4]));
                    buffer.move_to(start);
                }
                self.cancel();
            }
            (None, Some(digit)) => self.count = (self.count * 10 + digit as usize).min(COUNT_MAX),
            (None, None) => self.cancel(),
        }
        self.settle(buffer);
    }

    /// Carries out a command of the normal mode.
    pub(crate) fn run(&mut self, command: ViCommand, buffer: &mut DraftBuffer) {
        match command {
            // After a count, it is a digit.
            ViCommand::Move(ViMotion::LineStart) if self.count > 0 => {
                self.count = (self.count * 10).min(COUNT_MAX);
            }
            ViCommand::Move(motion) => self.run_motion(motion, buffer),
            ViCommand::Find { is_before } => self.letter = Some(PendingLetter::Find { is_before }),
            ViCommand::RepeatFind { is_back } => self.repeat_find(is_back, buffer),
            ViCommand::Operate(operator) if self.operator == Some(operator) => {
                self.operate_lines(operator, buffer);
            }
            ViCommand::Operate(operator) => self.operator = Some(operator),
            ViCommand::OperateToEnd(operator) => {
                let end = MotionText::new(buffer.text()).line(buffer.caret()).1;
                self.operate(operator, buffer.caret(), end, buffer);
            }
            ViCommand::DeleteLetter => self.delete_letters(ViMotion::Right, buffer),
            ViCommand::DeleteBack => self.delete_letters(ViMotion::Left, buffer),
            ViCommand::Replace => self.letter = Some(PendingLetter::Replace),
            ViCommand::PutAfter | ViCommand::PutBefore => self.put(command == ViCommand::PutAfter, buffer),
            ViCommand::Undo => {
                buffer.undo();
                self.cancel();
            }
            ViCommand::Insert(place) => self.enter_insert(place, buffer),
        }
        self.settle(buffer);
    }

    /// Keeps the caret on a letter.
    fn settle(&self, buffer: &mut DraftBuffer) {
        if self.is_normal {
            let caret = MotionText::new(buffer.text()).on_letter(buffer.caret());
            buffer.move_to(caret);
        }
    }

    fn take_count(&mut self) -> usize {
        std::mem::take(&mut self.count).max(1)
    }

    fn run_motion(&mut self, motion: ViMotion, buffer: &mut DraftBuffer) {
        let (start, count, operator) = (buffer.caret(), self.take_count(), self.operator.take());
        // As in vi, changing a word leaves the space behind it.
        let motion = match (operator, motion) {
            (Some(ViOperator::Change), ViMotion::WordForward) => ViMotion::WordEnd,
            (_, motion) => motion,
        };
        let text = MotionText::new(buffer.text());
        let mut target = start;
        for _ in 0..count {
            match text.target(motion, target) {
                Some(next) => target = next,
                None => break,
            }
        }
        let Some(operator) = operator else { return buffer.move_to(target) };
        let is_inclusive = matches!(motion, ViMotion::WordEnd | ViMotion::Find { .. });
        let end = if is_inclusive && target >= start { text.after(target) } else { target };
        self.operate(operator, start.min(end), start.max(end), buffer);
    }

    fn repeat_find(&mut self, is_back: bool, buffer: &mut DraftBuffer) {
        let Some((letter, is_before)) = self.last_find else { return self.cancel() };
        let motion = match is_back {
            false => ViMotion::Find { letter, is_before },
            true => ViMotion::FindBack { letter, is_before },
        };
        self.run_motion(motion, buffer);
    }

    fn operate(&mut self, operator: ViOperator, start: usize, end: usize, buffer: &mut DraftBuffer) {
        self.cancel();
        match operator {
            ViOperator::Copy => {
                buffer.copy_range(start, end);
                buffer.move_to(start);
            }
            ViOperator::Delete => buffer.cut_range(start, end),
            ViOperator::Change => {
                buffer.cut_range(start, end);
                self.is_normal = false;
            }
        }
    }

    /// An operator on whole lines; what is cut ends with a line break.
    fn operate_lines(&mut self, operator: ViOperator, buffer: &mut DraftBuffer) {
        let count = self.take_count();
        let text = MotionText::new(buffer.text());
        let (start, mut end) = text.line(buffer.caret());
        for _ in 1..count {
            if end < buffer.text().len() {
                end = text.line(end + 1).1;
            }
        }
        if operator == ViOperator::Change {
            return self.operate(operator, start, end, buffer);
        }
        let caret = buffer.caret();
        let lines = format!("{}\n", &buffer.text()[start..end]);
        match operator {
            ViOperator::Copy => buffer.move_to(caret),
            // The line break before the last line goes with it.
            ViOperator::Delete | ViOperator::Change => match end < buffer.text().len() {
                true => buffer.cut_range(start, end + 1),
                false => buffer.cut_range(start.saturating_sub(1), end),
            },
        }
        buffer.set_killed(lines);
        self.cancel();
    }

    fn delete_letters(&mut self, motion: ViMotion, buffer: &mut DraftBuffer) {
        let count = self.take_count();
        let text = MotionText::new(buffer.text());
        let mut target = buffer.caret();
        for _ in 0..count {
            target = text.target(motion, target).unwrap_or(target);
        }
        let (start, end) = (buffer.caret().min(target), buffer.caret().max(target));
        self.operate(ViOperator::Delete, start, end, buffer);
    }

    /// Inserts what was cut: whole lines below or above, anything else beside the caret.
    fn put(&mut self, is_after: bool, buffer: &mut DraftBuffer) {
        self.cancel();
        let killed = buffer.killed().to_owned();
        let text = MotionText::new(buffer.text());
        let (start, end) = text.line(buffer.caret());
        match (killed.strip_suffix('\n'), is_after) {
            (Some(lines), true) => {
                buffer.insert_at(end, &format!("\n{lines}"));
                buffer.move_to(end + 1);
            }
            (Some(lines), false) => {
                buffer.insert_at(start, &format!("{lines}\n"));
                buffer.move_to(start);
            }
            (None, _) => {
                let at = if is_after { text.after(buffer.caret()) } else { buffer.caret() };
                buffer.insert_at(at, &killed);
                buffer.move_left();
            }
        }
    }

    fn enter_insert(&mut self, place: ViInsertPlace, buffer: &mut DraftBuffer) {
        self.cancel();
        self.is_normal = false;
        let text = MotionText::new(buffer.text());
        let (start, end) = text.line(buffer.caret());
        match place {
            ViInsertPlace::Before => {}
            ViInsertPlace::LineStart => buffer.move_to(text.first_letter(buffer.caret())),
            ViInsertPlace::After => buffer.move_to(text.after(buffer.caret())),
            ViInsertPlace::LineEnd => buffer.move_to(end),
            ViInsertPlace::LineBelow => buffer.insert_at(end, "\n"),
            ViInsertPlace::LineAbove => {
                buffer.insert_at(start, "\n");
                buffer.move_to(start);
            }
        }
    }
}

#[cfg(test)]
mod tests;
