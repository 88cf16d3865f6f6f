//! A problem in a page. Must not know any rule.

use std::fmt;

/// The number of problems reported at a time; fixing these usually fixes most of the others.
const PROBLEMS_MAX: usize = 30;

/// A problem in a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LintProblem {
    /// The line, from 1; `None` if it concerns the whole page.
    pub(crate) line: Option<usize>,
    /// The problem and its fix, as a sentence without a full stop.
    pub(crate) text: String,
}

impl LintProblem {
    pub(crate) fn for_page(text: impl Into<String>) -> Self {
        Self { line: None, text: text.into() }
    }

    pub(crate) fn at_line(line: usize, text: impl Into<String>) -> Self {
        Self { line: Some(line), text: text.into() }
    }
}

impl fmt::Display for LintProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Returns the first problems, sorted by line.
pub(crate) fn first_problems(mut problems: Vec<LintProblem>) -> Vec<LintProblem> {
    problems.sort_by_key(|problem| problem.line);
    let n_more = problems.len().saturating_sub(PROBLEMS_MAX);
    problems.truncate(PROBLEMS_MAX);
    if n_more > 0 {
        problems.push(LintProblem::for_page(format!("{n_more} more problems are not listed")));
    }
    problems
}
