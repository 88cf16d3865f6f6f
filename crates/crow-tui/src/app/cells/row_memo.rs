//! Rows that are made once for a width and a theme, beside the source that they show.

use std::{cell::RefCell, rc::Rc};

use crate::text::{ColorTheme, StyledRow};

/// The last rows that were made. Ignored by comparisons: two owners with equal sources are equal.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowMemo(RefCell<Option<MemoRows>>);

#[derive(Debug, Clone)]
struct MemoRows {
    width: usize,
    theme: ColorTheme,
    rows: Rc<[StyledRow]>,
}

impl RowMemo {
    /// Returns the rows for a width and a theme; makes them if the last ones were for another.
    pub(crate) fn get_or_make(
        &self,
        width: usize,
        theme: ColorTheme,
        make: impl FnOnce() -> Vec<StyledRow>,
    ) -> Rc<[StyledRow]> {
        let mut memo = self.0.borrow_mut();
        if let Some(made) = memo.as_ref().filter(|made| made.width == width && made.theme == theme) {
            return Rc::clone(&made.rows);
        }
        let rows: Rc<[StyledRow]> = make().into();
        *memo = Some(MemoRows { width, theme, rows: Rc::clone(&rows) });
        rows
    }
}

impl PartialEq for RowMemo {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}
