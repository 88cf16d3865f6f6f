//! Completions of the word at the caret: commands after `/`, files after `@`.

use super::composer::buffer::DraftBuffer;

/// Entries that a list has; more are not read.
pub(crate) const ITEMS_MAX: usize = 50;

/// The kind of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompletionKind {
    Command,
    File,
}

/// The word at the caret that can be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompletionTarget {
    pub(crate) kind: CompletionKind,
    /// The first byte of the word, with its mark.
    pub(crate) start: usize,
    /// The word without its mark.
    pub(crate) query: String,
}

/// One completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompletionItem {
    /// The text that replaces the word.
    pub(crate) text: String,
    pub(crate) label: String,
    pub(crate) detail: String,
}

/// The completions above the composer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompletionList {
    pub(crate) target: CompletionTarget,
    pub(crate) items: Vec<CompletionItem>,
    pub(crate) selected: usize,
}

impl CompletionTarget {
    /// Finds the word at the caret.
    pub(crate) fn find(buffer: &DraftBuffer) -> Option<Self> {
        let before = &buffer.text()[..buffer.caret()];
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
        let word = &before[start..];
        let target = |kind, mark: char| {
            let query = word.strip_prefix(mark)?.to_owned();
            Some(Self { kind, start, query })
        };
        match start {
            0 => target(CompletionKind::Command, '/').filter(|target| !target.query.contains('/')),
            _ => None,
        }
        .or_else(|| target(CompletionKind::File, '@'))
    }
}

impl CompletionList {
    pub(crate) fn select_previous(&mut self) {
        self.selected = self.selected.saturating_sub(1);
    }

    pub(crate) fn select_next(&mut self) {
        self.selected = (self.selected + 1).min(self.items.len().saturating_sub(1));
    }

    /// The selected completion.
    pub(crate) fn chosen(&self) -> Option<&CompletionItem> {
        self.items.get(self.selected)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &Expect) {
        let mut buffer = DraftBuffer::default();
        buffer.set_text(text);
        let target = CompletionTarget::find(&buffer);
        let shown = target.map(|target| format!("{:?} at {}: {:?}", target.kind, target.start, target.query));
        expected.assert_eq(&shown.unwrap_or_default());
    }

    #[test]
    fn words_with_a_mark_are_completed() {
        check("/co", &expect![[r#"Command at 0: "co""#]]);
        check("/compact now", &expect![""]);
        check("say /co", &expect![""]);
        check("/etc/hosts", &expect![""]);
        check("look at @src/ma", &expect![[r#"File at 8: "src/ma""#]]);
        check("me@example.org", &expect![""]);
        check("@", &expect![[r#"File at 0: """#]]);
    }
}
