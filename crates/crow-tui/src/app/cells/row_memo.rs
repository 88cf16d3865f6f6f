//! Rows that are made once for a width and a theme, beside the source that they show.

use std::cell::RefCell;

use crate::text::{ColorTheme, StyledRow};

/// The last rows that were made. It is no part of what has it: sources are equal without it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowMemo(RefCell<Option<MemoRows>>);

#[derive(Debug, Clone)]
struct MemoRows {
    width: usize,
    theme: ColorTheme,
    rows: Vec<StyledRow>,
}

impl RowMemo {
    /// Returns the rows for a width and a theme; makes them if the last ones were for another.
    pub(crate) fn get_or_make(
        &self,
        width: usize,
        theme: ColorTheme,
        make: impl FnOnce() -> Vec<StyledRow>,
    ) -> Vec<StyledRow> {
        let mut memo = self.0.borrow_mut();
        if let Some(made) = memo.as_ref().filter(|made| made.width == width && made.theme == theme) {
            return made.rows.clone();
        }
        let rows = make();
        *memo = Some(MemoRows { width, theme, rows: rows.clone() });
        rows
    }
}

impl PartialEq for RowMemo {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}
